//! What commands answer, in every way that agents were seen to take or to pass over.

use std::time::Duration;

use pintle_dialects::claude::{ClaudeEvent, CommandAnswer, CommandDecision, CommandOutput, CommandStop};
use pintle_domain::fault::{Fault, FaultKind};
use proptest::prelude::*;

use CommandStop::{Exit, Signal, TimedOut};

const DENY: &str = r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no"}}"#;
const ALLOW: &str = r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow"}}"#;
const LATE: CommandStop = TimedOut(Duration::from_secs(1));

fn read(event: ClaudeEvent, stop: CommandStop, stdout: &str, stderr: &str) -> Result<CommandAnswer, Fault> {
    CommandAnswer::read(event, &CommandOutput { stop, stdout: stdout.as_bytes(), stderr: stderr.as_bytes() })
}

/// What an answer comes to, in a word: of a fault its own.
fn word(read: &Result<CommandAnswer, Fault>) -> String {
    match read {
        Ok(answer) => match &answer.decision {
            CommandDecision::Allow => "allow".to_owned(),
            CommandDecision::Ask(why) => format!("ask: {why}"),
            CommandDecision::Deny(why) => format!("deny: {why}"),
            CommandDecision::Stop(why) => format!("stop: {why}"),
        },
        Err(fault) => fault.kind().word().to_owned(),
    }
}

fn at_pre_tool_use(stop: CommandStop, stdout: &str, stderr: &str) -> String {
    word(&read(ClaudeEvent::PreToolUse, stop, stdout, stderr))
}

#[test]
fn no_row_of_the_matrix_lets_a_refusal_pass() {
    let deny_and = |more: &str| format!("{},{more}}}", &DENY[..DENY.len() - 1]);
    let rows: [(CommandStop, String, &str, &str); 35] = [
        (Exit(0), String::new(), "", "allow"),
        (Exit(0), "{}".into(), "", "allow"),
        (Exit(0), ALLOW.into(), "", "allow"),
        (Exit(0), "checked 3 rules".into(), "", "allow"),
        (Exit(0), "[]".into(), "", "allow"),
        (Exit(0), "[1,2]".into(), "", "allow"),
        (Exit(1), String::new(), "", "bad_exit"),
        (Exit(1), String::new(), "boom", "bad_exit"),
        (Exit(1), ALLOW.into(), "", "bad_exit"),
        (Exit(2), String::new(), "not here", "deny: not here"),
        (Exit(2), String::new(), "", "deny: it ended with exit code 2"),
        (Exit(2), DENY.into(), "", "deny: no"),
        (Exit(2), ALLOW.into(), "not here", "deny: not here"),
        (Exit(3), String::new(), "what", "bad_exit"),
        (Exit(49), String::new(), "what", "bad_exit"),
        (Exit(127), String::new(), "sh: 1: guard: not found", "bad_exit"),
        (Exit(0), DENY[..DENY.len() / 2].into(), "", "unreadable"),
        (Exit(0), DENY.into(), "", "deny: no"),
        (Exit(1), DENY.into(), "", "deny: no"),
        (Exit(0), format!("checking\n{DENY}"), "", "unreadable"),
        (Exit(0), format!("{DENY}\ndone"), "", "unreadable"),
        (Exit(0), format!("{DENY}{DENY}"), "", "unreadable"),
        (Exit(0), deny_and(r#""extra":1"#), "", "deny: no"),
        (Exit(0), DENY.replace("\"no\"", "\"\""), "", "deny: it gave no reason"),
        (Exit(0), deny_and(r#""continue":false,"stopReason":"end""#), "", "stop: no"),
        (Exit(0), r#"{"continue":false,"stopReason":"end"}"#.into(), "", "stop: end"),
        (Exit(0), r#"{"decision":"block","reason":"no"}"#.into(), "", "deny: no"),
        (Exit(0), DENY.replace("\"deny\"", "\"denyy\""), "", "protocol_error"),
        (Exit(0), DENY.replace("\"deny\"", "\"ask\""), "", "ask: no"),
        (Exit(0), DENY.replace("\"deny\"", "\"defer\""), "", "deny: no"),
        (LATE, String::new(), "", "timed_out"),
        (LATE, DENY.into(), "", "deny: no"),
        (Signal(9), String::new(), "", "killed"),
        (Signal(9), DENY.into(), "", "deny: no"),
        (CommandStop::CannotStart("no such program".into()), String::new(), "", "cannot_start"),
    ];
    for (stop, stdout, stderr, expected) in rows {
        assert_eq!(at_pre_tool_use(stop.clone(), &stdout, stderr), expected, "{stop:?} {stdout} {stderr}");
    }
}

#[test]
fn a_refusal_is_one_in_every_spelling() {
    for (stdout, expected) in [
        (r#"{"decision":"deny"}"#, "deny: it gave no reason"),
        (r#"{"decision":"Block","reason":" because "}"#, "deny: because"),
        (r#"{"permissionDecision":"deny","permissionDecisionReason":"top"}"#, "deny: top"),
        (r#"{"permission":"deny","user_message":"x"}"#, "deny: it gave no reason"),
        (r#"{"cancel":true,"errorMessage":"why"}"#, "deny: why"),
        (r#"{"result":"deny","reason":"why"}"#, "deny: why"),
        (r#"{"response":{"decision":"block","reason":"why"}}"#, "deny: why"),
        (r#"{"outcome":{"allowed":false,"message":"why"}}"#, "deny: why"),
        (r#"{"ok":false,"reason":"why"}"#, "deny: why"),
        (r#"{"approved":false}"#, "deny: it gave no reason"),
        (r#"{"action":"block","message":"why"}"#, "deny: why"),
        (
            r#"{"hookSpecificOutput":{"hookEventName":"PermissionRequest","decision":{"behavior":"deny","message":"why"}}}"#,
            "deny: why",
        ),
        (r#"{"hookSpecificOutput":{"permissionDecision":"reject"}}"#, "deny: it gave no reason"),
        ("deny", "deny: deny"),
        ("\"blocked\"", "deny: \"blocked\""),
    ] {
        assert_eq!(at_pre_tool_use(Exit(0), stdout, ""), expected, "{stdout}");
    }
}

#[test]
fn what_decides_counts_wherever_it_stands() {
    for (stdout, expected) in [
        (r#"{"hookSpecificOutput":{"continue":false,"stopReason":"end"}}"#, "stop: end"),
        (r#"{"response":{"continue":false,"stopReason":"end"}}"#, "stop: end"),
        (r#"{"hookSpecificOutput":{"hookSpecificOutput":{"permissionDecision":"deny"}}}"#, "deny: it gave no reason"),
        (r#"{"response":{"hookSpecificOutput":{"permissionDecision":"deny"}}}"#, "deny: it gave no reason"),
        (r#"{"response":{"hookSpecificOutput":{"permissionDecision":"ask"}}}"#, "ask: "),
        (r#"{"hookSpecificOutput":{"permissionDecision":"ask","permissionDecisionReason":"why"}}"#, "ask: why"),
        (r#"{"hookSpecificOutput":{"decision":"ask"}}"#, "ask: "),
        (r#"{"hookSpecificOutput":{"decision":{"behavior":"ask","message":"why"}}}"#, "ask: why"),
        (r#"{"permission":"ask","reason":"why"}"#, "ask: why"),
        (r#"{"permission":"Ask"}"#, "ask: "),
        (r#"{"decision":"approve","hookSpecificOutput":{"permissionDecision":"ask"}}"#, "ask: "),
        (r#"{"hookSpecificOutput":{"permissionDecision":"perhaps"}}"#, "protocol_error"),
        (r#"{"hookSpecificOutput":{"permissionDecision":{"allow":true}}}"#, "protocol_error"),
        (r#"{"hookSpecificOutput":{"decision":"perhaps"}}"#, "protocol_error"),
        (r#"{"hookSpecificOutput":{"decision":{"behavior":"perhaps"}}}"#, "protocol_error"),
        (r#"{"hookSpecificOutput":{"permission":"perhaps"}}"#, "protocol_error"),
        (r#"{"hookSpecificOutput":{"continue":"no"}}"#, "protocol_error"),
        (r#"{"hookSpecificOutput":{"hookSpecificOutput":{}}}"#, "protocol_error"),
        (r#"{"verdict":"perhaps"}"#, "protocol_error"),
        (r#"{"decision":"approve","hookSpecificOutput":{"permissionDecision":"perhaps"}}"#, "protocol_error"),
        (r#"{"hookSpecificOutput":{"decision":{"behavior":"allow"}}}"#, "allow"),
        (r#"{"action":"continue","result":"created"}"#, "allow"),
        (r#"{"action":"none"}"#, "allow"),
        (r#"{"verdict":"ok"}"#, "allow"),
        (r#"{"decision":"none"}"#, "protocol_error"),
        (r#"{"result":{"action":"created"}}"#, "allow"),
    ] {
        assert_eq!(at_pre_tool_use(Exit(0), stdout, ""), expected, "{stdout}");
    }
}

#[test]
fn what_nobody_can_be_sure_of_is_a_fault() {
    for (stdout, expected) in [
        (r#"{"decision":"perhaps"}"#, "`decision` is `perhaps`"),
        (r#"{"decision":1}"#, "`decision` is no text"),
        (r#"{"desicion":"block"}"#, "did you mean `decision`?"),
        (r#"{"hookSpecificOutput":{"permisionDecision":"deny"}}"#, "did you mean `permissionDecision`?"),
        (r#"{"hookSpecificOutput":"deny"}"#, "`hookSpecificOutput` is no object"),
        (r#"{"hookSpecificOutput":{"hookEventName":"Stop"}}"#, "it answers `Stop`"),
        (r#"{"updatedInput":{}}"#, "has to stand in `hookSpecificOutput`"),
        (r#"{"permissionDecision":"allow"}"#, "has to stand in `hookSpecificOutput`"),
        (r#"{"hookSpecificOutput":{"updatedInput":"ls"}}"#, "`updatedInput` is no object"),
        (r#"{"continue":"no"}"#, "`continue` is neither true nor false"),
        (r#"{"async":true}"#, "it answers later"),
        (r#"{"decision":"approve","decision":"block"}"#, "stands twice"),
        (r#"[{"decision":"block"}]"#, "answers in a list"),
        (r#"[["deny"]]"#, "answers in a list"),
        ("loading\n{\"decision\":\"block\"}", r"it begins with `loading\n{"),
    ] {
        let fault = read(ClaudeEvent::PreToolUse, Exit(0), stdout, "").unwrap_err();
        let said = fault.explained().to_string();
        assert!(said.contains(expected), "{stdout}: {said}");
    }
    let long = CommandStop::TooMuch(1 << 20);
    assert_eq!(at_pre_tool_use(long, "", ""), "too_large");
    let bytes = CommandOutput { stop: Exit(0), stdout: b"\xff\xfe", stderr: b"" };
    assert_eq!(CommandAnswer::read(ClaudeEvent::PreToolUse, &bytes).unwrap_err().kind(), FaultKind::Unreadable);
    assert_eq!(at_pre_tool_use(CommandStop::Cancelled, DENY, ""), "cancelled");
}

#[test]
fn what_comes_with_an_answer_is_read() {
    let all = r#"{"systemMessage":"look","suppressOutput":true,"hookSpecificOutput":{"hookEventName":"PreToolUse",
        "permissionDecision":"allow","updatedInput":{"command":"ls -a"},"additionalContext":"hidden files, too"}}"#;
    let answer = read(ClaudeEvent::PreToolUse, Exit(0), all, "").unwrap();
    assert_eq!(answer.updated_input.unwrap().get("command").unwrap(), "ls -a");
    assert_eq!((answer.context.as_deref(), answer.message.as_deref()), (Some("hidden files, too"), Some("look")));
    let prompt = read(ClaudeEvent::UserPromptSubmit, Exit(0), "branch: main {dirty}\n", "").unwrap();
    assert_eq!(prompt.context.as_deref(), Some("branch: main {dirty}"));
    let stray = read(ClaudeEvent::UserPromptSubmit, Exit(0), "note\n{\"decision\":\"block\"}", "").unwrap_err();
    assert_eq!(stray.kind(), FaultKind::Unreadable);
    for (output, expected) in [
        (r#""plain""#, "plain"),
        (r#"{"stdout":"out","stderr":"err","interrupted":false,"isImage":false}"#, "out\nerr"),
        (r#"[{"type":"text","text":"a"},{"type":"text","text":"b"}]"#, "a\nb"),
        (r#"{"filePath":"/a","content":"text"}"#, "text"),
        (r#"{"n":1}"#, r#"{"n":1}"#),
    ] {
        let stdout =
            format!(r#"{{"hookSpecificOutput":{{"hookEventName":"PostToolUse","updatedToolOutput":{output}}}}}"#);
        let answer = read(ClaudeEvent::PostToolUse, Exit(0), &stdout, "").unwrap();
        assert_eq!(answer.updated_output.as_deref(), Some(expected), "{output}");
    }
    let late = read(ClaudeEvent::PreToolUse, Exit(1), "", "Traceback\nKeyError: 'path'\n").unwrap_err();
    assert_eq!(late.explained().to_string(), "exited with status 1: KeyError: 'path'");
}

#[test]
fn a_refusal_among_other_text_is_found_where_faults_let_pass() {
    for text in
        [format!("checking\n{DENY}"), format!("{DENY}\ndone"), format!("note: {DENY}"), DENY.replace(',', ",\n")]
    {
        let found = CommandAnswer::refusal_within(text.as_bytes()).unwrap();
        assert_eq!(found.decision, CommandDecision::Deny("no".into()), "{text}");
    }
    assert_eq!(CommandAnswer::refusal_within(format!("x\n{ALLOW}").as_bytes()), None);
}

proptest! {
    /// Whatever a command writes and however it ends: what holds a refusal by itself never lets pass.
    #[test]
    fn a_whole_refusal_never_lets_pass(code in 0..300_i32, stderr in ".{0,40}", blanks in "[ \n\t]{0,5}") {
        let said = at_pre_tool_use(Exit(code), &format!("{blanks}{DENY}{blanks}"), &stderr);
        prop_assert!(said.starts_with("deny: "), "{said}");
    }

    /// Only exit code 0 lets pass, and no output makes another code let pass.
    #[test]
    fn only_a_good_end_lets_pass(code in 1..300_i32, stdout in ".{0,200}") {
        let said = at_pre_tool_use(Exit(code), &stdout, "");
        prop_assert!(said != "allow" && !said.starts_with("ask"), "{said}");
    }

    /// Text around a refusal may hide it, but nothing makes it an answer that lets pass.
    #[test]
    fn a_refusal_with_company_never_lets_pass(before in "[a-z {}\":]{0,20}", after in "[a-z {}\":]{0,20}") {
        let said = at_pre_tool_use(Exit(0), &format!("{before}\n{DENY}\n{after}"), "");
        prop_assert!(said.starts_with("deny: ") || said == "unreadable", "{said}");
    }
}
