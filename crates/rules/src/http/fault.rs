//! Why an http hook gave no reply.

use std::time::Duration;

use super::MAX_REPLY_BYTES;
use pintle_egress::{BodyError, EgressError, SendError};

/// Why an http hook gave no reply. The texts are part of the protocol.
#[derive(Debug, thiserror::Error)]
pub enum HttpFault {
    /// The URL may not be reached. The text begins with `ssrf: `.
    #[error(transparent)]
    Refused(EgressError),
    /// The configuration cannot be sent.
    #[error("{0}")]
    BadConfig(String),
    /// There was no connection, or it broke before the head of the response.
    #[error("{0}")]
    Connection(String),
    /// The answer is no HTTP.
    #[error("{0}")]
    NotHttp(String),
    /// A status that is neither an answer nor an error: redirects, which are never followed, above all.
    #[error("unexpected status {0}")]
    Unexpected(u16),
    /// The endpoint will not have the request, a second time as little as the first.
    #[error("client error {0} (no retry)")]
    Client(u16),
    /// The endpoint failed.
    #[error("server error {0}")]
    Server(u16),
    /// The body is encoded, so that a block could stand in it unseen.
    #[error("{0}")]
    Encoded(String),
    /// The body ended before its end.
    #[error("truncated body")]
    Truncated,
    /// The body is longer than [`MAX_REPLY_BYTES`].
    #[error("body over 1 MiB")]
    TooLarge,
    /// The time was over.
    #[error("timed out after {} ms", after.as_millis())]
    TimedOut {
        /// The time that it had.
        after: Duration,
    },
    /// The second attempt came to this.
    #[error("{0}")]
    Again(Box<Self>),
}

impl HttpFault {
    /// Attempts but the first: 0 or 1.
    pub fn retries(&self) -> u8 {
        u8::from(matches!(self, Self::Again(_)))
    }

    /// The status that came, if the fault is about one.
    pub fn status(&self) -> Option<u16> {
        match self {
            Self::Again(fault) => fault.status(),
            Self::Unexpected(status) | Self::Client(status) | Self::Server(status) => Some(*status),
            Self::Refused(_)
            | Self::BadConfig(_)
            | Self::Connection(_)
            | Self::NotHttp(_)
            | Self::Encoded(_)
            | Self::Truncated
            | Self::TooLarge
            | Self::TimedOut { .. } => None,
        }
    }

    /// Whether another attempt may end otherwise.
    pub(super) fn is_worth_a_retry(&self) -> bool {
        match self {
            Self::Server(_) | Self::Connection(_) => true,
            Self::Refused(_)
            | Self::BadConfig(_)
            | Self::NotHttp(_)
            | Self::Encoded(_)
            | Self::Unexpected(_)
            | Self::Client(_)
            | Self::Truncated
            | Self::TooLarge
            | Self::TimedOut { .. }
            | Self::Again(_) => false,
        }
    }
}

impl From<SendError> for HttpFault {
    fn from(error: SendError) -> Self {
        match error {
            SendError::Refused(refusal) => Self::Refused(refusal),
            SendError::Unwritable(_) => Self::BadConfig(error.to_string()),
            SendError::Unconnected { .. } | SendError::Broken { .. } => Self::Connection(error.to_string()),
            SendError::NotHttp { .. } => Self::NotHttp(error.to_string()),
        }
    }
}

impl From<BodyError> for HttpFault {
    fn from(error: BodyError) -> Self {
        match error {
            BodyError::Truncated(_) => Self::Truncated,
            BodyError::TooLarge { .. } => Self::TooLarge,
        }
    }
}

/// The text of [`HttpFault::TooLarge`] names the limit.
const _: () = assert!(MAX_REPLY_BYTES == 1024 * 1024);
