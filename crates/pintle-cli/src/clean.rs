//! Strangers' text with everything in it visible, so that it cannot show something else than what it is.

use std::borrow::Cow;
use std::io::{self, IsTerminal as _};

/// A name or a line: what moves a terminal or turns the direction of reading around is spelled out.
pub fn clean(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '"' | '\'' | '\\' => shown.push(c),
            c => shown.extend(c.escape_debug()),
        }
    }
    shown
}

/// Prose of several lines in any language: only what a terminal would act on is spelled out.
pub fn prose(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\t' => shown.push(c),
            // Windows ends lines with it; alone it would go back over what is there.
            '\r' => {}
            c if c.is_control() => shown.extend(c.escape_debug()),
            c => shown.push(c),
        }
    }
    shown
}

/// What a model, a tool or a hook wrote, as it may stand on stdout: a terminal does not get to act on it.
pub fn foreign(text: &str) -> Cow<'_, str> {
    if io::stdout().is_terminal() { Cow::Owned(prose(text)) } else { Cow::Borrowed(text) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_strangers_text_is_hidden() {
        for (text, shown) in [
            (r#"say "hi" \ it's"#, r#"say "hi" \ it's"#),
            ("\u{1b}[2Jgone", r"\u{1b}[2Jgone"),
            ("a\u{202e}b\r\n", r"a\u{202e}b\r\n"),
            ("\u{9b}31m é", r"\u{9b}31m é"),
        ] {
            assert_eq!(clean(text), shown);
        }
    }

    #[test]
    fn prose_keeps_its_lines_and_loses_what_moves_a_terminal() {
        for (text, shown) in [
            ("one\ttwo\r\nthree\n", "one\ttwo\nthree\n"),
            ("\u{1b}[2J\u{1b}]0;title\u{7}\u{8}", r"\u{1b}[2J\u{1b}]0;title\u{7}\u{8}"),
            ("\u{9d}52;c;eA==\u{9c}", r"\u{9d}52;c;eA==\u{9c}"),
            ("नमस्ते 👩‍💻 e\u{301}", "नमस्ते 👩‍💻 e\u{301}"),
        ] {
            assert_eq!(prose(text), shown);
        }
    }
}
