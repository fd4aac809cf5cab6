//! What is taken away from somebody is gone within a second: connections, sessions of the console, and turns.

use std::io::{BufRead as _, BufReader};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::http_client::{CHAT, sent};
use super::people::{ACME, People, Session, operator, signed_in};
use super::server::{Client, Server, TOKEN, WITH_TOKEN};
use crate::run::{DONE, LISTS, scripted};

/// How long it may take.
const IN_FORCE: Duration = Duration::from_secs(1);

/// Waits until the server closes a connection.
#[track_caller]
fn closed(mut client: Client, since: Instant) {
    while client.text().is_some() {}
    assert!(since.elapsed() < IN_FORCE, "it took {:?}", since.elapsed());
}

fn status(server: &Server, session: &Session) -> u16 {
    let headers = format!("X-Pintle: {}\nCookie: {}\n", session.key, session.cookie);
    let answer = server.http(&format!("GET /v1/models HTTP/1.1\nHost: localhost\nConnection: close\n{headers}\n"));
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

/// A turn of `user` that goes on until somebody ends it: it waits for a person.
fn turn_of(server: &Server, user: &str, token: &str) -> (Client, Value) {
    let mut client = server.connected(json!({ "token": token, "user_id": user }));
    client.ask("chat.send", json!({ "message": "look" }));
    let waiting = client.event("agent", |event| event["type"] == "approval.waiting");
    (client, waiting)
}

fn people() -> Server {
    let replies = format!("{{\"repeat\": true, {}", &LISTS[1..]);
    Server::start(scripted(&replies, &format!("ask = ['list_dir']\n{WITH_TOKEN}")))
}

/// Waits for the end of the turn of `user`, as `watcher` hears it.
#[track_caller]
fn cancelled(watcher: &mut Client, user: &str, since: Instant) {
    watcher.event("agent", |event| event["type"] == "run.cancelled" && event["userId"] == user);
    assert!(since.elapsed() < IN_FORCE, "it took {:?}", since.elapsed());
}

#[test]
fn whoever_is_disabled_or_removed_is_out_with_everything() {
    let server = people();
    let mut watcher = server.admin("zoe");
    for (user, taken) in [("anna", "disable"), ("ben", "remove")] {
        let key = People::key(&server, user, &["operator.write"]);
        let session = signed_in(&server, &key);
        assert_eq!(status(&server, &session), 200);
        let (client, _) = turn_of(&server, user, &key);
        // From a terminal, which is another process. The clock starts once it has said so.
        operator(&server.env, &["members", taken, user]);
        let since = Instant::now();
        cancelled(&mut watcher, user, since);
        closed(client, since);
        assert!([401, 403].contains(&status(&server, &session)), "{user}");
        let refused = server.client().refused("connect", json!({ "token": key })).0;
        assert!(["UNAUTHORIZED", "TENANT_ACCESS_REVOKED"].contains(&refused.as_str()), "{user}: {refused}");
        if taken == "disable" {
            // What ended does not begin again.
            operator(&server.env, &["members", "enable", user]);
            assert_eq!(status(&server, &session), 401);
            operator(&server.env, &["members", "disable", user]);
        }
        // Nor does anybody who has the token speak for them.
        let refused = server.client().refused("connect", json!({ "token": TOKEN, "user_id": user }));
        assert_eq!(refused.0, "TENANT_ACCESS_REVOKED", "{user}");
    }
    // Over the socket as well, and of a turn that the holder of the token began.
    watcher.done("members.add", json!({ "userId": "carl", "role": "operator" }));
    let (client, _) = turn_of(&server, "carl", TOKEN);
    let since = Instant::now();
    watcher.done("members.remove", json!({ "userId": "carl" }));
    cancelled(&mut watcher, "carl", since);
    closed(client, since);
    watcher.done("members.add", json!({ "userId": "carl", "role": "operator" }));
    let again = server.connected(json!({ "token": TOKEN, "user_id": "carl" }));
    drop(again);
}

#[test]
fn a_turn_that_is_left_open_does_not_go_on_for_whoever_is_out() {
    let server = people();
    server.admin("zoe").done("members.add", json!({ "userId": "carl", "role": "operator" }));
    let (client, waiting) = turn_of(&server, "carl", TOKEN);
    let approval = waiting["payload"]["approvalId"].as_str().unwrap().to_owned();
    drop(client);
    // The turn stays parked while nobody serves.
    let server = {
        let mut server = server;
        server.signal(nix::sys::signal::Signal::SIGTERM);
        assert_eq!(server.ended().0, Some(0));
        let env = server.into_env();
        operator(&env, &["members", "disable", "carl"]);
        let seen = env.on_terminal("", &["approvals", "approve", &approval]);
        assert_eq!(seen.code, Some(0), "{seen:?}");
        Server::start(env)
    };
    let mut watcher = server.admin("zoe");
    let key = "agent:main:ws:carl:main";
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let status = watcher.done("chat.session.status", json!({ "sessionKey": key }));
        let left = server.env.pintle(&["sessions", "list"]).out;
        if status["isRunning"] == false && !left.contains("its turn was left open") {
            break;
        }
        assert!(Instant::now() < until, "{status} {left}");
    }
    let shown = server.env.pintle(&["approvals", "list", "--all", "--json"]).out;
    let all: Value = serde_json::from_str(&shown).unwrap();
    // There was one.
    assert_eq!((&all[0]["state"], all.as_array().unwrap().len()), (&Value::from("void"), 1), "{shown}");
}

#[test]
fn a_tenant_that_is_disabled_from_a_terminal_ends_its_turns() {
    let asks = format!("ask = ['list_dir']\n{WITH_TOKEN}edition = 'standard'\n");
    let server = Server::start(scripted(&[LISTS, DONE].join(","), &asks));
    let mut owner = server.admin("system");
    owner.done("tenants.create", json!({ "slug": ACME }));
    let there = |user: &str| json!({ "token": TOKEN, "user_id": user, "tenant_hint": ACME });
    let mut system = server.connected(there("system"));
    system.done("members.add", json!({ "userId": "anna", "role": "operator" }));
    let mut anna = server.connected(there("anna"));
    anna.ask("chat.send", json!({ "message": "look" }));
    anna.event("agent", |event| event["type"] == "approval.waiting");
    operator(&server.env, &["tenants", "disable", ACME]);
    let since = Instant::now();
    for client in [anna, system] {
        closed(client, since);
    }
    for user in ["anna", "system"] {
        assert_eq!(server.client().refused("connect", there(user)).0, "TENANT_ACCESS_REVOKED", "{user}");
    }
    let chain = server.env.on_terminal("", &["audit", "tail", "--tenant", ACME]);
    assert!(chain.out.contains("tenant_disabled"), "{chain:?}");
    operator(&server.env, &["tenants", "enable", ACME]);
    let mut anna = server.connected(there("anna"));
    assert_eq!(anna.done("chat.session.status", json!({}))["isRunning"], false);
}

#[test]
fn what_is_given_and_taken_stands_in_the_audit_chain() {
    let server = Server::start(scripted(DONE, WITH_TOKEN));
    let mut zoe = server.admin("zoe");
    zoe.done("members.add", json!({ "userId": "anna", "role": "operator" }));
    zoe.done("members.update", json!({ "userId": "anna", "role": "viewer" }));
    let made = zoe.done("api_keys.create", json!({ "name": "ci", "owner": "anna", "scopes": ["operator.read"] }));
    zoe.done("api_keys.revoke", json!({ "id": made["apiKey"]["id"] }));
    zoe.done("members.remove", json!({ "userId": "anna" }));
    let tail = server.env.pintle(&["audit", "tail"]);
    for action in ["member_added", "member_changed", "key_created", "key_revoked", "member_removed"] {
        assert!(tail.out.contains(action), "{action}: {tail:?}");
    }
    assert!(!tail.out.contains(made["key"].as_str().unwrap()), "{tail:?}");
    let verified = server.env.pintle(&["audit", "verify"]);
    assert_eq!(verified.code, Some(0), "{verified:?}");
    // Whoever takes one of them out of the table is found out.
    let file = server.env.path("data/pintle/pintle.db");
    let database = rusqlite::Connection::open(file).unwrap();
    database.execute("DELETE FROM audit_log WHERE body LIKE '%key_revoked%'", []).unwrap();
    let verified = server.env.pintle(&["audit", "verify"]);
    assert_ne!(verified.code, Some(0), "{verified:?}");
    assert!((verified.out.clone() + &verified.err).contains("missing"), "{verified:?}");
}

/// The id of the newest key of `owner`.
fn key_of(admin: &mut Client, owner: &str) -> String {
    let listed = admin.done("api_keys.list", json!({}));
    let found = listed["apiKeys"].as_array().unwrap().iter().find(|key| key["owner"] == owner);
    found.unwrap_or_else(|| panic!("no key of {owner} in {listed}"))["id"].as_str().unwrap().to_owned()
}

/// The approvals that stand so, with what is noted at each.
fn approvals(admin: &mut Client, state: &str) -> Vec<(String, String)> {
    let listed = admin.done("approvals.list", json!({ "all": true }));
    let all = listed["approvals"].as_array().unwrap().iter().filter(|it| it["state"] == state);
    let text = |it: &Value, name: &str| it[name].as_str().unwrap_or_default().to_owned();
    all.map(|it| (text(it, "id"), text(it, "note"))).collect()
}

#[test]
fn a_turn_ends_with_the_key_that_asked_for_it_and_others_of_that_user_go_on() {
    let server = people();
    let mut zoe = server.admin("zoe");
    let kept = People::key(&server, "anna", &["operator.write"]);
    let (other, going) = turn_of(&server, "anna", &kept);
    let stolen = People::key(&server, "anna", &["operator.write"]);
    let mut thief = server.connected(json!({ "token": stolen }));
    thief.ask("chat.send", json!({ "sessionKey": "agent:main:ws:direct:theft", "message": "look" }));
    thief.event("agent", |it| it["type"] == "approval.waiting" && it["sessionKey"] == "agent:main:ws:direct:theft");
    // Over HTTP as well, where the conversation is kept and the turn would outlive its request.
    let head = format!("x-api-key: {stolen}\nX-Pintle-Session: theft\nContent-Type: application/json\n");
    let body = json!({ "model": "main", "stream": true, "messages": [{ "role": "user", "content": "look" }] });
    let stream = sent(&server, &format!("POST {CHAT}"), &head, body.to_string().as_bytes());
    zoe.event("agent", |it| it["type"] == "approval.waiting" && it["channel"] == "http");
    let id = key_of(&mut zoe, "anna");
    operator(&server.env, &["keys", "revoke", &id]);
    let since = Instant::now();
    for _ in 0..2 {
        cancelled(&mut zoe, "anna", since);
    }
    closed(thief, since);
    let told: Vec<String> = BufReader::new(stream).lines().map_while(Result::ok).collect();
    assert!(told.iter().any(|line| line.contains("access was revoked")), "{told:#?}");
    let void = approvals(&mut zoe, "void");
    let why = "the API key that asked for the turn was revoked or has expired";
    assert!(void.len() == 2 && void.iter().all(|(_, note)| note == why), "{void:?}");
    let waiting = approvals(&mut zoe, "waiting");
    let ids: Vec<&str> = waiting.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(ids, [going["payload"]["approvalId"].as_str().unwrap()]);
    drop(other);
}

#[test]
fn what_a_revoked_key_said_into_a_turn_is_not_heard() {
    let server = Server::start(scripted(r#"{"delay_ms": 2500, "text": "All done.", "repeat": true}"#, WITH_TOKEN));
    let mut zoe = server.admin("zoe");
    let kept = People::key(&server, "anna", &["operator.write"]);
    let stolen = People::key(&server, "anna", &["operator.write"]);
    let (mut anna, mut thief) =
        (server.connected(json!({ "token": kept })), server.connected(json!({ "token": stolen })));
    let key = "agent:main:ws:direct:trip";
    anna.ask("chat.send", json!({ "sessionKey": key, "message": "go" }));
    // What is said from here on waits for the model's answer.
    anna.event("agent", |it| it["type"] == "activity");
    let said = thief.done("chat.send", json!({ "sessionKey": key, "message": "push it" }));
    assert_eq!(said["injected"], true, "{said}");
    assert_eq!(anna.done("chat.inject", json!({ "sessionKey": key, "message": "and be brief" }))["ok"], true);
    let id = key_of(&mut zoe, "anna");
    let since = Instant::now();
    zoe.done("api_keys.revoke", json!({ "id": id }));
    closed(thief, since);
    anna.event("agent", |it| it["type"] == "run.completed");
    let history = anna.done("chat.history", json!({ "sessionKey": key }));
    let texts: Vec<&Value> = history["messages"].as_array().unwrap().iter().map(|it| &it["content"]).collect();
    assert_eq!(texts, ["go", "All done.", "and be brief", "All done."]);
}

#[test]
fn a_member_who_may_no_longer_talk_has_no_turns_any_more() {
    let server = people();
    let mut zoe = server.admin("zoe");
    zoe.done("members.add", json!({ "userId": "ben", "role": "admin" }));
    let (client, _) = turn_of(&server, "ben", TOKEN);
    let since = Instant::now();
    zoe.done("members.update", json!({ "userId": "ben", "role": "operator" }));
    closed(client, since);
    // That much they still may.
    assert_eq!(approvals(&mut zoe, "waiting").len(), 1);
    let since = Instant::now();
    zoe.done("members.update", json!({ "userId": "ben", "role": "viewer" }));
    cancelled(&mut zoe, "ben", since);
    let void = approvals(&mut zoe, "void");
    assert_eq!(
        void.first().map(|it| it.1.as_str()),
        Some("the user who asked for the turn may no longer talk to agents")
    );
    assert_eq!(approvals(&mut zoe, "waiting"), []);
}

#[test]
fn a_turn_that_is_left_open_ends_with_the_key_that_asked_for_it() {
    let mut server = people();
    let mut zoe = server.admin("zoe");
    let key = People::key(&server, "anna", &["operator.write"]);
    let (client, waiting) = turn_of(&server, "anna", &key);
    let (id, approval) = (key_of(&mut zoe, "anna"), waiting["payload"]["approvalId"].as_str().unwrap().to_owned());
    drop((client, zoe));
    // The turn stays parked while nobody serves.
    server.signal(nix::sys::signal::Signal::SIGTERM);
    assert_eq!(server.ended().0, Some(0));
    let env = server.into_env();
    operator(&env, &["keys", "revoke", &id]);
    let server = Server::start(env);
    let mut zoe = server.admin("zoe");
    let until = Instant::now() + Duration::from_secs(20);
    loop {
        let left = server.env.pintle(&["sessions", "list"]).out;
        if !left.contains("its turn was left open") && !left.contains("waits") {
            break;
        }
        assert!(Instant::now() < until, "{left}");
    }
    let void = approvals(&mut zoe, "void");
    let why = "the API key that asked for the turn was revoked or has expired";
    assert_eq!(void, [(approval.clone(), why.to_owned())]);
    let (code, why) = zoe.refused("approvals.approve", json!({ "id": approval }));
    assert!(code == "FAILED_PRECONDITION" && why.contains("void"), "{code}: {why}");
}
