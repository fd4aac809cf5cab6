//! Rules, tenants, budgets and the outbox in a file.

use domain::breaker::BreakerRun;
use domain::id::{HookId, TenantId};
use domain::rule::Rule;
use domain::store::{
    Actor, Budget, BudgetStore, LoggedChange, OnKept, OutboxJob, OutboxStore, RuleChange, RuleChangeResult, RuleStore,
    StoreError, StoredRules, Tenant,
};
use jiff::Timestamp;

use super::Sqlite;
use crate::rows::batch::Batch;
use crate::rows::{budgets, epoch, hooks, outbox, tenants};

impl RuleStore for Sqlite {
    fn rules(&self) -> Result<StoredRules, StoreError> {
        self.read(|connection| {
            // One transaction, or a writer could come between the statements. It ends, unchanged, when it is dropped.
            let transaction = connection.unchecked_transaction()?;
            hooks::rules(&*transaction)
        })
    }

    fn epoch(&self) -> Result<u64, StoreError> {
        self.read(|connection| epoch::now(connection))
    }

    fn hook(&self, id: &HookId) -> Result<Option<Rule>, StoreError> {
        self.read(|connection| hooks::by_id(connection, id))
    }

    fn change(&self, changes: Vec<RuleChange>, by: &Actor) -> Result<RuleChangeResult, StoreError> {
        self.write(|transaction| hooks::change(transaction, &changes, by))
    }

    fn changes(&self, id: &HookId, limit: usize) -> Result<Vec<LoggedChange>, StoreError> {
        self.read(|connection| hooks::changes(connection, id, limit))
    }

    fn trip(&self, id: &HookId, tenant: &TenantId, by: &Actor) -> Result<u64, StoreError> {
        self.write(|transaction| hooks::trip(transaction, id, tenant, by))
    }

    fn reset(&self, id: &HookId, tenant: Option<&TenantId>, by: &Actor) -> Result<u64, StoreError> {
        self.write(|transaction| hooks::reset(transaction, id, tenant, by))
    }

    fn keep_run(&self, id: &HookId, tenant: &TenantId, run: &BreakerRun, now: Timestamp) -> Result<(), StoreError> {
        self.write(|transaction| hooks::keep_run(transaction, id, tenant, run, now))
    }

    fn tenants(&self) -> Result<Vec<Tenant>, StoreError> {
        self.read(|connection| tenants::all(connection))
    }

    fn add_tenant(&self, tenant: &Tenant) -> Result<(), StoreError> {
        self.write(|transaction| tenants::add(transaction, tenant))
    }
}

impl BudgetStore for Sqlite {
    fn budget(&self, tenant: &TenantId, now: Timestamp) -> Result<Budget, StoreError> {
        self.write(|transaction| budgets::budget(transaction, tenant, now))
    }

    fn reserve(&self, tenant: &TenantId, tokens: u64, now: Timestamp) -> Result<bool, StoreError> {
        self.write(|transaction| budgets::reserve(transaction, tenant, tokens, now))
    }

    fn settle(&self, tenant: &TenantId, delta: i64, now: Timestamp) -> Result<(Budget, bool), StoreError> {
        self.write(|transaction| budgets::settle(transaction, tenant, delta, now))
    }

    fn set_budget(&self, tenant: &TenantId, total: i64, now: Timestamp) -> Result<Budget, StoreError> {
        self.write(|transaction| budgets::set(transaction, tenant, total, now))
    }
}

impl OutboxStore for Sqlite {
    fn enqueue(&self, jobs: Vec<OutboxJob>, done: OnKept) {
        self.hand_over(Batch::jobs(jobs, done));
    }

    fn take_due(&self, now: Timestamp, until: Timestamp, limit: usize) -> Result<Vec<OutboxJob>, StoreError> {
        let taken = self.write(|transaction| outbox::take_due(transaction, (now, until), limit))?;
        Ok(outbox::opened(taken, &self.sealing))
    }

    fn finish(&self, id: &str) -> Result<(), StoreError> {
        self.write(|transaction| outbox::finish(transaction, id))
    }

    fn try_again(&self, id: &str, attempts: u32, next_at: Timestamp) -> Result<(), StoreError> {
        self.write(|transaction| outbox::try_again(transaction, id, attempts, next_at))
    }
}
