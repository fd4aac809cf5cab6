//! Model calls that fail: retries, fallbacks, and text that the user has seen already.

use std::sync::Arc;
use std::time::Duration;

use pintle_agent::driver::TurnEnding;
use pintle_agent::{Models, NullOutput, TurnHandle};
use pintle_domain::checkpoint::{AfterLlm, LlmPatch};
use pintle_domain::json::{Value, json};
use pintle_domain::verdict::Verdict;
use pintle_providers::{ProviderSpec, WireKind, connect};
use pintle_testkit::http::{HttpStub, StubAnswer};
use tokio::time::Instant;

use crate::hooks::{OwnTool, Rule};
use crate::host::{Host, Parts, Recorder};

fn failing(kind: &str, after_ms: u64) -> Value {
    json!({"error": {"kind": kind, "message": "busy", "retry_after_ms": after_ms}})
}

fn failed(text: &str) -> TurnEnding {
    TurnEnding::Failed { stage: "llm".into(), text: text.into() }
}

#[tokio::test(start_paused = true)]
async fn a_failure_that_may_pass_is_tried_again_after_a_wait_and_told() {
    let reasons = ["rate_limit", "server_error", "timeout", "network"];
    let script: Vec<Value> = (1..).zip(reasons).map(|(n, kind)| failing(kind, n * 1000)).collect();
    let mut host = Parts::of(json!([script[0], script[1], script[2], script[3], {"text": "done"}])).host();
    let rule = Rule {
        before_llm: Some(Box::new(|_| {
            let options = json!({"temperature": 0.75}).as_object().unwrap().clone();
            Verdict::Modify(LlmPatch { options: Some(options), ..LlmPatch::default() })
        })),
        ..Rule::default()
    };
    host.mount(vec![host.engine.native("h", 0, Arc::new(rule))]);
    let began = Instant::now();
    assert_eq!(host.turn("hi").await.reply, "done");
    assert_eq!(began.elapsed(), Duration::from_secs(1 + 2 + 3 + 4));
    let told: Vec<Value> = (1_u64..)
        .zip(reasons)
        .map(|(n, reason)| json!({"Attempt": n, "MaxRetries": 5, "Reason": reason, "Error": "busy", "Backoff": n * 1_000_000_000}))
        .collect();
    assert_eq!(host.seen.payloads("llm_retry"), told);
    // Retries repeat the request as the hooks left it; hooks and observers are not asked again.
    assert!((0..5).all(|n| host.model.request(n) == host.model.request(0)));
    assert_eq!(json!(host.model.request(4).options), json!({"temperature": 0.75}));
    assert_eq!((host.seen.count("llm_request"), host.seen.count("error")), (1, 0));
}

#[tokio::test(start_paused = true)]
async fn a_wait_that_nobody_asked_for_doubles_within_its_jitter() {
    let mut host = Parts::of(json!([{"error": {"kind": "network"}, "repeat": true}])).host();
    assert_eq!(host.turn("hi").await.ending, failed("scripted network failure"));
    assert_eq!((host.model.count(), host.seen.errors()), (6, vec!["llm: scripted network failure".to_owned()]));
    let waits: Vec<u64> = host.seen.payloads("llm_retry").iter().map(|e| e["Backoff"].as_u64().unwrap()).collect();
    for (n, wait) in waits.iter().enumerate() {
        let longest = 500_000_000 << n;
        assert!((longest / 2..=longest).contains(wait), "{waits:?}");
    }
    assert_eq!((waits.len(), host.is_valid()), (5, true));
}

#[tokio::test(start_paused = true)]
async fn what_cannot_pass_is_not_tried_again() {
    for kind in ["final", "context_limit"] {
        let mut host = Parts::of(json!([failing(kind, 0), {"text": "never"}])).host();
        assert_eq!(host.turn("hi").await.ending, failed("busy"), "{kind}");
        assert_eq!((host.model.count(), host.seen.count("llm_retry")), (1, 0));
        assert_eq!(host.seen.payloads("error"), [json!({"Stage": "llm", "Message": "busy"})]);
        assert_eq!(host.said(), ["user: hi"]);
    }
}

/// A host whose first model plays `first`, with fallbacks to `second/b` and to nobody.
fn with_fallbacks(first: Value, second: Value) -> (Host, Arc<Recorder>) {
    let second = Recorder::playing(&json!({ "replies": second }));
    let mut parts = Parts::of(first);
    parts.models =
        Some(Arc::new(Models::default().with("scripted", parts.model.clone()).with("second", second.clone())));
    parts.settings.fallbacks = vec!["scripted/test".into(), "gone/x".into(), "second/b".into()];
    (parts.host(), second)
}

#[tokio::test(start_paused = true)]
async fn the_fallbacks_get_the_same_request_in_order() {
    let (mut host, second) = with_fallbacks(json!([failing("final", 0)]), json!([{"text": "from b"}]));
    let answered = Arc::new(std::sync::Mutex::new(String::new()));
    let model = answered.clone();
    let rule = Rule {
        after_llm: Some(Box::new(move |at| {
            at.model.clone_into(&mut model.lock().unwrap());
            Verdict::Continue
        })),
        ..Rule::default()
    };
    host.mount(vec![host.engine.native("h", 0, Arc::new(rule))]);
    assert_eq!(host.turn("hi").await.reply, "from b");
    assert_eq!((host.model.count(), second.models()), (1, vec!["b".to_owned()]), "no model is asked twice");
    assert_eq!(second.request(0), host.model.request(0));
    assert_eq!(*answered.lock().unwrap(), "second/b");
    assert_eq!(host.conversation.messages()[1].get().model_name, "second/b");
}

#[tokio::test(start_paused = true)]
async fn when_nobody_answers_each_failure_is_named() {
    let (mut host, _) = with_fallbacks(json!([failing("final", 0)]), json!([failing("final", 0)]));
    let text = "`scripted/test`: busy; `gone/x`: no provider serves model `gone/x`; a model is written PROVIDER/MODEL; providers: scripted, second; `second/b`: busy";
    assert_eq!(host.turn("hi").await.ending, failed(text));
    assert_eq!(host.seen.errors(), [format!("llm: {text}")]);
}

fn cut() -> Value {
    json!({"text": ["half"], "cut": true})
}

#[tokio::test(start_paused = true)]
async fn once_the_user_saw_text_there_is_no_second_try() {
    let watching = || Rule { after_llm: Some(Box::new(|_: &AfterLlm| Verdict::Continue)), ..Rule::default() };
    // (whether a hook is to rule on text, whether it is shown unreviewed, whether the call is tried again)
    for (hook, unreviewed, again) in
        [(false, false, false), (true, false, true), (true, true, false), (false, true, false)]
    {
        let (mut host, second) = with_fallbacks(json!([cut(), {"text": "whole"}]), json!([{"text": "from b"}]));
        let mut settings = host.runner.settings().clone();
        settings.stream_unreviewed = unreviewed;
        host.remake(settings);
        if hook {
            host.mount(vec![host.engine.native("h", 0, Arc::new(watching()))]);
        }
        let report = host.turn("hi").await;
        let shown = host.seen.deltas.lock().unwrap().clone();
        if again {
            assert_eq!((report.reply.as_str(), shown.as_str(), host.seen.count("llm_retry")), ("whole", "whole", 1));
        } else {
            let text = "the answer was cut: the stream ended without its last piece (scripted)";
            assert_eq!((report.ending, shown.as_str(), host.seen.count("llm_retry")), (failed(text), "half", 0));
            assert_eq!(second.count(), 0);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_user_who_sees_no_pieces_may_get_a_second_try() {
    let mut host = Parts::of(json!([cut(), {"text": "whole"}])).host();
    let report = host.runner.turn(&mut host.conversation, "hi", Arc::new(NullOutput), &TurnHandle::default()).await;
    assert_eq!((report.reply.as_str(), host.seen.count("llm_retry")), ("whole", 1));
}

#[tokio::test]
async fn a_disabled_reviewer_holds_nothing_back() {
    let mut host = Parts::of(json!([{"text": "hello"}])).host();
    let entry = json!({"enabled": false, "command": ["true"], "intercept": ["after_llm"]});
    host.mount(vec![pintle_process::mount_entry(&host.engine, "h", &entry, host.folder.path()).unwrap()]);
    host.turn("hi").await;
    assert_eq!(*host.seen.deltas.lock().unwrap(), "hello");
}

#[tokio::test]
async fn an_unpaired_before_llm_hook_holds_nothing_back_and_a_paired_one_does() {
    for (pair, pieces) in [(true, vec!["hello"]), (false, vec!["hel", "lo"])] {
        let mut host = Parts::of(json!([{"text": ["hel", "lo"]}])).host();
        host.mount(vec![crate::hooks::child(&host, "h", &[("before_llm", "{}")], json!({ "pair": pair }))]);
        assert_eq!(host.turn("hi").await.reply, "hello");
        assert_eq!(*host.seen.pieces.lock().unwrap(), [pieces]);
        let asked = crate::hooks::sent(host.folder.path(), "h");
        assert_eq!(asked.iter().any(|line| line.contains("hook.after_llm")), pair);
        host.engine.close().await;
    }
}

#[tokio::test]
async fn a_real_stream_is_retried_read_in_pieces_and_answered() {
    let chunk = |delta: Value| format!("data: {}\n\n", json!({"choices": [{"index": 0, "delta": delta}]}));
    let finish = |why: &str| {
        let last = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": why}]});
        format!("data: {last}\n\ndata: [DONE]\n\n")
    };
    let piece = |arguments: &str| json!({"tool_calls": [{"index": 0, "function": {"arguments": arguments}}]});
    let begin = json!({"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "echo", "arguments": ""}}]});
    let call = [chunk(begin), chunk(piece("{\"n\":1234567890123")), chunk(piece("4567890.10}")), finish("tool_calls")];
    let text = [chunk(json!({"content": "Grüß"})), chunk(json!({"content": " dich"})), finish("stop")].concat();
    let stub = HttpStub::start(vec![
        StubAnswer::new(503, "{}").header("retry-after", "0"),
        StubAnswer::events(&call.concat()).drip(7),
        StubAnswer::events(&text).drip(1),
    ])
    .await;
    let spec =
        ProviderSpec { base_url: Some(format!("{}/v1", stub.url())), ..ProviderSpec::new("local", WireKind::OpenAi) };
    let echo = OwnTool::giving("echo", pintle_domain::tool::ToolOutput::ok("hi"));
    let mut parts = Parts::of(json!([])).own(echo.clone());
    parts.models = Some(Arc::new(Models::default().with("local", connect(&spec).unwrap())));
    parts.settings.model = "local/small".into();
    let mut host = parts.host();
    assert_eq!(host.turn("hallo").await.reply, "Grüß dich");
    assert_eq!(echo.calls(), [r#"echo({"n":12345678901234567890.10})"#]);
    assert_eq!((host.seen.count("llm_retry"), host.seen.deltas.lock().unwrap().as_str()), (1, "Grüß dich"));
    let last = stub.seen().remove(2).json();
    assert_eq!(last["model"], "small");
    let messages = last["messages"].as_array().unwrap();
    assert_eq!(
        (messages.len(), &messages[2]["content"], &messages[2]["tool_call_id"]),
        (3, &json!("hi"), &json!("c1"))
    );
}
