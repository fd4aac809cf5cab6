//! Why a hook gave no verdict: the closed list. A fault is never an answer in itself.
//!
//! It has two texts. The [`Phrase`] is closed wording: models, events, journals, spans and logs get it. The [`Cause`] is
//! what was said of it by programs, files and services, and may hold anything: it is for people.

use std::time::Duration;

mod texts;

pub use texts::{Cause, Explained, MAX_CAUSE_CHARS, Phrase};

/// Why there is no verdict.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// The handler never came up, or its entry is bad.
    CannotStart {
        /// What happened instead.
        cause: Cause,
    },
    /// No answer within the deadline.
    TimedOut {
        /// The deadline.
        after: Duration,
    },
    /// A signal ended the handler.
    Killed {
        /// The signal's number.
        signal: i32,
    },
    /// The handler left without an answer.
    BadExit {
        /// Its exit status.
        status: i32,
    },
    /// The answer is no JSON, or has a wrong type in a known member.
    Unreadable {
        /// What is wrong.
        cause: Cause,
    },
    /// A line above the limit.
    TooLarge {
        /// Which way it went.
        way: Direction,
        /// The limit, in bytes.
        limit: usize,
    },
    /// A well-formed answer that is not allowed there.
    Protocol(ProtocolBreach),
    /// The handler's own code panicked.
    Panicked,
    /// The turn is ending.
    Cancelled,
    /// A condition could not be evaluated.
    ConditionFailed {
        /// What is wrong.
        cause: Cause,
    },
    /// A handler or store is missing.
    Unavailable {
        /// Which one.
        cause: Cause,
    },
}

/// Which way a line goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the host to the hook.
    Call,
    /// From the hook to the host.
    Reply,
}

/// The way in which an answer broke the protocol.
#[derive(Clone, Debug, PartialEq)]
pub enum ProtocolBreach {
    /// The hook answered with an error of its own.
    Returned(Cause),
    /// The answer is not one of those allowed there.
    Broke(Cause),
    /// A `respond` without a good result or outside its grant: the call is denied whatever `on_failure` says,
    /// since the real tool must never run in a hook's place.
    Respond(Cause),
}

/// The word of a [`Fault`] in JSON and listings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "each is the fault of the same name")]
pub enum FaultKind {
    CannotStart,
    TimedOut,
    Killed,
    BadExit,
    Unreadable,
    TooLarge,
    ProtocolError,
    Panicked,
    Cancelled,
    ConditionFailed,
    Unavailable,
}

impl Fault {
    /// A fault for an answer that is not allowed.
    pub fn broke(cause: impl Into<Cause>) -> Self {
        Self::Protocol(ProtocolBreach::Broke(cause.into()))
    }

    /// The text that everybody may read, behind `hook "NAME" `.
    pub fn phrase(&self) -> Phrase {
        Phrase::of(self)
    }

    /// Phrase and cause, for a person.
    pub fn explained(&self) -> Explained<'_> {
        Explained::of(self)
    }

    /// What was said of it, where something was.
    pub fn cause(&self) -> Option<&Cause> {
        match self {
            Self::CannotStart { cause }
            | Self::Unreadable { cause }
            | Self::ConditionFailed { cause }
            | Self::Unavailable { cause }
            | Self::Protocol(
                ProtocolBreach::Returned(cause) | ProtocolBreach::Broke(cause) | ProtocolBreach::Respond(cause),
            ) => Some(cause),
            Self::TimedOut { .. }
            | Self::Killed { .. }
            | Self::BadExit { .. }
            | Self::TooLarge { .. }
            | Self::Panicked
            | Self::Cancelled => None,
        }
    }

    /// Phrase and cause, nothing left out: for the sealed column of an execution.
    pub(crate) fn whole(&self) -> Cause {
        match self.cause() {
            Some(cause) => format!("{}: {}", self.phrase(), cause.unredacted()).into(),
            None => self.phrase().to_string().into(),
        }
    }

    /// Its word.
    pub fn kind(&self) -> FaultKind {
        match self {
            Self::CannotStart { .. } => FaultKind::CannotStart,
            Self::TimedOut { .. } => FaultKind::TimedOut,
            Self::Killed { .. } => FaultKind::Killed,
            Self::BadExit { .. } => FaultKind::BadExit,
            Self::Unreadable { .. } => FaultKind::Unreadable,
            Self::TooLarge { .. } => FaultKind::TooLarge,
            Self::Protocol(_) => FaultKind::ProtocolError,
            Self::Panicked => FaultKind::Panicked,
            Self::Cancelled => FaultKind::Cancelled,
            Self::ConditionFailed { .. } => FaultKind::ConditionFailed,
            Self::Unavailable { .. } => FaultKind::Unavailable,
        }
    }
}

impl FaultKind {
    /// The word as it stands in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Self::CannotStart => "cannot_start",
            Self::TimedOut => "timed_out",
            Self::Killed => "killed",
            Self::BadExit => "bad_exit",
            Self::Unreadable => "unreadable",
            Self::TooLarge => "too_large",
            Self::ProtocolError => "protocol_error",
            Self::Panicked => "panicked",
            Self::Cancelled => "cancelled",
            Self::ConditionFailed => "condition_failed",
            Self::Unavailable => "unavailable",
        }
    }
}
