//! An HTTP client that cannot leave the guard.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use reqwest::{Method, RequestBuilder};

use super::resolve::Pinned;
use super::{Egress, EgressError};

/// How long a request may take.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// From the name to the open connection, TLS included.
    pub connect: Duration,
    /// From start to the end of the body. A request can set its own.
    pub total: Duration,
}

/// A client behind an [`Egress`]. It follows no redirect, uses no proxy, retries nothing and keeps no connection:
/// each request resolves and pins anew.
#[derive(Clone)]
pub struct Client {
    egress: Egress,
    usual: reqwest::Client,
    /// For each port that an entry of the allow-list names: a resolver is told the name, never the port,
    /// and an entry counts for its ports only.
    named_ports: Arc<BTreeMap<u16, reqwest::Client>>,
}

impl Client {
    /// Starts a request. This is the only way to one, so that literal addresses, which bypass the resolver, are checked.
    ///
    /// # Errors
    /// The first rule that the URL breaks.
    pub fn request(&self, method: Method, url: &str) -> Result<RequestBuilder, EgressError> {
        let url = self.egress.check_url(url)?;
        let port = url.port_or_known_default().unwrap_or_default();
        Ok(self.named_ports.get(&port).unwrap_or(&self.usual).request(method, url))
    }

    /// The guard in front.
    pub fn egress(&self) -> &Egress {
        &self.egress
    }
}

impl Egress {
    /// A client whose connections all pass this guard.
    ///
    /// # Errors
    /// When the TLS part cannot be set up.
    pub fn client(&self, timeouts: Timeouts) -> Result<Client, EgressError> {
        let ports = self.allow.iter().flat_map(|entry| entry.ports().iter().copied());
        let named_ports =
            ports.map(|port| Ok((port, self.pinned(timeouts, Some(port))?))).collect::<Result<_, EgressError>>()?;
        let usual = self.pinned(timeouts, None)?;
        Ok(Client { egress: self.clone(), usual, named_ports: Arc::new(named_ports) })
    }

    fn pinned(&self, timeouts: Timeouts, port: Option<u16>) -> Result<reqwest::Client, EgressError> {
        install_crypto();
        reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .retry(reqwest::retry::never())
            // A kept or shared connection would carry a request to an address that was checked for another one.
            .pool_max_idle_per_host(0)
            .http1_only()
            .referer(false)
            .connect_timeout(timeouts.connect)
            .timeout(timeouts.total)
            .dns_resolver(Arc::new(Pinned { egress: self.clone(), port }))
            .build()
            .map_err(EgressError::Client)
    }
}

/// Chooses the process's TLS library, unless somebody already has.
pub(super) fn install_crypto() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // An error means that another thread was faster, with a choice that is as good.
        drop(rustls::crypto::ring::default_provider().install_default());
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("egress", &self.egress).finish_non_exhaustive()
    }
}
