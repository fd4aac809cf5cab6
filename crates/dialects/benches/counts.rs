//! What the wire of process hooks costs in instructions and allocations: params out, frames and results in.
//!
//! `cargo xtask bench -- --count` counts; anything else runs each case once.

#![expect(missing_docs, reason = "the macros of the harness write public items")]

use std::hint::black_box;

use gungraun::prelude::*;
use gungraun::{Callgrind, Dhat, main};
use jiff::Timestamp;
use pintle_dialects::process::frame::{IdScanner, Incoming, read_line};
use pintle_dialects::process::wire::{hear, params};
use pintle_domain::checkpoint::{BeforeLlm, BeforeTool, Checkpoint, Reply};
use pintle_domain::id::{CallId, EventId, TurnId};
use pintle_domain::identity::Identity;
use pintle_domain::json::{Rendered, json};
use pintle_domain::llm::{LlmRequest, ToolDef};
use pintle_domain::message::{CallPart, Message, Role};
use pintle_domain::tool::ToolCall;

/// The size of the large subjects, in bytes of JSON, about.
const LARGE: usize = 100 << 10;
/// The size of the text in the arguments of the small ones.
const SMALL: usize = 200;

/// An event, and what is asked there.
struct Asked<C> {
    event_id: EventId,
    at: Timestamp,
    who: Identity,
    subject: C,
}

impl<C: Checkpoint> Asked<C> {
    fn about(subject: C) -> Self {
        let who = Identity { iteration: 3, ..Identity::top("main", "cli:direct", TurnId::from("turn_00000001")) };
        let at = "2026-03-01T09:30:00.123456789Z".parse().expect("a good timestamp");
        Self { event_id: EventId::from("0197a5b0-7000-7000-8000-000000000009"), at, who, subject }
    }

    fn params(&self) -> Vec<u8> {
        params(black_box(&self.event_id), self.at, &self.who, self.subject.subject())
    }
}

fn call(bytes: usize) -> Asked<BeforeTool> {
    let arguments = json!({ "path": "notes/größe.md", "text": "x".repeat(bytes) });
    let call = ToolCall {
        id: CallId::from("call_00000017"),
        tool: "write".to_owned(),
        raw_tool: "write".to_owned(),
        arguments: arguments.as_object().cloned().unwrap_or_default(),
    };
    Asked::about(BeforeTool { call, owner: None })
}

/// A conversation of about so many bytes of JSON: mixed roles, calls of tools with their results, text in two scripts.
/// None of its messages was written as JSON before.
fn conversation(bytes: usize) -> LlmRequest {
    let rounds = bytes / 1000;
    let mut messages = vec![Message::text(Role::System, "You are an agent that mends data pipelines. Be brief.")];
    for round in 0..rounds {
        let id = format!("call_{round:08}");
        let tool_calls = vec![CallPart::new(&id, "search", r#"{"path":"logs/import.log","pattern":"ERROR|WARN"}"#)];
        messages.push(Message::text(Role::User, "Die Umlaute in „Größe“ kommen falsch an.\n".repeat(5)));
        messages.push(Message { tool_calls, ..Message::text(Role::Assistant, "I look at the log first.") });
        messages.push(Message::tool(&id, "import.log:118: \"WARN\" value too long\t\n".repeat(7)));
    }
    let parameters = json!({ "type": "object", "properties": { "path": { "type": "string" } }, "required": ["path"] });
    let tools =
        ["read", "write", "search", "exec"].map(|name| ToolDef::new(name, "Works on a file.", parameters.clone()));
    let options = json!({ "temperature": 0.2, "max_tokens": 4096 });
    LlmRequest {
        model: "main/large".to_owned(),
        messages: messages.into_iter().map(Rendered::new).collect(),
        tools: tools.into_iter().map(Rendered::new).collect(),
        options: options.as_object().cloned().unwrap_or_default(),
        graceful_terminal: false,
    }
}

/// A request none of whose messages was written as JSON before.
fn fresh(bytes: usize) -> Asked<BeforeLlm> {
    Asked::about(BeforeLlm::new(conversation(bytes)))
}

/// A request all of which was written before, as in a next round.
fn written(bytes: usize) -> Asked<BeforeLlm> {
    let asked = fresh(bytes);
    black_box(asked.params());
    asked
}

#[library_benchmark(setup = call)]
#[bench::small(SMALL)]
#[bench::large(LARGE)]
fn before_tool_out(asked: Asked<BeforeTool>) -> (Vec<u8>, Asked<BeforeTool>) {
    (asked.params(), asked)
}

#[library_benchmark]
#[bench::large_new(args = (LARGE), setup = fresh)]
#[bench::large_known(args = (LARGE), setup = written)]
fn before_llm_out(asked: Asked<BeforeLlm>) -> (Vec<u8>, Asked<BeforeLlm>) {
    (asked.params(), asked)
}

/// What a child prints whose result is `result`.
fn line(result: &str) -> Vec<u8> {
    format!(r#"{{"jsonrpc":"2.0","id":17,"result":{result}}}"#).into_bytes()
}

/// A question, the params it was sent as, and the line that answers it.
type Answered<C> = (Asked<C>, Vec<u8>, Vec<u8>);

fn continued(bytes: usize) -> Answered<BeforeTool> {
    let asked = call(bytes);
    let params = asked.params();
    (asked, params, line(r#"{"action":"continue"}"#))
}

fn changed(bytes: usize) -> Answered<BeforeTool> {
    let asked = call(bytes);
    let params = asked.params();
    let mut arguments = asked.subject.call.arguments.clone();
    arguments.insert("path".to_owned(), "elsewhere.md".into());
    let result = json!({ "action": "modify", "call": { "tool": "write", "arguments": arguments } });
    (asked, params, line(&result.to_string()))
}

/// The line, read as the answer to the question.
fn heard<C: Checkpoint>(asked: &Asked<C>, params: &[u8], line: Vec<u8>) -> Reply {
    let Incoming::Reply(reply) = read_line(line) else { panic!("the line is not a reply") };
    hear(asked.subject.subject(), params, &reply, true).expect("the reply is an answer")
}

#[library_benchmark]
#[bench::continue_small(args = (SMALL), setup = continued)]
#[bench::changed_small(args = (SMALL), setup = changed)]
#[bench::changed_large(args = (LARGE), setup = changed)]
fn before_tool_in((asked, params, line): Answered<BeforeTool>) -> (Reply, Asked<BeforeTool>, Vec<u8>) {
    (heard(&asked, &params, line), asked, params)
}

/// The whole request, sent back as it went.
fn echoed(bytes: usize) -> Answered<BeforeLlm> {
    returned(bytes, |params| params)
}

/// The whole request, sent back with another first message.
fn rewritten(bytes: usize) -> Answered<BeforeLlm> {
    returned(bytes, |params| params.replacen("Be brief.", "Be thorough.", 1))
}

fn returned(bytes: usize, change: impl Fn(String) -> String) -> Answered<BeforeLlm> {
    let asked = fresh(bytes);
    let params = asked.params();
    let request = change(String::from_utf8(params.clone()).expect("params are text"));
    (asked, params, line(&format!(r#"{{"action":"modify","request":{request}}}"#)))
}

#[library_benchmark]
#[bench::same_large(args = (LARGE), setup = echoed)]
#[bench::changed_large(args = (LARGE), setup = rewritten)]
fn before_llm_in((asked, params, line): Answered<BeforeLlm>) -> (Reply, Asked<BeforeLlm>, Vec<u8>) {
    (heard(&asked, &params, line), asked, params)
}

fn large_line() -> Vec<u8> {
    echoed(LARGE).2
}

#[library_benchmark(setup = large_line)]
#[bench::large()]
fn frame(line: Vec<u8>) -> Incoming {
    read_line(line)
}

#[library_benchmark(setup = large_line)]
#[bench::large()]
fn scan_for_id(line: Vec<u8>) -> (Option<u64>, Vec<u8>) {
    let mut scanner = IdScanner::new();
    scanner.feed(black_box(&line));
    assert_eq!(scanner.id(), Some(17), "the id was not found");
    (scanner.id(), line)
}

library_benchmark_group!(
    name = process_hooks,
    benchmarks = [before_tool_out, before_llm_out, before_tool_in, before_llm_in, frame, scan_for_id]
);
main!(
    config = LibraryBenchmarkConfig::default()
        .tool(Callgrind::with_args(["--cache-sim=no"]))
        .tool(Dhat::with_args(["--num-callers=500"])),
    library_benchmark_groups = process_hooks
);
