//! The rules of stores: hooks that change while turns are worked, each tenant's by itself.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use pintle_domain::breaker::BreakerOutcome;
use pintle_domain::checkpoint::CheckpointKind;
use pintle_domain::hook::Hook;
use pintle_domain::id::TenantId;
use pintle_domain::identity::Identity;
use pintle_domain::record::{HookOutcome, Record, RecordLines, counted};

use crate::hook_set::{HookSet, Mounted};

/// The rules in force, by tenant. Replaced whole.
#[derive(Clone, Default)]
pub struct RulesByTenant {
    /// Those of each tenant that has some of its own, global ones among them.
    pub tenants: BTreeMap<TenantId, Arc<[Mounted]>>,
    /// Those of every other tenant: the global ones.
    pub others: Arc<[Mounted]>,
    /// The names of the tenants in addresses and in the operator's allow-list.
    pub slugs: BTreeMap<TenantId, String>,
}

impl RulesByTenant {
    /// The hooks of `tenant`.
    pub fn of(&self, tenant: &TenantId) -> &Arc<[Mounted]> {
        self.tenants.get(tenant).unwrap_or(&self.others)
    }
}

/// Hears what became of the handlers of rules: for circuit breakers.
pub trait OutcomeListener: Send + Sync {
    /// The handler of `hook` came to `what` in a turn of `who`. Must not block.
    fn took(&self, who: &Identity, hook: &Hook, what: BreakerOutcome);
}

/// Brings rules up to date that may have changed elsewhere.
pub trait RuleLook: Send + Sync {
    /// Puts in force what the store has now, if that is another. Blocks.
    fn look(&self);
}

/// A set, and of what it was made.
struct CachedSet {
    generation: u64,
    configured: Arc<[Mounted]>,
    set: Arc<HookSet>,
}

/// The rules in force, and who counts their outcomes.
#[derive(Default)]
pub struct LiveRules {
    rules: RwLock<Arc<RulesByTenant>>,
    generation: AtomicU64,
    /// The set that the last turn of each tenant began with. The next one begins with the same, unless a rule or a
    /// configured hook changed in between.
    sets: Mutex<BTreeMap<TenantId, CachedSet>>,
    outcomes: OnceLock<Arc<dyn OutcomeListener>>,
    looks: OnceLock<Arc<dyn RuleLook>>,
}

impl LiveRules {
    /// Puts `rules` in force, also for turns in progress.
    pub fn replace(&self, rules: RulesByTenant) {
        *self.rules.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(rules);
        self.generation.fetch_add(1, Ordering::Release);
        self.forget_sets();
    }

    /// The rules in force.
    pub fn rules(&self) -> Arc<RulesByTenant> {
        self.rules.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The name of `tenant` in addresses, as of the rules in force.
    pub fn slug(&self, tenant: &TenantId) -> Option<String> {
        self.rules().slugs.get(tenant).cloned()
    }

    /// Lets `outcomes` hear what becomes of handlers. The first one stays.
    pub fn count_by(&self, outcomes: Arc<dyn OutcomeListener>) {
        // A second one would count twice.
        drop(self.outcomes.set(outcomes));
    }

    /// Lets `looks` bring the rules up to date when somebody needs those of now. The first one stays.
    pub fn look_by(&self, looks: Arc<dyn RuleLook>) {
        drop(self.looks.set(looks));
    }

    /// Waits until the rules of the store are in force as they are now, whether or not it told of a change.
    pub(crate) async fn look(&self) {
        let Some(looks) = self.looks.get().cloned() else { return };
        if let Err(error) = tokio::task::spawn_blocking(move || looks.look()).await {
            tracing::error!("the rules of the store were not looked at: {error}");
        }
    }

    /// Lets go of what turns began with: it may hold hooks that are no longer in force.
    pub(crate) fn forget_sets(&self) {
        self.sets().clear();
    }

    fn sets(&self) -> MutexGuard<'_, BTreeMap<TenantId, CachedSet>> {
        // Every change under this lock is complete before anything could panic.
        self.sets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The set of a turn of `tenant` that begins now, and the generation of its rules.
    fn set(&self, configured: &Arc<[Mounted]>, tenant: &TenantId) -> (u64, Arc<HookSet>) {
        // Read before the rules: a change in between is seen at the next look.
        let generation = self.generation();
        let mut sets = self.sets();
        if let Some(begun) = sets.get(tenant)
            && begun.generation == generation
            && Arc::ptr_eq(&begun.configured, configured)
        {
            return (generation, begun.set.clone());
        }
        let set = Arc::new(HookSet::of(configured.iter().chain(self.rules().of(tenant).iter())));
        let begun = CachedSet { generation, configured: configured.clone(), set: set.clone() };
        sets.insert(tenant.clone(), begun);
        (generation, set)
    }

    fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Hands over what became of each rule that was asked at one event.
    pub(crate) fn count(&self, who: &Identity, set: &HookSet, records: &RecordLines) {
        let Some(outcomes) = self.outcomes.get() else { return };
        // Most hooks are passed over, and a breaker counts none of those.
        let ran = |record: &&Record| record.stored.is_some() && !matches!(record.outcome, HookOutcome::NotRun(_));
        let ran: Vec<&Record> = records.whole().filter(ran).collect();
        if ran.is_empty() {
            return;
        }
        for hook in set.roster().hooks() {
            let Some(stored) = &hook.stored else { continue };
            let is_own = |record: &&Record| record.stored.as_ref().is_some_and(|own| own.id == stored.id);
            if let Some(what) = counted(hook, ran.iter().copied().filter(is_own)) {
                outcomes.took(who, hook, what);
            }
        }
    }
}

/// The set of one turn: its configured hooks stay, its stored ones are always those in force.
pub(crate) struct CurrentSet {
    configured: Arc<[Mounted]>,
    tenant: TenantId,
    pub(crate) live: Arc<LiveRules>,
    /// The set that the turn began with: as long as no rule changes, nothing is locked to find it.
    first: (u64, Arc<HookSet>),
    newest: RwLock<(u64, Arc<HookSet>)>,
}

impl CurrentSet {
    pub(crate) fn new(configured: Arc<[Mounted]>, tenant: TenantId, live: Arc<LiveRules>) -> Self {
        let first = live.set(&configured, &tenant);
        Self { configured, tenant, live, newest: RwLock::new(first.clone()), first }
    }

    /// Whether nobody is registered for `kind`. As long as no rule changes, that holds nothing to find it out.
    pub(crate) fn is_quiet(&self, kind: CheckpointKind) -> bool {
        let (generation, set) = &self.first;
        let quiet = |set: &HookSet| set.roster().at(kind).is_empty();
        if *generation == self.live.generation() { quiet(set) } else { quiet(&self.set()) }
    }

    pub(crate) fn set(&self) -> Arc<HookSet> {
        let generation = self.live.generation();
        if self.first.0 == generation {
            return self.first.1.clone();
        }
        let newest = self.newest.read().unwrap_or_else(PoisonError::into_inner).clone();
        if newest.0 == generation {
            return newest.1;
        }
        let set = Arc::new(HookSet::of(self.configured.iter().chain(self.live.rules().of(&self.tenant).iter())));
        *self.newest.write().unwrap_or_else(PoisonError::into_inner) = (generation, set.clone());
        set
    }
}
