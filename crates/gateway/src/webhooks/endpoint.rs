//! One receiver: what it wants to know, and how it is reached.

use std::time::Duration;

use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderMap, HeaderValue, RETRY_AFTER, USER_AGENT};
use jiff::Timestamp;
use pintle_domain::json::{Value, json, parse};
use pintle_domain::shown_url::shown_url;
use pintle_domain::webhook::{Attempt, WebhookDelivery, WebhookEvent, endpoint_id};
use pintle_egress::{Allow, Egress, KeepAlive};
use pintle_host::config::{Env, WebhookConfig};
use pintle_rules::http::SigningSecret;

use crate::bad_settings::BadSettings;

/// How long a receiver may take to answer. Source: the page of the gateway.
const ANSWER_TIME: Duration = Duration::from_secs(10);

/// Most secrets that sign at once: the one in use, and the one that takes its place.
const MAX_SECRETS: usize = 2;

/// A receiver.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    /// Its id in the store.
    pub(crate) id: String,
    url: String,
    events: Vec<WebhookEvent>,
    /// The tenant whose events it wants; everybody's without one.
    pub(crate) tenant: Option<String>,
    secrets: Vec<SigningSecret>,
    client: KeepAlive,
}

impl Endpoint {
    /// The receiver that an entry of the configuration is.
    ///
    /// # Errors
    /// Its secret is not set or is none, or its address cannot be allowed.
    pub(crate) fn of(config: &WebhookConfig, env: &Env) -> Result<Self, BadSettings> {
        let shown = shown_url(config.url.as_str());
        let bad = |why: String| BadSettings {
            message: format!("the webhook to {shown}: {why}"),
            hint:
                "set the variable to `whsec_` and the base64 of at least 24 random bytes; while rotating, to the old \
                   and the new one with a space between them"
                    .to_owned(),
        };
        let name = &config.secret_env;
        let text = env.vars.get(name).and_then(|value| value.to_str()).unwrap_or_default();
        let secrets: Result<Vec<_>, _> = text.split_whitespace().map(SigningSecret::parse).collect();
        let secrets = secrets.map_err(|_| bad(format!("`{name}` is not a Standard Webhooks secret")))?;
        if secrets.is_empty() {
            return Err(bad(format!("`{name}`, which `secret_env` names, is not set")));
        }
        if secrets.len() > MAX_SECRETS {
            return Err(bad(format!("`{name}` has {} secrets; at most {MAX_SECRETS} are allowed", secrets.len())));
        }
        // Whoever writes an address into the own configuration means it: this one, and no other.
        let host = config.url.host_str().unwrap_or_default();
        let port = config.url.port_or_known_default().unwrap_or_default();
        let allow = Allow::host(host, vec![port]).map_err(|why| bad(why.to_string()))?;
        Ok(Self {
            id: endpoint_id(config.url.as_str()),
            url: config.url.to_string(),
            events: config.events.clone(),
            tenant: config.tenant.clone(),
            secrets,
            client: KeepAlive::new(Egress::new(vec![allow])),
        })
    }

    pub(crate) fn wants(&self, event: WebhookEvent) -> bool {
        self.events.contains(&event)
    }

    /// Tells it of an event, once.
    pub(crate) async fn send(&self, delivery: &WebhookDelivery, now: Timestamp) -> Attempt {
        let body = Bytes::from(body(delivery));
        let headers = self.headers(delivery, now, &body);
        let sent = tokio::time::timeout(ANSWER_TIME, self.client.post(&self.url, headers, body)).await;
        match sent {
            Err(_elapsed) => Attempt::Unanswered(format!("no answer within {} s", ANSWER_TIME.as_secs())),
            Ok(Err(why)) => Attempt::Unanswered(why.to_string()),
            Ok(Ok(answer)) => match answer.status() {
                200..300 => Attempt::Accepted,
                410 => Attempt::Gone,
                status => Attempt::Refused { status, retry_after: retry_after(answer.headers()) },
            },
        }
    }

    fn headers(&self, delivery: &WebhookDelivery, now: Timestamp, body: &[u8]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        let id = HeaderValue::from_str(&delivery.id).expect("a UUID can stand in a header");
        let signatures = self.secrets.iter().map(|secret| secret.sign(&id, now.as_second(), body));
        let signatures: Vec<String> =
            signatures.filter_map(|signature| signature.to_str().ok().map(str::to_owned)).collect();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(USER_AGENT, HeaderValue::from_static(concat!("pintle/", env!("CARGO_PKG_VERSION"))));
        headers.insert("webhook-id", id);
        headers.insert("webhook-timestamp", HeaderValue::from(now.as_second()));
        let signatures = HeaderValue::from_str(&signatures.join(" ")).expect("base64 can stand in a header");
        headers.insert("webhook-signature", signatures);
        headers
    }
}

/// The wait that an answer asks for, where it says it in seconds.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    headers.get(RETRY_AFTER)?.to_str().ok()?.parse().ok().map(Duration::from_secs)
}

/// The body of a delivery.
fn body(delivery: &WebhookDelivery) -> String {
    let data = parse(&delivery.data).unwrap_or(Value::Null);
    let at = delivery.at.to_string();
    json!({ "type": delivery.event.word(), "timestamp": at, "seq": delivery.seq, "data": data }).to_string()
}
