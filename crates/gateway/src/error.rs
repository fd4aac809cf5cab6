//! Why a request is refused: one table of codes, for the socket and for HTTP.

use pintle_domain::json::{Value, json};
use pintle_domain::store::StoreError;
use pintle_rules::admin::{AdminError, AdminErrorCode};

use crate::outage;

macro_rules! codes {
    ($($(#[$doc:meta])* $variant:ident = $word:literal, $status:literal;)*) => {
        /// The kind of a refusal. Source: the published protocol.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ErrorCode {
            $($(#[$doc])* $variant,)*
        }

        impl ErrorCode {
            /// Every code, in the order of the protocol.
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            /// The word on the wire.
            pub fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }

            /// The status of an answer over HTTP.
            pub fn status(self) -> u16 {
                match self {
                    $(Self::$variant => $status,)*
                }
            }
        }
    };
}

codes! {
    /// The request is wrong.
    InvalidRequest = "INVALID_REQUEST", 400;
    /// It cannot be done now; it may be later.
    Unavailable = "UNAVAILABLE", 503;
    /// Of the protocol; this host never says it.
    NotLinked = "NOT_LINKED", 400;
    /// Of the protocol; this host never says it.
    NotPaired = "NOT_PAIRED", 400;
    /// An agent took too long.
    AgentTimeout = "AGENT_TIMEOUT", 504;
    /// Nobody knows who asks, or they may not.
    Unauthorized = "UNAUTHORIZED", 401;
    /// It is not there, or not theirs.
    NotFound = "NOT_FOUND", 404;
    /// It is there already.
    AlreadyExists = "ALREADY_EXISTS", 409;
    /// Too often, too many, or too much.
    ResourceExhausted = "RESOURCE_EXHAUSTED", 429;
    /// The state of things does not allow it.
    FailedPrecondition = "FAILED_PRECONDITION", 409;
    /// Nobody who asks is at fault.
    Internal = "INTERNAL", 500;
    /// There is no such tenant, or it is not theirs.
    TenantAccessRevoked = "TENANT_ACCESS_REVOKED", 403;
    /// This host does not do it.
    NotImplemented = "NOT_IMPLEMENTED", 501;
}

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// The kind, for programs.
    pub code: ErrorCode,
    /// The whole text, for people.
    pub message: String,
    /// More of it, for programs.
    pub details: Option<Value>,
    /// How long to wait before the same is tried again, in milliseconds; then it may succeed.
    pub retry_after_ms: Option<u64>,
}

impl ApiError {
    /// A refusal.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), details: None, retry_after_ms: None }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidRequest, message)
    }

    pub(crate) fn unauthorized(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::Unauthorized, message)
    }

    /// The same words for whoever was removed, whoever never was a member, and where there is no such tenant: nobody learns
    /// from them which tenants there are.
    pub(crate) fn no_access() -> Self {
        Self::new(
            ErrorCode::TenantAccessRevoked,
            "no access to this tenant: you are not a member of it, or no longer, or there is no such tenant",
        )
    }

    pub(crate) fn precondition(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::FailedPrecondition, message)
    }

    pub(crate) fn exhausted(message: impl Into<String>, retry_after_ms: u64) -> Self {
        Self { retry_after_ms: Some(retry_after_ms), ..Self::new(ErrorCode::ResourceExhausted, message) }
    }

    pub(crate) fn session_not_found(key: &str) -> Self {
        Self::new(ErrorCode::NotFound, format!("session not found: {key}"))
    }

    #[must_use]
    pub(crate) fn with_details(self, details: Value) -> Self {
        Self { details: Some(details), ..self }
    }

    /// What became of a turn, in a word, where it is about one.
    pub(crate) fn kind(&self) -> Option<&str> {
        self.details.as_ref()?.get("kind")?.as_str()
    }

    /// Whether the same may succeed when it is tried again.
    pub fn retryable(&self) -> bool {
        self.retry_after_ms.is_some() || matches!(self.code, ErrorCode::Unavailable | ErrorCode::ResourceExhausted)
    }

    /// The member `error` of a response.
    pub fn to_json(&self) -> Value {
        let mut error = json!({ "code": self.code.word(), "message": self.message });
        if let Some(details) = &self.details {
            error["details"] = details.clone();
        }
        if self.retryable() {
            error["retryable"] = json!(true);
        }
        if let Some(wait) = self.retry_after_ms {
            error["retryAfterMs"] = json!(wait);
        }
        error
    }
}

/// What is said of a text in which the member `name` stands twice in one object: which of the two counts depends on the
/// reader.
pub(crate) fn stands_twice(name: &str) -> String {
    format!("the member {name:?} stands twice in one object; send it once")
}

/// The host takes nothing new.
pub(crate) fn going_away() -> ApiError {
    ApiError::new(ErrorCode::Unavailable, "the server is shutting down; retry shortly")
}

impl From<AdminError> for ApiError {
    fn from(error: AdminError) -> Self {
        let code = match error.code {
            AdminErrorCode::InvalidRequest => ErrorCode::InvalidRequest,
            AdminErrorCode::Unauthorized => ErrorCode::Unauthorized,
            AdminErrorCode::NotFound => ErrorCode::NotFound,
            AdminErrorCode::FailedPrecondition => ErrorCode::FailedPrecondition,
            AdminErrorCode::ResourceExhausted => ErrorCode::ResourceExhausted,
            AdminErrorCode::Unavailable => ErrorCode::Unavailable,
            AdminErrorCode::Internal => ErrorCode::Internal,
        };
        Self { retry_after_ms: error.retry_after_ms, ..Self::new(code, error.message) }
    }
}

impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        let code = match &error {
            StoreError::Unavailable(_) => ErrorCode::Unavailable,
            StoreError::Corrupt(_) => ErrorCode::Internal,
            StoreError::NotFound(_) => ErrorCode::NotFound,
            StoreError::Conflict(_) => ErrorCode::FailedPrecondition,
        };
        // Where the store is, and what to do about it, is the operator's.
        if code == ErrorCode::Unavailable {
            outage::failed(&error);
            return Self::new(code, "the store is unavailable; the server's log says why");
        }
        Self::new(code, error.to_string())
    }
}
/// Somebody else goes on with the turn.
pub(crate) fn went_on_elsewhere() -> ApiError {
    ApiError::precondition("the turn went on elsewhere").with_details(json!({ "kind": "session_busy" }))
}

/// Another node works the session.
pub(crate) fn worked_elsewhere() -> ApiError {
    let busy = ApiError::precondition("the session is busy: another node works it");
    ApiError { retry_after_ms: Some(1000), ..busy.with_details(json!({ "kind": "session_busy" })) }
}

/// Why a session could not be taken. Which process has it is nothing for clients, who cannot look for it.
pub(crate) fn not_taken(error: StoreError) -> ApiError {
    match error {
        StoreError::Conflict(why) => {
            tracing::debug!("{why}");
            worked_elsewhere()
        }
        other @ (StoreError::Unavailable(_) | StoreError::Corrupt(_) | StoreError::NotFound(_)) => other.into(),
    }
}

/// The message of a turn was never kept.
pub(crate) fn not_begun() -> ApiError {
    let why = "another node took the session before the message was kept: send it again";
    ApiError { retry_after_ms: Some(250), ..ApiError::new(ErrorCode::Unavailable, why) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_learns_which_process_works_a_session() {
        let taken = not_taken(StoreError::Conflict("session \"s\" is in use by process 4711".into()));
        assert_eq!((taken.kind(), taken.retryable()), (Some("session_busy"), true));
        assert_eq!(taken.message, "the session is busy: another node works it");
        let gone = not_taken(StoreError::NotFound("no session".into()));
        assert_eq!(gone.code, ErrorCode::NotFound);
    }

    #[test]
    fn whoever_tries_rules_out_too_often_is_told_when_to_come_again() {
        let (code, message) = (AdminErrorCode::ResourceExhausted, "too often".to_owned());
        let refused = ApiError::from(AdminError { code, message, retry_after_ms: Some(1500) });
        let expected =
            json!({ "code": "RESOURCE_EXHAUSTED", "message": "too often", "retryable": true, "retryAfterMs": 1500 });
        assert_eq!(refused.to_json(), expected);
    }
}
