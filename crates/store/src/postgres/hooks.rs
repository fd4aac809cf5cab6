//! Rules, tenants, budgets and the outbox in a database.

use domain::breaker::BreakerRun;
use domain::id::{HookId, TenantId};
use domain::rule::Rule;
use domain::store::{
    Actor, Budget, BudgetStore, LoggedChange, OnKept, OnRulesChanged, OutboxJob, OutboxStore, RuleChange,
    RuleChangeResult, RuleStore, RuleSubscription, StoreError, StoredRules, Tenant,
};
use jiff::Timestamp;

use super::Postgres;
use crate::rows::batch::Batch;
use crate::rows::{budgets, epoch, hooks, outbox, tenants};

impl RuleStore for Postgres {
    fn rules(&self) -> Result<StoredRules, StoreError> {
        // Not `read`: the parts have to be of one moment.
        self.base.write(|db| {
            db.script("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")?;
            hooks::rules(db)
        })
    }

    fn epoch(&self) -> Result<u64, StoreError> {
        self.base.read(|db| epoch::now(db))
    }

    fn listen(&self, heard: OnRulesChanged) -> Box<dyn RuleSubscription> {
        self.base.listen(heard)
    }

    fn hook(&self, id: &HookId) -> Result<Option<Rule>, StoreError> {
        self.base.read(|db| hooks::by_id(db, id))
    }

    fn change(&self, changes: Vec<RuleChange>, by: &Actor) -> Result<RuleChangeResult, StoreError> {
        self.base.write(|db| hooks::change(db, &changes, by))
    }

    fn changes(&self, id: &HookId, limit: usize) -> Result<Vec<LoggedChange>, StoreError> {
        self.base.read(|db| hooks::changes(db, id, limit))
    }

    fn trip(&self, id: &HookId, tenant: &TenantId, by: &Actor) -> Result<u64, StoreError> {
        self.base.write(|db| hooks::trip(db, id, tenant, by))
    }

    fn reset(&self, id: &HookId, tenant: Option<&TenantId>, by: &Actor) -> Result<u64, StoreError> {
        self.base.write(|db| hooks::reset(db, id, tenant, by))
    }

    fn keep_run(&self, id: &HookId, tenant: &TenantId, run: &BreakerRun, now: Timestamp) -> Result<(), StoreError> {
        self.base.write(|db| hooks::keep_run(db, id, tenant, run, now))
    }

    fn tenants(&self) -> Result<Vec<Tenant>, StoreError> {
        self.base.read(|db| tenants::all(db))
    }

    fn add_tenant(&self, tenant: &Tenant) -> Result<(), StoreError> {
        self.base.write(|db| tenants::add(db, tenant))
    }
}

impl BudgetStore for Postgres {
    fn budget(&self, tenant: &TenantId, now: Timestamp) -> Result<Budget, StoreError> {
        self.base.write(|db| budgets::budget(db, tenant, now))
    }

    fn reserve(&self, tenant: &TenantId, tokens: u64, now: Timestamp) -> Result<bool, StoreError> {
        self.base.write(|db| budgets::reserve(db, tenant, tokens, now))
    }

    fn settle(&self, tenant: &TenantId, delta: i64, now: Timestamp) -> Result<(Budget, bool), StoreError> {
        self.base.write(|db| budgets::settle(db, tenant, delta, now))
    }

    fn set_budget(&self, tenant: &TenantId, total: i64, now: Timestamp) -> Result<Budget, StoreError> {
        self.base.write(|db| budgets::set(db, tenant, total, now))
    }
}

impl OutboxStore for Postgres {
    fn enqueue(&self, jobs: Vec<OutboxJob>, done: OnKept) {
        self.hand_over(Batch::jobs(jobs, done));
    }

    fn take_due(&self, now: Timestamp, until: Timestamp, limit: usize) -> Result<Vec<OutboxJob>, StoreError> {
        let taken = self.base.write(|db| outbox::take_due(db, (now, until), limit))?;
        Ok(outbox::opened(taken, &self.sealing))
    }

    fn finish(&self, id: &str) -> Result<(), StoreError> {
        self.base.write(|db| outbox::finish(db, id))
    }

    fn try_again(&self, id: &str, attempts: u32, next_at: Timestamp) -> Result<(), StoreError> {
        self.base.write(|db| outbox::try_again(db, id, attempts, next_at))
    }
}
