//! The beginning of what a program wrote, as it is kept of an execution.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::masked;
use crate::account::Account;
use crate::fault::MAX_CAUSE_CHARS;

/// What a command or a script wrote. It can hold what the event held, so it is sealed where it is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KeptOutput {
    /// On its standard output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stdout: Option<OutputHead>,
    /// On its standard error; of a script, on its console.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stderr: Option<OutputHead>,
}

/// The beginning of one stream.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutputHead {
    /// Its text, without what may be secret in it, of at most [`MAX_CAUSE_CHARS`] characters.
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
        // First, as half a secret does not look like one.
        let masked = masked(written);
        let end = masked.char_indices().nth(MAX_CAUSE_CHARS).map(|(end, _)| end);
        let text = end.map_or(&*masked, |end| &masked[..end]).to_owned();
        Some(Self { text, cut: end.is_some() || len.is_some_and(|len| len > written.len()) })
    }
}

/// It may be what nobody is to read by chance: a log has its length.
impl fmt::Debug for OutputHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OutputHead({} bytes, cut: {})", self.text.len(), self.cut)
    }
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
        for sign in ["x", "é"] {
            let full = sign.repeat(MAX_CAUSE_CHARS);
            assert_eq!(head(&full, full.len()), (full.clone(), false));
            let longer = format!("{full}y");
            assert_eq!(head(&longer, longer.len()), (full, true));
        }
        assert_eq!(head("all that was read", 1 << 20), ("all that was read".to_owned(), true));
    }

    #[test]
    fn secrets_go_before_it_is_cut_and_all_else_stays_as_it_is() {
        let before = "x".repeat(MAX_CAUSE_CHARS - 9);
        let written = format!("{before} sk-abcdefghijklmnop");
        let (text, cut) = head(&written, written.len());
        assert_eq!((text.ends_with("x [REDACTE"), cut), (true, true));
        let foreign = "a\r\n\tb\u{1b}[31m\u{0}\u{202e}c";
        assert_eq!(head(foreign, foreign.len()), (foreign.to_owned(), false));
    }

    #[test]
    fn who_wrote_nothing_has_none_and_a_log_has_no_text() {
        assert_eq!(KeptOutput::of(&Account { stdout_len: Some(0), ..Account::default() }), None);
        let account = Account { stderr: Some("a word".into()), stderr_len: Some(6), ..Account::default() };
        assert_eq!(KeptOutput::of(&Account { hides_output: true, ..account.clone() }), None);
        let kept = KeptOutput::of(&account).unwrap();
        assert_eq!((&kept.stdout, &kept.stderr.as_ref().unwrap().text), (&None, &"a word".to_owned()));
        assert!(!format!("{kept:?}").contains("a word"));
    }
}
