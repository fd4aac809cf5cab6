//! How `pintle serve` is reached, and by whom.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use ipnet::IpNet;
use pintle_domain::webhook::WebhookEvent;
use url::Url;

/// How often each key may ask in a minute, unless it is said: ten times a second.
const REQUESTS: NonZeroU32 = NonZeroU32::new(600).expect("it is not zero");

/// How long it goes on as before once it is to end, unless it is said.
const DRAIN_DELAY: Duration = Duration::from_secs(5);

/// How long turns may go on after that, unless it is said.
const DRAIN: Duration = Duration::from_secs(30);

/// How long a request waits for an answer to an approval, unless it is said.
const APPROVAL_WAIT: Duration = Duration::from_secs(120);

/// Longest body of a request, in bytes, unless it is said.
const MAX_BODY: usize = 10 << 20;

/// Most that the uploads of one tenant have, in bytes, unless it is said: some ten thousand pictures.
const MEDIA_QUOTA: u64 = 1 << 30;

/// How `pintle serve` is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayConfig {
    /// Where it listens, as it is written.
    pub listen: Vec<String>,
    /// The name of the variable that holds the gateway token.
    pub token_env: Option<String>,
    /// The users who own the host.
    pub owner_ids: Vec<String>,
    /// Origins of other pages that may ask.
    pub allowed_origins: Vec<Url>,
    /// The proxies that are believed.
    pub trusted_proxies: Vec<IpNet>,
    /// The address under which people know it.
    pub public_url: Option<Url>,
    /// The files of its certificate.
    pub tls: Option<TlsFiles>,
    /// How often each key may ask, a minute and node.
    pub requests_per_minute: NonZeroU32,
    /// How long it goes on as before once it is to end.
    pub drain_delay: Duration,
    /// How long turns may go on after that.
    pub drain: Duration,
    /// What this node is called.
    pub node: Option<String>,
    /// What requests over HTTP may take.
    pub http: HttpLimits,
    /// Who is told what happens.
    pub webhooks: Vec<WebhookConfig>,
}

/// What requests over HTTP may take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpLimits {
    /// How long one waits for an answer to an approval.
    pub approval_wait: Duration,
    /// Longest body, in bytes.
    pub max_body: usize,
    /// Most that the uploads of one tenant have, in bytes.
    pub media_quota: u64,
    /// Where anybody may ask for numbers, as it is written.
    pub metrics_listen: Option<String>,
}

impl Default for HttpLimits {
    fn default() -> Self {
        Self { approval_wait: APPROVAL_WAIT, max_body: MAX_BODY, media_quota: MEDIA_QUOTA, metrics_listen: None }
    }
}

/// Somebody who is told what happens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookConfig {
    /// Where.
    pub url: Url,
    /// Of which events.
    pub events: Vec<WebhookEvent>,
    /// The name of the variable with the secret that signs.
    pub secret_env: String,
    /// The slug of the tenant whose events are meant; everybody's without it.
    pub tenant: Option<String>,
}

/// The files of a certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The chain of certificates, in PEM.
    pub cert: PathBuf,
    /// Its private key, in PEM.
    pub key: PathBuf,
}

impl Default for GatewayConfig {
    fn default() -> Self {
        Self {
            listen: Vec::new(),
            token_env: None,
            owner_ids: Vec::new(),
            allowed_origins: Vec::new(),
            trusted_proxies: Vec::new(),
            public_url: None,
            tls: None,
            requests_per_minute: REQUESTS,
            drain_delay: DRAIN_DELAY,
            drain: DRAIN,
            http: HttpLimits::default(),
            webhooks: Vec::new(),
            node: None,
        }
    }
}
