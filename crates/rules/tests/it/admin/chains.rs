//! Who would be asked.

use pintle_domain::checkpoint::CheckpointKind;
use pintle_domain::id::HookId;
use pintle_domain::json::{Value, json};
use pintle_domain::rule::Rule;
use pintle_domain::store::RuleChange;
use pintle_rules::admin::{CallerRole, ChainQuery};

use super::stage::{ACME, Stage, of_acme, of_default, script};

#[tokio::test]
async fn each_hook_says_whether_it_would_run_and_why_not() {
    let stage = Stage::new();
    let (owner, admin) = (of_default(CallerRole::Owner), of_acme(CallerRole::Admin));
    let with = |name: &str, more: &[(&str, Value)]| {
        let mut record = script("tenant", name, "allow");
        for (member, value) in more {
            record[*member] = value.clone();
        }
        record
    };
    let helper = pintle_domain::id::agent_uuid(&admin.tenant, "helper");
    stage.create(&admin, with("runs", &[("priority", json!(9))])).await;
    stage.create(&admin, with("switched", &[("priority", json!(8)), ("enabled", json!(false))])).await;
    stage.create(&admin, with("unmatched", &[("priority", json!(7)), ("matcher", json!("^read$"))])).await;
    stage.create(&admin, with("untrue", &[("priority", json!(6)), ("if_expr", json!("depth > 0"))])).await;
    stage.create(&admin, with("faulty", &[("priority", json!(5)), ("if_expr", json!("tool_input.no == 'x'"))])).await;
    stage
        .create(
            &admin,
            with("agents", &[("priority", json!(4)), ("scope", json!("agent")), ("agent_ids", json!([helper]))]),
        )
        .await;
    let broken = stage.create(&admin, with("broken", &[("priority", json!(3))])).await;
    let row = Rule { matcher: "(".into(), ..stage.row(&broken) };
    stage.write(RuleChange::Update { hook: row.into(), if_version: None, action: "updated" });
    let global = stage.create(&owner, script("global", "tripped", "allow")).await;
    stage.trip(&global, ACME);
    let ask = json!({"event": "pre_tool_use", "toolName": "exec", "toolInput": {"cmd": "ls"}});
    let chain = stage.ok(&admin, "hooks.chain", ask).await;
    let line = |hook: &Value| {
        let id = hook["hookId"].as_str().unwrap();
        format!(
            "{} {} {} {} {} {}\n",
            hook["name"], hook["scope"], hook["priority"], hook["state"], hook["wouldRun"], hook["reason"]
        )
        .replace(id, "ID")
    };
    insta::assert_snapshot!(chain["chain"].as_array().unwrap().iter().map(line).collect::<String>());
    let none = stage.ok(&admin, "hooks.chain", json!({"event": "stop"})).await;
    assert_eq!(none, json!({"chain": []}));
    let of_helper = json!({"event": "pre_tool_use", "toolName": "exec", "agentId": "helper"});
    let chain = stage.ok(&admin, "hooks.chain", of_helper).await;
    let runs = chain["chain"].as_array().unwrap().iter().filter(|hook| hook["wouldRun"] == true);
    assert_eq!(runs.map(|hook| hook["name"].as_str().unwrap()).collect::<Vec<_>>(), ["runs", "agents"]);
}

#[tokio::test]
async fn what_is_shipped_and_off_stands_in_the_chain_as_any_other_that_is_off() {
    let stage = Stage::new();
    let admin = of_default(CallerRole::Admin);
    let mut off = script("tenant", "off", "allow");
    off["enabled"] = json!(false);
    stage.create(&admin, off).await;
    for row in pintle_rules::builtin::builtins()[0].rows("2026-11-22T09:00:00Z".parse().unwrap()) {
        // The model's scripts are shorter.
        let config = pintle_domain::json::from_value(json!({"source": "return {\"decision\":\"allow\"}"})).unwrap();
        stage.write(RuleChange::Create(Rule { config, ..row }.into()));
    }
    let chain = stage.ok(&admin, "hooks.chain", json!({"event": "pre_tool_use", "toolName": "exec"})).await;
    let line = |hook: &Value| format!("{} {} {}", hook["name"], hook["state"], hook["wouldRun"]);
    let lines: Vec<String> = chain["chain"].as_array().unwrap().iter().map(line).collect();
    assert_eq!(lines, [r#""pii-redactor" "off" false"#, r#""off" "off" false"#]);
}

#[tokio::test]
async fn in_what_way_a_hook_of_the_host_is_broken_is_told_to_owners() {
    let stage = Stage::new();
    let (owner, viewer) = (of_default(CallerRole::Owner), of_default(CallerRole::Viewer));
    let id = stage.create(&owner, script("tenant", "guard", "allow")).await;
    let row = Rule { matcher: "(".into(), ..stage.row(&id) };
    stage.write(RuleChange::Update { hook: row.into(), if_version: None, action: "updated" });
    stage.rule_cache.refresh().unwrap();
    let hook = stage.rule_cache.mounted(&HookId::from(id.as_str())).unwrap();
    let asking = ChainQuery { event: CheckpointKind::PreToolUse, agent: None, tool: Some("exec"), input: None };
    let fate = |by| stage.rule_admin.fates(by, &asking, std::slice::from_ref(&hook)).unwrap().remove(0).unwrap();
    assert!(fate(&owner).starts_with("it blocks: it could not evaluate its condition: "), "{}", fate(&owner));
    assert_eq!(fate(&viewer), "it blocks: it is broken");
}
