//! What a gateway is told by the command line and the configuration.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use host::config::{Env, GatewayConfig, HttpLimits, TlsFiles};

use crate::door::Door;
use crate::sign_in::KnownBy;
use crate::webhooks::{Endpoint, endpoints};

/// Where it listens unless it is said. Source: the published protocol.
pub const DEFAULT_ADDRESS: &str = "127.0.0.1:18790";

/// The prefix of the address of a socket in the file system.
const UNIX: &str = "unix:";

/// An address to listen at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// Of the network.
    Network(SocketAddr),
    /// In the file system; only its owner can connect.
    Unix(PathBuf),
}

impl Address {
    /// Reads `HOST:PORT`, where the host is an IP address or `localhost`, or `unix:PATH`.
    ///
    /// # Errors
    /// What was expected.
    pub fn read(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix(UNIX) {
            let expected = || format!("expected unix:PATH with an absolute path, got \"{text}\"");
            return path.starts_with('/').then(|| Self::Unix(path.into())).ok_or_else(expected);
        }
        let local = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
        let parsed = local.as_deref().unwrap_or(text).parse();
        parsed.map(Self::Network).map_err(|_| format!("expected ADDRESS:PORT or unix:PATH, got \"{text}\""))
    }

    /// Whether only this machine reaches it.
    pub fn is_local(&self) -> bool {
        match self {
            Self::Network(address) => address.ip().is_loopback(),
            Self::Unix(_) => true,
        }
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Network(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "{UNIX}{}", path.display()),
        }
    }
}

/// The settings of one gateway.
#[derive(Clone, Debug)]
pub struct GatewaySettings {
    /// Where it listens.
    pub addresses: Vec<Address>,
    /// The files of its certificate.
    pub tls: Option<TlsFiles>,
    /// How long it goes on as before once it is to end, so that balancers see it.
    pub drain_delay: Duration,
    /// How long turns may go on after that.
    pub drain: Duration,
    /// Where anybody may ask for numbers.
    pub metrics: Option<Address>,
    /// What requests over HTTP may take.
    pub limits: HttpLimits,
    pub(crate) door: Door,
    pub(crate) known_by: KnownBy,
    pub(crate) endpoints: Vec<Endpoint>,
}

/// Why there is no gateway.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct BadSettings {
    /// What is wrong.
    pub message: String,
    /// What to do.
    pub hint: String,
}

impl GatewaySettings {
    /// Those of `config`, listening at `listen`, or where the configuration says if that is empty.
    ///
    /// # Errors
    /// An address is none, the variable of the token is not set, or an address that others reach would be open to all.
    pub fn new(config: &GatewayConfig, env: &Env, listen: &[String]) -> Result<Self, BadSettings> {
        let bad = |message: String, hint: &str| BadSettings { message, hint: hint.to_owned() };
        let token = match &config.token_env {
            None => None,
            Some(name) => match env.vars.get(name).and_then(|value| value.to_str()).filter(|value| !value.is_empty()) {
                Some(token) => Some(token.to_owned()),
                None => {
                    let message = format!("`{name}`, which `gateway.token_env` names, is not set");
                    return Err(bad(message, "set it to a long random text, such as that of `openssl rand -hex 32`"));
                }
            },
        };
        let written = if listen.is_empty() { &config.listen } else { listen };
        let addresses: Result<Vec<Address>, String> = written.iter().map(|text| Address::read(text)).collect();
        let mut addresses = addresses.map_err(|why| bad(why, "write `--listen 127.0.0.1:18790`, for instance"))?;
        if addresses.is_empty() {
            addresses.push(Address::read(DEFAULT_ADDRESS).expect("it is an address"));
        }
        if let Some(open) = addresses.iter().find(|address| !address.is_local()).filter(|_| token.is_none()) {
            return Err(bad(
                format!("others reach {open}, and nothing asks who they are"),
                "set `gateway.token_env` to the name of a variable with a secret, or listen at 127.0.0.1",
            ));
        }
        let metrics = config.http.metrics_listen.as_deref().map(Address::read).transpose();
        let metrics = metrics
            .map_err(|why| bad(format!("gateway.metrics_listen: {why}"), "write \"127.0.0.1:9464\", for instance"))?;
        Ok(Self {
            addresses,
            metrics,
            limits: config.http.clone(),
            tls: config.tls.clone(),
            drain_delay: config.drain_delay,
            drain: config.drain,
            door: Door {
                allowed: config.allowed_origins.clone(),
                public: config.public_url.clone(),
                proxies: config.trusted_proxies.clone(),
            },
            endpoints: endpoints(config, env)?,
            known_by: KnownBy::new(token.as_deref(), config.owner_ids.clone()),
        })
    }

    /// Whether somebody reaches an address without encryption whom no proxy brings.
    pub fn is_in_the_clear(&self) -> bool {
        self.tls.is_none() && self.door.proxies.is_empty() && self.addresses.iter().any(|address| !address.is_local())
    }
}
