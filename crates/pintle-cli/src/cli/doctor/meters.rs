//! What runs out while everything works: tokens of judges, and room for observers.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};
use pintle_domain::execution::QUEUE_FULL;
use pintle_domain::id::TenantId;
use pintle_domain::rule::{Decision, HandlerType, HookScope};
use pintle_domain::store::{Budget, ExecutionQuery, ExecutionStore, StoreError, StoredRules, TenantScope};
use pintle_store::Store;

use super::{Check, State};
use crate::text::jobs_waiting;
use pintle_host::host::Host;

/// How far back it is looked for executions that were dropped: what is older was seen, or does not matter any more.
const DROPPED_WITHIN: SignedDuration = SignedDuration::from_hours(24);

/// Most faults that are read for it: whoever has more has other troubles.
const MAX_FAULTS: usize = 1000;

/// What is left of budgets, and what was dropped.
pub(super) fn meters(host: &Host, store: &dyn Store) -> Vec<Check> {
    let now = Timestamp::now();
    let rules = host.host_rules.rule_cache().rules();
    let budgets = judged(&rules).into_iter().map(|tenant| {
        let slug = rules.tenants.iter().find(|known| known.id == tenant).map(|known| known.slug.as_str());
        let apart = tenant != TenantId::default_tenant();
        let name = if apart { slug.unwrap_or(tenant.as_str()) } else { "" };
        match store.budget(&tenant, now) {
            Ok(budget) => left(name, &budget),
            Err(error) => Check::new("budget", name, State::Failed, error.to_string()),
        }
    });
    budgets.chain(dropped(store, now).transpose().map(told)).chain(waiting(store.jobs_left())).collect()
}

/// How many jobs of observers wait to be sent, if any do.
fn waiting(jobs: Result<u64, StoreError>) -> Option<Check> {
    match jobs {
        Ok(0) => None,
        Ok(jobs) => Some(Check::new("outbox", "", State::Note, jobs_waiting(jobs))),
        Err(error) => Some(Check::new("outbox", "", State::Failed, error.to_string())),
    }
}

/// The tenants in whose turns models judge. Whoever has no rule of an own is not listed for the global ones.
fn judged(rules: &StoredRules) -> BTreeSet<TenantId> {
    let judges = rules.hooks.iter().filter(|hook| hook.handler_type == HandlerType::Prompt && hook.is_candidate());
    let tenant = judges.map(|hook| match hook.scope {
        HookScope::Global => TenantId::default_tenant(),
        HookScope::Tenant | HookScope::Agent => hook.tenant_id.clone(),
    });
    tenant.collect()
}

/// Where a budget stands. A judge without tokens is not asked, and refuses.
fn left(name: &str, budget: &Budget) -> Check {
    let Budget { month_start, budget_total, remaining, .. } = budget;
    let month = month_start.get(..7).unwrap_or(month_start);
    let rest = if *remaining > 0 { remaining.to_string() } else { "none".to_owned() };
    let left = format!("{rest} of {budget_total} tokens of judges are left in {month}");
    let whose = if name.is_empty() { String::new() } else { format!(" --tenant {name}") };
    let raise = format!("`pintle budget set{whose} TOTAL` raises it");
    if *remaining <= 0 {
        return Check::new("budget", name, State::Failed, format!("{left}: everything they judge is refused; {raise}"));
    }
    // The same fifth at which it is logged.
    match remaining.saturating_mul(5) < *budget_total {
        true => Check::new("budget", name, State::Note, format!("{left}; {raise}")),
        false => Check::new("budget", name, State::Ok, left),
    }
}

/// How many executions found no room, if there are any.
fn dropped(store: &dyn ExecutionStore, now: Timestamp) -> Result<Option<usize>, StoreError> {
    let since = now.checked_sub(DROPPED_WITHIN).ok();
    let query = ExecutionQuery {
        decision: Some(Decision::Error),
        since,
        limit: MAX_FAULTS,
        ..ExecutionQuery::of(TenantScope::All)
    };
    let faults = store.executions(&query)?;
    let many = faults.iter().filter(|row| row.error.as_deref() == Some(QUEUE_FULL)).count();
    Ok((many > 0).then_some(many))
}

fn told(dropped: Result<usize, StoreError>) -> Check {
    match dropped {
        Ok(many) => {
            let what = if many == 1 { "execution was" } else { "executions were" };
            let message = format!(
                "{many} {what} dropped within a day, since the queue was full; raise agent_hooks.workers or \
                 agent_hooks.queue"
            );
            Check::new("observers", "", State::Note, message)
        }
        Err(error) => Check::new("observers", "", State::Failed, error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use pintle_domain::execution::Execution;
    use pintle_domain::id::HookId;
    use pintle_domain::record::{HookOutcome, NotRun};
    use pintle_store::Durability;
    use pintle_testkit::conformance::executions::{by, failed, keep_executions, ran};

    use super::*;

    #[test]
    fn a_budget_is_told_of_before_it_is_spent() {
        let check = |total: i64, remaining: i64, state: State, part: &str| {
            let budget =
                Budget { month_start: "2026-11-01".into(), budget_total: total, used: total - remaining, remaining };
            let found = left("acme", &budget);
            assert_eq!((found.what, found.name.as_str(), found.state), ("budget", "acme", state), "{}", found.message);
            assert!(found.message.contains(part), "{}", found.message);
        };
        check(1000, 1000, State::Ok, "1000 of 1000 tokens of judges are left in 2026-11");
        check(1000, 200, State::Ok, "200 of 1000");
        check(1000, 199, State::Note, "; `pintle budget set --tenant acme TOTAL` raises it");
        check(1000, 0, State::Failed, "everything they judge is refused");
        check(1000, -5, State::Failed, "none of 1000");
        let budget = Budget { month_start: "2026-11-01".into(), budget_total: 9, used: 8, remaining: 1 };
        assert!(left("", &budget).message.ends_with("; `pintle budget set TOTAL` raises it"));
        check(0, 0, State::Failed, "none of 0");
    }

    #[test]
    fn only_what_found_no_room_within_a_day_counts() {
        let now: Timestamp = "2026-11-22T09:00:00Z".parse().unwrap();
        let ago = |hours: i64| now - SignedDuration::from_hours(hours);
        let row = |outcome: HookOutcome, at: Timestamp| {
            let hook = HookId::fresh();
            let row = Execution::of(&ran(&hook, failed()), &by(&hook, outcome)).unwrap();
            Execution { created_at: at, hook_id: None, ..row }
        };
        let no_room = || HookOutcome::NotRun(NotRun::Dropped);
        let store = pintle_store::open("memory:", Path::new("nowhere"), Durability::Commit).unwrap();
        assert_eq!(dropped(&*store, now), Ok(None));
        keep_executions(&*store, vec![row(failed(), ago(1)), row(no_room(), ago(25))]).unwrap();
        assert_eq!(dropped(&*store, now), Ok(None));
        keep_executions(&*store, vec![row(no_room(), ago(23)), row(no_room(), ago(1))]).unwrap();
        assert_eq!(dropped(&*store, now), Ok(Some(2)));
    }

    #[test]
    fn what_was_dropped_is_told_as_one_line() {
        let said = |many| told(Ok(many)).message;
        assert!(said(1).starts_with("1 execution was dropped within a day"), "{}", said(1));
        assert!(said(7).starts_with("7 executions were dropped"), "{}", said(7));
    }
}
