//! The client under a streamable HTTP connection.

use std::net::IpAddr;
use std::time::Duration;

use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use url::Url;

use self::exact::Exact;
use super::shared::describe;
use crate::wire::MAX_LINE_BYTES;

pub(super) mod exact;

/// How long a connection may take to be made; a server that is there answers within a round trip.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A connection to the server at `url`, which is not made before the first message.
pub(super) fn open(url: &str) -> Result<StreamableHttpClientTransport<Exact>, String> {
    let parsed = Url::parse(url).map_err(|error| format!("`{url}` is no URL: {error}"))?;
    if !matches!(parsed.scheme(), "http" | "https") || parsed.host_str().is_none() {
        return Err(format!("`{url}` cannot be reached: expected `http://…` or `https://…`"));
    }
    let mut config = StreamableHttpClientTransportConfig::with_uri(parsed.as_str());
    config.max_sse_event_size = MAX_LINE_BYTES;
    Ok(StreamableHttpClientTransport::with_client(Exact(client(&parsed)?), config))
}

/// A client that follows no redirects: what a server gets to see goes nowhere else.
fn client(url: &Url) -> Result<reqwest::Client, String> {
    // Fails only if the process has a TLS provider already, and any will do.
    drop(rustls::crypto::ring::default_provider().install_default());
    let mut builder = reqwest::Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("pintle/", env!("CARGO_PKG_VERSION")));
    if is_loopback(url) {
        builder = builder.no_proxy();
    }
    if url.scheme() == "http" {
        // Without TLS it does not matter whether the system has root certificates.
        builder = builder.tls_certs_only([]);
    }
    builder
        .build()
        .map_err(|error| format!("no HTTP client: {}; install the system's root certificates", describe(&error)))
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || bare.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_url_is_taken_or_explained() {
        let check = |url: &str| open(url).err().unwrap_or_default();
        assert_eq!(check("http://127.0.0.1:9/mcp"), "");
        assert_eq!(check("ftp://host/"), "`ftp://host/` cannot be reached: expected `http://…` or `https://…`");
        assert_eq!(check("host"), "`host` is no URL: relative URL without a base");
    }
}
