//! A model that does not answer leaves a line in the log of the server: which one, why, and whose turn it was.

use serde_json::json;

use super::http_client::{CHAT, post, says};
use super::people::People;
use super::server::{Client, Server, TOKEN, WITH_TOKEN};
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

#[test]
fn a_key_reads_the_class_of_a_fault_and_no_address() {
    let fails =
        r#"{"error": {"kind": "final", "message": "refused at http://10.0.0.7:1; set `api_key_env`"}, "repeat": true}"#;
    let server = Server::start(scripted(fails, WITH_TOKEN));
    let key = People::key(&server, "anna", &["operator.write"]);
    let failed = post(&server, CHAT, &format!("Authorization: Bearer {key}\n"), &says("go"));
    let (status, code, message) = failed.refused();
    assert_eq!((status, code.as_str()), (502, "turn_failed"));
    let end = format!("; the server's log says why under turn {}", failed.header("x-pintle-turn").unwrap());
    assert!(message.starts_with("the model's provider refused the request") && message.ends_with(&end), "{message}");
    let (mut anna, mut boss) = (server.connected(json!({ "token": key })), server.admin("boss"));
    let said = anna.refused("chat.send", json!({ "message": "go" })).1;
    assert!(said.starts_with("the model's provider refused the request"), "{said}");
    let heard =
        |client: &mut Client| client.event("agent", |it| it["type"] == "run.failed")["payload"]["error"].clone();
    assert_eq!(heard(&mut anna), json!(said));
    let whole = heard(&mut boss);
    assert!(whole.as_str().unwrap().contains("http://10.0.0.7:1; set `api_key_env`"), "{whole}");
}
