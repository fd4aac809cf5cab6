//! One request to a collector.

use std::time::Duration;

use prost::Message;
use url::Url;

use crate::settings::{CollectorSettings, CollectorSettingsError};

/// How long a collector may take for one request. Source: OpenTelemetry, OTLP exporter.
const POST_TIME: Duration = Duration::from_secs(10);

/// How long it may take to reach it: a collector is near.
const CONNECT_TIME: Duration = Duration::from_secs(5);

/// How much of an answer is read, in bytes: it says what was refused, in a line or two.
const MAX_ANSWER_BYTES: usize = 64 << 10;

/// Why a collector has not taken something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PostError {
    /// What happened, without the address.
    pub(crate) why: String,
    /// Whether it may go well later.
    pub(crate) passes: bool,
}

/// What sends requests to one collector.
pub(crate) struct Post {
    client: reqwest::Client,
    headers: Vec<(String, String)>,
}

impl Post {
    /// A client for the collector of `settings`. It follows no redirect, so that headers reach no other host.
    pub(crate) fn new(settings: &CollectorSettings) -> Result<Self, CollectorSettingsError> {
        let client = pintle_egress::client_for(&settings.traces, CONNECT_TIME, Some(POST_TIME))
            .map_err(|error| CollectorSettingsError::Client { host: settings.host(), why: error.cause().to_owned() })?;
        Ok(Self { client, headers: settings.headers.clone() })
    }

    /// Sends `message` to `url`. Says how many of its parts the collector did not want though it took the request:
    /// `refused` reads that out of the answer.
    pub(crate) async fn send<M: Message>(
        &self,
        url: &Url,
        message: &M,
        refused: impl Fn(&[u8]) -> u64,
    ) -> Result<u64, PostError> {
        let mut request = self.client.post(url.clone()).header("content-type", "application/x-protobuf");
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let sent = request.body(message.encode_to_vec()).send().await;
        let mut response = sent.map_err(|error| PostError { why: cause(error), passes: true })?;
        let status = response.status();
        if !status.is_success() {
            // Source: OTLP/HTTP, retryable response codes.
            let passes = [429, 502, 503, 504].contains(&status.as_u16());
            return Err(PostError { why: format!("it answered {}", status.as_u16()), passes });
        }
        let mut answer = Vec::new();
        while let Ok(Some(chunk)) = response.chunk().await {
            if answer.len() + chunk.len() > MAX_ANSWER_BYTES {
                return Ok(0);
            }
            answer.extend_from_slice(&chunk);
        }
        Ok(refused(&answer))
    }
}

/// The innermost reason, which names neither the address nor a header.
fn cause(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut cause: &dyn std::error::Error = &error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    if error.is_timeout() { "no answer in time".to_owned() } else { cause.to_string() }
}
