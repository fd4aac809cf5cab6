//! Runs that go on in another process, or in a further turn: to clients they are the run that they know.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::server::{Client, Server, WITH_TOKEN};
use crate::run::scripted;

const KEY: &str = "agent:main:ws:direct:trip";

/// The runs that events about the agent `agent` name.
fn runs(client: &Client, agent: &str) -> BTreeSet<String> {
    let events = client.heard.iter().filter(|frame| frame["event"] == "agent" && frame["payload"]["agentId"] == agent);
    events.map(|frame| frame["payload"]["runId"].as_str().unwrap().to_owned()).collect()
}

fn id(value: &Value) -> BTreeSet<String> {
    BTreeSet::from([value.as_str().unwrap().to_owned()])
}

#[test]
fn a_turn_that_goes_on_after_a_kill_is_the_same_run() {
    let looks = r#"{"tool_calls": [{"name": "list_dir", "arguments": {"path": "."}}], "repeat": true}"#;
    let done = r#"{"when": {"tool_result": ""}, "text": "All done.", "repeat": true}"#;
    let config = format!("ask = ['list_dir']\n{WITH_TOKEN}");
    let server = Server::start(scripted(&[done, looks].join(","), &config));
    let message = json!({ "sessionKey": KEY, "message": "look", "messageId": "m1" });
    let mut anna = server.admin("anna");
    anna.ask("chat.send", message.clone());
    let started = anna.event("agent", |it| it["type"] == "run.started")["runId"].clone();
    let approval = anna.event("approvals.created", |_| true)["id"].clone();
    // Asked again after a kill, it waits as before; once somebody decides, it goes on.
    let server = server.again();
    let mut anna = server.admin("anna");
    let sent = anna.ask("chat.send", message);
    anna.event("agent", |it| it["type"] == "approval.waiting");
    anna.done("approvals.approve", json!({ "id": approval }));
    let answer = anna.answer_of(&sent)["payload"].clone();
    assert_eq!((&answer["content"], &answer["runId"]), (&json!("All done."), &started), "{answer}");
    assert_eq!(runs(&anna, "main"), id(&started));
}
