//! The vendor behind a door: what a client says goes there, less what is not for it.

use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use reqwest::Url;

use crate::wire::Vendor;

/// How long a connection to a vendor may take.
const CONNECT_TIME: Duration = Duration::from_secs(30);

/// How long a vendor may say nothing: models think for minutes.
const SILENCE: Duration = Duration::from_secs(600);

/// Headers that belong to one connection, or to the way to this machine.
const HOP: [&str; 22] = [
    "accept-encoding",
    "cf-connecting-ip",
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
    "true-client-ip",
    "upgrade",
    "via",
    "x-client-ip",
    "x-real-ip",
];

/// The header of the console's session, and how the others of Pintle's begin.
const OURS: [&str; 2] = ["x-pintle", "x-pintle-"];

/// Headers of an answer that are the vendor's own business with its connection, or would be kept by a client.
const NOT_BACK: [&str; 6] =
    ["connection", "content-length", "keep-alive", "set-cookie", "trailer", "transfer-encoding"];

/// Headers of a client that say who pays: where the door's key goes, none of them does.
const WHO_PAYS: [&str; 7] = [
    "api-key",
    "authorization",
    "openai-organization",
    "openai-project",
    "x-api-key",
    "x-goog-api-key",
    "x-goog-user-project",
];

/// Whose key a vendor is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DoorKey {
    /// What the client sent goes on; the door neither tries nor keeps it.
    OfClient,
    /// The operator's; what the client sent stays here.
    OfDoor,
}

/// A key for a vendor. Printing it shows `***`.
#[derive(Clone, PartialEq, Eq)]
pub struct VendorKey(HeaderValue);

impl VendorKey {
    /// The key `key`, as `vendor` is told it, without the blanks and line ends around it; nothing where it can be none.
    pub fn new(vendor: Vendor, key: &str) -> Option<Self> {
        let key = key.trim();
        let text = match vendor {
            Vendor::Anthropic | Vendor::Gemini => key.to_owned(),
            Vendor::OpenAi => format!("Bearer {key}"),
        };
        let mut value = HeaderValue::from_str(&text).ok().filter(|_| !key.is_empty())?;
        value.set_sensitive(true);
        Some(Self(value))
    }
}

impl std::fmt::Debug for VendorKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("***")
    }
}

/// Why no answer came.
#[derive(Debug, thiserror::Error)]
pub enum UpstreamError {
    /// The address cannot be used.
    #[error("`{0}` is not an address, expected http:// or https://")]
    Address(String),
    /// There are no root certificates.
    #[error(transparent)]
    NoClient(#[from] pintle_egress::NoClient),
    /// Nobody answered.
    #[error("`{origin}` does not answer: {cause}")]
    Unreached {
        /// Who was asked.
        origin: String,
        /// Why not.
        cause: String,
        /// Nothing of the request left: it can be asked again, and nothing is paid twice.
        unsent: bool,
    },
    /// It sends to another address, where the client's key has no business.
    #[error("`{0}` answers with a redirect, and none is followed")]
    Redirect(String),
    /// It answers in a form that was not asked for.
    #[error("`{0}` answers compressed, which was not asked for")]
    Compressed(String),
    /// It is to be asked with a key of the operator's, and there is none.
    #[error("there is no key for {0} here")]
    NoKey(&'static str),
}

/// A vendor, or what stands in its place.
#[derive(Debug)]
pub struct Upstream {
    client: reqwest::Client,
    vendor: Vendor,
    base: String,
    origin: String,
    key: Option<VendorKey>,
}

impl Upstream {
    /// The one at `base`, with a key of the operator's if there is one.
    ///
    /// # Errors
    /// It is not an address, or no client can be made for it.
    pub fn new(vendor: Vendor, base: &str, key: Option<VendorKey>) -> Result<Self, UpstreamError> {
        let wrong = || UpstreamError::Address(base.to_owned());
        let url = Url::parse(base).ok().filter(|url| matches!(url.scheme(), "http" | "https")).ok_or_else(wrong)?;
        let client = pintle_egress::client_for(&url, CONNECT_TIME, None)?;
        let origin = url.origin().ascii_serialization();
        Ok(Self { client, vendor, base: base.trim_end_matches('/').to_owned(), origin, key })
    }

    /// The head of a request that leaves: of what a client said, all that is for the vendor, with the key `whose`.
    ///
    /// # Errors
    /// There is no such key.
    pub(crate) fn head(&self, headers: &HeaderMap, whose: DoorKey) -> Result<HeaderMap, UpstreamError> {
        let mut outgoing = going(headers);
        outgoing.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        match (whose, &self.key) {
            (DoorKey::OfClient, _) => {}
            (DoorKey::OfDoor, None) => return Err(UpstreamError::NoKey(self.vendor.name())),
            (DoorKey::OfDoor, Some(VendorKey(key))) => {
                WHO_PAYS.iter().for_each(|name| drop(outgoing.remove(*name)));
                outgoing.insert(self.vendor.key_header(), key.clone());
            }
        }
        Ok(outgoing)
    }

    /// Asks at `path` below its address, with a head that [`Self::head`] made.
    ///
    /// # Errors
    /// No answer came that can be handed on.
    pub(crate) async fn ask(
        &self,
        (method, path): (Method, &str),
        head: HeaderMap,
        body: String,
    ) -> Result<reqwest::Response, UpstreamError> {
        let url = format!("{}{path}", self.base);
        let request = self.client.request(method.clone(), url).headers(head);
        let request = if method == Method::GET { request } else { request.body(body) };
        let unreached =
            |cause: String, unsent: bool| UpstreamError::Unreached { origin: self.origin.clone(), cause, unsent };
        let sent = tokio::time::timeout(SILENCE, request.send()).await;
        let answer = sent.map_err(|_| unreached("it says nothing".into(), false))?.map_err(|error| {
            let unsent = error.is_connect();
            unreached(last_cause(&error.without_url()), unsent)
        })?;
        if answer.status().is_redirection() {
            return Err(UpstreamError::Redirect(self.origin.clone()));
        }
        let says = |name: HeaderName, plain: &str| answer.headers().get_all(name).iter().all(|it| it == plain);
        if !says(header::CONTENT_ENCODING, "identity") || !says(header::TRANSFER_ENCODING, "chunked") {
            return Err(UpstreamError::Compressed(self.origin.clone()));
        }
        Ok(answer)
    }
}

/// The headers of a client that go on.
pub(crate) fn going(headers: &HeaderMap) -> HeaderMap {
    let goes = |name: &HeaderName| {
        let name = name.as_str();
        let [session, others] = OURS;
        !HOP.contains(&name) && name != session && !name.starts_with(others) && !name.starts_with("x-forwarded-")
    };
    headers.iter().filter(|(name, _)| goes(name)).map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// The headers of an answer that come back.
pub(crate) fn coming(headers: &HeaderMap) -> HeaderMap {
    let comes = |name: &HeaderName| !NOT_BACK.contains(&name.as_str());
    headers.iter().filter(|(name, _)| comes(name)).map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// The innermost cause of `error`: what the layers above it add are their own names.
fn last_cause(error: &reqwest::Error) -> String {
    let first = std::error::Error::source(error);
    let last = std::iter::successors(first, |cause| cause.source()).last();
    last.map_or_else(|| error.to_string(), ToString::to_string)
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
            ("x-pintle", "p"),
            ("x-pintle-key", "p"),
            ("x-pintle-session", "s"),
            ("x-forwarded-for", "1"),
            ("x-real-ip", "1"),
            ("via", "1"),
            ("host", "h"),
            ("accept-encoding", "gzip"),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        let mut left: Vec<String> = going(&headers).keys().map(ToString::to_string).collect();
        left.sort();
        assert_eq!(left, ["anthropic-beta", "authorization", "x-api-key"]);
    }

    #[tokio::test]
    async fn a_vendor_that_is_not_there_is_said_with_the_cause() {
        // Nobody listens at a port that was just given back.
        let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let upstream = Upstream::new(Vendor::OpenAi, &format!("http://{address}"), None).unwrap();
        let asked = upstream.ask((Method::GET, "/v1/models"), HeaderMap::new(), String::new()).await;
        let said = asked.unwrap_err().to_string();
        let expected = format!("`http://{address}` does not answer: Connection refused");
        assert!(said.starts_with(&expected), "{said}");
    }

    #[test]
    fn an_address_is_one() {
        let upstream = |base: &str| Upstream::new(Vendor::OpenAi, base, None);
        assert!(matches!(upstream("localhost:80"), Err(UpstreamError::Address(_))));
        assert!(upstream("http://127.0.0.1:1/v1/").is_ok());
    }

    #[test]
    fn where_the_key_of_the_door_goes_no_word_of_the_clients_says_who_pays() {
        for (vendor, name, value) in [
            (Vendor::Anthropic, "x-api-key", "ours"),
            (Vendor::Gemini, "x-goog-api-key", "ours"),
            (Vendor::OpenAi, "authorization", "Bearer ours"),
        ] {
            let upstream = |key| Upstream::new(vendor, "http://127.0.0.1:1", key).unwrap();
            let mut headers = HeaderMap::new();
            for name in WHO_PAYS {
                headers.insert(name, HeaderValue::from_static("theirs"));
            }
            let with = upstream(VendorKey::new(vendor, " ours\n"));
            let said = |head: &HeaderMap| {
                let all = head.iter().filter(|(name, _)| *name != header::ACCEPT_ENCODING);
                all.map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned())).collect::<Vec<_>>()
            };
            let head = with.head(&headers, DoorKey::OfDoor).unwrap();
            assert_eq!(said(&head), [(name.to_owned(), value.to_owned())]);
            assert!(!format!("{head:?} {with:?}").contains("ours"), "{head:?} {with:?}");
            assert_eq!(said(&with.head(&headers, DoorKey::OfClient).unwrap()).len(), WHO_PAYS.len());
            let none = upstream(None).head(&headers, DoorKey::OfDoor);
            assert!(matches!(none, Err(UpstreamError::NoKey(_))), "{none:?}");
        }
        assert_eq!(VendorKey::new(Vendor::OpenAi, " \n"), None);
        assert_eq!(VendorKey::new(Vendor::OpenAi, "a\nb"), None);
    }
}
