//! Calls that do not run: who refused them, and what the model and the user read.

use std::sync::Arc;
use std::time::Duration;

use pintle_agent::driver::TurnEnding;
use pintle_domain::checkpoint::{Checkpoint, CheckpointKind, Subject};
use pintle_domain::json::{Value, json};
use pintle_domain::record::EventRecord;
use pintle_domain::store::{OnKept, RecordQuery, RecordStore, StoreError, StoredEvent};
use pintle_domain::tool::ToolOutput;
use pintle_domain::verdict::Verdict;

use crate::hooks::{OwnTool, Passing, Rule, Say, child};
use crate::host::{Host, Parts};

/// A model that calls `echo` twice in one batch, then says `done`.
fn two_calls() -> (Host, Arc<OwnTool>) {
    let echo = OwnTool::giving("echo", ToolOutput::ok("hi"));
    let call = |id: &str, n: u32| json!({"id": id, "name": "echo", "arguments": {"n": n}});
    let parts = Parts::of(json!([{"tool_calls": [call("c1", 1), call("c2", 2)]}, {"text": "done"}]));
    (parts.own(echo.clone()).host(), echo)
}

/// The call `c1` was refused with `text`: neither executed nor approved, told once, and `c2` went on.
fn refused(host: &Host, echo: &OwnTool, text: &str, by: Option<&str>) {
    assert_eq!(host.result("c1"), text);
    assert_eq!(echo.calls(), [r#"echo({"n":2})"#]);
    let mut skipped = json!({"Tool": "echo", "Reason": text, "ToolCallID": "c1"});
    if let Some(by) = by {
        skipped["Hook"] = json!(by);
    }
    assert_eq!(host.seen.payloads("tool_exec_skipped"), [skipped]);
    let of_c1: Vec<String> = host.seen.stamps().into_iter().filter(|line| line.ends_with(" c1")).collect();
    let quiet: Vec<&String> = of_c1.iter().filter(|line| !line.starts_with("error")).collect();
    assert_eq!(quiet, ["tool_exec_skipped 1 c1"]);
    assert!(host.is_valid());
}

#[tokio::test]
async fn deny_tool_says_its_reason_or_only_its_name() {
    let table = [
        (r#""reason":"too late""#, r#"Tool execution denied by hook: too late (hook "guard")"#),
        (r#""reason":"  a\u0007\tb\n""#, r#"Tool execution denied by hook: a b (hook "guard")"#),
        (r#""reason":"""#, r#"Tool execution denied by hook (hook "guard")"#),
        (r#""x":1"#, r#"Tool execution denied by hook (hook "guard")"#),
    ];
    for (member, text) in table {
        let (mut host, echo) = two_calls();
        let rule = Rule { approve: Some(Box::new(|_| Verdict::Continue)), ..Rule::default() };
        let answer = format!(r#"{{"action":"deny_tool",{member}}}"#);
        let guard = child(&host, "guard", &[("before_tool", &answer)], json!({}));
        host.mount(vec![guard, host.engine.native("approver", 0, Arc::new(rule))]);
        host.turn("go").await;
        assert_eq!((host.result("c1").as_str(), host.result("c2").as_str()), (text, text));
        assert_eq!((echo.calls().len(), host.seen.count("tool_exec_start")), (0, 0));
        let approvals = records_at(&host, CheckpointKind::ApproveTool);
        assert!(approvals.iter().all(|record| record.hooks.iter().all(|hook| !ran(&hook))), "{approvals:#?}");
        host.engine.close().await;
    }
}

fn records_at(host: &Host, kind: CheckpointKind) -> Vec<EventRecord> {
    host.seen.records.lock().unwrap().iter().filter(|record| record.checkpoint == kind).cloned().collect()
}

fn ran(record: &pintle_domain::record::Record) -> bool {
    use pintle_domain::record::HookOutcome;
    match record.outcome {
        HookOutcome::Said { .. } | HookOutcome::Failed { .. } => true,
        HookOutcome::Told | HookOutcome::NotRun(_) => false,
    }
}

fn first_call_only<C: Checkpoint>(verdict: Verdict<C>) -> Say<C>
where
    Verdict<C>: Sync,
{
    Some(Box::new(move |at: &C| {
        let first = match at.subject() {
            Subject::BeforeTool(at) => at.call.id.as_str() == "c1",
            Subject::PreToolUse(at) => at.call.id.as_str() == "c1",
            Subject::ApproveTool(at) => at.call.id.as_str() == "c1",
            Subject::UserPromptSubmit(_)
            | Subject::BeforeLlm(_)
            | Subject::AfterLlm(_)
            | Subject::AfterTool(_)
            | Subject::SubagentStart(_) => false,
        };
        if first { verdict.clone() } else { Verdict::Continue }
    }))
}

#[tokio::test]
async fn a_refusal_of_any_stage_stops_that_call_and_no_other() {
    let rules = [
        (
            Rule { before_tool: first_call_only(Verdict::deny("no")), ..Rule::default() },
            r#"Tool execution denied by hook: no (hook "h")"#,
        ),
        (Rule { gate: first_call_only(Verdict::deny("no")), ..Rule::default() }, "Hook blocked: pre_tool_use: h: no"),
        (
            Rule { gate: first_call_only(Verdict::Ask("is it?".into())), ..Rule::default() },
            r#"Tool execution needs a person's approval, and nobody can be asked here: is it? (asked by hook "h")"#,
        ),
        (
            Rule { approve: first_call_only(Verdict::deny("no")), ..Rule::default() },
            r#"Tool execution denied by approval hook: no (hook "h")"#,
        ),
        (
            Rule { approve: first_call_only(Verdict::deny("")), ..Rule::default() },
            r#"Tool execution denied by approval hook (hook "h")"#,
        ),
    ];
    for (rule, text) in rules {
        let (mut host, echo) = two_calls();
        host.mount(vec![host.engine.native("h", 0, Arc::new(rule))]);
        let report = host.turn("go").await;
        assert_eq!((report.reply.as_str(), report.ending), ("done", TurnEnding::Completed));
        refused(&host, &echo, text, Some("h"));
        // The model reads the same.
        assert!(host.asked(1).contains(&format!("c1: {text}")));
    }
}

#[tokio::test]
async fn an_approver_that_does_not_say_yes_refuses() {
    let table = [
        (r#"{"approved":false,"reason":"not today"}"#, r#"not today (hook "boss")"#),
        (r#"{"approved":false}"#, ""),
        ("{}", ""),
        ("null", ""),
        (r#"{"action":"continue"}"#, ""),
        (r#"{"approved":"true"}"#, r#"tool approval hook "boss" failed"#),
        ("[]", r#"tool approval hook "boss" failed"#),
    ];
    for (answer, why) in table {
        let (mut host, echo) = two_calls();
        host.mount(vec![child(&host, "boss", &[("approve_tool", answer)], json!({}))]);
        host.turn("go").await;
        let text = match why {
            "" => r#"Tool execution denied by approval hook (hook "boss")"#.to_owned(),
            why => format!("Tool execution denied by approval hook: {why}"),
        };
        assert_eq!((host.result("c1"), host.result("c2")), (text.clone(), text), "{answer}");
        assert_eq!((echo.calls().len(), host.seen.count("tool_exec_start")), (0, 0), "{answer}");
        host.engine.close().await;
    }
    let (mut host, echo) = two_calls();
    host.mount(vec![child(&host, "boss", &[("approve_tool", r#"{"approved":true}"#)], json!({}))]);
    host.turn("go").await;
    assert_eq!(echo.calls().len(), 2);
    host.engine.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_deadline_that_passes_refuses_where_something_can_be_refused() {
    let table = [
        (CheckpointKind::BeforeTool, r#"Tool execution denied by hook: hook "slow" timed out after 5000 ms"#),
        (CheckpointKind::PreToolUse, r#"Hook blocked: pre_tool_use: slow: hook "slow" timed out after 5000 ms"#),
        (CheckpointKind::ApproveTool, r#"Tool execution denied by approval hook: tool approval hook "slow" timed out"#),
    ];
    for (at, text) in table {
        let (mut host, echo) = two_calls();
        host.mount(vec![host.engine.native("slow", 0, Passing::hanging(at, Arc::default()))]);
        host.turn("go").await;
        assert_eq!((host.result("c1").as_str(), echo.calls().len()), (text, 0), "{at:?}");
        let after = if at == CheckpointKind::ApproveTool { 60_000 } else { 5000 };
        let error = json!({"Stage": format!("hook.{}", at.name()), "Hook": "slow",
            "Message": format!("hook \"slow\" timed out after {after} ms")});
        assert_eq!(host.seen.payloads("error"), [error.clone(), error], "{at:?}");
    }
    for at in [CheckpointKind::BeforeLlm, CheckpointKind::AfterLlm, CheckpointKind::AfterTool] {
        let (mut host, echo) = two_calls();
        host.mount(vec![host.engine.native("slow", 0, Passing::hanging(at, Arc::default()))]);
        assert_eq!(host.turn("go").await.reply, "done", "{at:?}");
        assert_eq!((echo.calls().len(), host.seen.count("error")), (2, 2), "{at:?}");
    }
    let (mut host, _) = two_calls();
    let at = CheckpointKind::UserPromptSubmit;
    host.mount(vec![host.engine.native("slow", 0, Passing::hanging(at, Arc::default()))]);
    let TurnEnding::Blocked(denied) = host.turn("go").await.ending else { panic!("a gate that fails stays shut") };
    assert_eq!(denied.text(), r#"hook blocked user_prompt_submit: slow: hook "slow" timed out after 5000 ms"#);
}

/// A store that cannot write, or never says whether it did.
#[derive(Default)]
struct BadStore {
    hangs: bool,
    kept: std::sync::Mutex<Vec<OnKept>>,
    /// What it was given, each time.
    given: std::sync::Mutex<Vec<Vec<String>>>,
}

/// What matters of a record here: where, what came of it, whether a call may run, and who was asked.
fn line(event: &EventRecord) -> String {
    let ruled = &event.ruling;
    let hooks: Vec<_> = event.hooks.iter().map(|record| record.hook.to_string()).collect();
    format!("{:?} {:?} {:?} {} {}", event.checkpoint, ruled.word, ruled.text, ruled.permit.is_some(), hooks.join(","))
}

impl RecordStore for BadStore {
    fn keep(&self, records: Vec<EventRecord>, done: OnKept) {
        self.given.lock().unwrap().push(records.iter().map(line).collect());
        if self.hangs {
            self.kept.lock().unwrap().push(done);
        } else {
            done(Err(StoreError::Unavailable("the disk is full".into())));
        }
    }

    fn find(&self, _query: &RecordQuery) -> Result<Vec<StoredEvent>, StoreError> {
        Ok(Vec::new())
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_clearing_cannot_be_written_does_not_run() {
    for hangs in [false, true] {
        let echo = OwnTool::giving("echo", ToolOutput::ok("hi"));
        let script = json!([{"tool_calls": [{"id": "c1", "name": "echo", "arguments": {}}]}, {"text": "done"}]);
        let mut parts = Parts::of(script).own(echo.clone());
        let store = Arc::new(BadStore { hangs, ..BadStore::default() });
        parts.store = store.clone();
        let mut host = parts.host();
        let approving = Rule { approve: Some(Box::new(|_| Verdict::Continue)), ..Rule::default() };
        let passing = Rule { before_tool: Some(Box::new(|_| Verdict::Continue)), ..Rule::default() };
        host.mount(vec![
            host.engine.native("a", 0, Arc::new(passing)),
            host.engine.native("b", 0, Arc::new(approving)),
        ]);
        assert_eq!(host.turn("go").await.reply, "done");
        let text = "audit record could not be written";
        assert_eq!((host.result("c1").as_str(), echo.calls().len()), (text, 0));
        let skipped: Vec<Value> = host.seen.payloads("tool_exec_skipped");
        assert_eq!(skipped, [json!({"Tool": "echo", "Reason": text, "ToolCallID": "c1"})]);
        // Nobody is shown a permit that was not given; the refusal is kept as what came of it.
        let passed = "BeforeTool Continue None false a".to_owned();
        let refused = format!("ApproveTool Deny Some({text:?}) false b");
        let granted = "ApproveTool Continue None true b".to_owned();
        let shown: Vec<String> = host.seen.records.lock().unwrap().iter().take(2).map(line).collect();
        assert_eq!(shown, [passed.clone(), refused.clone()]);
        // What the hook said is kept with the refusal, unless the store may still have taken it.
        let again = if hangs { vec![refused] } else { vec![passed.clone(), refused] };
        assert_eq!(store.given.lock().unwrap()[..2], [vec![passed, granted], again]);
    }
}

#[tokio::test(start_paused = true)]
async fn gates_share_one_budget() {
    let (mut host, echo) = two_calls();
    let hang = || Passing::hanging(CheckpointKind::PreToolUse, Arc::default());
    host.mount(vec![host.engine.native("a", 0, hang()).within(Duration::from_secs(60))]);
    host.turn("go").await;
    assert_eq!(host.result("c1"), r#"Hook blocked: pre_tool_use: a: hook "a" timed out after 10000 ms"#);
    assert!(echo.calls().is_empty());
}
