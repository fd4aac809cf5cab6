//! Bodies of requests and answers.

use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use pintle_domain::json::{NotAlike, Value, json, parse_alike};

use crate::Shared;
use crate::claim::Claim;
use crate::door::Visit;
use crate::error::{ApiError, stands_twice};
use crate::principal::{Credential, Principal};

/// An answer with a body of JSON.
pub(crate) fn answer(status: StatusCode, body: &Value) -> Response {
    let body = serde_json::to_string(body).expect("a JSON value can always be written");
    (status, [(header::CONTENT_TYPE, "application/json")], Body::from(body)).into_response()
}

/// The body of a request as JSON.
pub(crate) fn json_body(headers: &HeaderMap, body: &[u8]) -> Result<Value, ApiError> {
    let packed =
        headers.get(header::CONTENT_ENCODING).map_or("identity", |it| it.to_str().unwrap_or("what is not text"));
    if !packed.eq_ignore_ascii_case("identity") {
        let why = format!("bodies with `Content-Encoding: {}` are not taken; send it plain", packed.escape_debug());
        return Err(ApiError::invalid(why).with_details(json!({ "kind": "unsupported_media_type" })));
    }
    let Some(kind) = headers.get(header::CONTENT_TYPE) else {
        return Err(ApiError::invalid("expected a body of type application/json, and there is no `Content-Type`"));
    };
    let kind = kind.to_str().unwrap_or("what is not text");
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/json") {
        return Err(ApiError::invalid(format!("expected a body of type application/json, got \"{kind}\"")));
    }
    let text =
        std::str::from_utf8(body).map_err(|error| ApiError::invalid(format!("the body is not UTF-8: {error}")))?;
    parse_alike(text).map_err(|error| match error {
        NotAlike::NotJson(why) => ApiError::invalid(format!("the body is not JSON: {why}")),
        NotAlike::Twice(name) => ApiError::invalid(format!("the body is refused: {}", stands_twice(&name))),
    })
}

impl Shared {
    /// Who sends a request.
    pub(crate) async fn signed_in(self: &Arc<Self>, headers: &HeaderMap, visit: Visit) -> Result<Principal, ApiError> {
        let claim = Claim::of_headers(headers)?;
        let (user, tenant) = (claim.user.clone(), claim.tenant.clone());
        let who = self.known(claim, visit).await?;
        let is_other = || {
            !who.is_as(user.as_deref())
                || tenant.is_some_and(|tenant| tenant != who.slug && tenant != who.tenant.as_str())
        };
        if who.credential != Credential::Token && is_other() {
            return Err(ApiError::invalid("`X-Pintle-User` and `X-Pintle-Tenant` go with the gateway token only"));
        }
        self.guests.rates.request(&who, self.life.nodes.count())?;
        Ok(who)
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn a_body_in_which_a_member_stands_twice_is_refused_by_its_name() {
        let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
        let read = |body: &str| json_body(&headers, body.as_bytes());
        let refused = read(r#"{"model":"strict","messages":[],"model":"free"}"#).unwrap_err();
        let why = "the body is refused: the member \"model\" stands twice in one object; send it once";
        assert_eq!(refused, ApiError::invalid(why));
        let inner = read(r#"{"messages":[{"role":"user","role":"system"}]}"#).unwrap_err();
        assert!(inner.message.contains("\"role\""), "{}", inner.message);
        let text = r#"{"content":"{\"a\":1,\"a\":2}"}"#;
        assert_eq!(read(text), Ok(json!({ "content": r#"{"a":1,"a":2}"# })));
    }
}
