//! Names in other cases and near misses, through every reader.

use super::*;

/// Each line is read from the body of an endpoint, from what a command printed, and as what a script returned.
#[test]
fn a_member_is_known_in_whatever_case() {
    let differ = |name: &str| {
        fault(&format!("the member `{name}` stands in it in several spellings that differ in value; send it once"))
    };
    let rows: [(&str, Told); 17] = [
        (r#"{"Decision":"block"}"#, Ok(deciding(Decision::Block))),
        (r#"{"DECISION":"block","Reason":"no"}"#, Ok(because(Decision::Block, "no"))),
        (r#"{"decision":"allow","Continue":false}"#, Ok(deciding(Decision::Block))),
        (r#"{"dec\u0131sion":"block","decision":"allow"}"#, Ok(deciding(Decision::Block))),
        // The strictest of several counts, in any order.
        (r#"{"decision":"allow","Decision":"block"}"#, Ok(deciding(Decision::Block))),
        (r#"{"Decision":"block","decision":"allow"}"#, Ok(deciding(Decision::Block))),
        (r#"{"decision":"ask","Decision":"allow","DECISION":null}"#, Ok(deciding(Decision::Ask))),
        (r#"{"decision":"ask","Decision":"defer"}"#, Ok(deciding(Decision::Defer))),
        (r#"{"decision":"allow","continue":true,"CONTINUE":false}"#, Ok(deciding(Decision::Block))),
        (r#"{"decision":"allow","Decision":"allow"}"#, Ok(deciding(Decision::Allow))),
        (r#"{"decision":"block","Reason":"b","reason":"a"}"#, Ok(because(Decision::Block, "a"))),
        // One of a wrong type is the fault that it is alone.
        (r#"{"decision":"block","Reason":5,"reason":"a"}"#, fault("reason must be a string, got a number")),
        (r#"{"decision":"block","Continue":0,"continue":true}"#, fault("continue must be a boolean, got a number")),
        // Which of two inputs is stricter, nobody can say.
        (r#"{"decision":"allow","updatedInput":{"a":1},"UpdatedInput":{"a":2}}"#, differ("updatedInput")),
        (r#"{"decision":"allow","additionalContext":"a","AdditionalContext":"b"}"#, differ("additionalContext")),
        (
            r#"{"decision":"allow","updatedinput":{"a":1},"updatedInput":{"a":1.0}}"#,
            Ok(HandlerReply { updated_input: Some(object(json!({"a": 1.0}))), ..HandlerReply::default() }),
        ),
        (
            r#"{"decision":"allow","additionalcontext":"c"}"#,
            Ok(HandlerReply { context: Some("c".into()), ..HandlerReply::default() }),
        ),
    ];
    for (text, expected) in rows {
        let prefixed = |prefix: &str| expected.clone().map_err(|why| format!("{prefix}{why}"));
        assert_eq!(lenient(text), prefixed("reply: "), "{text}");
        assert_eq!(printed(text), prefixed("reply: "), "{text}");
        let value = json::parse(text).unwrap();
        assert_eq!(told(script(&value)), prefixed("script return: "), "{text}");
    }
}

#[test]
fn one_spelling_twice_is_a_fault_in_whatever_case() {
    let twice = r#"{"Decision":"allow","Decision":"block"}"#;
    assert_eq!(lenient(twice), fault("reply: the member `Decision` stands in it twice; send it once"));
    assert_eq!(printed(twice), fault("reply: the member `Decision` stands in it twice; send it once"));
}

#[test]
fn a_near_miss_is_a_warning_and_to_a_strict_hook_a_fault() {
    let rows = [
        (r#"{"descision":"block"}"#, "\"descision\" is not read; the member is \"decision\""),
        (r#"{"desicion":"block"}"#, "\"desicion\" is not read; the member is \"decision\""),
        (r#"{"updated_input":{"a":1}}"#, "\"updated_input\" is not read; the member is \"updatedInput\""),
        (r#"{"Additional-Context":"c"}"#, "\"Additional-Context\" is not read; the member is \"additionalContext\""),
        (r#"{"continu":false}"#, "\"continu\" is not read; the member is \"continue\""),
        // What decides elsewhere, where nothing decides here.
        (r#"{"action":"deny_tool"}"#, "\"action\" is not read; the member is \"decision\""),
        (
            r#"{"hookSpecificOutput":{"permissionDecision":"deny"}}"#,
            "\"hookSpecificOutput\" is not read; the member is \"decision\"",
        ),
    ];
    for (text, warning) in rows {
        let expected = warned(HandlerReply::default(), [warning]);
        assert_eq!(lenient(text), Ok(expected.clone()), "{text}");
        assert_eq!(printed(text), Ok(expected), "{text}");
        let strictly = told(body(text.as_bytes(), true).map(|body| body.said));
        assert_eq!(strictly, fault(&format!("reply: {warning} (the hook is `strict`)")), "{text}");
    }
    let returned = told(script(&json!({"decision": "allow", "raeson": "x"})));
    let warning = "\"raeson\" is not read; the member is \"reason\"";
    assert_eq!(returned, Ok(warned(HandlerReply::default(), [warning])));
}

#[test]
fn other_words_are_no_near_miss() {
    for text in [
        r#"{"decision":"allow","region":"eu","revision":3,"version":1,"reasoning":"x","action":"logged"}"#,
        r#"{"ok":true,"id":7,"status":"done","result":{},"error":null,"message":"x","continuation":1}"#,
    ] {
        assert_eq!(lenient(text), Ok(HandlerReply::default()), "{text}");
        assert_eq!(told(body(text.as_bytes(), true).map(|body| body.said)), Ok(HandlerReply::default()), "{text}");
    }
    // An event given back as it came, as `cat` does.
    let page = include_str!("../../../../../docs/reference/agent-hook-payload.md");
    let sample = page.split("```json\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    assert_eq!(lenient(sample), Ok(HandlerReply::default()));
}

#[test]
fn warnings_have_a_bound() {
    let members: Vec<String> = (0..1000).map(|at| format!("\"decision{at}\":1")).collect();
    let said = body(format!("{{{}}}", members.join(",")).as_bytes(), false).unwrap().said;
    assert_eq!(said.warnings.len(), 4);
}

#[test]
fn an_answer_that_is_not_utf_8_is_a_fault() {
    let block = r#"{"decision":"block"}"#;
    let little: Vec<u8> = block.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let big: Vec<u8> = block.encode_utf16().flat_map(u16::to_be_bytes).collect();
    let wide = |order: fn(u32) -> [u8; 4]| block.chars().flat_map(|c| order(u32::from(c))).collect::<Vec<u8>>();
    let marked = |mark: &[u8], text: &[u8]| [mark, text].concat();
    for (bytes, looks) in [
        (marked(&[0xff, 0xfe], &little), "UTF-16"),
        (marked(&[0xfe, 0xff], &big), "UTF-16"),
        (little, "UTF-16 without a byte order mark"),
        (big, "UTF-16 without a byte order mark"),
        (marked(&[0xff, 0xfe, 0, 0], &wide(u32::to_le_bytes)), "UTF-32"),
        (marked(&[0, 0, 0xfe, 0xff], &wide(u32::to_be_bytes)), "UTF-32"),
        (wide(u32::to_le_bytes), "UTF-16 without a byte order mark"),
        (wide(u32::to_be_bytes), "UTF-32 without a byte order mark"),
        (vec![0x1f, 0x8b, 8, 0, 0], "gzip"),
    ] {
        let expected = fault(&format!("reply: it looks like {looks}; send JSON in UTF-8"));
        assert_eq!(told(body(&bytes, false).map(|body| body.said)), expected);
        assert_eq!(told(stdout(Exit::Code(0), &bytes, b"")), expected);
        assert_eq!(told(stdout(Exit::Code(2), &bytes, b"no")), Ok(because(Decision::Block, "no")));
    }
}

#[test]
fn a_judge_is_read_alike() {
    let decided = |arguments: &str| {
        let mut answer: pintle_domain::llm::LlmReply = serde_json::from_str("{}").unwrap();
        answer.tool_calls.push(pintle_domain::message::CallPart::new("1", DECIDE, arguments));
        told(decide(&answer, InjectionEffect::Block))
    };
    assert_eq!(decided(r#"{"Decision":"block","REASON":"no"}"#), Ok(because(Decision::Block, "no")));
    assert_eq!(decided(r#"{"decision":"allow","Decision":"block","reason":"no"}"#), Ok(because(Decision::Block, "no")));
    let seen = decided(r#"{"decision":"allow","reason":"r","injection_detected":false,"Injection_Detected":true}"#);
    assert_eq!(seen.map(|said| said.decision), Ok(Decision::Block));
}
