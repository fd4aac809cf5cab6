//! Calls that wait for a person, answered over the socket and elsewhere.

use serde_json::json;

use super::server::{Server, WITH_TOKEN};
use crate::env::TestEnv;
use crate::run::{DONE, LISTS, scripted};

const KEY: &str = "agent:main:ws:direct:trip";

fn asking() -> TestEnv {
    let rest = format!("ask = ['list_dir']\n{WITH_TOKEN}");
    scripted(&[LISTS, DONE].repeat(2).join(","), &rest)
}

#[test]
fn an_answer_lets_exactly_this_call_run() {
    let server = Server::start(asking());
    let (mut anna, mut ben) = (server.admin("anna"), server.admin("ben"));
    let sent = anna.ask("chat.send", json!({ "sessionKey": KEY, "message": "look" }));
    let created = ben.event("approvals.created", |_| true);
    let id = created["id"].as_str().unwrap().to_owned();
    assert_eq!((&created["tool"], &created["sessionKey"]), (&json!("list_dir"), &json!("agent:main:ws:anna:trip")));
    // What is said meanwhile does not undo it.
    let (code, _) = anna.refused("chat.send", json!({ "sessionKey": KEY, "message": "hurry" }));
    assert_eq!(code, "FAILED_PRECONDITION");
    // Nor is it left behind when somebody deletes the conversation.
    assert_eq!(anna.refused("sessions.delete", json!({ "key": KEY })).0, "FAILED_PRECONDITION");
    let listed = ben.done("approvals.list", json!({}));
    assert_eq!(listed["approvals"][0]["id"], json!(id));
    assert_eq!(ben.done("approvals.approve", json!({ "id": id }))["approval"]["state"], "approved");
    assert_eq!(anna.answer(&sent)["payload"]["content"], "All done.");
    let late = anna.refused("approvals.refuse", json!({ "id": id }));
    assert_eq!(late, ("FAILED_PRECONDITION".into(), "already approved by ben".into()));
    assert!(anna.kinds().contains(&"approval.decided"));
    let waited = anna.event("agent", |event| event["type"] == "approval.waiting");
    assert_eq!(waited["payload"]["toolCallId"], created["tool_call_id"]);
    assert_eq!(anna.refused("approvals.get", json!({ "id": "nothing" })).0, "NOT_FOUND");
}

#[test]
fn a_no_reaches_the_model_and_an_abort_leaves_the_question() {
    let server = Server::start(asking());
    let mut anna = server.admin("anna");
    let sent = anna.ask("chat.send", json!({ "sessionKey": KEY, "message": "look" }));
    let id = anna.event("approvals.created", |_| true)["id"].clone();
    anna.done("approvals.refuse", json!({ "id": id, "reason": "not there" }));
    assert_eq!(anna.answer(&sent)["payload"]["content"], "All done.");
    let history = anna.done("chat.history", json!({ "sessionKey": KEY }));
    assert!(history["messages"][2]["content"].as_str().unwrap().contains("not there"), "{history}");
    let sent = anna.ask("chat.send", json!({ "sessionKey": KEY, "message": "again" }));
    anna.event("approvals.created", |_| true);
    assert_eq!(anna.done("chat.abort", json!({ "sessionKey": KEY }))["aborted"], true);
    assert_eq!(anna.answer(&sent)["payload"], json!({ "cancelled": true }));
    assert_eq!(anna.done("approvals.list", json!({})), json!({ "approvals": [] }));
}

#[test]
fn an_answer_from_a_terminal_counts_too() {
    let server = Server::start(asking());
    let mut anna = server.admin("anna");
    let sent = anna.ask("chat.send", json!({ "sessionKey": KEY, "message": "look" }));
    let id = anna.event("approvals.created", |_| true)["id"].as_str().unwrap().to_owned();
    let seen = server.env.on_terminal("", &["approvals", "approve", &id]);
    assert_eq!(seen.code, Some(0), "{seen:?}");
    assert_eq!(anna.answer(&sent)["payload"]["content"], "All done.");
}
