//! What rules cost in instructions and allocations: conditions, payloads out and replies in.
//!
//! `cargo xtask bench -- --count` counts; anything else runs each case once.

#![expect(missing_docs, reason = "the macros of the harness write public items")]

use std::hint::black_box;
use std::sync::Arc;

use gungraun::prelude::*;
use gungraun::{Callgrind, Dhat, main};
use jiff::Timestamp;
use pintle_domain::checkpoint::{PreToolUse, Subject};
use pintle_domain::condition::{Condition as _, ConditionInput};
use pintle_domain::id::{CallId, EventId, TurnId};
use pintle_domain::identity::Identity;
use pintle_domain::json::{Object, Value, json};
use pintle_domain::tool::ToolCall;
use pintle_rules::condition::{Compiled, compile};
use pintle_rules::payload::of_subject;
use pintle_rules::reply::{Exit, HandlerReply, stdout};

/// The size of the large texts, in bytes.
const LARGE: usize = 100 << 10;
/// The size of the small ones.
const SMALL: usize = 200;

/// The arguments of a call of a shell, with so many bytes more than conditions name.
fn input(bytes: usize) -> Object {
    let input = json!({ "cmd": "cargo test --workspace", "note": "n".repeat(bytes), "timeout": 30 });
    input.as_object().cloned().unwrap_or_default()
}

/// A condition and what it is asked about; evaluated once before.
struct Asked {
    condition: Compiled,
    input: Object,
}

impl Asked {
    fn about(expression: &str) -> Self {
        let asked = Self { condition: compile(expression).expect("a good expression"), input: input(1024) };
        assert_eq!(asked.holds(), Ok(false), "the expression holds");
        asked
    }

    fn holds(&self) -> Result<bool, String> {
        let shell = || Arc::default();
        self.condition.holds(black_box(&ConditionInput {
            event: "pre_tool_use",
            tool_name: "exec",
            raw_tool_name: "exec",
            tool_input: Some(&self.input),
            raw_input: "",
            depth: 0,
            agent_id: "a",
            session_id: "s",
            first_prompt: false,
            shell: &shell,
        }))
    }
}

#[library_benchmark(setup = Asked::about)]
#[bench::name_only(r#"tool_name == "write_file""#)]
#[bench::size(r#"tool_name == "exec" && size(tool_input.cmd) > 80"#)]
#[bench::contains(r#"tool_name == "exec" && tool_input.cmd.contains("rm -rf")"#)]
#[bench::either(r#"depth > 2 || tool_input.cmd.startsWith("sudo ")"#)]
#[bench::exists(r#"["git push", "npm publish"].exists(p, tool_input.cmd.contains(p))"#)]
fn condition(asked: Asked) -> (Result<bool, String>, Asked) {
    (asked.holds(), asked)
}

/// An event, and the call that is asked about there.
type Event = (EventId, Identity, Timestamp, PreToolUse);

fn event(bytes: usize) -> Event {
    let call = ToolCall {
        id: CallId::from("call_00000017"),
        tool: "exec".to_owned(),
        raw_tool: "exec".to_owned(),
        arguments: input(bytes),
    };
    let who = Identity::top("main", "cli:direct", TurnId::from("turn_00000001"));
    let at = "2026-03-01T09:30:00.123456789Z".parse().expect("a good timestamp");
    (EventId::from("0197a5b0-7000-7000-8000-000000000009"), who, at, PreToolUse { call })
}

#[library_benchmark(setup = event)]
#[bench::small(SMALL)]
#[bench::large(LARGE)]
fn payload_out(event: Event) -> (Option<Vec<u8>>, Event) {
    let (event_id, who, at, subject) = &event;
    (of_subject(black_box(event_id), who, *at, &Subject::PreToolUse(subject)), event)
}

fn passed(_: usize) -> Vec<u8> {
    br#"{"decision":"allow"}"#.to_vec()
}

fn rewritten(bytes: usize) -> Vec<u8> {
    let reply = json!({ "decision": "allow", "reason": "noted", "updatedInput": Value::Object(input(bytes)) });
    reply.to_string().into_bytes()
}

#[library_benchmark]
#[bench::pass_small(args = (SMALL), setup = passed)]
#[bench::rewrite_small(args = (SMALL), setup = rewritten)]
#[bench::rewrite_large(args = (LARGE), setup = rewritten)]
fn reply_in(printed: Vec<u8>) -> (HandlerReply, Vec<u8>) {
    (stdout(Exit::Code(0), black_box(&printed), b"").expect("the reply can be read"), printed)
}

library_benchmark_group!(name = stored_rules, benchmarks = [condition, payload_out, reply_in]);
main!(
    config = LibraryBenchmarkConfig::default()
        .tool(Callgrind::with_args(["--cache-sim=no"]))
        .tool(Dhat::with_args(["--num-callers=500"])),
    library_benchmark_groups = stored_rules
);
