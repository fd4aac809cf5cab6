//! Why a hook gave no verdict: the closed list. A fault is never an answer in itself.

use std::fmt;
use std::time::Duration;

/// Why there is no verdict.
#[derive(Clone, Debug, PartialEq)]
pub enum Fault {
    /// The handler never came up, or its entry is bad.
    CannotStart {
        /// The description of what happened instead.
        detail: String,
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
        /// The description of the fault.
        detail: String,
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
        /// The description of the fault.
        detail: String,
    },
    /// A handler or store is missing.
    Unavailable {
        /// Which one.
        detail: String,
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
    Returned(String),
    /// The answer is not one of those allowed there.
    Broke(String),
    /// A `respond` without a good result or outside its grant: the call is denied whatever `on_failure` says,
    /// since the real tool must never run in a hook's place.
    Respond(String),
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
    pub fn broke(detail: impl Into<String>) -> Self {
        Self::Protocol(ProtocolBreach::Broke(detail.into()))
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

/// The phrase after `hook "NAME" `.
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CannotStart { detail } => write!(f, "could not start: {detail}"),
            Self::TimedOut { after } => write!(f, "timed out after {} ms", after.as_millis()),
            Self::Killed { signal } => write!(f, "was killed by signal {signal}"),
            Self::BadExit { status } => write!(f, "exited with status {status}"),
            Self::Unreadable { detail } => write!(f, "sent an unreadable reply: {detail}"),
            Self::TooLarge { way: Direction::Reply, limit } => write!(f, "sent a reply above {limit} bytes"),
            Self::TooLarge { way: Direction::Call, limit } => write!(f, "cannot take a call above {limit} bytes"),
            Self::Protocol(ProtocolBreach::Returned(message)) => write!(f, "returned an error: {message}"),
            Self::Protocol(ProtocolBreach::Broke(detail) | ProtocolBreach::Respond(detail)) => {
                write!(f, "broke the protocol: {detail}")
            }
            Self::Panicked => f.write_str("panicked"),
            Self::Cancelled => f.write_str("was cancelled"),
            Self::ConditionFailed { detail } => write!(f, "could not evaluate its condition: {detail}"),
            Self::Unavailable { detail } => write!(f, "is unavailable: {detail}"),
        }
    }
}
