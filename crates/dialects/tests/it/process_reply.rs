//! What the reply of a process hook means.

use std::fmt::Debug;
use std::time::Duration;

use pintle_dialects::process::frame::{Incoming, RpcBody, RpcReply, read_line};
use pintle_dialects::process::wire::{hear, params, read, welcome};
use pintle_domain::checkpoint::{
    AfterLlm, AfterTool, ApproveTool, BeforeLlm, BeforeTool, CallPatch, Checkpoint, LlmPatch, Substitute,
};
use pintle_domain::fault::{Fault, ProtocolBreach};
use pintle_domain::id::{CallId, EventId, TurnId};
use pintle_domain::identity::Identity;
use pintle_domain::json::{Object, Rendered, Value, json};
use pintle_domain::llm::{LlmReply, LlmRequest, ToolDef, Usage};
use pintle_domain::message::{CallPart, Message, ProviderData, Role};
use pintle_domain::tool::{ToolCall, ToolOutput};
use pintle_domain::verdict::{Abort, AbortScope, Never, ParsedVerdict, Reason, Verdict};
use proptest::prelude::*;

mod echo;
mod llm;
mod tool;

fn object(text: &str) -> Object {
    serde_json::from_str(text).unwrap()
}

fn call() -> ToolCall {
    ToolCall { id: CallId::from("c1"), tool: "echo".into(), raw_tool: "Echo".into(), arguments: object(r#"{"n":1.0}"#) }
}

fn request() -> BeforeLlm {
    BeforeLlm::new(LlmRequest {
        model: "m".into(),
        messages: vec![Message::text(Role::System, "be kind").into(), Message::text(Role::User, "hi").into()],
        tools: vec![ToolDef::new("echo", "", json!({"type": "object"})).into()],
        options: Object::new(),
        graceful_terminal: false,
    })
}

fn response() -> AfterLlm {
    let usage = Usage { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 };
    AfterLlm { model: "m".into(), response: LlmReply { usage: Some(usage), ..LlmReply::text("hello") } }
}

fn before_tool() -> BeforeTool {
    BeforeTool { call: call(), owner: None }
}

fn after_tool() -> AfterTool {
    AfterTool { call: call(), result: ToolOutput::ok("hi"), duration: Duration::from_millis(15) }
}

fn approve_tool() -> ApproveTool {
    ApproveTool { call: call() }
}

fn reply(result: &str) -> RpcReply {
    match read_line(format!(r#"{{"jsonrpc":"2.0","id":7,"result":{result}}}"#).into_bytes()) {
        Incoming::Reply(reply) => reply,
        other @ (Incoming::Noise { .. } | Incoming::Bad { .. }) => panic!("{other:?}"),
    }
}

/// Reads `result` as the reply to `asked`.
fn heard<C: Checkpoint>(asked: &C, result: &str, strict: bool) -> Result<ParsedVerdict<C>, Fault> {
    read(asked.subject(), &reply(result).body, strict).map(|reply| C::heard(reply).expect("it answers what was asked"))
}

#[track_caller]
fn check<C: Checkpoint + PartialEq>(asked: &C, result: &str, verdict: Verdict<C>, warnings: &[&str]) {
    let expected = warnings.iter().map(|warning| (*warning).to_owned()).collect();
    let expected = ParsedVerdict { warnings: expected, ..verdict.into() };
    assert_eq!(heard(asked, result, false), Ok(expected), "{result}");
    let strict = heard(asked, result, true);
    match warnings.first() {
        None => assert!(strict.is_ok(), "{result}: {strict:?}"),
        Some(first) if result.contains("\"respond\"") && C::KIND == BeforeTool::KIND => {
            assert_eq!(strict, Err(Fault::Protocol(ProtocolBreach::Respond((*first).into()))), "{result}");
        }
        Some(first) => assert_eq!(strict, Err(Fault::broke(*first)), "{result}"),
    }
}

#[track_caller]
fn check_broke<C: Checkpoint + PartialEq>(asked: &C, result: &str, detail: &str) {
    assert_eq!(heard(asked, result, false), Err(Fault::broke(detail)), "{result}");
}

#[track_caller]
fn check_respond(result: &str, detail: &str) {
    let fault = Fault::Protocol(ProtocolBreach::Respond(detail.into()));
    assert_eq!(heard(&before_tool(), result, false), Err(fault), "{result}");
}

#[track_caller]
fn check_unreadable<C: Checkpoint + PartialEq>(asked: &C, result: &str, detail: &str) {
    assert_eq!(heard(asked, result, false), Err(Fault::Unreadable { cause: detail.into() }), "{result}");
}

/// The answers that every rewriter may give.
#[track_caller]
fn check_rewriter<C>(asked: &C, payload: &str, name: &str)
where
    C: Checkpoint<Abort = Abort> + PartialEq + Debug,
{
    for result in ["{}", r#"{"action":""}"#, r#"{"action":null}"#, r#"{"Action":"continue","reason":"r"}"#] {
        check(asked, result, Verdict::Continue, &[]);
    }
    check(asked, r#"{"action":"modify"}"#, Verdict::Continue, &[]);
    check(asked, &format!(r#"{{"action":"modify","{name}":null}}"#), Verdict::Continue, &[]);
    let abort = |abort_scope, reason: &str| Verdict::Abort(Abort { abort_scope, reason: Reason::new(reason) });
    check(asked, r#"{"action":"abort_turn","reason":" r\u0007 "}"#, abort(AbortScope::Turn, "r"), &[]);
    check(asked, r#"{"action":"hard_abort"}"#, abort(AbortScope::Run, ""), &[]);
    check(
        asked,
        &format!(r#"{{"{name}":{payload},"action":"abort_turn"}}"#),
        abort(AbortScope::Turn, ""),
        &[&format!("result.{name} is ignored beside \"abort_turn\"")],
    );
    check_unreadable(asked, r#"{"action":5}"#, "result.action: expected a string, got a number");
    check_unreadable(
        asked,
        r#"{"action":"hard_abort","reason":{}}"#,
        "result.reason: expected a string, got an object",
    );
    check_unreadable(asked, "[]", "result: expected an object, got an array");
    check_broke(asked, r#"{"action":"Modify"}"#, r#"unknown action "Modify"; did you mean "modify"?"#);
    check_broke(asked, r#"{"action":"abort"}"#, r#"unknown action "abort"; did you mean "abort_turn"?"#);
    check(asked, r#"{"zzz":1}"#, Verdict::Continue, &["result.zzz is not read"]);
    let error = RpcBody::Error { message: "boom".into() };
    assert_eq!(
        read(asked.subject(), &error, false).unwrap_err(),
        Fault::Protocol(ProtocolBreach::Returned("boom".into()))
    );
    let empty = read(asked.subject(), &RpcBody::Empty, true).unwrap();
    assert_eq!(C::heard(empty).unwrap().verdict, Verdict::Continue);
}

#[test]
fn every_rewriter_may_continue_and_abort() {
    check_rewriter(&request(), r#"{"model":"x"}"#, "request");
    check_rewriter(&response(), r#"{"response":{}}"#, "response");
    check_rewriter(&before_tool(), r#"{"tool":"x"}"#, "call");
    check_rewriter(&after_tool(), r#"{"result":{}}"#, "result");
    // Where nothing is guarded, a word of another system is told of; before a tool it is a fault.
    let decided = r#"{"decision":"continue"}"#;
    check(&request(), decided, Verdict::Continue, &[r#"result.decision is not read; the member is "action""#]);
    check_broke(
        &before_tool(),
        decided,
        "result.decision decides nothing in before_tool, which reads \"action\"; \"action\": \"deny_tool\" refuses, \
         \"action\": \"continue\" allows",
    );
    for (action, asked) in [("respond", "before_llm"), ("deny_tool", "before_llm")] {
        let allowed = r#"use "continue", "modify", "abort_turn" or "hard_abort""#;
        check_broke(
            &request(),
            &format!(r#"{{"action":"{action}"}}"#),
            &format!(r#"action "{action}" is not allowed in {asked}; {allowed}"#),
        );
    }
    check_broke(
        &after_tool(),
        r#"{"action":"deny"}"#,
        r#"unknown action "deny"; use "continue", "modify", "abort_turn" or "hard_abort""#,
    );
}

#[test]
fn only_approved_true_approves() {
    let refused = |reason: &str| Verdict::<ApproveTool>::Deny(Reason::new(reason));
    check(&approve_tool(), r#"{"approved":true}"#, Verdict::Continue, &[]);
    check(&approve_tool(), r#"{"approved":false,"reason":"r"}"#, refused("r"), &[]);
    for result in ["{}", r#"{"approved":null}"#, r#"{"approved":true,"APPROVED":false}"#] {
        check(&approve_tool(), result, refused(""), &[]);
    }
    check(&approve_tool(), r#"{"action":"continue"}"#, refused(""), &[r#"approve_tool reads "approved""#]);
    check(
        &approve_tool(),
        r#"{"allow":true}"#,
        refused(""),
        &[r#"result.allow is not read; the member is "approved""#],
    );
    check_unreadable(&approve_tool(), r#"{"approved":"true"}"#, "result.approved: expected a boolean, got a string");
    let empty = read(approve_tool().subject(), &RpcBody::Empty, true).unwrap();
    assert_eq!(ApproveTool::heard(empty).unwrap().verdict, refused(""));
}

#[test]
fn a_whole_reply_is_held_against_what_was_sent() {
    let who = Identity::top("main", "cli:direct", TurnId::from("t1"));
    let asked = before_tool();
    let at = "2026-01-01T00:00:00Z".parse().unwrap();
    let sent = params(&EventId::from("e"), at, &who, asked.subject());
    let params: Value = serde_json::from_slice(&sent).unwrap();
    let listen = |call: &Value, strict| {
        let heard = hear(asked.subject(), &sent, &reply(&json!({"call": call}).to_string()), strict)?;
        Ok::<_, Fault>(BeforeTool::heard(heard).unwrap().warnings)
    };
    assert_eq!(listen(&params, true), Ok(Vec::new()));
    let mut changed = params;
    changed["meta"]["AgentID"] = "root".into();
    changed["chat_id"] = "other".into();
    let warnings = ["meta", "chat_id"].map(|name| format!("result.call.{name} is read-only; the change is ignored"));
    assert_eq!(listen(&changed, false), Ok(warnings.to_vec()));
    assert_eq!(listen(&changed, true), Err(Fault::broke(warnings[0].as_str())));

    let Incoming::Reply(odd) =
        read_line(br#"{"id":"7","result":{"action":"respond","result":{"for_llm":""}}}"#.to_vec())
    else {
        panic!()
    };
    let warning = "the id \"7\" should be the number 7";
    let fault = hear(asked.subject(), &sent, &odd, true).unwrap_err();
    assert_eq!(fault, Fault::Protocol(ProtocolBreach::Respond(warning.into())));
    let heard = BeforeTool::heard(hear(asked.subject(), &sent, &odd, false).unwrap()).unwrap();
    assert_eq!(heard.warnings, [warning]);
}

#[test]
fn a_flood_of_mistakes_is_cut() {
    let members: Vec<String> = (0..100_000).map(|i| format!(r#""zzz{i}":0"#)).collect();
    let heard = heard(&before_tool(), &format!("{{{}}}", members.join(",")), false).unwrap();
    assert_eq!(heard.warnings.len(), 33);
    assert_eq!(heard.warnings.last().unwrap(), "further likely mistakes are not listed");
    let long = format!(r#"{{"action":"{}"}}"#, "x".repeat(1_000_000));
    let Err(Fault::Protocol(ProtocolBreach::Broke(detail))) = self::heard(&before_tool(), &long, false) else {
        panic!()
    };
    assert!(detail.shown().len() < 300, "{detail:?}");
}

#[test]
fn the_handshake_takes_almost_anything() {
    #[track_caller]
    fn check(result: &str, expected: Result<usize, &str>) {
        let heard = welcome(&reply(result).body).map(|warnings| warnings.len());
        assert_eq!(heard, expected.map_err(str::to_owned), "{result}");
    }
    check(r#"{"ok":true,"name":"h"}"#, Ok(0));
    check(r#"{"OK":false}"#, Ok(1));
    check("null", Ok(0));
    check("{}", Ok(0));
    check("5", Err("hook.hello: expected an object as result, got a number"));
    let error = RpcBody::Error { message: "no".into() };
    assert_eq!(welcome(&error), Err("hook.hello returned an error: no".into()));
}

/// The seeds' own replies.
#[test]
fn replies_of_the_seeds_are_understood() {
    let inject = r#"{"action":"modify","request":{"model":"claude-sonnet","messages":[{"role":"user","content":"hello"}],
        "tools":[{"type":"function","function":{"name":"echo","description":"echo","parameters":{}}},
        {"type":"function","function":{"name":"my_plugin_tool","description":"Plugin injected tool",
        "parameters":{"type":"object","properties":{"query":{"type":"string"}}}}}]}}"#;
    let query = json!({"type": "object", "properties": {"query": {"type": "string"}}});
    check(
        &request(),
        inject,
        Verdict::Modify(LlmPatch {
            model: Some("claude-sonnet".into()),
            messages: Some(vec![Message::text(Role::User, "hello").into()]),
            tools: Some(vec![
                ToolDef::new("echo", "echo", json!({})).into(),
                ToolDef::new("my_plugin_tool", "Plugin injected tool", query).into(),
            ]),
            options: None,
            faulty: None,
        }),
        &[],
    );
    let respond = r#"{"action":"respond","call":{"tool":"my_plugin_tool","arguments":{"query":"hello"}},
        "result":{"for_llm":"Plugin tool executed successfully","for_user":"","silent":false,"is_error":false}}"#;
    let arguments = Some(object(r#"{"query":"hello"}"#));
    check(
        &before_tool(),
        respond,
        Verdict::respond(Substitute {
            call: Some(CallPatch { tool: Some("my_plugin_tool".into()), arguments }),
            result: ToolOutput::ok("Plugin tool executed successfully"),
        }),
        &[],
    );
    let weather = r#"{"action":"respond","result":{"for_llm":"Beijing weather: Sunny, temperature 15\u00b0C, humidity 45%",
        "for_user":"","silent":false,"is_error":false}}"#;
    check(
        &before_tool(),
        weather,
        Verdict::respond(Substitute {
            call: None,
            result: ToolOutput::ok("Beijing weather: Sunny, temperature 15°C, humidity 45%"),
        }),
        &[],
    );
    let image = r#"{"action":"respond","result":{"for_llm":"Image sent to user","for_user":"",
        "media":["media://abc123"],"response_handled":true}}"#;
    let result = ToolOutput {
        media: vec!["media://abc123".into()],
        response_handled: true,
        ..ToolOutput::ok("Image sent to user")
    };
    check(&before_tool(), image, Verdict::respond(Substitute { call: None, result }), &[]);
    let modified = Some(object(r#"{"text":"modified hello"}"#));
    check(
        &before_tool(),
        r#"{"action":"modify","call":{"tool":"echo_text","arguments":{"text":"modified hello"}}}"#,
        Verdict::Modify(CallPatch { tool: Some("echo_text".into()), arguments: modified }),
        &[],
    );
    check(
        &before_tool(),
        r#"{"action":"deny_tool","reason":"Invalid arguments"}"#,
        Verdict::Deny(Reason::new("Invalid arguments")),
        &[],
    );
    check(
        &approve_tool(),
        r#"{"approved":false,"reason":"Dangerous command, execution denied"}"#,
        Verdict::Deny(Reason::new("Dangerous command, execution denied")),
        &[],
    );
}

/// JSON with a liking for the names that replies have.
fn replies() -> impl Strategy<Value = Value> {
    let name = prop::sample::select(vec![
        "action",
        "reason",
        "request",
        "response",
        "call",
        "result",
        "approved",
        "messages",
        "tools",
        "tool_calls",
        "function",
        "name",
        "arguments",
        "role",
        "content",
        "for_llm",
        "media",
        "options",
        "Tool",
        "x",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3..3_i64).prop_map(Value::from),
        prop::sample::select(vec!["", "modify", "respond", "deny_tool", "abort_turn", "user", "x"])
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 48, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec((name.clone(), inner), 0..5)
                .prop_map(|members| members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn a_reply_is_read_or_faults_and_strict_only_adds_faults(result in replies()) {
        let text = result.to_string();
        fn both<C: Checkpoint + PartialEq>(asked: &C, text: &str) -> Result<(), TestCaseError> {
            if text == "null" {
                return Ok(());
            }
            match (heard(asked, text, false), heard(asked, text, true)) {
                (Ok(lax), Ok(_)) => prop_assert!(lax.warnings.is_empty()),
                (Ok(lax), Err(fault)) => prop_assert!(fault.explained().to_string().ends_with(&lax.warnings[0])),
                (Err(lax), Err(strict)) => prop_assert_eq!(lax, strict),
                (Err(lax), Ok(_)) => prop_assert!(false, "strict heals {lax:?}"),
            }
            Ok(())
        }
        both(&request(), &text)?;
        both(&response(), &text)?;
        both(&before_tool(), &text)?;
        both(&after_tool(), &text)?;
        both(&approve_tool(), &text)?;
        let approved = heard(&approve_tool(), &text, false).is_ok_and(|heard| heard.verdict == Verdict::Continue);
        prop_assert_eq!(approved, result.get("approved") == Some(&Value::Bool(true)) && !result["reason"].is_object()
            && !result["reason"].is_array() && !result["reason"].is_number() && !result["reason"].is_boolean());
    }
}

#[test]
fn an_impossible_answer_has_no_type() {
    fn never<C: Checkpoint<Respond = Never, Ask = Never>>(_: &C) {}
    never(&request());
    never(&response());
    never(&after_tool());
    never(&approve_tool());
}
