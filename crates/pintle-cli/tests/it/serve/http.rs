//! Agents behind the published ways to talk to models.

use std::io::{BufRead as _, BufReader};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::http_client::{CHAT, MESSAGES, post, says, send, sent};
use super::server::{Server, TOKEN, WITH_TOKEN};
use crate::run::{DONE, LISTS, scripted};

fn hello() -> Value {
    json!({ "model": "main", "messages": [{ "role": "user", "content": "hello" }] })
}

#[test]
fn an_agent_answers_like_a_model() {
    let server = Server::start(scripted(&[LISTS, DONE, DONE].join(","), ""));
    let answer = post(&server, CHAT, "", &hello());
    let body = answer.json();
    assert_eq!((answer.status, &body["choices"][0]["message"]["content"]), (200, &json!("All done.")), "{body}");
    assert_eq!((&body["object"], &body["choices"][0]["finish_reason"]), (&json!("chat.completion"), &json!("stop")));
    assert!(answer.head.contains("x-pintle-turn: ") && answer.head.contains("x-pintle-hook-ms: "), "{}", answer.head);
    assert_eq!(body["pintle"]["user"]["content"], "hello");
    let mut asked = hello();
    asked["max_tokens"] = json!(100);
    let body = post(&server, "/v1/messages", "", &asked).json();
    assert_eq!((&body["type"], &body["content"][0]["text"]), (&json!("message"), &json!("All done.")), "{body}");
    assert_eq!(body["stop_reason"], "end_turn");
}

#[test]
fn a_refusal_says_what_is_meant_and_whether_to_try_again() {
    let server = Server::start(scripted(DONE, ""));
    for (line, status, part) in [
        ("POST /chat/completions", 404, "the API is at /v1/chat/completions"),
        ("POST //v1/chat/completions", 404, "there is nothing at //v1/chat/completions"),
        ("POST /v1/responses", 404, "as chat completions do, at /v1/chat/completions"),
        ("GET /ws", 400, ""),
        ("GET /v1/chat/completions", 405, "/v1/chat/completions takes POST only"),
        ("POST /v1/chat/completions", 400, "there is no `Content-Type`"),
    ] {
        let answer = send(&server, line, "", b"{}");
        let (is, _, said) = answer.refused();
        assert_eq!((is, answer.header("x-should-retry")), (status, Some("false")), "{line}: {said}");
        assert!(said.contains(part), "{line}: {said}");
    }
    for (header, name) in
        [("X-Pintle-Session: \u{e4}", "x-pintle-session"), ("Idempotency-Key: \u{e9}", "idempotency-key")]
    {
        let (status, _, said) = post(&server, CHAT, &format!("{header}\n"), &hello()).refused();
        assert_eq!((status, said), (400, format!("the header `{name}` takes only ASCII")));
    }
}

#[test]
fn a_quiet_stream_says_now_and_then_that_it_is_alive() {
    let slow = r#"{"delay_ms": 60000, "text": "never", "repeat": true}"#;
    let server = Server::start(scripted(slow, ""));
    let mut asked = says("hello");
    asked["stream"] = json!(true);
    let (began, kind) = (Instant::now(), "Content-Type: application/json\n");
    // Both wait at the same time.
    let streams =
        [CHAT, MESSAGES].map(|path| sent(&server, &format!("POST {path}"), kind, asked.to_string().as_bytes()));
    for stream in streams {
        let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
        assert!(lines.any(|line| line == ": alive"), "it says so");
        assert!((Duration::from_secs(14)..Duration::from_secs(45)).contains(&began.elapsed()), "{:?}", began.elapsed());
    }
}

#[test]
fn an_answer_comes_in_pieces() {
    let server = Server::start(scripted(&[DONE, DONE].join(","), ""));
    let mut asked = hello();
    asked["stream"] = json!(true);
    asked["stream_options"] = json!({ "include_usage": true });
    let answer = post(&server, CHAT, "", &asked);
    assert!(answer.head.contains("content-type: text/event-stream"), "{}", answer.head);
    let events = answer.events();
    let text: String = events.iter().filter_map(|it| it["choices"][0]["delta"]["content"].as_str()).collect();
    assert_eq!(text, "All done.");
    assert_eq!(events[1]["pintle"]["user"]["content"], "hello");
    assert!(events.last().unwrap()["usage"].is_object() && answer.text().trim_end().ends_with("data: [DONE]"));
    asked.as_object_mut().unwrap().remove("stream_options");
    let answer = post(&server, "/v1/messages", "", &asked);
    let kinds: Vec<Value> = answer.events().iter().map(|it| it["type"].clone()).collect();
    assert_eq!(
        kinds,
        [
            "message_start",
            "content_block_start",
            "content_block_delta",
            "content_block_delta",
            "content_block_stop",
            "message_delta",
            "message_stop"
        ]
    );
}

#[test]
fn a_conversation_that_the_host_keeps_goes_on() {
    let server =
        Server::start(scripted(&[DONE, r#"{"when": {"anywhere": "first"}, "text": "I remember."}"#].join(","), ""));
    let say = |text: &str| {
        let body = json!({ "model": "main", "messages": [{ "role": "user", "content": text }] });
        post(&server, CHAT, "X-Pintle-Session: trip\n", &body).json()
    };
    say("first");
    assert_eq!(say("second")["choices"][0]["message"]["content"], "I remember.");
    let mut client = server.connected(json!({}));
    let listed = client.done("sessions.list", json!({ "channel": "http" }));
    assert_eq!(listed["sessions"][0]["key"], "agent:main:http:direct:trip");
    assert_eq!(post(&server, CHAT, "X-Pintle-Session: @x\n", &hello()).status, 400);
}

#[test]
fn a_prompt_that_is_refused_has_a_status_of_its_own() {
    let server = Server::start(scripted(DONE, WITH_TOKEN));
    let source = "function handle() { return { decision: 'block', reason: 'no secrets' } }";
    let rule = json!({
        "event": "user_prompt_submit", "handler_type": "script", "scope": "tenant", "name": "gate",
        "config": { "source": source }
    });
    server.admin("anna").done("hooks.create", rule);
    let bearer = format!("Authorization: Bearer {TOKEN}\n");
    let mut asked = hello();
    for stream in [false, true] {
        asked["stream"] = json!(stream);
        let answer = post(&server, CHAT, &bearer, &asked);
        let error = answer.json()["error"].clone();
        assert_eq!((answer.status, &error["code"]), (403, &json!("hook_blocked")), "{error}");
        assert!(error["message"].as_str().unwrap().contains("no secrets"), "{error}");
        assert!(answer.head.contains("x-should-retry: false"), "{}", answer.head);
    }
    let key = format!("x-api-key: {TOKEN}\n");
    let answer = post(&server, "/v1/messages", &key, &hello());
    assert_eq!((answer.status, &answer.json()["type"]), (403, &json!("error")));
}

#[test]
fn who_asks_and_what_for_is_looked_at_first() {
    let server = Server::start(scripted(DONE, WITH_TOKEN));
    let bearer = format!("Authorization: Bearer {TOKEN}\n");
    let check = |headers: &str, body: Value, status: u16, code: &str| {
        let answer = post(&server, CHAT, headers, &body);
        assert_eq!((answer.status, answer.json()["error"]["code"].as_str()), (status, Some(code)), "{}", answer.text());
    };
    check("", hello(), 401, "unauthorized");
    check("Authorization: Bearer wrong\n", hello(), 401, "unauthorized");
    check("Authorization: Basic eA==\n", hello(), 401, "unauthorized");
    check(&bearer, json!([]), 400, "invalid_request");
    check(&bearer, json!({ "model": "nobody", "messages": hello()["messages"] }), 404, "not_found");
    check(&bearer, json!({ "model": "main", "messages": hello()["messages"], "tools": [{}] }), 400, "invalid_request");
    check(&format!("{bearer}X-Pintle-Tenant: acme\n"), hello(), 403, "tenant_access_revoked");
    let plain = server.http(&format!(
        "POST {CHAT} HTTP/1.1\nHost: localhost\nConnection: close\n{bearer}Content-Type: text/plain\nContent-Length: 2\n\n{{}}"
    ));
    assert!(plain.starts_with("HTTP/1.1 400"), "{plain}");
    let models = server.http(&format!("GET /v1/models HTTP/1.1\nHost: localhost\nConnection: close\n{bearer}\n"));
    assert!(models.contains(r#""id":"main""#), "{models}");
}

#[test]
fn a_model_of_no_provider_is_a_mistake_of_whoever_asks() {
    let server = Server::start(scripted(DONE, ""));
    let asked = json!({ "message": "hello", "modelOverride": "openai/x" });
    let (code, why) = server.connected(json!({})).refused("chat.send", asked);
    assert_eq!(code, "INVALID_REQUEST", "{why}");
    assert!(why.starts_with("invalid request: modelOverride: there is no provider \"openai\""), "{why}");
}
