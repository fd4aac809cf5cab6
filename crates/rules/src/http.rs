//! The exchange of an http hook: one POST behind the egress guard, and at most one more. What the reply means is
//! read elsewhere.

mod block;
mod encoding;
mod fault;
mod headers;
mod signature;
mod timer;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;

pub use self::fault::HttpFault;
pub use self::headers::check_header;
pub use self::signature::SigningSecret;
pub use self::timer::Timer;
use pintle_egress::KeepAlive;
use pintle_engine::approvals::{Clock, SystemClock};
use pintle_engine::deadlines::Deadlines;

/// Largest reply that is read, in bytes. Source: the protocol.
pub const MAX_REPLY_BYTES: usize = 1 << 20;

/// How long the second attempt waits. Source: the protocol.
pub const RETRY_AFTER: Duration = Duration::from_secs(1);

/// Where an http hook's payload goes, with its secrets in clear text.
#[derive(Clone, PartialEq)]
pub struct HttpSpec {
    /// Absolute, http or https.
    pub url: String,
    /// Names and values, as configured and already decrypted.
    pub headers: Vec<(String, String)>,
    /// `whsec_…`: signs each request by Standard Webhooks.
    pub signing_secret: Option<String>,
    /// Whether a reply that is not JSON is a fault. For the reader of the reply; the exchange is the same.
    pub strict: bool,
}

/// One payload on its way.
#[derive(Clone, Debug)]
pub struct Delivery<'a> {
    /// The JSON document, sent as it is.
    pub body: Bytes,
    /// `<hook_id>:<event_id>`: the same in both attempts.
    pub dedup_key: &'a str,
    /// How long both attempts and the wait between them may take together.
    pub timeout: Duration,
    /// Whether this is a test of the hook by a person.
    pub is_test: bool,
}

/// A reply with a status from 200 to 299.
#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    /// The status.
    pub status: u16,
    /// The body, at most [`MAX_REPLY_BYTES`].
    pub body: Bytes,
    /// Attempts but the first: 0 or 1.
    pub retries: u8,
}

/// Sends payloads. Clones, and the exchanges [of other tenants](Self::for_tenant), share connections.
#[derive(Clone)]
pub struct HttpSender {
    client: KeepAlive,
    timer: Arc<dyn Timer>,
    clock: Arc<dyn Clock>,
}

impl HttpSender {
    /// An exchange over `client`, for its audience, by the time of this machine; it waits by `deadlines`.
    pub fn new(client: KeepAlive, deadlines: Deadlines) -> Self {
        Self { client, timer: Arc::new(deadlines), clock: Arc::new(SystemClock) }
    }

    /// This exchange by another time: `timer` waits, `clock` dates the signatures.
    #[must_use]
    pub fn with_time(self, timer: Arc<dyn Timer>, clock: Arc<dyn Clock>) -> Self {
        Self { timer, clock, ..self }
    }

    /// The exchange of the hooks of `tenant`, a slug; `None` are the global hooks. What the operator allowed for
    /// some tenants holds for no other.
    #[must_use]
    pub fn for_tenant(&self, tenant: Option<&str>) -> Self {
        let egress = self.client.egress().for_tenant(tenant);
        Self { client: self.client.guarded_by(egress), ..self.clone() }
    }

    /// Sends a payload and reads the reply. A status of 5xx, or a connection that fails before the head of the
    /// response, is followed by one more attempt, if there is time for it. Dropping the future closes the connection.
    ///
    /// # Errors
    /// Why there is no reply.
    pub async fn post(&self, spec: &HttpSpec, delivery: Delivery<'_>) -> Result<Response, HttpFault> {
        let start = self.timer.now();
        let timeout = delivery.timeout;
        let again = AtomicBool::new(false);
        let attempts = self.attempts(spec, &delivery, start, &again);
        let answered = tokio::select! {
            biased;
            answered = attempts => answered,
            () = self.timer.wait(timeout) => Err(HttpFault::TimedOut { after: timeout }),
        };
        if let Err(HttpFault::Refused(reason)) = &answered {
            block::log(&spec.url, reason);
        }
        let is_second = again.load(Ordering::Relaxed);
        answered.map_err(|fault| if is_second { HttpFault::Again(Box::new(fault)) } else { fault })
    }

    /// `again` is set when the second attempt begins.
    async fn attempts(
        &self,
        spec: &HttpSpec,
        delivery: &Delivery<'_>,
        start: Instant,
        again: &AtomicBool,
    ) -> Result<Response, HttpFault> {
        let prepared = headers::Prepared::new(spec, delivery)?;
        let first = match self.attempt(&spec.url, &prepared).await {
            Err(fault) if fault.is_worth_a_retry() => fault,
            settled => return settled,
        };
        let spent = self.timer.now().saturating_duration_since(start);
        if spent + RETRY_AFTER >= delivery.timeout {
            return Err(first);
        }
        self.timer.wait(RETRY_AFTER).await;
        again.store(true, Ordering::Relaxed);
        self.attempt(&spec.url, &prepared).await.map(|response| Response { retries: 1, ..response })
    }

    async fn attempt(&self, url: &str, prepared: &headers::Prepared) -> Result<Response, HttpFault> {
        let headers = prepared.headers(self.clock.now());
        let answer = self.client.post(url, headers, prepared.body()).await?;
        let status = answer.status();
        match status {
            200..300 => {
                encoding::check(answer.headers())?;
                Ok(Response { status, body: answer.body(MAX_REPLY_BYTES).await?, retries: 0 })
            }
            400..500 => Err(HttpFault::Client(status)),
            500..600 => Err(HttpFault::Server(status)),
            _ => Err(HttpFault::Unexpected(status)),
        }
    }
}

/// Without values: they may be secret.
impl std::fmt::Debug for HttpSpec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.headers.iter().map(|(name, _)| name.as_str()).collect();
        f.debug_struct("HttpSpec")
            .field("url", &pintle_domain::shown_url::shown_url(&self.url))
            .field("headers", &names)
            .field("signed", &self.signing_secret.is_some())
            .field("strict", &self.strict)
            .finish()
    }
}

impl std::fmt::Debug for HttpSender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Exchange").field("client", &self.client).finish_non_exhaustive()
    }
}
