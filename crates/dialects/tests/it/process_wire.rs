//! What a child of a process hook is sent, byte for byte.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use pintle_dialects::process::config::EventForm;
use pintle_dialects::process::frame::{FRAME_TAIL, notification, request_head};
use pintle_dialects::process::wire::{event_params, method, params};
use pintle_domain::checkpoint::runtime::{InterruptKind, RetryReason, ToolExecution, TurnStatus};
use pintle_domain::checkpoint::{
    AfterLlm, AfterTool, ApproveTool, BeforeLlm, BeforeTool, CHECKPOINTS, CheckpointKind, Notice, PreToolUse,
    RuntimeEvent, Subject, UserPromptSubmit,
};
use pintle_domain::id::{CallId, EventId, TurnId};
use pintle_domain::identity::{ForeignEvent, Identity};
use pintle_domain::json::{Object, Rendered, Value, json};
use pintle_domain::llm::{LlmReply, LlmRequest, ToolDef, Usage};
use pintle_domain::message::{CallPart, Message, Role, SystemPart};
use pintle_domain::tool::{ToolCall, ToolOutput};
use proptest::prelude::*;

fn who() -> Identity {
    Identity { iteration: 1, sender_id: "u".into(), ..Identity::top("main", "cli:direct", TurnId::from("t1")) }
}

fn at() -> jiff::Timestamp {
    "2026-01-01T00:00:00Z".parse().unwrap()
}

fn object(text: &str) -> Object {
    serde_json::from_str(text).unwrap()
}

fn call() -> ToolCall {
    ToolCall {
        id: CallId::from("c1"),
        tool: "echo".into(),
        raw_tool: "echo".into(),
        arguments: object(r#"{"text":"hi"}"#),
    }
}

fn request() -> BeforeLlm {
    BeforeLlm::new(LlmRequest {
        model: "m".into(),
        messages: vec![Message::text(Role::User, "hi").into()],
        tools: vec![ToolDef::new("echo", "", json!({"type": "object"})).into()],
        options: object(r#"{"temperature":0.7}"#),
        graceful_terminal: false,
    })
}

/// The members that every call carries, at the stage that `source` names, about the call `call`.
fn common(source: &str, call: &str) -> String {
    [
        r#"{"meta":{"AgentID":"main","TurnID":"t1","ParentTurnID":"","SessionKey":"cli:direct","Iteration":1,"#,
        &format!(r#""TracePath":"runTurn","Source":"{source}"}},"#),
        r#""context":{"identity":{"event_id":"0197","tenant_id":"0193a5b0-7000-7000-8000-000000000002","agent_id":"main","#,
        r#""session_id":"cli:direct","turn_id":"t1","parent_turn_id":"","iteration":1,"#,
        &format!(r#""tool_call_id":"{call}","depth":0,"channel":"cli","chat_id":"direct","trace_id":"t1","#),
        r#""occurred_at":"2026-01-01T00:00:00.000000000Z"},"#,
        r#""inbound":{"channel":"cli","chat_id":"direct","sender_id":"u"}},"channel":"cli","chat_id":"direct""#,
    ]
    .concat()
}

#[track_caller]
fn check(id: u64, subject: Subject<'_>, expected: &str) {
    let head = request_head(id, method(subject.kind()).unwrap());
    let frame = [head, params(&EventId::from("0197"), at(), &who(), subject), FRAME_TAIL.to_vec()].concat();
    assert_eq!(String::from_utf8(frame).unwrap(), format!("{expected}\n"));
}

#[test]
fn each_stage_has_its_frame() {
    let head = |id: u64, name: &str| format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"hook.{name}","params":"#);
    let own = concat!(
        r#","model":"m","messages":[{"role":"user","content":"hi"}],"tools":[{"type":"function","function":"#,
        r#"{"name":"echo","description":"","parameters":{"type":"object"}}}],"options":{"temperature":0.7},"#,
        r#""graceful_terminal":false}}"#
    );
    let expected = [head(2, "before_llm"), common("turn.llm.request", ""), own.into()].concat();
    check(2, Subject::BeforeLlm(&request()), &expected);

    let response = LlmReply::calls(vec![CallPart::new("c1", "echo", r#"{"text":"hi"}"#)]);
    let own = concat!(
        r#","model":"m","response":{"role":"assistant","content":"","tool_calls":[{"id":"c1","type":"function","#,
        r#""function":{"name":"echo","arguments":"{\"text\":\"hi\"}"}}],"finish_reason":"tool_calls","#,
        r#""reasoning":"","reasoning_details":null}}}"#
    );
    let expected = [head(3, "after_llm"), common("turn.llm.response", ""), own.into()].concat();
    check(3, Subject::AfterLlm(&AfterLlm { model: "m".into(), response }), &expected);

    let own = r#","tool":"echo","arguments":{"text":"hi"},"tool_call_id":"c1","raw_tool":"echo"}}"#;
    let expected = [head(4, "before_tool"), common("turn.tool.before", "c1"), own.into()].concat();
    check(4, Subject::BeforeTool(&BeforeTool { call: call(), owner: None }), &expected);
    let expected = [head(5, "approve_tool"), common("turn.tool.approve", "c1"), own.into()].concat();
    check(5, Subject::ApproveTool(&ApproveTool { call: call() }), &expected);

    let own = concat!(
        r#","tool":"echo","arguments":{"text":"hi"},"tool_call_id":"c1","raw_tool":"echo","result":{"for_llm":"hi","#,
        r#""for_user":"","silent":false,"is_error":false,"async":false,"media":[],"artifact_tags":[],"#,
        r#""response_handled":false},"duration":15000000}}"#
    );
    let expected = [head(6, "after_tool"), common("turn.tool.after", "c1"), own.into()].concat();
    let ran = AfterTool { call: call(), result: ToolOutput::ok("hi"), duration: Duration::from_millis(15) };
    check(6, Subject::AfterTool(&ran), &expected);
}

#[test]
fn only_the_five_stages_have_a_method() {
    let named: Vec<_> = CHECKPOINTS.iter().filter_map(|row| method(row.kind)).collect();
    let expected = ["hook.before_llm", "hook.after_llm", "hook.before_tool", "hook.approve_tool", "hook.after_tool"];
    assert_eq!(named, expected);
    assert_eq!(method(CheckpointKind::PreToolUse), None);
    for subject in
        [Subject::PreToolUse(&PreToolUse { call: call() }), Subject::UserPromptSubmit(&UserPromptSubmit::first("p"))]
    {
        let value: Value = serde_json::from_slice(&params(&EventId::from("0197"), at(), &who(), subject)).unwrap();
        assert_eq!(value.as_object().unwrap().keys().collect::<Vec<_>>(), ["meta", "context", "channel", "chat_id"]);
    }
}

#[test]
fn a_sub_turn_and_a_test_say_so() {
    let who = Identity {
        parent_turn_id: Some(TurnId::from("t0")),
        tool_call_id: Some(CallId::from("c9")),
        depth: 1,
        is_test: true,
        ..who()
    };
    let at = "2026-01-01T00:00:00.000000007Z".parse().unwrap();
    let value: Value =
        serde_json::from_slice(&params(&EventId::from("e"), at, &who, Subject::BeforeLlm(&request()))).unwrap();
    assert_eq!(value["meta"]["TracePath"], "spawnSubTurn");
    assert_eq!(value["meta"]["ParentTurnID"], "t0");
    let identity = &value["context"]["identity"];
    assert_eq!(identity["parent_turn_id"], "t0");
    assert_eq!(identity["tool_call_id"], "c9");
    assert_eq!(identity["depth"], 1);
    assert_eq!(identity["is_test"], true);
    assert_eq!(identity["occurred_at"], "2026-01-01T00:00:00.000000007Z");
}

#[test]
fn what_a_foreign_agent_said_goes_with_the_identity() {
    let raw = json!({"permission_mode": "plan"}).as_object().unwrap().clone();
    let foreign = ForeignEvent {
        host: "pi".into(),
        version: Some("0.74.2".into()),
        event: "tool_call".into(),
        raw,
        ..ForeignEvent::default()
    };
    let who = Identity { foreign: Some(Arc::new(foreign)), ..who() };
    let value: Value =
        serde_json::from_slice(&params(&EventId::from("e"), at(), &who, Subject::BeforeLlm(&request()))).unwrap();
    let identity = &value["context"]["identity"];
    assert_eq!((&identity["host"], &identity["host_version"]), (&"pi".into(), &"0.74.2".into()));
    assert_eq!(
        (&identity["host_event"], &identity["host_raw"]["permission_mode"]),
        (&"tool_call".into(), &"plan".into())
    );
}

#[test]
fn numbers_leave_with_the_digits_they_came_with() {
    // An exponent is written as a small e with its sign; every digit stays.
    let came = r#"{"a":1e400,"b":12345678901234567890123,"c":1.10,"d":-0,"e":[1E-2]}"#;
    let arguments = r#"{"a":1e+400,"b":12345678901234567890123,"c":1.10,"d":-0,"e":[1e-2]}"#;
    let asked = BeforeTool { call: ToolCall { arguments: object(came), ..call() }, owner: None };
    let sent = params(&EventId::from("e"), at(), &who(), Subject::BeforeTool(&asked));
    assert!(String::from_utf8(sent).unwrap().contains(&format!(r#""arguments":{arguments},"#)));
}

fn notice(event: RuntimeEvent) -> Notice {
    let who = Identity { iteration: 1, ..Identity::top("main", "s1", TurnId::from("t1")) };
    Notice {
        event_id: EventId::from("0197"),
        at: at(),
        who: Identity { sender_id: "u".into(), ..who },
        what: event.into(),
    }
}

#[track_caller]
fn check_event(event: RuntimeEvent, hook: &str, runtime: &str) {
    let notice = notice(event);
    let sent = |form, name| String::from_utf8(notification(name, &event_params(form, &notice, 4).unwrap())).unwrap();
    assert_eq!(sent(EventForm::Hook, "hook.event"), format!("{hook}\n"));
    assert_eq!(sent(EventForm::Runtime, "hook.runtime_event"), format!("{runtime}\n"));
}

#[test]
fn an_event_has_two_forms() {
    let event = RuntimeEvent::ToolExecStart {
        tool: "echo".into(),
        arguments: object(r#"{"text":"hi"}"#),
        tool_call_id: "c1".into(),
        hook: None,
    };
    check_event(
        event,
        concat!(
            r#"{"jsonrpc":"2.0","method":"hook.event","params":{"Kind":"tool_exec_start","#,
            r#""Time":"2026-01-01T00:00:00.000000000Z","Meta":{"AgentID":"main","TurnID":"t1","ParentTurnID":"","#,
            r#""SessionKey":"s1","Iteration":1,"TracePath":"runTurn","Source":"turn.tool.start"},"#,
            r#""Payload":{"Tool":"echo","Arguments":{"text":"hi"},"ToolCallID":"c1"},"Seq":4}}"#
        ),
        concat!(
            r#"{"jsonrpc":"2.0","method":"hook.runtime_event","params":{"id":"0197","kind":"agent.tool.exec_start","#,
            r#""time":"2026-01-01T00:00:00.000000000Z","source":{"component":"agent","name":"main"},"#,
            r#""scope":{"agent_id":"main","session_key":"s1","turn_id":"t1","channel":"cli","chat_id":"direct","#,
            r#""sender_id":"u"},"correlation":{"trace_id":"turn.tool.start"},"severity":"info","#,
            r#""payload":{"Tool":"echo","Arguments":{"text":"hi"},"ToolCallID":"c1"},"#,
            r#""attrs":{"agent_source":"runTurn","iteration":1}}}"#
        ),
    );
}

fn turn_end(status: TurnStatus) -> RuntimeEvent {
    RuntimeEvent::TurnEnd {
        status,
        iterations: 2,
        duration: Duration::from_nanos(5),
        final_content_len: 4,
        user_message: "hi".into(),
        final_content: "done".into(),
        tool_kinds: vec!["echo".into()],
        tool_executions: vec![ToolExecution { name: "echo".into(), success: true, error_summary: None }],
    }
}

#[test]
fn only_the_runtime_form_tells_the_texts_of_a_turn() {
    let payload = |form, member: &str| {
        let sent = event_params(form, &notice(turn_end(TurnStatus::Completed)), 1).unwrap();
        serde_json::from_slice::<Value>(&sent).unwrap()[member].clone()
    };
    let short = json!({"Status": "completed", "Iterations": 2, "Duration": 5, "FinalContentLen": 4});
    assert_eq!(payload(EventForm::Hook, "Payload"), short);
    let mut long = short;
    long["UserMessage"] = "hi".into();
    long["FinalContent"] = "done".into();
    long["ToolKinds"] = json!(["echo"]);
    long["ToolExecutions"] = json!([{"name": "echo", "success": true}]);
    assert_eq!(payload(EventForm::Runtime, "payload"), long);
}

#[test]
fn severity_and_path_follow_from_the_event() {
    #[track_caller]
    fn check(event: RuntimeEvent, severity: &str, path: &str) {
        let notice = notice(event);
        let runtime: Value = serde_json::from_slice(&event_params(EventForm::Runtime, &notice, 1).unwrap()).unwrap();
        let hook: Value = serde_json::from_slice(&event_params(EventForm::Hook, &notice, 1).unwrap()).unwrap();
        let seen = (&runtime["severity"], &runtime["attrs"]["agent_source"], &hook["Meta"]["TracePath"]);
        assert_eq!(seen, (&json!(severity), &json!(path), &json!(path)));
        assert_eq!(runtime["correlation"]["trace_id"], hook["Meta"]["Source"]);
    }
    let error = |stage: &str| RuntimeEvent::Error { stage: stage.into(), message: "m".into(), hook: None };
    check(error("llm"), "error", "runTurn");
    check(error("hook.before_tool"), "error", "hooks");
    check(turn_end(TurnStatus::Error), "error", "runTurn");
    check(turn_end(TurnStatus::Aborted), "info", "runTurn");
    let retry = RuntimeEvent::LlmRetry {
        attempt: 1,
        max_retries: 2,
        reason: RetryReason::Network,
        error: "e".into(),
        backoff: Duration::ZERO,
    };
    check(retry, "warn", "runTurn");
    let interrupt = RuntimeEvent::InterruptReceived {
        kind: InterruptKind::HardAbort,
        role: String::new(),
        content_len: 0,
        queue_depth: 0,
        hint_len: 0,
        hook: Some("h".into()),
    };
    check(interrupt, "warn", "runTurn");
    check(RuntimeEvent::LlmDelta { content_delta_len: 1, reasoning_delta_len: 0 }, "info", "runTurn");
}

#[test]
fn a_sub_turn_names_its_parent_in_the_runtime_form() {
    let mut told = notice(turn_end(TurnStatus::Completed));
    told.who.parent_turn_id = Some(TurnId::from("t0"));
    let sent: Value = serde_json::from_slice(&event_params(EventForm::Runtime, &told, 1).unwrap()).unwrap();
    assert_eq!(sent["correlation"], json!({"trace_id": "turn.end", "parent_turn_id": "t0"}));
    assert_eq!(sent["attrs"]["agent_source"], "spawnSubTurn");
    told.what = pintle_domain::checkpoint::ObservedEvent::SessionStart;
    assert!(event_params(EventForm::Hook, &told, 1).is_none());
}

/// Any text, with the characters that break lines in it.
fn texts() -> impl Strategy<Value = String> {
    prop::collection::vec(
        prop_oneof![
            any::<char>(),
            prop::sample::select(vec!['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}', '\u{7f}', '"', '\\'])
        ],
        0..12,
    )
    .prop_map(String::from_iter)
}

fn messages() -> impl Strategy<Value = Message> {
    let role = prop::sample::select(vec![Role::System, Role::User, Role::Assistant, Role::Tool]);
    (role, texts(), texts(), prop::collection::vec((texts(), texts(), texts()), 0..2)).prop_map(
        |(role, content, other, calls)| Message {
            reasoning_content: other.clone(),
            attachments: calls.iter().map(|(a, b, _)| json!({a: [b, 1.50]})).collect(),
            system_parts: vec![SystemPart { kind: "text".into(), text: other, cache_control: None }],
            tool_calls: calls.iter().map(|(id, name, arguments)| CallPart::new(id, name, arguments)).collect(),
            ..Message::text(role, content)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn a_frame_is_one_line_and_says_what_was_meant(
        messages in prop::collection::vec(messages(), 0..3),
        model in texts(),
        chat in texts(),
    ) {
        let mut asked = request();
        asked.request.model = model.clone();
        asked.request.messages = messages.iter().cloned().map(Rendered::new).collect();
        let who = Identity { chat_id: chat.clone(), ..who() };
        let sent = params(&EventId::from("e"), at(), &who, Subject::BeforeLlm(&asked));
        let text = String::from_utf8(sent).unwrap();
        let breaks = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
        prop_assert!(!text.contains(breaks), "a line could break");
        let value: BTreeMap<String, Value> = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(&value["model"], &json!(model));
        prop_assert_eq!(&value["chat_id"], &json!(chat));
        let back: Vec<Message> = pintle_domain::json::from_value(value["messages"].clone()).unwrap();
        prop_assert_eq!(back, messages);
    }
}

#[test]
fn usage_is_shown_where_the_provider_tells() {
    let response = LlmReply {
        usage: Some(Usage { prompt_tokens: 1, completion_tokens: 2, total_tokens: 3 }),
        ..LlmReply::text("x")
    };
    let asked = AfterLlm { model: "m".into(), response };
    let sent = params(&EventId::from("e"), at(), &who(), Subject::AfterLlm(&asked));
    let usage =
        r#""finish_reason":"stop","usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3},"reasoning""#;
    assert!(String::from_utf8(sent).unwrap().contains(usage));
}
