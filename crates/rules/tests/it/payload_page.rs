//! The page about payloads says what is sent: its example is a payload, and it names every member of each.

use std::time::Duration;

use pintle_domain::checkpoint::runtime::TurnStatus;
use pintle_domain::checkpoint::{Notice, ObservedEvent, PreToolUse, SubagentStart, Subject, UserPromptSubmit};
use pintle_domain::id::{EventId, TurnId};
use pintle_domain::identity::Identity;
use pintle_domain::json::{self, Object, Value, json};
use pintle_domain::llm::Usage;
use pintle_domain::tool::{ToolCall, ToolOutput};
use pintle_rules::payload::{of_notice, of_subject};
use pintle_rules::reply::{Exit, stdout};

const PAGE: &str = include_str!("../../../../docs/reference/agent-hook-payload.md");

const EVENT: &str = "0193a5b0-7000-7000-8000-0000000000e1";
const TURN: &str = "0193a5b0-7000-7000-8000-0000000000f1";

/// The blocks of JSON of the page.
fn blocks() -> Vec<&'static str> {
    PAGE.split("```json\n").skip(1).map(|rest| rest.split_once("```").unwrap().0).collect()
}

fn who() -> Identity {
    let top = Identity { iteration: 1, ..Identity::top("main", "cli:1", TurnId::from(TURN)) };
    top.for_call(&"call_1".into())
}

fn call() -> ToolCall {
    let arguments = Object::from_iter([("command".to_owned(), json!("ls -la"))]);
    ToolCall { id: "call_1".into(), tool: "exec".into(), raw_tool: "bash".into(), arguments }
}

fn asked(subject: &Subject<'_>) -> Object {
    let at = "2026-11-22T09:00:00Z".parse().unwrap();
    serde_json::from_slice(&of_subject(&EventId::from(EVENT), &who(), at, subject).unwrap()).unwrap()
}

fn told(what: ObservedEvent) -> Object {
    let at = "2026-11-22T09:00:00Z".parse().unwrap();
    let notice = Notice { event_id: EventId::from(EVENT), at, who: who(), what };
    serde_json::from_slice(&of_notice(&notice).unwrap()).unwrap()
}

#[test]
fn the_example_is_what_is_sent() {
    let sent = asked(&Subject::PreToolUse(&PreToolUse { call: call() }));
    assert_eq!(json::parse(blocks()[0]).unwrap(), Value::Object(sent));
}

#[test]
fn the_answer_of_the_page_is_read() {
    let said = stdout(Exit::Code(0), blocks()[1].as_bytes(), b"").unwrap();
    assert_eq!((said.decision.word(), said.reason.as_deref()), ("block", Some("not here")));
    assert!(said.context.is_some() && said.updated_input.is_some());
}

#[test]
fn every_member_of_every_event_is_named() {
    let start = SubagentStart::new("helper".into(), "look", 1, Some(call()));
    let duration = Duration::ZERO;
    let stopped = ObservedEvent::SubagentStop {
        start: Box::new(start.clone()),
        session_id: "cli:1/d".into(),
        status: TurnStatus::Completed,
        timed_out: false,
        outcome: "found".into(),
        denials: Vec::new(),
        duration,
    };
    let payloads = [
        asked(&Subject::UserPromptSubmit(&UserPromptSubmit::first("hi"))),
        asked(&Subject::SubagentStart(&start)),
        told(ObservedEvent::SessionStart),
        told(ObservedEvent::PostToolUse { call: call(), output: ToolOutput::ok("done"), duration, substituted: false }),
        told(ObservedEvent::Stop { reply: "done".into(), iterations: 1, usage: Usage::default(), duration }),
        told(stopped),
    ];
    let example = json::parse(blocks()[0]).unwrap();
    for payload in payloads {
        let event = payload["hook_event_name"].as_str().unwrap();
        let row = PAGE.lines().find(|line| line.starts_with(&format!("| `{event}` |"))).unwrap();
        let inner = payload.get("subagent").and_then(Value::as_object);
        let names = payload.keys().chain(inner.into_iter().flat_map(Object::keys));
        for name in names.filter(|name| example.get(*name).is_none()) {
            assert!(row.contains(&format!("`{name}`")), "{event}: `{name}` is not in {row}");
        }
    }
}
