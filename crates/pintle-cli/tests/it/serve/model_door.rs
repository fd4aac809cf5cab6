//! The model door of a server: agents of others ask their models there, each with the hooks and the record of whoever's
//! key comes with the request.

use std::io::Read as _;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::http_client::{Answer, get, post, sent};
use super::people::{ACME, People, operator};
use super::server::{Server, TOKEN, WITH_TOKEN};
use crate::guard_door::upstream::{Came, Vendor, said};
use crate::run::DONE;

const OPENAI: &str = "/door/openai/v1/chat/completions";
const RESPONSES: &str = "/door/openai/v1/responses";
const ANTHROPIC: &str = "/door/anthropic/v1/messages";
const GEMINI: &str = "/door/gemini/v1beta/models/m-1.5:generateContent?key=sk-of-the-client";

/// The key of the operator's for the vendor.
const OURS: &str = "sk-of-the-operator";

/// All headers in which a client could send a key of its own.
const THEIRS: &str = "Authorization: Bearer sk-of-the-client\nX-Api-Key: sk-of-the-client\n\
                      X-Goog-Api-Key: sk-of-the-client\nOpenAI-Organization: theirs\nCookie: c=1\n";

/// A server with two tenants and a door to `vendor`; a rule of Acme's refuses calls of `forbidden`.
fn served(vendor: &Vendor, more: &str) -> People {
    let doors: String = ["anthropic", "gemini", "openai"]
        .iter()
        .map(|name| format!("[doors.model.{name}]\nbase_url = 'http://{}'\n{more}\n", vendor.address))
        .collect();
    let people = People::start_where(DONE, WITH_TOKEN, &format!("ask = ['ask_me']\n{doors}"), &[("DOOR_KEY", OURS)]);
    let rule = json!({
        "event": "pre_tool_use", "handler_type": "script", "scope": "tenant", "name": "not-in-acme",
        "config": { "source": "function handle(event) { return event.toolName === 'forbidden' \
                    ? { decision: 'block', reason: 'not in this tenant' } : { decision: 'allow' } }" }
    });
    people.admin_of(ACME).done("hooks.create", rule);
    people
}

/// A fresh key of Acme's, for `owner`.
fn key(people: &People, owner: &str, scopes: &[&str]) -> (String, String) {
    let made =
        people.admin_of(ACME).done("api_keys.create", json!({ "name": "agent", "owner": owner, "scopes": scopes }));
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    (text(&made["key"]), text(&made["apiKey"]["id"]))
}

fn asks(path: &str, prompt: &str) -> Value {
    match path {
        RESPONSES => json!({"model": "m", "input": [{"role": "user", "content": prompt}]}),
        GEMINI => json!({"contents": [{"role": "user", "parts": [{"text": prompt}]}]}),
        _ => json!({"model": "m", "messages": [{"role": "user", "content": prompt}]}),
    }
}

fn ask(people: &People, path: &str, headers: &str, prompt: &str) -> Answer {
    post(&people.server, path, headers, &asks(path, prompt))
}

/// The key that a vendor was told, and all that it was told beside.
fn told(came: &Came) -> Vec<(&str, &str)> {
    let names = ["authorization", "x-api-key", "x-goog-api-key", "openai-organization", "cookie", "x-pintle-key"];
    names.iter().filter_map(|name| Some((*name, came.header(name)?))).collect()
}

#[test]
fn with_a_key_of_ours_the_vendor_is_told_the_operators_and_the_rules_of_its_tenant_hold() {
    let vendor = Vendor::open();
    let people = served(&vendor, "key_env = 'DOOR_KEY'");
    let (key, _) = key(&people, "a-operator", &["operator.write"]);
    let headers = format!("X-Pintle-Key: {key}\n{THEIRS}");
    for (path, header, value) in [
        (OPENAI, "authorization", format!("Bearer {OURS}")),
        (RESPONSES, "authorization", format!("Bearer {OURS}")),
        (ANTHROPIC, "x-api-key", OURS.to_owned()),
        (GEMINI, "x-goog-api-key", OURS.to_owned()),
    ] {
        let before = vendor.came().len();
        let answer = ask(&people, path, &headers, "call forbidden lookup");
        assert_eq!(answer.status, 200, "{path} {}", answer.text());
        assert!(answer.text().contains("lookup") && !answer.text().contains("forbidden"), "{path} {}", answer.text());
        let came = vendor.came().split_off(before);
        assert_eq!(came.len(), 1);
        assert_eq!(told(&came[0]), [(header, value.as_str())], "{path}");
        assert!(!came[0].path.contains("sk-of-the-client"), "{}", came[0].path);
        // What nothing changed passes in the same bytes.
        let answer = ask(&people, path, &headers, "hello");
        let came = vendor.came().pop().unwrap();
        assert_eq!(answer.text(), said(&came).2);
        assert_eq!(came.body, asks(path, "hello").to_string());
        assert_eq!(answer.header("request-id"), Some("r"));
    }
    let listed = get(&people.server, "/door/openai/v1/models", &format!("X-Pintle-Key: {key}\n"));
    assert_eq!(listed.json()["data"][0]["id"], "m");
    let listed = get(&people.server, "/door/gemini/v1beta/models", &format!("X-Pintle-Key: {key}\n"));
    assert_eq!(listed.json()["models"][0]["name"], "models/m");
    // The record is the tenant's, and names the user; the other tenant knows nothing of it.
    let turns = |tenant: &str| people.admin_of(tenant).done("turns.list", json!({}))["turns"].clone();
    let until = Instant::now() + Duration::from_secs(20);
    let own = loop {
        let own = turns(ACME);
        let refused = |turn: &&Value| turn["blocked"].as_u64() > Some(0);
        if own.as_array().unwrap().iter().filter(refused).count() == 4 {
            break own;
        }
        assert!(Instant::now() < until, "the record is not whole: {own}");
    };
    assert!(own.as_array().unwrap().iter().all(|turn| turn["userId"] == "a-operator"), "{own}");
    assert_eq!(turns("default"), json!([]));
    // Nobody's key is kept anywhere.
    for secret in ["sk-of-the-client", OURS, key.as_str()] {
        let found = Command::new("grep").args(["-rlaF", secret]).arg(people.server.env.path("data")).output().unwrap();
        assert_eq!(found.status.code(), Some(1), "{secret}: {}", String::from_utf8_lossy(&found.stdout));
    }
}

#[test]
fn where_a_client_works_nobody_knows_so_its_ordinary_writes_pass_the_starter_guards() {
    let vendor = Vendor::open();
    let people = served(&vendor, "key_env = 'DOOR_KEY'");
    let (key, _) = key(&people, "a-operator", &["operator.write"]);
    let headers = format!("X-Pintle-Key: {key}\n");
    operator(&people.server.env, &["hooks", "add", "--starter", "--tenant", ACME]);
    let until = Instant::now() + Duration::from_secs(20);
    // The server hears of them from another process.
    while ask(&people, OPENAI, &headers, "call Edit").text().contains(r#""Edit""#) {
        assert!(Instant::now() < until, "a file of the system may be changed");
    }
    let answer = ask(&people, OPENAI, &headers, "call Write").text();
    assert!(answer.contains(r#""Write""#) && answer.contains("/code/app/src/main.rs"), "{answer}");
}

#[test]
fn what_a_key_spent_today_is_known_after_a_restart() {
    let vendor = Vendor::open();
    let people = served(&vendor, "key_env = 'DOOR_KEY'\nbudget = { day_tokens = 20 }");
    let (mine, _) = key(&people, "a-operator", &["operator.write"]);
    let (other, _) = key(&people, "a-operator", &["operator.write"]);
    let ask =
        |server: &Server, key: &str| post(server, OPENAI, &format!("X-Pintle-Key: {key}\n"), &asks(OPENAI, "hello"));
    let mut server = people.server;
    // Each is 10 tokens read and 5 written.
    assert_eq!([(); 2].map(|()| ask(&server, &mine).status), [200, 200]);
    server.signal(nix::sys::signal::Signal::SIGTERM);
    assert_eq!(server.ended().0, Some(0));
    let server = Server::start_with(server.into_env(), &[("DOOR_KEY", OURS)]);
    let refused = ask(&server, &mine);
    assert_eq!(refused.status, 429, "{}", refused.text());
    assert!(refused.text().contains("this key has spent 30 of 20 tokens today"), "{}", refused.text());
    assert_eq!(ask(&server, &other).status, 200, "another key");
}

#[test]
fn requests_of_one_key_at_the_same_time_do_not_overspend_together() {
    let vendor = Vendor::open();
    let people = served(&vendor, "key_env = 'DOOR_KEY'\nbudget = { day_tokens = 20 }");
    let (mine, _) = key(&people, "a-operator", &["operator.write"]);
    let headers = format!("Content-Type: application/json\nX-Pintle-Key: {mine}\n");
    let body = asks(OPENAI, "hello").to_string();
    let one = |_| sent(&people.server, &format!("POST {OPENAI}"), &headers, body.as_bytes());
    let answers: Vec<_> = (0..12).map(one).collect();
    let mut passed = 0;
    for mut answer in answers {
        let mut told = String::new();
        answer.read_to_string(&mut told).unwrap();
        match told.split(' ').nth(1) {
            Some("200") => passed += 1,
            _ => assert!(told.starts_with("HTTP/1.1 429") && told.contains("this key"), "{told}"),
        }
    }
    // Each is 15 tokens, so the second one goes beyond, and no third one begins.
    assert!((1..=2).contains(&passed), "{passed}");
    assert_eq!(vendor.came().len(), passed);
}

#[test]
fn a_door_lets_in_who_may_and_nobody_else() {
    let vendor = Vendor::open();
    let with_key = served(&vendor, "key_env = 'DOOR_KEY'");
    let (write, _) = key(&with_key, "a-operator", &["operator.write"]);
    let (read, _) = key(&with_key, "a-operator", &["operator.read"]);
    let (viewers, _) = key(&with_key, "a-viewer", &["operator.write"]);
    let wrong = format!("pintle_{}", "0".repeat(32));
    for (headers, status, part) in [
        (String::new(), 401, "X-Pintle-Key"),
        (THEIRS.to_owned(), 401, "X-Pintle-Key"),
        // Where the vendor's keys go, ours count for nothing.
        (format!("Authorization: Bearer {write}\nX-Api-Key: {write}\n"), 401, "X-Pintle-Key"),
        (format!("X-Pintle-Key: {wrong}\n"), 401, "unauthorized"),
        (format!("X-Pintle-Key: {TOKEN}\n"), 401, "no valid API key"),
        (format!("X-Pintle-Key: {read}\n"), 401, "`operator.write`"),
        (format!("X-Pintle-Key: {viewers}\n"), 401, "permission denied: door.use"),
        (format!("X-Pintle-Key: {write}\nX-Pintle-Key: {write}\n"), 400, "twice"),
        (format!("X-Pintle-Key: {write}\nOrigin: http://localhost\n"), 403, "browser"),
        (format!("X-Pintle-Key: {write}\nOrigin: https://evil.example\n"), 403, "origin"),
        (format!("X-Pintle-Key: {write}\n"), 200, "I read"),
    ] {
        for path in [OPENAI, ANTHROPIC, GEMINI] {
            let answer = ask(&with_key, path, &headers, "hello");
            assert_eq!((answer.status, answer.text().contains(part)), (status, true), "{headers} {}", answer.text());
        }
    }
    assert_eq!(vendor.came().len(), 3);
    for path in ["/door", "/door/other/v1/x", "/door/anthropic/v1/complete"] {
        let answer = ask(&with_key, path, &format!("X-Pintle-Key: {write}\n"), "hello");
        assert_eq!(answer.status, 404, "{path} {}", answer.text());
    }
    let passing = served(&vendor, "tenant = 'acme'");
    let (ours, _) = key(&passing, "a-operator", &["operator.write"]);
    for (headers, status, part) in [
        (THEIRS.to_owned(), 200, "I read"),
        (String::new(), 200, "I read"),
        (format!("Authorization: Bearer {ours}\n"), 400, "send it as `X-Pintle-Key`"),
        (format!("X-Api-Key: {wrong}\n"), 400, "send it as `X-Pintle-Key`"),
        (format!("X-Pintle-Key: {ours}\n"), 401, "`key_env`"),
        ("X-Forwarded-For: 203.0.113.1\n".to_owned(), 401, "from this machine only"),
        ("Via: 1.1 proxy\n".to_owned(), 401, "from this machine only"),
    ] {
        let answer = ask(&passing, OPENAI, &headers, "hello");
        assert_eq!((answer.status, answer.text().contains(part)), (status, true), "{headers} {}", answer.text());
    }
    let mistaken = ask(&passing, &format!("{OPENAI}?key={ours}"), "", "hello");
    assert_eq!((mistaken.status, mistaken.text().contains("X-Pintle-Key")), (400, true), "{}", mistaken.text());
    let answer = ask(&passing, OPENAI, THEIRS, "call forbidden lookup");
    assert!(!answer.text().contains("forbidden"), "{}", answer.text());
    assert_eq!(vendor.came().pop().unwrap().header("authorization"), Some("Bearer sk-of-the-client"));
    let turns = passing.admin_of(ACME).done("turns.list", json!({}));
    assert!(turns["turns"].as_array().unwrap().iter().all(|turn| turn["userId"] == "local"), "{turns}");
    // Without an entry there is no door, and none whose key is not there.
    let none = People::start(WITH_TOKEN);
    assert_eq!(ask(&none, OPENAI, THEIRS, "hello").status, 404);
    let closed = served(&vendor, "key_env = 'NOT_SET'\ntenant = 'acme'");
    let answer = ask(&closed, OPENAI, THEIRS, "hello");
    assert_eq!((answer.status, answer.text().contains("is closed")), (503, true), "{}", answer.text());
}

#[test]
fn a_call_waits_for_a_person_and_ends_with_the_key() {
    let vendor = Vendor::open();
    let people = served(&vendor, "key_env = 'DOOR_KEY'");
    let (secret, id) = key(&people, "a-operator", &["operator.write"]);
    let mut admin = people.admin_of(ACME);
    let stream = |prompt: &str| {
        let body = json!({"model": "m", "stream": true, "messages": [{"role": "user", "content": prompt}]}).to_string();
        let headers = format!("Content-Type: application/json\nX-Pintle-Key: {secret}\n");
        sent(&people.server, &format!("POST {OPENAI}"), &headers, body.as_bytes())
    };
    let mut approved = stream("call ask_me");
    let waits = admin.event("approvals.created", |approval| approval["tool"] == "ask_me");
    assert!(waits["sessionKey"].as_str().unwrap().starts_with("agent:main:door:a-operator:openai:"), "{waits}");
    // Whoever uses the door may not answer for a person with the same key.
    let mut own = people.server.connected(json!({ "token": secret }));
    assert_eq!(own.refused("approvals.approve", json!({ "id": waits["id"] })).0, "UNAUTHORIZED");
    assert_eq!(
        own.refused("chat.send", json!({ "sessionKey": waits["sessionKey"], "message": "go" })).0,
        "INVALID_REQUEST"
    );
    admin.done("approvals.approve", json!({ "id": waits["id"] }));
    let mut all = String::new();
    approved.read_to_string(&mut all).unwrap();
    assert!(all.contains("ask_me") && all.contains("[DONE]"), "{all}");
    // A key that is taken back ends what it began.
    let mut held = stream("call ask_me again");
    admin.event("approvals.created", |approval| approval["tool"] == "ask_me");
    admin.done("api_keys.revoke", json!({ "id": id }));
    let mut all = Vec::new();
    held.read_to_end(&mut all).ok();
    let all = String::from_utf8_lossy(&all);
    assert!(!all.contains("ask_me") && !all.contains("[DONE]"), "{all}");
    let answer = ask(&people, OPENAI, &format!("X-Pintle-Key: {secret}\n"), "hello");
    assert_eq!(answer.status, 401, "{}", answer.text());
}

#[test]
fn what_is_kept_of_a_session_is_one_users() {
    let vendor = Vendor::open();
    let people = served(&vendor, "key_env = 'DOOR_KEY'");
    let (anna, _) = key(&people, "a-operator", &["operator.write"]);
    let (ben, _) = key(&people, "a-admin", &["operator.write"]);
    // The door answers the model for Anna; the same words of Ben's have no such past.
    let headers = |key: &str| format!("X-Pintle-Key: {key}\nX-Pintle-Session: one\n");
    let answer = ask(&people, OPENAI, &headers(&anna), "call forbidden");
    assert_eq!(answer.status, 200, "{}", answer.text());
    let text = answer.json()["choices"][0]["message"]["content"].clone();
    let again = json!({"model": "m", "messages": [
        {"role": "user", "content": "call forbidden"},
        {"role": "assistant", "content": text},
        {"role": "user", "content": "go on"},
    ]});
    for (key, has_past) in [(&anna, true), (&ben, false)] {
        assert_eq!(post(&people.server, OPENAI, &headers(key), &again).status, 200);
        let body = vendor.came().pop().unwrap().body;
        assert_eq!(body.contains("tool_calls"), has_past, "{body}");
    }
}

#[test]
fn nobody_goes_on_from_an_answer_of_somebody_else() {
    let vendor = Vendor::open();
    let people = served(&vendor, "key_env = 'DOOR_KEY'");
    let (mine, _) = key(&people, "a-operator", &["operator.write"]);
    let (other, _) = key(&people, "a-operator", &["operator.write"]);
    let (ben, _) = key(&people, "a-admin", &["operator.write"]);
    let headers = |key: &str| format!("X-Pintle-Key: {key}\nX-Pintle-Session: one\n");
    let first = ask(&people, RESPONSES, &headers(&mine), "hello");
    assert_eq!(first.status, 200, "{}", first.text());
    let more = json!({"model": "m", "previous_response_id": first.json()["id"], "input": "go on"});
    for (key, status) in [(&other, 400), (&ben, 400), (&mine, 200)] {
        let before = vendor.came().len();
        let answer = post(&people.server, RESPONSES, &headers(key), &more);
        assert_eq!(answer.status, status, "{}", answer.text());
        let came = vendor.came().split_off(before);
        let bodies: Vec<&str> = came.iter().map(|came| came.body.as_str()).collect();
        let expected = more.to_string();
        assert_eq!(bodies, if status == 200 { vec![expected.as_str()] } else { vec![] });
    }
}

#[test]
fn another_configuration_opens_and_closes_doors_and_keeps_what_it_knows() {
    let vendor = Vendor::open();
    let mut people = served(&vendor, "tenant = 'acme'");
    assert_eq!(ask(&people, OPENAI, "", "hello").status, 200);
    let file = people.server.env.path("config/pintle/pintle.toml");
    let config = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, config.replace("tenant = 'acme'", "deny = 'text'")).unwrap();
    people.server.signal(nix::sys::signal::Signal::SIGHUP);
    people.server.until("the new configuration is in force");
    assert_eq!(ask(&people, OPENAI, "", "hello").status, 401);
}

/// A stream of an answer in which a call waits for a person.
fn held(people: &People, secret: &str) -> std::net::TcpStream {
    let message = json!({"role": "user", "content": "call ask_me"});
    let body = json!({"model": "m", "stream": true, "messages": [message]}).to_string();
    let headers = format!("Content-Type: application/json\nX-Pintle-Key: {secret}\n");
    sent(&people.server, &format!("POST {OPENAI}"), &headers, body.as_bytes())
}

#[test]
fn an_answer_under_way_ends_before_the_server_does() {
    let vendor = Vendor::open();
    let mut people = served(&vendor, "key_env = 'DOOR_KEY'");
    let (secret, _) = key(&people, "a-operator", &["operator.write"]);
    let mut admin = people.admin_of(ACME);
    let mut answer = held(&people, &secret);
    let waits = admin.event("approvals.created", |approval| approval["tool"] == "ask_me");
    people.server.signal(nix::sys::signal::Signal::SIGTERM);
    admin.event("shutdown", |_| true);
    for path in [OPENAI, ANTHROPIC, GEMINI] {
        let late = ask(&people, path, &format!("X-Pintle-Key: {secret}\n"), "too late");
        assert_eq!((late.status, late.text().contains("shutting down")), (503, true), "{path} {}", late.text());
        assert_eq!((late.header("retry-after"), late.header("x-should-retry")), (Some("1"), Some("true")), "{path}");
    }
    // It has as long as turns have, which is longer than anything else that is waited for.
    std::thread::sleep(Duration::from_secs(6));
    admin.done("approvals.approve", json!({ "id": waits["id"] }));
    let mut all = String::new();
    answer.read_to_string(&mut all).unwrap();
    assert!(all.contains("ask_me") && all.contains("[DONE]"), "{all}");
    assert_eq!(people.server.ended().0, Some(0));
}

#[test]
fn a_tenant_that_is_disabled_has_neither_a_door_nor_rules_for_machines() {
    let vendor = Vendor::open();
    let people = served(&vendor, "key_env = 'DOOR_KEY'");
    let (secret, _) = key(&people, "a-operator", &["operator.write"]);
    let (guard, _) = key(&people, "a-operator", &["operator.guard"]);
    let guarded = || get(&people.server, "/guard/v1/rules?nonce=n", &format!("Authorization: Bearer {guard}\n"));
    assert_eq!(guarded().status, 200);
    let mut admin = people.admin_of(ACME);
    let mut answer = held(&people, &secret);
    admin.event("approvals.created", |approval| approval["tool"] == "ask_me");
    let came = vendor.came().len();
    people.server.admin("system").done("tenants.update", json!({ "tenantId": ACME, "enabled": false }));
    let mut all = Vec::new();
    // What breaks off is no whole answer.
    answer.read_to_end(&mut all).ok();
    let all = String::from_utf8_lossy(&all);
    assert!(!all.contains("ask_me") && !all.contains("[DONE]"), "{all}");
    for path in [OPENAI, ANTHROPIC, GEMINI] {
        let refused = ask(&people, path, &format!("X-Pintle-Key: {secret}\n"), "hello");
        assert_eq!(refused.status, 403, "{path} {}", refused.text());
    }
    assert_eq!(guarded().status, 403);
    assert_eq!(vendor.came().len(), came);
}
