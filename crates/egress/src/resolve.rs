//! From names to checked addresses.

use std::io;
use std::net::{IpAddr, SocketAddr};

use futures_util::future::BoxFuture;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::Egress;

/// Where addresses come from. Tests bring their own.
pub trait Resolver: Send + Sync {
    /// All addresses of `host`.
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;

    /// Every address of this host's interfaces; read anew for each connection.
    ///
    /// # Errors
    /// When they cannot be read: then nothing is connected to.
    fn own_addresses(&self) -> io::Result<Vec<IpAddr>>;
}

/// The system's resolver and interfaces.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

impl Resolver for SystemResolver {
    fn resolve<'a>(&'a self, host: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        // The port is of no use to the lookup; the connection takes it from the URL.
        Box::pin(async move { Ok(tokio::net::lookup_host((host, 0)).await?.map(|at| at.ip()).collect()) })
    }

    fn own_addresses(&self) -> io::Result<Vec<IpAddr>> {
        let interfaces = nix::ifaddrs::getifaddrs()?;
        Ok(interfaces
            .filter_map(|interface| interface.address)
            .filter_map(|address| {
                let v4 = address.as_sockaddr_in().map(|at| IpAddr::from(at.ip()));
                v4.or_else(|| address.as_sockaddr_in6().map(|at| IpAddr::from(at.ip())))
            })
            .collect())
    }
}

/// The guard as the HTTP client's resolver, for connections to one port.
pub(super) struct Pinned {
    pub(super) egress: Egress,
    /// `None`: a usual port that no entry of the allow-list names.
    pub(super) port: Option<u16>,
}

impl Resolve for Pinned {
    fn resolve(&self, name: Name) -> Resolving {
        let (egress, port) = (self.egress.clone(), self.port);
        Box::pin(async move {
            let addresses = egress.resolve(name.as_str(), port).await?;
            // Port 0 stands for the port of the URL.
            Ok(Box::new(addresses.into_iter().map(|ip| SocketAddr::new(ip, 0))) as Addrs)
        })
    }
}
