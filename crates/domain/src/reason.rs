//! The reasons and the words of verdicts.

use std::fmt;

/// Longest reason that is kept, in bytes: enough for a paragraph, too little to fill a context.
pub const MAX_REASON_BYTES: usize = 4096;

/// An answer that is not allowed at a checkpoint: it has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Never {}

/// What an answer carries, as the record has it.
pub trait Describe {
    /// Its word, where the plain one of its kind is `plain`, and its reason.
    fn told(&self, plain: VerdictKind) -> (VerdictKind, Option<&Reason>);
}

impl Describe for Never {
    fn told(&self, _plain: VerdictKind) -> (VerdictKind, Option<&Reason>) {
        match *self {}
    }
}

impl Describe for Reason {
    fn told(&self, plain: VerdictKind) -> (VerdictKind, Option<&Reason>) {
        (plain, Some(self))
    }
}

impl Describe for Abort {
    fn told(&self, _plain: VerdictKind) -> (VerdictKind, Option<&Reason>) {
        let word = match self.abort_scope {
            AbortScope::Turn => VerdictKind::AbortTurn,
            AbortScope::Run => VerdictKind::HardAbort,
        };
        (word, Some(&self.reason))
    }
}

/// The word of a verdict or ruling, for records and listings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the words of the lifecycle, weakest first")]
pub enum VerdictKind {
    Inject,
    Continue,
    Modify,
    Respond,
    Ask,
    Deny,
    AbortTurn,
    HardAbort,
}

impl VerdictKind {
    /// All of them, weakest first.
    const ALL: [Self; 8] = [
        Self::Inject,
        Self::Continue,
        Self::Modify,
        Self::Respond,
        Self::Ask,
        Self::Deny,
        Self::AbortTurn,
        Self::HardAbort,
    ];

    /// The one that stands in JSON as `word`.
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }

    /// Whether it refuses what was asked about, and leaves nothing to a person.
    pub fn refuses(self) -> bool {
        matches!(self, Self::Deny | Self::AbortTurn | Self::HardAbort)
    }

    /// The word as it stands in JSON.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Inject => "inject",
            Self::Continue => "continue",
            Self::Modify => "modify",
            Self::Respond => "respond",
            Self::Ask => "ask",
            Self::Deny => "deny",
            Self::AbortTurn => "abort_turn",
            Self::HardAbort => "hard_abort",
        }
    }
}

/// A reason in a hook's own words: trimmed, on one line, without control characters, at most [`MAX_REASON_BYTES`]; may be empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(transparent)]
pub struct Reason(String);

impl Reason {
    /// Cleans `text`.
    pub fn new(text: &str) -> Self {
        // Where lines and columns end, words do too.
        let spaced = text.replace("\r\n", " ").replace(['\n', '\r', '\t', '\u{b}', '\u{c}', '\u{85}'], " ");
        let clean: String = spaced.chars().filter(|c| !c.is_control()).collect();
        let clean = clean.trim();
        Self(clean[..clean.floor_char_boundary(MAX_REASON_BYTES)].to_owned())
    }

    /// The cleaned text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether no reason was given.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<&str> for Reason {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

/// A demand to stop more than one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Abort {
    /// How much is to stop.
    pub abort_scope: AbortScope,
    /// Why, in the hook's words.
    pub reason: Reason,
}

/// How much an [`Abort`] stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AbortScope {
    /// The turn ends with an error.
    Turn,
    /// The whole run of the session stops and its history goes back to the root turn's start.
    Run,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_comes_back_from_its_word() {
        for kind in VerdictKind::ALL {
            assert_eq!(VerdictKind::named(kind.as_str()), Some(kind));
        }
        assert!(VerdictKind::ALL.is_sorted());
        assert_eq!(VerdictKind::named("allow"), None);
    }

    #[test]
    fn words_stay_apart_where_lines_end() {
        for (text, kept) in [
            ("no\nforce\r\npushes\there", "no force pushes here"),
            ("\n no\u{7}pe \n", "nope"),
            ("one\rtwo", "one two"),
        ] {
            assert_eq!(Reason::new(text).as_str(), kept);
        }
    }
}
