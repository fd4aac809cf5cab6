//! `pintle demo --serve`: something to see, in a home that is thrown away.

use serde_json::{Value, json};

use super::people::{post, session_of};
use super::server::Server;
use crate::env::{PINTLE, TestEnv};

#[test]
fn an_address_that_is_taken_is_said_before_anything_is_done() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let env = TestEnv::new();
    let temp = env.path("temp");
    std::fs::create_dir(&temp).unwrap();
    let mut command = env.command(PINTLE);
    let seen = env.run(command.args(["demo", "--serve", "--listen", &address]).env("TMPDIR", &temp), "");
    assert_eq!(seen.code, Some(2), "{seen}");
    assert!(seen.err.contains(&format!("cannot listen at {address}")) && seen.err.contains("`--listen`"), "{seen}");
    assert!(!seen.err.contains("made up"), "{seen}");
    assert_eq!(std::fs::read_dir(&temp).unwrap().count(), 0);
}

#[test]
fn the_console_of_the_demo_has_something_to_see_and_leaves_nothing() {
    let env = TestEnv::new();
    let temp = env.path("temp");
    std::fs::create_dir(&temp).unwrap();
    let mut command = env.command(PINTLE);
    command.args(["demo", "--serve", "--listen", "127.0.0.1:0"]).env("TMPDIR", &temp);
    let (mut server, shown) = Server::launch(TestEnv::new(), command, "open http://");
    assert!(shown.contains("is made up"), "{shown}");
    let (address, code) = shown.split_once("open http://").and_then(|(_, link)| link.split_once("/#code=")).unwrap();
    assert_eq!(address, server.address);
    let session = session_of(post(&server, "/auth/exchange", "", &json!({ "code": code })));
    let mut you = server.client_with(&[("cookie", session.cookie.as_str())]).unwrap();
    assert_eq!(you.done("connect", json!({ "consoleKey": session.key }))["role"], "admin");

    // The demo's turn, and one that waits.
    let sessions = you.done("sessions.list", json!({}));
    let labels: Vec<_> =
        sessions["sessions"].as_array().unwrap().iter().map(|it| it["label"].as_str().unwrap()).collect();
    assert_eq!(labels.len(), 2, "{sessions}");
    let history = you.done("chat.history", json!({ "sessionKey": "agent:main:ws:direct:demo" }));
    assert!(history.to_string().contains("hooks refuse both"), "{history}");
    let waiting = you.done("approvals.list", json!({}))["approvals"].clone();
    assert_eq!((waiting.as_array().unwrap().len(), &waiting[0]["tool"]), (1, &json!("exec")), "{waiting}");

    // A week, of which every row says that it is made up, and what really ran.
    let rows = you.done("hooks.history", json!({ "limit": 200 }))["executions"].as_array().unwrap().clone();
    let (made_up, real): (Vec<&Value>, Vec<&Value>) = rows.iter().partition(|row| row["metadata"]["made_up"] == true);
    assert!(made_up.iter().all(|row| row["reason"] == "made up for the demo"), "{made_up:#?}");
    assert_eq!(made_up.len(), 84);
    assert!(real.iter().any(|row| row["reason"] == "keys stay where they are"), "{real:#?}");

    // Pages that count read the same.
    let counts = you.done("hooks.counts", json!({}));
    for name in ["secrets", "asks-before-publishing", "no-keys-in-prompts"] {
        let of_rule = |row: &&Value| row["hook_name"] == name;
        let counted = counts["hooks"].as_array().unwrap().iter().find(|one| one["name"] == name).unwrap();
        assert_eq!(counted["runs"], rows.iter().filter(of_rule).count(), "{name}: {counted}");
        let refused = rows.iter().filter(of_rule).filter(|row| row["decision"] == "block").count();
        assert_eq!(counted["blocked"], refused, "{name}: {counted}");
    }

    // The rules are in force, and the answer goes on with the turn.
    you.done("approvals.approve", json!({ "id": waiting[0]["id"] }));
    let done = you.event("agent", |event| event["type"] == "run.completed");
    assert_eq!(done["payload"]["content"], "That is what came of it.", "{done}");
    assert_eq!(
        you.done("chat.send", json!({ "message": "hello" }))["content"].as_str().unwrap()[..13],
        *"I am scripted"
    );

    server.signal(nix::sys::signal::Signal::SIGINT);
    assert_eq!(server.ended().0, Some(0));
    assert_eq!(std::fs::read_dir(&temp).unwrap().count(), 0, "its folder is gone");
    assert!(!env.path("data/pintle").exists(), "nothing of the user's is touched");
}
