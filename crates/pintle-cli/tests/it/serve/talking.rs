//! Conversations over the socket.

use serde_json::{Value, json};

use super::server::{Server, WITH_TOKEN};
use crate::run::{DONE, LISTS, scripted};

const KEY: &str = "agent:main:ws:direct:trip";

#[test]
fn a_turn_is_told_while_it_is_worked() {
    let server = Server::start(scripted(&[LISTS, DONE].join(","), ""));
    let mut client = server.connected(json!({}));
    let said = client.done("chat.send", json!({ "sessionKey": KEY, "message": "look", "stream": true }));
    assert_eq!(said["content"], "All done.");
    let kinds: Vec<&str> = client.kinds().into_iter().filter(|kind| *kind != "activity").collect();
    assert_eq!(kinds, ["run.started", "tool.call", "tool.result", "chunk", "chunk", "run.completed"]);
    let of = |kind: &str| client.heard.iter().find(|it| it["payload"]["type"] == kind).unwrap()["payload"].clone();
    assert_eq!(of("run.started")["payload"]["message"], "look");
    assert_eq!(of("tool.call")["payload"]["name"], "list_dir");
    assert_eq!(of("run.completed")["runId"], said["runId"]);
    assert_eq!((of("chunk")["sessionKey"].clone(), of("chunk")["userId"].clone()), (json!(KEY), json!("local")));
    let numbers: Vec<u64> = client.heard.iter().map(|frame| frame["seq"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=numbers.len() as u64).collect::<Vec<_>>());
    let history = client.done("chat.history", json!({ "sessionKey": KEY }));
    let roles: Vec<&Value> = history["messages"].as_array().unwrap().iter().map(|it| &it["role"]).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "assistant"]);
    let listed = client.done("sessions.list", json!({}));
    assert_eq!((&listed["total"], &listed["sessions"][0]["key"]), (&json!(1), &json!(KEY)));
}

#[test]
fn white_space_is_no_message() {
    let server = Server::start(scripted(DONE, ""));
    let mut client = server.connected(json!({}));
    for method in ["chat.send", "chat.inject"] {
        let refused = client.refused(method, json!({ "sessionKey": KEY, "message": " \n" }));
        assert_eq!(refused, ("INVALID_REQUEST".into(), "message must not be empty".into()));
    }
    assert_eq!(client.done("sessions.list", json!({}))["total"], 0);
}

#[test]
fn a_call_whose_arguments_cannot_be_read_is_told_like_others() {
    let call = json!({ "tool_calls": [{ "name": "list_dir", "id": "c1", "arguments": "[1]" }] });
    let server = Server::start(scripted(&[&call.to_string(), DONE].join(","), ""));
    let mut client = server.connected(json!({}));
    client.done("chat.send", json!({ "sessionKey": KEY, "message": "look" }));
    let is_of_call = |it: &&Value| ["tool.call", "tool.result"].iter().any(|kind| it["type"] == *kind);
    let told: Vec<&Value> = client.heard.iter().map(|it| &it["payload"]).filter(is_of_call).collect();
    let call = json!({ "name": "list_dir", "id": "c1", "arguments": {} });
    let result = "the tool did not run: the arguments are not a JSON object";
    let result = json!({ "name": "list_dir", "id": "c1", "is_error": true, "arguments": {}, "result": result });
    let expected = [json!("tool.call"), call, json!("tool.result"), result];
    assert_eq!(told.iter().flat_map(|it| [&it["type"], &it["payload"]]).cloned().collect::<Vec<_>>(), expected);
}

#[test]
fn nobody_sees_the_conversations_of_another() {
    let server = Server::start(scripted(&[DONE; 4].join(","), WITH_TOKEN));
    let (mut anna, mut ben) = (server.admin("anna"), server.admin("ben"));
    anna.done("chat.send", json!({ "sessionKey": KEY, "message": "a" }));
    let run = ben.done("chat.send", json!({ "sessionKey": KEY, "message": "b" }))["runId"].clone();
    let texts = |client: &mut super::server::Client, key: &str| {
        let history = client.done("chat.history", json!({ "sessionKey": key }));
        history["messages"][0]["content"].as_str().unwrap().to_owned()
    };
    assert_eq!((texts(&mut anna, KEY), texts(&mut ben, KEY)), ("a".into(), "b".into()));
    // Administrators see those of others under another name, and say nothing there.
    assert_eq!(texts(&mut anna, "agent:main:ws:ben:trip"), "b");
    let theirs = json!({ "sessionKey": "agent:main:ws:ben:trip", "message": "c" });
    assert_eq!(anna.refused("chat.send", theirs).0, "UNAUTHORIZED");
    // What is another's, or nowhere, is not taken for something that is idle.
    assert_eq!(ben.done("chat.abort", json!({ "runId": run }))["aborted"], false);
    let mut carl =
        server.connected(json!({ "token": super::people::People::key(&server, "carl", &["operator.write"]) }));
    assert_eq!(carl.refused("chat.abort", json!({ "runId": run })).0, "NOT_FOUND");
    for method in ["chat.abort", "chat.inject"] {
        let mut nowhere = json!({ "sessionKey": "agent:main:ws:direct:nowhere" });
        if method == "chat.inject" {
            nowhere["message"] = json!("x");
        }
        assert_eq!(carl.refused(method, nowhere).0, "NOT_FOUND", "{method}");
    }
}

#[test]
fn what_is_said_meanwhile_comes_in_and_a_turn_can_be_stopped() {
    let slow = r#"{"delay_ms": 60000, "text": "never"}"#;
    let server = Server::start(scripted(slow, ""));
    let (mut client, mut other) = (server.connected(json!({})), server.connected(json!({})));
    let sent = client.ask("chat.send", json!({ "sessionKey": KEY, "message": "wait" }));
    other.event("agent", |it| it["type"] == "activity" && it["payload"]["phase"] == "thinking");
    let status = other.done("chat.session.status", json!({ "sessionKey": KEY }));
    assert_eq!((&status["isRunning"], &status["activity"]["phase"]), (&json!(true), &json!("thinking")));
    assert_eq!(other.done("chat.send", json!({ "sessionKey": KEY, "message": "more" }))["injected"], true);
    assert_eq!(other.done("chat.inject", json!({ "sessionKey": KEY, "message": "more" }))["ok"], true);
    let aborted = other.done("chat.abort", json!({ "sessionKey": KEY }));
    assert_eq!((&aborted["aborted"], &aborted["runIds"][0]), (&json!(true), &status["runId"]));
    assert_eq!(client.answer(&sent)["payload"], json!({ "cancelled": true }));
    assert_eq!(other.done("chat.session.status", json!({ "sessionKey": KEY }))["isRunning"], false);
    assert_eq!(other.refused("chat.inject", json!({ "sessionKey": KEY, "message": "late" })).0, "FAILED_PRECONDITION");
}

#[test]
fn a_status_names_the_tool_that_runs() {
    let waits = "until test -e go; do sleep 0.05; done";
    let call = json!({ "tool_calls": [{ "name": "exec", "arguments": { "command": waits } }] });
    let server = Server::start(scripted(&[&call.to_string(), DONE].join(","), "tools = ['exec']\n"));
    let mut client = server.connected(json!({}));
    let sent = client.ask("chat.send", json!({ "sessionKey": KEY, "message": "wait" }));
    client.event("agent", |it| it["type"] == "tool.call");
    let status = client.done("chat.session.status", json!({ "sessionKey": KEY }));
    assert_eq!(status["activity"], json!({ "phase": "tool", "tool": "exec", "iteration": 1 }), "{status}");
    server.env.write("here/go", "");
    assert_eq!(client.answer(&sent)["payload"]["content"], "All done.");
}

#[test]
fn a_turn_goes_on_when_its_client_is_gone() {
    let server = Server::start(scripted(r#"{"delay_ms": 300, "text": ["a", "b", "c"]}"#, ""));
    let (mut client, mut other) = (server.connected(json!({})), server.connected(json!({})));
    client.ask("chat.send", json!({ "sessionKey": KEY, "message": "go", "stream": true }));
    other.event("agent", |it| it["type"] == "chunk");
    drop(client);
    assert_eq!(other.event("agent", |it| it["type"] == "run.completed")["payload"]["content"], "abc");
}

#[test]
fn what_is_wrong_with_a_message_is_said() {
    let server = Server::start(scripted(DONE, ""));
    let mut client = server.connected(json!({}));
    let mut check = |params: Value, code: &str, message: &str| {
        let (found, text) = client.refused("chat.send", params);
        assert!(found == code && text.contains(message), "{found}: {text}");
    };
    check(json!({}), "INVALID_REQUEST", "message is required");
    check(json!({ "message": "x".repeat(32_001) }), "INVALID_REQUEST", "message exceeds 32000 characters (got 32001)");
    check(json!({ "message": "x", "mesage": "y" }), "INVALID_REQUEST", "unknown field \"mesage\"");
    check(json!({ "message": "x", "history": "y" }), "INVALID_REQUEST", "field \"history\" must be a list of messages");
    check(json!({ "message": "x", "sessionKey": "nonsense" }), "INVALID_REQUEST", "invalid session key");
    check(json!({ "message": "x", "sessionKey": "agent:nobody:ws:direct:a" }), "NOT_FOUND", "agent not found: nobody");
}

#[test]
fn a_user_sends_no_more_than_they_may() {
    let server = Server::start(scripted(r#"{"text": "ok", "repeat": true}"#, ""));
    let mut client = server.connected(json!({}));
    for _ in 0..5 {
        client.done("chat.send", json!({ "message": "x" }));
    }
    let answer = client.call("chat.send", json!({ "message": "x" }));
    assert_eq!(answer["error"]["code"], "RESOURCE_EXHAUSTED", "{answer}");
    assert!(answer["error"]["retryAfterMs"].as_u64().unwrap() <= 3000, "{answer}");
}

#[test]
fn a_conversation_begins_anew_or_goes_on_from_its_last_messages() {
    let server = Server::start(scripted(&[DONE].repeat(4).join(","), WITH_TOKEN));
    let mut anna = server.admin("anna");
    let key = "agent:main:ws:direct:long";
    let said = |client: &mut super::server::Client| -> Vec<String> {
        let history = client.done("chat.history", json!({ "sessionKey": key }));
        let text = |message: &serde_json::Value| message["content"].as_str().unwrap().to_owned();
        history["messages"].as_array().unwrap().iter().map(text).collect()
    };
    assert_eq!(anna.refused("sessions.reset", json!({ "key": key })).0, "NOT_FOUND");
    for message in ["one", "two", "three"] {
        anna.done("chat.send", json!({ "sessionKey": key, "message": message }));
    }
    assert_eq!(anna.refused("sessions.compact", json!({ "key": key, "keepLast": 0 })).0, "INVALID_REQUEST");
    assert_eq!(anna.done("sessions.compact", json!({ "key": key })), json!({ "ok": true }));
    assert_eq!(said(&mut anna), ["two", "All done.", "three", "All done."]);
    assert_eq!(anna.done("sessions.compact", json!({ "key": key, "keepLast": 1 })), json!({ "ok": true }));
    assert_eq!(said(&mut anna), ["All done."]);
    assert_eq!(anna.done("sessions.reset", json!({ "key": key })), json!({ "ok": true }));
    assert_eq!(said(&mut anna), Vec::<String>::new());
    // It goes on as if nothing had been said.
    assert_eq!(anna.done("chat.send", json!({ "sessionKey": key, "message": "four" }))["content"], "All done.");
    assert_eq!(said(&mut anna), ["four", "All done."]);
    // Nobody below admin does this to somebody else.
    let mut ben = server.admin("ben");
    assert_eq!(ben.refused("sessions.reset", json!({ "key": key })).0, "NOT_FOUND");
}
