//! What the hook of a host prints, and with which code it ends.

use crate::ruling::RulingWord;

/// The answer to one event: what the client prints and how it ends. Standard output is one JSON document or nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use = "an answer that is not printed lets the call run"]
pub struct Answer {
    /// All of standard output.
    pub stdout: String,
    /// The exit code.
    pub exit: u8,
    /// All of standard error.
    pub stderr: String,
    /// What became of a ruling that the host cannot express.
    pub degraded: Option<Degraded>,
}

/// A ruling that the host cannot express, and the one that it got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Degraded {
    /// The ruling.
    pub from: RulingWord,
    /// What the host was told.
    pub to: RulingWord,
}

impl std::fmt::Display for Degraded {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}→{}", self.from.word(), self.to.word())
    }
}
