//! The answers with which a door turns requests away, in the words of each wire.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::Response;
use uuid::Uuid;

use crate::wire::{Vendor, Wire};

/// Header that tells the vendors' libraries whether to try again.
pub(crate) const SHOULD_RETRY: &str = "x-should-retry";

/// The vendor that is asked for at `path`, if it is one.
pub fn vendor_at(path: &str) -> Option<Vendor> {
    Vendor::named(path.strip_prefix("/door/")?.split('/').next()?)
}

/// The answer to a request for `path` that is turned away, in the words of the wire that is spoken there.
pub fn turned_away(path: &str, status: StatusCode, why: &str) -> Response {
    let wire = match vendor_at(path) {
        Some(Vendor::Anthropic) => Wire::Anthropic,
        Some(Vendor::Gemini) => Wire::Gemini,
        Some(Vendor::OpenAi) | None => Wire::OpenAi,
    };
    refusal(wire, status, why)
}

/// The answer where no door is, in the same words, and with what there is.
pub fn nothing_at(path: &str) -> Response {
    let hint = match vendor_at(path) {
        Some(Vendor::Anthropic) => {
            "what is served of this vendor is POST /door/anthropic/v1/messages and \
             /door/anthropic/v1/messages/count_tokens, and GET /door/anthropic/v1/models"
        }
        Some(Vendor::Gemini) => {
            "what is served of this vendor, with v1beta or v1, is GET /door/gemini/v1beta/models and POST \
             /door/gemini/v1beta/models/MODEL:generateContent, :streamGenerateContent?alt=sse and :countTokens"
        }
        Some(Vendor::OpenAi) => {
            "what is served of this vendor is POST /door/openai/v1/chat/completions, /door/openai/v1/responses and \
             /door/openai/v1/responses/input_tokens, and GET /door/openai/v1/models"
        }
        None => "expected a base URL that ends with /door/anthropic, /door/gemini or /door/openai/v1",
    };
    turned_away(path, StatusCode::NOT_FOUND, &format!("there is nothing at {path}; {hint}"))
}

/// `response` to a request for `path` with an id, unless the vendor gave it one: that is what the vendor can be asked about.
pub fn with_request_id(path: &str, mut response: Response) -> Response {
    let headers = response.headers_mut();
    let names: &[&'static str] = match vendor_at(path) {
        Some(Vendor::Anthropic) => &["request-id", "x-request-id"],
        Some(Vendor::Gemini | Vendor::OpenAi) | None => &["x-request-id"],
    };
    let id = HeaderValue::from_str(&Uuid::new_v4().to_string());
    if let (Ok(id), false) = (id, names.iter().any(|name| headers.contains_key(*name))) {
        names.iter().for_each(|name| drop(headers.insert(*name, id.clone())));
    }
    response
}

pub(crate) fn refusal(wire: Wire, status: StatusCode, why: &str) -> Response {
    let mut response = Response::new(Body::from(wire.error(status.as_u16(), why)));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    // Whoever asks again is answered the same.
    response.headers_mut().insert(SHOULD_RETRY, HeaderValue::from_static("false"));
    response
}
