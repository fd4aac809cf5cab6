//! The vendor behind a door: what a client says goes there, less what is not for it.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use reqwest::Url;

/// How long a connection to a vendor may take.
const CONNECT_TIME: Duration = Duration::from_secs(30);

/// How long a vendor may say nothing: models think for minutes.
const SILENCE: Duration = Duration::from_secs(600);

/// Headers that belong to one connection, or to the way to this machine.
const HOP: [&str; 17] = [
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "cookie",
    "expect",
    "forwarded",
    "host",
    "keep-alive",
    "origin",
    "proxy-authenticate",
    "proxy-authorization",
    "referer",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Headers of an answer that are the vendor's own business with its connection, or would be kept by a client.
const NOT_BACK: [&str; 6] =
    ["connection", "content-length", "keep-alive", "set-cookie", "trailer", "transfer-encoding"];

/// Why no answer came.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamError {
    /// The address cannot be used.
    #[error("`{0}` is not an address, expected http:// or https://")]
    Address(String),
    /// There are no root certificates.
    #[error(transparent)]
    NoClient(#[from] egress::NoClient),
    /// Nobody answered.
    #[error("`{origin}` does not answer: {cause}")]
    Unreached {
        /// Who was asked.
        origin: String,
        /// Why not.
        cause: String,
    },
    /// It sends to another address, where the client's key has no business.
    #[error("`{0}` answers with a redirect, and none is followed")]
    Redirect(String),
    /// It answers in a form that was not asked for.
    #[error("`{0}` answers compressed, which was not asked for")]
    Compressed(String),
}

/// A vendor, or what stands in its place.
#[derive(Debug)]
pub struct Upstream {
    client: reqwest::Client,
    base: String,
    origin: String,
}

impl Upstream {
    /// The one at `base`.
    ///
    /// # Errors
    /// It is not an address, or no client can be made for it.
    pub fn new(base: &str) -> Result<Self, UpstreamError> {
        let wrong = || UpstreamError::Address(base.to_owned());
        let url = Url::parse(base).ok().filter(|url| matches!(url.scheme(), "http" | "https")).ok_or_else(wrong)?;
        let client = egress::client_for(&url, CONNECT_TIME, None)?;
        let origin = url.origin().ascii_serialization();
        Ok(Self { client, base: base.trim_end_matches('/').to_owned(), origin })
    }

    /// Asks at `path` below its address.
    ///
    /// # Errors
    /// No answer came that can be handed on.
    pub async fn ask(
        &self,
        (method, path): (Method, &str),
        headers: &HeaderMap,
        body: String,
    ) -> Result<reqwest::Response, UpstreamError> {
        let url = format!("{}{path}", self.base);
        let mut outgoing = going(headers);
        outgoing.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        let request = self.client.request(method.clone(), url).headers(outgoing);
        let request = if method == Method::GET { request } else { request.body(body) };
        let unreached = |cause: String| UpstreamError::Unreached { origin: self.origin.clone(), cause };
        let sent = tokio::time::timeout(SILENCE, request.send()).await;
        let answer = sent.map_err(|_| unreached("it says nothing".into()))?.map_err(|error| {
            let error = error.without_url();
            unreached(std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string))
        })?;
        if answer.status().is_redirection() {
            return Err(UpstreamError::Redirect(self.origin.clone()));
        }
        if answer.headers().get_all(header::CONTENT_ENCODING).iter().any(|encoding| encoding != "identity") {
            return Err(UpstreamError::Compressed(self.origin.clone()));
        }
        Ok(answer)
    }
}

/// The headers of a client that go on.
pub(crate) fn going(headers: &HeaderMap) -> HeaderMap {
    let goes = |name: &HeaderName| {
        let name = name.as_str();
        !HOP.contains(&name) && !name.starts_with("x-pintle-") && !name.starts_with("x-forwarded-")
    };
    headers.iter().filter(|(name, _)| goes(name)).map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// The headers of an answer that come back.
pub(crate) fn coming(headers: &HeaderMap) -> HeaderMap {
    let comes = |name: &HeaderName| !NOT_BACK.contains(&name.as_str());
    headers.iter().filter(|(name, _)| comes(name)).map(|(name, value)| (name.clone(), value.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_for_the_vendor_stays_here() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("x-api-key", "k"),
            ("authorization", "Bearer k"),
            ("anthropic-beta", "b"),
            ("cookie", "c"),
            ("x-pintle-key", "p"),
            ("x-pintle-session", "s"),
            ("x-forwarded-for", "1"),
            ("host", "h"),
            ("accept-encoding", "gzip"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        let mut left: Vec<String> = going(&headers).keys().map(ToString::to_string).collect();
        left.sort();
        assert_eq!(left, ["anthropic-beta", "authorization", "x-api-key"]);
    }

    #[test]
    fn an_address_is_one() {
        assert!(matches!(Upstream::new("localhost:80"), Err(UpstreamError::Address(_))));
        assert!(Upstream::new("http://127.0.0.1:1/v1/").is_ok());
    }
}
