//! Rules over the socket: the published samples, and what changes at once.

use serde_json::{Value, json};

use super::server::{Client, Server, TOKEN, WITH_TOKEN};
use crate::run::{DONE, LISTS, scripted};

/// The samples of the published page, as they stand there but for the ids of hooks.
const CREATE: &str = r#"{
  "type": "req", "id": "1", "method": "hooks.create",
  "params": {
    "event": "pre_tool_use",
    "handler_type": "http",
    "scope": "tenant",
    "name": "Safety webhook",
    "matcher": "^exec$",
    "config": { "url": "https://safety.internal/check" }
  }
}"#;
const TOGGLE: &str = r#"{ "type": "req", "id": "2", "method": "hooks.toggle",
  "params": { "hookId": "uuid...", "enabled": false } }"#;
const TEST: &str = r#"{
  "type": "req", "id": "3", "method": "hooks.test",
  "params": {
    "config": { "event": "pre_tool_use", "handler_type": "command",
                "scope": "tenant", "config": { "command": "cat" } },
    "sampleEvent": { "toolName": "exec", "toolInput": { "cmd": "ls" } }
  }
}"#;

/// The next frame that answers a request, as it came: events come in between.
fn answer(client: &mut Client) -> String {
    loop {
        let frame = client.text().unwrap();
        if frame.starts_with(r#"{"type":"res""#) {
            return frame;
        }
    }
}

#[test]
fn the_published_samples_are_answered_as_published() {
    let server = Server::start(scripted(DONE, WITH_TOKEN));
    let mut client = server.connected(json!({ "token": TOKEN, "user_id": "system" }));
    client.send(CREATE);
    let created = answer(&mut client);
    let id = created.split('"').rev().nth(1).unwrap().to_owned();
    assert_eq!(created, format!(r#"{{"type":"res","id":"1","ok":true,"payload":{{"hookId":"{id}"}}}}"#));
    client.send(&TOGGLE.replace("uuid...", &id));
    assert_eq!(
        answer(&mut client),
        format!(r#"{{"type":"res","id":"2","ok":true,"payload":{{"hookId":"{id}","enabled":false}}}}"#)
    );
    client.send(TEST);
    let tested: Value = serde_json::from_str(&answer(&mut client)).unwrap();
    assert_eq!(tested["payload"]["result"]["decision"], "allow", "{tested}");
    assert!(tested["payload"]["result"]["stdout"].as_str().unwrap().contains("\"cmd\":\"ls\""), "{tested}");
    // No audit row was written.
    assert_eq!(client.done("hooks.history", json!({})), json!({ "executions": [], "nextCursor": "" }));
}

#[test]
fn a_rule_that_is_made_over_the_socket_acts_at_once() {
    let server = Server::start(scripted(&[LISTS, DONE].repeat(2).join(","), WITH_TOKEN));
    let mut client = server.admin("anna");
    let source = "function handle() { return { decision: 'block', reason: 'not over the wire' } }";
    let rule = json!({
        "event": "pre_tool_use", "handler_type": "script", "scope": "tenant", "name": "no-lists",
        "matcher": "^list_dir$", "config": { "source": source }
    });
    client.done("hooks.create", rule);
    let said = client.done("chat.send", json!({ "sessionKey": "agent:main:ws:direct:one", "message": "look" }));
    assert_eq!(said["content"], "All done.");
    let blocked = client.event("agent", |payload| payload["type"] == "hook.blocked");
    assert_eq!(
        (&blocked["payload"]["name"], &blocked["payload"]["reason"]),
        (&json!("no-lists"), &json!("not over the wire"))
    );
    let history = client.done("hooks.history", json!({ "decision": "block" }));
    assert_eq!(history["executions"].as_array().unwrap().len(), 1, "{history}");
}

#[test]
fn a_secret_in_a_reason_is_masked_for_people_and_not_for_the_model() {
    let key = "agent:main:ws:direct:one";
    let server = Server::start(scripted(&[LISTS, DONE].join(","), WITH_TOKEN));
    let mut client = server.admin("anna");
    let source = "function handle() { return { decision: 'block', reason: 'not with sk-abcdEFGH1234' } }";
    let rule = json!({
        "event": "pre_tool_use", "handler_type": "script", "scope": "tenant", "name": "no-lists",
        "matcher": "^list_dir$", "config": { "source": source }
    });
    client.done("hooks.create", rule);
    client.done("chat.send", json!({ "sessionKey": key, "message": "look" }));
    let blocked = client.event("agent", |payload| payload["type"] == "hook.blocked");
    assert_eq!(blocked["payload"]["reason"], "not with [REDACTED]");
    let history = client.done("chat.history", json!({ "sessionKey": key })).to_string();
    assert!(history.contains("no-lists: not with sk-abcdEFGH1234"), "{history}");
}
