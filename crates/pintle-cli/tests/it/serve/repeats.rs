//! Requests that come a second time: nothing is done twice.

use std::io::Read as _;

use serde_json::{Value, json};

use super::http_client::{CHAT, content, post, says, sent};
use super::server::{Server, WITH_TOKEN};
use crate::env::TestEnv;
use crate::run::{DONE, scripted};

/// An agent that writes one more line into `done.txt` each time that it is told to.
pub(super) fn writes(more: &str, rest: &str) -> TestEnv {
    let call = r#"{"tool_calls": [{"name": "exec", "arguments": {"command": "echo once >>done.txt"}}]}"#;
    scripted(&[call, more].join(","), &format!("tools = ['exec']\n{rest}"))
}

/// How often it did.
pub(super) fn times(env: &TestEnv) -> usize {
    let done = env.path("here/done.txt");
    std::fs::read_to_string(done).map(|text| text.lines().count()).unwrap_or_default()
}

#[test]
fn a_second_request_of_a_name_gets_what_came_of_the_first() {
    let server = Server::start(writes(DONE, ""));
    let key = "Idempotency-Key: trip-1\n";
    let first = post(&server, CHAT, key, &says("go"));
    let second = post(&server, CHAT, key, &says("go"));
    assert_eq!((content(&first), content(&second)), ("All done.".into(), "All done.".into()));
    assert_eq!(first.json()["id"], second.json()["id"]);
    assert_eq!(first.json()["pintle"], second.json()["pintle"]);
    let mut streamed = says("go");
    streamed["stream"] = json!(true);
    let told = post(&server, CHAT, key, &streamed).events();
    let text: String = told.iter().filter_map(|it| it["choices"][0]["delta"]["content"].as_str()).collect();
    assert_eq!(text, "All done.");
    assert_eq!(times(&server.env), 1);
    let other = post(&server, CHAT, key, &says("something else")).refused();
    assert_eq!((other.0, other.1.as_str()), (422, "idempotency_key_reused"), "{}", other.2);
    // In another session it is another request.
    let session = format!("{key}X-Pintle-Session: trip\n");
    assert_eq!(post(&server, CHAT, &session, &says("go")).status, 502);
}

#[test]
fn a_second_request_joins_the_run_of_the_first() {
    let slow = r#"{"delay_ms": 700, "text": ["a", "b", "c"]}"#;
    let server = Server::start(writes(slow, ""));
    let mut streamed = says("go");
    streamed["stream"] = json!(true);
    let headers = "Content-Type: application/json\nIdempotency-Key: one\n";
    let mut first = sent(&server, &format!("POST {CHAT}"), headers, streamed.to_string().as_bytes());
    let mut begun = [0; 64];
    first.read_exact(&mut begun).unwrap();
    let second = post(&server, CHAT, "Idempotency-Key: one\n", &says("go"));
    assert_eq!(content(&second), "abc");
    let mut rest = String::new();
    first.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("\"c\"") && rest.contains("[DONE]"), "{rest}");
    assert_eq!(times(&server.env), 1);
}

/// A model that calls once, and then says `then`.
fn calls_and(then: &str) -> String {
    let call =
        r#"{"repeat": true, "tool_calls": [{"name": "exec", "arguments": {"command": "echo once >>done.txt"}}]}"#;
    format!(r#"{{"when": {{"tool_result": ""}}, "repeat": true, {then}}}, {call}"#)
}

#[test]
fn what_is_finished_is_known_after_a_restart_and_what_was_cut_is_not_done_again() {
    let env = scripted(&calls_and(r#""text": "All done.""#), "tools = ['exec']\n");
    let server = Server::start(env);
    let first = post(&server, CHAT, "Idempotency-Key: one\n", &says("go"));
    assert_eq!(content(&first), "All done.");
    let never = format!("{{\"replies\": [{}]}}", calls_and(r#""delay_ms": 60000, "text": "never""#));
    server.env.write("config/pintle/replies.json", &never);
    let server = server.again();
    let name = "Idempotency-Key: two\nX-Pintle-Session: s\n";
    let headers = format!("Content-Type: application/json\n{name}");
    let cut = sent(&server, &format!("POST {CHAT}"), &headers, says("go").to_string().as_bytes());
    while times(&server.env) < 2 {
        std::thread::yield_now();
    }
    let done = format!("{{\"replies\": [{}]}}", calls_and(r#""text": "Done at last.""#));
    server.env.write("config/pintle/replies.json", &done);
    let server = server.again();
    drop(cut);
    let again = post(&server, CHAT, "Idempotency-Key: one\n", &says("go"));
    assert_eq!((content(&again), again.json()["id"].clone()), ("All done.".into(), first.json()["id"].clone()));
    // Its turn goes on where it was, and the call that ran is not run again.
    assert_eq!(content(&post(&server, CHAT, name, &says("go"))), "Done at last.");
    assert_eq!(times(&server.env), 2);
}

#[test]
fn a_session_works_one_turn_at_a_time() {
    let slow = r#"{"delay_ms": 60000, "text": "never"}"#;
    let server = Server::start(scripted(slow, ""));
    let mut client = server.connected(json!({}));
    let headers = "Content-Type: application/json\nX-Pintle-Session: trip\n";
    let first = sent(&server, &format!("POST {CHAT}"), headers, says("go").to_string().as_bytes());
    client.event("agent", |it| it["payload"]["phase"] == "thinking");
    let busy = post(&server, CHAT, "X-Pintle-Session: trip\n", &says("more"));
    assert_eq!((busy.refused().1.as_str(), busy.header("x-should-retry")), ("session_busy", Some("false")));
    // Whoever goes away from a conversation that is kept leaves the turn to go on.
    drop(first);
    let status = client.done("chat.session.status", json!({ "sessionKey": "agent:main:http:direct:trip" }));
    assert_eq!(status["isRunning"], true);
}

#[test]
fn a_turn_that_nobody_keeps_ends_with_its_last_client() {
    let slow = r#"{"delay_ms": 60000, "text": "never", "repeat": true}"#;
    let server = Server::start(scripted(slow, ""));
    let mut client = server.connected(json!({}));
    let mut body = says("go");
    for stream in [true, false] {
        body["stream"] = json!(stream);
        let headers = "Content-Type: application/json\n";
        let first = sent(&server, &format!("POST {CHAT}"), headers, body.to_string().as_bytes());
        client.event("agent", |it| it["payload"]["phase"] == "thinking");
        drop(first);
        client.event("agent", |it| it["type"] == "run.cancelled");
    }
}

#[test]
fn a_message_of_the_socket_that_comes_twice_is_one() {
    let server = Server::start(writes(DONE, WITH_TOKEN));
    let mut anna = server.admin("anna");
    let message = json!({ "sessionKey": "agent:main:ws:direct:trip", "message": "go", "messageId": "m1" });
    let (first, second) = (anna.ask("chat.send", message.clone()), anna.ask("chat.send", message.clone()));
    let answers: Vec<Value> = [first, second].iter().map(|id| anna.answer_of(id)["payload"].clone()).collect();
    assert_eq!((&answers[0]["content"], &answers[0]), (&json!("All done."), &answers[1]));
    assert_eq!(server.admin("anna").done("chat.send", message), answers[0]);
    assert_eq!(times(&server.env), 1);
    let history = anna.done("chat.history", json!({ "sessionKey": "agent:main:ws:direct:trip" }));
    assert_eq!(history["messages"].as_array().unwrap().len(), 4);
}

#[test]
fn a_message_of_the_socket_that_failed_is_worked_again_only_if_it_did_nothing() {
    let fails = r#"{"error": {"kind": "final", "message": "no"}}"#;
    let message = json!({ "sessionKey": "agent:main:ws:direct:trip", "message": "go", "messageId": "m1" });
    let server = Server::start(writes(&[fails, DONE].join(","), WITH_TOKEN));
    let mut anna = server.admin("anna");
    let failed = anna.refused("chat.send", message.clone());
    assert_eq!(anna.refused("chat.send", message.clone()), failed);
    assert_eq!(times(&server.env), 1);
    let server = Server::start(scripted(&[fails, DONE].join(","), WITH_TOKEN));
    let mut anna = server.admin("anna");
    anna.refused("chat.send", message.clone());
    assert_eq!(anna.done("chat.send", message)["content"], "All done.");
}

#[test]
fn a_message_of_the_socket_that_was_refused_is_another_one_once_it_is_right() {
    let server = Server::start(scripted(DONE, WITH_TOKEN));
    let mut anna = server.admin("anna");
    let message = |media: Value| {
        let key = "agent:main:ws:direct:trip";
        json!({ "sessionKey": key, "message": "go", "messageId": "m1", "media": media })
    };
    anna.refused("chat.send", message(json!(["upload:nowhere"])));
    assert_eq!(anna.done("chat.send", message(json!([])))["content"], "All done.");
}

#[test]
fn what_failed_before_anything_was_done_may_be_tried_again() {
    let fails = r#"{"error": {"kind": "final", "message": "no"}}"#;
    let server = Server::start(scripted(&[fails, DONE].join(","), ""));
    let key = "Idempotency-Key: one\n";
    let failed = post(&server, CHAT, key, &says("go"));
    // A wrong key stays wrong until somebody mends it.
    assert_eq!((failed.status, failed.header("x-should-retry")), (502, Some("false")), "{}", failed.text());
    assert!(failed.header("x-pintle-turn").is_some(), "{}", failed.head);
    assert_eq!(content(&post(&server, CHAT, key, &says("go"))), "All done.");
    // After an effect nobody is to try again.
    let server = Server::start(writes(fails, ""));
    let failed = post(&server, CHAT, key, &says("go"));
    assert_eq!((failed.status, failed.header("x-should-retry")), (502, Some("false")), "{}", failed.text());
    assert_eq!(post(&server, CHAT, key, &says("go")).status, 502);
    assert_eq!(times(&server.env), 1);
}
