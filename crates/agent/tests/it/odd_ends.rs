//! Answers that are not what they look like: each has its word, and none of them passes for an answer.

use std::sync::Arc;

use pintle_agent::Models;
use pintle_agent::driver::TurnEnding;
use pintle_domain::json::{Value, json};
use pintle_domain::tool::ToolOutput;
use pintle_providers::WireKind::{self, Anthropic, OpenAi};
use pintle_providers::{ProviderSpec, connect};
use pintle_testkit::http::{HttpStub, StubAnswer};

use crate::hooks::OwnTool;
use crate::host::{Host, Parts};

async fn host(kind: WireKind, answers: Vec<Value>) -> (HttpStub, Host, Arc<OwnTool>) {
    let answers = answers.iter().map(|answer| StubAnswer::json(&answer.to_string())).collect();
    let stub = HttpStub::start(answers).await;
    let spec = ProviderSpec { base_url: Some(stub.url()), ..ProviderSpec::new("stub", kind) };
    let mut parts = Parts::of(json!([]));
    parts.settings.model = "stub/m".into();
    parts.models = Some(Arc::new(Models::default().with("stub", connect(&spec).unwrap())));
    let look = OwnTool::giving("look", ToolOutput::ok("seen"));
    let host = parts.own(look.clone()).host();
    (stub, host, look)
}

fn message(content: &Value, stop_reason: &str) -> Value {
    json!({"type": "message", "content": content, "stop_reason": stop_reason})
}

fn choice(message: &Value, finish_reason: &str) -> Value {
    json!({"choices": [{"message": message, "finish_reason": finish_reason}]})
}

/// How a turn ends over `answer`: its reply or failure, and the word of the odd end.
async fn ended(kind: WireKind, answer: Value) -> String {
    let (_stub, mut host, _) = host(kind, vec![answer]).await;
    let report = host.turn("go").await;
    let word = host.seen.payloads("llm_response")[0]["OddEnd"].as_str().unwrap_or("-").to_owned();
    match report.ending {
        TurnEnding::Completed => format!("{word}: replied {}", report.reply),
        TurnEnding::Failed { text, .. } => format!("{word}: failed {text}"),
        other @ (TurnEnding::Blocked(_)
        | TurnEnding::StoppedByHook(_)
        | TurnEnding::Cancelled
        | TurnEnding::Waiting(_)) => format!("{word}: {other:?}"),
    }
}

#[tokio::test]
async fn an_odd_end_has_its_word_and_no_answer_is_a_failure() {
    let text = json!([{"type": "text", "text": "so far"}]);
    let thought = json!([{"type": "thinking", "thinking": "hm", "signature": "s"}]);
    let nothing = json!([]);
    let none = |words: &str| format!("failed `stub/m` gave no answer: {words}");
    let cut = none("the answer was cut at its longest length (length); allow a longer answer with `max_tokens`");
    let full = none(
        "the answer was cut where the model's context was full (context_exceeded); shorten the conversation, or set \
         `context_tokens` of the agent",
    );
    let refused = none("the model refused to answer (refusal)");
    let (empty, thinks) =
        (none("the answer is empty (empty)"), none("the model thought and gave no answer (reasoning_only)"));
    for (content, reason, expected) in [
        (&text, "end_turn", "-: replied so far".to_owned()),
        (&text, "max_tokens", "length: replied so far".to_owned()),
        (&thought, "max_tokens", format!("length: {cut}")),
        (&text, "refusal", "refusal: replied so far".to_owned()),
        (&nothing, "refusal", format!("refusal: {refused}")),
        (&text, "pause_turn", "pause_turn: replied so far".to_owned()),
        (
            &nothing,
            "pause_turn",
            format!("pause_turn: {}", none("the provider paused in the middle of the answer (pause_turn)")),
        ),
        (&nothing, "model_context_window_exceeded", format!("context_exceeded: {full}")),
        (&nothing, "end_turn", format!("empty: {empty}")),
        (&thought, "end_turn", format!("reasoning_only: {thinks}")),
    ] {
        assert_eq!(ended(Anthropic, message(content, reason)).await, expected, "{reason}");
    }
    let withheld = none("the provider withheld the answer, or the rest of it (content_filter)");
    for (said, reason, expected) in [
        (json!({"content": "so far"}), "stop", "-: replied so far".to_owned()),
        (json!({"content": "so far"}), "length", "length: replied so far".to_owned()),
        (json!({"content": ""}), "length", format!("length: {cut}")),
        (json!({"content": null}), "content_filter", format!("content_filter: {withheld}")),
        (json!({"content": null, "refusal": "I cannot"}), "stop", "refusal: replied I cannot".to_owned()),
        (json!({"content": null}), "stop", format!("empty: {empty}")),
        (json!({"content": null, "reasoning_content": "hm"}), "stop", format!("reasoning_only: {thinks}")),
    ] {
        assert_eq!(ended(OpenAi, choice(&said, reason)).await, expected, "{reason}");
    }
}

#[tokio::test]
async fn a_call_that_was_cut_does_not_run_and_the_model_is_told_why() {
    let calls = |second: &str| {
        let call = |id: &str, arguments: &str| json!({"id": id, "function": {"name": "look", "arguments": arguments}});
        choice(&json!({"content": null, "tool_calls": [call("c1", "{\"n\":1}"), call("c2", second)]}), "length")
    };
    let done = || choice(&json!({"content": "done"}), "stop");
    for (arguments, expected) in [
        ("{\"n\":", "The tool did not run: your answer reached its longest length"),
        ("", "The tool did not run: your answer reached its longest length"),
        ("{\"n\":2}", "seen"),
    ] {
        let (_stub, mut host, look) = host(OpenAi, vec![calls(arguments), done()]).await;
        assert_eq!(host.turn("go").await.reply, "done");
        assert_eq!(host.result("c1"), "seen");
        assert!(host.result("c2").starts_with(expected), "{arguments}: {}", host.result("c2"));
        assert_eq!(look.calls().len(), if expected == "seen" { 2 } else { 1 });
    }
    // On the other wire a call that was cut before its arguments looks like one without any.
    let blocks = json!([{"type": "tool_use", "id": "c1", "name": "look", "input": {}}]);
    let end = message(&json!([{"type": "text", "text": "done"}]), "end_turn");
    let (_stub, mut host, look) = host(Anthropic, vec![message(&blocks, "max_tokens"), end]).await;
    assert_eq!(host.turn("go").await.reply, "done");
    assert!(look.calls().is_empty() && host.result("c1").starts_with("The tool did not run"), "{}", host.result("c1"));
    assert_eq!(
        host.seen.payloads("tool_exec_skipped")[0]["Reason"],
        "the answer was cut before this call was complete"
    );
}

#[tokio::test]
async fn calls_of_an_answer_that_was_taken_back_do_not_run() {
    let blocks = json!([{"type": "text", "text": "I will"}, {"type": "tool_use", "id": "c1", "name": "look", "input": {"n": 1}}]);
    let (_stub, mut host, look) = host(Anthropic, vec![message(&blocks, "refusal")]).await;
    let report = host.turn("go").await;
    assert_eq!((report.ending, report.reply.as_str()), (TurnEnding::Completed, "I will"));
    assert!(look.calls().is_empty());
    assert!(host.is_valid());
}
