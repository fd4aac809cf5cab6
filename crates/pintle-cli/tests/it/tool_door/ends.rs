//! How a proxy ends, and what stays of it: nothing.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::json;

use super::stage::{Hand, guarded, result, tools};
use crate::env::TestEnv;

/// How long something is waited for that comes soon.
const PATIENCE: Duration = Duration::from_secs(30);

/// The processes that the server wrote down: itself, and one that it started.
fn pids(env: &TestEnv) -> Vec<PathBuf> {
    let file = env.path("server/pids");
    let began = Instant::now();
    loop {
        let written = std::fs::read_to_string(&file).unwrap_or_default();
        let found: Vec<PathBuf> = written.split(' ').map(|pid| Path::new("/proc").join(pid)).collect();
        if found.len() == 2 {
            return found;
        }
        assert!(began.elapsed() < PATIENCE, "the server says who it is");
        std::thread::yield_now();
    }
}

fn are_gone(processes: &[PathBuf]) {
    let began = Instant::now();
    while processes.iter().any(|process| process.join("exe").exists()) {
        assert!(began.elapsed() < PATIENCE, "{processes:?} still run");
        std::thread::yield_now();
    }
}

#[test]
fn a_server_that_dies_in_a_call_is_said_and_leaves_nothing() {
    let env = guarded("");
    tools(&env, &[("die", "dies")]);
    let mut hand = Hand::greeted(&env);
    let (text, is_error) = result(&hand.call(1, "die", &json!({})));
    assert!(is_error && text.contains("the server closed its output") && text.contains("is not known"), "{text}");
    let (rest, code) = hand.leave();
    assert_eq!((rest.len(), code), (0, Some(1)));
    are_gone(&pids(&env));
}

#[test]
fn a_client_that_leaves_in_a_call_leaves_nothing() {
    let env = guarded("");
    tools(&env, &[("wait", "waits")]);
    let mut hand = Hand::greeted(&env);
    hand.say(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait"}}"#);
    let processes = pids(&env);
    let (rest, code) = hand.leave();
    assert_eq!((rest.len(), code), (0, Some(0)));
    are_gone(&processes);
}

#[test]
fn a_proxy_that_is_killed_leaves_nothing() {
    let env = guarded("");
    tools(&env, &[("wait", "waits")]);
    let mut hand = Hand::greeted(&env);
    hand.say(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait"}}"#);
    let processes = pids(&env);
    hand.child.kill().unwrap();
    are_gone(&processes);
}

#[test]
fn what_is_piped_in_gets_its_answers() {
    let env = guarded("");
    tools(&env, &[("echo", "says it again")]);
    let mut hand = Hand::greeted(&env);
    hand.say(r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"x":1}}}"#);
    hand.say(r#"{"jsonrpc":"2.0","id":2,"method":"odd/method"}"#);
    let (rest, code) = hand.leave();
    assert_eq!((rest.len(), code), (2, Some(0)), "{rest:?}");
}

#[test]
fn a_server_that_cannot_be_started_is_said() {
    let env = guarded("");
    let seen = env.pintle(&["mcp", "proxy", "--name", "x", "--", "/nowhere/server"]);
    assert!(
        seen.code == Some(1) && seen.err.contains("MCP server `x`") && seen.err.contains("/nowhere/server"),
        "{seen}"
    );
    let seen = env.pintle(&["mcp", "proxy", "--name", "No Name", "--", "true"]);
    assert!(seen.code == Some(2) && seen.err.contains("`No Name` is not a name for a server"), "{seen}");
    let seen = env.pintle(&["mcp", "proxy", "--name", "x", "--listen", "0.0.0.0:1", "--", "true"]);
    assert!(seen.code == Some(2) && seen.err.contains("not an address of this machine alone"), "{seen}");
    let seen = env.pintle(&["mcp", "--strict", "proxy", "--name", "x", "--", "true"]);
    assert!(seen.code == Some(2) && seen.err.contains("leave them out"), "{seen}");
}
