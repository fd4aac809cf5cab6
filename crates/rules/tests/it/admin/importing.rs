//! Records that are taken over hooks that are there.

use pintle_domain::id::HookId;
use pintle_domain::json::{Value, json};
use pintle_domain::rule::Rule;
use pintle_domain::store::{Actor, RuleChange, RuleStore as _};
use pintle_rules::admin::CallerRole;
use pintle_rules::record::MAX_HOOKS;

use super::stage::{ACME, Stage, of_acme, of_default, script};

const DEFAULT: &str = pintle_domain::id::DEFAULT_TENANT;

fn over(record: &Value) -> Value {
    json!({ "hooks": [record], "overwrite": true })
}

#[tokio::test]
async fn why_a_hook_is_off_stays_until_it_is_on_or_somebody_says_another_reason() {
    let stage = Stage::new();
    let admin = of_default(CallerRole::Admin);
    let id = stage.create(&admin, script("tenant", "guard", "block")).await;
    let why = async || stage.get(&admin, &id).await["disabled_reason"].clone();
    let off = |reason: &str| json!({ "hookId": id, "enabled": false, "reason": reason });
    stage.ok(&admin, "hooks.toggle", off("too noisy")).await;
    stage.ok(&admin, "hooks.toggle", off("")).await;
    assert_eq!(why().await, "too noisy");
    stage.ok(&admin, "hooks.toggle", off("much too noisy")).await;
    assert_eq!(why().await, "much too noisy", "said of one that is off already");
    stage.ok(&admin, "hooks.update", json!({"hookId": id, "updates": {"enabled": false, "priority": 3}})).await;
    assert_eq!(why().await, "much too noisy");
    let mut record = script("tenant", "guard", "ask");
    record["enabled"] = json!(false);
    stage.ok(&admin, "hooks.import", over(&record)).await;
    assert_eq!((why().await, &stage.get(&admin, &id).await["priority"]), (json!("much too noisy"), &json!(0)));
    record["enabled"] = json!(true);
    stage.ok(&admin, "hooks.import", over(&record)).await;
    assert_eq!(why().await, "");
    // A breaker that opened is no reason of a person.
    stage.trip(&id, DEFAULT);
    record["enabled"] = json!(false);
    record["priority"] = json!(5);
    stage.ok(&admin, "hooks.import", over(&record)).await;
    assert_eq!(why().await, "");
}

#[tokio::test]
async fn the_change_log_says_why_a_hook_went_and_why_a_budget_is_another_one() {
    let stage = Stage::new();
    let (admin, owner) = (of_default(CallerRole::Admin), of_default(CallerRole::Owner));
    let id = stage.create(&admin, script("tenant", "guard", "block")).await;
    stage.ok(&admin, "hooks.delete", json!({ "hookId": id, "reason": " nobody needs it " })).await;
    let set = |total: u64, reason: &str| json!({"tenantId": DEFAULT, "budgetTotal": total, "reason": reason});
    stage.ok(&owner, "hooks.budget.set", set(5, "a quiet month")).await;
    let log = stage.ok(&admin, "hooks.changes", json!({})).await;
    let lines = log["changes"].as_array().unwrap();
    let of = |line: usize, members: &[&str]| members.iter().map(|it| lines[line][*it].clone()).collect::<Vec<_>>();
    assert_eq!(
        of(0, &["hook_id", "action", "version", "actor"]),
        [Value::Null, json!("updated"), json!(0), json!(owner.name)]
    );
    assert_eq!(
        lines[0]["diff"],
        json!([
            {"op": "replace", "path": "/budget_total", "value": 5},
            {"op": "replace", "path": "/reason", "value": "a quiet month"},
        ])
    );
    assert_eq!(of(1, &["hook_id", "hook_name", "action"]), [json!(id), json!("guard"), json!("deleted")]);
    assert_eq!(
        lines[1]["diff"],
        json!([
            {"op": "add", "path": "/disabled_reason", "value": "nobody needs it"},
            {"op": "replace", "path": "", "value": null},
        ])
    );
    let long = "x".repeat(256);
    let no = stage.no(&owner, "hooks.budget.set", set(6, &long)).await;
    assert_eq!(no, "INVALID_REQUEST reason exceeds 255 characters (got 256)");
}

#[tokio::test]
async fn a_tenant_that_has_all_its_hooks_takes_records_over_them() {
    let stage = Stage::new();
    let admin = of_default(CallerRole::Admin);
    let id = stage.create(&admin, script("tenant", "guard", "block")).await;
    let row = stage.row(&id);
    let others = (1..MAX_HOOKS).map(|number| {
        let name = format!("other {number}");
        RuleChange::Create(Box::new(Rule { id: HookId::fresh(), name, enabled: false, ..row.clone() }))
    });
    let by =
        Actor { name: "another process".into(), at: "2026-11-22T09:00:01Z".parse().unwrap(), reason: String::new() };
    stage.store.change(others.collect(), &by).unwrap();
    stage.rule_cache.refresh().unwrap();
    let done = stage.ok(&admin, "hooks.import", over(&script("tenant", "guard", "ask"))).await;
    assert_eq!(done["hooks"][0]["outcome"], "updated");
    let same = json!({ "hooks": [script("tenant", "guard", "ask")] });
    assert_eq!(stage.ok(&admin, "hooks.import", same).await["hooks"][0]["outcome"], "same");
    let refused = stage.no(&admin, "hooks.import", over(&script("tenant", "one more", "ask"))).await;
    assert!(refused.contains("the tenant has 1000 hooks, and may not have more"), "{refused}");
    // Who goes over it within one file is told so at the record.
    let two = json!({ "hooks": [script("tenant", "guard", "allow"), script("tenant", "one more", "ask")], "overwrite": true });
    let refused = stage.no(&admin, "hooks.import", two).await;
    assert!(refused.contains("record 2 (\"one more\"): ") && refused.contains("has 1000 hooks"), "{refused}");
}

#[tokio::test]
async fn what_was_written_is_in_force_though_its_breaker_could_not_be_closed() {
    let stage = Stage::new();
    let admin = of_default(CallerRole::Admin);
    stage.create(&admin, script("tenant", "guard", "allow")).await;
    stage.store.break_resets();
    let done = stage.ok(&admin, "hooks.import", over(&script("tenant", "guard", "block"))).await;
    assert_eq!(done["hooks"][0]["outcome"], "updated");
    assert_eq!(stage.gate(DEFAULT, "exec").await, "block: guard says so");
}

#[tokio::test]
async fn an_import_closes_the_breakers_of_what_it_writes() {
    let stage = Stage::new();
    let owner = of_default(CallerRole::Owner);
    let id = stage.create(&owner, script("global", "guard", "allow")).await;
    stage.trip(&id, ACME);
    assert!(stage.gate(ACME, "exec").await.contains("circuit breaker"));
    stage.ok(&owner, "hooks.import", over(&script("global", "guard", "ask"))).await;
    assert_eq!(stage.gate(ACME, "exec").await, "ask: guard says so");
}

#[tokio::test]
async fn an_import_that_somebody_was_faster_than_is_judged_anew() {
    let stage = Stage::new();
    let admin = of_acme(CallerRole::Admin);
    let id = stage.create(&admin, script("tenant", "guard", "allow")).await;
    let (store, row) = (stage.store.clone(), stage.row(&id));
    *stage.scripts.meanwhile.lock().unwrap() = Some(Box::new(move || {
        let by = Actor {
            name: "another process".into(),
            at: "2026-11-22T09:00:01Z".parse().unwrap(),
            reason: String::new(),
        };
        let hook = Box::new(Rule { priority: 7, ..row });
        store.change(vec![RuleChange::Update { hook, if_version: None, action: "updated" }], &by).unwrap();
    }));
    let done = stage.ok(&admin, "hooks.import", over(&script("tenant", "guard", "block"))).await;
    let differs = done["hooks"][0]["differs"].to_string();
    assert!(differs.contains("priority is 7, not 0"), "{differs}");
    assert_eq!(stage.gate(ACME, "exec").await, "block: guard says so");
}

#[tokio::test]
async fn a_record_that_somebody_else_adds_meanwhile_is_that_hook() {
    let stage = Stage::new();
    let admin = of_acme(CallerRole::Admin);
    let id = stage.create(&admin, script("tenant", "guard", "block")).await;
    let (store, row) = (stage.store.clone(), stage.row(&id));
    stage.write(RuleChange::delete(HookId::from(id.as_str())));
    *stage.scripts.meanwhile.lock().unwrap() = Some(Box::new(move || {
        let by = Actor {
            name: "another process".into(),
            at: "2026-11-22T09:00:01Z".parse().unwrap(),
            reason: String::new(),
        };
        store.change(vec![RuleChange::Create(Box::new(row))], &by).unwrap();
    }));
    let records = json!({ "hooks": [script("tenant", "guard", "block")] });
    assert_eq!(stage.ok(&admin, "hooks.import", records).await["hooks"][0]["outcome"], "same");
    assert_eq!(stage.store.rules().unwrap().hooks.len(), 1);
}
