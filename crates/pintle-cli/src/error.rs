//! What a command fails with: an exit code, a message, and what to do next.

use std::fmt;

/// A failure that ends the command.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct CliError {
    /// The exit code; scripts depend on it.
    pub code: u8,
    /// What failed, on one line.
    pub message: String,
    /// What to do next, one step a line.
    pub hints: Vec<String>,
}

/// The exit code for work that failed.
pub const FAILED: u8 = 1;

/// The exit code for wrong flags, for files that are missing or do not parse, and for names that cannot be resolved.
pub const USAGE: u8 = 2;

impl CliError {
    /// A failure of the work itself.
    pub fn failed(message: impl Into<String>) -> Self {
        Self { code: FAILED, message: message.into(), hints: Vec::new() }
    }

    /// Something that the user has to write differently.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { code: USAGE, message: message.into(), hints: Vec::new() }
    }

    /// The same failure, with one more step to take.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hints.push(hint.into());
        self
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        self.hints.iter().try_for_each(|hint| write!(f, "\n  hint: {hint}"))
    }
}

impl From<pintle_host::HostError> for CliError {
    fn from(pintle_host::HostError { kind, message, hints }: pintle_host::HostError) -> Self {
        let code = match kind {
            pintle_host::ErrorKind::Failed => FAILED,
            pintle_host::ErrorKind::Usage => USAGE,
        };
        Self { code, message, hints }
    }
}
