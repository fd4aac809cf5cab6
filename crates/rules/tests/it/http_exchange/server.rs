//! An HTTP/1.1 server on loopback that keeps connections, answers byte for byte, and counts.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};

use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

/// What to do with a request.
#[derive(Clone)]
pub(crate) enum Do {
    /// Writes these bytes and waits for the next request.
    Say(Vec<u8>),
    /// Writes these bytes and closes.
    SayAndClose(Vec<u8>),
    /// Says nothing, until the client goes.
    Nothing,
}

/// A request, as it came.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// Which connection it came over, from 0.
    pub(crate) connection: usize,
    /// The request line.
    pub(crate) line: String,
    /// Names in lower case, in their order.
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Seen {
    /// All values of this header.
    pub(crate) fn all(&self, name: &str) -> Vec<&str> {
        self.headers.iter().filter(|(have, _)| have == name).map(|(_, value)| value.as_str()).collect()
    }
}

/// What happened so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct Log {
    pub(crate) opened: usize,
    pub(crate) closed: usize,
    pub(crate) seen: Vec<Seen>,
}

type Script = Arc<Mutex<dyn FnMut(&Seen) -> Do + Send>>;

/// The server; dropping it closes every connection.
pub(crate) struct Server {
    pub(crate) at: SocketAddr,
    log: watch::Sender<Log>,
    _tasks: JoinSet<()>,
}

impl Server {
    /// A server that does what `script` says to each request.
    pub(crate) async fn start(script: impl FnMut(&Seen) -> Do + Send + 'static) -> Self {
        Self::listen("127.0.0.1:0", None, script).await
    }

    /// The same behind TLS.
    pub(crate) async fn start_tls(config: ServerConfig, script: impl FnMut(&Seen) -> Do + Send + 'static) -> Self {
        Self::listen("127.0.0.1:0", Some(TlsAcceptor::from(Arc::new(config))), script).await
    }

    /// A server that does each of these in turn, and then no more.
    pub(crate) async fn of(answers: Vec<Do>) -> Self {
        let mut answers = answers.into_iter();
        Self::start(move |_| answers.next().unwrap_or_else(|| status(599, "the server has no further answer"))).await
    }

    /// The same at every v4 address of this machine, above all at all those of 127.0.0.0/8.
    pub(crate) async fn everywhere(script: impl FnMut(&Seen) -> Do + Send + 'static) -> Self {
        Self::listen("0.0.0.0:0", None, script).await
    }

    async fn listen(at: &str, tls: Option<TlsAcceptor>, script: impl FnMut(&Seen) -> Do + Send + 'static) -> Self {
        let listener = TcpListener::bind(at).await.unwrap();
        let at = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), listener.local_addr().unwrap().port());
        let script: Script = Arc::new(Mutex::new(script));
        let log = watch::Sender::new(Log::default());
        let mut tasks = JoinSet::new();
        let shared = log.clone();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                stream.set_nodelay(true).unwrap();
                let (script, log, tls) = (script.clone(), shared.clone(), tls.clone());
                let number = log.borrow().opened;
                log.send_modify(|log| log.opened += 1);
                connections.spawn(async move {
                    match tls {
                        // A client that does not trust us goes in the middle of the handshake.
                        Some(tls) => match tls.accept(stream).await {
                            Ok(stream) => serve(stream, number, &script, &log).await,
                            Err(_) => None,
                        },
                        None => serve(stream, number, &script, &log).await,
                    };
                    log.send_modify(|log| log.closed += 1);
                });
            }
        });
        Self { at, log, _tasks: tasks }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/check", self.at)
    }

    pub(crate) fn log(&self) -> Log {
        self.log.borrow().clone()
    }

    /// Which connection each request came over.
    pub(crate) fn connections(&self) -> Vec<usize> {
        self.log().seen.iter().map(|seen| seen.connection).collect()
    }

    /// Waits until this is so.
    pub(crate) async fn until(&self, is_so: impl FnMut(&Log) -> bool) {
        self.log.subscribe().wait_for(is_so).await.unwrap();
    }
}

async fn serve<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    connection: usize,
    script: &Script,
    log: &watch::Sender<Log>,
) -> Option<()> {
    let mut bytes = Vec::new();
    loop {
        let seen = read(&mut stream, &mut bytes, connection).await?;
        let next = (script.lock().unwrap())(&seen);
        log.send_modify(|log| log.seen.push(seen));
        match next {
            Do::Say(answer) => stream.write_all(&answer).await.ok()?,
            Do::SayAndClose(answer) => {
                stream.write_all(&answer).await.ok()?;
                stream.shutdown().await.ok()?;
                return None;
            }
            Do::Nothing => {
                while stream.read_buf(&mut bytes).await.ok()? > 0 {}
                return None;
            }
        }
    }
}

/// The next request; what came behind it stays in `bytes`.
async fn read(stream: &mut (impl AsyncRead + Unpin), bytes: &mut Vec<u8>, connection: usize) -> Option<Seen> {
    let head_end = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at + 4;
        }
        more(stream, bytes).await?;
    };
    let head = String::from_utf8(bytes[..head_end].to_vec()).unwrap();
    let mut lines = head.trim_end().split("\r\n");
    let line = lines.next()?.to_owned();
    let pairs = lines.filter_map(|line| line.split_once(": "));
    let headers = pairs.map(|(name, value)| (name.to_lowercase(), value.to_owned())).collect();
    let mut seen = Seen { connection, line, headers, body: Vec::new() };
    let length: usize = seen.all("content-length").first().map_or(0, |length| length.parse().unwrap());
    while bytes.len() < head_end + length {
        more(stream, bytes).await?;
    }
    seen.body = bytes[head_end..head_end + length].to_vec();
    bytes.drain(..head_end + length);
    Some(seen)
}

async fn more(stream: &mut (impl AsyncRead + Unpin), bytes: &mut Vec<u8>) -> Option<()> {
    (stream.read_buf(bytes).await.ok()? > 0).then_some(())
}

/// A whole response with this body.
pub(crate) fn bytes(status: u16, body: &[u8]) -> Vec<u8> {
    [format!("HTTP/1.1 {status} x\r\ncontent-length: {}\r\n\r\n", body.len()).as_bytes(), body].concat()
}

/// Answers with this status and body, and keeps the connection.
pub(crate) fn status(status: u16, body: &str) -> Do {
    Do::Say(bytes(status, body.as_bytes()))
}

/// Answers 200 with this body.
pub(crate) fn ok(body: &str) -> Do {
    status(200, body)
}
