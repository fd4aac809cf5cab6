//! Keeps the rules of a store in force: reads them, mounts them, notices when they change, and takes those out whose
//! circuit breaker opens.
//!
//! Nothing here is asked for on the way of an event: the snapshot is replaced whole, by whoever changes a rule and by a
//! task that hears, or looks, whether somebody else did.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use pintle_domain::anchor::RuleDoubt;
use pintle_domain::breaker::BreakerRun;
use pintle_domain::hook::Hook;
use pintle_domain::id::{AgentId, HookId, TenantId};
use pintle_domain::rule::{HookScope, Rule, Source};
use pintle_domain::store::{OpenBreaker, RuleStore, StoreError, StoredRules};
use tokio_util::sync::CancellationToken;

use crate::handler::RuleServices;
use crate::team::is_of_team;
use pintle_engine::approvals::{Clock, SystemClock};
use pintle_engine::hook_set::Mounted;
use pintle_engine::live_rules::{LiveRules, RulesByTenant};

mod breaking;
mod excepting;
mod looking;
mod mounting;
mod news;

use breaking::Counter;
pub use excepting::as_asked;
use excepting::{exceptions, narrowed};
pub(crate) use mounting::handler;
pub use mounting::{GuardedEvents, mount, shut, stub};
use mounting::{disabled, doubted};
pub use news::{ChangedBreaker, ChangedRow, OnNews, RuleNews};

/// The pause between looks for a rule that another process changed, where nobody tells.
pub const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The pause between looks although the store tells: a connection may hang unnoticed, and changes count within 5 s.
pub const LOOK_WHILE_TOLD: Duration = Duration::from_secs(5);

/// The pause where the system itself tells, which does not hang: an idle program sleeps, and what no system tells, such as
/// a commit that took a disk many seconds, is found all the same.
pub const LOOK_SELDOM: Duration = Duration::from_secs(60);

/// Why a rule is off whose breaker is open, in its row.
const BY_BREAKER: &str = "breaker";

/// The agents of the host: hooks know them by ids that are made from these names.
pub type AgentNames = Arc<dyn Fn() -> Vec<AgentId> + Send + Sync>;

/// The rules of one store, in force.
pub struct RuleCache {
    store: Arc<dyn RuleStore>,
    live: Arc<LiveRules>,
    parts: Arc<RuleServices>,
    agents: AgentNames,
    clock: Arc<dyn Clock>,
    cache_state: Mutex<CacheState>,
    /// Held by whoever writes a run, so that an older one never takes the place of a newer one.
    writing: Mutex<()>,
    closing: CancellationToken,
    /// Whoever hears what changed.
    heard: OnceLock<OnNews>,
}

/// A hook beside those of the store: it stands for a rule that could not be read, or that nobody accepted.
#[derive(Clone)]
pub struct ExtraHook {
    /// The tenant of the rules; every tenant if that is not said.
    pub tenant: Option<TenantId>,
    /// The hook.
    pub mounted: Mounted,
}

/// The state of the rules in force now.
#[derive(Default)]
struct CacheState {
    /// As they are in force: those of the store, and of files those of this host. Shared with whoever reads them.
    rules: Arc<StoredRules>,
    /// All rows of the store, those of files of other hosts among them.
    rows: Vec<Rule>,
    /// Those of the rows that are not as they were left.
    doubts: Vec<RuleDoubt>,
    /// The rules of this host's files. Their rows in the store are for breakers and histories; what counts stands here,
    /// since hosts that share a store need not share their files.
    files: Vec<Rule>,
    /// The runs of breakers that are under way.
    runs: BTreeMap<(HookId, TenantId), BreakerRun>,
    /// How many writes of a run are on their way: until they are there, what the store has of it is old.
    unwritten: BTreeMap<(HookId, TenantId), usize>,
    /// How many readings were put in force.
    readings: u64,
    /// Breakers that opened here and that the store does not know of yet.
    held: Vec<OpenBreaker>,
    /// Why the store could not be read, as long as it never could: every gate stays shut, whatever else is there.
    unread: Option<String>,
    /// Rules that could not be read: what they were to guard stays shut.
    stubs: Vec<ExtraHook>,
    /// The hook that was mounted of each row, so that a change of one row mounts one row.
    mounted: BTreeMap<HookId, (Rule, Arc<[Mounted; 1]>)>,
}

/// What there is to mount: the rows, the breakers that are open for one tenant, the agents that are at work.
#[derive(Clone, Copy)]
struct RuleRows<'a> {
    hooks: &'a [Rule],
    trips: &'a [OpenBreaker],
    /// Those of the rows that are not asked, since they are not what somebody wrote here.
    doubts: &'a [RuleDoubt],
    agents: &'a [AgentId],
}

impl RuleCache {
    /// Reads the rules of `store` and puts them in force. Blocks.
    ///
    /// # Errors
    /// The store cannot be read; gates are then shut until [`RuleCache::refresh`] succeeds.
    pub fn open(
        store: Arc<dyn RuleStore>,
        live: Arc<LiveRules>,
        parts: Arc<RuleServices>,
        agents: AgentNames,
    ) -> (Arc<Self>, Result<(), StoreError>) {
        Self::open_read(store, live, parts, agents, None)
    }

    /// The same where somebody has `read` the rules a moment ago: they are read again only if they changed since. Blocks.
    pub fn open_read(
        store: Arc<dyn RuleStore>,
        live: Arc<LiveRules>,
        parts: Arc<RuleServices>,
        agents: AgentNames,
        read: Option<StoredRules>,
    ) -> (Arc<Self>, Result<(), StoreError>) {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let rule_cache = Arc::new(Self {
            store,
            live,
            parts,
            agents,
            clock,
            cache_state: Mutex::default(),
            writing: Mutex::default(),
            closing: CancellationToken::new(),
            heard: OnceLock::new(),
        });
        let read = rule_cache.begin_with(read);
        if let Err(error) = &read {
            let mut cache_state = rule_cache.cache_state();
            cache_state.unread = Some(error.to_string());
            rule_cache.publish(&mut cache_state);
        }
        // What the rule cache itself holds must not hold it: nothing of this would ever be dropped, the store least of
        // all.
        rule_cache.live.count_by(Arc::new(Counter(Arc::downgrade(&rule_cache))));
        rule_cache.live.look_by(Arc::new(Counter(Arc::downgrade(&rule_cache))));
        rule_cache.parts.pool.count_by(Arc::new(Counter(Arc::downgrade(&rule_cache))));
        (rule_cache, read)
    }

    fn cache_state(&self) -> MutexGuard<'_, CacheState> {
        self.cache_state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The rules as they are in force, breakers that only this process knows of among them. Nothing is copied unless
    /// there is such a breaker of a global hook.
    pub fn rules(&self) -> Arc<StoredRules> {
        let cache_state = self.cache_state();
        match cache_state.held_extra().next() {
            None => cache_state.rules.clone(),
            Some(_) => Arc::new(StoredRules { trips: cache_state.trips(), ..(*cache_state.rules).clone() }),
        }
    }

    /// How many outcomes count towards the circuit breakers that `tenant` has and that are not open, by the hook.
    pub fn counted(&self, tenant: &TenantId) -> BTreeMap<HookId, usize> {
        let now = self.clock.now();
        let cache_state = self.cache_state();
        let own = cache_state.runs.iter().filter(|((_, of), _)| of == tenant);
        let counted = own.map(|((hook, _), run)| (hook.clone(), run.counted(now)));
        counted.filter(|(_, count)| *count > 0).collect()
    }

    /// Lets `heard` be called with what changed whenever the store had other rules, whoever changed them. Only the first
    /// call counts.
    pub fn tell(&self, heard: OnNews) {
        // Whoever came first goes on.
        drop(self.heard.set(heard));
    }

    /// The hook that the row `id` is mounted as, if it is.
    pub fn mounted(&self, id: &HookId) -> Option<Arc<Hook>> {
        self.cache_state().mounted.get(id).map(|(_, mounted)| mounted[0].hook.clone())
    }

    /// Mounts the rules once more, because the agents of the host changed.
    pub fn remount(&self) {
        let mut cache_state = self.cache_state();
        cache_state.mounted.clear();
        self.publish(&mut cache_state);
    }

    /// Takes the rules of this host's files, and keeps shut what those were to guard that could not be read. Replaces
    /// what was taken before.
    pub fn hold(&self, files: Vec<Rule>, stubs: Vec<ExtraHook>) {
        let mut cache_state = self.cache_state();
        cache_state.files = files;
        cache_state.stubs = stubs;
        cache_state.lay_over();
        cache_state.open_held();
        self.publish(&mut cache_state);
    }

    /// The rules in force, as dispatchers take them.
    pub fn live(&self) -> &Arc<LiveRules> {
        &self.live
    }

    /// Forgets what this process alone knows of the breakers of a hook: those that opened and that could not be written
    /// yet, and runs; everywhere, or for one tenant. Somebody closes them. What is in force changes with the next
    /// [`RuleCache::reload`]. Blocks.
    pub fn release(&self, id: &HookId, tenant: Option<&TenantId>) {
        let meant = |hook: &HookId, of: &TenantId| hook == id && tenant.is_none_or(|tenant| of == tenant);
        // A write that has begun with the old run must not come after whoever clears it in the store.
        let writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut cache_state = self.cache_state();
        cache_state.held.retain(|trip| !meant(&trip.hook_id, &trip.tenant_id));
        cache_state.runs.retain(|(hook, of), _| !meant(hook, of));
        drop(cache_state);
        drop(writing);
    }

    /// Stops trying to write. What is not written by now is lost with this process.
    pub fn close(&self) {
        self.closing.cancel();
    }

    /// Whether the breaker of a hook is still open here and not in the store.
    fn holds(&self, id: &HookId, tenant: &TenantId) -> bool {
        self.cache_state().held.iter().any(|trip| trip.hook_id == *id && trip.tenant_id == *tenant)
    }

    /// Puts what the page says in force.
    fn publish(&self, cache_state: &mut CacheState) {
        let agents = (self.agents)();
        let stored = cache_state.rules.clone();
        let ids: BTreeSet<&HookId> = stored.hooks.iter().map(|hook| &hook.id).collect();
        cache_state.mounted.retain(|id, _| ids.contains(id));
        let trips = cache_state.trips();
        let rows = RuleRows { hooks: &stored.hooks, trips: &trips, doubts: &stored.doubts, agents: &agents };
        let others = self.of_tenant(cache_state, None, rows);
        let mut rules = RulesByTenant { others, ..RulesByTenant::default() };
        if let Some(why) = &cache_state.unread {
            rules.others = rules.others.iter().chain(shut(why).others.iter()).cloned().collect();
        }
        for tenant in &stored.tenants {
            rules.slugs.insert(tenant.id.clone(), tenant.slug.clone());
        }
        // A tenant whose row somebody deleted still has the rules that are missing.
        let doubted = stored.doubts.iter().map(|doubt| &doubt.rule.tenant_id);
        for tenant in stored.tenants.iter().map(|tenant| &tenant.id).chain(doubted).collect::<BTreeSet<_>>() {
            let own = self.of_tenant(cache_state, Some(tenant), rows);
            rules.tenants.insert(tenant.clone(), own);
        }
        self.live.replace(rules);
    }

    /// The mounted hooks of a tenant, or those of a tenant that nobody knows: the global ones.
    fn of_tenant(&self, cache_state: &mut CacheState, tenant: Option<&TenantId>, rows: RuleRows<'_>) -> Arc<[Mounted]> {
        let RuleRows { hooks, trips, doubts, agents } = rows;
        let is_own = |extra_hooks: &&ExtraHook| extra_hooks.tenant.is_none() || extra_hooks.tenant.as_ref() == tenant;
        let mut mounted: Vec<Mounted> =
            cache_state.stubs.iter().filter(is_own).map(|extra_hooks| extra_hooks.mounted.clone()).collect();
        let is_meant = |it: &&RuleDoubt| it.rule.scope == HookScope::Global || tenant == Some(&it.rule.tenant_id);
        let excepted = exceptions(rows);
        // Where the store as a whole is in doubt, no rule of it is asked.
        if let Some(why) = &cache_state.rules.shut {
            mounted.extend(shut(why).others.iter().cloned());
            return mounted.into();
        }
        mounted.extend(tenant.filter(|it| cache_state.rules.disabled.contains(it)).map(|_| disabled()));
        mounted.extend(doubts.iter().filter(is_meant).map(|it| doubted((it, cache_state.rules.is_of_server), agents)));
        for hook in hooks.iter().filter(|hook| doubts.iter().all(|doubt| doubt.hook != hook.id)) {
            // What is shipped and switched off is nobody's rule: it would stand in every record.
            let is_off = hook.source == Source::Builtin && !hook.is_candidate();
            let global = hook.scope == HookScope::Global;
            if is_off || (!global && tenant != Some(&hook.tenant_id)) {
                continue;
            }
            let asked = narrowed(hook, &excepted);
            let hook = &*asked;
            let trip = trips.iter().find(|trip| trip.hook_id == hook.id && tenant == Some(&trip.tenant_id));
            match trip {
                // Open for this tenant only: it is mounted apart.
                Some(trip) if global && hook.enabled => {
                    let tripped = Rule { tripped_at: Some(trip.tripped_at.clone()), ..hook.clone() };
                    mounted.push(mount(&tripped, agents, &self.parts));
                }
                Some(_) | None => mounted.push(self.one(cache_state, hook, agents)),
            }
        }
        mounted.into()
    }

    /// A row as it is mounted, from before if it has not changed.
    fn one(&self, cache_state: &mut CacheState, hook: &Rule, agents: &[AgentId]) -> Mounted {
        if let Some((same, mounted)) = cache_state.mounted.get(&hook.id)
            && same == hook
        {
            return mounted[0].clone();
        }
        let mounted = mount(hook, agents, &self.parts);
        cache_state.mounted.insert(hook.id.clone(), (hook.clone(), Arc::new([mounted.clone()])));
        mounted
    }
}

impl CacheState {
    fn take(&mut self, rules: StoredRules) {
        self.unread = None;
        let mut runs: BTreeMap<_, _> =
            rules.runs.iter().map(|(hook, tenant, run)| ((hook.clone(), tenant.clone()), run.clone())).collect();
        for key in self.unwritten.keys() {
            match self.runs.remove(key) {
                Some(run) => runs.insert(key.clone(), run),
                None => runs.remove(key),
            };
        }
        self.runs = runs;
        self.rows.clone_from(&rules.hooks);
        self.doubts.clone_from(&rules.doubts);
        self.rules = Arc::new(rules);
        self.lay_over();
        self.open_held();
    }

    /// Puts the rules of this host's files in the place of all rows of files. Their breakers stay as the store has them.
    fn lay_over(&mut self) {
        let own = self.files.iter().map(|file| {
            let row = self.rows.iter().find(|row| row.id == file.id);
            // A breaker that somebody else opened keeps no rule of a file out.
            let is_doubted = self.doubts.iter().any(|doubt| doubt.hook == file.id);
            let tripped_at = row.filter(|_| !is_doubted).and_then(|row| row.tripped_at.clone());
            Rule {
                enabled: file.enabled && tripped_at.is_none(),
                disabled_reason: tripped_at.as_ref().map(|_| BY_BREAKER.to_owned()).unwrap_or_default(),
                tripped_at,
                // That of a rule of a team counts its changes at the gateway.
                version: row.filter(|_| is_of_team(file).is_none()).map_or(file.version, |row| row.version),
                created_at: row.map_or_else(|| file.created_at.clone(), |row| row.created_at.clone()),
                updated_at: row.map_or_else(|| file.updated_at.clone(), |row| row.updated_at.clone()),
                ..file.clone()
            }
        });
        let is_filed = |id: &HookId| self.files.iter().any(|file| file.id == *id);
        let hooks = self.rows.iter().filter(|row| row.file().is_none()).cloned().chain(own).collect();
        Arc::make_mut(&mut self.rules).doubts =
            self.doubts.iter().filter(|doubt| !is_filed(&doubt.hook)).cloned().collect();
        Arc::make_mut(&mut self.rules).hooks = hooks;
    }

    /// Whether somebody has to write a run that changed. Of two that are on their way one has not begun, and it will
    /// write what is there by then.
    fn is_to_write(&mut self, key: &(HookId, TenantId)) -> bool {
        let writes = self.unwritten.entry(key.clone()).or_default();
        let is_new = *writes < 2;
        *writes += usize::from(is_new);
        is_new
    }

    /// A write of a run is over.
    fn written(&mut self, key: &(HookId, TenantId)) {
        if let Some(writes) = self.unwritten.get_mut(key) {
            *writes -= 1;
            if *writes == 0 {
                self.unwritten.remove(key);
            }
        }
    }

    /// Applies the trips that the store does not know of yet.
    fn open_held(&mut self) {
        if self.held.is_empty() {
            return;
        }
        let rules = Arc::make_mut(&mut self.rules);
        for trip in &self.held {
            let rows = rules.hooks.iter_mut();
            let own = rows.filter(|hook| hook.id == trip.hook_id && hook.scope != HookScope::Global && hook.enabled);
            for hook in own {
                hook.enabled = false;
                hook.tripped_at = Some(trip.tripped_at.clone());
                hook.disabled_reason = BY_BREAKER.to_owned();
            }
        }
    }

    /// The trips of global hooks that the store does not know of yet: they stand beside the hooks.
    fn held_extra(&self) -> impl Iterator<Item = &OpenBreaker> {
        self.held.iter().filter(|trip| {
            let of = |hook: &Rule| hook.id == trip.hook_id && hook.scope == HookScope::Global;
            self.rules.hooks.iter().any(of)
        })
    }

    /// The trips of global hooks.
    fn trips(&self) -> Vec<OpenBreaker> {
        self.rules.trips.iter().chain(self.held_extra()).cloned().collect()
    }
}

#[cfg(test)]
mod tests;
