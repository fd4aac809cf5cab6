//! A store of rules that is nothing but what the ports say: for tests of whoever uses a store, and the model with which
//! the real stores are compared.
//!
//! One mutex guards everything, so each method is one transaction. What the ports leave open is settled here:
//!
//! * The epoch of a new store is 1. Whatever changes what [`RuleStore::rules`] gives adds 1, runs excepted.
//! * Moments are kept in whole microseconds, since databases keep no more.
//! * An update leaves what is open for tenants of a global hook, and the runs: whoever wants them gone resets the hook.
//!   Whether the hook's own breaker is open is what the update says.
//! * To open a breaker that is open, or that of a hook which is switched off, changes nothing but the run. To reset a
//!   hook of which nothing is open and nothing counts changes nothing; where something only counts, it leaves no line.
//! * Opening and resetting are updates of the row where the row has the breaker: its version becomes one more. What is
//!   open for one tenant of a global hook stands beside the row, which stays as it is.

mod account;
mod audit;
mod state;
mod budget;
mod executions;
mod outbox;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use pintle_domain::breaker::BreakerRun;
use pintle_domain::id::{HookId, TenantId};
use pintle_domain::rule::Rule;
use pintle_domain::store::{
    Actor, LoggedChange, OnRulesChanged, RuleChange, RuleChangeResult, RuleStore, RuleSubscription, StoreError,
    StoredRules, Tenant, TenantScope,
};

use state::RuleState;

pub use state::diff;

/// The model.
#[derive(Default)]
pub struct MemoryRules {
    rule_state: Mutex<RuleState>,
    down: Mutex<Option<String>>,
    resets_fail: AtomicBool,
    calls: AtomicU64,
    listener: Mutex<Option<OnRulesChanged>>,
    told: Arc<AtomicBool>,
    steady: AtomicBool,
    shut: Mutex<Option<String>>,
}

/// Somebody listens to a [`MemoryRules`].
struct ListenerGuard {
    told: Arc<AtomicBool>,
    steady: bool,
}

impl RuleSubscription for ListenerGuard {
    fn is_told(&self) -> bool {
        self.told.load(Ordering::SeqCst)
    }

    fn may_hang(&self) -> bool {
        !self.steady
    }
}

impl MemoryRules {
    /// A store as the migrations leave it: the owner of global hooks and one tenant.
    pub fn new() -> Self {
        Self { rule_state: Mutex::new(RuleState::fresh()), ..Self::default() }
    }

    /// From now on every method fails.
    pub fn break_down(&self, why: &str) {
        *self.down.lock().unwrap_or_else(PoisonError::into_inner) = Some(why.to_owned());
    }

    /// From now on circuit breakers cannot be closed, until it is mended.
    pub fn break_resets(&self) {
        self.resets_fail.store(true, Ordering::SeqCst);
    }

    /// It works again.
    pub fn mend(&self) {
        self.resets_fail.store(false, Ordering::SeqCst);
        *self.down.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// From now on it is not to be relied on, and why; or it is again. The epoch stays.
    pub fn close_gates(&self, why: Option<&str>) {
        *self.shut.lock().unwrap_or_else(PoisonError::into_inner) = why.map(str::to_owned);
    }

    /// Somebody puts `older`, a reading of before, in its place.
    pub fn put_back(&self, older: &StoredRules) {
        let mut rule_state = self.rule_state.lock().unwrap_or_else(PoisonError::into_inner);
        rule_state.epoch = older.epoch;
        rule_state.hooks = older.hooks.iter().map(|hook| (hook.id.clone(), hook.clone())).collect();
    }

    /// Whoever listens from now on is told by what cannot hang.
    pub fn tell_steadily(&self) {
        self.steady.store(true, Ordering::SeqCst);
    }

    /// Tells whoever listens that something changed, and whether they are told of every change from now on.
    pub fn tell(&self, from_now_on: bool) {
        self.told.store(from_now_on, Ordering::SeqCst);
        if let Some(heard) = &*self.listener.lock().unwrap_or_else(PoisonError::into_inner) {
            heard();
        }
    }

    /// How often it was asked for anything, in vain or not.
    pub fn calls(&self) -> u64 {
        self.calls.load(Ordering::SeqCst)
    }

    /// What a transaction works on.
    fn rule_state(&self) -> Result<MutexGuard<'_, RuleState>, StoreError> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        match &*self.down.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(why) => Err(StoreError::Unavailable(why.clone())),
            None => Ok(self.rule_state.lock().unwrap_or_else(PoisonError::into_inner)),
        }
    }

    /// One transaction: what `work` does counts only if it succeeds.
    fn transaction<T>(&self, work: impl FnOnce(&mut RuleState) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let mut rule_state = self.rule_state()?;
        let mut copy = rule_state.clone();
        let done = work(&mut copy)?;
        *rule_state = copy;
        Ok(done)
    }
}

impl RuleStore for MemoryRules {
    fn rules(&self) -> Result<StoredRules, StoreError> {
        let shut = self.shut.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Ok(StoredRules { shut, ..self.rule_state()?.rules() })
    }

    fn epoch(&self) -> Result<u64, StoreError> {
        Ok(self.rule_state()?.epoch)
    }

    fn listen(&self, heard: OnRulesChanged) -> Box<dyn RuleSubscription> {
        *self.listener.lock().unwrap_or_else(PoisonError::into_inner) = Some(heard);
        Box::new(ListenerGuard { told: self.told.clone(), steady: self.steady.load(Ordering::SeqCst) })
    }

    fn hook(&self, id: &HookId) -> Result<Option<Rule>, StoreError> {
        Ok(self.rule_state()?.hooks.get(id).cloned())
    }

    fn change(&self, changes: Vec<RuleChange>, by: &Actor) -> Result<RuleChangeResult, StoreError> {
        self.transaction(|rule_state| {
            let versions = changes.into_iter().map(|change| rule_state.change(change, by)).collect::<Result<_, _>>()?;
            rule_state.epoch += 1;
            Ok(RuleChangeResult { epoch: rule_state.epoch, versions })
        })
    }

    fn changes(&self, of: &TenantScope, id: &HookId, limit: usize) -> Result<Vec<LoggedChange>, StoreError> {
        let rule_state = self.rule_state()?;
        let own = |line: &&LoggedChange| of.has(&line.tenant_id) || line.tenant_id == TenantId::sentinel();
        Ok(rule_state.log.iter().rev().filter(|line| line.hook_id == *id).filter(own).take(limit).cloned().collect())
    }

    fn change_log(
        &self,
        tenant: Option<&TenantId>,
        after: Option<&(String, String)>,
        limit: usize,
    ) -> Result<Vec<LoggedChange>, StoreError> {
        let rule_state = self.rule_state()?;
        let own = |line: &&LoggedChange| {
            tenant.is_none_or(|tenant| line.tenant_id == *tenant || line.tenant_id == TenantId::sentinel())
        };
        let before = |line: &&LoggedChange| after.is_some_and(|(_, id)| line.id != *id);
        let newest = rule_state.log.iter().rev().filter(own).skip_while(before);
        Ok(newest.skip(usize::from(after.is_some())).take(limit).cloned().collect())
    }

    fn trip(&self, id: &HookId, tenant: &TenantId, by: &Actor) -> Result<u64, StoreError> {
        self.transaction(|rule_state| rule_state.trip(id, tenant, by))
    }

    fn reset(&self, id: &HookId, tenant: Option<&TenantId>, by: &Actor) -> Result<u64, StoreError> {
        if self.resets_fail.load(Ordering::SeqCst) {
            return Err(StoreError::Unavailable("resets fail".to_owned()));
        }
        self.transaction(|rule_state| rule_state.reset(id, tenant, by))
    }

    fn keep_run(&self, id: &HookId, tenant: &TenantId, run: &BreakerRun, _now: Timestamp) -> Result<(), StoreError> {
        let mut rule_state = self.rule_state()?;
        let key = (id.clone(), tenant.clone());
        if run.is_empty() {
            rule_state.runs.remove(&key);
        } else if rule_state.hooks.contains_key(id) {
            rule_state.runs.insert(key, run.clone());
        }
        Ok(())
    }

    fn tenants(&self) -> Result<Vec<Tenant>, StoreError> {
        Ok(self.rule_state()?.tenants.clone())
    }

    fn add_tenant(&self, tenant: &Tenant) -> Result<(), StoreError> {
        let mut rule_state = self.rule_state()?;
        if rule_state.tenants.iter().any(|other| other.id == tenant.id || other.slug == tenant.slug) {
            return Err(StoreError::Conflict(format!("tenant `{}` ({}) exists already", tenant.slug, tenant.id)));
        }
        rule_state.tenants.push(tenant.clone());
        rule_state.tenants.sort_by(|a, b| a.id.cmp(&b.id));
        rule_state.epoch += 1;
        Ok(())
    }
}

/// `at` without what is finer than a microsecond.
fn whole_micros(at: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(at.as_microsecond()).unwrap_or(at)
}

/// By hook and tenant.
type RunsByHook<T> = BTreeMap<(HookId, TenantId), T>;

#[cfg(test)]
mod tests;
