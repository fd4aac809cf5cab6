//! Making, changing, switching and deleting hooks.

use pintle_domain::id::{HookId, TenantId, agent_uuid};
use pintle_domain::json::{Value, json};
use pintle_domain::rule::Rule;
use pintle_domain::store::{Actor, RuleChange, RuleStore as _};
use pintle_rules::admin::{Caller, CallerRole, ListFilter};

use super::stage::{Stage, of_acme, of_default, script};

impl Stage {
    /// Everything in the store, without what counts its changes.
    pub(crate) fn store_rows(&self) -> Vec<Rule> {
        self.store.rules().unwrap().hooks
    }

    /// Writes past the rule admin, as another process does.
    pub(crate) fn write(&self, change: RuleChange) {
        let by = Actor {
            name: "another process".into(),
            at: "2026-11-22T09:00:01Z".parse().unwrap(),
            reason: String::new(),
        };
        self.store.change(vec![change], &by).unwrap();
    }

    pub(crate) fn row(&self, id: &str) -> Rule {
        self.store.hook(&HookId::from(id)).unwrap().unwrap()
    }
}

#[tokio::test]
async fn a_new_hook_is_in_force_before_the_answer() {
    let stage = Stage::new();
    let admin = of_default(CallerRole::Admin);
    assert_eq!(stage.gate(admin.tenant.as_str(), "exec").await, "allow");
    let id = stage.create(&admin, script("tenant", "guard", "block")).await;
    assert_eq!(stage.gate(admin.tenant.as_str(), "exec").await, "block: guard says so");
    assert_eq!(stage.gate(admin.tenant.as_str(), "read").await, "allow");
    assert_eq!(stage.gate(super::stage::ACME, "exec").await, "allow");
    let mut seen = stage.get(&admin, &id).await;
    seen["id"] = json!("ID");
    insta::assert_snapshot!(serde_json::to_string_pretty(&seen).unwrap());
    assert_eq!(stage.ok(&admin, "hooks.toggle", json!({"hookId": id, "enabled": false})).await["enabled"], false);
    assert_eq!(stage.gate(admin.tenant.as_str(), "exec").await, "allow");
    stage.ok(&admin, "hooks.toggle", json!({"hookId": id, "enabled": true})).await;
    let updates = json!({"config": {"source": "return {\"decision\":\"ask\",\"reason\":\"sure?\"}"}});
    let updated = stage.ok(&admin, "hooks.update", json!({"hookId": id, "updates": updates, "ifVersion": 3})).await;
    assert_eq!(updated, json!({"hookId": id, "version": 4}));
    assert_eq!(stage.gate(admin.tenant.as_str(), "exec").await, "ask: sure?");
    assert_eq!(stage.ok(&admin, "hooks.delete", json!({"hookId": id})).await, json!({"hookId": id}));
    assert_eq!(stage.gate(admin.tenant.as_str(), "exec").await, "allow");
}

#[tokio::test]
async fn the_samples_of_the_seed_work() {
    let stage = Stage::new();
    let admin = of_default(CallerRole::Admin);
    let create = json!({
        "event": "pre_tool_use", "handler_type": "http", "scope": "tenant", "name": "Safety webhook",
        "matcher": "^exec$", "config": { "url": "https://safety.internal/check" }
    });
    let payload = stage.ok(&admin, "hooks.create", create).await;
    assert_eq!(payload.as_object().unwrap().len(), 1, "{payload}");
    stage.ok(&admin, "hooks.toggle", json!({"hookId": payload["hookId"], "enabled": false})).await;
    let test = json!({
        "config": { "event": "pre_tool_use", "handler_type": "command", "scope": "tenant", "config": { "command": "cat" } },
        "sampleEvent": { "toolName": "exec", "toolInput": { "cmd": "ls" } }
    });
    let result = stage.ok(&admin, "hooks.test", test).await;
    assert_eq!((&result["result"]["decision"], &result["result"]["effective"]), (&json!("allow"), &json!("allow")));
}

#[tokio::test]
async fn warnings_come_beside_the_id() {
    let stage = Stage::new();
    let admin = of_default(CallerRole::Admin);
    let mut doubtful = script("tenant", "guard", "allow");
    doubtful["event"] = json!("stop");
    let payload = stage.ok(&admin, "hooks.create", doubtful).await;
    assert_eq!(payload["warnings"].as_array().unwrap().len(), 1);
    let updated =
        stage.ok(&admin, "hooks.update", json!({"hookId": payload["hookId"], "updates": {"name": "b"}})).await;
    assert_eq!(updated["warnings"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn several_records_are_taken_whole_or_not_at_all() {
    let stage = Stage::new();
    let admin = of_default(CallerRole::Admin);
    let bad = [script("tenant", "a", "allow"), json!({"event": "frob", "name": "b"})];
    let refused = stage.rule_admin.create_all(&admin, &bad).await.unwrap_err();
    assert_eq!(refused.message, "record 2 (\"b\"): handler_type, event, and scope are required");
    assert_eq!(stage.store_rows(), []);
    let good = ["a", "b"].map(|name| script("tenant", name, "allow"));
    let created = stage.rule_admin.create_all(&admin, &good).await.unwrap();
    assert_eq!((created.len(), stage.store_rows().len()), (2, 2));
    assert!(stage.rule_admin.create_all(&admin, &[]).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_tenant_has_so_many_hooks_and_no_more() {
    let stage = Stage::new();
    let admin = of_default(CallerRole::Admin);
    let records = vec![script("tenant", "a", "allow"); 1000];
    let too_many = [records.clone(), vec![script("tenant", "b", "allow")]].concat();
    let refused = stage.rule_admin.create_all(&admin, &too_many).await.unwrap_err();
    assert!(refused.message.starts_with("record 1001 (\"b\"): hook: the tenant has 1000 hooks"), "{refused}");
    stage.rule_admin.create_all(&admin, &records).await.unwrap();
    let no = stage.no(&admin, "hooks.create", script("tenant", "b", "allow")).await;
    assert!(no.starts_with("INVALID_REQUEST hook: the tenant has 1000 hooks"), "{no}");
    stage.create(&of_acme(CallerRole::Admin), script("tenant", "b", "allow")).await;
    // What is not kept needs no room.
    stage.ok(&admin, "hooks.test", json!({"config": script("tenant", "b", "allow")})).await;
}

#[tokio::test]
async fn another_process_is_seen_and_not_overwritten() {
    let stage = Stage::new();
    let admin = of_default(CallerRole::Admin);
    let id = stage.create(&admin, script("tenant", "guard", "allow")).await;
    let theirs = Rule { priority: 7, ..stage.row(&id) };
    stage.write(RuleChange::Update { hook: theirs.into(), if_version: None, action: "updated" });
    let conflict = json!({"hookId": id, "updates": {"name": "b"}, "ifVersion": 1});
    assert_eq!(stage.no(&admin, "hooks.update", conflict).await, "FAILED_PRECONDITION version conflict: have 2");
    stage.ok(&admin, "hooks.update", json!({"hookId": id, "updates": {"name": "b"}})).await;
    let row = stage.row(&id);
    assert_eq!((row.priority, row.name.as_str(), row.version), (7, "b", 3));
    stage.write(RuleChange::delete(HookId::from(id.as_str())));
    let gone = format!("NOT_FOUND hook not found: {id}");
    assert_eq!(stage.no(&admin, "hooks.update", json!({"hookId": id, "updates": {"name": "c"}})).await, gone);
    assert_eq!(stage.no(&admin, "hooks.toggle", json!({"hookId": id, "enabled": true})).await, gone);
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_at_once_are_all_kept() {
    let stage = Stage::new();
    let admin = of_default(CallerRole::Admin);
    let id = stage.create(&admin, script("tenant", "guard", "allow")).await;
    let updates = [json!({"name": "b"}), json!({"priority": 7}), json!({"timeout_ms": 70}), json!({"breaker": "off"})];
    let all = updates.map(|updates| stage.ok(&admin, "hooks.update", json!({"hookId": id, "updates": updates})));
    let versions = futures_util::future::join_all(all).await;
    let mut versions: Vec<u64> = versions.iter().map(|updated| updated["version"].as_u64().unwrap()).collect();
    versions.sort_unstable();
    assert_eq!(versions, [2, 3, 4, 5]);
    let row = stage.row(&id);
    assert_eq!((row.name.as_str(), row.priority, row.timeout_ms, row.breaker.word()), ("b", 7, 70, "off"));
    assert_eq!(stage.rule_cache.rules().hooks, [row]);
}

#[tokio::test]
async fn builtins_can_be_switched_by_the_owner_and_nothing_else() {
    let stage = Stage::new();
    let (owner, admin) = (of_default(CallerRole::Owner), of_default(CallerRole::Admin));
    let rows = pintle_rules::builtin::builtins()[0].rows("2026-11-22T09:00:00Z".parse().unwrap());
    let id = rows[0].id.to_string();
    for row in rows {
        // The model's scripts are shorter.
        let config = pintle_domain::json::from_value(json!({"source": "return {\"decision\":\"allow\"}"})).unwrap();
        stage.write(RuleChange::Create(Rule { config, ..row }.into()));
    }
    let read_only = "INVALID_REQUEST builtin hooks are read-only except for the enabled toggle";
    let no_master = "UNAUTHORIZED this action requires master tenant scope";
    let update = |updates: Value| json!({"hookId": id, "updates": updates});
    assert_eq!(stage.no(&owner, "hooks.update", update(json!({"priority": 1}))).await, read_only);
    assert_eq!(stage.no(&owner, "hooks.update", update(json!({"enabled": true, "name": "b"}))).await, read_only);
    assert_eq!(stage.no(&owner, "hooks.delete", json!({"hookId": id})).await, read_only);
    assert_eq!(stage.no(&admin, "hooks.delete", json!({"hookId": id})).await, no_master);
    assert_eq!(stage.no(&admin, "hooks.toggle", json!({"hookId": id, "enabled": false})).await, no_master);
    // It is not tripped, so there is nothing that a tenant could bring back.
    let payload = stage.ok(&admin, "hooks.toggle", json!({"hookId": id, "enabled": true})).await;
    assert_eq!(payload, json!({"hookId": id, "enabled": false}));
    stage.ok(&owner, "hooks.toggle", json!({"hookId": id, "enabled": true})).await;
    assert!(stage.row(&id).enabled);
    stage.ok(&owner, "hooks.update", update(json!({"enabled": false}))).await;
    assert!(!stage.row(&id).enabled);
}

#[tokio::test]
async fn what_a_file_says_is_changed_in_the_file() {
    let stage = Stage::new();
    let admin = of_default(CallerRole::Admin);
    let template = stage.create(&admin, script("tenant", "guard", "allow")).await;
    let id = HookId::of_name("file/rules.toml/guard");
    let row = Rule { id: id.clone(), created_by: Some("file:rules.toml".into()), ..stage.row(&template) };
    stage.write(RuleChange::Create(row.into()));
    let no = "FAILED_PRECONDITION hook \"guard\" comes from the file `rules.toml`: change it there";
    for (method, params) in [
        ("hooks.update", json!({"hookId": id, "updates": {"priority": 1}})),
        ("hooks.delete", json!({"hookId": id})),
        ("hooks.toggle", json!({"hookId": id, "enabled": false})),
    ] {
        assert_eq!(stage.no(&admin, method, params).await, no, "{method}");
    }
    let by =
        Actor { name: "system:breaker".into(), at: "2026-11-22T09:00:01Z".parse().unwrap(), reason: String::new() };
    stage.store.trip(&id, &admin.tenant, &by).unwrap();
    assert_eq!(stage.no(&admin, "hooks.toggle", json!({"hookId": id, "enabled": false})).await, no);
    assert_eq!(stage.ok(&admin, "hooks.toggle", json!({"hookId": id, "enabled": true})).await["enabled"], true);
    assert!(stage.row(id.as_str()).enabled);
    // Whoever only calls themselves a file is none.
    let named = Rule { created_by: Some("file:rules.toml".into()), ..stage.row(&template) };
    stage.write(RuleChange::Update { hook: named.into(), if_version: None, action: "updated" });
    stage.ok(&admin, "hooks.delete", json!({"hookId": template})).await;
}

#[tokio::test]
async fn lists_are_in_running_order_and_filtered() {
    let stage = Stage::new();
    let admin = of_default(CallerRole::Admin);
    let mut records = ["a", "b", "c", "d"].map(|name| script("tenant", name, "allow"));
    records[2]["priority"] = json!(9);
    records[3]["event"] = json!("post_tool_use");
    records[3]["enabled"] = json!(false);
    records[1]["scope"] = json!("agent");
    records[1]["agent_ids"] = json!([agent_uuid(&admin.tenant, "helper")]);
    for record in records {
        stage.clock.pass(1);
        stage.create(&admin, record).await;
    }
    let names = async |params: Value| -> String {
        let hooks = stage.ok(&admin, "hooks.list", params).await;
        hooks["hooks"].as_array().unwrap().iter().map(|hook| hook["name"].as_str().unwrap()).collect()
    };
    assert_eq!(names(json!({})).await, "cabd");
    assert_eq!(names(json!({"event": "post_tool_use"})).await, "d");
    assert_eq!(names(json!({"enabled": true})).await, "cab");
    assert_eq!(names(json!({"scope": "agent"})).await, "b");
    assert_eq!(names(json!({"agentId": "helper"})).await, "b");
    assert_eq!(names(json!({"agentId": agent_uuid(&admin.tenant, "main")})).await, "");
    let filter = ListFilter { agent: Some("helper".into()), ..ListFilter::default() };
    assert_eq!(stage.rule_admin.list(&admin, &filter).await.unwrap().len(), 1);
}

#[tokio::test]
async fn at_the_command_line_hooks_and_agents_have_names() {
    let stage = Stage::new();
    let cli = Caller::cli();
    assert_eq!((cli.role, &cli.tenant), (CallerRole::Owner, &TenantId::default_tenant()));
    let mut record = script("agent", "guard", "allow");
    record["agent_ids"] = json!(["helper"]);
    let id = stage.create(&cli, record.clone()).await;
    assert_eq!(stage.row(&id).agent_ids, [agent_uuid(&cli.tenant, "helper")]);
    assert_eq!(stage.row(&id).created_by.as_deref(), Some("cli"));
    let no = stage.no(&of_default(CallerRole::Admin), "hooks.create", record).await;
    assert!(no.contains("must be an array of UUIDs"), "{no}");
    assert_eq!(stage.rule_admin.find(&cli, "guard").await.unwrap().as_str(), id);
    assert_eq!(stage.rule_admin.find(&cli, &id.to_uppercase()).await.unwrap().as_str(), id);
    let other = stage.create(&cli, script("tenant", "guard", "allow")).await;
    let both = stage.rule_admin.find(&cli, "guard").await.unwrap_err();
    assert_eq!(both.message, format!("several hooks are called \"guard\"; say which: {id}, {other}"));
    assert_eq!(stage.rule_admin.find(&cli, "gaurd").await.unwrap_err().message, "hook not found: gaurd");
}

#[tokio::test]
async fn who_changed_what_is_kept() {
    let stage = Stage::new();
    let admin = of_default(CallerRole::Admin);
    let id = stage.create(&admin, script("tenant", "guard", "allow")).await;
    stage.clock.pass(1);
    stage.ok(&admin, "hooks.update", json!({"hookId": id, "updates": {"name": "b", "priority": 2}})).await;
    stage.ok(&admin, "hooks.toggle", json!({"hookId": id, "enabled": false})).await;
    let lines = stage.rule_admin.changes(&admin, &id, 2).await.unwrap();
    let told: Vec<_> = lines.iter().map(|line| (line.action.as_str(), line.actor.as_str(), line.version)).collect();
    assert_eq!(told, [("toggled", "admin", 3), ("updated", "admin", 2)]);
    let patch = json!([
        {"op": "replace", "path": "/name", "value": "b"},
        {"op": "replace", "path": "/priority", "value": 2},
    ]);
    assert_eq!((&lines[1].diff, lines[1].at.as_str()), (&patch, "2026-11-22T09:00:01Z"));
}

#[tokio::test]
async fn whoever_switches_off_by_a_change_may_say_why_and_a_reason_for_anything_else_is_refused() {
    let stage = Stage::new();
    let admin = of_default(CallerRole::Admin);
    let id = stage.create(&admin, script("tenant", "guard", "block")).await;
    let update = |updates: Value, reason: &str| json!({"hookId": id, "updates": updates, "reason": reason});
    let refused = stage.no(&admin, "hooks.update", update(json!({"priority": 3}), "why not")).await;
    assert!(refused.contains("these updates do not switch it off"), "{refused}");
    let own = stage.no(&admin, "hooks.update", update(json!({"enabled": false}), "breaker")).await;
    assert!(own.contains("is a word that Pintle itself uses"), "{own}");
    let long = stage.no(&admin, "hooks.update", update(json!({"enabled": false}), &"x".repeat(33))).await;
    assert!(long.contains("32 characters at most"), "{long}");
    assert_eq!(stage.get(&admin, &id).await["version"], 1);
    stage.ok(&admin, "hooks.update", update(json!({"enabled": false}), "it blocks too much")).await;
    assert_eq!(stage.get(&admin, &id).await["disabled_reason"], "it blocks too much");
    stage.ok(&admin, "hooks.update", update(json!({"enabled": true}), "")).await;
    assert_eq!(stage.get(&admin, &id).await["disabled_reason"], "");
    // The published frame has no reason, and none is made up.
    stage.ok(&admin, "hooks.update", json!({"hookId": id, "updates": {"enabled": false}})).await;
    assert_eq!(stage.get(&admin, &id).await["disabled_reason"], "");
}

#[tokio::test]
async fn the_changes_of_a_deleted_hook_are_told_to_its_tenant_alone() {
    let stage = Stage::new();
    let admin = of_default(CallerRole::Admin);
    let id = stage.create(&admin, script("tenant", "guard", "block")).await;
    stage.ok(&admin, "hooks.delete", json!({"hookId": id, "reason": "nobody needs it"})).await;
    let told = stage.ok(&admin, "hooks.changes", json!({"hookId": id})).await;
    let lines: Vec<(&Value, &Value)> =
        told["changes"].as_array().unwrap().iter().map(|line| (&line["action"], &line["hook_name"])).collect();
    assert_eq!(lines, [(&json!("deleted"), &json!("guard")), (&json!("created"), &json!("guard"))]);
    let other = of_acme(CallerRole::Admin);
    assert_eq!(
        stage.no(&other, "hooks.changes", json!({"hookId": id})).await,
        format!("NOT_FOUND hook not found: {id}")
    );
}
