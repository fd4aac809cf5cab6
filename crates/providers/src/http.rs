//! One POST to a provider: sent, sorted by status, its body ready to be read.

use std::time::Duration;

use pintle_domain::checkpoint::runtime::RetryReason;
use pintle_domain::llm::LlmReply;
use pintle_egress::Departure;
use reqwest::Url;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};

use crate::failure::{self, Refusal};
use crate::secret::Secret;
use crate::spec::ProviderSpec;
use crate::sse::{Body, Events};
use crate::{Delta, OnDelta, ProviderError};

/// How much of an error body is read, in bytes: messages are short, error pages are not.
const MAX_ERROR_BODY_BYTES: usize = 64 << 10;

/// A provider's address with everything that goes along with each request.
pub(crate) struct Endpoint {
    client: reqwest::Client,
    url: Url,
    headers: HeaderMap,
    name: String,
    key: Option<Secret>,
    key_hint: String,
    idle: Duration,
}

/// How a key is put into a header.
pub(crate) struct KeyHeader {
    /// Its name.
    pub(crate) name: HeaderName,
    /// The text that stands before the key.
    pub(crate) prefix: &'static str,
}

/// A request on its way. However it ends, also where nobody waits for it any more, it is told if it left.
struct Sending<'a> {
    departure: Departure,
    on_delta: OnDelta<'a>,
}

impl Drop for Sending<'_> {
    fn drop(&mut self) {
        if self.departure.has_left() {
            (self.on_delta)(Delta::Sent);
        }
    }
}

/// An answer with a good status.
pub(crate) enum Answer {
    /// It streams.
    Events(Events),
    /// The server answered with one JSON document.
    Whole(Vec<u8>),
}

impl Endpoint {
    /// The endpoint at `url`.
    pub(crate) fn new(spec: &ProviderSpec, url: Url, key_header: KeyHeader) -> Result<Self, ProviderError> {
        let client = http_client(&url, spec.connect_timeout)?;
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream, application/json"));
        if let Some(key) = &spec.api_key {
            let mut value = HeaderValue::from_str(&format!("{}{}", key_header.prefix, key.expose())).map_err(|_| {
                ProviderError::fatal(format!("the key holds a character that no header can carry; {}", key_hint(spec)))
            })?;
            value.set_sensitive(true);
            headers.insert(key_header.name, value);
        }
        Ok(Self {
            client,
            url,
            headers,
            name: spec.name.clone(),
            key: spec.api_key.clone(),
            key_hint: key_hint(spec),
            idle: spec.idle_timeout,
        })
    }

    /// Adds a header to every request.
    pub(crate) fn with_header(mut self, name: &'static str, value: &'static str) -> Self {
        self.headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        self
    }

    /// Sends `body`, rendered for `model`.
    pub(crate) async fn post(
        &self,
        model: &str,
        body: Vec<u8>,
        on_delta: OnDelta<'_>,
    ) -> Result<Answer, ProviderError> {
        let sending = Sending { departure: Departure::default(), on_delta };
        let body = sending.departure.body(body);
        let request = self.client.post(self.url.clone()).headers(self.headers.clone()).body(body);
        let Ok(sent) = tokio::time::timeout(self.idle, request.send()).await else {
            let message = format!("no answer began within {:?}", self.idle);
            return Err(ProviderError::transient(RetryReason::Timeout, message));
        };
        let response = sent.map_err(|error| failure::of_transport(error, &self.url.origin().ascii_serialization()))?;
        let status = response.status();
        let html = is_html(response.headers());
        let retry_after = failure::retry_after(response.headers(), jiff::Timestamp::now());
        let mut body = Body::of(response, self.idle);
        if !status.is_success() {
            let body = body.beginning(MAX_ERROR_BODY_BYTES).await;
            let refusal =
                Refusal { status: status.as_u16(), retry_after, body: &body, model, key_hint: &self.key_hint };
            return Err(refusal.into_error());
        }
        // Servers mislabel their answers, so the first byte decides.
        match body.peek().await? {
            _ if html => Err(ProviderError::fatal("answered with a web page; check `base_url`")),
            Some(b'{') => Ok(Answer::Whole(body.whole().await?)),
            Some(b'<') => Err(ProviderError::fatal("answered with a web page; check `base_url`")),
            // A line of a stream begins with a colon or a name.
            Some(b'a'..=b'z' | b':') | None => Ok(Answer::Events(Events::new(body))),
            Some(_) => Err(ProviderError::fatal("the answer is neither a stream nor a JSON object; check `base_url`")),
        }
    }

    /// Names the provider in an error and masks its key.
    pub(crate) fn tidy(&self, outcome: Result<LlmReply, ProviderError>) -> Result<LlmReply, ProviderError> {
        outcome.map_err(|error| error.tidy(&format!("provider `{}`", self.name), self.key.as_ref()))
    }
}

/// The hint about what to do about a key that is refused.
fn key_hint(spec: &ProviderSpec) -> String {
    let name = &spec.name;
    match (&spec.api_key, &spec.key_env) {
        (Some(_), Some(env)) => format!("check the variable `{env}` that `api_key_env` of `providers.{name}` names"),
        (None, Some(env)) => format!("the variable `{env}` that `api_key_env` of `providers.{name}` names is not set"),
        (Some(_), None) => format!("check the key of `providers.{name}`"),
        (None, None) => format!("set `api_key_env` of `providers.{name}` to the name of the variable that holds it"),
    }
}

fn is_html(headers: &HeaderMap) -> bool {
    headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).is_some_and(|kind| kind.starts_with("text/html"))
}

/// Reads a whole JSON answer.
pub(crate) fn json(body: &[u8]) -> Result<pintle_domain::json::Value, ProviderError> {
    let text = std::str::from_utf8(body).map_err(|_| ProviderError::fatal("the answer is not UTF-8"))?;
    pintle_domain::json::parse(text.trim()).map_err(|e| match e.starts_with("EOF") {
        true => ProviderError::cut("the end of its JSON"),
        false => ProviderError::fatal(format!("the answer is not valid JSON: {e}")),
    })
}

/// Reads the JSON of one event; broken JSON at the very end means that the stream was cut.
pub(crate) async fn event_json(data: &str, events: &mut Events) -> Result<pintle_domain::json::Value, ProviderError> {
    match pintle_domain::json::parse(data) {
        Ok(value) => Ok(value),
        Err(_) if events.at_end().await => Err(ProviderError::cut("the end of its last event")),
        Err(e) => Err(ProviderError::fatal(format!("an event of the answer is not valid JSON: {e}"))),
    }
}

/// The client for a provider at `url`.
///
/// # Errors
/// When there are no root certificates for an `https` address.
pub fn http_client(url: &Url, connect_timeout: Duration) -> Result<reqwest::Client, ProviderError> {
    pintle_egress::client_for(url, connect_timeout, None)
        .map_err(|error| ProviderError::fatal(format!("no HTTP client: {error}")))
}
