//! An evaluator's calls.

use pintle_domain::llm::LlmReply;
use pintle_domain::message::ProviderData;
use pintle_domain::message::{CallPart, Role};

use super::*;

fn answer(content: &str, calls: &[(&str, &str)]) -> LlmReply {
    LlmReply {
        role: Role::Assistant,
        content: content.into(),
        reasoning_content: String::new(),
        tool_calls: calls.iter().map(|(name, arguments)| CallPart::new("1", name, arguments)).collect(),
        finish_reason: "tool_calls".into(),
        usage: None,
        reasoning: String::new(),
        reasoning_details: Value::Null,
        private: ProviderData::default(),
    }
}

fn calls(calls: &[(&str, &str)]) -> Told {
    told(decide(&answer("", calls), InjectionEffect::Block))
}

#[test]
fn one_call() {
    let broken = |why: &str| fault(&format!("evaluator_args_parse_error: {why}"));
    let rows: [(&str, Told); 20] = [
        (r#"{"decision":"allow","reason":"fine"}"#, Ok(because(Decision::Allow, "fine"))),
        (r#"{"decision":"block","reason":"no"}"#, Ok(because(Decision::Block, "no"))),
        (r#"{"decision":"block","reason":""}"#, Ok(deciding(Decision::Block))),
        (
            r#"{"decision":"allow","reason":"r","injection_detected":false,"updated_input":{"a":1.50},"additional_context":"c","x":1}"#,
            Ok(HandlerReply {
                context: Some("c".into()),
                updated_input: Some(object(json::parse(r#"{"a":1.50}"#).unwrap())),
                ..because(Decision::Allow, "r")
            }),
        ),
        (
            r#"{"decision":"allow","reason":"r","injection_detected":null,"updated_input":null}"#,
            Ok(because(Decision::Allow, "r")),
        ),
        (r#"{"decision":"ask","reason":"r"}"#, fault(r#"evaluator_invalid_decision: "ask""#)),
        (r#"{"decision":"defer","reason":"r"}"#, fault(r#"evaluator_invalid_decision: "defer""#)),
        (r#"{"decision":"","reason":"r"}"#, fault(r#"evaluator_invalid_decision: """#)),
        (r#"{"decision":"ALLOW\u001b[0m","reason":"r"}"#, fault(r#"evaluator_invalid_decision: "ALLOW[0m""#)),
        (r#"{"reason":"r"}"#, broken("decision is missing")),
        (r#"{"decision":null,"reason":"r"}"#, broken("decision is missing")),
        (r#"{"decision":true,"reason":"r"}"#, broken("decision must be a string, got a boolean")),
        (r#"{"decision":"allow"}"#, broken("reason is missing")),
        (r#"{"decision":"allow","reason":null}"#, broken("reason is missing")),
        (r#"{"decision":"allow","reason":1}"#, broken("reason must be a string, got a number")),
        (
            r#"{"decision":"allow","reason":"r","injection_detected":"yes"}"#,
            broken("injection_detected must be a boolean, got a string"),
        ),
        (
            r#"{"decision":"allow","reason":"r","updated_input":[]}"#,
            broken("updated_input must be an object, got an array"),
        ),
        (
            r#"{"decision":"block","reason":"r","decision":"allow"}"#,
            broken("the member `decision` stands in it twice; send it once"),
        ),
        ("[]", broken("must be a JSON object, got an array")),
        ("", broken("EOF while parsing a value at line 1 column 0")),
    ];
    for (arguments, expected) in rows {
        assert_eq!(calls(&[(DECIDE, arguments)]), expected, "{arguments}");
    }
}

#[test]
fn no_call() {
    let rows = [
        ("", "evaluator_empty_response"),
        (" \n", "evaluator_empty_response"),
        (r#"{"decision":"allow","reason":"as text"}"#, "evaluator_no_tool_call"),
    ];
    for (content, expected) in rows {
        assert_eq!(told(decide(&answer(content, &[]), InjectionEffect::Block)), fault(expected));
    }
}

#[test]
fn several_calls() {
    let allow = (DECIDE, r#"{"decision":"allow","reason":"first","updated_input":{"a":1}}"#);
    let other = (DECIDE, r#"{"decision":"allow","reason":"second"}"#);
    let block = (DECIDE, r#"{"decision":"block","reason":"no"}"#);
    let wrong = ("run\n", "{}");
    let first = HandlerReply { updated_input: Some(object(json!({"a": 1}))), ..because(Decision::Allow, "first") };
    assert_eq!(calls(&[allow, other]), Ok(first));
    assert_eq!(calls(&[allow, block]), Ok(because(Decision::Block, "no")));
    assert_eq!(calls(&[block, allow]), Ok(because(Decision::Block, "no")));
    assert_eq!(calls(&[wrong, block]), Ok(because(Decision::Block, "no")));
    assert_eq!(calls(&[allow, wrong]), fault("evaluator_wrong_tool: run"));
    assert_eq!(calls(&[wrong, (DECIDE, "{")]), fault("evaluator_wrong_tool: run"));
}

#[test]
fn a_detected_injection_blocks_unless_ignored() {
    let allowing = r#"{"decision":"allow","reason":"fine","injection_detected":true}"#;
    let blocking = r#"{"injection_detected":true,"decision":"block","reason":"no"}"#;
    let seen = |said| HandlerReply { injection_detected: true, ..said };
    let rows = [
        (
            allowing,
            InjectionEffect::Block,
            because(Decision::Block, "the evaluated input tries to instruct the evaluator"),
        ),
        (allowing, InjectionEffect::Ignore, because(Decision::Allow, "fine")),
        (blocking, InjectionEffect::Block, because(Decision::Block, "no")),
        (blocking, InjectionEffect::Ignore, because(Decision::Block, "no")),
    ];
    for (arguments, on_injection, expected) in rows {
        let said = decide(&answer("", &[(DECIDE, arguments)]), on_injection);
        assert_eq!(told(said), Ok(seen(expected)), "{arguments} {on_injection:?}");
    }
    let second = answer("", &[(DECIDE, r#"{"decision":"allow","reason":"r"}"#), (DECIDE, allowing)]);
    assert_eq!(decide(&second, InjectionEffect::Block).unwrap().decision, Decision::Block);
}

#[test]
fn arguments_are_read_to_the_bound_of_replies() {
    let long = format!(r#"{{"decision":"allow","reason":"{}"}}"#, "r".repeat(MAX_REPLY_BYTES));
    let expected = "evaluator_args_parse_error: 1048608 bytes, more than the 1048576 that are read";
    assert_eq!(calls(&[(DECIDE, &long)]), fault(expected));
}

#[test]
fn what_an_evaluator_saw_is_known_although_its_call_is_none() {
    let saw = |name: &str, arguments: &str| saw_injection(&answer("", &[(DECIDE, "{}"), (name, arguments)]));
    assert!(saw(DECIDE, r#"{"decision":"maybe","injection_detected":true}"#));
    assert!(saw("run", r#"{"injection_detected":true}"#));
    for arguments in [r#"{"injection_detected":false}"#, r#"{"injection_detected":"true"}"#, "[true]", "{", ""] {
        assert!(!saw(DECIDE, arguments), "{arguments}");
    }
}
