//! What can be done.

use jiff::Timestamp;
use pintle_domain::breaker::BreakerRun;
use pintle_domain::id::{HookId, TenantId};
use pintle_domain::store::{Actor, BudgetChange, OutboxJob, RuleChange, Tenant};

/// One call of a store.
#[derive(Clone, Debug)]
pub(super) enum Step {
    AddTenant(Tenant),
    Change(Vec<RuleChange>, Actor),
    Trip(HookId, TenantId, Actor),
    Reset(HookId, Option<TenantId>, Actor),
    KeepRun(HookId, TenantId, BreakerRun, Timestamp),
    Hook(HookId),
    Changes(HookId, usize),
    Rules,
    Budget(TenantId, Timestamp),
    Reserve(TenantId, u64, Timestamp),
    Settle(TenantId, i64, Timestamp),
    SetBudget(TenantId, BudgetChange),
    Enqueue(Vec<OutboxJob>),
    TakeDue(Timestamp, Timestamp, usize),
    Finish(String),
    TryAgain(String, u32, Timestamp),
}
