//! A model that does not answer leaves a line in the log of the server: which one, why, and whose turn it was.

use serde_json::json;

use super::http_client::{CHAT, post, says};
use super::server::{Server, TOKEN, WITH_TOKEN};
use crate::run::scripted;

#[test]
fn a_model_that_fails_is_in_the_log_without_secrets() {
    let fails =
        r#"{"error": {"kind": "final", "message": "the key was refused: Bearer abcdefghijklmnop"}, "repeat": true}"#;
    let mut server = Server::start(scripted(fails, WITH_TOKEN));
    let who = format!("Authorization: Bearer {TOKEN}\nX-Pintle-User: anna\n");
    let failed = post(&server, CHAT, &who, &says("go"));
    assert_eq!(failed.status, 502);
    let line = server.until("model.failed");
    let line = line.lines().last().unwrap();
    let (request, turn) = (failed.header("x-request-id").unwrap(), failed.header("x-pintle-turn").unwrap());
    let names = [
        "the key was refused: [REDACTED]",
        r#"model="scripted/test""#,
        r#"class="final""#,
        "agent=main",
        r#"user="anna""#,
        "tenant=",
        &format!("turn={turn}"),
        &format!("request=\"{request}\""),
    ];
    names.iter().for_each(|name| assert!(line.contains(name), "`{name}` is not in: {line}"));
    assert!(!line.contains("abcdefghijklmnop"), "{line}");
    // Over the socket, the request is the client's.
    let mut ben = server.admin("ben");
    let asked = ben.ask("chat.send", json!({ "sessionKey": "agent:main:ws:direct:trip", "message": "go" }));
    assert_eq!(ben.answer(&asked)["ok"], false);
    let line = server.until("model.failed");
    assert!(line.contains(r#"user="ben""#) && line.contains(&format!("request=\"{asked}\"")), "{line}");
}
