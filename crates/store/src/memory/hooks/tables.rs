//! Rules as values.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use jiff::Timestamp;
use pintle_domain::breaker::BreakerRun;
use pintle_domain::id::{DEFAULT_TENANT, HookId, SENTINEL_TENANT, TenantId};
use pintle_domain::rule::Rule;
use pintle_domain::store::{
    Actor, LoggedChange, OpenBreaker, OutboxJob, RuleChange, RuleChangeResult, StoreError, StoredRules, Tenant,
    TenantScope,
};

use crate::rules::{self, Account, CREATED, DELETED, RESET, RowChange, TRIPPED, moment};

/// Most lines of the change log that are held, of all hooks; the oldest go first.
const MAX_LINES: usize = 16_384;

/// The tables that one mutex guards.
#[derive(Debug)]
pub(in crate::memory) struct RuleTables {
    pub(super) rules: RuleTransaction,
    /// By id.
    pub(super) tenants: Vec<Tenant>,
    pub(super) disabled: BTreeSet<TenantId>,
    /// Oldest first; it outlives the hooks.
    log: VecDeque<LoggedChange>,
    pub(super) accounts: BTreeMap<TenantId, Account>,
    /// When it was said last of a tenant that little is left.
    pub(super) warned: BTreeMap<TenantId, Timestamp>,
    pub(super) jobs: BTreeMap<String, OutboxJob>,
}

/// The tables that a transaction changes, on a copy.
#[derive(Clone, Debug, Default)]
pub(super) struct RuleTransaction {
    pub(super) epoch: u64,
    hooks: BTreeMap<HookId, Rule>,
    /// Since when a global hook is off for one tenant.
    trips: BTreeMap<HookId, BTreeMap<TenantId, String>>,
    runs: BTreeMap<HookId, BTreeMap<TenantId, BreakerRun>>,
    /// The lines that the transaction adds to the log.
    pub(super) lines: Vec<LoggedChange>,
}

impl Default for RuleTables {
    /// As migrations leave a database.
    fn default() -> Self {
        let now = Timestamp::now();
        let tenant = |id: &str, slug: &str, name: &str| Tenant {
            id: TenantId::from(id),
            slug: slug.to_owned(),
            name: name.to_owned(),
            created_at: moment(now),
        };
        Self {
            rules: RuleTransaction::default(),
            tenants: vec![tenant(SENTINEL_TENANT, "global", "Global"), tenant(DEFAULT_TENANT, "default", "Default")],
            disabled: BTreeSet::new(),
            log: VecDeque::new(),
            accounts: BTreeMap::new(),
            warned: BTreeMap::new(),
            jobs: BTreeMap::new(),
        }
    }
}

impl RuleTables {
    /// Everything that puts rules in force.
    pub(super) fn stored(&self) -> StoredRules {
        let RuleTransaction { epoch, hooks, trips, runs, .. } = &self.rules;
        let trips = trips.iter().flat_map(|(hook, trips)| trips.iter().map(move |trip| (hook, trip)));
        let trip = |(hook, (tenant, at)): (&HookId, (&TenantId, &String))| OpenBreaker {
            hook_id: hook.clone(),
            tenant_id: tenant.clone(),
            tripped_at: at.clone(),
        };
        let runs = runs.iter().flat_map(|(hook, runs)| runs.iter().map(move |run| (hook, run)));
        StoredRules {
            epoch: *epoch,
            hooks: hooks.values().cloned().collect(),
            trips: trips.map(trip).collect(),
            runs: runs.map(|(hook, (tenant, run))| (hook.clone(), tenant.clone(), run.clone())).collect(),
            tenants: self.tenants.clone(),
            disabled: self.disabled.iter().cloned().collect(),
            ..StoredRules::default()
        }
    }

    pub(super) fn add_tenant(&mut self, tenant: &Tenant) -> Result<(), StoreError> {
        let new = rules::tenant(tenant)?;
        if self.tenants.iter().any(|other| other.id == new.id || other.slug == new.slug) {
            return Err(rules::tenant_taken(&new.id, &new.slug));
        }
        self.tenants.push(new);
        self.tenants.sort_by(|a, b| a.id.cmp(&b.id));
        self.rules.epoch += 1;
        Ok(())
    }

    pub(super) fn stop_tenant(&mut self, tenant: &TenantId, disabled: bool) {
        if disabled {
            self.disabled.insert(tenant.clone());
        } else {
            self.disabled.remove(tenant);
        }
        self.rules.epoch += 1;
    }

    pub(super) fn changes(&self, of: &TenantScope, id: &HookId, limit: usize) -> Vec<LoggedChange> {
        let Some(id) = spelled(id) else { return Vec::new() };
        let own = |line: &&LoggedChange| of.has(&line.tenant_id) || line.tenant_id == TenantId::sentinel();
        self.log.iter().rev().filter(|line| line.hook_id == id).filter(own).take(limit).cloned().collect()
    }

    /// The newest changes of the hooks of `tenant` and of everybody's, or of all, after the line `after`.
    pub(super) fn change_log(
        &self,
        tenant: Option<&TenantId>,
        after: Option<&(String, String)>,
        limit: usize,
    ) -> Vec<LoggedChange> {
        let own = |line: &&LoggedChange| {
            tenant.is_none_or(|tenant| line.tenant_id == *tenant || line.tenant_id == TenantId::sentinel())
        };
        let newest = self.log.iter().rev().filter(own);
        let before = |line: &&LoggedChange| after.is_some_and(|(_, id)| line.id != *id);
        newest.skip_while(before).skip(usize::from(after.is_some())).take(limit).cloned().collect()
    }

    /// The changes of every hook since then, oldest first.
    pub(in crate::memory) fn changes_since(&self, since: Timestamp, limit: usize) -> Vec<LoggedChange> {
        let is_since = |line: &&LoggedChange| line.at.parse::<Timestamp>().is_ok_and(|at| at >= since);
        self.log.iter().filter(is_since).take(limit).cloned().collect()
    }

    /// Takes over what a transaction made of the rules.
    pub(super) fn commit(&mut self, mut rules: RuleTransaction) {
        self.log.extend(std::mem::take(&mut rules.lines));
        let too_many = self.log.len().saturating_sub(MAX_LINES);
        self.log.drain(..too_many);
        self.rules = rules;
    }
}

impl RuleTransaction {
    pub(super) fn hook(&self, id: &HookId) -> Option<Rule> {
        self.hooks.get(&spelled(id)?).cloned()
    }

    fn row(&self, id: &HookId) -> Result<Rule, StoreError> {
        self.hook(id).ok_or_else(|| rules::no_hook(id))
    }

    pub(super) fn change(
        &mut self,
        changes: Vec<RuleChange>,
        tenants: &[Tenant],
        by: &Actor,
    ) -> Result<RuleChangeResult, StoreError> {
        self.epoch += 1;
        let versions = changes.into_iter().map(|change| self.one(change, tenants, by)).collect::<Result<_, _>>()?;
        Ok(RuleChangeResult { epoch: self.epoch, versions })
    }

    /// Carries one change out, and gives the version that it left.
    fn one(&mut self, change: RuleChange, tenants: &[Tenant], by: &Actor) -> Result<u32, StoreError> {
        let is_added = matches!(change, RuleChange::Add(_));
        match change {
            RuleChange::Create(hook) | RuleChange::Add(hook) => {
                let new = rules::created(*hook, by.at)?;
                known(tenants, &new.tenant_id)?;
                let taken = self.hooks.values().find(|there| is_added && there.has_place_of(&new));
                if let Some(there) = taken {
                    return Err(rules::place_taken(&there.id));
                }
                if self.hooks.contains_key(&new.id) {
                    return Err(rules::hook_taken(&new.id));
                }
                let diff = rules::diff(None, Some(&new));
                self.log(RowChange::of(&new, CREATED, diff), by);
                Ok(self.put(new))
            }
            RuleChange::Update { hook, if_version, action } => {
                known(tenants, &hook.tenant_id)?;
                let old = self.row(&hook.id)?;
                let new = rules::updated(&old, *hook, if_version, by.at)?;
                self.log(RowChange::of(&new, action, rules::diff(Some(&old), Some(&new))), by);
                Ok(self.put(new))
            }
            RuleChange::Delete { id, reason } => {
                let old = self.row(&id)?;
                self.close(&old.id);
                self.hooks.remove(&old.id);
                let gone = Rule { version: 0, ..old.clone() };
                self.log(RowChange::of(&gone, DELETED, rules::deletion(&old, &reason)), by);
                Ok(gone.version)
            }
        }
    }

    fn put(&mut self, new: Rule) -> u32 {
        let version = new.version;
        self.hooks.insert(new.id.clone(), new);
        version
    }

    /// Forgets what is open beside the row, and what counts.
    fn close(&mut self, id: &HookId) {
        self.trips.remove(id);
        self.runs.remove(id);
    }

    pub(super) fn trip(&mut self, id: &HookId, tenant: &TenantId, by: &Actor) -> Result<u64, StoreError> {
        let old = self.row(id)?;
        if rules::trips_itself(&old) {
            self.runs.remove(&old.id);
            let Some(new) = rules::tripped(&old, by.at) else { return Ok(self.epoch) };
            self.log(RowChange::of(&new, TRIPPED, rules::diff(Some(&old), Some(&new))), by);
            self.put(new);
        } else {
            let tenant = tenant_id(tenant)?;
            self.forget_run(&old.id, &tenant);
            let before = self.open_for(&old.id);
            if !old.enabled || before.contains_key(&tenant) {
                return Ok(self.epoch);
            }
            self.trips.entry(old.id.clone()).or_default().insert(tenant.clone(), moment(by.at));
            let diff = rules::trips_diff(&before, &self.open_for(&old.id));
            self.log(RowChange::of(&old, TRIPPED, diff).within(&tenant), by);
        }
        self.epoch += 1;
        Ok(self.epoch)
    }

    pub(super) fn reset(&mut self, id: &HookId, tenant: Option<&TenantId>, by: &Actor) -> Result<u64, StoreError> {
        let old = self.row(id)?;
        let only = tenant.filter(|_| !rules::trips_itself(&old)).map(tenant_id).transpose()?;
        let before = self.open_for(&old.id);
        let counted = self.runs.get(&old.id).is_some_and(|runs| only.as_ref().is_none_or(|it| runs.contains_key(it)));
        let open = only.as_ref().map_or(!before.is_empty(), |it| before.contains_key(it));
        match &only {
            None => self.close(&old.id),
            Some(tenant) => {
                self.forget_run(&old.id, tenant);
                if let Some(trips) = self.trips.get_mut(&old.id) {
                    trips.remove(tenant);
                }
            }
        }
        if let Some(new) = rules::closed(&old, by.at) {
            self.log(RowChange::of(&new, RESET, rules::diff(Some(&old), Some(&new))), by);
            self.put(new);
        } else if open {
            let diff = rules::trips_diff(&before, &self.open_for(&old.id));
            self.log(RowChange::of(&old, RESET, diff).within(only.as_ref().unwrap_or(&old.tenant_id)), by);
        } else if !counted {
            return Ok(self.epoch);
        }
        self.epoch += 1;
        Ok(self.epoch)
    }

    pub(super) fn keep_run(&mut self, id: &HookId, tenant: &TenantId, run: &BreakerRun) {
        let Some((id, tenant)) = spelled(id).zip(tenant_id(tenant).ok()) else { return };
        if run.is_empty() {
            self.forget_run(&id, &tenant);
        } else if self.hooks.contains_key(&id) {
            self.runs.entry(id).or_default().insert(tenant, run.clone());
        }
    }

    fn forget_run(&mut self, id: &HookId, tenant: &TenantId) {
        if let Some(runs) = self.runs.get_mut(id) {
            runs.remove(tenant);
            if runs.is_empty() {
                self.runs.remove(id);
            }
        }
    }

    /// For whom a global hook is off, and since when.
    fn open_for(&self, id: &HookId) -> BTreeMap<TenantId, String> {
        self.trips.get(id).cloned().unwrap_or_default()
    }

    /// One line in the change log in the name of `tenant`, whom it is about.
    /// A line about a budget.
    pub(super) fn log_budget(&mut self, line: LoggedChange) {
        self.epoch += 1;
        self.lines.push(line);
    }

    fn log(&mut self, change: RowChange<'_>, by: &Actor) {
        self.lines.push(rules::logged(change, by));
    }
}

fn spelled(id: &HookId) -> Option<HookId> {
    rules::uuid(id.as_str()).map(HookId::new)
}

fn tenant_id(id: &TenantId) -> Result<TenantId, StoreError> {
    rules::uuid(id.as_str()).map(TenantId::new).ok_or_else(|| rules::no_tenant(id))
}

/// The id of one of `tenants`, as it is kept.
pub(super) fn known(tenants: &[Tenant], id: &TenantId) -> Result<TenantId, StoreError> {
    let uuid = tenant_id(id)?;
    let known = tenants.iter().any(|tenant| tenant.id == uuid);
    if known { Ok(uuid) } else { Err(rules::no_tenant(id)) }
}
