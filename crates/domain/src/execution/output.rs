//! The beginning of what a command wrote, as it is kept of an execution.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::account::Account;

/// The longest beginning that is kept of one stream, in bytes: enough for what a hook says of its verdict, and no log.
const MAX_KEPT_OUTPUT_BYTES: usize = 2048;

/// What a command wrote. It can hold what the event held, so it is sealed where it is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KeptOutput {
    /// On its standard output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdout: Option<OutputHead>,
    /// On its standard error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stderr: Option<OutputHead>,
}

/// The beginning of one stream.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputHead {
    /// Its text, without what a terminal would act on.
    pub text: String,
    /// Whether there was more.
    pub cut: bool,
}

impl KeptOutput {
    /// What `account` still has of it; nothing if nothing was written, or it may not be kept.
    pub(super) fn of(account: &Account) -> Option<Box<Self>> {
        if account.hides_output {
            return None;
        }
        let stdout = OutputHead::of(account.stdout.as_deref(), account.stdout_len);
        let stderr = OutputHead::of(account.stderr.as_deref(), account.stderr_len);
        (stdout.is_some() || stderr.is_some()).then(|| Box::new(Self { stdout, stderr }))
    }
}

impl OutputHead {
    /// The beginning of a stream of `len` bytes that began with `written`.
    fn of(written: Option<&str>, len: Option<usize>) -> Option<Self> {
        let written = written?;
        let mut text = plain(written);
        let end = text.floor_char_boundary(MAX_KEPT_OUTPUT_BYTES);
        let cut = end < text.len() || len.is_some_and(|len| len > written.len());
        text.truncate(end);
        Some(Self { text, cut })
    }
}

/// It may be what nobody is to read by chance: a log has its length.
impl fmt::Debug for OutputHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OutputHead({} bytes, cut: {})", self.text.len(), self.cut)
    }
}

/// `text` without control characters and without marks that turn the order of reading around; lines and tabs stay.
fn plain(text: &str) -> String {
    let acts = |c: char| {
        (c.is_control() && !matches!(c, '\n' | '\t')) || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    // Windows ends lines with both.
    let lines = text.replace("\r\n", "\n");
    lines.chars().map(|c| if acts(c) { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(written: &str, len: usize) -> (String, bool) {
        let head = OutputHead::of(Some(written), Some(len)).unwrap();
        (head.text, head.cut)
    }

    #[test]
    fn a_beginning_is_cut_at_a_character_and_says_so() {
        let full = "x".repeat(MAX_KEPT_OUTPUT_BYTES);
        assert_eq!(head(&full, full.len()), (full.clone(), false));
        assert_eq!(head(&format!("{full}y"), full.len() + 1), (full.clone(), true));
        let odd = format!("x{}", "é".repeat(MAX_KEPT_OUTPUT_BYTES));
        let (text, cut) = head(&odd, odd.len());
        assert_eq!((text.len(), text.ends_with('é'), cut), (MAX_KEPT_OUTPUT_BYTES - 1, true, true));
        assert_eq!(head("all that was read", 1 << 20), ("all that was read".to_owned(), true));
    }

    #[test]
    fn nothing_in_it_moves_a_terminal() {
        assert_eq!(head("a\r\n\tb\u{1b}[31m\u{0}\u{202e}c\r", 17).0, "a\n\tb\u{fffd}[31m\u{fffd}\u{fffd}c\u{fffd}");
        assert_eq!(head("grün, 绿, \u{200d}", 19).0, "grün, 绿, \u{200d}");
    }

    #[test]
    fn who_wrote_nothing_has_none_and_a_log_has_no_text() {
        assert_eq!(KeptOutput::of(&Account { stdout_len: Some(0), ..Account::default() }), None);
        let account = Account { stderr: Some("sk_live".into()), stderr_len: Some(7), ..Account::default() };
        assert_eq!(KeptOutput::of(&Account { hides_output: true, ..account.clone() }), None);
        let kept = KeptOutput::of(&account).unwrap();
        assert_eq!((&kept.stdout, &kept.stderr.as_ref().unwrap().text), (&None, &"sk_live".to_owned()));
        assert!(!format!("{kept:?}").contains("sk_live"));
    }
}
