//! What a gateway is told by the command line and the configuration.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use pintle_domain::caller_role::CallerRole;
use pintle_host::config::{Env, GatewayConfig, HttpLimits, TlsFiles};
use url::Url;

use crate::bad_settings::BadSettings;
use crate::doctor::DoctorCommand;
use crate::door::Door;
use crate::sign_in::{KnownBy, LOCAL_USER};
use crate::webhooks::{Endpoint, endpoints};

/// Where it listens unless it is said. Source: the published protocol.
pub const DEFAULT_ADDRESS: &str = "127.0.0.1:18790";

/// Fewest bytes of a token where others can try to guess it: 128 bits.
const MIN_TOKEN_BYTES: usize = 16;

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

/// The processes of foreign agents: each by its id and since when it runs, or why nobody knows them.
type AgentProcesses = Result<Vec<(u32, u64)>, String>;

/// Says which processes are foreign agents under guard now. Where that is unknown, any program may be an agent's.
#[derive(Clone)]
pub struct ForeignAgents(Arc<dyn Fn() -> AgentProcesses + Send + Sync>);

impl ForeignAgents {
    /// Those that `now` says, or why they are unknown. It may block.
    pub fn new(now: impl Fn() -> Result<Vec<(u32, u64)>, String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    pub(crate) fn now(&self) -> AgentProcesses {
        (self.0)()
    }
}

impl Default for ForeignAgents {
    fn default() -> Self {
        Self::new(|| Ok(Vec::new()))
    }
}

impl std::fmt::Debug for ForeignAgents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ForeignAgents").finish_non_exhaustive()
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
    /// How `doctor.run` is carried out; nothing where it cannot be.
    pub doctor: Option<DoctorCommand>,
    /// The processes of foreign agents, which are no persons of this machine.
    pub agents: ForeignAgents,
    pub(crate) door: Door,
    pub(crate) known_by: KnownBy,
    pub(crate) requests_per_minute: NonZeroU32,
    pub(crate) endpoints: Vec<Endpoint>,
}

/// Where people reach a gateway of `config`: the public address, else the first one of the network.
///
/// # Errors
/// An address is none.
pub fn configured_origin(config: &GatewayConfig) -> Result<Option<String>, BadSettings> {
    let addresses = addresses(&config.listen)?;
    Ok(addresses.iter().find_map(|address| origin(config.public_url.as_ref(), config.tls.is_some(), address)))
}

/// The user whom a link makes somebody with `role`, of a gateway of `config`.
pub fn link_user(config: &GatewayConfig, role: CallerRole) -> String {
    let known_by = KnownBy::new(None, config.owner_ids.clone());
    if role == CallerRole::Owner { known_by.first_owner().to_owned() } else { LOCAL_USER.to_owned() }
}

/// Why the token that the configuration names is too weak for where it listens, if it is.
pub fn weak_token(config: &GatewayConfig, env: &Env) -> Option<BadSettings> {
    let name = config.token_env.as_deref()?;
    let token = env.vars.get(name)?.to_str()?;
    weak((name, token), &addresses(&config.listen).ok()?)
}

/// What is wrong with the `token` in the variable `name`, if others reach one of `addresses` and it is short.
fn weak((name, token): (&str, &str), addresses: &[Address]) -> Option<BadSettings> {
    let open = addresses.iter().find(|address| !address.is_local())?;
    let is_weak = !token.is_empty() && token.len() < MIN_TOKEN_BYTES;
    is_weak.then(|| BadSettings {
        message: format!(
            "the token in `{name}` has {} bytes, and {open} is reachable from other machines: whoever guesses it is an \
             administrator; expected at least {MIN_TOKEN_BYTES}",
            token.len()
        ),
        hint: "set it to a long random value, such as the output of `openssl rand -hex 32`".to_owned(),
    })
}

fn origin(public: Option<&Url>, encrypted: bool, address: &Address) -> Option<String> {
    if let Some(public) = public {
        return Some(public.origin().ascii_serialization());
    }
    let scheme = if encrypted { "https" } else { "http" };
    match address {
        // Every address of this machine is one that nobody can go to.
        Address::Network(all) if all.ip().is_unspecified() => Some(format!("{scheme}://localhost:{}", all.port())),
        Address::Network(one) => Some(format!("{scheme}://{one}")),
        Address::Unix(_) => None,
    }
}

pub(crate) fn addresses(written: &[String]) -> Result<Vec<Address>, BadSettings> {
    let addresses: Result<Vec<Address>, String> = written.iter().map(|text| Address::read(text)).collect();
    let hint = "for example `--listen 127.0.0.1:18790`".to_owned();
    let mut addresses = addresses.map_err(|message| BadSettings { message, hint })?;
    if addresses.is_empty() {
        addresses.push(Address::read(DEFAULT_ADDRESS).expect("it is an address"));
    }
    Ok(addresses)
}

impl GatewaySettings {
    /// Those of `config`, listening at `listen`, or where the configuration says if that is empty.
    ///
    /// # Errors
    /// An address is none, the variable of the token is not set, or an address that others reach would be open to all:
    /// there is no token, or a short one, and no API key if `has_keys` says so.
    pub fn new(config: &GatewayConfig, env: &Env, listen: &[String], has_keys: bool) -> Result<Self, BadSettings> {
        let bad = |message: String, hint: &str| BadSettings { message, hint: hint.to_owned() };
        let token = match &config.token_env {
            None => None,
            Some(name) => match env.vars.get(name).and_then(|value| value.to_str()).filter(|value| !value.is_empty()) {
                Some(token) => Some(token.to_owned()),
                None => {
                    let message = format!("`{name}`, which `gateway.token_env` names, is not set");
                    return Err(bad(
                        message,
                        "set it to a long random value, such as the output of `openssl rand -hex 32`",
                    ));
                }
            },
        };
        let written = if listen.is_empty() { &config.listen } else { listen };
        let addresses = addresses(written)?;
        if let Some(open) =
            addresses.iter().find(|address| !address.is_local()).filter(|_| token.is_none() && !has_keys)
        {
            return Err(bad(
                format!("{open} is reachable from other machines, and nothing authenticates callers"),
                "make a key with `pintle keys create NAME --owner USER --scope operator.write`, set `gateway.token_env` to \
                 the name of a variable with a secret, or listen at 127.0.0.1",
            ));
        }
        if let Some(weak) = config.token_env.as_deref().zip(token.as_deref()).and_then(|it| weak(it, &addresses)) {
            return Err(weak);
        }
        let metrics = config.http.metrics_listen.as_deref().map(Address::read).transpose();
        let metrics = metrics
            .map_err(|why| bad(format!("gateway.metrics_listen: {why}"), "write \"127.0.0.1:9464\", for instance"))?;
        Ok(Self {
            addresses,
            metrics,
            limits: config.http.clone(),
            doctor: None,
            agents: ForeignAgents::default(),
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
            requests_per_minute: config.requests_per_minute,
        })
    }

    /// Where people reach it who go to `address`.
    pub fn origin_of(&self, address: &Address) -> Option<String> {
        origin(self.door.public.as_ref(), self.tls.is_some(), address)
    }

    /// Whether somebody reaches an address without encryption whom no proxy brings.
    pub fn is_in_the_clear(&self) -> bool {
        self.tls.is_none() && self.door.proxies.is_empty() && self.addresses.iter().any(|address| !address.is_local())
    }
}
