//! How texts are cleaned and cut.

use super::*;

fn reason(text: &str) -> Option<String> {
    let reply = json!({"decision": "block", "reason": text}).to_string();
    body(reply.as_bytes(), true).unwrap().said.reason
}

fn context(text: &str) -> Option<String> {
    let reply = json!({"additionalContext": text}).to_string();
    body(reply.as_bytes(), true).unwrap().said.context
}

#[test]
fn reasons_are_one_line() {
    let rows = [
        ("plain", Some("plain")),
        ("  both  ends  ", Some("both  ends")),
        ("one\r\n\ttwo\n\nthree", Some("one two three")),
        ("\u{1b}[31mred\u{1b}[0m\u{0}\u{7f}\u{9f}", Some("[31mred[0m")),
        ("next\u{85}line\u{2028}and\u{2029}paragraph", Some("next line and paragraph")),
        ("\n\u{0}\n", None),
        ("", None),
    ];
    for (text, expected) in rows {
        assert_eq!(reason(text).as_deref(), expected, "{text:?}");
    }
}

#[test]
fn reasons_are_cut_by_characters() {
    assert_eq!(reason(&"ü".repeat(MAX_REASON_CHARS)), Some("ü".repeat(MAX_REASON_CHARS)));
    assert_eq!(reason(&"ü".repeat(MAX_REASON_CHARS + 1)), Some("ü".repeat(MAX_REASON_CHARS)));
    // A break at the cut leaves no blank behind.
    let text = format!("{}\nrest", "x".repeat(MAX_REASON_CHARS - 1));
    assert_eq!(reason(&text), Some("x".repeat(MAX_REASON_CHARS - 1)));
}

#[test]
fn stderr_is_cut_as_a_reason_is() {
    let long = "é".repeat(MAX_REASON_CHARS + 5);
    let said = stdout(Exit::Code(2), b"", long.as_bytes());
    assert_eq!(told(said), Ok(because(Decision::Block, &"é".repeat(MAX_REASON_CHARS))));
    let left = stdout(Exit::Code(1), b"", long.as_bytes());
    assert_eq!(left, Err(ReplyFault::Exited { code: 1, stderr: "é".repeat(MAX_REASON_CHARS) }));
}

#[test]
fn contexts_are_cut_with_a_mark() {
    assert_eq!(context(""), None);
    assert_eq!(context(" a\n\tb "), Some(" a\n\tb ".into()));
    assert_eq!(context(&"ü".repeat(MAX_CONTEXT_CHARS)), Some("ü".repeat(MAX_CONTEXT_CHARS)));
    let cut = format!("{}…[truncated]", "ü".repeat(MAX_CONTEXT_CHARS));
    assert_eq!(context(&"ü".repeat(MAX_CONTEXT_CHARS + 1)), Some(cut));
}
