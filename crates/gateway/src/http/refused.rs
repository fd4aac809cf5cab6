//! Why a request over HTTP is refused, with its status and the word that says it for programs.

use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use pintle_domain::checkpoint::runtime::RetryReason;
use pintle_domain::json::{Value, json};

use super::body::BadBody;
use super::reply::answer;
use crate::door::FORBIDDEN_ORIGIN;
use crate::error::{ApiError, ErrorCode};
use crate::principal::Principal;

const RATE_LIMIT: &str = RetryReason::RateLimit.word();
const CONTEXT_LIMIT: &str = RetryReason::ContextLimit.word();

/// Longest wait after which a client is told to try again by itself, in milliseconds.
const LONGEST_WAIT_MS: u64 = 60_000;

/// The classes of what goes wrong again with the same request: a wrong key, a request that the model does not take, a
/// conversation that is too long.
const STAYS: [&str; 3] = ["final", "unknown_model", CONTEXT_LIMIT];

/// A refusal.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Refused {
    pub(crate) status: StatusCode,
    pub(crate) code: String,
    pub(crate) error: ApiError,
    /// Whether the same may be tried again: SDKs do so by themselves.
    retry: bool,
}

impl From<ApiError> for Refused {
    fn from(error: ApiError) -> Self {
        let (status, code) = match error.kind() {
            Some("hook_blocked") => (StatusCode::FORBIDDEN, "hook_blocked".to_owned()),
            Some(FORBIDDEN_ORIGIN) => (StatusCode::FORBIDDEN, FORBIDDEN_ORIGIN.to_owned()),
            Some("hook_stopped") => (StatusCode::FORBIDDEN, "hook_stopped".to_owned()),
            Some("failed") if class(&error) == Some(RATE_LIMIT) => {
                (StatusCode::SERVICE_UNAVAILABLE, "model_rate_limited".to_owned())
            }
            // The word that OpenAI has for it, which clients know.
            Some("failed") if class(&error) == Some(CONTEXT_LIMIT) => {
                (StatusCode::BAD_REQUEST, "context_length_exceeded".to_owned())
            }
            Some("failed" | "iteration_limit") => (StatusCode::BAD_GATEWAY, "turn_failed".to_owned()),
            Some("idempotency_key_reused") => (StatusCode::UNPROCESSABLE_ENTITY, "idempotency_key_reused".to_owned()),
            Some("unsupported_media_type") => (StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type".to_owned()),
            Some("media_quota") => (StatusCode::INSUFFICIENT_STORAGE, "media_quota".to_owned()),
            Some(kind) => (StatusCode::CONFLICT, kind.to_owned()),
            None => (status(error.code), error.code.word().to_lowercase()),
        };
        let retry = may_be_tried_again(&error);
        let error = match status {
            StatusCode::BAD_REQUEST => ApiError { code: ErrorCode::InvalidRequest, ..error },
            _ => error,
        };
        Self { status, code, error, retry }
    }
}

impl From<BadBody> for Refused {
    fn from(BadBody { status, code, error }: BadBody) -> Self {
        Self { status, code: code.to_owned(), error, retry: false }
    }
}

/// Whether asking the same again may come to something else, and does nothing twice.
fn may_be_tried_again(error: &ApiError) -> bool {
    match error.kind() {
        // What the model did not answer it may answer now, unless something was done already.
        Some("failed") => {
            let effect = error.details.as_ref().and_then(|details| details.get("effect")).and_then(Value::as_bool);
            // Some clients wait as long as they are told to.
            let is_soon = error.retry_after_ms.is_none_or(|wait| wait <= LONGEST_WAIT_MS);
            effect == Some(false) && is_soon && !class(error).is_some_and(|class| STAYS.contains(&class))
        }
        Some(_) => false,
        None => error.retryable() && status(error.code) != StatusCode::CONFLICT,
    }
}

/// The class of what went wrong with a model.
fn class(error: &ApiError) -> Option<&str> {
    error.details.as_ref()?.get("class")?.as_str()
}

fn status(code: ErrorCode) -> StatusCode {
    StatusCode::from_u16(code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}

impl Refused {
    /// A refusal with a status and a word of its own, of what asking again does not help.
    pub(crate) fn plain(status: StatusCode, code: &str, message: &str) -> Self {
        let kind = match status {
            StatusCode::NOT_FOUND => ErrorCode::NotFound,
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => ErrorCode::Unauthorized,
            _ => ErrorCode::InvalidRequest,
        };
        Self { status, code: code.to_owned(), error: ApiError::new(kind, message), retry: false }
    }

    /// The same as `who` is told it.
    pub(crate) fn told_to(self, who: &Principal) -> Self {
        Self { error: self.error.told_to(who), ..self }
    }

    /// The answer, with `body`.
    pub(crate) fn response(&self, body: &Value) -> Response {
        let mut response = answer(self.status, body);
        let headers = response.headers_mut();
        headers.insert("x-should-retry", HeaderValue::from_static(if self.retry { "true" } else { "false" }));
        if let Some(wait) = self.error.retry_after_ms {
            headers.insert("retry-after", HeaderValue::from(wait.div_ceil(1000)));
        }
        if self.status == StatusCode::REQUEST_TIMEOUT {
            headers.insert("connection", HeaderValue::from_static("close"));
        }
        response
    }
}

/// A refusal of a request that nobody looked into yet.
pub(crate) fn refusal(status: StatusCode, code: &str, message: &str) -> Response {
    Refused::plain(status, code, message).response(&json!({ "error": { "code": code, "message": message } }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_that_is_said_is_described() {
        // Of the protocol; this host never says them.
        let never = [ErrorCode::NotLinked, ErrorCode::NotPaired, ErrorCode::NotImplemented, ErrorCode::AgentTimeout];
        for code in ErrorCode::ALL.iter().filter(|code| !never.contains(code)) {
            let refused = Refused::from(ApiError::new(*code, "x"));
            assert!(crate::openapi::is_described(refused.status.as_u16(), &refused.code), "{code:?}");
        }
    }

    #[test]
    fn every_refusal_has_a_status_a_word_and_a_hint_for_sdks() {
        let of = |kind: &str, effect: bool| {
            ApiError::precondition("x").with_details(json!({ "kind": kind, "effect": effect }))
        };
        let failing = |class: &str, effect: bool| {
            let details = json!({ "kind": "failed", "class": class, "effect": effect });
            ApiError::new(ErrorCode::Unavailable, "x").with_details(details)
        };
        for (error, status, code, retry) in [
            (of("hook_blocked", false), 403, "hook_blocked", false),
            (of("hook_stopped", true), 403, "hook_stopped", false),
            (of("forbidden_origin", false), 403, "forbidden_origin", false),
            (of("failed", false), 502, "turn_failed", true),
            (of("failed", true), 502, "turn_failed", false),
            (failing("server_error", false), 502, "turn_failed", true),
            (failing("final", false), 502, "turn_failed", false),
            (failing("rate_limit", false), 503, "model_rate_limited", true),
            (failing("rate_limit", true), 503, "model_rate_limited", false),
            (failing("context_limit", false), 400, "context_length_exceeded", false),
            (of("session_busy", false), 409, "session_busy", false),
            (of("approval_pending", false), 409, "approval_pending", false),
            (of("outcome_unknown", false), 409, "outcome_unknown", false),
            (of("idempotency_key_reused", false), 422, "idempotency_key_reused", false),
            (of("unsupported_media_type", false), 415, "unsupported_media_type", false),
            (of("media_quota", false), 507, "media_quota", false),
            (ApiError::precondition("x"), 409, "failed_precondition", false),
            (ApiError { retry_after_ms: Some(1), ..ApiError::precondition("x") }, 409, "failed_precondition", false),
            (ApiError::exhausted("x", 1), 429, "resource_exhausted", true),
            (ApiError::new(ErrorCode::Unavailable, "x"), 503, "unavailable", true),
            (ApiError::invalid("x"), 400, "invalid_request", false),
            (ApiError::unauthorized("x"), 401, "unauthorized", false),
        ] {
            let refused = Refused::from(error);
            assert_eq!((refused.status.as_u16(), refused.code.as_str(), refused.retry), (status, code, retry));
            assert!(crate::openapi::is_described(status, code), "{status} {code}");
        }
    }
}
