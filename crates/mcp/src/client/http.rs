//! The client under a streamable HTTP connection.

use std::time::Duration;

use pintle_domain::shown_url::shown_url;
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use url::Url;

use self::exact::Exact;

use crate::wire::MAX_LINE_BYTES;

pub(super) mod exact;

/// How long a connection may take to be made; a server that is there answers within a round trip.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A connection to the server at `url`, which is not made before the first message.
pub(super) fn open(url: &str) -> Result<StreamableHttpClientTransport<Exact>, String> {
    let parsed = Url::parse(url).map_err(|error| format!("`{}` is not a URL: {error}", shown_url(url)))?;
    if !matches!(parsed.scheme(), "http" | "https") || parsed.host_str().is_none() {
        return Err(format!("`{}` cannot be reached: expected `http://…` or `https://…`", shown_url(url)));
    }
    // What a server gets to see goes nowhere else: the client follows no redirect.
    let client = pintle_egress::client_for(&parsed, CONNECT_TIMEOUT, None)
        .map_err(|error| format!("no HTTP client: {error}"))?;
    let mut config = StreamableHttpClientTransportConfig::with_uri(parsed.as_str());
    config.max_sse_event_size = MAX_LINE_BYTES;
    Ok(StreamableHttpClientTransport::with_client(Exact::new(client), config))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_url_is_taken_or_explained() {
        let check = |url: &str| open(url).err().unwrap_or_default();
        assert_eq!(check("http://127.0.0.1:9/mcp"), "");
        assert_eq!(check("ftp://host/"), "`ftp://host/` cannot be reached: expected `http://…` or `https://…`");
        assert_eq!(check("host"), "`host` is not a URL: relative URL without a base");
    }
}
