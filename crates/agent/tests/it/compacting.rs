//! Conversations that come near to what the model takes: the oldest messages give way to a summary.

use std::sync::Arc;

use pintle_agent::driver::TurnEnding;
use pintle_agent::{AgentSettings, Conversation};
use pintle_domain::checkpoint::{BeforeLlm, LlmPatch};
use pintle_domain::json::{Rendered, Value, json};
use pintle_domain::llm::{LlmReply, ToolDef};
use pintle_domain::message::{Message, Role};
use pintle_domain::tool::ToolOutput;
use pintle_domain::verdict::Verdict;
use proptest::prelude::*;

use crate::hooks::{OwnTool, Rule};
use crate::host::{Host, Parts, valid};
use crate::test_agents::{Mind, TestAgentsParts, call, said};

/// A message of some hundred tokens.
fn long(word: &str) -> String {
    format!("{word} {}", "x".repeat(400))
}

/// A host whose model plays `replies` and takes about 500 tokens.
fn small(replies: Value) -> Parts {
    let mut parts = Parts::of(replies);
    parts.settings.context_tokens = 500;
    parts
}

/// Four turns of some hundred tokens each: the last one is too much.
async fn filled(mut host: Host) -> Host {
    for word in ["one", "two"] {
        assert_eq!(host.turn(&long(word)).await.ending, TurnEnding::Completed);
    }
    host
}

/// Answers of the first turns, a summary for whoever asks without tools, and more answers.
fn replies() -> Value {
    json!([
        {"when": {"anywhere": "Summarise the following"}, "text": "they talked about x", "repeat": true},
        {"text": long("first")},
        {"text": long("second")},
        {"text": "third"},
    ])
}

#[tokio::test]
async fn the_oldest_messages_give_way_before_it_is_too_late() {
    let host = small(replies()).own(OwnTool::giving("work", ToolOutput::ok("hi"))).host();
    let mut host = filled(host).await;
    let report = host.turn(&long("three")).await;
    assert_eq!((report.ending, report.reply.as_str()), (TurnEnding::Completed, "third"));
    let lines = host.said();
    assert_eq!(lines[0], "user: [Summary of the conversation so far]\nthey talked about x");
    assert_eq!(lines[1], format!("user: {}", long("three")));
    assert_eq!(lines.len(), 3);
    // What the summary was made of, and that no tool was offered for it.
    let aside = host.model.request(2);
    assert_eq!((aside.messages.len(), aside.tools.len(), aside.graceful_terminal), (2, 0, false));
    let transcript = aside.messages[1].get().content.clone();
    let expected = [("user", "one"), ("agent", "first"), ("user", "two"), ("agent", "second")]
        .map(|(who, word)| format!("{who}: {}", long(word)));
    assert_eq!(transcript, expected.join("\n"));
    // The step itself goes out with the summary, and with its tools.
    assert_eq!((host.asked(3), host.model.request(3).tools.len()), (lines[..2].to_vec(), 1));
    let summary_len = "they talked about x".len();
    let summarised =
        json!({"SummarizedMessages": 4, "KeptMessages": 1, "SummaryLen": summary_len, "OmittedOversized": false});
    assert_eq!(host.seen.payloads("session_summarize"), [summarised]);
    let compressed = json!({"Reason": "proactive_budget", "DroppedMessages": 4, "RemainingMessages": 2});
    assert_eq!(host.seen.payloads("context_compress"), [compressed]);
    assert_eq!(host.seen.count("llm_retry"), 0);
    let order = host.seen.names();
    let at = |name: &str| order.iter().position(|told| *told == name).unwrap();
    assert!(at("session_summarize") < at("context_compress"), "{order:?}");
    // The user reads nothing of it.
    assert!(!host.seen.deltas.lock().unwrap().contains("they talked"));
}

#[tokio::test]
async fn what_the_model_finds_too_long_is_shortened_and_asked_again() {
    let mut script = replies();
    let all = script.as_array_mut().unwrap();
    all.insert(3, json!({"error": {"kind": "context_limit", "message": "too long"}}));
    // Nobody said how much it takes.
    let mut host = filled(Parts::of(script).host()).await;
    let report = host.turn(&long("three")).await;
    assert_eq!((report.ending, report.reply.as_str()), (TurnEnding::Completed, "third"));
    let retry = json!({"Attempt": 1, "MaxRetries": 1, "Reason": "context_limit", "Error": "too long", "Backoff": 0});
    assert_eq!(host.seen.payloads("llm_retry"), [retry]);
    let compressed = &host.seen.payloads("context_compress")[0];
    assert_eq!((&compressed["Reason"], compressed["DroppedMessages"].is_u64()), (&json!("llm_retry"), true));
    assert_eq!((host.seen.count("session_summarize"), host.model.count()), (1, 5));
    assert!(host.said()[0].starts_with("user: [Summary of the conversation so far]"), "{:?}", host.said());
    assert_eq!(host.seen.count("error"), 0);
}

#[tokio::test]
async fn a_conversation_that_cannot_be_shortened_fails_as_it_is() {
    let script = json!([{"error": {"kind": "context_limit", "message": "too long"}, "repeat": true}]);
    let mut host = Parts::of(script).host();
    let report = host.turn("hi").await;
    assert_eq!(report.ending, TurnEnding::Failed { stage: "llm".into(), text: "too long".into() });
    assert_eq!((host.model.count(), host.seen.count("context_compress"), host.said().len()), (1, 0, 1));
}

#[tokio::test]
async fn it_is_shortened_once_for_one_call() {
    let script = json!([
        {"when": {"anywhere": "Summarise the following"}, "text": "in short", "repeat": true},
        {"text": long("first")},
        {"text": long("second")},
        {"error": {"kind": "context_limit", "message": "too long"}, "repeat": true},
    ]);
    let mut host = filled(Parts::of(script).host()).await;
    let report = host.turn(&long("three")).await;
    assert_eq!(report.ending, TurnEnding::Failed { stage: "llm".into(), text: "too long".into() });
    assert_eq!((host.seen.count("llm_retry"), host.seen.count("context_compress")), (1, 1));
}

#[tokio::test]
async fn the_call_for_a_summary_passes_its_hooks() {
    let host = small(replies()).own(OwnTool::giving("work", ToolOutput::ok("hi"))).host();
    let mut host = filled(host).await;
    let before = |at: &BeforeLlm| {
        let mut messages = at.request.messages.clone();
        let last = messages.pop().unwrap();
        let said = last.get().content.replace("one", "ONE");
        messages.push(Rendered::new(Message { content: said, ..last.get().clone() }));
        let mut tools = at.request.tools.clone();
        tools.push(Rendered::new(ToolDef::new("brought", "", json!({"type": "object"}))));
        Verdict::Modify(LlmPatch { messages: Some(messages), tools: Some(tools), ..LlmPatch::default() })
    };
    let after = |at: &pintle_domain::checkpoint::AfterLlm| {
        Verdict::Modify(LlmReply { content: at.response.content.replace("they", "THEY"), ..at.response.clone() })
    };
    let rule = Rule { before_llm: Some(Box::new(before)), after_llm: Some(Box::new(after)), ..Rule::default() };
    host.mount(vec![host.engine.native("h", 0, Arc::new(rule))]);
    host.turn(&long("three")).await;
    let aside = host.model.request(2);
    assert!(aside.messages[1].get().content.starts_with("user: ONE"), "{:?}", aside.messages[1]);
    assert_eq!((aside.tools.len(), host.model.request(3).tools.len()), (0, 2), "what they add is not offered there");
    assert_eq!(host.said()[0], "user: [Summary of the conversation so far]\nTHEY talked about x");
    // After it the hooks see the request again, as it is then.
    assert_eq!(host.seen.count("llm_request"), 4);
}

#[tokio::test]
async fn without_a_summary_they_are_left_out() {
    for summary in [json!({"error": {"kind": "final", "message": "no"}}), json!({"text": "  "})] {
        let mut script = replies();
        script[0] = json!({"when": {"anywhere": "Summarise the following"}, "repeat": true});
        for (key, value) in summary.as_object().unwrap() {
            script[0][key] = value.clone();
        }
        let mut host = filled(small(script).host()).await;
        let report = host.turn(&long("three")).await;
        assert_eq!((report.ending, report.reply.as_str()), (TurnEnding::Completed, "third"), "{summary}");
        assert_eq!(host.said(), [format!("user: {}", long("three")), "assistant: third".into()], "{summary}");
        let compressed = json!({"Reason": "proactive_budget", "DroppedMessages": 4, "RemainingMessages": 1});
        assert_eq!(host.seen.payloads("context_compress"), [compressed], "{summary}");
        assert_eq!((host.seen.count("session_summarize"), host.seen.count("error")), (0, 0), "{summary}");
    }
}

#[tokio::test]
async fn a_hook_that_aborts_during_it_ends_the_turn() {
    for run in [false, true] {
        let mut host = filled(small(replies()).host()).await;
        let before = host.said();
        let abort = move |at: &BeforeLlm| {
            let aside = at.request.messages[0].get().role == Role::System;
            match (aside, run) {
                (true, true) => Verdict::hard_abort("enough"),
                (true, false) => Verdict::abort_turn("enough"),
                (false, _) => Verdict::Continue,
            }
        };
        let rule = Rule { before_llm: Some(Box::new(abort)), ..Rule::default() };
        host.mount(vec![host.engine.native("h", 0, Arc::new(rule))]);
        let report = host.turn(&long("three")).await;
        assert!(matches!(report.ending, TurnEnding::StoppedByHook(_)), "{report:?}");
        assert_eq!((host.model.count(), host.seen.count("context_compress")), (2, 0));
        assert_eq!(host.seen.payloads("turn_end").len(), 3);
        let kept = if run { before } else { [before, vec![format!("user: {}", long("three"))]].concat() };
        assert_eq!(host.said(), kept);
    }
}

#[tokio::test]
async fn a_hard_abort_after_it_takes_the_whole_conversation_back() {
    let mut host = filled(small(replies()).host()).await;
    let before = host.said();
    let rule = Rule {
        after_llm: Some(Box::new(|at| {
            if at.response.content == "third" { Verdict::hard_abort("enough") } else { Verdict::Continue }
        })),
        ..Rule::default()
    };
    host.mount(vec![host.engine.native("h", 0, Arc::new(rule))]);
    host.turn(&long("three")).await;
    assert_eq!((host.seen.count("context_compress"), host.said()), (1, before));
}

#[tokio::test]
async fn what_is_too_long_for_the_summary_is_cut() {
    let mut script = replies();
    script[1] = json!({"text": "y".repeat(10_000)});
    let mut host = small(script).host();
    host.turn(&long("one")).await;
    host.turn(&long("two")).await;
    let summarised = &host.seen.payloads("session_summarize")[0];
    assert_eq!(summarised["OmittedOversized"], json!(true));
    let asides: Vec<usize> = {
        let asked = host.model.asked.lock().unwrap();
        let asides = asked.iter().filter(|(_, request)| request.messages[0].get().role == Role::System);
        asides.map(|(_, request)| request.messages[1].get().content.len()).collect()
    };
    assert!(asides.iter().all(|len| *len < 5000), "{asides:?}");
}

/// Two long turns of one agent: rounds of calls, each with results of some length. What the model was asked.
fn rounds(sizes: Vec<usize>, context_tokens: u64) -> Vec<Vec<Rendered<Message>>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let results = sizes.clone();
        let work = OwnTool::new(
            "work",
            false,
            Box::new(move |call, _| {
                let round = call.arguments["round"].as_u64().unwrap();
                let size = results[usize::try_from(round).unwrap()];
                Box::pin(std::future::ready(ToolOutput::ok("z".repeat(size))))
            }),
        );
        let done = std::sync::Mutex::new(0);
        let model = Mind::quick(move |_, request| {
            if request.messages[0].get().content.starts_with("Summarise the following") {
                return LlmReply::text("so far");
            }
            let mut round = done.lock().unwrap();
            *round = if crate::test_agents::last(request) == "go" { 1 } else { *round + 1 };
            let part = |n| call(10 * *round + n, "work", &json!({"round": *round - 1}));
            if *round > sizes.len() { LlmReply::text("done") } else { LlmReply::calls(vec![part(0), part(1)]) }
        });
        let mut parts = TestAgentsParts::of(model, &["main"]).own(work);
        parts.change = Box::new(move |settings| AgentSettings { context_tokens, ..settings });
        let test_agents = parts.test_agents();
        let mut conversation = Conversation::new("s");
        for _ in 0..2 {
            let report = test_agents.turn(&mut conversation, "go").await;
            assert_eq!((report.ending, report.reply.as_str()), (TurnEnding::Completed, "done"));
            assert!(valid(conversation.messages()), "{:?}", said(&conversation));
        }
        let asked = test_agents.model.asked.lock().unwrap();
        asked.iter().map(|(_, request)| request.messages.clone()).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever is left out, no call is parted from its answer, and what is asked begins with something of the user's.
    #[test]
    fn no_call_is_parted_from_its_answer(sizes in proptest::collection::vec(0_usize..3000, 1..8), tokens in 200_u64..2000) {
        for messages in rounds(sizes, tokens) {
            prop_assert!(valid(&messages));
            let first = messages.iter().find(|message| message.get().role != Role::System);
            prop_assert!(first.is_some_and(|message| message.get().role == Role::User));
        }
    }
}

#[tokio::test]
async fn one_long_turn_is_shortened_again_and_again() {
    // In the second turn a summary stands first, then the prompt: to cut between them would free nothing.
    let asked = tokio::task::spawn_blocking(|| rounds(vec![400; 12], 1000)).await.unwrap();
    let asides = asked.iter().filter(|messages| messages[0].get().role == Role::System).count();
    assert!((2..=12).contains(&asides), "{asides} summaries");
    let tokens = |messages: &[Rendered<Message>]| messages.iter().map(|m| m.get().content.len() / 4).sum::<usize>();
    let most = asked.iter().map(|messages| tokens(messages)).max().unwrap();
    assert!(most < 1200, "{most} tokens were sent");
}
