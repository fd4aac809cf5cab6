//! Turns that somebody cancels, at every place where they wait.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{BoxFuture, Either, join, select};
use pintle_agent::driver::TurnEnding;
use pintle_agent::{Models, TurnReport};
use pintle_domain::checkpoint::CheckpointKind;
use pintle_domain::hook::{HookState, OnFailure, Stage};
use pintle_domain::json::{Value, json};
use pintle_domain::llm::{LlmReply, LlmRequest};
use pintle_domain::tool::ToolOutput;
use pintle_domain::verdict::Verdict;
use pintle_providers::{Delta, Provider, ProviderError};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::hooks::{OwnTool, Passing, Rule};
use crate::host::{Host, Parts};

fn calls(names: &[&str]) -> Value {
    let calls: Vec<Value> =
        (1..).zip(names).map(|(n, name)| json!({"id": format!("c{n}"), "name": name, "arguments": {}})).collect();
    json!([{"tool_calls": calls}, {"text": "done"}, {"text": "more"}])
}

fn echoing() -> Host {
    let echo = OwnTool::giving("echo", ToolOutput { for_user: "for you".into(), ..ToolOutput::ok("secret") });
    Parts::of(calls(&["echo", "echo"])).own(echo).host()
}

async fn cancelled_once(host: &mut Host, ready: &Notify) -> TurnReport {
    let cancel = CancellationToken::new();
    let turn = host.turn_until("go", &cancel);
    let (report, ()) = join(turn, async {
        ready.notified().await;
        cancel.cancel();
    })
    .await;
    report
}

/// The turn ended once, cancelled, with a conversation that can go on.
fn ended_once(host: &Host, report: &TurnReport, place: &str) {
    assert_eq!((&report.ending, report.reply.as_str()), (&TurnEnding::Cancelled, ""), "{place}");
    assert_eq!((host.seen.count("turn_start"), host.seen.count("turn_end")), (1, 1), "{place}");
    assert_eq!((host.seen.payloads("turn_end")[0]["Status"].as_str(), host.seen.count("stop")), (Some("aborted"), 0));
    assert_eq!(host.seen.names().last(), Some(&"turn_end"), "{place}");
    let own: Vec<String> = host.seen.errors().into_iter().filter(|error| error.starts_with("llm")).collect();
    assert!(own.is_empty() && host.is_valid(), "{place}: {own:?} {:?}", host.said());
}

#[tokio::test]
async fn while_a_hook_is_asked() {
    use CheckpointKind::{AfterLlm, AfterTool, ApproveTool, BeforeLlm, BeforeTool, PreToolUse};
    for at in [BeforeLlm, AfterLlm, BeforeTool, PreToolUse, ApproveTool, AfterTool] {
        let mut host = echoing();
        let ready = Arc::new(Notify::new());
        host.mount(vec![host.engine.native("slow", 0, Passing::hanging(at, ready.clone()))]);
        let report = cancelled_once(&mut host, &ready).await;
        ended_once(&host, &report, at.name());
        let skipped = "Skipped because the turn was cancelled.";
        let withheld = "What the tool gave is withheld: the turn was cancelled before every hook had seen it, and maybe before its end.";
        let batch = |first: &str| {
            let calls = "assistant: [c1=echo({}) c2=echo({})]".to_owned();
            vec!["user: go".to_owned(), calls, format!("c1: {first}"), format!("c2: {skipped}")]
        };
        let (expected, asked) = match at.name() {
            "before_llm" => (vec!["user: go".to_owned()], 0),
            "after_llm" => (vec!["user: go".to_owned()], 1),
            "after_tool" => (batch(withheld), 1),
            _ => (batch(skipped), 1),
        };
        assert_eq!((host.said(), host.model.count()), (expected, asked), "{}", at.name());
        assert_eq!(host.seen.count("llm_request"), asked, "{}", at.name());
        // What no hook has let pass reaches nobody.
        let events = format!("{:?}", host.seen.notices.lock().unwrap());
        assert!(host.seen.for_user.lock().unwrap().is_empty() && !events.contains("secret"), "{}", at.name());
        assert_eq!(
            (host.seen.count("tool_exec_skipped"), host.seen.count("llm_response")),
            (0, usize::from(asked == 1 && at != AfterLlm))
        );
        host.mount(Vec::new());
        assert_eq!(host.turn("again").await.ending, TurnEnding::Completed, "{}", at.name());
    }
}

#[tokio::test]
async fn a_hook_whose_faults_abort_makes_no_error_of_a_cancelled_turn() {
    use CheckpointKind::{AfterLlm, AfterTool, BeforeLlm, BeforeTool};
    for at in [BeforeLlm, AfterLlm, BeforeTool, AfterTool] {
        let mut host = echoing();
        let ready = Arc::new(Notify::new());
        let mut mount = host.engine.native("slow", 0, Passing::hanging(at, ready.clone()));
        let stage = mount.hook.stages.get(at).unwrap().clone();
        mount.hook.stages.set(at, Stage { on_failure: OnFailure::AbortTurn, ..stage });
        host.mount(vec![mount]);
        let report = cancelled_once(&mut host, &ready).await;
        ended_once(&host, &report, at.name());
        assert_eq!(host.seen.count("error"), 0, "{}", at.name());
    }
}

#[tokio::test]
async fn while_the_prompt_is_at_its_gate() {
    let mut host = echoing();
    let ready = Arc::new(Notify::new());
    let at = CheckpointKind::UserPromptSubmit;
    host.mount(vec![host.engine.native("slow", 0, Passing::hanging(at, ready.clone()))]);
    let report = cancelled_once(&mut host, &ready).await;
    assert_eq!((report.ending, host.said().len(), host.model.count()), (TurnEnding::Cancelled, 0, 0));
    assert_eq!((host.seen.count("turn_start"), host.seen.count("turn_end")), (0, 0), "no turn had begun");
}

/// A provider that never answers.
struct Silent(Arc<Notify>);

impl Provider for Silent {
    fn call<'a>(
        &'a self,
        _model: &'a str,
        _request: &'a LlmRequest,
        on_delta: &'a (dyn Fn(Delta<'_>) + Send + Sync),
    ) -> BoxFuture<'a, Result<LlmReply, ProviderError>> {
        on_delta(Delta::Text("half"));
        self.0.notify_one();
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn while_the_model_is_called() {
    let ready = Arc::new(Notify::new());
    let mut parts = Parts::of(json!([]));
    parts.models = Some(Arc::new(Models::default().with("silent", Arc::new(Silent(ready.clone())))));
    parts.settings.model = "silent/x".into();
    parts.settings.fallbacks = vec!["silent/y".into()];
    let mut host = parts.host();
    let report = cancelled_once(&mut host, &ready).await;
    ended_once(&host, &report, "provider");
    let stopped = "assistant: half\n\n[This answer was stopped here.]".to_owned();
    assert_eq!((host.said(), host.seen.count("llm_response")), (vec!["user: go".to_owned(), stopped], 0));
    // It can be undone, once.
    assert_eq!((host.conversation.take_back().await, host.said()), (Ok(true), Vec::new()));
    assert_eq!(host.conversation.take_back().await, Ok(false));
}

#[tokio::test]
async fn what_no_hook_has_reviewed_of_a_stopped_answer_stands_nowhere() {
    for unreviewed in [false, true] {
        let ready = Arc::new(Notify::new());
        let mut parts = Parts::of(json!([]));
        parts.models = Some(Arc::new(Models::default().with("silent", Arc::new(Silent(ready.clone())))));
        parts.settings.model = "silent/x".into();
        parts.settings.stream_unreviewed = unreviewed;
        let mut host = parts.host();
        let rule = Rule { after_llm: Some(Box::new(|_| Verdict::Continue)), ..Rule::default() };
        host.mount(vec![host.engine.native("h", 0, Arc::new(rule))]);
        let report = cancelled_once(&mut host, &ready).await;
        ended_once(&host, &report, "provider");
        assert_eq!(host.said(), ["user: go"]);
        assert_eq!(host.seen.deltas.lock().unwrap().is_empty(), !unreviewed);
    }
}

#[tokio::test(start_paused = true)]
async fn while_a_retry_is_waited_for() {
    let script = json!([{"error": {"kind": "rate_limit", "retry_after_ms": 9_000}}, {"text": "never"}]);
    let mut host = Parts::of(script).host();
    let cancel = CancellationToken::new();
    let turn = host.turn_until("go", &cancel);
    let (report, ()) = join(turn, async {
        tokio::time::sleep(Duration::from_secs(5)).await;
        cancel.cancel();
    })
    .await;
    ended_once(&host, &report, "back-off");
    assert_eq!((host.model.count(), host.seen.count("llm_retry")), (1, 1));
}

/// A tool that says when it runs, and ends when it is cancelled.
fn obedient(ready: Arc<Notify>, read_only: bool) -> Arc<OwnTool> {
    OwnTool::new(
        "work",
        read_only,
        Box::new(move |_, cancel| {
            let ready = ready.clone();
            Box::pin(async move {
                ready.notify_one();
                cancel.cancelled().await;
                ToolOutput::error("it was stopped")
            })
        }),
    )
}

#[tokio::test]
async fn while_a_tool_runs() {
    let ready = Arc::new(Notify::new());
    let mut host = Parts::of(calls(&["work", "work"])).own(obedient(ready.clone(), false)).host();
    let report = cancelled_once(&mut host, &ready).await;
    ended_once(&host, &report, "tool");
    assert_eq!(host.result("c1"), "it was stopped", "calls in flight are finished and reported");
    assert_eq!(host.result("c2"), "Skipped because the turn was cancelled.");
    assert_eq!((host.seen.count("tool_exec_start"), host.seen.count("tool_exec_end")), (1, 1));
    assert_eq!(host.turn("again").await.ending, TurnEnding::Completed);
}

#[tokio::test]
async fn a_result_is_withheld_only_from_hooks_that_wait_for_it() {
    for (state, kept) in [(HookState::Disabled, true), (HookState::Armed, false)] {
        let ready = Arc::new(Notify::new());
        let mut host = Parts::of(calls(&["work"])).own(obedient(ready.clone(), false)).host();
        let rule = Rule { after_tool: Some(Box::new(|_| Verdict::Continue)), ..Rule::default() };
        let mut mount = host.engine.native("h", 0, Arc::new(rule));
        mount.hook.state = state;
        host.mount(vec![mount]);
        let report = cancelled_once(&mut host, &ready).await;
        ended_once(&host, &report, "tool");
        assert_eq!(host.result("c1") == "it was stopped", kept, "{}", host.result("c1"));
    }
}

#[tokio::test]
async fn before_it_begins() {
    let mut host = echoing();
    let cancel = CancellationToken::new();
    cancel.cancel();
    let report = host.turn_until("go", &cancel).await;
    ended_once(&host, &report, "before");
    assert_eq!((host.said(), host.model.count()), (vec!["user: go".to_owned()], 0));
}

#[tokio::test]
async fn a_hard_abort_stops_this_turn_and_not_its_host() {
    let mut host = echoing();
    let rule = Rule { before_tool: Some(Box::new(|_| Verdict::hard_abort("enough"))), ..Rule::default() };
    host.mount(vec![host.engine.native("h", 0, Arc::new(rule))]);
    let cancel = CancellationToken::new();
    host.turn_until("go", &cancel).await;
    assert!(!cancel.is_cancelled());
}

#[tokio::test]
async fn a_turn_that_is_dropped_ends_like_a_cancelled_one() {
    let ready = Arc::new(Notify::new());
    let tool = obedient(ready.clone(), true);
    let mut host =
        Parts::of(calls(&["work", "echo", "work"])).own(tool).own(OwnTool::giving("echo", ToolOutput::ok("hi"))).host();
    let cancel = CancellationToken::new();
    {
        let turn = std::pin::pin!(host.turn_until("go", &cancel));
        let stopped = std::pin::pin!(ready.notified());
        assert!(matches!(select(turn, stopped).await, Either::Right(_)));
    }
    assert_eq!(
        (host.seen.count("turn_end"), host.seen.payloads("turn_end")[0]["Status"].as_str()),
        (1, Some("aborted"))
    );
    assert_eq!(
        host.said(),
        [
            "user: go",
            "assistant: [c1=work({}) c2=echo({}) c3=work({})]",
            "c1: outcome unknown: the turn was dropped while the tool ran",
            "c2: Skipped because the turn was cancelled.",
            "c3: Skipped because the turn was cancelled.",
        ]
    );
    // Its tool was told to stop: nothing is left that would keep the engine from closing.
    host.engine.close().await;
    assert!(!cancel.is_cancelled());
}

#[tokio::test]
async fn a_turn_that_is_dropped_at_a_hook_keeps_its_conversation() {
    let mut host = Parts::of(json!([{"text": "one"}, {"text": "two"}])).host();
    host.turn("first").await;
    let ready = Arc::new(Notify::new());
    let at = CheckpointKind::BeforeLlm;
    host.mount(vec![host.engine.native("slow", 0, Passing::hanging(at, ready.clone()))]);
    {
        let turn = std::pin::pin!(host.turn("second"));
        let stopped = std::pin::pin!(ready.notified());
        assert!(matches!(select(turn, stopped).await, Either::Right(_)));
    }
    assert_eq!(host.said(), ["user: first", "assistant: one", "user: second"]);
    assert_eq!(host.seen.count("turn_end"), 2);
}
