//! Runs that go on in another process: to clients they are the run that they know, and the log says that they were cut.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::http_client::{CHAT, content, post, says};
use super::server::{Client, Server, TOKEN, WITH_TOKEN};
use crate::env::PINTLE;
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

#[test]
fn a_turn_that_a_kill_cut_is_told_at_the_next_start() {
    let slow = r#"{"delay_ms": 60000, "text": "never"}"#;
    let mut server = Server::start(scripted(slow, WITH_TOKEN));
    let mut anna = server.admin("anna");
    anna.ask("chat.send", json!({ "sessionKey": KEY, "message": "wait" }));
    let started = anna.event("agent", |it| it["type"] == "run.started")["runId"].clone();
    server.signal(nix::sys::signal::Signal::SIGKILL);
    server.ended();
    let env = server.into_env();
    let mut command = env.command(PINTLE);
    command.args(["serve", "--listen", "127.0.0.1:0"]).env("PINTLE_TEST_TOKEN", TOKEN);
    let (_server, seen) = Server::launch(env, command, "listening at http");
    let line = seen.lines().find(|line| line.contains("gateway.turn_cut")).unwrap_or_else(|| panic!("{seen}"));
    assert!(line.contains("it goes on") && line.contains(started.as_str().unwrap()), "{line}");
}

#[test]
fn a_changed_script_is_taken_without_a_restart() {
    let mut server = Server::start(scripted(r#"{"text": "old", "repeat": true}"#, ""));
    assert_eq!(content(&post(&server, CHAT, "", &says("go"))), "old");
    server.env.write("config/pintle/replies.json", r#"{"replies": [{"text": "new", "repeat": true}]}"#);
    server.until("the new configuration is in force");
    assert_eq!(content(&post(&server, CHAT, "", &says("go"))), "new");
}
