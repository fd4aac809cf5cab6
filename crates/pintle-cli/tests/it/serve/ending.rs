//! How a server ends.

use nix::sys::signal::Signal;
use serde_json::json;

use super::http_client::{CHAT, MESSAGES, get, post, says};
use super::server::{Server, TOKEN, WITH_TOKEN};
use crate::run::{DONE, LISTS, scripted};

const KEY: &str = "agent:main:ws:direct:trip";

#[test]
fn turns_that_are_under_way_end_before_the_server_does() {
    let mut server = Server::start(scripted(r#"{"delay_ms": 200, "text": ["a", "b", "c"]}"#, WITH_TOKEN));
    let mut client = server.admin("anna");
    let sent = client.ask("chat.send", json!({ "sessionKey": KEY, "message": "go", "stream": true }));
    client.event("agent", |it| it["type"] == "chunk");
    server.signal(Signal::SIGTERM);
    client.event("shutdown", |it| it["deadlineMs"] == 30_000);
    let (code, message) = client.refused("chat.send", json!({ "message": "too late" }));
    assert_eq!((code.as_str(), message.as_str()), ("UNAVAILABLE", "the server is shutting down; retry shortly"));
    assert_eq!(client.answer(&sent)["payload"]["content"], "abc");
    assert_eq!(client.text(), None);
    assert_eq!(server.ended().0, Some(0));
}

#[test]
fn while_turns_end_others_are_told_when_to_come_again() {
    let mut server = Server::start(scripted(r#"{"delay_ms": 300, "text": ["a", "b", "c"]}"#, WITH_TOKEN));
    let mut client = server.admin("anna");
    let sent = client.ask("chat.send", json!({ "sessionKey": KEY, "message": "go", "stream": true }));
    client.event("agent", |it| it["type"] == "chunk");
    server.signal(Signal::SIGTERM);
    client.event("shutdown", |_| true);
    let token = format!("Authorization: Bearer {TOKEN}\n");
    for path in [CHAT, MESSAGES] {
        let late = post(&server, path, &token, &says("too late"));
        let (status, code, message) = late.refused();
        assert_eq!((status, code.as_str()), (503, "unavailable"), "{message}");
        assert_eq!((late.header("retry-after"), late.header("x-should-retry")), (Some("1"), Some("true")));
    }
    assert_eq!(get(&server, "/readyz", "").status, 503);
    assert_eq!(get(&server, "/healthz", "").status, 200);
    assert_eq!(client.answer(&sent)["payload"]["content"], "abc");
    assert_eq!(server.ended().0, Some(0));
}

#[test]
fn what_waits_for_a_person_waits_on() {
    let mut server = Server::start(scripted(&[LISTS, DONE].join(","), &format!("ask = ['list_dir']\n{WITH_TOKEN}")));
    let mut client = server.admin("anna");
    let sent = client.ask("chat.send", json!({ "sessionKey": KEY, "message": "look" }));
    let id = client.event("approvals.created", |_| true)["id"].clone();
    server.signal(Signal::SIGTERM);
    assert_eq!(client.answer(&sent)["payload"], json!({ "parked": true, "approvalIds": [id] }));
    assert_eq!(server.ended().0, Some(0));
    let seen = server.env.pintle(&["sessions", "list"]);
    assert!(seen.out.contains("agent:main:ws:anna:trip") && seen.out.contains("waits"), "{}", seen.out);
}

#[test]
fn what_waits_for_a_person_is_not_cut_by_a_second_signal_either() {
    let slow_to_end = "ask = ['list_dir']\n[gateway]\ntoken_env = 'PINTLE_TEST_TOKEN'\ndrain_delay_s = 60\n";
    let mut server = Server::start(scripted(&[LISTS, DONE].join(","), slow_to_end));
    let mut client = server.admin("anna");
    let sent = client.ask("chat.send", json!({ "sessionKey": KEY, "message": "look" }));
    let id = client.event("approvals.created", |_| true)["id"].clone();
    server.signal(Signal::SIGINT);
    server.until("interrupt again to stop them now");
    server.signal(Signal::SIGINT);
    assert_eq!(client.answer(&sent)["payload"], json!({ "parked": true, "approvalIds": [id] }));
    let (code, last) = server.ended();
    assert!(code == Some(130) && !last.contains("was cut"), "{code:?}: {last}");
    let mut server = Server::start(server.into_env());
    server.signal(Signal::SIGINT);
    assert!(!server.until("interrupt again to stop them now").contains("was cut"));
}

#[test]
fn a_second_signal_stops_what_is_under_way() {
    let mut server = Server::start(scripted(r#"{"delay_ms": 60000, "text": "never"}"#, WITH_TOKEN));
    let mut client = server.admin("anna");
    let sent = client.ask("chat.send", json!({ "sessionKey": KEY, "message": "go" }));
    client.event("agent", |it| it["type"] == "activity");
    server.signal(Signal::SIGINT);
    server.until("interrupt again to stop them now");
    server.signal(Signal::SIGINT);
    assert_eq!(client.answer(&sent)["payload"], json!({ "cancelled": true }));
    let (code, last) = server.ended();
    assert!(code == Some(130) && last.contains("1 turn was cut"), "{code:?}: {last}");
    // The next start says so, once.
    let mut server = Server::start(server.into_env());
    server.until("1 turn was cut when the server ended: agent:main:ws:anna:trip");
    server.signal(Signal::SIGTERM);
    server.ended();
    let mut server = Server::start(server.into_env());
    server.signal(Signal::SIGTERM);
    assert!(!server.ended().1.contains("was cut"));
}
