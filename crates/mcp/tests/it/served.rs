//! Our tools, driven by the client of somebody else, and by hand.

#![expect(clippy::unwrap_used, reason = "a step that fails fails its test")]

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use pintle_domain::json::{Object, Value, json};
use pintle_domain::llm::ToolDef;
use pintle_domain::tool::{Annotations, ToolOutput};
use pintle_mcp::{OfferedTool, ServeError, ToolSource, serve};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::host::{PATIENCE, fixture, python};

/// The example, which cargo builds along with the tests.
fn example() -> PathBuf {
    let here = std::env::current_exe().unwrap();
    let built = here.parent().unwrap().parent().unwrap().join("examples/served");
    assert!(built.exists(), "{} is not built: run `cargo build -p pintle-mcp --examples`", built.display());
    built
}

#[test]
fn the_python_client_lists_and_calls() {
    for mode in ["legacy", "auto"] {
        let mut peer = Command::new(python());
        peer.arg(fixture("peer.py")).arg(mode).arg(example());
        let output = peer.stdin(Stdio::null()).output().unwrap();
        let complaints = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{mode}: {complaints}");
        assert!(!complaints.contains("Failed to parse"), "only protocol on standard output: {complaints}");
        let got = pintle_domain::json::parse(&String::from_utf8(output.stdout).unwrap()).unwrap();
        assert_eq!(
            got["tools"][0],
            json!({
                "name": "shout",
                "description": "Says it louder.",
                "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
                "annotations": {"readOnlyHint": true, "destructiveHint": false},
            }),
            "{mode}"
        );
        assert_eq!(got["tools"].as_array().unwrap().len(), 3);
        let text = |text: &str| json!({"type": "text", "text": text});
        let calls = json!([
            {"content": [text("GRÖSSER")], "isError": false},
            {"content": [text("`text` is missing: expected a string")], "isError": true},
            {
                "content": [
                    text(r#"{"n":12345678901234567890123,"deep":[{"x":null}]}"#),
                    {"type": "image", "data": "aGk=", "mimeType": "image/png"},
                ],
                "isError": false,
            },
        ]);
        assert_eq!(got["calls"], calls, "{mode}");
        assert!(got["unknown"].as_str().unwrap().contains("unknown tool: \"nonsense\""), "{}", got["unknown"]);
    }
}

/// Tools that show what reaches them.
#[derive(Default)]
struct Probe {
    begun: Notify,
    withdrawn: Notify,
}

impl ToolSource for Probe {
    fn tools(&self) -> Vec<OfferedTool> {
        let names = ["echo", "wait", "slow", "panic"];
        let tool = |name| OfferedTool {
            definition: ToolDef::new(name, "", json!({"type": "object"})),
            annotations: Annotations::default(),
        };
        names.map(tool).into()
    }

    fn call<'a>(
        &'a self,
        name: &'a str,
        arguments: Object,
        cancel: &'a CancellationToken,
    ) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move {
            match name {
                "wait" => {
                    self.begun.notify_one();
                    cancel.cancelled().await;
                    self.withdrawn.notify_one();
                }
                "slow" => tokio::time::sleep(Duration::from_millis(50)).await,
                "panic" => panic!("as told"),
                _ => {}
            }
            ToolOutput::ok(Value::from(arguments).to_string())
        })
    }
}

/// A client that writes lines by hand.
struct Hand {
    probe: Arc<Probe>,
    to: WriteHalf<DuplexStream>,
    from: Lines<BufReader<ReadHalf<DuplexStream>>>,
    serving: JoinHandle<Result<(), ServeError>>,
}

impl Hand {
    fn new() -> Self {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let ((from, to), (input, output)) = (tokio::io::split(ours), tokio::io::split(theirs));
        let probe = Arc::new(Probe::default());
        let serving = TaskTracker::new().spawn(serve(probe.clone(), input, output));
        Self { probe, to, from: BufReader::new(from).lines(), serving }
    }

    async fn greeted() -> Self {
        let mut hand = Self::new();
        let params = r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"h","version":"1"}}"#;
        hand.say(&format!(r#"{{"jsonrpc":"2.0","id":0,"method":"initialize","params":{params}}}"#)).await;
        assert_eq!(hand.hear().await["result"]["serverInfo"]["name"], "pintle");
        hand.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
        hand
    }

    async fn say(&mut self, line: &str) {
        self.to.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    async fn call(&mut self, id: u32, tool: &str, arguments: &str) {
        let params = format!(r#"{{"name":"{tool}","arguments":{arguments}}}"#);
        self.say(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}"#)).await;
    }

    async fn hear(&mut self) -> Value {
        let line = tokio::time::timeout(PATIENCE, self.from.next_line()).await.expect("an answer").unwrap();
        pintle_domain::json::parse(&line.expect("not the end")).unwrap()
    }

    /// Closes the service's input; it answers what it has, then ends.
    async fn leave(mut self) -> Vec<Value> {
        self.to.shutdown().await.unwrap();
        let mut rest = Vec::new();
        while let Some(line) = tokio::time::timeout(PATIENCE, self.from.next_line()).await.expect("an end").unwrap() {
            rest.push(pintle_domain::json::parse(&line).unwrap());
        }
        self.serving.await.unwrap().unwrap();
        rest
    }
}

#[tokio::test]
async fn digits_reach_the_tool_and_come_back() {
    let mut hand = Hand::greeted().await;
    let digits = r#"{"a":1.10,"b":123456789012345678901234567890,"c":0.30000000000000000001}"#;
    hand.call(1, "echo", digits).await;
    assert_eq!(hand.hear().await["result"]["content"][0]["text"], digits);
    assert_eq!(hand.leave().await, Vec::<Value>::new());
}

#[tokio::test]
async fn what_cannot_be_done_is_a_protocol_error() {
    let mut hand = Hand::greeted().await;
    let code = |answer: Value| (answer["id"].to_string(), answer["error"]["code"].as_i64());
    hand.call(1, "nonsense", "{}").await;
    assert_eq!(code(hand.hear().await), ("1".into(), Some(-32602)));
    hand.call(2, "panic", "{}").await;
    assert_eq!(code(hand.hear().await), ("2".into(), Some(-32603)));
    hand.say(r#"{"jsonrpc":"2.0","id":3,"method":"no/such"}"#).await;
    assert_eq!(code(hand.hear().await), ("3".into(), Some(-32601)));
    hand.say("garbage\n[]\n{\"jsonrpc\":\"2.0\",\"id\":[4],\"method\":\"ping\"}").await;
    assert_eq!(code(hand.hear().await), ("[4]".into(), Some(-32602)));
    hand.call(5, "echo", "{}").await;
    assert_eq!(hand.hear().await["result"]["content"][0]["text"], "{}");
    assert_eq!(hand.leave().await, Vec::<Value>::new());
}

#[tokio::test]
async fn a_request_without_bottom_is_answered_and_an_id_in_use_is_refused() {
    let mut hand = Hand::greeted().await;
    let code = |answer: Value| (answer["id"].to_string(), answer["error"]["code"].as_i64());
    let deep = format!(r#"{{"x":{}{}}}"#, "[".repeat(3000), "]".repeat(3000));
    hand.call(1, "echo", &deep).await;
    assert_eq!(code(hand.hear().await), ("1".into(), Some(-32700)));
    hand.call(2, "wait", "{}").await;
    for _ in 0..4 {
        hand.call(2, "echo", "{}").await;
        assert_eq!(code(hand.hear().await), ("2".into(), Some(-32600)));
    }
    hand.call(3, "echo", "{}").await;
    assert_eq!(hand.hear().await["result"]["content"][0]["text"], "{}");
    hand.say(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}"#).await;
    let probe = hand.probe.clone();
    tokio::time::timeout(PATIENCE, probe.withdrawn.notified()).await.expect("the first one ran alone");
    hand.leave().await;
}

#[tokio::test]
async fn a_withdrawn_call_is_cancelled() {
    let mut hand = Hand::greeted().await;
    hand.call(7, "wait", "{}").await;
    let probe = hand.probe.clone();
    tokio::time::timeout(PATIENCE, probe.begun.notified()).await.expect("the call begins");
    hand.say(r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}"#).await;
    tokio::time::timeout(PATIENCE, probe.withdrawn.notified()).await.expect("the tool learns of it");
    hand.leave().await;
}

#[tokio::test]
async fn a_client_that_closes_our_input_gets_the_answers_it_waits_for() {
    let mut hand = Hand::greeted().await;
    hand.call(1, "slow", "{}").await;
    hand.call(2, "echo", "{}").await;
    let mut ids: Vec<String> = hand.leave().await.iter().map(|answer| answer["id"].to_string()).collect();
    ids.sort();
    assert_eq!(ids, ["1", "2"]);
}

#[tokio::test]
async fn a_client_that_says_nothing_is_no_error() {
    assert_eq!(Hand::new().leave().await, Vec::<Value>::new());
}
