//! Rules, tenants, budgets and the outbox of whichever store it is.

use domain::breaker::BreakerRun;
use domain::id::{HookId, TenantId};
use domain::rule::Rule;
use domain::store::{
    Actor, Budget, BudgetStore, LoggedChange, OnKept, OnRulesChanged, OutboxJob, OutboxStore, RuleChange,
    RuleChangeResult, RuleStore, RuleSubscription, StoreError, StoredRules, Tenant,
};
use jiff::Timestamp;

use crate::Store;

impl Store {
    fn stored_hooks(&self) -> &dyn RuleStore {
        match self {
            Self::Sqlite(store) => store,
            Self::Postgres(store) => store,
            Self::Memory(store) => store,
        }
    }

    fn accounts(&self) -> &dyn BudgetStore {
        match self {
            Self::Sqlite(store) => store,
            Self::Postgres(store) => store,
            Self::Memory(store) => store,
        }
    }

    fn outbox(&self) -> &dyn OutboxStore {
        match self {
            Self::Sqlite(store) => store,
            Self::Postgres(store) => store,
            Self::Memory(store) => store,
        }
    }
}

impl RuleStore for Store {
    fn rules(&self) -> Result<StoredRules, StoreError> {
        self.stored_hooks().rules()
    }

    fn epoch(&self) -> Result<u64, StoreError> {
        self.stored_hooks().epoch()
    }

    fn listen(&self, heard: OnRulesChanged) -> Box<dyn RuleSubscription> {
        self.stored_hooks().listen(heard)
    }

    fn hook(&self, id: &HookId) -> Result<Option<Rule>, StoreError> {
        self.stored_hooks().hook(id)
    }

    fn change(&self, changes: Vec<RuleChange>, by: &Actor) -> Result<RuleChangeResult, StoreError> {
        self.stored_hooks().change(changes, by)
    }

    fn changes(&self, id: &HookId, limit: usize) -> Result<Vec<LoggedChange>, StoreError> {
        self.stored_hooks().changes(id, limit)
    }

    fn trip(&self, id: &HookId, tenant: &TenantId, by: &Actor) -> Result<u64, StoreError> {
        self.stored_hooks().trip(id, tenant, by)
    }

    fn reset(&self, id: &HookId, tenant: Option<&TenantId>, by: &Actor) -> Result<u64, StoreError> {
        self.stored_hooks().reset(id, tenant, by)
    }

    fn keep_run(&self, id: &HookId, tenant: &TenantId, run: &BreakerRun, now: Timestamp) -> Result<(), StoreError> {
        self.stored_hooks().keep_run(id, tenant, run, now)
    }

    fn tenants(&self) -> Result<Vec<Tenant>, StoreError> {
        self.stored_hooks().tenants()
    }

    fn add_tenant(&self, tenant: &Tenant) -> Result<(), StoreError> {
        self.stored_hooks().add_tenant(tenant)
    }
}

impl BudgetStore for Store {
    fn budget(&self, tenant: &TenantId, now: Timestamp) -> Result<Budget, StoreError> {
        self.accounts().budget(tenant, now)
    }

    fn reserve(&self, tenant: &TenantId, tokens: u64, now: Timestamp) -> Result<bool, StoreError> {
        self.accounts().reserve(tenant, tokens, now)
    }

    fn settle(&self, tenant: &TenantId, delta: i64, now: Timestamp) -> Result<(Budget, bool), StoreError> {
        self.accounts().settle(tenant, delta, now)
    }

    fn set_budget(&self, tenant: &TenantId, total: i64, now: Timestamp) -> Result<Budget, StoreError> {
        self.accounts().set_budget(tenant, total, now)
    }
}

impl OutboxStore for Store {
    fn enqueue(&self, jobs: Vec<OutboxJob>, done: OnKept) {
        self.outbox().enqueue(jobs, done);
    }

    fn take_due(&self, now: Timestamp, until: Timestamp, limit: usize) -> Result<Vec<OutboxJob>, StoreError> {
        self.outbox().take_due(now, until, limit)
    }

    fn finish(&self, id: &str) -> Result<(), StoreError> {
        self.outbox().finish(id)
    }

    fn try_again(&self, id: &str, attempts: u32, next_at: Timestamp) -> Result<(), StoreError> {
        self.outbox().try_again(id, attempts, next_at)
    }
}
