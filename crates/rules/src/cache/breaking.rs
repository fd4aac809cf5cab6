//! Circuit breakers at work: outcomes are counted, breakers open here at once, and the store hears of it.

use std::sync::{Arc, PoisonError, Weak};
use std::time::Duration;

use pintle_domain::breaker::{BreakerOutcome, BreakerStep};
use pintle_domain::hook::Hook;
use pintle_domain::id::{HookId, TenantId};
use pintle_domain::identity::Identity;
use pintle_domain::store::{Actor, OpenBreaker, StoreError};

use super::RuleCache;
use pintle_engine::live_rules::{OutcomeListener, RuleLook};

/// How long a trip that could not be written waits for the next attempt.
const TRY_AGAIN: Duration = Duration::from_secs(1);

/// How often a trip is tried to be written before it is left to this process alone.
const ATTEMPTS: u32 = 60;

/// Who closes what a breaker opened, in the change log.
const BREAKER: &str = "system:breaker";

/// Counts what became of handlers, as long as there is somebody to whom the rules belong.
pub(super) struct Counter(pub(super) Weak<RuleCache>);

impl OutcomeListener for Counter {
    fn took(&self, who: &Identity, hook: &Hook, what: BreakerOutcome) {
        if let Some(rule_cache) = self.0.upgrade() {
            rule_cache.took(who, hook, what);
        }
    }
}

impl RuleLook for Counter {
    fn look(&self) {
        let Some(rule_cache) = self.0.upgrade() else { return };
        if let Err(error) = rule_cache.refresh() {
            tracing::error!("security.hook.resolve_error: {error}; the rules from before stay in force");
        }
    }
}

impl RuleCache {
    fn took(self: &Arc<Self>, who: &Identity, hook: &Hook, what: BreakerOutcome) {
        let Some(stored) = &hook.stored else { return };
        // A test says nothing of how a hook does.
        if who.is_test {
            return;
        }
        let key = (stored.id.clone(), who.tenant_id.clone());
        let (step, is_to_write) = {
            let mut cache_state = self.cache_state();
            let run = cache_state.runs.entry(key.clone()).or_default();
            let step = run.take(stored.breaker, what, self.clock.now());
            if run.is_empty() {
                cache_state.runs.remove(&key);
            }
            (step, step == BreakerStep::Changed && cache_state.is_to_write(&key))
        };
        match step {
            BreakerStep::Changed if is_to_write => self.keep_run(key),
            BreakerStep::Same | BreakerStep::Changed => {}
            BreakerStep::Trips => self.trip(hook, &key.0, &key.1),
        }
    }

    /// Opens the breaker of a hook, here at once and in the store as soon as it takes it.
    fn trip(self: &Arc<Self>, hook: &Hook, id: &HookId, tenant: &TenantId) {
        let at = self.clock.now();
        tracing::error!(
            hook_id = %id, tenant_id = %tenant, window = pintle_domain::breaker::WINDOW_SECONDS, threshold = pintle_domain::breaker::THRESHOLD,
            "security.hook.circuit_breaker: hook \"{}\"", hook.name
        );
        {
            let mut cache_state = self.cache_state();
            let trip = OpenBreaker { hook_id: id.clone(), tenant_id: tenant.clone(), tripped_at: at.to_string() };
            cache_state.held.push(trip);
            cache_state.open_held();
            self.publish(&mut cache_state);
        }
        let (rule_cache, id, tenant) = (self.clone(), id.clone(), tenant.clone());
        let actor = Actor { name: BREAKER.to_owned(), at, reason: String::new() };
        self.parts.tasks.spawn(async move { rule_cache.keep_trip(id, tenant, actor).await });
    }

    async fn keep_trip(self: Arc<Self>, id: HookId, tenant: TenantId, actor: Actor) {
        for _ in 0..ATTEMPTS {
            let (rule_cache, hook, whose, by) = (self.clone(), id.clone(), tenant.clone(), actor.clone());
            let kept = tokio::task::spawn_blocking(move || rule_cache.write_trip(&hook, &whose, &by)).await;
            match kept {
                // Somebody has closed it meanwhile.
                Ok(Ok(false)) => return,
                Ok(Ok(true)) => {
                    self.cache_state().held.retain(|trip| trip.hook_id != id || trip.tenant_id != tenant);
                    let rule_cache = self.clone();
                    // A reload that fails is tried again by the next look.
                    drop(tokio::task::spawn_blocking(move || rule_cache.reload()).await);
                    return;
                }
                // Nothing is left to close.
                Ok(Err(StoreError::NotFound(_))) => {
                    self.cache_state().held.retain(|trip| trip.hook_id != id || trip.tenant_id != tenant);
                    return;
                }
                Ok(Err(error)) => {
                    tracing::error!(hook_id = %id, "security.hook.circuit_breaker_persist_failed: {error}")
                }
                Err(error) => tracing::error!(hook_id = %id, "security.hook.circuit_breaker_persist_failed: {error}"),
            }
            tokio::select! {
                () = self.closing.cancelled() => return,
                () = tokio::time::sleep(TRY_AGAIN) => {}
            }
        }
    }

    /// Writes that a breaker is open, unless somebody has closed it meanwhile. Says whether it is.
    fn write_trip(&self, id: &HookId, tenant: &TenantId, by: &Actor) -> Result<bool, StoreError> {
        let writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let is_open = self.holds(id, tenant);
        if is_open {
            self.store.trip(id, tenant, by)?;
        }
        drop(writing);
        Ok(is_open)
    }

    /// Writes the run of a breaker, as it is by the time that it is written.
    fn keep_run(self: &Arc<Self>, key: (HookId, TenantId)) {
        let (rule_cache, now) = (self.clone(), self.clock.now());
        self.parts.tasks.spawn_blocking(move || {
            let writing = rule_cache.writing.lock().unwrap_or_else(PoisonError::into_inner);
            let run = rule_cache.cache_state().runs.get(&key).cloned().unwrap_or_default();
            if let Err(error) = rule_cache.store.keep_run(&key.0, &key.1, &run, now) {
                tracing::warn!(hook_id = %key.0, "the run of a circuit breaker could not be kept: {error}");
            }
            rule_cache.cache_state().written(&key);
            drop(writing);
        });
    }
}
