//! Whole turns: what the user, the model and the observers get, in which order, under which identity.

use std::collections::BTreeSet;
use std::sync::Arc;

use pintle_agent::driver::TurnEnding;
use pintle_domain::checkpoint::AfterLlm;
use pintle_domain::json::json;
use pintle_domain::llm::LlmReply;
use pintle_domain::message::Role;
use pintle_domain::verdict::Verdict;

use crate::hooks::{OwnTool, Rule};
use crate::host::{Host, Parts};
use pintle_domain::tool::ToolOutput;

/// A model that calls `echo` once and then says `done`, with a tool `echo` that says `hi`.
fn echoing() -> (Host, Arc<OwnTool>) {
    let echo = OwnTool::giving("echo", ToolOutput::ok("hi"));
    let mut parts = Parts::of(json!([
        {"tool_calls": [{"id": "c1", "name": "echo", "arguments": {"text": "hi"}}], "reasoning": "hm"},
        {"text": ["do", "ne"]},
    ]));
    parts.settings.system = "Be short.".into();
    parts.settings.options = json!({"temperature": 0.5, "max_tokens": 9}).as_object().unwrap().clone();
    (parts.own(echo.clone()).host(), echo)
}

#[tokio::test]
async fn a_turn_with_one_call_is_told_in_order_with_every_payload() {
    let (mut host, echo) = echoing();
    let report = host.turn("say hi").await;
    assert_eq!((report.reply.as_str(), report.ending), ("done", TurnEnding::Completed));
    assert_eq!(echo.calls(), [r#"echo({"text":"hi"})"#]);
    assert_eq!(host.said(), ["user: say hi", r#"assistant: [c1=echo({"text":"hi"})]"#, "c1: hi", "assistant: done"]);
    // Without an `after_llm` hook the user reads the text as it arrives; the observers hear of it merged.
    assert_eq!(*host.seen.deltas.lock().unwrap(), "done");
    assert_eq!(
        host.seen.stamps(),
        [
            "session_start 0 -",
            "turn_start 0 -",
            "llm_request 1 -",
            "llm_delta 1 -",
            "llm_response 1 -",
            "tool_exec_start 1 c1",
            "tool_exec_end 1 c1",
            "post_tool_use 1 c1",
            "llm_request 2 -",
            "llm_delta 2 -",
            "llm_delta 2 -",
            "llm_response 2 -",
            "turn_end 0 -",
            "stop 0 -",
        ]
    );
    let payloads: Vec<_> = host.seen.events().iter().map(crate::host::payload).collect();
    let request =
        |n| json!({"Model": "scripted/test", "MessagesCount": n, "ToolsCount": 1, "MaxTokens": 9, "Temperature": 0.5});
    let delta = |text, thought| json!({"ContentDeltaLen": text, "ReasoningDeltaLen": thought});
    assert_eq!(
        payloads,
        [
            json!({"Channel": "cli", "ChatID": "direct", "UserMessage": "say hi", "MediaCount": 0}),
            request(2),
            delta(0, 2),
            json!({"ContentLen": 0, "ToolCalls": 1, "HasReasoning": true}),
            json!({"Tool": "echo", "Arguments": {"text": "hi"}, "ToolCallID": "c1"}),
            json!({"Tool": "echo", "Duration": 0, "ForLLMLen": 2, "ForUserLen": 0, "IsError": false, "Async": false,
                "ToolCallID": "c1"}),
            request(4),
            delta(2, 0),
            delta(2, 0),
            json!({"ContentLen": 4, "ToolCalls": 0, "HasReasoning": false}),
            json!({"Status": "completed", "Iterations": 2, "Duration": 0, "FinalContentLen": 4,
                "UserMessage": "say hi", "FinalContent": "done", "ToolKinds": ["echo"],
                "ToolExecutions": [{"name": "echo", "success": true}]}),
        ]
    );
}

#[tokio::test]
async fn the_model_sees_the_system_text_the_history_and_what_tools_said() {
    let (mut host, _) = echoing();
    host.turn("say hi").await;
    assert_eq!(host.asked(0), ["system: Be short.", "user: say hi"]);
    assert_eq!(
        host.asked(1),
        ["system: Be short.", "user: say hi", r#"assistant: [c1=echo({"text":"hi"})]"#, "c1: hi"]
    );
    let request = host.model.request(0);
    assert_eq!(json!(request.options), json!({"temperature": 0.5, "max_tokens": 9}));
    assert_eq!(request.tools.iter().map(|tool| tool.get().function.name.as_str()).collect::<Vec<_>>(), ["echo"]);
    assert_eq!(host.model.models(), ["test", "test"]);
}

#[tokio::test]
async fn a_second_turn_goes_on_where_the_first_ended_and_starts_no_session() {
    let mut host = Parts::of(json!([{"text": "one"}, {"text": "two"}])).host();
    host.turn("first").await;
    host.turn("second").await;
    assert_eq!(host.asked(1), ["user: first", "assistant: one", "user: second"]);
    assert_eq!((host.seen.count("session_start"), host.seen.count("turn_end"), host.seen.count("stop")), (1, 2, 2));
    let turns: std::collections::BTreeSet<String> = {
        let notices = host.seen.notices.lock().unwrap();
        notices.iter().skip(1).map(|notice| notice.who.turn_id.to_string()).collect()
    };
    assert_eq!(turns.len(), 2, "each turn has an id of its own");
}

#[tokio::test]
async fn the_iteration_limit_ends_the_turn_with_one_error() {
    let echo = OwnTool::giving("echo", ToolOutput::ok("hi"));
    let mut parts = Parts::of(json!([{"tool_calls": [{"id": "c", "name": "echo", "arguments": {}}], "repeat": true}]));
    parts.settings.max_iterations = 2;
    let mut host = parts.own(echo.clone()).host();
    let report = host.turn("go").await;
    let text = "iteration limit 2 reached";
    assert_eq!(report.ending, TurnEnding::Failed { stage: "llm".into(), text: text.into() });
    // The script has nothing but calls to say, also in the last words: those are passed over.
    assert_eq!((host.model.count(), echo.calls().len()), (3, 2));
    assert_eq!(host.seen.payloads("error"), [json!({"Stage": "llm", "Message": text})]);
    assert_eq!(host.seen.payloads("turn_end")[0]["Status"], "error");
    assert_eq!(host.seen.names().iter().rev().take(2).collect::<Vec<_>>(), [&"turn_end", &"error"]);
    assert!(host.is_valid());
}

#[tokio::test]
async fn at_the_iteration_limit_the_model_is_asked_to_sum_up() {
    let echo = OwnTool::giving("echo", ToolOutput::ok("hi"));
    let call = json!({"tool_calls": [{"id": "c", "name": "echo", "arguments": {}}]});
    let failing = json!({"error": {"kind": "final", "message": "no"}});
    for (last, said) in [(json!({"text": "so far: hi"}), "so far: hi"), (failing, "")] {
        let mut parts = Parts::of(json!([call, last]));
        parts.settings.max_iterations = 1;
        let mut host = parts.own(echo.clone()).host();
        let report = host.turn("go").await;
        let text = "iteration limit 1 reached".to_owned();
        assert_eq!((report.reply.as_str(), report.ending), (said, TurnEnding::Failed { stage: "llm".into(), text }));
        let asked = host.model.request(1);
        assert_eq!((asked.tools.len(), asked.graceful_terminal), (0, true));
        let note = asked.messages.last().unwrap().get().clone();
        assert_eq!((note.role, note.origin.as_str()), (Role::System, "hook"), "it leaves between the marks");
        assert!(note.content.starts_with("The one round of this turn is spent: this is its last answer"), "{note:?}");
        // It is asked in that call alone, and stands in no conversation.
        let lines = host.said();
        assert!(!lines.iter().any(|line| line.contains("is spent")), "{lines:?}");
        assert_eq!(lines.len(), if said.is_empty() { 3 } else { 4 }, "{lines:?}");
        assert_eq!(host.seen.payloads("turn_end")[0]["FinalContent"], said);
        assert!(host.is_valid());
    }
}

#[tokio::test]
async fn an_error_whose_text_only_looks_like_the_limit_is_told_once() {
    let mut parts = Parts::of(json!([{"error": {"kind": "final", "message": "iteration limit 1 reached"}}]));
    parts.settings.max_iterations = 1;
    let mut host = parts.host();
    host.turn("go").await;
    assert_eq!(host.seen.errors(), ["llm: iteration limit 1 reached"]);
}

#[tokio::test]
async fn arguments_that_are_no_object_reach_no_tool_and_the_batch_goes_on() {
    let echo = OwnTool::giving("echo", ToolOutput::ok("hi"));
    let call = |id: &str, arguments| json!({"id": id, "name": "echo", "arguments": arguments});
    let calls = [
        call("c1", json!("[1]")),
        call("c2", json!("{\"a\":")),
        call("c3", json!("")),
        call("c4", json!({"a": 1})),
        call("c5", json!("null")),
    ];
    let mut host = Parts::of(json!([{"tool_calls": calls}, {"text": "done"}])).own(echo.clone()).host();
    assert_eq!(host.turn("go").await.ending, TurnEnding::Completed);
    assert_eq!(echo.calls(), ["echo({})", r#"echo({"a":1})"#, "echo({})"], "`null` is no arguments");
    assert_eq!(host.result("c1"), "the tool did not run: the arguments are not a JSON object");
    let broken = host.result("c2");
    assert!(broken.starts_with("the tool did not run: the arguments are not valid JSON: EOF"), "{broken}");
    let skipped = host.seen.payloads("tool_exec_skipped");
    assert_eq!(
        skipped[0],
        json!({"Tool": "echo", "Reason": "the tool did not run: the arguments are not a JSON object", "ToolCallID": "c1"})
    );
    assert_eq!((skipped.len(), host.seen.count("tool_exec_start"), host.is_valid()), (2, 3, true));
}

#[tokio::test]
async fn a_tool_that_does_not_exist_is_an_error_result() {
    let script = json!([{"tool_calls": [{"id": "c1", "name": "fly", "arguments": {}}]}, {"text": "done"}]);
    let mut host = Parts::of(script).host();
    host.turn("go").await;
    assert_eq!(host.result("c1"), "tool \"fly\" not found");
    assert_eq!(host.seen.payloads("tool_exec_end")[0]["IsError"], true);
    let executions = &host.seen.payloads("turn_end")[0]["ToolExecutions"];
    assert_eq!(*executions, json!([{"name": "fly", "success": false, "error_summary": "tool \"fly\" not found"}]));
}

#[tokio::test]
async fn calls_of_one_id_or_none_get_ids_of_their_own() {
    let echo = OwnTool::giving("echo", ToolOutput::ok("hi"));
    let call = |id: &str| json!({"id": id, "name": "echo", "arguments": {}});
    let round = json!({"tool_calls": [call("c"), call("c"), call("")]});
    let mut host = Parts::of(json!([round, round, {"text": "done"}])).own(echo.clone()).host();
    host.turn("go").await;
    assert_eq!((echo.calls().len(), host.is_valid()), (6, true), "{:?}", host.said());
    // Records and answers of a turn are found by these ids, so rounds share none either.
    let ids: BTreeSet<&str> =
        host.conversation.messages().iter().flat_map(|it| &it.get().tool_calls).map(|part| part.id.as_str()).collect();
    assert_eq!(ids.len(), 6, "{ids:?}");
}

#[tokio::test]
async fn a_blocked_prompt_is_nowhere_but_with_its_user() {
    let mut host = Parts::of(json!([{"text": "hello"}])).host();
    let gate = Rule {
        prompt: Some(Box::new(|at| {
            if at.prompt.contains("hunter2") { Verdict::deny("it holds a password") } else { Verdict::Continue }
        })),
        ..Rule::default()
    };
    host.mount(vec![host.engine.native("secrets", 0, Arc::new(gate))]);
    let report = host.turn("my password is hunter2").await;
    let TurnEnding::Blocked(denied) = report.ending else { panic!("{:?}", report.ending) };
    assert_eq!(denied.text(), "hook blocked user_prompt_submit: secrets: it holds a password");
    assert_eq!((host.said().len(), host.model.count(), report.reply.as_str()), (0, 0, ""));
    assert_eq!(host.seen.names(), ["session_start"]);
    assert!(!host.seen.everything().contains("hunter2"));
    // The session goes on.
    assert_eq!(host.turn("hi").await.reply, "hello");
    assert_eq!(host.said(), ["user: hi", "assistant: hello"]);
    assert_eq!(host.seen.count("session_start"), 1);
}

#[tokio::test]
async fn a_rewritten_prompt_replaces_the_text_everywhere() {
    let mut host = Parts::of(json!([{"text": "ok"}])).host();
    let gate = Rule {
        prompt: Some(Box::new(|at| Verdict::Modify(at.prompt.replace("ann@example.org", "[MAIL]")))),
        ..Rule::default()
    };
    host.mount(vec![host.engine.native("pii", 0, Arc::new(gate))]);
    host.turn("write to ann@example.org").await;
    assert_eq!(host.asked(0), ["user: write to [MAIL]"]);
    assert_eq!(host.said(), ["user: write to [MAIL]", "assistant: ok"]);
    assert_eq!(host.seen.payloads("turn_start")[0]["UserMessage"], "write to [MAIL]");
    assert_eq!(host.seen.payloads("turn_end")[0]["UserMessage"], "write to [MAIL]");
    let events = format!("{:?}", host.seen.notices.lock().unwrap());
    assert!(!events.contains("ann@"), "only the record of the change knows the original");
}

#[tokio::test]
async fn what_was_thought_is_told_once_and_waits_for_the_hooks_like_the_answer() {
    let call = json!({"id": "c", "name": "echo", "arguments": {}});
    let script = json!([
        {"reasoning": ["I look ", "first."], "tool_calls": [call], "usage": {"prompt_tokens": 5, "completion_tokens": 2}},
        {"reasoning": "Now I know.", "text": ["It ", "is hi."], "usage": {"prompt_tokens": 9, "completion_tokens": 1}},
    ]);
    for reviewed in [false, true] {
        let mut host = Parts::of(script.clone()).own(OwnTool::giving("echo", ToolOutput::ok("hi"))).host();
        if reviewed {
            let hide = |at: &AfterLlm| {
                let reasoning_content = at.response.reasoning_content.replace("know", "[hidden]");
                Verdict::Modify(LlmReply { reasoning_content, ..at.response.clone() })
            };
            let rule = Rule { after_llm: Some(Box::new(hide)), ..Rule::default() };
            host.mount(vec![host.engine.native("h", 0, Arc::new(rule))]);
        }
        let report = host.turn("go").await;
        assert_eq!((report.ending, report.reply.as_str()), (TurnEnding::Completed, "It is hi."));
        let known = if reviewed { "Now I [hidden]." } else { "Now I know." };
        let told = [("", "I look first."), ("", known)].map(|(before, text)| (before.to_owned(), text.to_owned()));
        assert_eq!(*host.seen.thoughts.lock().unwrap(), told);
        assert_eq!(*host.seen.deltas.lock().unwrap(), "It is hi.");
        assert_eq!(*host.seen.used.lock().unwrap(), [7, 10]);
    }
}
