//! A client for one address that the user chose: a provider, a tool server, a collector.

use std::net::IpAddr;
use std::time::Duration;

use url::Url;

use crate::client::install_crypto;

/// No client can be made.
#[derive(Debug, thiserror::Error)]
#[error("{cause}; install the system's root certificates")]
pub struct NoClient {
    /// Why, without what stands around it.
    cause: String,
}

impl NoClient {
    /// Why, without what to do.
    pub fn cause(&self) -> &str {
        &self.cause
    }
}

/// A client for the address `url`, which the user chose, so that no guard stands before it.
///
/// It follows no redirect, so that a key reaches no other host. It uses the proxies that the environment names, except
/// for an address of this very machine, which no proxy can reach. TLS is rustls with ring and the system's root
/// certificates; for a plain `http` address they are not even loaded, so a bare machine can talk to a local server.
/// `connect` is the longest time for a connection to stand, `total` for a whole answer; without it an answer may go on.
///
/// # Errors
/// There are no root certificates for an `https` address.
pub fn client_for(url: &Url, connect: Duration, total: Option<Duration>) -> Result<reqwest::Client, NoClient> {
    install_crypto();
    let mut builder = reqwest::Client::builder()
        .connect_timeout(connect)
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("pintle/", env!("CARGO_PKG_VERSION")));
    if let Some(total) = total {
        builder = builder.timeout(total);
    }
    if is_loopback(url) {
        builder = builder.no_proxy();
    }
    if url.scheme() == "http" {
        builder = builder.tls_certs_only([]);
    }
    builder.build().map_err(|error| {
        let source = std::error::Error::source(&error);
        NoClient { cause: source.map_or_else(|| error.to_string(), ToString::to_string) }
    })
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_loopback() {
        let table = [
            ("http://127.0.0.1:1", true),
            ("http://127.9.9.9", true),
            ("http://[::1]:1", true),
            ("http://localhost", true),
            ("http://localhost.example.org", false),
            ("http://10.0.0.1", false),
        ];
        for (url, expected) in table {
            assert_eq!(is_loopback(&url.parse().unwrap()), expected, "{url}");
        }
    }
}
