//! The operator's exceptions.

use std::net::IpAddr;

use ipnet::IpNet;
use url::Host;

use super::range;

/// One exception of the allow-list.
///
/// A host entry opens the private and loopback addresses of that name; link-local, multicast and other special
/// addresses need a network entry. Without ports an entry opens the usual ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Allow {
    target: Target,
    ports: Vec<u16>,
    audience: Audience,
}

/// Whose hooks an entry counts for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Audience {
    /// Global hooks and the tenant [`DEFAULT_TENANT`].
    #[default]
    House,
    Everyone,
    Tenants(Vec<String>),
}

/// The tenant of a fresh installation, the operator's own: entries that name no tenants count for it.
const DEFAULT_TENANT: &str = "default";

/// The word for all tenants, and for global hooks.
const EVERYONE: &str = "*";

#[derive(Clone, Debug, PartialEq, Eq)]
enum Target {
    /// In the form in which a parsed URL holds it, without the trailing dot.
    Host(String),
    Network(IpNet),
}

/// An entry of the allow-list that is none.
#[derive(Debug, thiserror::Error)]
pub enum InvalidAllow {
    /// Not a host name.
    #[error("`{host}` is not a host name; write it as in a URL, without scheme and port")]
    Host {
        /// What was written.
        host: String,
        /// What is wrong with it.
        #[source]
        source: url::ParseError,
    },
    /// Not a network.
    #[error("`{cidr}` is not a network; write it like `10.1.0.0/16`, or a single address")]
    Cidr {
        /// What was written.
        cidr: String,
    },
    /// Not a list of tenants.
    #[error("`tenants` {0}; write slugs, or `[\"*\"]` for everyone, or leave it out for global hooks and `default`")]
    Tenants(&'static str),
}

impl Allow {
    /// An entry for a host name, or for an address that is treated like one. No ports mean the usual ones.
    ///
    /// # Errors
    /// When `host` could not stand in a URL.
    pub fn host(host: &str, ports: Vec<u16>) -> Result<Self, InvalidAllow> {
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let name = match bare.parse::<IpAddr>() {
            Ok(ip) => ip.to_string(),
            Err(_) => match Host::parse(host).map_err(|source| InvalidAllow::Host { host: host.into(), source })? {
                Host::Domain(name) => without_dot(&name).into(),
                Host::Ipv4(ip) => ip.to_string(),
                Host::Ipv6(ip) => ip.to_string(),
            },
        };
        Ok(Self { target: Target::Host(name), ports, audience: Audience::House })
    }

    /// An entry for a network, or for a single address. No ports mean the usual ones.
    ///
    /// # Errors
    /// When `cidr` is neither.
    pub fn cidr(cidr: &str, ports: Vec<u16>) -> Result<Self, InvalidAllow> {
        let network = cidr
            .parse()
            .or_else(|_| cidr.parse::<IpAddr>().map(IpNet::from))
            .map_err(|_| InvalidAllow::Cidr { cidr: cidr.into() })?;
        Ok(Self { target: Target::Network(network), ports, audience: Audience::House })
    }

    /// The entry for the hooks of these tenants only, by slug; `["*"]` is everyone, global hooks included.
    ///
    /// # Errors
    /// When the list is empty, has an empty slug, or has `*` beside others.
    pub fn for_tenants(self, tenants: &[String]) -> Result<Self, InvalidAllow> {
        let audience = match tenants {
            [] => return Err(InvalidAllow::Tenants("is empty, which opens nothing")),
            [one] if one == EVERYONE => Audience::Everyone,
            many if many.iter().any(|slug| slug == EVERYONE) => {
                return Err(InvalidAllow::Tenants("has `*` beside other tenants"));
            }
            many if many.iter().any(String::is_empty) => return Err(InvalidAllow::Tenants("has an empty slug")),
            many => Audience::Tenants(many.to_vec()),
        };
        Ok(Self { audience, ..self })
    }

    /// Whether the entry counts for the hooks of `tenant`; `None` are the global hooks.
    pub(super) fn is_for(&self, tenant: Option<&str>) -> bool {
        match &self.audience {
            Audience::House => tenant.is_none_or(|slug| slug == DEFAULT_TENANT),
            Audience::Everyone => true,
            Audience::Tenants(slugs) => tenant.is_some_and(|slug| slugs.iter().any(|have| have == slug)),
        }
    }

    /// Whether the entry opens `port`; `None` is a usual port that no entry names.
    pub(super) fn opens(&self, port: Option<u16>) -> bool {
        match port {
            _ if !self.ports.is_empty() => port.is_some_and(|port| self.ports.contains(&port)),
            Some(port) => range::usual_port(port),
            None => true,
        }
    }

    pub(super) fn names_port(&self, port: u16) -> bool {
        self.ports.contains(&port)
    }

    pub(super) fn ports(&self) -> &[u16] {
        &self.ports
    }

    pub(super) fn is_network(&self) -> bool {
        matches!(self.target, Target::Network(_))
    }

    /// Whether this is an entry for the host `name`, as a URL or the resolver spells it.
    pub(super) fn is_host(&self, name: &str) -> bool {
        match &self.target {
            Target::Host(host) => host.eq_ignore_ascii_case(without_dot(name)),
            Target::Network(_) => false,
        }
    }

    /// Whether this is an entry for a network that holds `ip`.
    pub(super) fn covers(&self, ip: IpAddr) -> bool {
        match &self.target {
            Target::Host(_) => false,
            Target::Network(network) => network.contains(&ip) || network.contains(&ip.to_canonical()),
        }
    }
}

/// `name` without the dot that makes it absolute: both spellings mean the same host.
fn without_dot(name: &str) -> &str {
    name.strip_suffix('.').unwrap_or(name)
}
