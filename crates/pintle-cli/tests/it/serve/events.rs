//! What clients are told of rules: changes by whoever, breakers, executions.

use serde_json::{Value, json};

use super::server::{Client, Server, WITH_TOKEN};
use crate::run::{DONE, LISTS, scripted};

const SHUTS: &str = "function handle() { return { decision: 'block', reason: 'shut' } }";

fn rule(scope: &str) -> Value {
    json!({
        "event": "pre_tool_use", "handler_type": "script", "scope": scope, "name": "shuts", "matcher": "^list_dir$",
        "config": { "source": SHUTS },
    })
}

/// The next change that is told: what was done, to which version, by whom.
fn change(client: &mut Client, hook: &Value) -> (String, u64, String) {
    let told = client.event("hooks.changed", |it| it["hookId"] == *hook);
    let text = |name: &str| told[name].as_str().unwrap().to_owned();
    assert!(told["epoch"].as_u64().unwrap() > 0, "{told}");
    (text("action"), told["version"].as_u64().unwrap(), text("actor"))
}

fn done(action: &str, version: u64, actor: &str) -> (String, u64, String) {
    (action.to_owned(), version, actor.to_owned())
}

#[test]
fn a_change_is_told_to_all_who_look() {
    let server = Server::start(scripted(DONE, WITH_TOKEN));
    let (mut anna, mut ben) = (server.admin("anna"), server.admin("ben"));
    let id = anna.done("hooks.create", rule("tenant"))["hookId"].clone();
    for client in [&mut anna, &mut ben] {
        assert_eq!(change(client, &id), done("created", 1, "anna"));
    }
    ben.done("hooks.update", json!({ "hookId": id, "updates": { "priority": 7 } }));
    assert_eq!(change(&mut anna, &id), done("updated", 2, "ben"));
    ben.done("hooks.toggle", json!({ "hookId": id, "enabled": false }));
    assert_eq!(change(&mut anna, &id), done("toggled", 3, "ben"));
    // Somebody else's process changed it.
    let seen = server.env.on_terminal("", &["hooks", "enable", id.as_str().unwrap()]);
    assert_eq!(seen.code, Some(0), "{seen}");
    assert_eq!(change(&mut anna, &id), done("toggled", 4, "cli"));
    anna.done("hooks.delete", json!({ "hookId": id }));
    assert_eq!(change(&mut anna, &id), done("deleted", 0, "anna"));
    let mut owner = server.connected(json!({ "token": super::server::TOKEN, "user_id": "system" }));
    let global = owner.done("hooks.create", rule("global"))["hookId"].clone();
    assert_eq!(change(&mut ben, &global), done("created", 1, "system"));
}

#[test]
fn a_breaker_that_opens_and_closes_is_told() {
    let replies = format!("{}, {DONE}", [LISTS].repeat(5).join(","));
    let server = Server::start(scripted(&replies, &format!("max_iterations = 9\n{WITH_TOKEN}")));
    let mut anna = server.admin("anna");
    let id = anna.done("hooks.create", rule("tenant"))["hookId"].clone();
    change(&mut anna, &id);
    anna.done("chat.send", json!({ "message": "look" }));
    let told = anna.event("hooks.breaker", |it| it["hookId"] == id);
    assert_eq!((&told["state"], &told["reason"]), (&json!("open"), &json!("5 blocks/timeouts in 60 s")), "{told}");
    assert!(told["tenantId"].is_string() && told["at"].is_string(), "{told}");
    assert_eq!(change(&mut anna, &id), done("tripped", 2, "system:breaker"));
    anna.done("hooks.reset", json!({ "hookId": id }));
    assert_eq!(anna.event("hooks.breaker", |it| it["hookId"] == id)["state"], "closed");
    assert_eq!(change(&mut anna, &id), done("reset", 3, "anna"));
}

#[test]
fn a_global_breaker_is_one_for_each_tenant() {
    let replies = format!("{}, {DONE}", [LISTS].repeat(5).join(","));
    let server = Server::start(scripted(&replies, &format!("max_iterations = 9\n{WITH_TOKEN}")));
    let mut owner = server.connected(json!({ "token": super::server::TOKEN, "user_id": "system" }));
    let id = owner.done("hooks.create", rule("global"))["hookId"].clone();
    change(&mut owner, &id);
    let mut anna = server.admin("anna");
    anna.done("chat.send", json!({ "message": "look" }));
    let told = anna.event("hooks.breaker", |it| it["hookId"] == id);
    assert_eq!(
        (&told["state"], &told["tenantId"]),
        (&json!("open"), &json!(pintle_domain::id::DEFAULT_TENANT)),
        "{told}"
    );
    // The rule is as it was; only this tenant's breaker is another.
    assert_eq!(change(&mut owner, &id), done("tripped", 1, "system:breaker"));
    // Owners, who have the rule as it is, see that it does not act here.
    for whose in [json!({}), json!({ "allTenants": true })] {
        assert_eq!(owner.done("overview.get", whose)["guards"]["counts"]["tripped"], 1);
    }
    anna.done("hooks.reset", json!({ "hookId": id }));
    assert_eq!(change(&mut anna, &id), done("tripped", 1, "system:breaker"));
    assert_eq!(change(&mut anna, &id), change_of_reset(&mut owner, &id));
}

fn change_of_reset(owner: &mut Client, id: &Value) -> (String, u64, String) {
    let told = change(owner, id);
    assert_eq!(told, done("reset", 1, "anna"));
    told
}

#[test]
fn executions_are_told_to_those_who_watch() {
    let replies = [LISTS, DONE].repeat(3).join(",");
    let server = Server::start(scripted(&replies, WITH_TOKEN));
    let (mut anna, mut ben) = (server.admin("anna"), server.admin("ben"));
    let id = anna.done("hooks.create", rule("tenant"))["hookId"].clone();
    anna.done("chat.send", json!({ "message": "before anybody watches" }));
    assert_eq!(anna.refused("hooks.watch", json!({})), ("INVALID_REQUEST".into(), "on is required".into()));
    let other = json!({ "on": true, "hookId": "0193a5b0-7000-7000-8000-00000000dead" });
    assert_eq!(anna.refused("hooks.watch", other).0, "NOT_FOUND");
    assert_eq!(anna.done("hooks.watch", json!({ "on": true, "hookId": id })), json!({ "on": true }));
    ben.done("chat.send", json!({ "message": "look" }));
    let told = anna.event("hooks.execution", |_| true);
    assert_eq!((&told["hook_id"], &told["decision"]), (&id, &json!("block")), "{told}");
    // It is the row of the history, whole, and the newest one.
    let history = anna.done("hooks.history", json!({ "limit": 1 }));
    assert_eq!(history["executions"][0], told);
    // Another process works a turn on the same store.
    assert_eq!(server.env.pintle(&["run", "look"]).code, Some(0));
    let told = anna.event("hooks.execution", |_| true);
    assert!(told["session_key"].as_str().unwrap().starts_with("cli:"), "{told}");
    assert_eq!(anna.done("hooks.watch", json!({ "on": false })), json!({ "on": false }));
    ben.done("chat.send", json!({ "message": "look" }));
    assert!(ben.heard.iter().chain(&anna.heard).all(|frame| frame["event"] != "hooks.execution"));
}

#[test]
fn below_admin_executions_are_those_of_ones_own_sessions() {
    let replies = [LISTS, DONE].repeat(2).join(",");
    let env = scripted(&replies, "[agent_hooks]\ndir = 'rules'\n");
    let file = format!(
        "[[hook]]\nname = 'shuts'\nevent = 'pre_tool_use'\nhandler_type = 'script'\nscope = 'tenant'\n\
         matcher = '^list_dir$'\n[hook.config]\nsource = \"{SHUTS}\"\n"
    );
    env.write("config/pintle/rules/r.toml", &file);
    let server = Server::start(env);
    let mut local = server.connected(json!({}));
    local.done("hooks.watch", json!({ "on": true }));
    // Whose session it is nobody here knows.
    assert_eq!(server.env.pintle(&["run", "look"]).code, Some(0));
    local.done("chat.send", json!({ "message": "look" }));
    let told = local.event("hooks.execution", |_| true);
    assert_eq!(told["session_key"], "agent:main:ws:local:main", "{told}");
    let history = local.done("hooks.history", json!({}));
    assert_eq!(history["executions"], json!([told]));
}
