//! Tenants do not see each other: what is another's is like what is not there.

use pintle_domain::json::{Value, json};
use pintle_rules::admin::{Caller, CallerRole};

use super::history::row;
use super::stage::{ACME, Stage, UNKNOWN, of_acme, of_default, script};

/// Every method that takes an id, with one.
fn calls(id: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("hooks.get", json!({"hookId": id})),
        ("hooks.update", json!({"hookId": id, "updates": {"name": "mine"}})),
        ("hooks.update", json!({"hookId": id, "updates": {"name": "mine"}, "ifVersion": 1})),
        ("hooks.update", json!({"hookId": id, "updates": {}})),
        ("hooks.delete", json!({"hookId": id})),
        ("hooks.toggle", json!({"hookId": id, "enabled": false})),
        ("hooks.toggle", json!({"hookId": id, "enabled": true})),
        ("hooks.reset", json!({"hookId": id})),
        ("hooks.test", json!({"hookId": id})),
        ("hooks.history", json!({"hookId": id})),
    ]
}

#[tokio::test]
async fn a_foreign_id_is_an_unknown_one() {
    let stage = Stage::new();
    let ours = stage.create(&of_default(CallerRole::Admin), script("tenant", "ours", "allow")).await;
    let theirs = stage.create(&of_acme(CallerRole::Admin), script("tenant", "theirs", "allow")).await;
    let before = stage.store_rows();
    let sides = [(of_default(CallerRole::Admin), &theirs), (of_acme(CallerRole::Admin), &ours)];
    for (by, foreign) in &sides {
        for ((method, with_foreign), (_, with_unknown)) in calls(foreign).into_iter().zip(calls(UNKNOWN)) {
            let (foreign_said, unknown_said) =
                (stage.no(by, method, with_foreign).await, stage.no(by, method, with_unknown).await);
            assert_eq!(foreign_said, format!("NOT_FOUND hook not found: {foreign}"), "{method}");
            assert_eq!(unknown_said, format!("NOT_FOUND hook not found: {UNKNOWN}"), "{method}");
            let changes = stage.rule_admin.changes(by, foreign, 10).await.unwrap_err();
            assert_eq!(changes.message, format!("hook not found: {foreign}"));
            let found = stage.rule_admin.find(by, foreign).await.unwrap_err();
            assert_eq!(found.message, format!("hook not found: {foreign}"));
        }
    }
    let found = stage.rule_admin.find(&of_default(CallerRole::Admin), "theirs").await.unwrap_err();
    assert_eq!(found.message, "hook not found: theirs");
    assert_eq!(stage.store_rows(), before, "nothing of this changed anything");
}

#[tokio::test]
async fn lists_chains_and_history_have_the_own_and_the_global() {
    let stage = Stage::new();
    let owner = of_default(CallerRole::Owner);
    let ours = stage.create(&of_default(CallerRole::Admin), script("tenant", "ours", "allow")).await;
    let theirs = stage.create(&of_acme(CallerRole::Admin), script("tenant", "theirs", "allow")).await;
    stage.create(&owner, script("global", "everybodys", "allow")).await;
    let names = async |by: &Caller| -> Vec<String> {
        let hooks = stage.ok(by, "hooks.list", json!({})).await;
        hooks["hooks"].as_array().unwrap().iter().map(|hook| hook["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&of_default(CallerRole::Viewer)).await, ["ours", "everybodys"]);
    assert_eq!(names(&of_acme(CallerRole::Viewer)).await, ["theirs", "everybodys"]);
    assert_eq!(names(&owner).await, ["ours", "theirs", "everybodys"]);
    let chain = stage
        .ok(&of_acme(CallerRole::Viewer), "hooks.chain", json!({"event": "pre_tool_use", "toolName": "exec"}))
        .await;
    let chain: Vec<&Value> = chain["chain"].as_array().unwrap().iter().map(|hook| &hook["name"]).collect();
    assert_eq!(chain, ["theirs", "everybodys"]);

    stage.keep(vec![row(1, &ours, None, Some("admin:1")), row(2, &theirs, Some(ACME), Some("admin:2"))]);
    let seen = stage.ok(&of_default(CallerRole::Admin), "hooks.history", json!({})).await;
    assert_eq!(seen["executions"].as_array().unwrap().len(), 1);
    let id = seen["executions"][0]["id"].as_str().unwrap();
    let no = format!("NOT_FOUND execution not found: {id}");
    assert_eq!(stage.no(&of_acme(CallerRole::Admin), "hooks.execution.get", json!({"id": id})).await, no);
    assert_eq!(stage.ok(&owner, "hooks.history", json!({})).await["executions"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn what_is_everybodys_is_the_owners_to_change_and_to_read() {
    let stage = Stage::new();
    let (owner, admin) = (of_acme(CallerRole::Owner), of_acme(CallerRole::Admin));
    let id = stage.create(&owner, script("global", "everybodys", "allow")).await;
    let seen = stage.get(&admin, &id).await;
    assert_eq!((&seen["config"], &seen["config_hidden"]), (&json!({}), &json!(true)));
    assert_eq!(seen["matcher"], "^exec$");
    assert!(stage.get(&owner, &id).await["config"]["source"].is_string());
    let no = "UNAUTHORIZED this action requires master tenant scope";
    for (method, params) in [
        ("hooks.update", json!({"hookId": id, "updates": {"name": "mine"}})),
        ("hooks.delete", json!({"hookId": id})),
        ("hooks.toggle", json!({"hookId": id, "enabled": false})),
        ("hooks.test", json!({"hookId": id})),
        ("hooks.restore", json!({"hookId": id, "version": 1})),
        ("hooks.reset", json!({"hookId": id, "tenantId": ACME})),
    ] {
        assert_eq!(stage.no(&admin, method, params).await, no, "{method}");
    }
    stage
        .ok(
            &owner,
            "hooks.update",
            json!({"hookId": id, "updates": {"config": {"source": "return {\"decision\":\"block\"}"}}}),
        )
        .await;
    let log = serde_json::to_string(&stage.rule_admin.changes(&admin, &id, 10).await.unwrap()).unwrap();
    assert!(!log.contains("source\":\"return"), "{log}");
    assert!(log.contains("config_hidden"), "{log}");
    let log = serde_json::to_string(&stage.rule_admin.changes(&owner, &id, 10).await.unwrap()).unwrap();
    assert!(log.contains("return {"), "{log}");
}
