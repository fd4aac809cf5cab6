//! Clients of others before servers of others, through the door and without it: what they get is the same.

use std::process::Command;

use serde_json::{Value, json};

use super::stage::{fixture, guarded, proxy_words};
use crate::env::{PINTLE, TestEnv};
use crate::mcp::installed;

/// What the client of the Python SDK gets of the server that `words` start, or that is at an address.
pub(super) fn python(env: &TestEnv, calls: &Value, words: &[String]) -> Value {
    let mut command = env.command(installed("venv/bin").join("python"));
    command.arg(fixture("client.py")).arg(calls.to_string()).args(words);
    answered(env, &mut command)
}

/// What the client of the TypeScript SDK gets.
pub(super) fn typescript(env: &TestEnv, words: &[String]) -> Value {
    let mut command = env.command("node");
    command.arg(fixture("client.mjs")).arg(installed("node")).args(words);
    answered(env, &mut command)
}

fn answered(env: &TestEnv, command: &mut Command) -> Value {
    let output = TestEnv::output(command, "");
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}\n{err}\n{}", env.path("").display());
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}\n{err}"))
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn node(package: &str, more: &[&str]) -> Vec<String> {
    let script = installed(&format!("node/node_modules/@modelcontextprotocol/{package}/dist/index.js"));
    words(&["node", script.to_str().unwrap()]).into_iter().chain(words(more)).collect()
}

#[test]
fn the_client_for_python_gets_of_a_python_server_what_it_gets_without_the_door() {
    let env = guarded("");
    let program = installed("venv/bin/mcp-server-time");
    let server = words(&[program.to_str().unwrap(), "--local-timezone", "UTC"]);
    let times = json!({"source_timezone": "Europe/Berlin", "time": "12:00", "target_timezone": "Asia/Tokyo"});
    let calls = json!([["convert_time", times], ["convert_time", {"time": "x"}]]);
    let bare = python(&env, &calls, &server);
    let through = python(&env, &calls, &proxy_words("time", &server));
    assert_eq!(through, bare);
    // The newest protocol, which has no handshake.
    assert_eq!(through["protocol"], "2026-07-28");
    assert_eq!(through["tools"].as_array().unwrap().len(), 2);
    assert!(through["calls"][0]["content"][0]["text"].as_str().unwrap().contains("Asia/Tokyo"), "{through}");
    let refused = python(&env, &json!([["convert_time", {"forbidden": 1}]]), &proxy_words("time", &server));
    let text = refused["calls"][0]["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("not in this house") && refused["calls"][0]["isError"] == true, "{refused}");
    let why = env.pintle(&["why", "--tool", "mcp_time_convert_time"]).out;
    assert!(why.contains("not in this house"), "{why}");
}

#[test]
fn the_client_for_typescript_does_all_that_it_does_without_the_door() {
    let env = guarded("");
    let server = node("server-everything", &["stdio"]);
    let bare = typescript(&env, &server);
    let through = typescript(&env, &proxy_words("all", &server));
    assert_eq!(through, bare);
    assert_eq!(through["echo"], json!(["Echo: grüß\u{0}"]));
    assert_eq!((&through["cancelled"], &through["after"]), (&json!("it was cancelled"), &json!(["Echo: still here"])));
    assert_eq!(through["progress"], true, "{through}");
    assert!(through["sampled"].as_str().unwrap().contains("a reply of the model"), "{through}");
}

#[test]
fn the_servers_for_files_and_memory_are_guarded_as_well() {
    let env = guarded("");
    let folder = env.path("files");
    env.write("files/a.txt", "milk");
    env.write("files/forbidden.txt", "no");
    let server = node("server-filesystem", &[folder.to_str().unwrap()]);
    let path = |name: &str| json!({"path": folder.join(name).to_str().unwrap()});
    let calls = json!([["read_text_file", path("a.txt")], ["list_directory", {"path": folder.to_str().unwrap()}]]);
    let bare = python(&env, &calls, &server);
    assert_eq!(python(&env, &calls, &proxy_words("files", &server)), bare);
    assert!(bare["calls"][0].to_string().contains("milk"), "{bare}");
    // What guards is not written, whatever hooks say.
    let own = env.path("data/pintle/x");
    let calls = json!([
        ["read_text_file", path("forbidden.txt")],
        ["write_file", {"path": own.to_str().unwrap(), "content": "x"}],
    ]);
    let refused = python(&env, &calls, &proxy_words("files", &server));
    let text = |call: usize| refused["calls"][call]["content"][0]["text"].as_str().unwrap().to_owned();
    assert!(text(0).contains("not in this house"), "{refused}");
    assert!(text(1).contains("belongs to the guard"), "{refused}");

    let memory = node("server-memory", &[]);
    let entity = json!({"entities": [{"name": "a", "entityType": "b", "observations": ["hunter2"]}]});
    let calls = json!([["create_entities", entity], ["read_graph", {}]]);
    let redacted = python(&env, &calls, &proxy_words("memory", &memory));
    assert!(!redacted["calls"].to_string().contains("hunter2"), "{redacted}");
    assert!(redacted["calls"][1].to_string().contains("[withheld]"), "{redacted}");
}

#[test]
fn the_inspector_lists_and_calls_through_the_door() {
    let env = guarded("");
    let inspector = installed("node/node_modules/.bin/mcp-inspector");
    let server = node("server-everything", &["stdio"]);
    let run = |args: &[&str]| {
        let mut command = env.command(&inspector);
        // It hands on little of its environment.
        command.args(["--cli", PINTLE, "--config"]).arg(env.path("config/pintle/pintle.toml"));
        command.arg("--home").arg(env.path("data/pintle")).args(&proxy_words("all", &server)[1..]).args(args);
        let output = TestEnv::output(&mut command, "");
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr),
        )
    };
    let (code, listed) = run(&["--method", "tools/list"]);
    assert!(code == Some(0) && listed.contains("get-sum"), "{listed}");
    let (_, called) = run(&["--method", "tools/call", "--tool-name", "echo", "--tool-arg", "message=hi"]);
    assert!(called.contains("Echo: hi"), "{called}");
    let (_, refused) = run(&["--method", "tools/call", "--tool-name", "echo", "--tool-arg", "message=forbidden"]);
    assert!(refused.contains("not in this house"), "{refused}");
}
