//! `abort_turn` and `hard_abort` at each stage: what ends, what stays, what everybody is told.

use std::sync::Arc;

use pintle_agent::driver::TurnEnding;
use pintle_domain::checkpoint::{AskedKind, CheckpointKind};
use pintle_domain::json::{Value, json};
use pintle_domain::tool::ToolOutput;
use pintle_domain::verdict::{AbortScope, Verdict};

use crate::hooks::{OwnTool, Rule, child};
use crate::host::{Host, Parts};

const STAGES: [CheckpointKind; 4] =
    [CheckpointKind::BeforeLlm, CheckpointKind::AfterLlm, CheckpointKind::BeforeTool, CheckpointKind::AfterTool];

/// A session with one finished turn, whose next turn has three calls in a batch.
async fn second_turn() -> (Host, Arc<OwnTool>) {
    let echo = OwnTool::giving("echo", ToolOutput::ok("hi"));
    let call = |id: &str| json!({"id": id, "name": "echo", "arguments": {}});
    let script = json!([
        {"text": "one"},
        {"text": "thinking", "tool_calls": [call("c1"), call("c2"), call("c3")]},
        {"text": "done"},
        {"text": "more"},
    ]);
    let mut host = Parts::of(script).own(echo.clone()).host();
    host.turn("first").await;
    (host, echo)
}

/// A hook that orders `action` at `stage`, at the second call of a batch.
fn ordering(stage: CheckpointKind, action: &str) -> Arc<Rule> {
    let run = action == "hard_abort";
    let mut rule = Rule::default();
    match stage.asked() {
        Some(AskedKind::BeforeLlm) => {
            rule.before_llm =
                Some(Box::new(move |_| if run { Verdict::hard_abort("r") } else { Verdict::abort_turn("r") }));
        }
        Some(AskedKind::AfterLlm) => {
            rule.after_llm =
                Some(Box::new(move |_| if run { Verdict::hard_abort("r") } else { Verdict::abort_turn("r") }));
        }
        Some(AskedKind::BeforeTool) => {
            rule.before_tool = Some(Box::new(move |at| match (at.call.id.as_str(), run) {
                ("c2", true) => Verdict::hard_abort("r"),
                ("c2", false) => Verdict::abort_turn("r"),
                _ => Verdict::Continue,
            }));
        }
        Some(AskedKind::AfterTool) => {
            rule.after_tool = Some(Box::new(move |at| match (at.call.id.as_str(), run) {
                ("c2", true) => Verdict::hard_abort("r"),
                ("c2", false) => Verdict::abort_turn("r"),
                _ => Verdict::Continue,
            }));
        }
        Some(
            AskedKind::UserPromptSubmit | AskedKind::PreToolUse | AskedKind::ApproveTool | AskedKind::SubagentStart,
        )
        | None => panic!("no abort at {stage:?}"),
    }
    Arc::new(rule)
}

fn stopped(ending: &TurnEnding) -> (AbortScope, String) {
    match ending {
        TurnEnding::StoppedByHook(aborted) => (aborted.abort.abort_scope, aborted.text()),
        TurnEnding::Completed
        | TurnEnding::Blocked(_)
        | TurnEnding::Failed { .. }
        | TurnEnding::Cancelled
        | TurnEnding::Waiting(_) => {
            panic!("{ending:?}")
        }
    }
}

#[tokio::test]
async fn abort_turn_ends_the_turn_and_keeps_what_it_did() {
    for stage in STAGES {
        let (mut host, echo) = second_turn().await;
        host.mount(vec![host.engine.native("h", 0, ordering(stage, "abort_turn"))]);
        let report = host.turn("go").await;
        let text = format!("hook aborted turn during {}: r", stage.name());
        assert_eq!((stopped(&report.ending), report.reply.as_str()), ((AbortScope::Turn, text.clone()), ""));
        let error = json!({"Stage": format!("hook.{}", stage.name()), "Message": text, "Hook": "h"});
        assert_eq!(host.seen.payloads("error"), [error], "{stage:?}");
        let end = host.seen.payloads("turn_end").remove(1);
        assert_eq!((&end["Status"], &end["FinalContentLen"]), (&json!("error"), &json!(0)), "{stage:?}");
        assert_eq!((host.seen.count("turn_end"), host.seen.count("stop")), (2, 1), "{stage:?}");
        assert_eq!(host.seen.names().iter().rev().take(2).collect::<Vec<_>>(), [&"turn_end", &"error"], "{stage:?}");
        let kept: Vec<String> = host.said().drain(2..).collect();
        let batch = "assistant: thinking[c1=echo({}) c2=echo({}) c3=echo({})]";
        let in_batch = ["user: go".into(), batch.into(), "c1: hi".into(), format!("c2: {text}"), format!("c3: {text}")];
        let (expected, ran) = match stage.name() {
            "before_tool" => (in_batch.to_vec(), 1),
            "after_tool" => (in_batch.to_vec(), 2),
            _ => (vec!["user: go".to_owned()], 0),
        };
        assert_eq!((kept, echo.calls().len(), host.is_valid()), (expected, ran, true), "{stage:?}");
        let executed: usize = end["ToolExecutions"].as_array().unwrap().len();
        assert_eq!(executed, ran, "{stage:?}: what ran is listed");
        assert_eq!(host.seen.count("post_tool_use"), ran, "{stage:?}: who watches tools hears of each that ran");
        // The next turn goes on from there.
        host.mount(Vec::new());
        assert_eq!(host.turn("again").await.ending, TurnEnding::Completed, "{stage:?}");
    }
}

#[tokio::test]
async fn hard_abort_takes_the_history_back() {
    for stage in STAGES {
        let (mut host, _) = second_turn().await;
        host.mount(vec![host.engine.native("h", 0, ordering(stage, "hard_abort"))]);
        let report = host.turn("go").await;
        assert_eq!(stopped(&report.ending).0, AbortScope::Run, "{stage:?}");
        assert_eq!(host.said(), ["user: first", "assistant: one"], "{stage:?}");
        assert_eq!((report.reply.as_str(), host.seen.count("error")), ("", 0), "{stage:?}");
        assert_eq!(
            host.seen.payloads("interrupt_received"),
            [
                json!({"Kind": "hard_abort", "Role": "hook", "ContentLen": 0, "QueueDepth": 0, "HintLen": 1, "Hook": "h"})
            ],
            "{stage:?}"
        );
        let ends: Vec<Value> = host.seen.payloads("turn_end").iter().map(|end| end["Status"].clone()).collect();
        assert_eq!((ends, host.seen.count("stop")), (vec![json!("completed"), json!("aborted")], 1), "{stage:?}");
        host.mount(Vec::new());
        assert_eq!(host.turn("again").await.ending, TurnEnding::Completed, "the session goes on");
        assert_eq!(host.said()[2], "user: again");
    }
}

#[tokio::test]
async fn an_abort_without_a_reason_has_a_default_one() {
    let (mut host, _) = second_turn().await;
    host.mount(vec![child(&host, "h", &[("before_llm", r#"{"action":"abort_turn"}"#)], json!({}))]);
    let report = host.turn("go").await;
    assert_eq!(stopped(&report.ending).1, "hook aborted turn during before_llm: hook requested turn abort");
    host.engine.close().await;
}

#[tokio::test]
async fn a_fault_may_abort_the_turn_where_it_was_set_so() {
    for stage in ["before_llm", "after_llm", "after_tool"] {
        let (mut host, _) = second_turn().await;
        let more = json!({"on_failure": {stage: "abort_turn"}});
        host.mount(vec![child(&host, "h", &[(stage, r#"{"action":"nonsense"}"#)], more)]);
        let report = host.turn("go").await;
        let (abort_scope, text) = stopped(&report.ending);
        let phrase = format!(r#"hook aborted turn during {stage}: hook "h" broke the protocol"#);
        assert!(abort_scope == AbortScope::Turn && text == phrase, "{text}");
        // The fault is told, and what became of it.
        assert_eq!(host.seen.count("error"), 2, "{stage}");
        assert!(host.is_valid());
        host.engine.close().await;
    }
}

#[tokio::test]
async fn a_hard_abort_outweighs_the_abort_that_a_call_in_flight_met_before() {
    let reading = |name| OwnTool::new(name, true, Box::new(|_, _| Box::pin(std::future::ready(ToolOutput::ok("x")))));
    let call = |id: &str, name: &str| json!({"id": id, "name": name, "arguments": {}});
    let script = json!([{"tool_calls": [call("c1", "a"), call("c2", "b")]}]);
    let mut host = Parts::of(script).own(reading("a")).own(reading("b")).host();
    let rule = Rule {
        after_tool: Some(Box::new(|at| {
            if at.call.tool == "a" { Verdict::abort_turn("first") } else { Verdict::hard_abort("then") }
        })),
        ..Rule::default()
    };
    host.mount(vec![host.engine.native("h", 0, Arc::new(rule))]);
    let report = host.turn("go").await;
    assert_eq!(stopped(&report.ending).0, AbortScope::Run);
    assert_eq!((host.seen.count("interrupt_received"), host.seen.count("error"), host.said().len()), (1, 0, 0));
    assert_eq!(host.seen.payloads("turn_end")[0]["Status"], "aborted");
}
