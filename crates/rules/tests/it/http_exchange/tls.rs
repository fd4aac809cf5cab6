//! TLS: whoever answers has to be who the URL names.

use std::sync::Arc;

use pintle_egress::{Allow, Egress, KeepAlive};
use pintle_rules::http::HttpSender;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ClientConfig, RootCertStore, ServerConfig};

use super::server::{Server, ok};
use super::{Names, fault, of, post};

/// A certificate for `name`, and a client configuration that trusts its issuer.
fn certified(name: &str) -> (ServerConfig, ClientConfig) {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut params = CertificateParams::new([]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let leaf = CertificateParams::new([name.to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
    let server = ServerConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions().unwrap();
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let server = server.with_no_client_auth().with_single_cert(vec![leaf.der().clone()], key).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(issuer.der().clone()).unwrap();
    let client = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    (server, client.with_root_certificates(roots).with_no_client_auth())
}

fn exchange(server: &Server, trust: Option<ClientConfig>) -> HttpSender {
    let allow = vec![Allow::cidr("127.0.0.1", vec![server.at.port()]).unwrap()];
    let client = KeepAlive::new(Egress::new(allow).with_resolver(Names::of(&[&["127.0.0.1"]])));
    of(match trust {
        Some(trust) => client.with_tls(trust),
        None => client,
    })
    .0
}

#[tokio::test]
async fn the_name_in_the_url_is_proved_and_the_connection_is_kept() {
    let (serving, trust) = certified("hooks.example");
    let server = Server::start_tls(serving, |_| ok("{}")).await;
    let exchange = exchange(&server, Some(trust));
    let port = server.at.port();
    for host in ["hooks.example", "HOOKS.example", "hooks.example"] {
        post(&exchange, &format!("https://{host}:{port}/")).await.unwrap();
    }
    assert_eq!(server.connections(), [0, 0, 0]);
    // The dot at the end belongs to the name that is resolved, not to the one that is certified.
    post(&exchange, &format!("https://hooks.example.:{port}/")).await.unwrap();
    // Another name of the same address, and the address itself, are not certified.
    for host in ["other.example", "127.0.0.1"] {
        let text = fault(post(&exchange, &format!("https://{host}:{port}/")).await);
        assert!(text.starts_with(&format!("no connection to `{host}`: invalid peer certificate")), "{text}");
    }
    assert_eq!(server.connections(), [0, 0, 0, 1]);
}

#[tokio::test]
async fn a_certificate_that_the_system_does_not_know_is_refused() {
    let (serving, _) = certified("hooks.example");
    let server = Server::start_tls(serving, |_| ok("{}")).await;
    let exchange = exchange(&server, None);
    let text = fault(post(&exchange, &format!("https://hooks.example:{}/", server.at.port())).await);
    assert!(text.starts_with("no connection to `hooks.example`: "), "{text}");
    assert_eq!(server.log().seen.len(), 0);
}
