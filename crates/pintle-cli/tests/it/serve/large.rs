//! Requests as large as they may be, and what others feel of them.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use super::http_client::{CHAT, send};
use super::server::{Server, TOKEN, WITH_TOKEN};
use crate::run::{DONE, scripted};

/// How many come at once.
const LARGE: usize = 5;

/// The size of one, below the limit of 10 MiB.
const BYTES: usize = 9_000_000;

/// Fewest requests of others that are answered meanwhile, one after another: a server that is held up answers one or two.
const ANSWERED: usize = LARGE;

/// What is large in each: one text, many messages, a value that nobody reads.
fn kinds() -> [(&'static str, String); 3] {
    let text = json!({ "model": "main", "messages": [{ "role": "user", "content": "word and ".repeat(BYTES / 9) }] });
    let said = json!({ "role": "assistant", "content": "word ".repeat(BYTES / 5 / 190) });
    let mut messages = vec![json!({ "role": "user", "content": "begin" })];
    messages.extend(std::iter::repeat_n(said, 190));
    messages.push(json!({ "role": "user", "content": "go on" }));
    let many = json!({ "model": "main", "messages": messages });
    let nothing = vec!["[]"; BYTES / 3].join(",");
    let values =
        format!(r#"{{"model":"main","metadata":{{"a":[{nothing}]}},"messages":[{{"role":"user","content":"x"}}]}}"#);
    [("a long text", text.to_string()), ("many messages", many.to_string()), ("many values", values)]
}

/// Sends `body` as `user` of `tenant`; how long that took.
fn asked(server: &Server, (tenant, user): (&str, &str), body: &str) -> Duration {
    let began = Instant::now();
    let headers = format!(
        "Content-Type: application/json\nAuthorization: Bearer {TOKEN}\nX-Pintle-User: {user}\nX-Pintle-Tenant: {tenant}\n"
    );
    let answer = send(server, &format!("POST {CHAT}"), &headers, body.as_bytes());
    assert_eq!(answer.status, 200, "{}", answer.text());
    began.elapsed()
}

#[test]
fn a_few_large_requests_hold_no_other_tenant_up() {
    let replies = vec![DONE; 1000].join(",");
    let edition = "edition = 'standard'\n";
    let server = Server::start(scripted(&replies, &format!("{WITH_TOKEN}{edition}")));
    server.admin("system").done("tenants.create", json!({ "slug": "acme", "name": "Acme" }));
    let mut owner = server.connected(json!({ "token": TOKEN, "user_id": "system", "tenant_hint": "acme" }));
    let small = json!({ "model": "main", "messages": [{ "role": "user", "content": "hi" }] }).to_string();
    for (round, (kind, large)) in kinds().into_iter().enumerate() {
        // Nobody may send more than five messages at once.
        let users: Vec<String> = (0..60).map(|n| format!("user-{round}-{n}")).collect();
        for user in &users {
            owner.done("members.add", json!({ "userId": user, "role": "operator" }));
        }
        let names: Vec<String> = (0..LARGE).map(|n| format!("large-{round}-{n}")).collect();
        let over = AtomicBool::new(false);
        let (took, waits) = thread::scope(|scope| {
            let others = scope.spawn(|| {
                let turns = users.iter().flat_map(|user| std::iter::repeat_n(user, 4));
                let turns = turns.take_while(|_| !over.load(Ordering::Relaxed));
                turns.map(|user| asked(&server, ("acme", user), &small)).collect::<Vec<_>>()
            });
            let began = Instant::now();
            let (server, large) = (&server, &large);
            let names = names.iter().map(String::as_str);
            let all: Vec<_> = names.map(|name| scope.spawn(move || asked(server, ("default", name), large))).collect();
            for one in all {
                one.join().unwrap();
            }
            let took = began.elapsed();
            over.store(true, Ordering::Relaxed);
            (took, others.join().unwrap())
        });
        let longest = *waits.iter().max().unwrap();
        println!("{LARGE} requests with {kind}: {took:?}; {} of another tenant, the longest {longest:?}", waits.len());
        let is_held_up = longest >= took || waits.len() < ANSWERED;
        assert!(!is_held_up, "{kind}: {} answered, the longest {longest:?} of {took:?}", waits.len());
    }
}
