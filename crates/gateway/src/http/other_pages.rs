//! Pages of `gateway.allowed_origins`, over HTTP: the answer to what a browser asks before it sends their requests, and
//! what it has to be told so that they can read answers (CORS). Nothing is said of cookies: such a page has no session of
//! the console. Pure.

use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};

use crate::door::Visit;

/// What such a page may do.
const METHODS: &str = "GET, POST";

/// What it may read of the head of an answer.
const READABLE: &str = "request-id, retry-after, x-pintle-hook-ms, x-pintle-turn, x-request-id, x-should-retry";

/// How long a browser need not ask again, in seconds.
const REMEMBERED: &str = "600";

/// The origin of a page that is let in and is none of this server's; nothing where no such page asks.
pub(super) fn origin(visit: Visit, headers: &HeaderMap) -> Option<HeaderValue> {
    headers.get(header::ORIGIN).filter(|_| !visit.is_own_page).cloned()
}

/// The answer to what a browser asks before it sends a request; nothing where this is the request. Who sends it, and
/// whether they may, is looked at once it comes.
pub(super) fn preflight(method: &Method, headers: &HeaderMap) -> Option<Response> {
    if method != Method::OPTIONS || !headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD) {
        return None;
    }
    let mut response = StatusCode::NO_CONTENT.into_response();
    let told = response.headers_mut();
    told.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static(METHODS));
    told.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(REMEMBERED));
    if let Some(wanted) = headers.get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
        told.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone());
    }
    Some(response)
}

/// Lets the page of `origin` read an answer with `headers`.
pub(super) fn may_read(headers: &mut HeaderMap, origin: HeaderValue) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(READABLE));
    headers.append(header::VARY, HeaderValue::from_static("origin"));
}
