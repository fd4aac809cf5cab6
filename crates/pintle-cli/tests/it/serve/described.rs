//! What is served is what the documents say, and the numbers are there.

use serde_json::{Value, json};

use super::http_client::{Answer, CHAT, MESSAGES, get, post, says, send};
use super::people::signed_in;
use super::server::{Server, TOKEN, WITH_TOKEN};
use crate::env::{BEFORE_TOOL, answering};
use crate::run::{DONE, GUARD, LISTS, scripted};

/// The schema of one answer, ready to be used.
fn schema(document: &Value, path: &str, verb: &str, status: u16) -> Option<Value> {
    let answer = &document["paths"][path][verb]["responses"][status.to_string()];
    assert!(answer.is_object(), "{verb} {path} {status} is not described");
    let mut schema = answer["content"]["application/json"]["schema"].clone();
    let schema_object = schema.as_object_mut()?;
    schema_object.insert("components".into(), document["components"].clone());
    Some(schema)
}

fn check(document: &Value, path: &str, verb: &str, answer: &Answer) {
    let Some(schema) = schema(document, path, verb, answer.status) else { return };
    let validator = jsonschema::validator_for(&schema).unwrap();
    let body = answer.json();
    let problems: Vec<String> = validator.iter_errors(&body).map(|error| error.to_string()).collect();
    assert!(problems.is_empty(), "{verb} {path} {}: {problems:#?}\n{body:#}", answer.status);
}

#[test]
fn live_answers_are_as_described() {
    let server = Server::start(scripted(&[DONE; 8].join(","), WITH_TOKEN));
    let bearer = format!("Authorization: Bearer {TOKEN}\n");
    let document = get(&server, "/openapi.json", "").json();
    assert_eq!(document["openapi"], "3.1.0");
    let gets = ["/healthz", "/readyz", "/openapi.json", "/v1/models", "/metrics"];
    for path in gets {
        let answer = get(&server, path, &bearer);
        assert_eq!(answer.status, 200, "{path}: {}", answer.text());
        check(&document, path, "get", &answer);
        assert!(answer.header("x-request-id").is_some(), "{path}");
    }
    for path in ["/v1/models/main", "/v1/models/nobody"] {
        let answer = get(&server, path, &bearer);
        assert_eq!(answer.status, if path.ends_with("main") { 200 } else { 404 }, "{path}: {}", answer.text());
        check(&document, "/v1/models/{id}", "get", &answer);
    }
    for path in ["/v1/models", "/metrics"] {
        check(&document, path, "get", &get(&server, path, ""));
    }
    let wrong = json!({ "model": "main", "messages": says("x")["messages"], "tools": [{}] });
    let nobody = json!({ "model": "nobody", "messages": says("x")["messages"] });
    for path in [CHAT, MESSAGES] {
        for (headers, body, status) in [
            (bearer.as_str(), says("hello"), 200),
            (&bearer, wrong.clone(), 400),
            (&bearer, nobody.clone(), 404),
            ("", says("hello"), 401),
            ("Origin: https://evil.example\n", says("hello"), 403),
        ] {
            let answer = post(&server, path, headers, &body);
            assert_eq!(answer.status, status, "{path}: {}", answer.text());
            if status != 403 {
                check(&document, path, "post", &answer);
            }
        }
        let mut streamed = says("hello");
        streamed["stream"] = json!(true);
        let name = if path == CHAT { "ChatChunk" } else { "MessageEvent" };
        let mut schema = json!({ "$ref": format!("#/components/schemas/{name}") });
        schema["components"] = document["components"].clone();
        let validator = jsonschema::validator_for(&schema).unwrap();
        for event in post(&server, path, &bearer, &streamed).events() {
            assert!(validator.is_valid(&event), "{path}: {event:#}");
        }
    }
    let kept = send(&server, "POST /v1/media", &format!("{bearer}Content-Type: text/plain\n"), b"hello");
    assert_eq!(kept.status, 201, "{}", kept.text());
    check(&document, "/v1/media", "post", &kept);
    check(&document, "/v1/media", "post", &send(&server, "POST /v1/media", &bearer, b"hello"));
    check(&document, "/v1/media/{id}", "get", &get(&server, "/v1/media/x", &bearer));
    // No door is open here.
    for path in ["/door/anthropic/v1/messages", "/door/openai/v1/responses"] {
        let answer = post(&server, path, "", &says("hello"));
        assert_eq!(answer.status, 404, "{path}: {}", answer.text());
        check(&document, path, "post", &answer);
    }
}

#[test]
fn signing_in_and_the_pages_answer_as_described() {
    let server = Server::start(scripted(DONE, WITH_TOKEN));
    let bearer = format!("Authorization: Bearer {TOKEN}\n");
    let document = get(&server, "/openapi.json", "").json();
    let nobodys = "0".repeat(32);
    for (path, headers, body, status) in [
        ("/auth/sign-in", "", json!({ "token": TOKEN }), 200),
        ("/auth/sign-in", "", json!({ "token": "wrong" }), 401),
        ("/auth/sign-in", "", json!({}), 400),
        ("/auth/exchange", "", json!({ "code": nobodys }), 401),
        ("/auth/exchange", "", json!({ "code": 7 }), 400),
        ("/auth/switch", &bearer, json!({ "tenant": "default" }), 401),
        ("/auth/sign-out", &bearer, json!({}), 400),
    ] {
        let answer = post(&server, path, headers, &body);
        assert_eq!(answer.status, status, "{path}: {}", answer.text());
        check(&document, path, "post", &answer);
    }
    let session = signed_in(&server, TOKEN);
    let headers = format!("X-Pintle: {}\nCookie: {}\n", session.key, session.cookie);
    let out = post(&server, "/auth/sign-out", &headers, &json!({}));
    assert_eq!(out.status, 200, "{}", out.text());
    check(&document, "/auth/sign-out", "post", &out);
    for (path, status) in [("/", 200), ("/assets/none.js", 404), ("/ws", 400)] {
        let answer = get(&server, path, "");
        assert_eq!(answer.status, status, "{path}: {}", answer.text());
        let described = if path.starts_with("/assets/") { "/assets/{name}" } else { path };
        check(&document, described, "get", &answer);
    }
}

#[test]
fn machines_under_guard_are_answered_as_described() {
    let server = Server::start(scripted(DONE, WITH_TOKEN));
    let bearer = format!("Authorization: Bearer {TOKEN}\n");
    let document = get(&server, "/openapi.json", "").json();
    for (query, headers, status) in [("?nonce=a", bearer.as_str(), 200), ("", &bearer, 400), ("?nonce=a", "", 401)] {
        let answer = get(&server, &format!("/guard/v1/rules{query}"), headers);
        assert_eq!(answer.status, status, "{query}: {}", answer.text());
        check(&document, "/guard/v1/rules", "get", &answer);
    }
    let told = json!({ "machine": { "id": uuid::Uuid::new_v4().to_string(), "name": "a" }, "records": [{ "id": 7 }] });
    for (body, headers, status) in [(&told, bearer.as_str(), 200), (&json!({}), &bearer, 400), (&told, "", 401)] {
        let answer = post(&server, "/guard/v1/records", headers, body);
        assert_eq!(answer.status, status, "{body}: {}", answer.text());
        check(&document, "/guard/v1/records", "post", &answer);
    }
}

#[test]
fn models_are_refused_in_the_words_of_whoever_asks() {
    let server = Server::start(scripted(DONE, WITH_TOKEN));
    let bearer = format!("Authorization: Bearer {TOKEN}\nanthropic-version: 2023-06-01\n");
    for (path, headers, status, kind) in [
        ("/v1/models", "X-Api-Key: no\nanthropic-version: 2023-06-01\n", 401, "authentication_error"),
        ("/v1/models/nobody", bearer.as_str(), 404, "not_found_error"),
    ] {
        let answer = get(&server, path, headers);
        let body = answer.json();
        assert_eq!(
            (answer.status, &body["type"], &body["error"]["type"]),
            (status, &json!("error"), &json!(kind)),
            "{path}"
        );
    }
    assert_eq!(get(&server, "/v1/models", "X-Api-Key: no\n").json()["type"], Value::Null);
}

#[test]
fn numbers_are_for_administrators_or_at_an_address_of_their_own() {
    let rest = "[gateway]\ndrain_delay_s = 0\nmetrics_listen = '127.0.0.1:0'\n";
    let mut server = Server::start(scripted(&[LISTS, DONE].join(","), rest));
    assert_eq!(get(&server, "/metrics", "").status, 401, "whoever did not sign in is no administrator");
    let line = server.until("numbers at http://");
    let address = line.lines().last().unwrap().rsplit("//").next().unwrap().to_owned();
    assert_eq!(post(&server, CHAT, "", &says("look")).status, 200);
    let (own, at) = (server.address.clone(), address.trim_end_matches("/metrics").to_owned());
    server.address = at;
    let told = get(&server, "/metrics", "");
    assert_eq!(get(&server, "/v1/models", "").status, 404);
    assert!(told.header("x-request-id").is_some(), "{}", told.head);
    // Whatever a page of another origin has resolved to this machine, it learns nothing of what goes on here.
    for (host, origin) in [("evil.example", ""), ("localhost", "Origin: http://evil.example\n")] {
        let head = format!("GET /metrics HTTP/1.1\nHost: {host}\nConnection: close\n{origin}\n");
        let refused = server.http(&head);
        assert!(refused.starts_with("HTTP/1.1 403 ") && refused.contains("forbidden_origin"), "{refused}");
    }
    server.address = own;
    let text = told.text();
    assert_eq!(told.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    for wanted in [
        "# TYPE gateway_requests_total counter",
        "gateway_requests_total{path=\"/v1/chat/completions\",status=\"200\"} 1",
        "gateway_turns_total{outcome=\"completed\"} 1",
        "gateway_turns_running 0",
        "gateway_connections 0",
        "hooks_async_dropped_total",
        "hooks_breakers_open{",
        "gateway_store_lag_ms ",
    ] {
        assert!(text.contains(wanted), "{wanted}\n{text}");
    }
}

#[test]
fn bodies_have_bounds() {
    let server = Server::start(scripted(DONE, "[gateway]\nmax_body = 200\n"));
    let long = post(&server, CHAT, "", &says(&"x".repeat(300))).refused();
    assert_eq!((long.0, long.1.as_str()), (413, "body_too_large"), "{}", long.2);
    assert_eq!(post(&server, CHAT, "", &says("x")).status, 200);
}

#[test]
fn a_turn_that_a_hook_stops_ends_in_the_words_of_the_dialect() {
    let env = scripted(&[LISTS; 8].join(","), GUARD);
    let enough = answering(BEFORE_TOOL, r#"{"action":"abort_turn","reason":"enough"}"#);
    env.write("config/pintle/refuses.sh", &enough);
    let server = Server::start(env);
    // The user reads who stopped it, and why.
    let why = |text: &Value| assert!(text.as_str().is_some_and(|text| text.contains("enough")), "{text}");
    let answer = post(&server, CHAT, "", &says("look")).json();
    assert_eq!(answer["choices"][0]["finish_reason"], "content_filter");
    why(&answer["choices"][0]["message"]["content"]);
    let answer = post(&server, MESSAGES, "", &says("look")).json();
    assert_eq!(answer["stop_reason"], "refusal");
    why(&answer["content"][0]["text"]);
    let mut streamed = says("look");
    streamed["stream"] = json!(true);
    let events = post(&server, CHAT, "", &streamed).events();
    let text: String = events.iter().filter_map(|it| it["choices"][0]["delta"]["content"].as_str()).collect();
    why(&json!(text));
}

#[test]
fn what_a_hook_says_to_the_user_in_place_of_a_tool_is_the_answer() {
    let env = scripted(&[LISTS; 8].join(","), GUARD);
    let said = r#"{"for_llm":"made","for_user":"Here it is","response_handled":true}"#;
    let respond = format!(r#"{{"action":"respond","result":{said}}}"#);
    env.write("config/pintle/refuses.sh", &answering(BEFORE_TOOL, &respond));
    let server = Server::start(env);
    assert_eq!(post(&server, CHAT, "", &says("look")).json()["choices"][0]["message"]["content"], "Here it is");
    assert_eq!(post(&server, MESSAGES, "", &says("look")).json()["content"][0]["text"], "Here it is");
    let mut streamed = says("look");
    streamed["stream"] = json!(true);
    let events = post(&server, CHAT, "", &streamed).events();
    let text: String = events.iter().filter_map(|it| it["choices"][0]["delta"]["content"].as_str()).collect();
    assert_eq!(text, "Here it is");
    // Whoever listens is told that the tool did not run.
    let mut anna = server.connected(json!({}));
    anna.done("chat.send", json!({ "message": "look" }));
    let result = anna.event("agent", |event| event["type"] == "tool.result");
    assert_eq!(result["payload"]["answeredByHook"], true, "{result}");
}

#[test]
fn a_model_that_cannot_answer_is_said_as_clients_know_it() {
    for (kind, status, code, retry) in
        [("final", 502, "turn_failed", "false"), ("context_limit", 400, "context_length_exceeded", "false")]
    {
        let error = format!(r#"{{"error": {{"kind": "{kind}", "message": "no"}}}}"#);
        let server = Server::start(scripted(&[error.as_str(); 12].join(","), ""));
        let answer = post(&server, CHAT, "", &says("go"));
        let (got, word, text) = answer.refused();
        assert_eq!((got, word.as_str(), answer.header("x-should-retry")), (status, code, Some(retry)), "{text}");
    }
    let waits = r#"{"error": {"kind": "rate_limit", "message": "slow down", "retry_after_ms": 600000}}"#;
    let server = Server::start(scripted(waits, ""));
    let answer = post(&server, CHAT, "", &says("go"));
    let (status, code, text) = answer.refused();
    assert_eq!((status, code.as_str()), (503, "model_rate_limited"), "{text}");
    assert_eq!((answer.header("retry-after"), answer.header("x-should-retry")), (Some("600"), Some("false")));
}

#[test]
fn ends_have_the_words_of_the_dialect() {
    let server = Server::start(scripted(&[LISTS; 8].join(","), "max_iterations = 1\n"));
    assert_eq!(post(&server, CHAT, "", &says("look")).json()["choices"][0]["finish_reason"], "length");
    assert_eq!(post(&server, MESSAGES, "", &says("look")).json()["stop_reason"], "max_tokens");
    let mut streamed = says("look");
    streamed["stream"] = json!(true);
    let last = post(&server, MESSAGES, "", &streamed).events();
    assert!(last.iter().any(|event| event["delta"]["stop_reason"] == "max_tokens"), "{last:#?}");
}

#[test]
fn an_answer_that_the_model_did_not_end_is_not_told_as_whole() {
    for (ended, openai, anthropic) in [
        ("length", "length", "max_tokens"),
        ("content_filter", "content_filter", "refusal"),
        ("refusal", "content_filter", "refusal"),
        ("stop", "stop", "end_turn"),
    ] {
        let reply = format!(r#"{{"text": "half of", "finish_reason": "{ended}"}}"#);
        let server = Server::start(scripted(&[reply.as_str(); 3].join(","), ""));
        let whole = post(&server, CHAT, "", &says("go")).json();
        assert_eq!(whole["choices"][0]["finish_reason"], openai, "{ended}");
        assert_eq!(post(&server, MESSAGES, "", &says("go")).json()["stop_reason"], anthropic, "{ended}");
        let mut streamed = says("go");
        streamed["stream"] = json!(true);
        let events = post(&server, CHAT, "", &streamed).events();
        let last = events.iter().rev().find_map(|event| event["choices"][0]["finish_reason"].as_str());
        assert_eq!(last, Some(openai), "{ended}");
    }
}
