//! `pintle mcp`: driven by the client of somebody else, and by hand.

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use pintle_domain::json::{Value, json};

use super::env::{PINTLE, TestEnv};
use super::mcp::installed;
use super::run::{GUARD, MODEL, scripted};

/// Lists the tools of `pintle mcp` and makes `calls`, with the client of the Python SDK.
fn drive(env: &TestEnv, calls: &Value, args: &[&str]) -> (Value, String) {
    let client = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/mcp_client.py");
    let python = installed("venv/bin").join("python");
    let mut command = env.command(python);
    command.arg(client).arg(calls.to_string()).arg(PINTLE).arg("mcp").args(args);
    let seen = env.run(&mut command, "");
    assert_eq!(seen.code, Some(0), "{seen}");
    (serde_json::from_str(&seen.out).unwrap(), seen.err)
}

fn text(text: &str) -> Value {
    json!([{"type": "text", "text": text}])
}

#[test]
fn a_foreign_client_lists_and_calls_behind_the_hooks() {
    let guard = format!("tools = ['read_file', 'list_dir', 'exec', 'mcp_*']\n{GUARD}matcher = '^read_file$'\n");
    // No model is needed, and no other agent is in the way.
    let env = scripted("", &guard.replace("scripted/test", "none"));
    env.write("here/notes.txt", "hello\n");
    let calls = json!([
        ["list_dir", {"path": "."}],
        ["list_dir", {"path": 7}],
        ["exec", {"command": "echo to stdout"}],
        ["read_file", {"path": "notes.txt"}],
        ["nonsense", {}],
        ["bash", {"command": "true"}],
    ]);
    let (got, complaints) = drive(&env, &calls, &["--agent", "main"]);
    assert!(!complaints.contains("Failed to parse"), "only protocol on standard output: {complaints}");
    let names: Vec<&str> = got["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["read_file", "list_dir", "exec"]);
    assert_eq!(got["tools"][0]["annotations"], json!({"readOnlyHint": true}));
    assert_eq!(got["tools"][2].get("annotations"), None);
    assert_eq!(got["calls"][0], json!({"content": text("notes.txt  6"), "isError": false}));
    let denied = "Tool execution denied by hook: not today (hook \"guard\")";
    assert_eq!(got["calls"][1]["isError"], true);
    assert!(got["calls"][2]["content"][0]["text"].as_str().unwrap().contains("to stdout"), "{got}");
    assert_eq!(got["calls"][3], json!({"content": text(denied), "isError": true}));
    for unknown in [&got["calls"][4], &got["calls"][5]] {
        assert!(unknown.as_str().unwrap().contains("unknown tool: "), "{got}");
    }
    let why = env.pintle(&["why", "--tool", "read_file"]).out;
    assert!(why.contains(denied), "{why}");
}

#[test]
fn a_picture_of_a_hook_comes_back_as_one() {
    let answers = "[hooks.processes.paints]\nenabled = true\ncommand = ['python3', 'paints.py']\n\
                   intercept = ['before_tool']\npair = false\n";
    let env = scripted("", answers);
    env.write("config/pintle/paints.py", super::media::PAINTS);
    env.write(
        "config/pintle/result.json",
        r#"{"for_llm": "a dot", "media": ["data:image/png;base64,iVBORw0KGgo="], "response_handled": true}"#,
    );
    let (got, _) = drive(&env, &json!([["list_dir", {}]]), &[]);
    // There is no folder that a client would find files in, so nothing was delivered.
    let image = json!({"type": "image", "data": "iVBORw0KGgo=", "mimeType": "image/png"});
    assert_eq!(got["calls"][0], json!({"content": [text("a dot")[0], image], "isError": false}));
    assert!(!env.path("data/pintle/delivered").exists());
}

/// A client that writes lines by hand.
pub(super) struct Hand {
    child: Child,
    to: ChildStdin,
    from: Lines<BufReader<ChildStdout>>,
}

impl Hand {
    pub(super) fn greeted(env: &TestEnv) -> Self {
        let mut command = env.command(PINTLE);
        command.arg("mcp").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let (to, from) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()).lines());
        let mut hand = Self { child, to, from };
        let params = r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"h","version":"1"}}"#;
        hand.say(&format!(r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{params}}}"#));
        assert_eq!(hand.hear()["result"]["serverInfo"]["name"], "pintle");
        hand.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        hand
    }

    fn say(&mut self, line: &str) {
        writeln!(self.to, "{line}").unwrap();
    }

    fn call(&mut self, id: u32, tool: &str) {
        self.call_with(id, tool, if tool == "find_files" { r#"{"pattern":"*"}"# } else { r#"{"path":"."}"# });
    }

    pub(super) fn call_with(&mut self, id: u32, tool: &str, arguments: &str) {
        let params = format!(r#"{{"name":"{tool}","arguments":{arguments}}}"#);
        self.say(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#));
    }

    pub(super) fn hear(&mut self) -> Value {
        serde_json::from_str(&self.from.next().expect("not the end").unwrap()).unwrap()
    }

    /// Closes the program's input; answers how it ended.
    pub(super) fn leave(mut self) -> Option<i32> {
        drop(self.to);
        self.child.wait().unwrap().code()
    }
}

/// The id of the one approval that waits; waits for it itself.
fn waiting(env: &TestEnv) -> String {
    loop {
        let listed: Value = serde_json::from_str(&env.raw(&["approvals", "list", "--json"])).unwrap();
        if let Some(one) = listed.as_array().unwrap().first() {
            return one["id"].as_str().unwrap().to_owned();
        }
    }
}

#[test]
fn a_call_that_needs_a_person_waits_for_one() {
    let env = scripted("", "ask = ['list_dir']\n");
    env.write("here/notes.txt", "hello\n");
    let mut hand = Hand::greeted(&env);
    hand.call(1, "list_dir");
    let id = waiting(&env);
    let seen = env.on_terminal("y\n", &["approvals", "approve", &id]);
    assert_eq!(seen.code, Some(0), "{seen}");
    assert_eq!(hand.hear()["result"], json!({"content": text("notes.txt  6"), "isError": false}));
    hand.call(2, "list_dir");
    let id = waiting(&env);
    assert_eq!(env.on_terminal("y\n", &["approvals", "refuse", &id, "--note", "not now"]).code, Some(0));
    let refused = hand.hear();
    assert_eq!(refused["result"]["isError"], true);
    assert!(refused["result"]["content"][0]["text"].as_str().unwrap().contains("not now"), "{refused}");
    // A call behind one that waits is answered when the client withdraws that.
    hand.call(3, "list_dir");
    waiting(&env);
    hand.call(4, "find_files");
    hand.say(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}"#);
    assert_eq!(hand.hear()["id"], 4);
    assert_eq!(env.pintle(&["approvals", "list"]).out, "nothing waits for a person\n");
    // Nobody waits for the answer to this one any more.
    hand.call(5, "list_dir");
    waiting(&env);
    assert_eq!(hand.leave(), Some(0));
    assert_eq!(env.pintle(&["approvals", "list"]).out, "nothing waits for a person\n");
}

#[test]
fn it_says_why_it_cannot_serve() {
    let env = scripted(
        "",
        &format!("{GUARD}command = ['no-such-program']\n").replacen("command = ['sh', 'refuses.sh']\n", "", 1),
    );
    let seen = env.pintle(&["mcp", "--strict"]);
    assert_eq!((seen.code, seen.out.as_str()), (Some(5), ""), "{seen}");
    let env = TestEnv::new();
    env.user_config(MODEL);
    let seen = env.pintle(&["mcp", "--agent", "mian"]);
    assert_eq!((seen.code, seen.out.as_str()), (Some(2), ""));
    assert!(seen.err.contains("did you mean `main`?"), "{}", seen.err);
}
