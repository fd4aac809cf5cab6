//! Every method and every error of it.

use std::sync::atomic::Ordering;

use pintle_domain::json::{Value, json};
use pintle_domain::rule::Edition;
use pintle_rules::admin::{CallerRole, METHODS};

use super::stage::{ACME, Plan, Stage, UNKNOWN, http, of_acme, of_default, script};

#[tokio::test]
async fn each_method_wants_its_role() {
    let stage = Stage::new();
    let owner = of_default(CallerRole::Owner);
    let id = stage.create(&owner, script("tenant", "guard", "allow")).await;
    let params = |method: &str| match method {
        "hooks.create" => script("tenant", "another", "allow"),
        "hooks.update" => json!({"hookId": id, "updates": {"name": "guard"}}),
        "hooks.toggle" => json!({"hookId": id, "enabled": true}),
        "hooks.chain" => json!({"event": "pre_tool_use"}),
        "hooks.execution.get" => json!({"id": UNKNOWN}),
        "hooks.budget.set" => json!({"tenantId": ACME, "budgetTotal": 5}),
        "hooks.get" | "hooks.delete" | "hooks.reset" | "hooks.test" => json!({"hookId": id}),
        _ => json!({}),
    };
    let (mut methods, mut seen) = (METHODS.to_vec(), String::new());
    // What takes the hook away comes last.
    methods.sort_by_key(|(method, _)| *method == "hooks.delete");
    for (method, least) in methods {
        for role in [CallerRole::Viewer, CallerRole::Operator, CallerRole::Admin, CallerRole::Owner] {
            let answer = stage.rule_admin.call(&of_default(role), method, &params(method)).await;
            let refused = answer.as_ref().is_err_and(|refused| refused.code.word() == "UNAUTHORIZED");
            assert_eq!(refused, role < least, "{method} by {}: {answer:?}", role.word());
            if let (Err(error), CallerRole::Viewer, true) = (&answer, role, refused) {
                seen.push_str(&format!("{}\n", error.message));
            }
        }
    }
    insta::assert_snapshot!(seen);
}

/// What is wrong with what is to be made or changed.
fn bad_changes(id: &str) -> Vec<(CallerRole, &'static str, Value)> {
    vec![
        (CallerRole::Viewer, "hooks.update", json!({"hookId": "x", "frob": 1})),
        (CallerRole::Viewer, "hooks.budget.set", json!({"frob": 1})),
        (CallerRole::Admin, "hooks.watch", json!({})),
        (CallerRole::Admin, "hooks.frob", json!({})),
        (CallerRole::Admin, "hooks.list", json!([])),
        (CallerRole::Admin, "hooks.list", json!({"tenantId": ACME})),
        (CallerRole::Admin, "hooks.list", json!({"agentId": "nobody"})),
        (CallerRole::Admin, "hooks.list", json!({"agentId": 7})),
        (CallerRole::Admin, "hooks.list", json!({"event": "frob"})),
        (CallerRole::Admin, "hooks.list", json!({"scope": "world"})),
        (CallerRole::Admin, "hooks.list", json!({"enabled": "yes"})),
        (CallerRole::Admin, "hooks.get", json!({})),
        (CallerRole::Admin, "hooks.get", json!({"hookId": "x"})),
        (CallerRole::Admin, "hooks.get", json!({"hookId": UNKNOWN})),
        (CallerRole::Admin, "hooks.create", Value::Null),
        (CallerRole::Admin, "hooks.create", json!({"event": "pre_tool_use"})),
        (CallerRole::Admin, "hooks.create", json!({"event": "pre_tool_use", "timeout": 5})),
        (CallerRole::Admin, "hooks.create", script("global", "guard", "allow")),
        (
            CallerRole::Admin,
            "hooks.create",
            json!({"event": "pre_tool_use", "handler_type": "script", "scope": "tenant", "config": {"source": "retrun"}}),
        ),
        (CallerRole::Admin, "hooks.create", http("http://127.0.0.1/")),
        (CallerRole::Admin, "hooks.update", json!({"hookId": "x", "updates": {"name": "b"}})),
        (CallerRole::Admin, "hooks.update", json!({"hookId": UNKNOWN, "updates": {"name": "b"}})),
        (CallerRole::Admin, "hooks.update", json!({"hookId": id})),
        (CallerRole::Admin, "hooks.update", json!({"hookId": id, "updates": {}})),
        (CallerRole::Admin, "hooks.update", json!({"hookId": id, "updates": {"Tenant_ID": ACME}})),
        (CallerRole::Admin, "hooks.update", json!({"hookId": id, "updates": {"timeout_ms": 99999}})),
        (CallerRole::Admin, "hooks.update", json!({"hookId": id, "updates": {"scope": "global"}})),
        (CallerRole::Admin, "hooks.update", json!({"hookId": id, "updates": {"name": "b"}, "ifVersion": 7})),
        (CallerRole::Admin, "hooks.update", json!({"hookId": id, "updates": {"name": "b"}, "ifVersion": -1})),
    ]
}

/// What is wrong with everything else.
fn bad_questions(id: &str) -> Vec<(CallerRole, &'static str, Value)> {
    vec![
        (CallerRole::Admin, "hooks.delete", json!({"hookId": UNKNOWN})),
        (CallerRole::Admin, "hooks.toggle", json!({"hookId": id})),
        (CallerRole::Admin, "hooks.toggle", json!({"hookId": UNKNOWN, "enabled": true})),
        (CallerRole::Admin, "hooks.reset", json!({"hookId": id, "tenantId": ACME})),
        (CallerRole::Owner, "hooks.reset", json!({"hookId": id, "tenantId": UNKNOWN})),
        (CallerRole::Owner, "hooks.reset", json!({"hookId": id, "tenantId": "x"})),
        (CallerRole::Admin, "hooks.test", json!({})),
        (CallerRole::Admin, "hooks.test", json!({"hookId": id, "config": {}})),
        (CallerRole::Admin, "hooks.test", json!({"hookId": id, "sampleEvent": {"tool": "exec"}})),
        (CallerRole::Admin, "hooks.test", json!({"hookId": id, "sampleEvent": {"toolInput": "ls"}})),
        (CallerRole::Admin, "hooks.test", json!({"hookId": id, "sampleEvent": []})),
        (
            CallerRole::Admin,
            "hooks.test",
            json!({"config": {"event": "pre_tool_use", "handler_type": "prompt", "scope": "tenant"}}),
        ),
        (CallerRole::Admin, "hooks.test", json!({"config": script("global", "guard", "allow")})),
        (CallerRole::Admin, "hooks.history", json!({"cursor": "abc"})),
        (CallerRole::Admin, "hooks.history", json!({"hookId": UNKNOWN})),
        (CallerRole::Admin, "hooks.history", json!({"decision": "maybe"})),
        (CallerRole::Admin, "hooks.history", json!({"since": "yesterday"})),
        (CallerRole::Admin, "hooks.execution.get", json!({"id": "x"})),
        (CallerRole::Admin, "hooks.execution.get", json!({"id": UNKNOWN})),
        (CallerRole::Admin, "hooks.chain", json!({})),
        (CallerRole::Admin, "hooks.chain", json!({"event": "pre_tool_use", "toolInput": []})),
        (CallerRole::Owner, "hooks.budget.set", json!({"tenantId": UNKNOWN, "budgetTotal": 5})),
        (CallerRole::Owner, "hooks.budget.set", json!({"tenantId": ACME, "budgetTotal": -5})),
        (CallerRole::Owner, "hooks.budget.set", json!({"tenantId": ACME})),
        (CallerRole::Owner, "hooks.budget.set", json!({"budgetTotal": 5})),
    ]
}

#[tokio::test]
async fn what_is_wrong_is_said() {
    let stage = Stage::new();
    let admin = of_default(CallerRole::Admin);
    let id = stage.create(&admin, script("tenant", "guard", "allow")).await;
    let mut seen = String::new();
    for (role, method, params) in bad_changes(&id).into_iter().chain(bad_questions(&id)) {
        let said = stage.no(&of_default(role), method, params.clone()).await;
        let (params, said) = (params.to_string().replace(&id, "ID"), said.replace(&id, "ID"));
        seen.push_str(&format!("{method} {params}\n    {said}\n"));
    }
    insta::assert_snapshot!(seen);
    assert_eq!(stage.get(&admin, &id).await["version"], 1, "nothing of this changed anything");
}

#[tokio::test]
async fn standard_has_no_commands_and_no_secrets_without_a_key() {
    let stage = Stage::planned(Plan { edition: Edition::Standard, ..Plan::default() });
    let admin = of_default(CallerRole::Admin);
    let command = json!({
        "event": "stop", "handler_type": "command", "scope": "tenant", "config": {"command": "true"},
    });
    let no = "INVALID_REQUEST hook: command handler not allowed: hook.command_disabled_standard";
    assert_eq!(stage.no(&admin, "hooks.create", command.clone()).await, no);
    assert_eq!(stage.no(&admin, "hooks.test", json!({"config": command})).await, no);
    stage.safe.has_no_key.store(true, Ordering::SeqCst);
    let no = "FAILED_PRECONDITION encryption key not configured";
    assert_eq!(stage.no(&admin, "hooks.create", http("https://example.org/")).await, no);
    assert_eq!(stage.ok(&admin, "hooks.list", json!({})).await, json!({"hooks": []}));
}

#[tokio::test]
async fn commands_are_the_operators() {
    let stage = Stage::new();
    let command = json!({
        "event": "stop", "handler_type": "command", "scope": "tenant", "config": {"command": "true"},
    });
    let no = "INVALID_REQUEST hook: command handler not allowed: hook.command_disabled_standard";
    assert_eq!(stage.no(&of_acme(CallerRole::Admin), "hooks.create", command.clone()).await, no);
    let id = stage.create(&of_default(CallerRole::Admin), command).await;
    let no = "UNAUTHORIZED permission denied: hooks.test requires admin role";
    assert_eq!(stage.no(&of_default(CallerRole::Operator), "hooks.test", json!({"hookId": id})).await, no);
    stage.ok(&of_default(CallerRole::Admin), "hooks.test", json!({"hookId": id})).await;
}

#[tokio::test]
async fn a_lost_store_is_said_and_shows_what_is_in_force() {
    let stage = Stage::new();
    let admin = of_default(CallerRole::Admin);
    let id = stage.create(&admin, script("tenant", "guard", "allow")).await;
    stage.store.break_down("the disk is gone");
    let no = "UNAVAILABLE the store is unavailable: the disk is gone";
    assert_eq!(stage.no(&admin, "hooks.toggle", json!({"hookId": id, "enabled": false})).await, no);
    assert_eq!(stage.no(&admin, "hooks.create", script("tenant", "b", "allow")).await, no);
    assert_eq!(stage.no(&admin, "hooks.history", json!({})).await, no);
    assert_eq!(stage.no(&admin, "hooks.budget.get", json!({})).await, no);
    assert_eq!(stage.get(&admin, &id).await["enabled"], true);
    stage.store.mend();
    assert_eq!(stage.ok(&admin, "hooks.list", json!({})).await["hooks"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn budgets_are_a_tenants() {
    let stage = Stage::new();
    let owner = of_default(CallerRole::Owner);
    let set = stage.ok(&owner, "hooks.budget.set", json!({"tenantId": ACME, "budgetTotal": 50})).await;
    let acme = json!({"monthStart": "2026-11-01", "budgetTotal": 50, "used": 0, "remaining": 50});
    assert_eq!(set, acme);
    assert_eq!(stage.ok(&of_acme(CallerRole::Viewer), "hooks.budget.get", json!({})).await, acme);
    let own = stage.ok(&of_default(CallerRole::Viewer), "hooks.budget.get", json!({})).await;
    assert_eq!(own["budgetTotal"], 1_000_000);
}
