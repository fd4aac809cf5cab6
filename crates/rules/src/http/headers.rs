//! The headers of a request: ours, the configured ones, and those that nobody may set.

use bytes::Bytes;
use hyper::header::{
    ACCEPT_ENCODING, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue,
    PROXY_AUTHENTICATE, TE, TRAILER, TRANSFER_ENCODING, UPGRADE, USER_AGENT,
};

use super::{Delivery, HttpFault, HttpSpec, SigningSecret};

/// How we are called.
const AGENT: &str = concat!("pintle-hooks/", env!("CARGO_PKG_VERSION"));

/// The header by which an endpoint knows a payload that it has seen.
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// Says that a person is testing the hook.
const TEST: HeaderName = HeaderName::from_static("x-pintle-test");
const WEBHOOK_ID: HeaderName = HeaderName::from_static("webhook-id");
const WEBHOOK_TIMESTAMP: HeaderName = HeaderName::from_static("webhook-timestamp");
const WEBHOOK_SIGNATURE: HeaderName = HeaderName::from_static("webhook-signature");

/// Names that frame the message or speak to the next hop. Source: RFC 9110, section 7.6.1, and the older RFC 2616,
/// section 13.5.1. `Proxy-Authorization` is not among them: hooks may have it.
const FORBIDDEN: [HeaderName; 10] = [
    HOST,
    CONTENT_LENGTH,
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    PROXY_AUTHENTICATE,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Whether a hook may send this header.
///
/// # Errors
/// What is wrong with it, without its value.
pub fn check_header(name: &str, value: &str) -> Result<(), String> {
    read(name, value).map(drop)
}

fn read(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), String> {
    let known = HeaderName::from_bytes(name.as_bytes())
        .map_err(|_| format!("`{}` is not a name for a header", name.escape_debug()))?;
    if FORBIDDEN.contains(&known) {
        return Err(format!("header `{name}` cannot be set: it belongs to the connection; remove it"));
    }
    let mut value = HeaderValue::from_bytes(value.as_bytes())
        .map_err(|_| format!("header `{name}` has a value with control characters; write it in one line"))?;
    value.set_sensitive(true);
    Ok((known, value))
}

/// All that is the same in both attempts.
pub(super) struct Prepared {
    headers: HeaderMap,
    secret: Option<SigningSecret>,
    /// The dedup key.
    id: HeaderValue,
    body: Bytes,
}

impl Prepared {
    pub(super) fn new(spec: &HttpSpec, delivery: &Delivery<'_>) -> Result<Self, HttpFault> {
        let mut headers = HeaderMap::with_capacity(spec.headers.len() + 6);
        for (name, value) in &spec.headers {
            let (name, value) = read(name, value).map_err(HttpFault::BadConfig)?;
            headers.append(name, value);
        }
        headers.entry(CONTENT_TYPE).or_insert(HeaderValue::from_static("application/json"));
        // Whatever the hook has there: an encoded answer is not read.
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        let id = key(delivery.dedup_key)?;
        headers.insert(IDEMPOTENCY_KEY, id.clone());
        headers.remove(TEST);
        if delivery.is_test {
            headers.insert(TEST, HeaderValue::from_static("1"));
        }
        let secret = spec.signing_secret.as_deref().map(SigningSecret::parse).transpose();
        let secret = secret.map_err(|error| HttpFault::BadConfig(error.into()))?;
        Ok(Self { headers, secret, id, body: delivery.body.clone() })
    }

    pub(super) fn body(&self) -> Bytes {
        self.body.clone()
    }

    /// The headers of an attempt that is made now.
    pub(super) fn headers(&self, now: jiff::Timestamp) -> HeaderMap {
        let mut headers = self.headers.clone();
        let Some(secret) = &self.secret else { return headers };
        headers.insert(WEBHOOK_ID, self.id.clone());
        headers.insert(WEBHOOK_TIMESTAMP, now.as_second().into());
        headers.insert(WEBHOOK_SIGNATURE, secret.sign(&self.id, now.as_second(), &self.body));
        headers
    }
}

fn key(dedup_key: &str) -> Result<HeaderValue, HttpFault> {
    HeaderValue::from_str(dedup_key)
        .map_err(|_| HttpFault::BadConfig(format!("`{}` cannot be sent as a header", dedup_key.escape_debug())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_frames_the_message_cannot_be_set() {
        for name in ["Host", "content-length", "CONNECTION", "Keep-Alive", "TE", "Transfer-Encoding", "upgrade"] {
            let text = check_header(name, "x").unwrap_err();
            assert_eq!(text, format!("header `{name}` cannot be set: it belongs to the connection; remove it"));
        }
        for name in ["Authorization", "Proxy-Authorization", "Cookie", "X-Any", "Content-Type", "Accept"] {
            assert_eq!(check_header(name, "x y"), Ok(()));
        }
    }

    #[test]
    fn a_header_cannot_smuggle_another() {
        for value in ["a\r\nHost: b", "a\nb", "a\0b", "a\rb"] {
            assert!(check_header("X-A", value).unwrap_err().contains("control characters"), "{value:?}");
        }
        for name in ["", "a b", "a:", "a\r\nb", "ü"] {
            assert!(check_header(name, "x").unwrap_err().contains("is not a name for a header"), "{name:?}");
        }
    }
}
