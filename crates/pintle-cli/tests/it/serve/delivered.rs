//! Files that a tool makes for the user: they are their session's, in the store, and go with it.

use serde_json::json;

use super::http_client::get;
use super::server::{Server, TOKEN, WITH_TOKEN};
use crate::run::scripted;

const KEY: &str = "agent:main:ws:direct:report";

#[test]
fn what_a_tool_hands_over_is_given_to_the_user_of_the_session() {
    let sends = r#"{"tool_calls": [{"name": "send_file", "arguments": {"path": "report.csv"}}]},
                   {"text": "Here it is.", "repeat": true}"#;
    let env = scripted(sends, &format!("tools = ['send_file']\n{WITH_TOKEN}"));
    env.write("here/report.csv", "some,data\n1,2\n");
    let server = Server::start(env);
    let (mut anna, mut watcher) = (server.admin("anna"), server.admin("zoe"));
    let sent = anna.done("chat.send", json!({ "sessionKey": KEY, "message": "send me the report" }));
    let reference = sent["media"][0].as_str().unwrap_or_else(|| panic!("{sent}")).to_owned();
    let told = watcher.event("agent", |event| event["type"] == "run.completed");
    assert_eq!(told["payload"]["media"], json!([reference]), "{told}");

    let as_user = |user: &str| format!("Authorization: Bearer {TOKEN}\nX-Pintle-User: {user}\n");
    let path = format!("/v1/media/{}", reference.strip_prefix("media://").unwrap());
    let given = get(&server, &path, &as_user("anna"));
    assert_eq!((given.status, given.text().as_str()), (200, "some,data\n1,2\n"));
    assert_eq!(given.header("content-disposition"), Some("attachment; filename=\"report.csv\""));
    assert_eq!(given.header("content-security-policy"), Some("sandbox"));
    anna.done("members.add", json!({ "userId": "ben", "role": "operator" }));
    assert_eq!(get(&server, &path, &as_user("ben")).status, 404, "another user's");
    // Nothing of it stays in between, and it is there after a restart.
    let between = server.env.path("data/pintle/delivering");
    assert!(std::fs::read_dir(&between).map_or(0, Iterator::count) == 0, "{}", between.display());
    let server = server.again();
    assert_eq!(get(&server, &path, &as_user("anna")).status, 200);
    server.admin("anna").done("sessions.delete", json!({ "key": KEY }));
    assert_eq!(get(&server, &path, &as_user("anna")).status, 404);
}
