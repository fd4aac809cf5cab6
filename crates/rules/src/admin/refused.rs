//! Why something is not done, in the words of the protocol.

use crate::record;

/// Why something is not done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refused {
    /// The kind, for programs.
    pub code: Code,
    /// The whole text, for people.
    pub message: String,
}

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $word:literal,)*) => {
        /// The kind of a refusal.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code {
            $($(#[$doc])* $variant,)*
        }

        impl Code {
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
    /// What was asked is wrong.
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

impl Refused {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(Code::InvalidRequest, message)
    }

    /// What is not there, or not theirs.
    pub(crate) fn no_hook(id: &str) -> Self {
        Self::new(Code::NotFound, format!("hook not found: {id}"))
    }

    /// What only owners may.
    pub(crate) fn no_master() -> Self {
        Self::new(Code::Unauthorized, record::NO_MASTER)
    }
}

impl From<record::Refused> for Refused {
    fn from(refused: record::Refused) -> Self {
        let code = match refused.code {
            record::Code::InvalidRequest => Code::InvalidRequest,
            record::Code::Unauthorized => Code::Unauthorized,
            record::Code::NotFound => Code::NotFound,
            record::Code::FailedPrecondition => Code::FailedPrecondition,
        };
        Self::new(code, refused.message)
    }
}
