//! Stored hooks, tenants, budgets and the outbox of this process alone.

mod rulebook;

use std::sync::{MutexGuard, PoisonError};

use domain::agent_hook::AgentHook;
use domain::breaker::Run;
use domain::id::{HookId, TenantId};
use domain::store::{
    Actor, Budget, BudgetStore, Changed, Done, HookChange, HookStore, LoggedChange, OutboxJob, OutboxStore, StoreError,
    StoredRules, Tenant,
};
use jiff::Timestamp;

use super::Memory;
use crate::rules::{self, Account, whole_micros};

pub(super) use rulebook::Rulebook;
use rulebook::Rules;

impl HookStore for Memory {
    fn rules(&self) -> Result<StoredRules, StoreError> {
        Ok(self.rulebook().stored())
    }

    fn epoch(&self) -> Result<u64, StoreError> {
        Ok(self.rulebook().rules.epoch)
    }

    fn hook(&self, id: &HookId) -> Result<Option<AgentHook>, StoreError> {
        Ok(self.rulebook().rules.hook(id))
    }

    fn change(&self, changes: Vec<HookChange>, by: &Actor) -> Result<Changed, StoreError> {
        self.transaction(by, |rules, tenants| rules.change(changes, tenants, by))
    }

    fn changes(&self, id: &HookId, limit: usize) -> Result<Vec<LoggedChange>, StoreError> {
        Ok(self.rulebook().changes(id, limit))
    }

    fn trip(&self, id: &HookId, tenant: &TenantId, by: &Actor) -> Result<u64, StoreError> {
        self.transaction(by, |rules, _| rules.trip(id, tenant, by))
    }

    fn reset(&self, id: &HookId, tenant: Option<&TenantId>, by: &Actor) -> Result<u64, StoreError> {
        self.transaction(by, |rules, _| rules.reset(id, tenant, by))
    }

    fn keep_run(&self, id: &HookId, tenant: &TenantId, run: &Run, _now: Timestamp) -> Result<(), StoreError> {
        self.rulebook().rules.keep_run(id, tenant, run);
        Ok(())
    }

    fn tenants(&self) -> Result<Vec<Tenant>, StoreError> {
        Ok(self.rulebook().tenants.clone())
    }

    fn add_tenant(&self, tenant: &Tenant) -> Result<(), StoreError> {
        self.rulebook().add_tenant(tenant)
    }
}

impl Memory {
    /// What the account of `tenant` says once `work` is done with it.
    fn of_account<T>(
        &self,
        tenant: &TenantId,
        now: Timestamp,
        work: impl FnOnce(&mut Account) -> T,
    ) -> Result<T, StoreError> {
        let mut book = self.rulebook();
        let id = rulebook::known(&book.tenants, tenant)?;
        let account = book.accounts.entry(id).or_insert_with(|| Account::fresh(now));
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
        self.of_account(tenant, now, |account| {
            let warns = account.settle(delta);
            (account.shown(), warns)
        })
    }

    fn set_budget(&self, tenant: &TenantId, total: i64, now: Timestamp) -> Result<Budget, StoreError> {
        self.of_account(tenant, now, |account| {
            account.total = total;
            account.shown()
        })
    }
}

/// Nothing is encrypted: it is gone with the process, which has the key too.
impl OutboxStore for Memory {
    fn enqueue(&self, jobs: Vec<OutboxJob>, done: Done) {
        let mut book = self.rulebook();
        for job in jobs {
            let next_at = whole_micros(job.next_at);
            book.jobs.entry(job.id.clone()).or_insert(OutboxJob { next_at, ..job });
        }
        drop(book);
        done(Ok(()));
    }

    fn take_due(&self, now: Timestamp, until: Timestamp, limit: usize) -> Result<Vec<OutboxJob>, StoreError> {
        let mut book = self.rulebook();
        let mut due: Vec<&mut OutboxJob> = book.jobs.values_mut().filter(|job| job.next_at <= now).collect();
        // Those of one moment are in the order of their ids already.
        due.sort_by_key(|job| job.next_at);
        let take = |job: &mut OutboxJob| {
            job.next_at = whole_micros(until);
            job.clone()
        };
        Ok(due.into_iter().take(limit).map(take).collect())
    }

    fn finish(&self, id: &str) -> Result<(), StoreError> {
        self.rulebook().jobs.remove(id);
        Ok(())
    }

    fn try_again(&self, id: &str, attempts: u32, next_at: Timestamp) -> Result<(), StoreError> {
        if let Some(job) = self.rulebook().jobs.get_mut(id) {
            job.attempts = attempts;
            job.next_at = whole_micros(next_at);
        }
        Ok(())
    }
}

impl Memory {
    fn rulebook(&self) -> MutexGuard<'_, Rulebook> {
        // A panic elsewhere leaves what was before its transaction.
        self.rulebook.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One transaction: what `work` does counts only if it succeeds.
    fn transaction<T>(
        &self,
        by: &Actor,
        work: impl FnOnce(&mut Rules, &[Tenant]) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut book = self.rulebook();
        let mut rules = book.rules.clone();
        let done = work(&mut rules, &book.tenants)?;
        // What no chain can take changes nothing.
        rules.lines.iter().try_for_each(|line| rules::note(line, by.at).map(drop))?;
        let noted: Vec<_> = rules.lines.iter().map(|line| (line.tenant_id.clone(), rules::noted(line))).collect();
        book.commit(rules);
        // Still under the lock of the rules, so that the chain has them in the order in which they came about.
        for (tenant, (kind, data)) in noted {
            self.note(&tenant, by.at, kind, data)?;
        }
        Ok(done)
    }
}
