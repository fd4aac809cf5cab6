//! `respond`: a hook's result in a tool's place, and how it reaches the model and the user.

use std::sync::{Arc, Mutex};

use pintle_agent::driver::TurnEnding;
use pintle_domain::checkpoint::{CallPatch, CheckpointKind, Substitute};
use pintle_domain::json::{Value, json};
use pintle_domain::tool::ToolOutput;
use pintle_domain::verdict::{Verdict, VerdictKind};

use crate::hooks::{OwnTool, Rule, child};
use crate::host::{Host, Parts};

const NOTE: &str = "The output above was already delivered to the user in this chat.";

fn calling_echo() -> (Host, Arc<OwnTool>) {
    let echo = OwnTool::giving("echo", ToolOutput::ok("the real one"));
    let script = json!([{"tool_calls": [{"id": "c1", "name": "echo", "arguments": {"n": 1}}]}, {"text": "done"}]);
    (Parts::of(script).own(echo.clone()).host(), echo)
}

/// A turn in which a child answers the call with `result`.
async fn answered(result: &Value) -> (Host, pintle_agent::TurnReport) {
    let (mut host, echo) = calling_echo();
    let answer = json!({"action": "respond", "result": result}).to_string();
    host.mount(vec![child(&host, "h", &[("before_tool", &answer)], json!({}))]);
    let report = host.turn("go").await;
    assert_eq!(echo.calls().len(), 0, "the tool never runs in a hook's place");
    host.engine.close().await;
    (host, report)
}

#[tokio::test]
async fn a_result_reaches_the_model_and_the_user_as_it_says() {
    let table = [
        (json!({"for_llm": "15 °C"}), "15 °C".to_owned(), vec![]),
        (json!({"for_llm": "15 °C", "for_user": "It is mild."}), "15 °C".to_owned(), vec!["It is mild."]),
        (json!({"for_llm": "15 °C", "for_user": "It is mild.", "silent": true}), "15 °C".to_owned(), vec![]),
        (json!({"for_llm": ""}), String::new(), vec![]),
        (json!({"for_llm": "", "artifact_tags": ["/a", "/b"]}), "Local artifact paths: /a, /b".to_owned(), vec![]),
        (
            json!({"for_llm": "made", "artifact_tags": ["/a"], "async": true}),
            "made\n\nLocal artifact paths: /a".to_owned(),
            vec![],
        ),
        (
            json!({"for_llm": "seen", "media": ["media://1", "/x.png"]}),
            "seen\n\nmedia unavailable: media://1: no media store is in use\n\nmedia unavailable: /x.png: no media store is in use"
                .to_owned(),
            vec![],
        ),
        (json!({"for_llm": "no", "is_error": true}), "no".to_owned(), vec![]),
    ];
    for (result, text, to_user) in table {
        let (host, report) = answered(&result).await;
        assert_eq!((host.result("c1"), report.reply.as_str()), (text.clone(), "done"), "{result}");
        assert_eq!(*host.seen.for_user.lock().unwrap(), to_user, "{result}");
        assert_eq!(host.asked(1).last(), Some(&format!("c1: {text}")), "{result}");
        let mut end = host.seen.payloads("tool_exec_end").remove(0);
        let expected = json!({"Tool": "echo", "Duration": 0, "ForLLMLen": text.len(),
            "ForUserLen": result["for_user"].as_str().unwrap_or_default().len(),
            "IsError": result["is_error"] == true, "Async": result["async"] == true, "ToolCallID": "c1", "Hook": "h"});
        assert_eq!(end.take(), expected, "{result}");
        let start = json!({"Tool": "echo", "Arguments": {"n": 1}, "ToolCallID": "c1", "Hook": "h"});
        assert_eq!(host.seen.payloads("tool_exec_start"), [start]);
        assert_eq!(host.seen.count("post_tool_use"), 1);
    }
}

#[tokio::test]
async fn handled_results_end_the_turn_without_another_call() {
    let handled = json!({"for_llm": "sent", "for_user": "Here it is.", "response_handled": true});
    let (host, report) = answered(&handled).await;
    assert_eq!((report.reply.as_str(), &report.ending), ("", &TurnEnding::Completed));
    assert_eq!(host.model.count(), 1);
    assert_eq!(*host.seen.for_user.lock().unwrap(), ["Here it is."]);
    assert_eq!(host.result("c1"), format!("sent\n\n{NOTE}"));
    assert_eq!(host.said()[3], "assistant: Requested output delivered via tool attachment.");
    let end = host.seen.payloads("turn_end").remove(0);
    assert_eq!(
        (&end["Status"], &end["FinalContentLen"], &end["Iterations"]),
        (&json!("completed"), &json!(0), &json!(1))
    );
    assert_eq!((host.seen.count("stop"), host.is_valid()), (1, true));
}

#[tokio::test]
async fn a_delivery_that_fails_is_an_error_and_the_turn_goes_on() {
    let attached = json!({"for_llm": "sent", "media": ["media://1"], "response_handled": true});
    let (host, report) = answered(&attached).await;
    assert_eq!(host.result("c1"), "failed to deliver attachment: no media store is in use");
    assert_eq!((report.reply.as_str(), host.model.count()), ("done", 2));
    assert_eq!(host.seen.payloads("tool_exec_end")[0]["IsError"], true);
}

#[tokio::test]
async fn one_call_that_is_not_handled_keeps_the_turn_going() {
    let echo = OwnTool::giving("echo", ToolOutput::ok("hi"));
    let call = |id: &str, name: &str| json!({"id": id, "name": name, "arguments": {}});
    let script = json!([{"tool_calls": [call("c1", "shown"), call("c2", "echo")]}, {"text": "done"}]);
    let shown = OwnTool::giving("shown", ToolOutput { response_handled: true, ..ToolOutput::ok("x") });
    let mut host = Parts::of(script).own(echo).own(shown).host();
    assert_eq!(host.turn("go").await.reply, "done");
    assert_eq!(host.result("c1"), format!("x\n\n{NOTE}"));
}

#[tokio::test]
async fn a_respond_without_a_good_result_or_grant_denies_whatever_on_failure_says() {
    let table = [
        (r#"{"action":"respond"}"#, json!({})),
        (r#"{"action":"respond","result":{"for_user":"x"}}"#, json!({})),
        (r#"{"action":"respond","result":{"for_llm":7}}"#, json!({})),
        (r#"{"action":"respond","result":[]}"#, json!({})),
        (r#"{"action":"respond","result":{"for_llm":"x"}}"#, json!({"respond": ["other_*"]})),
        (r#"{"action":"respond","result":{"for_llm":"x"},"call":{"tool":"nothing"}}"#, json!({"respond": ["echo"]})),
        (r#"{"action":"respond","result":{"for_llm":"x"},"call":{"tool":"two\nlines"}}"#, json!({})),
    ];
    for (answer, mut more) in table {
        for on_failure in ["deny", "continue"] {
            let (mut host, echo) = calling_echo();
            more["on_failure"] = json!({"before_tool": on_failure});
            host.mount(vec![child(&host, "h", &[("before_tool", answer)], more.clone())]);
            host.turn("go").await;
            let text = host.result("c1");
            let phrase = r#"Tool execution denied by hook: hook "h" broke the protocol"#;
            assert_eq!(text, phrase, "{answer} {on_failure}");
            assert_eq!((echo.calls().len(), host.seen.count("tool_exec_start")), (0, 0));
            host.engine.close().await;
        }
    }
}

#[tokio::test]
async fn the_call_that_was_answered_stands_in_events_and_not_in_the_conversation() {
    let (mut host, _) = calling_echo();
    let rule = Rule {
        before_tool: Some(Box::new(|_| {
            let arguments = json!({"n": 2}).as_object().unwrap().clone();
            let call = Some(CallPatch { tool: None, arguments: Some(arguments) });
            Verdict::respond(Substitute { call, result: ToolOutput::ok("two") })
        })),
        ..Rule::default()
    };
    host.mount(vec![host.engine.native("h", 0, Arc::new(rule))]);
    host.turn("go").await;
    assert_eq!(host.seen.payloads("tool_exec_start")[0]["Arguments"], json!({"n": 2}));
    assert_eq!(host.said()[1], r#"assistant: [c1=echo({"n":1})]"#);
    assert_eq!(host.result("c1"), "two");
    let records = host.seen.records.lock().unwrap();
    let decided = records.iter().find(|record| record.checkpoint == CheckpointKind::BeforeTool).unwrap();
    assert_eq!((decided.ruling.word, decided.ruling.substituted), (VerdictKind::Respond, true));
}

#[tokio::test]
async fn an_answer_may_be_of_a_tool_that_nobody_has_and_the_gates_rule_on_its_name() {
    // As the seed of the protocol writes it.
    let answer = r#"{"action":"respond","call":{"tool":"my_plugin_tool","arguments":{"query":"hello"}},
        "result":{"for_llm":"Plugin tool executed successfully","for_user":"","silent":false,"is_error":false}}"#
        .replace('\n', "");
    for denied in ["echo", "my_plugin_tool", "nothing"] {
        let (mut host, echo) = calling_echo();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let saw = asked.clone();
        let gate = Rule {
            gate: Some(Box::new(move |at| {
                saw.lock().unwrap().push(format!("{} {}", at.call.tool, json!(at.call.arguments)));
                if at.call.tool == denied { Verdict::deny("never") } else { Verdict::Continue }
            })),
            ..Rule::default()
        };
        host.mount(vec![
            child(&host, "h", &[("before_tool", &answer)], json!({})),
            host.engine.native("gate", 1, Arc::new(gate)),
        ]);
        host.turn("go").await;
        let names = [r#"echo {"n":1}"#, r#"my_plugin_tool {"query":"hello"}"#];
        let runs = denied == "nothing";
        let text = if runs { "Plugin tool executed successfully" } else { "Hook blocked: pre_tool_use: gate: never" };
        assert_eq!((host.result("c1").as_str(), echo.calls().len()), (text, 0), "{denied}");
        let rulings = if denied == "echo" { &names[..1] } else { &names[..] };
        assert_eq!(*asked.lock().unwrap(), rulings, "{denied}");
        let starts = host.seen.payloads("tool_exec_start");
        let tools: Vec<&str> = starts.iter().filter_map(|start| start["Tool"].as_str()).collect();
        assert_eq!(tools, if runs { vec!["my_plugin_tool"] } else { vec![] }, "{denied}");
        assert_eq!(host.said()[1], r#"assistant: [c1=echo({"n":1})]"#);
        assert_eq!(host.seen.everything().contains("executed successfully"), runs, "{denied}");
        host.engine.close().await;
    }
}

#[tokio::test]
async fn a_gate_stands_above_a_hooks_answer_and_the_other_stages_do_not() {
    for denies in [true, false] {
        let (mut host, echo) = calling_echo();
        let answers = Rule {
            before_tool: Some(Box::new(|_| {
                Verdict::respond(Substitute { call: None, result: ToolOutput::ok("of the hook") })
            })),
            approve: Some(Box::new(|_| Verdict::deny("approvers are not asked"))),
            after_tool: Some(Box::new(|_| Verdict::abort_turn("`after_tool` is not asked"))),
            ..Rule::default()
        };
        let gate = Rule {
            gate: Some(Box::new(move |_| if denies { Verdict::deny("never") } else { Verdict::Continue })),
            ..Rule::default()
        };
        host.mount(vec![
            host.engine.native("answers", 0, Arc::new(answers)),
            host.engine.native("gate", 1, Arc::new(gate)),
        ]);
        assert_eq!(host.turn("go").await.ending, TurnEnding::Completed);
        let text = if denies { "Hook blocked: pre_tool_use: gate: never" } else { "of the hook" };
        assert_eq!((host.result("c1").as_str(), echo.calls().len()), (text, 0));
        assert_eq!(host.seen.everything().contains("of the hook"), !denies, "a denied result is nowhere");
    }
}

#[tokio::test]
async fn the_first_answer_ends_the_chain() {
    let (mut host, _) = calling_echo();
    host.mount(vec![
        child(
            &host,
            "first",
            &[("before_tool", r#"{"action":"respond","result":{"for_llm":"1"}}"#)],
            json!({"priority": 1}),
        ),
        child(&host, "later", &[("before_tool", r#"{"action":"deny_tool"}"#)], json!({"priority": 2})),
    ]);
    host.turn("go").await;
    assert_eq!(host.result("c1"), "1");
    host.engine.close().await;
}

#[tokio::test]
async fn an_answer_in_another_spelling_of_an_absent_tool_meets_the_gates_of_its_name() {
    let result = || ToolOutput::ok("written");
    // What the model calls, and what the hook says that it answered.
    for (asked, answered) in [("Write", None), ("functions.write_file", None), ("echo", Some("Write"))] {
        let script = json!([{"tool_calls": [{"id": "c1", "name": asked, "arguments": {}}]}, {"text": "ok"}]);
        let mut host = Parts::of(script).own(OwnTool::giving("echo", ToolOutput::ok("hi"))).host();
        let call = answered.map(|name: &str| CallPatch { tool: Some(name.into()), arguments: None });
        let rule = Rule {
            before_tool: Some(Box::new(move |_| Verdict::respond(Substitute { call: call.clone(), result: result() }))),
            gate: Some(Box::new(
                |at| {
                    if at.call.tool == "write_file" { Verdict::deny("never") } else { Verdict::Continue }
                },
            )),
            ..Rule::default()
        };
        host.mount(vec![host.engine.native("h", 0, Arc::new(rule))]);
        host.turn("go").await;
        assert_eq!(host.result("c1"), "Hook blocked: pre_tool_use: h: never", "{asked} {answered:?}");
    }
}
