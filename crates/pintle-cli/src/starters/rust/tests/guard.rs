//! Pipes recorded frames into the guard and checks its replies. Run it with: cargo test

use std::collections::BTreeMap;
use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

/// What the guard answers to `frames`, by id. It has to end when its input ends.
fn replies(frames: &str) -> BTreeMap<u64, Value> {
    let mut guard = Command::new(env!("CARGO_BIN_EXE_guard"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("cargo has built it");
    guard.stdin.take().expect("it is piped").write_all(frames.as_bytes()).expect("the guard reads all of it");
    let output = guard.wait_with_output().expect("the guard ends");
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).expect("JSON is UTF-8");
    let replies = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("each line is JSON"));
    replies.map(|reply| (reply["id"].as_u64().expect("each reply has an id"), reply)).collect()
}

/// A frame that asks about a call of `exec`.
fn call(id: usize, arguments: Value) -> String {
    let params = json!({"tool": "exec", "arguments": arguments, "tool_call_id": "c1", "raw_tool": "exec"});
    format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "method": "hook.before_tool", "params": params}))
}

#[test]
fn recorded_frames() {
    let got = replies(include_str!("../frames.jsonl"));
    assert_eq!(got.keys().copied().collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    assert_eq!(got[&1]["result"]["ok"], true);
    assert_eq!(got[&2]["result"], json!({"action": "deny_tool", "reason": "forced pushes are done by people"}));
    assert_eq!(got[&3]["result"], json!({}));
    assert_eq!(got[&4]["result"], json!({}));
    assert_eq!(got[&5]["error"]["code"], -32601);
}

#[test]
fn more_calls() {
    let refused = ["git push -f", "git -C a push origin --force", "git push origin +main", "true; git push --force"];
    let passed = ["git push", "git push origin fix-force", "ls -f", ""];
    let all: Vec<&str> = refused.into_iter().chain(passed).collect();
    let frames: String = all.iter().enumerate().map(|(at, command)| call(at, json!({"command": command}))).collect();
    let got = replies(&format!("no JSON\n{frames}{}", call(99, json!({}))));
    for (at, command) in all.iter().enumerate() {
        let is_refused = got[&(at as u64)]["result"].get("action").is_some();
        assert_eq!(is_refused, refused.contains(command), "{command}");
    }
    assert_eq!(got[&99]["result"], json!({}));
}
