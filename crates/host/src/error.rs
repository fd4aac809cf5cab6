//! What a host cannot do: what kind of failure it is, a message, and what to do next.

use std::fmt;

/// A failure of a host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct HostError {
    /// The kind of the failure: whose move it is.
    pub kind: ErrorKind,
    /// The message: what failed, on one line.
    pub message: String,
    /// The hints about what to do next, one step a line.
    pub hints: Vec<String>,
}

/// The kind of a failure: whose move it is after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The work itself failed; it may succeed another time.
    Failed,
    /// Something has to be written differently: a file, a name, a variable.
    Usage,
}

impl HostError {
    /// A failure of the work itself.
    pub fn failed(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Failed, message: message.into(), hints: Vec::new() }
    }

    /// Something that has to be written differently.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { kind: ErrorKind::Usage, message: message.into(), hints: Vec::new() }
    }

    /// This failure, with one more step to take.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
}

impl fmt::Display for HostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.hints.iter().try_for_each(|hint| write!(f, "\n  hint: {hint}"))
    }
}
