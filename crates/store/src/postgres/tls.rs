//! How far the server is trusted: the words of `sslmode`, as PostgreSQL's own clients read them.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use tokio_postgres_rustls::MakeRustlsConnect;

/// Whether the way is encrypted, and whether the other end is who it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Trust {
    /// Never encrypted.
    Disable,
    /// Encrypted if the server can, whoever it is.
    Prefer,
    /// Encrypted, whoever it is.
    Require,
    /// Encrypted, and the server's certificate has to be good for its name.
    Verify {
        /// The file of the certificates that are trusted; without one, those of the system.
        roots: Option<String>,
    },
}

impl Trust {
    /// Reads `sslmode` and `sslrootcert`.
    pub(super) fn of(mode: Option<&str>, root: Option<String>) -> Result<Self, String> {
        let trust = match mode {
            // A certificate without a look at its name would only be half a check.
            Some("verify-full" | "verify-ca") => {
                return Ok(Self::Verify { roots: root.filter(|root| root != "system") });
            }
            None | Some("prefer") => Self::Prefer,
            Some("disable") => Self::Disable,
            Some("require") => Self::Require,
            Some(_) => {
                return Err("unknown `sslmode`, expected disable, prefer, require, verify-ca or verify-full".into());
            }
        };
        match root {
            Some(_) => Err("`sslrootcert` is of use with `sslmode=verify-full` only".into()),
            None => Ok(trust),
        }
    }
}

/// The connector that makes connections secret.
pub(super) fn connector(trust: &Trust) -> Result<MakeRustlsConnect, String> {
    let provider = Arc::new(ring::default_provider());
    let verifier: Arc<dyn ServerCertVerifier> = match trust {
        Trust::Disable | Trust::Prefer | Trust::Require => Arc::new(Anybody(provider.clone())),
        Trust::Verify { roots } => {
            WebPkiServerVerifier::builder_with_provider(trusted(roots.as_deref())?, provider.clone())
                .build()
                .map_err(|e| format!("the trusted certificates are of no use: {e}"))?
        }
    };
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|e| format!("TLS is not to be had: {e}"))?
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

fn trusted(file: Option<&str>) -> Result<Arc<RootCertStore>, String> {
    let mut roots = RootCertStore::empty();
    let found = match file {
        None => {
            let found = rustls_native_certs::load_native_certs();
            // One bad certificate among the system's is nothing to us, as long as there are others.
            roots.add_parsable_certificates(found.certs);
            "the system has no trusted certificates; name a file with `sslrootcert=FILE`".to_owned()
        }
        Some(file) => {
            let cannot = |e: &dyn std::fmt::Display| format!("`sslrootcert`: `{file}` cannot be read: {e}");
            for certificate in CertificateDer::pem_file_iter(file).map_err(|e| cannot(&e))? {
                roots.add(certificate.map_err(|e| cannot(&e))?).map_err(|e| cannot(&e))?;
            }
            format!("`sslrootcert`: `{file}` has no certificate")
        }
    };
    if roots.is_empty() { Err(found) } else { Ok(Arc::new(roots)) }
}

/// Takes any certificate that its owner has the key of: this keeps out who only listens.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
