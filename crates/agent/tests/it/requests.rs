//! `before_llm`: what hooks do to a request, and whom its tools belong to.

use std::sync::Arc;

use pintle_agent::Models;
use pintle_agent::driver::TurnEnding;
use pintle_domain::checkpoint::{BeforeLlm, LlmPatch};
use pintle_domain::json::{Rendered, json};
use pintle_domain::llm::ToolDef;
use pintle_domain::tool::ToolOutput;
use pintle_domain::verdict::Verdict;

use crate::hooks::{OwnTool, Rule, child, sent};
use crate::host::{Host, Parts, Recorder};

fn rewriting(say: impl Fn(&BeforeLlm) -> Verdict<BeforeLlm> + Send + Sync + 'static) -> Arc<Rule> {
    Arc::new(Rule { before_llm: Some(Box::new(say)), ..Rule::default() })
}

/// A rule that offers `tools` besides what is offered already, or instead of it.
fn offering(tools: &'static [&'static str], keep: bool) -> Arc<Rule> {
    rewriting(move |at| {
        let own = tools.iter().map(|name| Rendered::new(ToolDef::new(name, "of a hook", json!({"type": "object"}))));
        let kept = at.request.tools.iter().filter(|_| keep).cloned();
        Verdict::Modify(LlmPatch { tools: Some(kept.chain(own).collect()), ..LlmPatch::default() })
    })
}

fn offered(host: &Host, n: usize) -> Vec<String> {
    host.model.request(n).tools.iter().map(|tool| tool.get().function.name.clone()).collect()
}

#[tokio::test]
async fn a_child_rewrites_one_call_and_no_other() {
    let echo = OwnTool::giving("echo", ToolOutput::ok("hi"));
    let script = json!([{"tool_calls": [{"id": "c1", "name": "echo", "arguments": {}}]}, {"text": "done"}]);
    let mut host = Parts::of(script).own(echo).host();
    let answer = r#"{"action":"modify","request":{"messages":[{"role":"system","content":"Be kind."},
        {"role":"user","content":"hello"}],"options":{"temperature":0.25,"seed":12345678901234567890.10}}}"#;
    host.mount(vec![child(&host, "h", &[("before_llm", &answer.replace('\n', ""))], json!({}))]);
    assert_eq!(host.turn("hi").await.ending, TurnEnding::Completed);
    // An omitted member keeps its value; a present one replaces it whole, for this call only.
    assert_eq!(host.asked(0), ["system: Be kind.", "user: hello"]);
    assert_eq!(
        json!(host.model.request(0).options).to_string(),
        r#"{"temperature":0.25,"seed":12345678901234567890.10}"#
    );
    assert_eq!(offered(&host, 0), ["echo"]);
    assert_eq!(host.said()[0], "user: hi");
    let request = host.seen.payloads("llm_request").remove(0);
    assert_eq!(
        request,
        json!({"Model": "scripted/test", "MessagesCount": 2, "ToolsCount": 1, "MaxTokens": 0, "Temperature": 0.25})
    );
    // The second call is rendered from the conversation again: two messages of the round were added.
    let second: pintle_domain::json::Value = sent(host.folder.path(), "h")
        .iter()
        .map(|line| serde_json::from_str::<pintle_domain::json::Value>(line).unwrap())
        .filter(|message| message["method"] == "hook.before_llm")
        .nth(1)
        .unwrap();
    assert_eq!(second["params"]["messages"].as_array().unwrap().len(), 3);
    assert_eq!(second["params"]["meta"]["Iteration"], 2);
    host.engine.close().await;
}

#[tokio::test]
async fn a_hook_switches_the_model_and_its_provider() {
    let other = Recorder::playing(&json!({"replies": [{"text": "from the other"}]}));
    let mut parts = Parts::of(json!([{"text": "from the first"}]));
    parts.models = Some(Arc::new(Models::default().with("scripted", parts.model.clone()).with("other", other.clone())));
    let mut host = parts.host();
    host.mount(vec![child(&host, "h", &[("before_llm", r#"{"request":{"model":"other/big"}}"#)], json!({}))]);
    assert_eq!(host.turn("hi").await.reply, "from the other");
    assert_eq!((other.models(), host.model.count()), (vec!["big".to_owned()], 0));
    assert_eq!(host.seen.payloads("llm_request")[0]["Model"], "other/big");
    assert_eq!(host.conversation.messages()[1].get().model_name, "other/big");
    host.engine.close().await;
}

#[tokio::test]
async fn what_a_hook_may_not_answer_is_a_fault_and_changes_nothing() {
    const BROKE: &str = r#"hook "h" broke the protocol"#;
    let table = [
        (r#"{"request":{"model":"nobody/x"}}"#, BROKE),
        (r#"{"request":{"model":"scripted/"}}"#, BROKE),
        (r#"{"action":"deny_tool","request":{"messages":[]}}"#, BROKE),
        (r#"{"action":"respond"}"#, BROKE),
        (r#"{"action":"Modify","request":{"messages":[]}}"#, BROKE),
        (r#"{"request":{"messages":"none"}}"#, r#"hook "h" sent an unreadable reply"#),
    ];
    for (answer, phrase) in table {
        let mut host = Parts::of(json!([{"text": "ok"}])).host();
        host.mount(vec![child(&host, "h", &[("before_llm", answer)], json!({"pair": false}))]);
        assert_eq!(host.turn("hi").await.reply, "ok", "{answer}");
        assert_eq!(host.asked(0), ["user: hi"], "{answer}");
        let errors = host.seen.errors();
        assert!(errors.len() == 1 && errors[0] == format!("hook.before_llm: {phrase}"), "{errors:?}");
        host.engine.close().await;
    }
}

#[tokio::test]
async fn one_member_that_cannot_count_takes_no_other_one_along_and_is_told() {
    let wrong = [r#""model":"nobody/x""#, r#""tools":{}"#];
    for member in wrong {
        let answer = format!(r#"{{"request":{{{member},"messages":[{{"role":"user","content":"masked"}}]}}}}"#);
        let mut host = Parts::of(json!([{"text": "ok"}])).host();
        host.mount(vec![child(&host, "h", &[("before_llm", &answer)], json!({"pair": false}))]);
        assert_eq!(host.turn("secret").await.reply, "ok", "{answer}");
        assert_eq!(host.asked(0), ["user: masked"], "{answer}");
        // Why is for people, and stands in the record.
        assert_eq!(host.seen.errors(), ["hook.before_llm: hook \"h\" broke the protocol"], "{answer}");
        host.engine.close().await;
    }
}

#[tokio::test]
async fn a_bare_model_name_is_one_of_the_agents_provider() {
    let mut host = Parts::of(json!([{"text": "ok"}])).host();
    let answer = r#"{"request":{"model":"other"}}"#;
    host.mount(vec![child(&host, "h", &[("before_llm", answer)], json!({"pair": false}))]);
    assert_eq!(host.turn("hi").await.reply, "ok");
    assert_eq!((host.model.models(), host.seen.errors()), (vec!["other".to_owned()], Vec::new()));
    host.engine.close().await;
}

#[tokio::test]
async fn no_messages_after_the_chain_end_the_turn_before_any_call() {
    let mut host = Parts::of(json!([{"text": "ok"}])).host();
    host.mount(vec![child(&host, "h", &[("before_llm", r#"{"request":{"messages":[]}}"#)], json!({}))]);
    let report = host.turn("hi").await;
    let text = "the request has no messages left after `before_llm`";
    assert_eq!(report.ending, TurnEnding::Failed { stage: "llm".into(), text: text.into() });
    assert_eq!((host.model.count(), host.seen.count("llm_request")), (0, 0));
    assert_eq!(host.seen.payloads("error"), [json!({"Stage": "llm", "Message": text})]);
    host.engine.close().await;
}

#[tokio::test]
async fn an_injected_tool_is_answered_by_its_owner() {
    let script =
        json!([{"tool_calls": [{"id": "c1", "name": "weather", "arguments": {"city": "Rome"}}]}, {"text": "ok"}]);
    let mut host = Parts::of(script).host();
    let tool =
        r#"{"request":{"tools":[{"type":"function","function":{"name":"weather","parameters":{"type":"object"}}}]}}"#;
    let answer = r#"{"action":"respond","result":{"for_llm":"sunny"}}"#;
    // `respond = []` grants nothing but what is its own, and its matcher does not count for that.
    let more = json!({"respond": [], "matcher": "^exec$"});
    host.mount(vec![child(&host, "sky", &[("before_llm", tool), ("before_tool", answer)], more)]);
    assert_eq!(host.turn("?").await.ending, TurnEnding::Completed);
    assert_eq!(host.result("c1"), "sunny");
    assert_eq!(
        host.seen.payloads("tool_exec_start"),
        [json!({"Tool": "weather", "Arguments": {"city": "Rome"}, "ToolCallID": "c1", "Hook": "sky"})]
    );
    host.engine.close().await;
}

#[tokio::test]
async fn an_injected_tool_whose_owner_is_silent_is_not_found() {
    let script = json!([{"tool_calls": [{"id": "c1", "name": "weather", "arguments": {}}]}, {"text": "ok"}]);
    let mut host = Parts::of(script).host();
    host.mount(vec![host.engine.native("sky", 0, offering(&["weather"], true))]);
    assert_eq!(host.turn("?").await.ending, TurnEnding::Completed);
    assert_eq!(offered(&host, 0), ["weather"]);
    assert_eq!(host.result("c1"), "tool \"weather\" not found");
    assert_eq!(host.seen.payloads("tool_exec_end")[0]["IsError"], true);
}

#[tokio::test]
async fn a_tool_injected_under_the_name_of_another_takes_nothing_over() {
    let script = json!([{"tool_calls": [{"id": "c1", "name": "echo", "arguments": {}}]}, {"text": "ok"}]);
    // Offered beside the agent's own: the first definition stays, and the agent's tool runs.
    let echo = OwnTool::giving("echo", ToolOutput::ok("the agent's"));
    let mut host = Parts::of(script.clone()).own(echo.clone()).host();
    host.mount(vec![host.engine.native("thief", 0, offering(&["echo"], true))]);
    host.turn("?").await;
    assert_eq!((host.result("c1").as_str(), echo.calls().len()), ("the agent's", 1));
    assert_eq!(host.model.request(0).tools.len(), 1);
    assert_eq!(host.model.request(0).tools[0].get().function.description, "");
    // Taken away by one hook and brought by another: it is the other's, and the agent's tool never runs for it.
    let echo = OwnTool::giving("echo", ToolOutput::ok("the agent's"));
    let mut host = Parts::of(script).own(echo.clone()).host();
    host.mount(vec![
        host.engine.native("away", 0, offering(&[], false)),
        host.engine.native("brings", 1, offering(&["echo"], true)),
    ]);
    host.turn("?").await;
    assert_eq!((host.result("c1").as_str(), echo.calls().len()), ("tool \"echo\" not found", 0));
}

#[tokio::test]
async fn ownership_holds_for_one_response_only() {
    let script = json!([
        {"text": "first"},
        {"tool_calls": [{"id": "c1", "name": "weather", "arguments": {}}]},
        {"text": "ok"},
    ]);
    let mut host = Parts::of(script).host();
    let once = std::sync::atomic::AtomicBool::new(true);
    let rule = rewriting(move |_| {
        if !once.swap(false, std::sync::atomic::Ordering::Relaxed) {
            return Verdict::Continue;
        }
        let tool = Rendered::new(ToolDef::new("weather", "", json!({"type": "object"})));
        Verdict::Modify(LlmPatch { tools: Some(vec![tool]), ..LlmPatch::default() })
    });
    let answers = r#"{"action":"respond","result":{"for_llm":"sunny"}}"#;
    host.mount(vec![
        host.engine.native("sky", 0, rule),
        child(&host, "h", &[("before_tool", answers)], json!({"respond": "other_*"})),
    ]);
    host.turn("one").await;
    host.turn("two").await;
    // In the second turn nobody owns it, and `h` may not answer for it.
    let refused = host.result("c1");
    assert!(refused.contains(r#"hook "h" broke the protocol"#), "{refused}");
    host.engine.close().await;
}

#[tokio::test]
async fn each_hook_gets_what_the_one_before_left() {
    let mut host = Parts::of(json!([{"text": "ok"}])).host();
    let adding = |mark: &'static str| {
        rewriting(move |at: &BeforeLlm| {
            let mut messages = at.request.messages.clone();
            let last = messages.pop().unwrap();
            let mut message = last.get().clone();
            message.content.push_str(mark);
            messages.push(message.into());
            Verdict::Modify(LlmPatch { messages: Some(messages), ..LlmPatch::default() })
        })
    };
    // Lower first, then by name; native before process.
    host.mount(vec![
        child(&host, "a", &[("before_llm", r#"{"action":"continue"}"#)], json!({"priority": -5})),
        host.engine.native("z", 1, adding(" z1")),
        host.engine.native("b", 1, adding(" b1")),
        host.engine.native("y", 0, adding(" y0")),
    ]);
    host.turn("hi").await;
    assert_eq!(host.asked(0), ["user: hi y0 b1 z1"]);
    let seen = sent(host.folder.path(), "a");
    assert!(seen.iter().any(|line| line.contains("hook.before_llm") && line.contains("hi y0 b1 z1")), "{seen:?}");
    host.engine.close().await;
}
