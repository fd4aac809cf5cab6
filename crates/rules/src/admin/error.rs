//! Why something is not done, in the words of the protocol.

use crate::record;

/// Why something is not done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct AdminError {
    /// The kind, for programs.
    pub code: AdminErrorCode,
    /// The whole text, for people.
    pub message: String,
    /// How long to wait before the same is tried again, in milliseconds, where that helps.
    pub retry_after_ms: Option<u64>,
}

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $word:literal,)*) => {
        /// The kind of a refusal.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum AdminErrorCode {
            $($(#[$doc])* $variant,)*
        }

        impl AdminErrorCode {
            /// The word on the wire.
            pub fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }
        }
    };
}

codes! {
    /// The request is wrong.
    InvalidRequest = "INVALID_REQUEST",
    /// The caller may not.
    Unauthorized = "UNAUTHORIZED",
    /// It is not there, or not theirs.
    NotFound = "NOT_FOUND",
    /// This host does not do it as it is set up, or as the hook stands.
    FailedPrecondition = "FAILED_PRECONDITION",
    /// Too often.
    ResourceExhausted = "RESOURCE_EXHAUSTED",
    /// The store cannot be reached.
    Unavailable = "UNAVAILABLE",
    /// Something that is nobody's fault who asks.
    Internal = "INTERNAL",
}

impl AdminError {
    pub(crate) fn new(code: AdminErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), retry_after_ms: None }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(AdminErrorCode::InvalidRequest, message)
    }

    /// The error for a hook that is not there, or not theirs.
    pub(crate) fn no_hook(id: &str) -> Self {
        Self::new(AdminErrorCode::NotFound, format!("hook not found: {id}"))
    }

    /// The error for what only owners may do.
    pub(crate) fn no_master() -> Self {
        Self::new(AdminErrorCode::Unauthorized, record::NO_MASTER)
    }
}

impl From<record::RecordError> for AdminError {
    fn from(refused: record::RecordError) -> Self {
        let code = match refused.code {
            record::RecordErrorCode::InvalidRequest => AdminErrorCode::InvalidRequest,
            record::RecordErrorCode::Unauthorized => AdminErrorCode::Unauthorized,
            record::RecordErrorCode::NotFound => AdminErrorCode::NotFound,
            record::RecordErrorCode::FailedPrecondition => AdminErrorCode::FailedPrecondition,
        };
        Self::new(code, refused.message)
    }
}
