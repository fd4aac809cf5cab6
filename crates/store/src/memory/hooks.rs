//! Rules, tenants, budgets and the outbox of this process alone.

mod tables;

use std::sync::{MutexGuard, PoisonError};

use jiff::Timestamp;
use pintle_domain::breaker::BreakerRun;
use pintle_domain::id::{HookId, TenantId};
use pintle_domain::rule::Rule;
use pintle_domain::store::{
    Actor, Budget, BudgetChange, BudgetStore, LoggedChange, OnKept, OutboxJob, OutboxStore, RuleChange,
    RuleChangeResult, RuleStore, StoreError, StoredRules, Tenant, TenantScope,
};

use super::Memory;
use crate::rules::{self, Account, whole_micros};

pub(super) use tables::RuleTables;
use tables::RuleTransaction;

impl RuleStore for Memory {
    fn rules(&self) -> Result<StoredRules, StoreError> {
        Ok(self.tables().stored())
    }

    fn epoch(&self) -> Result<u64, StoreError> {
        Ok(self.tables().rules.epoch)
    }

    fn hook(&self, id: &HookId) -> Result<Option<Rule>, StoreError> {
        Ok(self.tables().rules.hook(id))
    }

    fn change(&self, changes: Vec<RuleChange>, by: &Actor) -> Result<RuleChangeResult, StoreError> {
        self.transaction(by, |rules, tenants| rules.change(changes, tenants, by))
    }

    fn changes(&self, of: &TenantScope, id: &HookId, limit: usize) -> Result<Vec<LoggedChange>, StoreError> {
        Ok(self.tables().changes(of, id, limit))
    }

    fn change_log(
        &self,
        tenant: Option<&TenantId>,
        after: Option<&(String, String)>,
        limit: usize,
    ) -> Result<Vec<LoggedChange>, StoreError> {
        Ok(self.tables().change_log(tenant, after, limit))
    }

    fn trip(&self, id: &HookId, tenant: &TenantId, by: &Actor) -> Result<u64, StoreError> {
        self.transaction(by, |rules, _| rules.trip(id, tenant, by))
    }

    fn reset(&self, id: &HookId, tenant: Option<&TenantId>, by: &Actor) -> Result<u64, StoreError> {
        self.transaction(by, |rules, _| rules.reset(id, tenant, by))
    }

    fn keep_run(&self, id: &HookId, tenant: &TenantId, run: &BreakerRun, _now: Timestamp) -> Result<(), StoreError> {
        self.tables().rules.keep_run(id, tenant, run);
        Ok(())
    }

    fn tenants(&self) -> Result<Vec<Tenant>, StoreError> {
        Ok(self.tables().tenants.clone())
    }

    fn add_tenant(&self, tenant: &Tenant) -> Result<(), StoreError> {
        self.tables().add_tenant(tenant)
    }
}

impl Memory {
    /// The changes of every hook since then, oldest first.
    pub(super) fn changes_since(&self, since: Timestamp, limit: usize) -> Vec<LoggedChange> {
        self.tables().changes_since(since, limit)
    }

    /// Disables a tenant or enables it again.
    pub(super) fn stop_tenant(&self, tenant: &TenantId, disabled: bool) {
        self.tables().stop_tenant(tenant, disabled);
    }

    /// The result of `work` on the account of `tenant`.
    fn of_account<T>(
        &self,
        tenant: &TenantId,
        now: Timestamp,
        work: impl FnOnce(&mut Account) -> T,
    ) -> Result<T, StoreError> {
        let mut memory = self.tables();
        let id = tables::known(&memory.tenants, tenant)?;
        let account = memory.accounts.entry(id).or_insert_with(|| Account::fresh(now));
        account.roll(now);
        Ok(work(account))
    }
}

impl BudgetStore for Memory {
    fn budget(&self, tenant: &TenantId, now: Timestamp) -> Result<Budget, StoreError> {
        self.of_account(tenant, now, |account| account.shown())
    }

    fn reserve(&self, tenant: &TenantId, tokens: u64, now: Timestamp) -> Result<bool, StoreError> {
        self.of_account(tenant, now, |account| account.reserve(tokens))
    }

    fn settle(&self, tenant: &TenantId, delta: i64, now: Timestamp) -> Result<(Budget, bool), StoreError> {
        let (budget, warns) = self.of_account(tenant, now, |account| {
            let warns = account.settle(delta);
            (account.shown(), warns)
        })?;
        if warns {
            let mut memory = self.tables();
            let id = tables::known(&memory.tenants, tenant)?;
            memory.warned.insert(id, now);
        }
        Ok((budget, warns))
    }

    fn set_budget(&self, tenant: &TenantId, change: &BudgetChange) -> Result<Budget, StoreError> {
        let set = |account: &mut Account| (std::mem::replace(&mut account.total, change.total), account.shown());
        let (before, budget) = self.of_account(tenant, change.by.at, set)?;
        let line = rules::budget_line(tenant, before, change);
        self.transaction(&change.by, |rules, _| {
            rules.log_budget(line);
            Ok(budget)
        })
    }
}

impl Memory {
    /// The budgets of which little was left for the first time in their month since `since`.
    pub(super) fn low_since(&self, since: Timestamp) -> Vec<(TenantId, Budget)> {
        let memory = self.tables();
        let low = memory.warned.iter().filter(|(_, at)| **at >= since);
        let accounts = low.filter_map(|(tenant, _)| Some((tenant.clone(), memory.accounts.get(tenant)?)));
        accounts.filter(|(_, account)| account.warned).map(|(tenant, account)| (tenant, account.shown())).collect()
    }
}

/// Nothing is encrypted: it is gone with the process, which has the key too.
impl OutboxStore for Memory {
    fn enqueue(&self, jobs: Vec<OutboxJob>, done: OnKept) {
        let mut memory = self.tables();
        for job in jobs {
            let next_at = whole_micros(job.next_at);
            memory.jobs.entry(job.id.clone()).or_insert(OutboxJob { next_at, ..job });
        }
        drop(memory);
        done(Ok(()));
    }

    fn take_due(&self, now: Timestamp, until: Timestamp, limit: usize) -> Result<Vec<OutboxJob>, StoreError> {
        let mut memory = self.tables();
        let mut due: Vec<&mut OutboxJob> = memory.jobs.values_mut().filter(|job| job.next_at <= now).collect();
        // Those of one moment are in the order of their ids already.
        due.sort_by_key(|job| job.next_at);
        let take = |job: &mut OutboxJob| {
            job.next_at = whole_micros(until);
            job.clone()
        };
        Ok(due.into_iter().take(limit).map(take).collect())
    }

    fn jobs_left(&self) -> Result<u64, StoreError> {
        Ok(self.tables().jobs.len() as u64)
    }

    fn finish(&self, id: &str) -> Result<(), StoreError> {
        self.tables().jobs.remove(id);
        Ok(())
    }

    fn try_again(&self, id: &str, attempts: u32, next_at: Timestamp) -> Result<(), StoreError> {
        if let Some(job) = self.tables().jobs.get_mut(id) {
            job.attempts = attempts;
            job.next_at = whole_micros(next_at);
        }
        Ok(())
    }
}

impl Memory {
    fn tables(&self) -> MutexGuard<'_, RuleTables> {
        // A panic elsewhere leaves what was before its transaction.
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One transaction: what `work` does counts only if it succeeds.
    fn transaction<T>(
        &self,
        by: &Actor,
        work: impl FnOnce(&mut RuleTransaction, &[Tenant]) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut memory = self.tables();
        let mut rules = memory.rules.clone();
        let done = work(&mut rules, &memory.tenants)?;
        // What no chain can take changes nothing.
        rules.lines.iter().try_for_each(|line| rules::note(line, by.at).map(drop))?;
        let noted: Vec<_> = rules.lines.iter().map(|line| (line.tenant_id.clone(), rules::noted(line))).collect();
        memory.commit(rules);
        // Still under the lock of the rules, so that the chain has them in the order in which they came about.
        for (tenant, (kind, data)) in noted {
            self.note(&tenant, by.at, kind, data)?;
        }
        Ok(done)
    }
}
