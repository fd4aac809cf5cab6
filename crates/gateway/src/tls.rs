//! The certificate, and the next one: its files are looked at now and then, so a renewed one needs no restart.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pintle_host::config::TlsFiles;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use crate::BadSettings;

/// How often the files are looked at: whoever renews a certificate does so weeks before it ends.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// Encrypts connections with what the files hold.
pub(crate) struct Tls {
    files: TlsFiles,
    current: Mutex<Current>,
}

struct Current {
    acceptor: TlsAcceptor,
    seen: [Option<Stamp>; 2],
}

/// What tells a file from the one that took its place, links followed.
type Stamp = (u64, u64, i64, i64, u64);

impl Tls {
    /// Reads `files`.
    ///
    /// # Errors
    /// A file cannot be read, or what is in it is no certificate with its key.
    pub(crate) fn open(files: &TlsFiles) -> Result<Arc<Self>, BadSettings> {
        let seen = stamps(files);
        let current = Current { acceptor: acceptor(files)?, seen };
        Ok(Arc::new(Self { files: files.clone(), current: Mutex::new(current) }))
    }

    /// What encrypts the next connection.
    pub(crate) fn acceptor(&self) -> TlsAcceptor {
        self.current().acceptor.clone()
    }

    /// Reads the files whenever they are others, until `stop`. What cannot be used is said, and the one before stays.
    pub(crate) async fn follow(self: Arc<Self>, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(LOOK_EVERY) => {}
                () = stop.cancelled() => return,
            }
            let tls = self.clone();
            if let Err(error) = tokio::task::spawn_blocking(move || tls.look()).await {
                tracing::warn!(%error, "the certificate files could not be checked");
            }
        }
    }

    fn look(&self) {
        let seen = stamps(&self.files);
        if self.current().seen == seen {
            return;
        }
        match acceptor(&self.files) {
            Ok(acceptor) => {
                *self.current() = Current { acceptor, seen };
                tracing::info!("the new certificate is in use");
            }
            Err(why) => {
                // Both files change, one after the other: it is said again only if they are others once more.
                self.current().seen = seen;
                tracing::warn!("the new certificate is not in use: {why}; the one before goes on");
            }
        }
    }

    fn current(&self) -> MutexGuard<'_, Current> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn stamps(files: &TlsFiles) -> [Option<Stamp>; 2] {
    let stamp = |file: &Path| {
        let found = std::fs::metadata(file).ok()?;
        Some((found.dev(), found.ino(), found.mtime(), found.mtime_nsec(), found.size()))
    };
    [stamp(&files.cert), stamp(&files.key)]
}

/// What encrypts connections with the certificate of `files`.
fn acceptor(files: &TlsFiles) -> Result<TlsAcceptor, BadSettings> {
    let bad = |file: &Path, why: String| BadSettings {
        message: format!("gateway.tls: {}: {why}", file.display()),
        hint: "`cert` is a chain of certificates in PEM, `key` its private key".to_owned(),
    };
    let chain = CertificateDer::pem_file_iter(&files.cert).and_then(|all| all.collect::<Result<Vec<_>, _>>());
    let chain = chain.map_err(|error| bad(&files.cert, error.to_string()))?;
    let key = PrivateKeyDer::from_pem_file(&files.key).map_err(|error| bad(&files.key, error.to_string()))?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.map_err(|error| bad(&files.cert, error.to_string()))?.with_no_client_auth();
    let mut config = config.with_single_cert(chain, key).map_err(|error| bad(&files.cert, error.to_string()))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
