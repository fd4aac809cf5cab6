//! Each sentence of the readers as lines of a table.

use pintle_domain::json::{self, Object, Value, json};

use super::*;

mod evaluator;
mod hostile;
mod http;
mod output;
mod rewriting;
mod scripts;
mod spellings;
mod texts;

fn object(value: Value) -> Object {
    match value {
        Value::Object(members) => members,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            panic!("{value} is not an object")
        }
    }
}

fn deciding(decision: Decision) -> HandlerReply {
    HandlerReply { decision, ..HandlerReply::default() }
}

fn because(decision: Decision, reason: &str) -> HandlerReply {
    HandlerReply { reason: Some(reason.into()), ..deciding(decision) }
}

/// An answer, or a fault's text.
type Told = Result<HandlerReply, String>;

fn told(answer: Result<HandlerReply, ReplyFault>) -> Told {
    answer.map_err(|fault| fault.to_string())
}

fn fault(text: &str) -> Told {
    Err(text.to_owned())
}

/// A body as a lenient hook has it.
fn lenient(text: &str) -> Told {
    told(body(text.as_bytes(), false).map(|body| body.said))
}

/// `said` with these warnings.
fn warned<const N: usize>(said: HandlerReply, warnings: [&str; N]) -> HandlerReply {
    HandlerReply { warnings: warnings.map(str::to_owned).to_vec(), ..said }
}

/// What a command that left with 0 printed.
fn printed(text: &str) -> Told {
    told(stdout(Exit::Code(0), text.as_bytes(), b"not looked at"))
}

/// What the two readers of replies share, through both of them.
#[test]
fn members_of_a_reply() {
    let rows: [(&str, Told); 26] = [
        ("{}", Ok(deciding(Decision::Allow))),
        (r#"{"decision":"allow"}"#, Ok(deciding(Decision::Allow))),
        (r#"{"decision":"block"}"#, Ok(deciding(Decision::Block))),
        (r#"{"decision":"ask"}"#, Ok(deciding(Decision::Ask))),
        (r#"{"decision":"defer"}"#, Ok(deciding(Decision::Defer))),
        (
            r#"{"decision":null,"reason":null,"continue":null,"additionalContext":null,"updatedInput":null}"#,
            Ok(deciding(Decision::Allow)),
        ),
        (r#"{"continue":true}"#, Ok(deciding(Decision::Allow))),
        (r#"{"continue":false}"#, Ok(deciding(Decision::Block))),
        (r#"{"decision":"allow","continue":false}"#, Ok(deciding(Decision::Block))),
        (r#"{"continue":false,"decision":"ask"}"#, Ok(deciding(Decision::Block))),
        (r#"{"decision":"block","continue":true}"#, Ok(deciding(Decision::Block))),
        (r#"{"decision":"block","reason":" no\nway "}"#, Ok(because(Decision::Block, "no way"))),
        (r#"{"reason":"\n"}"#, Ok(deciding(Decision::Allow))),
        ("\u{feff}{\"decision\":\"block\"}", Ok(deciding(Decision::Block))),
        // The seed's sample, and its payload given back by `cat`.
        (
            r#"{"decision":"allow","additionalContext":"...","updatedInput":{},"continue":true}"#,
            Ok(HandlerReply {
                context: Some("...".into()),
                updated_input: Some(Object::new()),
                ..HandlerReply::default()
            }),
        ),
        (
            r#"{"ToolName":"exec","HookEvent":"pre_tool_use","Depth":0,"ToolInput":{"decision":"block"}}"#,
            Ok(deciding(Decision::Allow)),
        ),
        (
            r#"{"decision":"deny"}"#,
            fault(r#"reply: decision must be one of "allow", "block", "ask", "defer", got "deny""#),
        ),
        (
            r#"{"decision":"Allow"}"#,
            fault(r#"reply: decision must be one of "allow", "block", "ask", "defer", got "Allow""#),
        ),
        (r#"{"decision":""}"#, fault(r#"reply: decision must be one of "allow", "block", "ask", "defer", got """#)),
        (r#"{"decision":true}"#, fault("reply: decision must be a string, got a boolean")),
        (r#"{"continue":"false"}"#, fault("reply: continue must be a boolean, got a string")),
        (r#"{"reason":5}"#, fault("reply: reason must be a string, got a number")),
        (r#"{"additionalContext":["a"]}"#, fault("reply: additionalContext must be a string, got an array")),
        (r#"{"updatedInput":"ls"}"#, fault("reply: updatedInput must be an object, got a string")),
        (
            r#"{"decision":"block","decision":"allow"}"#,
            fault("reply: the member `decision` stands in it twice; send it once"),
        ),
        (
            r#"{"continue":false,"x":{},"contin\u0075e":true}"#,
            fault("reply: the member `continue` stands in it twice; send it once"),
        ),
    ];
    for (text, expected) in rows {
        assert_eq!(lenient(text), expected, "{text}");
        assert_eq!(printed(text), expected, "{text}");
    }
}

#[test]
fn each_fault_has_its_kind() {
    let kinds = [
        ReplyFault::Exited { code: 3, stderr: String::new() },
        ReplyFault::Killed { signal: 9, stderr: String::new() },
        ReplyFault::TooLarge { got: 0 },
        ReplyFault::Unreadable(String::new()),
    ]
    .map(|fault| fault.kind().word());
    assert_eq!(kinds, ["bad_exit", "killed", "too_large", "unreadable"]);
}

#[test]
fn a_reply_is_read_to_its_bound_and_no_further() {
    let full = |bytes: usize| {
        let frame = r#"{"decision":"block","x":""}"#.len();
        format!(r#"{{"decision":"block","x":"{}"}}"#, "x".repeat(bytes - frame))
    };
    assert_eq!(lenient(&full(MAX_REPLY_BYTES)), Ok(deciding(Decision::Block)));
    assert_eq!(printed(&full(MAX_REPLY_BYTES)), Ok(deciding(Decision::Block)));
    let above = fault("reply: 1048577 bytes, more than the 1048576 that are read");
    assert_eq!(lenient(&full(MAX_REPLY_BYTES + 1)), above);
    assert_eq!(printed(&full(MAX_REPLY_BYTES + 1)), above);
}

#[test]
fn a_person_can_be_asked_about_a_call_and_about_nothing_else() {
    for event in pintle_domain::rule::AGENT_EVENTS {
        let counts = Decision::ALL.map(|decision| decision.at(event));
        let ask = if event == CheckpointKind::PreToolUse { Decision::Ask } else { Decision::Block };
        assert_eq!(counts, [Decision::Allow, Decision::Block, ask, Decision::Block], "{}", event.name());
    }
}
