//! Rewrites of a tool call, answers in its place, rewrites of its result.

use super::*;

#[test]
fn before_tool_rewrites_or_denies() {
    check(
        &before_tool(),
        r#"{"action":"modify","call":{"tool":"echo","arguments":{"text":"bye","n":12345678901234567890123}}}"#,
        Verdict::Modify(CallPatch {
            tool: Some("echo".into()),
            arguments: Some(object(r#"{"text":"bye","n":12345678901234567890123}"#)),
        }),
        &[],
    );
    check(
        &before_tool(),
        r#"{"call":{"tool":"","arguments":null,"tool_call_id":"c1","raw_tool":"Echo"}}"#,
        Verdict::Modify(CallPatch::default()),
        &["an empty `tool` keeps the tool"],
    );
    check(
        &before_tool(),
        r#"{"call":{"args":{},"raw_tool":"sh"}}"#,
        Verdict::Modify(CallPatch::default()),
        &[
            r#"result.call.args is not read; the member is "arguments""#,
            "result.call.raw_tool is read-only; the change is ignored",
        ],
    );
    check(
        &before_tool(),
        r#"{"arguments":{},"for_llm":"x","result":{"for_llm":"x"}}"#,
        Verdict::Continue,
        &[
            "result.arguments is not read; use result.call.arguments",
            "result.for_llm is not read; use result.result.for_llm with \"respond\"",
            "result.result is ignored beside \"continue\"",
        ],
    );
    check(&before_tool(), r#"{"action":"deny_tool","reason":"no"}"#, Verdict::Deny(Reason::new("no")), &[]);
    check(
        &before_tool(),
        r#"{"action":"deny_tool","call":5,"result":6}"#,
        Verdict::Deny(Reason::new("")),
        &["result.result is ignored beside \"deny_tool\"", "result.call is ignored beside \"deny_tool\""],
    );
    check_broke(&before_tool(), r#"{"action":"deny"}"#, r#"unknown action "deny"; did you mean "deny_tool"?"#);
    check_unreadable(
        &before_tool(),
        r#"{"call":{"arguments":"{}"}}"#,
        "result.call.arguments: expected an object, got a string",
    );
}

#[test]
fn respond_needs_a_good_result() {
    let output = ToolOutput { for_llm: "15 °C".into(), media: vec!["media://a".into()], ..ToolOutput::default() };
    check(
        &before_tool(),
        r#"{"action":"respond","call":{"tool":"w","arguments":{}},"result":{"for_llm":"15 °C","silent":false,"is_error":false,"media":["media://a"],"response_handled":false}}"#,
        Verdict::respond(Substitute {
            call: Some(CallPatch { tool: Some("w".into()), arguments: Some(Object::new()) }),
            result: output,
        }),
        &[],
    );
    check(
        &before_tool(),
        r#"{"action":"respond","result":{"for_llm":"","async":true,"messages":[]}}"#,
        Verdict::respond(Substitute { call: None, result: ToolOutput { is_async: true, ..ToolOutput::default() } }),
        &["result.result.messages is not read"],
    );
    let needs = r#""respond" needs "result", an object with a string "for_llm""#;
    check_respond(r#"{"action":"respond"}"#, needs);
    check_respond(r#"{"action":"respond","result":null}"#, needs);
    check_respond(
        r#"{"action":"respond","for_llm":"x"}"#,
        &format!("{needs}; result.for_llm is not read; use result.result.for_llm with \"respond\""),
    );
    check_respond(
        r#"{"action":"respond","result":{"for_user":"x"}}"#,
        "result.result.for_llm is missing; it must be a string, which may be empty",
    );
    check_respond(r#"{"action":"respond","result":"x"}"#, "result.result: expected an object, got a string");
    check_respond(
        r#"{"action":"respond","result":{"for_llm":5}}"#,
        "result.result.for_llm: expected a string, got a number",
    );
    check_respond(
        r#"{"action":"respond","result":{"for_llm":"x","silent":"no"}}"#,
        "result.result.silent: expected a boolean, got a string",
    );
    check_respond(
        r#"{"action":"respond","result":{"for_llm":"x"},"call":[]}"#,
        "result.call: expected an object, got an array",
    );
    check_respond(
        r#"{"action":"respond","result":{"for_llm":"x"},"reason":1}"#,
        "result.reason: expected a string, got a number",
    );
}

#[test]
fn after_tool_replaces_the_whole_result() {
    check(
        &after_tool(),
        r#"{"action":"modify","result":{"result":{"for_llm":"[redacted]"}}}"#,
        Verdict::Modify(ToolOutput::ok("[redacted]")),
        &[],
    );
    check(
        &after_tool(),
        r#"{"result":{"tool":"echo","arguments":{"n":1},"duration":15000000,"tool_call_id":"c1","raw_tool":"Echo","result":{"is_error":true}}}"#,
        Verdict::Modify(ToolOutput { is_error: true, ..ToolOutput::default() }),
        &["result.result.result.for_llm is missing; the model reads an empty result"],
    );
    check(
        &after_tool(),
        r#"{"result":{"for_llm":"x","tool":"sh","duration":1}}"#,
        Verdict::Continue,
        &[
            "result.result.for_llm is not read; use result.result.result.for_llm",
            "result.result.tool is read-only; the change is ignored",
            "result.result.duration is read-only; the change is ignored",
        ],
    );
    check_unreadable(
        &after_tool(),
        r#"{"result":{"result":{"media":"a"}}}"#,
        "result.result.result.media: expected an array, got a string",
    );
}

#[test]
fn a_decision_in_the_words_of_another_system_is_no_permission() {
    for (member, value) in [
        ("decision", r#""deny""#),
        ("permissionDecision", r#""deny""#),
        ("hookSpecificOutput", "{}"),
        ("continue", "false"),
        ("Block", "true"),
        ("approved", "false"),
    ] {
        let body = format!(r#"{{"{member}":{value},"reason":"no"}}"#);
        let word = if member == "Block" { "block" } else { member };
        let detail = format!(
            r#"result.{word} decides nothing in before_tool, which reads "action"; "action": "deny_tool" refuses, "action": "continue" allows"#
        );
        check_broke(&before_tool(), &body, &detail);
        let with_action = format!(r#"{{"{member}":{value},"action":"deny_tool","reason":"no"}}"#);
        let heard = heard(&before_tool(), &with_action, false).unwrap();
        assert_eq!((heard.verdict, heard.warnings.len()), (Verdict::Deny(Reason::new("no")), 1), "{with_action}");
    }
}
