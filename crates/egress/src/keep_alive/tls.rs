//! TLS, by name.

use std::io;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use url::Host;

use crate::client::install_crypto;

/// Sets TLS up at the first need: plain addresses work on a machine without root certificates.
#[derive(Default)]
pub(super) struct Tls(OnceLock<Result<TlsConnector, rustls::Error>>);

impl Tls {
    /// With certificates of one's own choice.
    pub(super) fn of(config: ClientConfig) -> Self {
        Self(OnceLock::from(Ok(speaking_http1(config))))
    }

    /// Proves that whoever answers on `stream` is `host`: the name in the URL, not the address that was dialled.
    pub(super) async fn wrap(&self, host: &Host<&str>, stream: TcpStream) -> io::Result<TlsStream<TcpStream>> {
        let connector = self.0.get_or_init(|| Ok(speaking_http1(of_the_system()?))).as_ref();
        let connector = connector.map_err(|error| io::Error::other(format!("TLS cannot be set up: {error}")))?;
        connector.connect(server_name(host)?, stream).await
    }
}

fn of_the_system() -> Result<ClientConfig, rustls::Error> {
    install_crypto();
    Ok(ClientConfig::builder().with_platform_verifier()?.with_no_client_auth())
}

fn speaking_http1(mut config: ClientConfig) -> TlsConnector {
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    TlsConnector::from(Arc::new(config))
}

fn server_name(host: &Host<&str>) -> io::Result<ServerName<'static>> {
    match host {
        // Certificates know no dot at the end.
        Host::Domain(name) => ServerName::try_from(name.strip_suffix('.').unwrap_or(name).to_owned())
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error)),
        Host::Ipv4(ip) => Ok(IpAddr::from(*ip).into()),
        Host::Ipv6(ip) => Ok(IpAddr::from(*ip).into()),
    }
}
