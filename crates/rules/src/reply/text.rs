//! Texts of hooks, made fit for messages and records.

use super::{MAX_CONTEXT_CHARS, MAX_REASON_CHARS};

/// The mark where a context was cut.
const CUT: &str = "…[truncated]";
/// How much of a wrong word is quoted, in characters: enough to find it.
const QUOTED_CHARS: usize = 64;

/// One line of `text`: line breaks and tabs become single spaces, other control characters go, and what is longer
/// than a reason may be is cut. `None` if nothing is left.
pub(super) fn line(text: &str) -> Option<String> {
    let line = one_line(text, MAX_REASON_CHARS);
    (!line.is_empty()).then_some(line)
}

/// A wrong word, as messages quote it.
pub(super) fn quoted(word: &str) -> String {
    format!("\"{}\"", one_line(word, QUOTED_CHARS))
}

/// `text` as a context: cut at its bound, with a mark. `None` if it is empty.
pub(super) fn context(mut text: String) -> Option<String> {
    if let Some((end, _)) = text.char_indices().nth(MAX_CONTEXT_CHARS) {
        text.truncate(end);
        text.push_str(CUT);
    }
    (!text.is_empty()).then_some(text)
}

/// The text of a message where standard error is quoted.
pub(super) fn or_nothing(stderr: &str) -> &str {
    if stderr.is_empty() { "(nothing on stderr)" } else { stderr }
}

fn one_line(text: &str, max_chars: usize) -> String {
    let mut line = String::new();
    let mut left = max_chars;
    for c in text.trim_matches(is_margin).chars() {
        let breaks = matches!(c, '\n' | '\r' | '\t' | '\u{85}' | '\u{2028}' | '\u{2029}');
        let c = match (breaks, c.is_control()) {
            (true, _) if line.ends_with(' ') => continue,
            (true, _) => ' ',
            (false, true) => continue,
            (false, false) => c,
        };
        if left == 0 {
            break;
        }
        line.push(c);
        left -= 1;
    }
    line.truncate(line.trim_end().len());
    line
}

fn is_margin(c: char) -> bool {
    c.is_whitespace() || c.is_control()
}
