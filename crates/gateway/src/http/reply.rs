//! Bodies of requests and answers.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use domain::json::{Value, json, parse};

use crate::Shared;
use crate::door::Visit;
use crate::error::{ApiError, ErrorCode};
use crate::principal::Principal;
use crate::sign_in::Claim;

/// An answer with a body of JSON.
pub(crate) fn answer(status: StatusCode, body: &Value) -> Response {
    let body = serde_json::to_string(body).expect("a JSON value can always be written");
    (status, [(header::CONTENT_TYPE, "application/json")], Body::from(body)).into_response()
}

/// A refusal of a request that nobody looked into yet.
pub(crate) fn refusal(status: StatusCode, code: &str, message: &str) -> Response {
    answer(status, &json!({ "error": { "code": code, "message": message } }))
}

/// The body of a request as JSON.
pub(crate) fn json_body(headers: &HeaderMap, body: &[u8]) -> Result<Value, ApiError> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/json") {
        return Err(ApiError::invalid(format!("expected a body of application/json, got \"{kind}\"")));
    }
    let text =
        std::str::from_utf8(body).map_err(|error| ApiError::invalid(format!("the body is no UTF-8: {error}")))?;
    parse(text).map_err(|why| ApiError::invalid(format!("the body is no JSON: {why}")))
}

impl Shared {
    /// Who sends a request.
    pub(crate) async fn signed_in(self: &Arc<Self>, headers: &HeaderMap, visit: Visit) -> Result<Principal, ApiError> {
        let text = |name: &str| {
            let value = headers.get(name)?.to_str().ok()?;
            Some(value.to_owned()).filter(|value| !value.is_empty())
        };
        let bearer = text("authorization").and_then(|value| Some(value.strip_prefix("Bearer ")?.trim().to_owned()));
        let claim = Claim {
            token: bearer.or_else(|| text("x-api-key")),
            user: text("x-pintle-user"),
            tenant: text("x-pintle-tenant"),
        };
        if claim.token.is_none() && headers.contains_key(header::AUTHORIZATION) {
            return Err(ApiError::new(ErrorCode::Unauthorized, "expected `Authorization: Bearer …`"));
        }
        self.known(claim, visit).await
    }
}
