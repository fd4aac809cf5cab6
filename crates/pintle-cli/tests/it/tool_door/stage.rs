//! What these tests have in common: hooks, a server by hand, and a client that writes lines.

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::env::{BEFORE_TOOL, PINTLE, TestEnv, answering};
use crate::mcp::installed;

/// Hooks that refuse `forbidden`, change the arguments of `change`, and take a word out of results.
pub(super) fn guarded(more: &str) -> TestEnv {
    let env = TestEnv::new();
    let deny = r#"{"action":"deny_tool","reason":"not in this house"}"#;
    let change = r#"{"action":"modify","call":{"tool":"mcp_by_hand_echo","arguments":{"amount":0}}}"#;
    let redact = r#"{"action":"modify","result":{"result":{"for_llm":"[withheld]"}}}"#;
    let mut config = String::new();
    for (name, stage, script) in [
        ("house", "before_tool", answering(&format!("{BEFORE_TOOL}forbidden*"), deny)),
        ("safe", "before_tool", answering(&format!("{BEFORE_TOOL}'\"amount\"'*"), change)),
        ("redact", "after_tool", answering("*hunter2*", redact)),
    ] {
        let file = env.write(&format!("config/pintle/{name}.sh"), &script);
        config += &format!(
            "[hooks.processes.{name}]\nenabled = true\ncommand = ['sh', '{}']\nintercept = ['{stage}']\n",
            file.display()
        );
    }
    env.user_config(&format!("{config}{more}"));
    env
}

/// The names that a server of the registries is reached by.
pub(super) fn everything() -> PathBuf {
    installed("node/node_modules/@modelcontextprotocol/server-everything/dist/index.js")
}

/// A fixture of these tests.
pub(super) fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tool_door").join(name)
}

/// The tools that the server by hand lists, each with a description.
pub(super) fn tools(env: &TestEnv, tools: &[(&str, &str)]) {
    let tool = |(name, description): &(&str, &str)| json!({"name": name, "description": description, "inputSchema": {"type": "object"}});
    env.write("server/tools.json", &tools.iter().map(tool).collect::<Value>().to_string());
}

/// The command that starts the server by hand.
pub(super) fn by_hand(env: &TestEnv) -> Vec<String> {
    let words = [Path::new("python3").to_owned(), fixture("server.py"), env.path("server/calls")];
    words.iter().map(|word| word.to_str().unwrap().to_owned()).collect()
}

/// The calls of tools that reached the server by hand.
pub(super) fn reached(env: &TestEnv) -> Vec<Value> {
    let calls = std::fs::read_to_string(env.path("server/calls")).unwrap_or_default();
    let messages = calls.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    messages.filter(|message| message["method"] == "tools/call").map(|message| message["params"].clone()).collect()
}

/// The program as a proxy before `server`.
pub(super) fn proxy(env: &TestEnv, name: &str, server: &[String]) -> Command {
    let mut command = env.command(PINTLE);
    command.args(["mcp", "proxy", "--name", name, "--"]).args(server);
    command
}

/// The same in words, for a client that starts it.
pub(super) fn proxy_words(name: &str, server: &[String]) -> Vec<String> {
    let own = [PINTLE, "mcp", "proxy", "--name", name, "--"].map(str::to_owned);
    own.into_iter().chain(server.iter().cloned()).collect()
}

/// A client that writes lines by hand.
pub(super) struct Hand {
    pub(super) child: Child,
    to: Option<ChildStdin>,
    from: Lines<BufReader<ChildStdout>>,
}

impl Drop for Hand {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Hand {
    /// One that shook hands with the server by hand behind the door.
    pub(super) fn greeted(env: &TestEnv) -> Self {
        let mut hand = Self::start(proxy(env, "by_hand", &by_hand(env)));
        let params =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "h", "version": "1"}});
        let answer = hand.ask(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}));
        assert_eq!(answer["result"]["serverInfo"]["name"], "by-hand", "{answer}");
        hand.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
        hand
    }

    pub(super) fn start(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().unwrap();
        let from = BufReader::new(child.stdout.take().unwrap()).lines();
        Self { to: child.stdin.take(), child, from }
    }

    pub(super) fn say(&mut self, line: &str) {
        writeln!(self.to.as_mut().unwrap(), "{line}").unwrap();
    }

    pub(super) fn hear(&mut self) -> Value {
        serde_json::from_str(&self.from.next().expect("not the end").unwrap()).unwrap()
    }

    /// The rest of what is said; closes the input first.
    pub(super) fn leave(&mut self) -> (Vec<String>, Option<i32>) {
        self.to = None;
        let rest = self.from.by_ref().map_while(Result::ok).collect();
        (rest, self.child.wait().unwrap().code())
    }

    /// What is said next.
    pub(super) fn ask(&mut self, message: &Value) -> Value {
        self.say(&message.to_string());
        self.hear()
    }

    pub(super) fn call(&mut self, id: u32, tool: &str, arguments: &Value) -> Value {
        let params = json!({"name": tool, "arguments": arguments});
        self.ask(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}))
    }

    pub(super) fn listed(&mut self, id: u32) -> Vec<String> {
        let answer = self.ask(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"}));
        let tools = answer["result"]["tools"].as_array().unwrap_or_else(|| panic!("{answer}"));
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }
}

/// The text of the result in `answer`, and whether it is an error.
pub(super) fn result(answer: &Value) -> (String, bool) {
    let result = &answer["result"];
    let text = result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
    (text.to_owned(), result["isError"].as_bool().unwrap_or(false))
}
