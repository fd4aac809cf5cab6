//! What an outgoing URL may reach.
//!
//! An address is checked twice: [`Egress::check_url`] looks at the URL itself, literal addresses included, and the
//! resolver of the [`Client`] looks at every answer of the one resolution whose addresses are then connected to.
//! Redirects are handed back, never followed, and no proxy is used, not even one from the environment.

mod allow;
mod client;
mod range;
mod resolve;

use std::net::IpAddr;
use std::sync::Arc;

use url::{Host, Url};

pub use self::allow::{Allow, InvalidAllow};
pub use self::client::{Client, Timeouts};
pub use self::range::{Reach, classify};
pub use self::resolve::{Resolver, SystemResolver};

/// Why a URL may not be reached. The texts are part of the protocol: hooks' users read and match them.
#[derive(Debug, thiserror::Error)]
pub enum EgressError {
    /// The text is not a URL.
    #[error("ssrf: parse url")]
    Parse(#[source] url::ParseError),
    /// Neither http nor https.
    #[error("ssrf: scheme \"{0}\" not allowed (only http/https)")]
    Scheme(String),
    /// There is no host.
    #[error("ssrf: empty host")]
    EmptyHost,
    /// The URL carries a user name or a password.
    #[error("ssrf: credentials in url")]
    Credentials,
    /// The port is neither 80, 443 nor a harmless one from 1024 up.
    #[error("ssrf: port {0} not allowed")]
    Port(u16),
    /// The host is an address, and a blocked one.
    #[error("ssrf: IP {0} is in a blocked range")]
    BlockedIp(IpAddr),
    /// The name could not be resolved, or this host's own addresses could not be read.
    #[error("ssrf: resolve \"{host}\"")]
    Resolve {
        /// The name that was asked for.
        host: String,
        /// What went wrong.
        #[source]
        source: std::io::Error,
    },
    /// The name has no addresses.
    #[error("ssrf: \"{0}\" resolved to no addresses")]
    NoAddresses(String),
    /// At least one of the name's addresses is blocked.
    #[error("ssrf: \"{host}\" resolved to blocked IP {ip}")]
    ResolvedBlocked {
        /// The name that was asked for.
        host: String,
        /// The first answer that is blocked.
        ip: IpAddr,
    },
    /// The HTTP client could not be built, for instance for want of root certificates.
    #[error("build http client: {0}")]
    Client(#[source] reqwest::Error),
}

impl EgressError {
    /// The guard's refusal inside a failed request, if that is why it failed.
    pub fn of(error: &reqwest::Error) -> Option<&Self> {
        let mut next: Option<&(dyn std::error::Error + 'static)> = Some(error);
        while let Some(error) = next {
            if let Some(found) = error.downcast_ref::<Self>() {
                return Some(found);
            }
            next = error.source();
        }
        None
    }
}

/// The guard: the blocked ranges, less what the operator allowed.
#[derive(Clone)]
pub struct Egress {
    allow: Arc<[Allow]>,
    resolver: Arc<dyn Resolver>,
}

impl Egress {
    /// A guard with the operator's exceptions, resolving as the system does.
    pub fn new(allow: Vec<Allow>) -> Self {
        Self { allow: allow.into(), resolver: Arc::new(SystemResolver) }
    }

    /// The same guard with another source of addresses.
    #[must_use]
    pub fn with_resolver(self, resolver: Arc<dyn Resolver>) -> Self {
        Self { resolver, ..self }
    }

    /// Parses `url` as browsers do and checks all that can be known without resolving a name.
    ///
    /// # Errors
    /// The first rule that the URL breaks.
    pub fn check_url(&self, url: &str) -> Result<Url, EgressError> {
        let url = Url::parse(url).map_err(|e| {
            if e == url::ParseError::EmptyHost { EgressError::EmptyHost } else { EgressError::Parse(e) }
        })?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(EgressError::Scheme(url.scheme().into()));
        }
        let host = url.host().ok_or(EgressError::EmptyHost)?;
        if !url.username().is_empty() || url.password().is_some() {
            return Err(EgressError::Credentials);
        }
        let port = url.port_or_known_default().ok_or(EgressError::Port(0))?;
        if !range::usual_port(port) && !self.port_is_named(&host, port) {
            return Err(EgressError::Port(port));
        }
        match host {
            Host::Domain(_) => {}
            Host::Ipv4(ip) => self.check_literal(ip.into(), port)?,
            Host::Ipv6(ip) => self.check_literal(ip.into(), port)?,
        }
        Ok(url)
    }

    fn check_literal(&self, ip: IpAddr, port: u16) -> Result<(), EgressError> {
        let host = ip.to_string();
        let own =
            self.resolver.own_addresses().map_err(|source| EgressError::Resolve { host: host.clone(), source })?;
        if self.admits(&host, ip, Some(port), &own) { Ok(()) } else { Err(EgressError::BlockedIp(ip)) }
    }

    /// Whether an entry that may cover `host` names this port. For a name, which entry applies is known only
    /// when it is resolved, and the resolver then insists on an entry that covers the answer *and* the port.
    fn port_is_named(&self, host: &Host<&str>, port: u16) -> bool {
        self.allow.iter().any(|entry| {
            entry.names_port(port)
                && match host {
                    Host::Domain(name) => entry.is_network() || entry.is_host(name),
                    Host::Ipv4(ip) => entry.covers((*ip).into()) || entry.is_host(&ip.to_string()),
                    Host::Ipv6(ip) => entry.covers((*ip).into()) || entry.is_host(&ip.to_string()),
                }
        })
    }

    /// Whether `ip`, an answer for `host` or `host` itself, may be connected to.
    ///
    /// `port` is `None` for a usual port that no entry names.
    fn admits(&self, host: &str, ip: IpAddr, port: Option<u16>, own: &[IpAddr]) -> bool {
        let by_host = self.allow.iter().any(|entry| entry.opens(port) && entry.is_host(host));
        let by_network = |ip: IpAddr| self.allow.iter().any(|entry| entry.opens(port) && entry.covers(ip));
        let in_range = |ip: IpAddr| {
            let ip = ip.to_canonical();
            by_network(ip)
                || match classify(ip) {
                    Reach::Public => by_host || !own.contains(&ip),
                    Reach::Private => by_host,
                    Reach::Special => false,
                }
        };
        let port_is_open = port.is_none_or(range::usual_port) || by_host || by_network(ip.to_canonical());
        port_is_open && in_range(ip) && range::embedded_v4(ip).is_none_or(|v4| in_range(v4.into()))
    }

    /// Resolves `host` once; every answer must pass.
    async fn resolve(&self, host: &str, port: Option<u16>) -> Result<Vec<IpAddr>, EgressError> {
        let failed = |source| EgressError::Resolve { host: host.into(), source };
        let answers = self.resolver.resolve(host).await.map_err(failed)?;
        if answers.is_empty() {
            return Err(EgressError::NoAddresses(host.into()));
        }
        let own = self.resolver.own_addresses().map_err(failed)?;
        match answers.iter().find(|ip| !self.admits(host, **ip, port, &own)) {
            Some(&ip) => Err(EgressError::ResolvedBlocked { host: host.into(), ip }),
            None => Ok(answers),
        }
    }
}

impl std::fmt::Debug for Egress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Egress").field("allow", &self.allow).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
