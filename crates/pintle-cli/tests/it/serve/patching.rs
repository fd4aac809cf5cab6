//! `sessions.patch`: what a session is called, its model, and what a client keeps with it.

use serde_json::{Value, json};

use super::people::{ACME, People};
use super::server::{Client, Server, TOKEN, WITH_TOKEN};
use crate::run::{DONE, scripted};

const KEY: &str = "agent:main:ws:direct:trip";

/// The only session that `client` sees.
fn listed(client: &mut Client) -> Value {
    let listed = client.done("sessions.list", json!({}));
    assert_eq!(listed["total"], 1, "{listed}");
    listed["sessions"][0].clone()
}

#[test]
fn a_session_is_called_what_somebody_says() {
    let replies = format!("{DONE},{DONE}");
    let server = Server::start(scripted(&replies, WITH_TOKEN));
    let mut anna = server.admin("anna");
    let patch = |members: Value| {
        let mut params = json!({ "key": KEY });
        params.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        params
    };
    assert_eq!(anna.refused("sessions.patch", patch(json!({ "label": "x" }))).0, "NOT_FOUND");
    anna.done("chat.send", json!({ "sessionKey": KEY, "message": "where to?" }));
    assert_eq!(listed(&mut anna)["label"], "where to?");

    let metadata = json!({ "pinned": true, "order": 1.50, "tags": ["a"] });
    anna.done("sessions.patch", patch(json!({ "label": "The trip", "metadata": metadata })));
    let session = listed(&mut anna);
    assert_eq!((&session["label"], &session["metadata"]), (&json!("The trip"), &metadata), "{session}");
    assert_eq!(session["model"], Value::Null);
    // What is absent stays, and a turn changes nothing of it.
    anna.done("sessions.patch", patch(json!({ "metadata": { "pinned": false } })));
    anna.done("chat.send", json!({ "sessionKey": KEY, "message": "and back?" }));
    let session = listed(&mut anna);
    assert_eq!((&session["label"], &session["metadata"]), (&json!("The trip"), &json!({ "pinned": false })));
    // A terminal calls it so as well.
    let shown = server.env.pintle(&["sessions", "list"]);
    assert!(shown.out.contains("The trip"), "{shown:?}");
    // It is there after a restart, and an empty text clears.
    let server = server.again();
    let mut anna = server.admin("anna");
    assert_eq!(listed(&mut anna)["label"], "The trip");
    anna.done("sessions.patch", patch(json!({ "label": "", "metadata": {} })));
    let session = listed(&mut anna);
    assert_eq!((&session["label"], &session["metadata"]), (&json!("where to?"), &Value::Null));

    for (members, why) in [
        (json!({}), "nothing to change: expected label, model or metadata"),
        (json!({ "label": "x".repeat(256) }), "label exceeds 255 characters (got 256)"),
        (json!({ "label": "a\nb" }), "label has control characters"),
        (json!({ "metadata": { "x": "y".repeat(5000) } }), "metadata exceeds 4096 bytes of JSON (got 5008)"),
    ] {
        assert_eq!(anna.refused("sessions.patch", patch(members)), ("INVALID_REQUEST".into(), why.into()));
    }
    let wrong = anna.refused("sessions.patch", patch(json!({ "model": "nobody/knows" })));
    assert!(wrong.0 == "INVALID_REQUEST" && wrong.1.contains("nobody"), "{wrong:?}");
    let none = anna.refused("sessions.patch", patch(json!({ "model": "nope" })));
    assert_eq!(none.1, "invalid request: model: expected PROVIDER/MODEL, got \"nope\"");
    assert!(listed(&mut anna)["model"].is_null(), "nothing changed");
    for few in [-3, 0] {
        let why = "field \"keepLast\" must be a whole number, at least 1; to keep nothing, use sessions.reset";
        let refused = anna.refused("sessions.compact", json!({ "key": KEY, "keepLast": few }));
        assert_eq!(refused.1, format!("invalid request: {why}"));
    }
}

#[test]
fn a_session_has_a_model_of_its_own() {
    let other = "[providers.other]\nkind = 'scripted'\nscript = 'other.json'\n";
    let env = scripted(DONE, &format!("{WITH_TOKEN}{other}"));
    let said = r#"{"replies": [{"text": "the other one", "repeat": true}]}"#;
    env.write("config/pintle/other.json", said);
    let server = Server::start(env);
    let mut anna = server.admin("anna");
    let send = |text: &str| json!({ "sessionKey": KEY, "message": text });
    anna.done("chat.send", send("hello"));
    anna.done("sessions.patch", json!({ "key": KEY, "model": "other/m" }));
    assert_eq!(listed(&mut anna)["model"], "other/m");
    assert_eq!(anna.done("chat.send", send("who are you?"))["content"], "the other one");
    anna.done("sessions.patch", json!({ "key": KEY, "model": "" }));
    assert_eq!(listed(&mut anna)["model"], Value::Null);
}

#[test]
fn it_is_for_those_who_may_talk_in_their_own_sessions() {
    let people = People::start(WITH_TOKEN);
    let in_acme = |user: &str| people.server.connected(json!({ "token": TOKEN, "user_id": user, "tenant_hint": ACME }));
    let (mut viewer, mut operator, mut admin) = (in_acme("a-viewer"), in_acme("a-operator"), in_acme("a-admin"));
    operator.done("chat.send", json!({ "sessionKey": KEY, "message": "hello" }));
    let patch = json!({ "key": KEY, "label": "mine" });
    assert_eq!(viewer.refused("sessions.patch", patch.clone()).0, "UNAUTHORIZED");
    operator.done("sessions.patch", patch);
    let theirs = json!({ "key": "agent:main:ws:a-operator:trip", "label": "theirs" });
    admin.done("sessions.patch", theirs.clone());
    assert_eq!(listed(&mut operator)["label"], "theirs");
    // In another tenant there is no such session.
    assert_eq!(people.admin_of("default").refused("sessions.patch", theirs).0, "NOT_FOUND");
}
