//! The published page of agent hooks, sentence by sentence, over the socket. The tests are called after its sentences.

use serde_json::{Value, json};

use super::server::{Client, Server, TOKEN, WITH_TOKEN};
use crate::env::TestEnv;
use crate::rules_in_turns::stage::{Model, calls, says};
use crate::run::{DONE, LISTS, scripted};

const STANDARD: &str = "edition = 'standard'\n";

/// Somebody in master scope.
fn owner(server: &Server) -> Client {
    server.connected(json!({ "token": TOKEN, "user_id": "system" }))
}

fn command(scope: &str) -> Value {
    json!({
        "event": "pre_tool_use", "handler_type": "command", "scope": scope, "name": "cat", "matcher": "^list_dir$",
        "config": { "command": "cat" },
    })
}

fn script(scope: &str, name: &str, priority: i64, handle: &str) -> Value {
    json!({
        "event": "pre_tool_use", "handler_type": "script", "scope": scope, "name": name, "priority": priority,
        "matcher": "^list_dir$", "config": { "source": format!("function handle() {{ {handle} }}") },
    })
}

/// The newest row of the history.
fn newest(client: &mut Client) -> Value {
    client.done("hooks.history", json!({ "limit": 1 }))["executions"][0].clone()
}

#[test]
fn command_handler_blocked_on_standard_at_config_time() {
    let server = Server::start(scripted(DONE, &format!("{WITH_TOKEN}{STANDARD}")));
    let mut owner = owner(&server);
    let refused =
        ("INVALID_REQUEST".to_owned(), "hook: command handler not allowed: hook.command_disabled_standard".to_owned());
    assert_eq!(owner.refused("hooks.create", command("tenant")), refused);
    assert_eq!(owner.refused("hooks.test", json!({ "config": command("tenant"), "sampleEvent": {} })), refused);
    let http = json!({
        "event": "pre_tool_use", "handler_type": "http", "scope": "tenant", "config": { "url": "https://a.example" },
    });
    let id = owner.done("hooks.create", http)["hookId"].clone();
    let updates = json!({ "handler_type": "command", "config": { "command": "cat" } });
    assert_eq!(owner.refused("hooks.update", json!({ "hookId": id, "updates": updates })), refused);
}

/// A home that was lite with a command hook, and is standard from now on.
fn was_lite() -> (TestEnv, String) {
    let env = scripted(&[LISTS, DONE].join(","), WITH_TOKEN);
    let mut server = Server::start(env);
    let id = owner(&server).done("hooks.create", command("tenant"))["hookId"].as_str().unwrap().to_owned();
    server.signal(nix::sys::signal::Signal::SIGTERM);
    assert_eq!(server.ended().0, Some(0));
    let env = server.into_env();
    env.user_config(&format!("{}{WITH_TOKEN}{STANDARD}", crate::run::MODEL));
    (env, id)
}

#[test]
fn command_hooks_of_before_are_disabled_at_boot_on_standard() {
    let (env, id) = was_lite();
    let server = Server::start(env);
    let mut owner = owner(&server);
    let hook = owner.done("hooks.get", json!({ "hookId": id }))["hook"].clone();
    assert_eq!((&hook["enabled"], &hook["disabled_reason"]), (&json!(false), &json!("edition")), "{hook}");
    let (code, message) = owner.refused("hooks.toggle", json!({ "hookId": id, "enabled": true }));
    assert!(code == "INVALID_REQUEST" && message.contains("hook.command_disabled_standard"), "{code}: {message}");
}

#[test]
fn command_handler_blocked_on_standard_at_dispatch_time() {
    // A file is read by every host that has it; one of edition standard does not run what stands there.
    let env = scripted(&[LISTS, DONE].join(","), &format!("{WITH_TOKEN}{STANDARD}[agent_hooks]\ndir = 'rules'\n"));
    env.write(
        "config/pintle/rules/r.toml",
        "[[hook]]\nname = 'cat'\nevent = 'pre_tool_use'\nhandler_type = 'command'\nscope = 'tenant'\n\
         matcher = '^list_dir$'\n[hook.config]\ncommand = 'touch ran; cat'\n",
    );
    let server = Server::start(env);
    let mut anna = server.admin("anna");
    anna.done("chat.send", json!({ "message": "look" }));
    let blocked = anna.event("agent", |it| it["type"] == "hook.blocked");
    assert!(blocked["payload"].to_string().contains("hook.command_disabled_standard"), "{blocked}");
    assert!(!server.env.path("here/ran").exists(), "it ran");
}

#[test]
fn global_applies_to_all_tenants_and_master_scope_is_required() {
    let server = Server::start(scripted(DONE, WITH_TOKEN));
    let (mut owner, mut admin) = (owner(&server), server.admin("anna"));
    let master = ("UNAUTHORIZED".to_owned(), "this action requires master tenant scope".to_owned());
    let rule = script("global", "everywhere", 0, "return { decision: 'allow' }");
    assert_eq!(admin.refused("hooks.create", rule.clone()), master);
    assert_eq!(admin.refused("hooks.test", json!({ "config": rule, "sampleEvent": {} })), master);
    let id = owner.done("hooks.create", rule)["hookId"].clone();
    for (method, params) in [
        ("hooks.update", json!({ "hookId": id, "updates": { "priority": 1 } })),
        ("hooks.delete", json!({ "hookId": id })),
        ("hooks.toggle", json!({ "hookId": id, "enabled": false })),
        ("hooks.budget.set", json!({ "tenantId": pintle_domain::id::DEFAULT_TENANT, "budgetTotal": 1 })),
    ] {
        assert_eq!(admin.refused(method, params), master, "{method}");
    }
    let seen = admin.done("hooks.get", json!({ "hookId": id }))["hook"].clone();
    assert_eq!((&seen["config"], &seen["config_hidden"]), (&json!({}), &json!(true)), "{seen}");
    assert_eq!(owner.done("hooks.get", json!({ "hookId": id }))["hook"]["config_hidden"], Value::Null);
}

#[test]
fn hooks_resolve_in_priority_order_and_a_single_block_short_circuits_the_chain() {
    let server = Server::start(scripted(&[LISTS, DONE].join(","), WITH_TOKEN));
    let mut anna = server.admin("anna");
    anna.done("hooks.create", script("tenant", "last", -1, "return { decision: 'block', reason: 'never asked' }"));
    anna.done("hooks.create", script("tenant", "second", 5, "return { decision: 'block', reason: 'here' }"));
    anna.done("hooks.create", script("tenant", "first", 9, "return { decision: 'allow' }"));
    let chain = anna.done("hooks.chain", json!({ "event": "pre_tool_use", "toolName": "list_dir" }));
    let names = |rows: &Value| -> Vec<String> {
        let name = |row: &Value| row.get("name").or(row.get("hook_name")).unwrap().as_str().unwrap().to_owned();
        rows.as_array().unwrap().iter().map(name).collect()
    };
    let mut planned = names(&chain["chain"]);
    planned.retain(|name| ["first", "second", "last"].contains(&name.as_str()));
    assert_eq!(planned, ["first", "second", "last"]);
    anna.done("chat.send", json!({ "message": "look" }));
    let mut ran = names(&anna.done("hooks.history", json!({}))["executions"]);
    ran.sort();
    assert_eq!(ran, ["first", "second"]);
}

#[test]
fn history_is_paginated_executions() {
    let server = Server::start(scripted(&[LISTS, LISTS, LISTS, DONE].join(","), WITH_TOKEN));
    let mut anna = server.admin("anna");
    let id = anna.done("hooks.create", script("tenant", "lets", 0, "return { decision: 'allow' }"))["hookId"].clone();
    anna.done("chat.send", json!({ "message": "look" }));
    let (mut cursor, mut seen) = (json!(""), Vec::new());
    for page in 0.. {
        let page_of = anna.done("hooks.history", json!({ "hookId": id, "limit": 1, "cursor": cursor }));
        let rows = page_of["executions"].as_array().unwrap();
        seen.extend(rows.iter().map(|row| (row["created_at"].to_string(), row["id"].to_string())));
        cursor = page_of["nextCursor"].clone();
        if cursor == "" {
            assert_eq!(page, 2, "a page each, and the last one says that it is");
            break;
        }
        // It is good for this question only.
        let other = json!({ "limit": 1, "cursor": cursor });
        assert_eq!(anna.refused("hooks.history", other), ("INVALID_REQUEST".into(), "invalid cursor".into()));
    }
    assert_eq!(seen.len(), 3);
    assert!(seen.is_sorted_by(|newer, older| newer > older), "newest first: {seen:?}");
}

#[test]
fn disabling_over_the_socket_takes_effect_without_a_restart() {
    let server = Server::start(scripted(&[LISTS, DONE].repeat(2).join(","), WITH_TOKEN));
    let mut anna = server.admin("anna");
    let shuts = script("tenant", "shuts", 0, "return { decision: 'block' }");
    let id = anna.done("hooks.create", shuts)["hookId"].clone();
    anna.done("chat.send", json!({ "message": "look" }));
    anna.event("agent", |it| it["type"] == "hook.blocked");
    anna.done("hooks.toggle", json!({ "hookId": id, "enabled": false }));
    anna.done("chat.send", json!({ "message": "look" }));
    assert!(!anna.kinds().contains(&"hook.blocked"), "{:?}", anna.kinds());
}

// The table "Troubleshooting": each symptom with its cause, and then its fix.

#[test]
fn http_hook_always_returns_error_ssrf_block_on_loopback() {
    let receiver = Model::giving(vec![pintle_testkit::http::StubAnswer::json(r#"{"decision": "allow"}"#)]);
    let server = Server::start(scripted(DONE, WITH_TOKEN));
    let mut anna = server.admin("anna");
    let hook = |host: &str| {
        let url = format!("http://{host}/check");
        json!({ "event": "pre_tool_use", "handler_type": "http", "scope": "tenant", "config": { "url": url } })
    };
    let (code, message) = anna.refused("hooks.create", hook("127.0.0.1"));
    assert_eq!(
        (code.as_str(), message.as_str()),
        ("INVALID_REQUEST", "hook: http handler: ssrf check: ssrf: IP 127.0.0.1 is in a blocked range")
    );
    // A name is looked up when it is asked.
    let sample = json!({ "toolName": "list_dir", "toolInput": {} });
    let tested = anna.done("hooks.test", json!({ "config": hook("localhost"), "sampleEvent": sample }));
    let error = tested["result"]["error"].as_str().unwrap();
    assert!(error.contains("ssrf: \"localhost\" resolved to blocked IP"), "{tested}");
    // The fix: an address that the operator lets through.
    let (host, port) = receiver.address().rsplit_once(':').map(|(h, p)| (h.to_owned(), p.to_owned())).unwrap();
    let allow = format!("[agent_hooks]\nhttp.allow = [{{ host = '{host}', ports = [{port}] }}]\n");
    let server = Server::start(scripted(DONE, &format!("{WITH_TOKEN}{allow}")));
    let mut anna = server.admin("anna");
    let sample = json!({ "toolName": "list_dir", "toolInput": {} });
    let tested = anna.done("hooks.test", json!({ "config": hook(&receiver.address()), "sampleEvent": sample }));
    assert_eq!((&tested["result"]["decision"], &tested["result"]["statusCode"]), (&json!("allow"), &json!(200)));
}

/// A rule that asks the model `here/m`.
fn judge(more: &Value) -> Value {
    let mut config = json!({ "prompt_template": "Be kind.", "provider": "here", "model": "m" });
    config.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({
        "event": "pre_tool_use", "handler_type": "prompt", "scope": "tenant", "name": "judge", "matcher": "^list_dir$",
        "config": config,
    })
}

fn call(id: &str) -> pintle_testkit::http::StubAnswer {
    calls(&[(id, "list_dir", pintle_domain::json::json!({ "path": "." }))])
}

fn decides(word: &str) -> pintle_testkit::http::StubAnswer {
    calls(&[("d", "decide", pintle_domain::json::json!({ "decision": word, "reason": "because" }))])
}

#[test]
fn prompt_hook_blocks_everything_evaluator_returning_free_text() {
    let model = Model::giving(vec![call("c1"), says("I think this is fine."), says("Well.")]);
    let server = Server::start(model.env(WITH_TOKEN, ""));
    let mut anna = server.admin("anna");
    anna.done("hooks.create", judge(&json!({})));
    anna.done("chat.send", json!({ "message": "look" }));
    let blocked = anna.event("agent", |it| it["type"] == "hook.blocked");
    let reason = blocked["payload"]["reason"].as_str().unwrap();
    assert!(reason.contains("evaluator_no_tool_call"), "it says what the judge did not do: {reason}");
    let row = newest(&mut anna);
    assert_eq!(row["decision"], "error", "{row}");
    assert!(row["error"].as_str().unwrap().contains("evaluator_no_tool_call"), "{row}");
}

#[test]
fn hook_stopped_firing_circuit_breaker_tripped_fix_and_re_enable_with_toggle() {
    let replies = format!("{}, {DONE}, {LISTS}, {DONE}", [LISTS].repeat(6).join(","));
    let server = Server::start(scripted(&replies, &format!("max_iterations = 9\n{WITH_TOKEN}")));
    let mut anna = server.admin("anna");
    let shuts = script("tenant", "shuts", 0, "return { decision: 'block' }");
    let id = anna.done("hooks.create", shuts)["hookId"].clone();
    anna.done("chat.send", json!({ "message": "look" }));
    anna.event("hooks.breaker", |it| it["state"] == "open");
    let hook = anna.done("hooks.get", json!({ "hookId": id }))["hook"].clone();
    assert_eq!((&hook["enabled"], &hook["disabled_reason"]), (&json!(false), &json!("breaker")), "{hook}");
    let reasons: Vec<String> = anna
        .heard
        .iter()
        .filter(|frame| frame["payload"]["type"] == "hook.blocked")
        .map(|frame| frame["payload"]["payload"]["reason"].to_string())
        .collect();
    assert!(reasons[5].contains("circuit breaker, 5 blocks/timeouts in 60 s"), "{reasons:?}");
    // The fix.
    anna.done(
        "hooks.update",
        json!({ "hookId": id, "updates": { "config": { "source": "function handle() { return { decision: 'allow' } }" } } }),
    );
    assert_eq!(anna.done("hooks.toggle", json!({ "hookId": id, "enabled": true }))["enabled"], true);
    anna.heard.clear();
    anna.done("chat.send", json!({ "message": "look" }));
    assert!(!anna.kinds().contains(&"hook.blocked"), "{:?}", anna.kinds());
    assert_eq!(newest(&mut anna)["decision"], "allow");
}

#[test]
fn ui_command_radio_greyed_out_standard_edition() {
    // What the page needs to know is said to everybody who connects.
    let standard = Server::start(scripted(DONE, &format!("{WITH_TOKEN}{STANDARD}")));
    let edition =
        |server: &Server| server.client().call("connect", json!({ "token": TOKEN }))["payload"]["edition"].clone();
    assert_eq!(edition(&standard), "standard");
    assert_eq!(edition(&Server::start(scripted(DONE, WITH_TOKEN))), "lite");
}

#[test]
fn per_turn_cap_hit_max_invocations_per_turn_too_low() {
    // Another call, or what the judge said of the first would count.
    let other = || calls(&[("c2", "list_dir", pintle_domain::json::json!({ "path": "./" }))]);
    let turn = || vec![call("c1"), decides("allow"), other()];
    let replies = [turn(), vec![says("Well.")], turn(), vec![decides("allow"), says("Well.")]].concat();
    let model = Model::giving(replies);
    let server = Server::start(model.env(WITH_TOKEN, ""));
    let mut anna = server.admin("anna");
    let id = anna.done("hooks.create", judge(&json!({ "max_invocations_per_turn": 1 })))["hookId"].clone();
    anna.done("chat.send", json!({ "message": "look" }));
    let rows = anna.done("hooks.history", json!({ "hookId": id }))["executions"].clone();
    assert_eq!((&rows[0]["decision"], &rows[1]["decision"]), (&json!("block"), &json!("allow")), "{rows}");
    assert_eq!(rows[0]["reason"], "max_invocations_per_turn (1) reached", "{rows}");
    // The fix. A new version of the rule asks anew.
    let updates = judge(&json!({ "max_invocations_per_turn": 2 }))["config"].clone();
    anna.done("hooks.update", json!({ "hookId": id, "updates": { "config": updates } }));
    anna.done("chat.send", json!({ "message": "look" }));
    let rows = anna.done("hooks.history", json!({ "hookId": id }))["executions"].clone();
    assert_eq!((&rows[0]["decision"], &rows[1]["decision"]), (&json!("allow"), &json!("allow")), "{rows}");
}

#[test]
fn budget_exceeded_raise_budget_total() {
    let model = Model::giving(vec![call("c1"), says("Well."), call("c2"), decides("allow"), says("Well.")]);
    let server = Server::start(model.env(WITH_TOKEN, ""));
    let (mut anna, mut owner) = (server.admin("anna"), owner(&server));
    anna.done("hooks.create", judge(&json!({})));
    let tenant = pintle_domain::id::DEFAULT_TENANT;
    owner.done("hooks.budget.set", json!({ "tenantId": tenant, "budgetTotal": 0 }));
    anna.done("chat.send", json!({ "message": "look" }));
    let reason = newest(&mut anna)["reason"].as_str().unwrap().to_owned();
    assert!(reason.starts_with("tenant budget exceeded: "), "{reason}");
    // The fix. All of it is spent then, and that is told.
    let needed: u64 = reason.split(' ').nth(3).unwrap().parse().unwrap();
    owner.done("hooks.budget.set", json!({ "tenantId": tenant, "budgetTotal": needed }));
    anna.done("chat.send", json!({ "message": "look" }));
    assert_eq!(newest(&mut anna)["decision"], "allow");
    let told = anna.event("hooks.budget", |_| true);
    let left = anna.done("hooks.budget.get", json!({}));
    assert_eq!((&told["tenantId"], &told["budgetTotal"]), (&json!(tenant), &json!(needed)), "{told}");
    assert_eq!(told["remaining"], left["remaining"], "{told}");
}

#[test]
fn handler_type_event_and_scope_are_required() {
    let server = Server::start(scripted(DONE, WITH_TOKEN));
    let mut anna = server.admin("anna");
    let whole = command("tenant");
    for missing in ["handler_type", "event", "scope"] {
        let mut record = whole.clone();
        record.as_object_mut().unwrap().remove(missing);
        let expected = "handler_type, event, and scope are required".to_owned();
        assert_eq!(anna.refused("hooks.create", record), ("INVALID_REQUEST".to_owned(), expected), "{missing}");
    }
    // The fix.
    assert!(anna.done("hooks.create", whole)["hookId"].is_string());
}
