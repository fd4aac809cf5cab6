//! `pintle guard install --mcp FILE`, and back.

use std::process::Command;

use serde_json::{Value, json};

use super::stage::{Hand, guarded, result};
use crate::env::{PINTLE, TestEnv};
use crate::mcp::installed;

fn file(env: &TestEnv) -> String {
    let program = installed("venv/bin/mcp-server-time");
    let time = format!(
        r#""time":  {{"command": "{}", "args": ["--local-timezone", "UTC"], "env": {{"A": "b"}}}}"#,
        program.display()
    );
    let text = format!(
        "{{\n  // mine\n  \"mcpServers\": {{\n    {time},\n    \"k\": {{\"url\": \"https://k.internal\", \"headers\": {{}}}}\n  }},\n  \"x\": 1.50\n}}\n"
    );
    env.write("here/mcp.json", &text);
    text
}

fn text(env: &TestEnv) -> String {
    std::fs::read_to_string(env.path("here/mcp.json")).unwrap()
}

#[test]
fn a_file_that_is_no_json_is_written_by_hand() {
    let env = guarded("");
    env.write("here/config.toml", "[mcp_servers.a]\ncommand = \"x\"\n");
    let seen = env.pintle(&["guard", "install", "--mcp", "config.toml", "--yes"]);
    assert!(seen.code == Some(2) && seen.err.contains("is TOML") && seen.err.contains("by hand"), "{seen}");
}

#[test]
fn a_clients_servers_are_started_through_the_door_and_as_before_again() {
    let env = guarded("");
    let before = file(&env);
    let shown = env.pintle(&["guard", "install", "--mcp", "mcp.json", "--dry-run"]);
    assert!(
        shown.code == Some(0)
            && shown.out.contains("+     \"time\":  {\"command\": \"[pintle]\", \"args\": [\"mcp\", \"proxy\""),
        "{shown}"
    );
    assert!(shown.err.contains("the server `k` is left as it is: it sends headers of its own"), "{shown}");
    assert_eq!(text(&env), before);
    let no = env.on_terminal("n\n", &["guard", "install", "--mcp", "mcp.json"]);
    assert!(no.code == Some(1) && text(&env) == before, "{no}");
    let yes = env.on_terminal("y\n", &["guard", "install", "--mcp", "mcp.json"]);
    assert!(yes.code == Some(0) && yes.out.contains("time  guarded"), "{yes}");
    let again = env.pintle(&["guard", "install", "--mcp", "mcp.json", "--yes"]);
    assert!(again.code == Some(0) && again.out.contains("nothing to change"), "{again}");

    // What stands there is what a client starts.
    let written = text(&env).replace("  // mine\n", "");
    let servers: Value = serde_json::from_str(&written).unwrap();
    let entry = &servers["mcpServers"]["time"];
    assert_eq!((&entry["command"], &entry["env"]), (&json!(PINTLE), &json!({"A": "b"})));
    let mut command = env.command(PINTLE);
    command.args(entry["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap()));
    call(command);

    let out = env.pintle(&["guard", "uninstall", "--mcp", "mcp.json", "--yes"]);
    assert!(out.code == Some(0) && out.out.contains("here/mcp.json  no longer guarded"), "{out}");
    assert_eq!(text(&env), before);
}

fn call(command: Command) {
    let mut hand = Hand::start(command);
    let params =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "h", "version": "1"}});
    hand.ask(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}));
    hand.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    assert_eq!(hand.listed(1), ["get_current_time", "convert_time"]);
    let (text, is_error) = result(&hand.call(2, "get_current_time", &json!({"timezone": "forbidden"})));
    assert!(is_error && text.contains("not in this house"), "{text}");
}

#[test]
fn what_a_person_changed_meanwhile_stays() {
    let env = guarded("");
    let before = file(&env);
    assert_eq!(env.pintle(&["guard", "install", "--mcp", "mcp.json", "--yes"]).code, Some(0));
    env.write("here/mcp.json", &text(&env).replace("1.50", "2"));
    assert_eq!(env.pintle(&["guard", "uninstall", "--mcp", "mcp.json", "--yes"]).code, Some(0));
    assert_eq!(text(&env), before.replace("1.50", "2"));
}

#[test]
fn a_server_that_was_added_later_goes_back_as_well() {
    let env = guarded("");
    let before = file(&env);
    let install = ["guard", "install", "--mcp", "mcp.json", "--yes"];
    assert_eq!(env.pintle(&install).code, Some(0));
    let added =
        |text: &str| text.replace("    \"time\"", "    \"n\": {\"command\": \"srv\", \"args\": []},\n    \"time\"");
    env.write("here/mcp.json", &added(&text(&env)));
    assert_eq!(env.pintle(&install).code, Some(0));
    assert!(text(&env).contains("\"srv\"]"), "{}", text(&env));
    assert_eq!(env.pintle(&["guard", "uninstall", "--mcp", "mcp.json", "--yes"]).code, Some(0));
    assert_eq!(text(&env), added(&before));
}

#[test]
fn an_installation_of_nothing_names_both_ways() {
    let env = guarded("");
    let seen = env.pintle(&["guard", "uninstall"]);
    assert!(seen.code == Some(2) && seen.err.contains("--host") && seen.err.contains("--mcp"), "{seen}");
    let help = env.pintle(&["guard", "uninstall", "--help"]);
    assert!(help.out.contains("is started without Pintle") && !help.out.contains("--adopt"), "{help}");
}

#[test]
fn a_file_that_is_none_is_left() {
    let env = guarded("");
    for text in ["{", "{}", r#"{"mcpServers": 1}"#] {
        env.write("here/mcp.json", text);
        let seen = env.pintle(&["guard", "install", "--mcp", "mcp.json", "--yes"]);
        assert!(seen.code == Some(2) && seen.err.contains("mcp.json"), "{seen}");
    }
    let seen = env.pintle(&["guard", "install", "--mcp", "none.json", "--yes"]);
    assert!(seen.code == Some(2) && seen.err.contains("there is no file"), "{seen}");
}
