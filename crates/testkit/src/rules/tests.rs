//! What the model does, one area a test.

use pintle_domain::breaker::{BreakerOutcome, BreakerPolicy};
use pintle_domain::checkpoint::CheckpointKind;
use pintle_domain::execution::Execution;
use pintle_domain::json::{Object, json};
use pintle_domain::rule::{Decision, Fallback, HandlerType, HookScope, Source};
use pintle_domain::store::{
    Actor, AuditStore as _, BudgetChange, BudgetStore as _, ExecutionQuery, ExecutionStore as _, OutboxJob,
    OutboxStore as _, TenantScope,
};

use super::*;

fn by(name: &str) -> Actor {
    Actor { name: name.into(), at: "2026-11-22T09:00:00.123456789Z".parse().unwrap(), reason: String::new() }
}

fn hook(id: &str, scope: HookScope) -> Rule {
    let global = scope == HookScope::Global;
    Rule {
        id: HookId::from(id),
        tenant_id: if global { TenantId::sentinel() } else { TenantId::default_tenant() },
        agent_ids: Vec::new(),
        event: CheckpointKind::PreToolUse,
        handler_type: HandlerType::Http,
        scope,
        name: id.into(),
        config: Object::from_iter([("key".to_owned(), json!("aes-gcm:secret"))]),
        matcher: String::new(),
        if_expr: String::new(),
        timeout_ms: 5000,
        on_timeout: Fallback::Block,
        priority: 0,
        enabled: true,
        version: 9,
        source: Source::User,
        may_rewrite: false,
        breaker: BreakerPolicy::All,
        on_trip: Fallback::Block,
        tripped_at: None,
        disabled_reason: String::new(),
        metadata: Object::new(),
        created_by: None,
        created_at: "2026-11-22T08:00:00Z".into(),
        updated_at: "then".into(),
    }
}

fn with(hooks: &[(&str, HookScope)]) -> MemoryRules {
    let store = MemoryRules::new();
    let create = |(id, scope): &(&str, HookScope)| RuleChange::Create(hook(id, *scope).into());
    store.change(hooks.iter().map(create).collect(), &by("ann")).unwrap();
    store
}

fn update(hook: Rule, if_version: Option<u32>) -> RuleChange {
    RuleChange::Update { hook: hook.into(), if_version, action: "updated" }
}

#[test]
fn changes_count_and_are_all_or_none() {
    let store = with(&[("a", HookScope::Tenant)]);
    let (id, epoch) = (HookId::from("a"), store.epoch().unwrap());
    let row = store.hook(&id).unwrap().unwrap();
    assert_eq!((row.version, row.updated_at.as_str()), (1, "2026-11-22T09:00:00.123456Z"));
    assert_eq!(row.created_at, "2026-11-22T08:00:00Z");
    let renamed = Rule { name: "b".into(), created_at: "never".into(), ..row.clone() };
    for (changes, why) in [
        (vec![update(renamed.clone(), Some(2))], "version conflict: have 1"),
        (vec![update(renamed.clone(), None), RuleChange::delete(HookId::from("x"))], "hook not found: x"),
        (vec![update(renamed.clone(), None), RuleChange::Create(row.clone().into())], "hook a exists already"),
        (vec![update(Rule { tenant_id: "x".into(), ..row.clone() }, None)], "tenant not found: x"),
    ] {
        assert_eq!(store.change(changes, &by("ann")).unwrap_err().to_string(), why);
    }
    assert_eq!((store.hook(&id).unwrap(), store.epoch().unwrap()), (Some(row), epoch));
    let changed = store.change(vec![update(renamed, Some(1))], &by("bob")).unwrap();
    assert_eq!(changed, RuleChangeResult { epoch: epoch + 1, versions: vec![2] });
    assert_eq!(store.hook(&id).unwrap().unwrap().created_at, "2026-11-22T08:00:00Z");
    assert_eq!(store.change(vec![RuleChange::delete(id.clone())], &by("bob")).unwrap().versions, [0]);
    let log: Vec<_> =
        store.changes(&TenantScope::All, &id, 9).unwrap().into_iter().map(|line| (line.action, line.version)).collect();
    assert_eq!(log, [("deleted".into(), 0), ("updated".into(), 2), ("created".into(), 1)]);
    let created = store.changes(&TenantScope::All, &id, 9).unwrap().pop().unwrap().diff.to_string();
    assert!(created.contains("********") && !created.contains("aes-gcm"), "{created}");
    assert_eq!(store.audit_entries(&TenantId::default_tenant(), 1, 9).unwrap().len(), 3);
}

#[test]
fn breakers_open_once_and_close() {
    let store = with(&[("own", HookScope::Tenant), ("all", HookScope::Global)]);
    let (own, all) = (HookId::from("own"), HookId::from("all"));
    let (here, other) = (TenantId::default_tenant(), TenantId::from("other"));
    let mut run = BreakerRun::default();
    run.take(BreakerPolicy::All, BreakerOutcome::Block, by("ann").at);
    for (id, tenant) in [(&own, &here), (&all, &here), (&all, &other)] {
        store.keep_run(id, tenant, &run, by("ann").at).unwrap();
        let epoch = store.trip(id, tenant, &by("breaker")).unwrap();
        assert_eq!(store.trip(id, tenant, &by("breaker")).unwrap(), epoch, "it is open already");
    }
    let rules = store.rules().unwrap();
    assert_eq!((rules.runs.len(), rules.trips.len()), (0, 2));
    let row = store.hook(&own).unwrap().unwrap();
    assert_eq!((row.enabled, row.version, row.disabled_reason.as_str()), (false, 2, "breaker"));
    assert_eq!(store.hook(&all).unwrap().unwrap().version, 1);
    let epoch = store.reset(&all, Some(&here), &by("ann")).unwrap();
    assert_eq!(store.reset(&all, Some(&here), &by("ann")).unwrap(), epoch, "nothing is left");
    store.reset(&own, Some(&other), &by("ann")).unwrap();
    let row = store.hook(&own).unwrap().unwrap();
    assert_eq!((row.enabled, row.tripped_at, row.version), (true, None, 3));
    assert_eq!(store.rules().unwrap().trips.len(), 1);
    let off = Rule { enabled: false, ..store.hook(&own).unwrap().unwrap() };
    store.change(vec![update(off, None)], &by("ann")).unwrap();
    store.trip(&own, &here, &by("breaker")).unwrap();
    assert_eq!(store.hook(&own).unwrap().unwrap().tripped_at, None, "what is switched off has no breaker");
    assert!(store.trip(&HookId::from("x"), &here, &by("breaker")).is_err());
}

#[test]
fn budgets_roll_over_and_never_overdraw() {
    let store = MemoryRules::new();
    let tenant = TenantId::default_tenant();
    let (november, december) = (by("").at, "2026-12-01T00:00:00Z".parse().unwrap());
    assert!(store.set_budget(&TenantId::from("x"), &BudgetChange::to(1, Actor { at: november, ..by("") })).is_err());
    store.set_budget(&tenant, &BudgetChange::to(100, Actor { at: november, ..by("") })).unwrap();
    assert!(store.reserve(&tenant, 60, november).unwrap());
    assert!(!store.reserve(&tenant, 41, november).unwrap());
    assert!(!store.reserve(&tenant, u64::MAX, november).unwrap());
    assert!(store.reserve(&tenant, 40, november).unwrap());
    assert_eq!(store.settle(&tenant, -20, november).unwrap().0.remaining, 20);
    let (budget, low) = store.settle(&tenant, 1, november).unwrap();
    assert_eq!((budget.used, low), (81, true));
    assert!(!store.settle(&tenant, 1, november).unwrap().1, "it is said once a month");
    let budget = store.budget(&tenant, december).unwrap();
    assert_eq!((budget.month_start.as_str(), budget.budget_total, budget.used), ("2026-12-01", 100, 0));
    assert_eq!(store.settle(&tenant, -5, december).unwrap().0.used, 0);
    assert_eq!(store.budget(&tenant, november).unwrap().month_start, "2026-12-01", "months do not go back");
}

fn execution(id: &str, second: i64) -> Execution {
    Execution {
        id: id.into(),
        hook_id: Some(HookId::from("a")),
        hook_name: "a".into(),
        hook_version: 1,
        handler_type: HandlerType::Http,
        tenant_id: TenantId::default_tenant(),
        agent_id: None,
        session_id: None,
        turn_id: None,
        event_id: id.into(),
        trace_id: None,
        event: CheckpointKind::Stop,
        tool_name: None,
        tool_call_id: None,
        input_hash: None,
        decision: Decision::Error,
        reason: None,
        duration_ms: 1,
        retry: 0,
        dedup_key: Some(format!("a:{id}")),
        error: None,
        error_detail: Some("whole".into()),
        output: None,
        metadata: Object::new(),
        created_at: Timestamp::from_second(second).unwrap(),
    }
}

#[test]
fn history_is_kept_once_in_order_and_forgotten() {
    let store = with(&[("a", HookScope::Tenant)]);
    let again = Execution { id: "other".into(), ..execution("b", 2) };
    let rows = vec![execution("b", 2), execution("c", 2), execution("a", 1), execution("d", 3), again];
    store.keep_executions(rows, Box::new(|kept| kept.unwrap()));
    let ids = |query: ExecutionQuery| -> Vec<String> {
        store.executions(&query).unwrap().into_iter().map(|row| row.id).collect()
    };
    let all = ExecutionQuery { limit: 9, ..ExecutionQuery::of(TenantScope::All) };
    assert_eq!(ids(all.clone()), ["d", "c", "b", "a"]);
    let after = Some(("1970-01-01T00:00:02Z".to_owned(), "c".to_owned()));
    assert_eq!(ids(ExecutionQuery { after, ..all.clone() }), ["b", "a"]);
    let second = |n| Some(Timestamp::from_second(n).unwrap());
    assert_eq!(ids(ExecutionQuery { since: second(2), until: second(3), limit: 1, ..all.clone() }), ["c"]);
    assert!(store.executions(&all).unwrap().iter().all(|row| row.error_detail.is_none()));
    assert_eq!(store.execution(&TenantScope::All, "b").unwrap().unwrap().error_detail, Some("whole".into()));
    let at = |n| Timestamp::from_second(n).unwrap();
    assert_eq!(store.forget(at(2), at(3), 1).unwrap(), 2, "one row and one detail");
    assert_eq!(store.forget(at(2), at(3), 9).unwrap(), 1);
    assert_eq!(ids(all.clone()), ["d", "c", "b"]);
    store.change(vec![RuleChange::delete(HookId::from("a"))], &by("ann")).unwrap();
    assert!(store.executions(&all).unwrap().iter().all(|row| row.hook_id.is_none()));
}

#[test]
fn jobs_are_taken_for_a_while() {
    let store = MemoryRules::new();
    let at = |n| Timestamp::from_second(n).unwrap();
    let job = |id: &str, next_at| OutboxJob {
        id: id.into(),
        tenant_id: TenantId::default_tenant(),
        hook_id: HookId::from("a"),
        event_id: "e".into(),
        payload: b"{}".to_vec(),
        attempts: 0,
        next_at,
    };
    store.enqueue(vec![job("b", at(2)), job("a", at(1)), job("c", at(9))], Box::new(|kept| kept.unwrap()));
    let ids = |now, until| -> Vec<String> {
        store.take_due(at(now), at(until), 9).unwrap().into_iter().map(|job| job.id).collect()
    };
    assert_eq!(ids(5, 8), ["a", "b"]);
    assert_eq!(ids(5, 8), [""; 0]);
    store.finish("a").unwrap();
    store.try_again("b", 1, at(6)).unwrap();
    assert_eq!(ids(6, 8), ["b"]);
    assert_eq!(ids(9, 10), ["b", "c"]);
}

#[test]
fn a_store_that_is_down_says_so_everywhere() {
    let store = with(&[("a", HookScope::Tenant)]);
    let before = store.calls();
    store.break_down("gone");
    assert_eq!(store.rules().unwrap_err(), StoreError::Unavailable("gone".into()));
    assert!(store.change(Vec::new(), &by("ann")).is_err());
    store.keep_executions(Vec::new(), Box::new(|kept| assert!(kept.is_err())));
    assert_eq!(store.calls(), before + 3);
    store.mend();
    assert_eq!(store.rules().unwrap().hooks.len(), 1);
}
