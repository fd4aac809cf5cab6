//! Hooks that change an answer, a call or a result on its way.

use std::sync::Arc;

use pintle_agent::driver::TurnEnding;
use pintle_domain::checkpoint::CallPatch;
use pintle_domain::json::{Value, json};
use pintle_domain::llm::LlmReply;
use pintle_domain::message::CallPart;
use pintle_domain::tool::ToolOutput;
use pintle_domain::verdict::Verdict;

use crate::hooks::{OwnTool, Rule, child, sent};
use crate::host::{Host, Parts};

fn calling(name: &str, arguments: &str) -> Value {
    json!([{"tool_calls": [{"id": "c1", "name": name, "arguments": arguments}]}, {"text": "done"}])
}

fn with_echo(script: Value) -> (Host, Arc<OwnTool>) {
    let echo = OwnTool::giving("echo", ToolOutput { for_user: "for you".into(), ..ToolOutput::ok("secret") });
    (Parts::of(script).own(echo.clone()).host(), echo)
}

#[tokio::test]
async fn digits_survive_the_way_from_the_model_through_hooks_to_the_tool() {
    let text = r#"{"big":12345678901234567890.10,"tiny":1e-400,"zero":1.0,"many":0.1000000000000000000000000001}"#;
    let (mut host, echo) = with_echo(calling("echo", text));
    let answer =
        r#"{"action":"modify","call":{"arguments":{"big":12345678901234567890.10,"more":98765432109876543210.50}}}"#;
    host.mount(vec![
        child(&host, "reads", &[("before_tool", "{}")], json!({"priority": 1})),
        child(&host, "writes", &[("before_tool", answer)], json!({"priority": 2})),
        child(
            &host,
            "sees",
            &[("before_tool", "{}"), ("approve_tool", r#"{"approved":true}"#)],
            json!({"priority": 3}),
        ),
    ]);
    host.turn("go").await;
    let folder = host.folder.path();
    let asked = |name: &str, method: &str| {
        let method = format!("\"method\":\"hook.{method}\"");
        sent(folder, name).into_iter().find(|line| line.contains(&method)).unwrap()
    };
    assert!(asked("reads", "before_tool").contains(&format!(r#""arguments":{text}"#)));
    let written = r#""arguments":{"big":12345678901234567890.10,"more":98765432109876543210.50}"#;
    for method in ["before_tool", "approve_tool", "after_tool"] {
        assert!(asked("sees", method).contains(written), "{method}");
    }
    assert_eq!(echo.calls(), [r#"echo({"big":12345678901234567890.10,"more":98765432109876543210.50})"#]);
    let started = host.seen.payloads("tool_exec_start").remove(0);
    assert_eq!(started["Arguments"].to_string(), r#"{"big":12345678901234567890.10,"more":98765432109876543210.50}"#);
    host.engine.close().await;
}

#[tokio::test]
async fn a_call_is_renamed_to_a_tool_of_this_agent_or_not_at_all() {
    let renaming = |to: &'static str| {
        let patch = move || CallPatch { tool: Some(to.into()), arguments: None };
        Arc::new(Rule { before_tool: Some(Box::new(move |_| Verdict::Modify(patch()))), ..Rule::default() })
    };
    let (host, echo) = with_echo(calling("fly", "{}"));
    let mut host = host;
    host.mount(vec![host.engine.native("h", 0, renaming("functions.Echo"))]);
    host.turn("go").await;
    assert_eq!(echo.calls(), ["echo({})"], "a new name is canonicalised");
    assert_eq!(host.seen.payloads("tool_exec_start")[0]["Tool"], "echo");
    assert_eq!(host.said()[1], "assistant: [c1=fly({})]", "the message keeps what the model wrote");

    let (mut host, echo) = with_echo(calling("echo", "{}"));
    host.mount(vec![host.engine.native("h", 0, renaming("launch"))]);
    host.turn("go").await;
    assert_eq!(echo.calls().len(), 0);
    assert_eq!(host.result("c1"), r#"Tool execution denied by hook: hook "h" broke the protocol"#);
}

#[tokio::test]
async fn the_name_that_the_model_wrote_is_made_canonical_and_both_are_sent() {
    let mut host = Parts { builtin: vec!["list_dir"], ..Parts::of(calling("functions.LS", r#"{"path":"."}"#)) }.host();
    host.mount(vec![child(&host, "h", &[("before_tool", "{}")], json!({"matcher": "LS$"}))]);
    host.turn("go").await;
    let asked = sent(host.folder.path(), "h");
    assert!(
        asked.iter().any(|line| line.contains(r#""tool":"list_dir""#) && line.contains(r#""raw_tool":"functions.LS""#))
    );
    assert_eq!(host.seen.payloads("tool_exec_end")[0]["IsError"], false);
    host.engine.close().await;
}

#[tokio::test]
async fn what_after_tool_removes_reaches_nobody() {
    let (mut host, _) = with_echo(calling("echo", "{}"));
    let answer = r#"{"action":"modify","result":{"result":{"for_llm":"[redacted]"}}}"#;
    host.mount(vec![child(&host, "h", &[("after_tool", answer)], json!({}))]);
    host.turn("go").await;
    assert_eq!(host.result("c1"), "[redacted]");
    // A replaced result is replaced whole: members that are left out are empty.
    assert!(host.seen.for_user.lock().unwrap().is_empty());
    let events = format!("{:?}", host.seen.notices.lock().unwrap());
    assert!(!events.contains("secret") && !events.contains("for you"), "{events}");
    assert_eq!(host.seen.payloads("tool_exec_end")[0]["ForLLMLen"], 10);
    host.engine.close().await;
}

#[tokio::test]
async fn after_tool_sees_error_results_too() {
    let (mut host, _) = with_echo(calling("fly", "{}"));
    let answer = r#"{"result":{"result":{"for_llm":"cannot fly","is_error":true,"for_user":"sorry"}}}"#;
    host.mount(vec![child(&host, "h", &[("after_tool", answer)], json!({}))]);
    host.turn("go").await;
    let asked = sent(host.folder.path(), "h").into_iter().find(|line| line.contains("hook.after_tool")).unwrap();
    assert!(
        asked.contains(r#""result":{"for_llm":"tool \"fly\" not found","for_user":"","silent":false,"is_error":true"#),
        "{asked}"
    );
    assert_eq!(
        (host.result("c1").as_str(), host.seen.for_user.lock().unwrap().as_slice()),
        ("cannot fly", &["sorry".to_owned()][..])
    );
    host.engine.close().await;
}

#[tokio::test]
async fn after_llm_replaces_the_answer_for_everyone() {
    let mut host = Parts::of(json!([{"text": ["a sec", "ret"], "usage": {"prompt_tokens": 3}}])).host();
    let answer = r#"{"action":"modify","response":{"response":{"content":"Hi!"}}}"#;
    host.mount(vec![child(&host, "h", &[("after_llm", answer)], json!({}))]);
    let report = host.turn("go").await;
    assert_eq!((report.reply.as_str(), host.said()[1].as_str()), ("Hi!", "assistant: Hi!"));
    assert_eq!(*host.seen.pieces.lock().unwrap(), [["Hi!"]], "text waits for its ruling and is shown once");
    assert_eq!(host.seen.payloads("llm_response"), [json!({"ContentLen": 3, "ToolCalls": 0, "HasReasoning": false})]);
    assert_eq!(
        host.seen.payloads("llm_delta"),
        [json!({"ContentDeltaLen": 5, "ReasoningDeltaLen": 0}), json!({"ContentDeltaLen": 3, "ReasoningDeltaLen": 0})]
    );
    let told: String = host.seen.payloads("turn_end").iter().map(ToString::to_string).collect();
    assert!(told.contains(r#""FinalContent":"Hi!""#));
    host.engine.close().await;
}

#[tokio::test]
async fn what_the_model_says_is_shown_once_in_every_round() {
    let script = json!([
        {"text": ["let me ", "look"], "tool_calls": [{"id": "c1", "name": "echo", "arguments": {}}]},
        {"tool_calls": [{"id": "c2", "name": "echo", "arguments": {}}]},
        {"text": ["all ", "done"]},
    ]);
    let seen = |held_back: bool, unreviewed: bool| {
        let script = script.clone();
        async move {
            let (mut host, _) = with_echo(script);
            let rule = Rule { after_llm: Some(Box::new(|_| Verdict::Continue)), ..Rule::default() };
            if held_back {
                host.mount(vec![host.engine.native("h", 0, Arc::new(rule))]);
            }
            let mut settings = host.runner.settings().clone();
            settings.stream_unreviewed = unreviewed;
            host.remake(settings);
            assert_eq!(host.turn("go").await.reply, "all done");
            host.seen.pieces.lock().unwrap().clone()
        }
    };
    assert_eq!(seen(true, false).await, [["let me look"], ["all done"]]);
    assert_eq!(seen(true, true).await, [["let me ", "look"], ["all ", "done"]]);
    assert_eq!(seen(false, false).await, [["let me ", "look"], ["all ", "done"]]);
}

#[tokio::test]
async fn what_was_shown_unreviewed_and_rewritten_is_followed_by_what_stands_in_the_conversation() {
    for (left, said, shown) in [
        ("it is ***", pintle_agent::user_output::REWRITTEN, "it is xit is ***"),
        ("", pintle_agent::user_output::TAKEN_OUT, "it is x"),
    ] {
        let mut host = Parts::of(json!([{"text": ["it is ", "x"]}])).host();
        let rule =
            Rule { after_llm: Some(Box::new(move |_| Verdict::Modify(LlmReply::text(left)))), ..Rule::default() };
        host.mount(vec![host.engine.native("h", 0, Arc::new(rule))]);
        let mut settings = host.runner.settings().clone();
        settings.stream_unreviewed = true;
        host.remake(settings);
        host.turn("go").await;
        assert_eq!(*host.seen.for_user.lock().unwrap(), [said]);
        assert_eq!(*host.seen.deltas.lock().unwrap(), shown);
    }
}

#[tokio::test]
async fn what_after_llm_refuses_is_shown_to_nobody() {
    let mut host = Parts::of(json!([{"text": "the password is x"}])).host();
    let rule = Rule { after_llm: Some(Box::new(|_| Verdict::abort_turn("secret"))), ..Rule::default() };
    host.mount(vec![host.engine.native("h", 0, Arc::new(rule))]);
    host.turn("go").await;
    assert_eq!(*host.seen.deltas.lock().unwrap(), "");
}

#[tokio::test]
async fn calls_that_after_llm_adds_take_the_whole_path() {
    let (mut host, echo) = with_echo(json!([{"text": "nothing to do"}, {"text": "done"}]));
    let added = r#"{"response":{"response":{"content":"","tool_calls":[{"function":{"name":"echo","arguments":{"n":1.50}}}]}}}"#;
    let mut answers = vec![("before_tool", "{}"), ("after_llm", added)];
    let gate = Rule {
        gate: Some(Box::new(|at| {
            if at.call.arguments.contains_key("n") { Verdict::deny("no n") } else { Verdict::Continue }
        })),
        ..Rule::default()
    };
    host.mount(vec![child(&host, "h", &answers, json!({})), host.engine.native("gate", 0, Arc::new(gate))]);
    // The child adds its call to every answer, so the limit ends this.
    let report = host.turn("go").await;
    assert!(matches!(report.ending, TurnEnding::Failed { .. }), "{report:?}");
    assert!(echo.calls().is_empty() && host.is_valid());
    let refused: Vec<String> = host.said().into_iter().filter(|line| line.contains("Hook blocked")).collect();
    assert_eq!(refused.len(), 2, "{:?}", host.said());
    host.engine.close().await;

    answers.clear();
    let (mut host, echo) = with_echo(json!([{"text": "nothing to do"}, {"text": "done"}]));
    let rule = Rule {
        after_llm: Some(Box::new(|at| match at.response.content.as_str() {
            "done" => Verdict::Continue,
            _ => Verdict::Modify(LlmReply::calls(vec![CallPart::new("", "echo", r#"{"n":1.50}"#)])),
        })),
        ..Rule::default()
    };
    host.mount(vec![host.engine.native("h", 0, Arc::new(rule))]);
    assert_eq!(host.turn("go").await.reply, "done");
    assert_eq!((echo.calls(), host.is_valid()), (vec![r#"echo({"n":1.50})"#.to_owned()], true));
}

#[tokio::test]
async fn a_gates_rewrite_is_seen_again_by_who_was_asked_before() {
    let (mut host, echo) = with_echo(calling("echo", r#"{"path":"/etc"}"#));
    let rewrites = Rule {
        gate: Some(Box::new(|_| Verdict::Modify(json!({"path": "/tmp"}).as_object().unwrap().clone()))),
        ..Rule::default()
    };
    let sees = Rule { before_tool: Some(Box::new(|_| Verdict::Continue)), ..Rule::default() };
    host.mount(vec![host.engine.native("gate", 0, Arc::new(rewrites)), host.engine.native("sees", 0, Arc::new(sees))]);
    host.turn("go").await;
    assert_eq!(echo.calls(), [r#"echo({"path":"/tmp"})"#]);
    let records = host.seen.records.lock().unwrap();
    let again = records.iter().flat_map(|r| &r.hooks).filter(|r| r.hook.as_str() == "sees" && r.again).count();
    assert_eq!(again, 1);
}

#[tokio::test]
async fn a_gate_and_a_rewriter_that_do_not_agree_refuse_the_call() {
    let (mut host, echo) = with_echo(calling("echo", r#"{"path":"/etc"}"#));
    let gate = Rule {
        gate: Some(Box::new(|_| Verdict::Modify(json!({"path": "/tmp"}).as_object().unwrap().clone()))),
        ..Rule::default()
    };
    let insists = Rule {
        before_tool: Some(Box::new(|_| {
            Verdict::Modify(CallPatch { tool: None, arguments: json!({"path": "/etc"}).as_object().cloned() })
        })),
        ..Rule::default()
    };
    host.mount(vec![
        host.engine.native("gate", 0, Arc::new(gate)),
        host.engine.native("insists", 0, Arc::new(insists)),
    ]);
    host.turn("go").await;
    assert_eq!(echo.calls().len(), 0);
    assert_eq!(host.result("c1"), r#"Tool execution denied by hook: hooks kept rewriting the input (hook "insists")"#);
}
