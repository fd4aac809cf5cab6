//! What an outgoing URL may reach.
//!
//! An address is checked twice: [`Egress::check_url`] looks at the URL itself, literal addresses included, and every
//! answer of the one resolution whose addresses are then connected to is looked at. [`KeepAlive`] checks a third time,
//! when it connects. Redirects are handed back, never followed, and no proxy is used, not even one from the environment.
//!
//! An address that the user chose needs no guard: [`client_for`] makes its client.
//!
//! | module | holds |
//! |---|---|
//! | `allow`, `range` | the operator's exceptions; the addresses and ports closed by default |
//! | `resolve`, `connect` | name to checked addresses; addresses to socket |
//! | `client`, `keep_alive` | one request; kept connections that still cannot leave the guard |
//! | `departure` | whether any part of a request left this host |
//! | `chosen` | the client for an address that the user chose |

mod allow;
mod chosen;
mod client;
mod connect;
mod departure;
mod keep_alive;
mod range;
mod resolve;
pub mod sse;

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use url::{Host, Url};

pub use self::allow::{Allow, InvalidAllow};
pub use self::chosen::{NoClient, client_for};
pub use self::client::{Client, Timeouts};
pub use self::connect::{Dial, SystemDial};
pub use self::departure::Departure;
pub use self::keep_alive::{BodyError, HttpResponse, KeepAlive, SendError};
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
///
/// It is one audience's: at first that of global hooks, see [`Self::for_tenant`].
#[derive(Clone)]
pub struct Egress {
    /// Every entry of the operator, for all audiences.
    entries: Arc<[Allow]>,
    /// Those that count here.
    allow: Arc<[Allow]>,
    resolver: Arc<dyn Resolver>,
}

/// What the tables and the allow-list say of an address.
enum AddressVerdict {
    Open,
    Closed,
    /// Public: open unless it is one of this host's own.
    UnlessOwn,
}

impl Egress {
    /// A guard with the operator's exceptions, resolving as the system does. Those that were made for some tenants
    /// only do not count yet.
    pub fn new(entries: Vec<Allow>) -> Self {
        let entries: Arc<[Allow]> = entries.into();
        Self { allow: counting(&entries, None), entries, resolver: Arc::new(SystemResolver) }
    }

    /// The same guard with another source of addresses.
    #[must_use]
    pub fn with_resolver(self, resolver: Arc<dyn Resolver>) -> Self {
        Self { resolver, ..self }
    }

    /// The guard in front of the hooks of `tenant`, a slug; `None` are the global hooks, whoever's event it is.
    #[must_use]
    pub fn for_tenant(&self, tenant: Option<&str>) -> Self {
        Self { entries: self.entries.clone(), allow: counting(&self.entries, tenant), resolver: self.resolver.clone() }
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
        match self.first_closed(&host, &[ip], Some(port)) {
            Ok(None) => Ok(()),
            Ok(Some(ip)) => Err(EgressError::BlockedIp(ip)),
            Err(source) => Err(EgressError::Resolve { host, source }),
        }
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

    /// The first of `ips`, answers for `host` or `host` itself, that may not be connected to.
    ///
    /// `port` is `None` for a usual port that no entry names. This host's own addresses are read only if they
    /// matter, and then now.
    fn first_closed(&self, host: &str, ips: &[IpAddr], port: Option<u16>) -> io::Result<Option<IpAddr>> {
        let mut own = None;
        for &ip in ips {
            if !self.port_is_open(host, ip, port) {
                return Ok(Some(ip));
            }
            for led_to in std::iter::once(ip.to_canonical()).chain(range::embedded_v4(ip).map(IpAddr::from)) {
                let closed = match self.judge(host, led_to, port) {
                    AddressVerdict::Open => false,
                    AddressVerdict::Closed => true,
                    AddressVerdict::UnlessOwn => match &mut own {
                        Some(own) => own,
                        None => own.insert(self.resolver.own_addresses()?),
                    }
                    .contains(&led_to),
                };
                if closed {
                    return Ok(Some(ip));
                }
            }
        }
        Ok(None)
    }

    fn port_is_open(&self, host: &str, ip: IpAddr, port: Option<u16>) -> bool {
        port.is_none_or(range::usual_port) || self.host_is_named(host, port) || self.covers(ip.to_canonical(), port)
    }

    fn host_is_named(&self, host: &str, port: Option<u16>) -> bool {
        self.allow.iter().any(|entry| entry.opens(port) && entry.is_host(host))
    }

    fn covers(&self, ip: IpAddr, port: Option<u16>) -> bool {
        self.allow.iter().any(|entry| entry.opens(port) && entry.covers(ip))
    }

    /// What is known of the canonical `ip`, to which `host` leads, without looking at the interfaces.
    fn judge(&self, host: &str, ip: IpAddr, port: Option<u16>) -> AddressVerdict {
        match classify(ip) {
            _ if self.covers(ip, port) => AddressVerdict::Open,
            Reach::Public | Reach::Private if self.host_is_named(host, port) => AddressVerdict::Open,
            Reach::Public => AddressVerdict::UnlessOwn,
            Reach::Private | Reach::Special => AddressVerdict::Closed,
        }
    }

    /// Looks at one address again, just before it is connected to.
    fn check_again(&self, host: &Host<&str>, ip: IpAddr, port: u16) -> Result<(), EgressError> {
        let Host::Domain(name) = host else { return self.check_literal(ip, port) };
        let failed = |source| EgressError::Resolve { host: (*name).into(), source };
        match self.first_closed(name, &[ip], Some(port)).map_err(failed)? {
            Some(ip) => Err(EgressError::ResolvedBlocked { host: (*name).into(), ip }),
            None => Ok(()),
        }
    }

    /// Resolves `host` once; every answer must pass.
    async fn resolve(&self, host: &str, port: Option<u16>) -> Result<Vec<IpAddr>, EgressError> {
        let failed = |source| EgressError::Resolve { host: host.into(), source };
        let answers = self.resolver.resolve(host).await.map_err(failed)?;
        if answers.is_empty() {
            return Err(EgressError::NoAddresses(host.into()));
        }
        match self.first_closed(host, &answers, port).map_err(failed)? {
            Some(ip) => Err(EgressError::ResolvedBlocked { host: host.into(), ip }),
            None => Ok(answers),
        }
    }
}

/// Those of `entries` that count for the hooks of `tenant`.
fn counting(entries: &[Allow], tenant: Option<&str>) -> Arc<[Allow]> {
    entries.iter().filter(|entry| entry.is_for(tenant)).cloned().collect()
}

impl std::fmt::Debug for Egress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Egress").field("allow", &self.allow).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
