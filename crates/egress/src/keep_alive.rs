//! An HTTP client that keeps connections and still cannot leave the guard.

mod connection;
mod pool;
mod relay;
mod tls;

use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt as _, Full};
use hyper::body::{Body as _, Incoming};
use hyper::header::{HOST, HeaderMap, HeaderValue};
use hyper::{Method, Request};
use url::{Host, Position, Url};

use self::connection::{Connection, NoResponse};
use self::pool::{Pool, Target};
use self::tls::Tls;
use super::connect::{self, ConnectError, Dial, SystemDial};
use super::{Egress, EgressError};

/// Why a request had no response. The texts name no secret: neither headers nor the query.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// The guard says no.
    #[error(transparent)]
    Refused(#[from] EgressError),
    /// The URL or a header cannot be written in HTTP.
    #[error("the request cannot be written: {0}")]
    Unwritable(#[source] hyper::http::Error),
    /// There is no connection.
    #[error("no connection to `{host}`: {source}")]
    Unconnected {
        /// The host of the URL.
        host: String,
        /// What went wrong.
        #[source]
        source: io::Error,
    },
    /// The connection broke before the head of the response was there.
    #[error("the connection to `{host}` broke before the response: {source}")]
    Broken {
        /// The host of the URL.
        host: String,
        /// What went wrong.
        #[source]
        source: hyper::Error,
    },
    /// What came back is no HTTP.
    #[error("the response of `{host}` is not HTTP: {source}")]
    NotHttp {
        /// The host of the URL.
        host: String,
        /// What is wrong with it.
        #[source]
        source: hyper::Error,
    },
}

/// Why a body could not be read.
#[derive(Debug, thiserror::Error)]
pub enum BodyError {
    /// It ended before its end.
    #[error("truncated body")]
    Truncated(#[source] hyper::Error),
    /// It is longer than wanted.
    #[error("body over {max_bytes} bytes")]
    TooLarge {
        /// What was wanted.
        max_bytes: usize,
    },
}

/// A client behind an [`Egress`]. It follows no redirect, uses no proxy and retries nothing.
///
/// Each request resolves and checks anew. It may then go out over a kept connection, but only over one that was
/// opened for the same scheme, host and port to one of the addresses that were checked just now; opening one checks
/// its address again. Clones, and clients [for another guard](Self::guarded_by), share the connections.
#[derive(Clone)]
pub struct KeepAlive {
    egress: Egress,
    dial: Arc<dyn Dial>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    tls: Tls,
    pool: Mutex<Pool<Connection>>,
}

impl Shared {
    fn pool(&self) -> std::sync::MutexGuard<'_, Pool<Connection>> {
        // No code that can panic runs while it is held.
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A response whose head has come. Dropping it closes its connection; reading its body keeps the connection.
pub struct HttpResponse {
    status: u16,
    headers: HeaderMap,
    body: Incoming,
    connection: Connection,
    target: Target,
    shared: Arc<Shared>,
}

/// A request, ready for its connection.
struct Outgoing<'a> {
    url: &'a Url,
    host: Host<&'a str>,
    target: Target,
    ips: Vec<IpAddr>,
}

impl KeepAlive {
    /// A client behind `egress`, with the system's sockets and root certificates.
    pub fn new(egress: Egress) -> Self {
        Self { egress, dial: Arc::new(SystemDial), shared: Arc::default() }
    }

    /// The same client, opening its sockets in another way, and with no connections yet.
    #[must_use]
    pub fn with_dial(self, dial: Arc<dyn Dial>) -> Self {
        Self { dial, shared: Arc::default(), ..self }
    }

    /// The same client with certificates of one's own choice, and with no connections yet.
    #[must_use]
    pub fn with_tls(self, config: rustls::ClientConfig) -> Self {
        Self { shared: Arc::new(Shared { tls: Tls::of(config), pool: Mutex::default() }), ..self }
    }

    /// The same client and connections behind another guard.
    #[must_use]
    pub fn guarded_by(&self, egress: Egress) -> Self {
        Self { egress, ..self.clone() }
    }

    /// The guard in front.
    pub fn egress(&self) -> &Egress {
        &self.egress
    }

    /// Sends one POST and waits for the head of its response. `headers` may not frame the message or name the host.
    ///
    /// # Errors
    /// Why there is no response.
    pub async fn post(&self, url: &str, headers: HeaderMap, body: Bytes) -> Result<HttpResponse, SendError> {
        let url = self.egress.check_url(url)?;
        let outgoing = self.resolve(&url).await?;
        let mut request = written(&outgoing, headers, body).map_err(SendError::Unwritable)?;
        while let Some(mut connection) = self.kept(&outgoing) {
            match connection.send(request).await {
                Ok(response) => return Ok(self.answer(outgoing, connection, response)),
                // The server had let go of it: this was not an attempt.
                Err(NoResponse::Unsent(unsent)) => request = *unsent,
                Err(NoResponse::Lost(error)) => return Err(outgoing.lost(error)),
            }
        }
        let mut connection = self.connect(&outgoing).await?;
        match connection.send(request).await {
            Ok(response) => Ok(self.answer(outgoing, connection, response)),
            Err(NoResponse::Unsent(_)) => Err(outgoing.unconnected(io::ErrorKind::ConnectionReset.into())),
            Err(NoResponse::Lost(error)) => Err(outgoing.lost(error)),
        }
    }

    /// The one resolution of a request; every address in it has passed.
    async fn resolve<'a>(&self, url: &'a Url) -> Result<Outgoing<'a>, EgressError> {
        let host = url.host().ok_or(EgressError::EmptyHost)?;
        let port = url.port_or_known_default().ok_or(EgressError::Port(0))?;
        let ips = match host {
            Host::Domain(name) => self.egress.resolve(name, Some(port)).await?,
            // The check of the URL was theirs.
            Host::Ipv4(ip) => vec![ip.into()],
            Host::Ipv6(ip) => vec![ip.into()],
        };
        let target = Target { https: url.scheme() == "https", host: host.to_string(), port };
        Ok(Outgoing { url, host, target, ips })
    }

    fn kept(&self, outgoing: &Outgoing<'_>) -> Option<Connection> {
        loop {
            let mut connection = self.shared.pool().take(&outgoing.target, &outgoing.ips, Instant::now())?;
            if connection.is_usable() {
                return Some(connection);
            }
        }
    }

    async fn connect(&self, outgoing: &Outgoing<'_>) -> Result<Connection, SendError> {
        let Outgoing { host, target, ips, .. } = outgoing;
        let socket = connect::connect((&self.egress, &*self.dial), host, ips, target.port).await;
        let socket = socket.map_err(|why| match why {
            ConnectError::Refused(refusal) => SendError::Refused(refusal),
            ConnectError::Failed(error) => outgoing.unconnected(error),
        })?;
        let tls = target.https.then_some(&self.shared.tls);
        Connection::open(socket, host, tls).await.map_err(|error| outgoing.unconnected(error))
    }

    fn answer(
        &self,
        outgoing: Outgoing<'_>,
        connection: Connection,
        response: hyper::Response<Incoming>,
    ) -> HttpResponse {
        let (head, body) = response.into_parts();
        let (status, headers) = (head.status.as_u16(), head.headers);
        HttpResponse { status, headers, body, connection, target: outgoing.target, shared: self.shared.clone() }
    }
}

impl Outgoing<'_> {
    fn unconnected(&self, source: io::Error) -> SendError {
        SendError::Unconnected { host: self.target.host.clone(), source }
    }

    fn lost(&self, source: hyper::Error) -> SendError {
        let host = self.target.host.clone();
        if source.is_parse() { SendError::NotHttp { host, source } } else { SendError::Broken { host, source } }
    }
}

fn written(
    outgoing: &Outgoing<'_>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Request<Full<Bytes>>, hyper::http::Error> {
    let url = outgoing.url;
    let mut request = Request::builder()
        .method(Method::POST)
        .uri(&url[Position::BeforePath..Position::AfterQuery])
        .body(Full::new(body))?;
    *request.headers_mut() = headers;
    request.headers_mut().insert(HOST, HeaderValue::from_str(&url[Position::BeforeHost..Position::AfterPort])?);
    Ok(request)
}

impl HttpResponse {
    /// The status code.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The headers, as they came.
    pub fn headers(&self) -> &HeaderMap {
        &self.headers
    }

    /// Reads the whole body, and keeps the connection for another request if the server does.
    ///
    /// # Errors
    /// When the body is cut off or longer than `max_bytes`.
    pub async fn body(mut self, max_bytes: usize) -> Result<Bytes, BodyError> {
        let too_large = BodyError::TooLarge { max_bytes };
        if self.body.size_hint().lower() > max_bytes as u64 {
            return Err(too_large);
        }
        let mut whole = Bytes::new();
        let mut parts = BytesMut::new();
        while let Some(frame) = self.connection.drive(self.body.frame()).await {
            let Ok(data) = frame.map_err(BodyError::Truncated)?.into_data() else { continue };
            if whole.len() + parts.len() + data.len() > max_bytes {
                return Err(too_large);
            }
            if whole.is_empty() && parts.is_empty() {
                whole = data;
            } else {
                parts.extend_from_slice(&std::mem::take(&mut whole));
                parts.extend_from_slice(&data);
            }
        }
        if self.connection.is_open() {
            let ip = self.connection.ip;
            self.shared.pool().put(self.target, ip, self.connection, Instant::now());
        }
        Ok(if parts.is_empty() { whole } else { parts.freeze() })
    }
}

impl std::fmt::Debug for KeepAlive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeepAlive").field("egress", &self.egress).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for HttpResponse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Answer").field("status", &self.status).finish_non_exhaustive()
    }
}
