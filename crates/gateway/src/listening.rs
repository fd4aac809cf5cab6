//! Sockets, and the connections that come in over them.

use std::convert::Infallible;
use std::fs::{File, Permissions};
use std::io::{self, Cursor};
use std::net::SocketAddr;
use std::os::fd::AsFd as _;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use ipnet::IpNet;
use pintle_process::{PeerProcess, peer_of_pid, peer_of_tcp};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, join, split};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixSocket};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower::Service as _;

use crate::door::{OtherEnd, Peer};
use crate::heads::{Answering, HEAD_TIME, REST_TIME, Rests, TimedHeads};
use crate::http::{numbers, router};
use crate::rare_line::RareLine;
use crate::settings::{Address, ForeignAgents, addresses};
use crate::tls::Tls;
use crate::watching::watch;
use crate::{BadSettings, Gateway};

/// What a connection of HTTP/2 begins with. Source: RFC 9113.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// How long a handshake may take.
const HANDSHAKE_TIME: Duration = Duration::from_secs(10);
/// How many connections over a socket of the file system may wait to be accepted: what the system gives the network.
const BACKLOG: u32 = 1024;
/// How long to wait where the system has no room for another connection.
const BREATHER: Duration = Duration::from_millis(100);

/// Told of connections while nobody knows which agents run.
static UNKNOWN_AGENTS: RareLine = RareLine::new();

/// An address that is listened at.
pub struct Listening {
    listener: Listener,
    /// Where: with the port that the system chose, if it was to.
    pub address: Address,
    /// Whether only numbers are told there.
    pub is_metrics: bool,
}

impl Listening {
    /// Where it is reached.
    pub fn shown(&self) -> String {
        match &self.listener {
            Listener::Network(_, None) => format!("http://{}", self.address),
            Listener::Network(_, Some(_)) => format!("https://{}", self.address),
            Listener::Unix(..) => self.address.to_string(),
        }
    }
}

enum Listener {
    Network(TcpListener, Option<Arc<Tls>>),
    Unix(UnixListener, PathBuf),
}

impl Gateway {
    /// Listens at every address; nothing is answered yet.
    ///
    /// # Errors
    /// An address cannot be had, or a certificate cannot be read.
    pub async fn listen(&self) -> Result<Vec<Listening>, BadSettings> {
        let tls = self.settings.tls.as_ref().map(Tls::open).transpose()?;
        let mut all = Vec::new();
        let numbers = self.settings.metrics.iter().map(|address| (address, true));
        for (address, is_metrics) in self.settings.addresses.iter().map(|address| (address, false)).chain(numbers) {
            let tls = tls.clone().filter(|_| !is_metrics);
            let listening = match address {
                Address::Network(wanted) => match TcpListener::bind(wanted).await {
                    Ok(listener) => {
                        let address = Address::Network(listener.local_addr().unwrap_or(*wanted));
                        Ok(Listening { listener: Listener::Network(listener, tls), address, is_metrics })
                    }
                    Err(error) => Err(error),
                },
                Address::Unix(path) => bind_unix(path).map(|listener| Listening {
                    listener: Listener::Unix(listener, path.clone()),
                    address: address.clone(),
                    is_metrics,
                }),
            };
            all.push(listening.map_err(|error| cannot_listen(address, &error))?);
        }
        Ok(all)
    }

    /// Reads what listening needs, without doing it.
    ///
    /// # Errors
    /// A certificate cannot be read.
    pub fn could_listen(&self) -> Result<(), BadSettings> {
        self.settings.tls.as_ref().map(Tls::open).transpose().map(drop)
    }

    /// Answers whoever comes to `all`, until the gateway is closed.
    pub fn serve(&self, all: Vec<Listening>) {
        let router = router(self.shared.clone(), self.settings.door.clone());
        self.shared.life.tasks.spawn(watch(self.shared.clone()));
        let numbers = numbers(self.shared.clone(), self.settings.door.clone());
        self.shared.life.tasks.spawn(self.shared.clone().live_among_nodes());
        self.tell();
        let tls = all.iter().find_map(|listening| match &listening.listener {
            Listener::Network(_, tls) => tls.clone(),
            Listener::Unix(..) => None,
        });
        if let Some(tls) = tls {
            self.shared.life.tasks.spawn(tls.follow(self.shared.life.hard_stop.clone()));
        }
        let (rests, proxies) = (Rests::default(), Arc::<[IpNet]>::from(self.settings.door.proxies.as_slice()));
        for listening in all {
            let router = if listening.is_metrics { numbers.clone() } else { router.clone() };
            let (stop, tasks) = (self.shared.life.hard_stop.clone(), self.shared.life.tasks.clone());
            let asks_nobody = !self.shared.guests.known_by.has_token();
            let agents = self.settings.agents.clone();
            let (rests, proxies) = (rests.clone(), proxies.clone());
            let desk = Reception { router, stop: stop.clone(), tasks, asks_nobody, agents, rests, proxies };
            self.shared.life.tasks.spawn(async move {
                tokio::select! {
                    () = desk.accept(&listening.listener) => {}
                    () = stop.cancelled() => {}
                }
                if let Listener::Unix(_, path) = &listening.listener
                    && let Err(error) = std::fs::remove_file(path)
                {
                    tracing::debug!(%error, "the socket is left behind");
                }
            });
        }
    }
}

/// What answers the connections of one address.
#[derive(Clone)]
struct Reception {
    router: Router,
    stop: CancellationToken,
    tasks: TaskTracker,
    /// Whether programs of this machine come in without saying who they are.
    asks_nobody: bool,
    /// Programs that are no persons.
    agents: ForeignAgents,
    /// The connections that wait for their next request, at all addresses.
    rests: Rests,
    /// The proxies that are believed.
    proxies: Arc<[IpNet]>,
}

impl Reception {
    /// Answers a connection of the network, once hands are shaken where that is done.
    async fn take(self, stream: TcpStream, from: SocketAddr, acceptor: Option<TlsAcceptor>) {
        let peer = self.peer_of(&stream, from, acceptor.is_some()).await;
        let Some(tls) = acceptor else { return self.converse(stream, peer).await };
        // Whoever does not shake hands in time is gone.
        if let Ok(Ok(stream)) = timeout(HANDSHAKE_TIME, tls.accept(stream)).await {
            self.converse(stream, peer).await;
        }
    }

    async fn accept(&self, listener: &Listener) {
        loop {
            let accepted = match listener {
                Listener::Network(listener, tls) => listener.accept().await.map(|(stream, from)| {
                    if let Err(error) = stream.set_nodelay(true) {
                        tracing::debug!(%error, "small frames may be late");
                    }
                    let (desk, acceptor) = (self.clone(), tls.as_ref().map(|tls| tls.acceptor()));
                    self.tasks.spawn(desk.take(stream, from, acceptor));
                }),
                Listener::Unix(listener, _) => listener.accept().await.map(|(stream, _)| {
                    let peer = stream.peer_cred().ok();
                    let own = peer.is_some_and(|peer| peer.uid() == nix::unistd::getuid().as_raw());
                    let desk = self.clone();
                    self.tasks.spawn(async move {
                        let pid = peer.and_then(|peer| peer.pid());
                        let of_agent = desk
                            .is_of_agent(move |agents| pid.map_or(PeerProcess::Gone, |pid| peer_of_pid(pid, agents)))
                            .await;
                        let other_end = pid.map_or(OtherEnd::Unknown, OtherEnd::Process);
                        desk.converse(stream, Peer::Unix { own, of_agent, other_end }).await;
                    });
                }),
            };
            if let Err(error) = accepted {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(BREATHER).await;
            }
        }
    }

    async fn peer_of(&self, stream: &TcpStream, from: SocketAddr, encrypted: bool) -> Peer {
        let to = stream.local_addr().ok().filter(|to| to.ip().is_loopback());
        let of_agent = match to {
            Some(to) => self.is_of_agent(move |agents| peer_of_tcp((from, to), agents)).await,
            None => false,
        };
        let ours = stream.local_addr().ok().filter(|ours| ours.ip().is_loopback() || ours.ip() == from.ip());
        let other_end = ours.map_or(OtherEnd::Unknown, |ours| OtherEnd::Socket { theirs: from, ours });
        Peer::Address { from: from.ip(), to_loopback: to.is_some(), encrypted, of_agent, other_end }
    }

    /// Whether an agent's program may be at the other end: whoever left already says nothing of themselves. Looked for
    /// only where somebody may come in without a key.
    async fn is_of_agent(&self, look: impl FnOnce(&[(u32, u64)]) -> PeerProcess + Send + 'static) -> bool {
        if !self.asks_nobody {
            return false;
        }
        let agents = self.agents.clone();
        match tokio::task::spawn_blocking(move || agents.now().map(|agents| look(&agents))).await {
            Ok(Ok(PeerProcess::Other)) => false,
            Ok(Err(why)) => {
                nobody_knows_agents(&why);
                true
            }
            Ok(Ok(PeerProcess::OfAgent | PeerProcess::Gone)) | Err(_) => true,
        }
    }

    /// Those among which a connection of `peer` rests.
    fn rests_of(&self, peer: Peer) -> Rests {
        match peer {
            Peer::Address { from, .. } if self.proxies.iter().any(|net| net.contains(&from)) => Rests::of_proxies(),
            Peer::Address { .. } | Peer::Unix { .. } => self.rests.clone(),
        }
    }

    /// Answers the requests of one connection.
    async fn converse<S>(self, stream: S, peer: Peer)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        // Whoever does not say which HTTP it is is not waited for: what reads the first bytes knows no time.
        let (mut from, to) = split(stream);
        let Ok(Ok(head)) = timeout(HEAD_TIME, first_bytes(&mut from)).await else { return };
        if head.is_empty() {
            return;
        }
        let is_http2 = head == PREFACE;
        let stream = join(Cursor::new(head).chain(from), to);
        if is_http2 {
            return self.answer(stream, peer, None).await;
        }
        let answering = Answering::default();
        let stream = TimedHeads::new(stream, answering.clone(), self.rests_of(peer));
        self.answer(stream, peer, Some(answering)).await;
    }

    async fn answer<S>(self, stream: S, peer: Peer, answering: Option<Answering>)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let Self { router, stop, .. } = self;
        let service = service_fn(move |request: hyper::Request<Incoming>| {
            let (mut router, answering) = (router.clone(), answering.clone());
            if let Some(answering) = &answering {
                answering.begin();
            }
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(peer);
            async move {
                let response = router.call(request).await?;
                Ok::<_, Infallible>(match answering {
                    Some(answering) => answering.until_written(response),
                    None => response,
                })
            }
        });
        let mut builder = auto::Builder::new(TokioExecutor::new());
        // Heads and rests have times of their own; together they take no longer than that.
        builder.http1().timer(TokioTimer::new()).header_read_timeout(REST_TIME + HEAD_TIME);
        builder.http2().timer(TokioTimer::new()).keep_alive_interval(Some(HEAD_TIME));
        let connection = builder.serve_connection_with_upgrades(TokioIo::new(stream), service);
        tokio::pin!(connection);
        let ended = tokio::select! {
            ended = connection.as_mut() => ended,
            () = stop.cancelled() => {
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "a connection broke");
        }
    }
}

/// Tells why nobody is let in without a key. Whoever connects decides how often that happens.
fn nobody_knows_agents(why: &str) {
    if let Some(more) = UNKNOWN_AGENTS.due(Instant::now()) {
        tracing::warn!(more, "nobody is let in without a key: {why}");
    }
}

/// The first bytes that somebody says: as many as tell whether it is HTTP/2. Nothing where they say nothing.
async fn first_bytes(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Vec<u8>> {
    let mut head = [0; PREFACE.len()];
    let mut length = 0;
    while length < PREFACE.len() && PREFACE.starts_with(&head[..length]) {
        match from.read(&mut head[length..]).await? {
            0 => break,
            more => length += more,
        }
    }
    Ok(head[..length].to_vec())
}

/// A socket that only its owner can connect to. One that nobody listens at any more gives way.
fn bind_unix(path: &Path) -> io::Result<UnixListener> {
    if std::fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket())
        && std::os::unix::net::UnixStream::connect(path).is_err()
    {
        std::fs::remove_file(path)?;
    }
    let socket = UnixSocket::new_stream()?;
    // Its file has the rights of the socket from the first moment on: nobody else gets in between the two.
    File::from(socket.as_fd().try_clone_to_owned()?).set_permissions(Permissions::from_mode(0o600))?;
    socket.bind(path)?;
    socket.listen(BACKLOG)
}

/// Whether the addresses `listen`, or the one by default, are free now.
///
/// # Errors
/// One is none, or somebody else has it.
pub fn could_bind(listen: &[String]) -> Result<(), BadSettings> {
    for address in &addresses(listen)? {
        if let Address::Network(wanted) = address {
            std::net::TcpListener::bind(wanted).map_err(|error| cannot_listen(address, &error))?;
        }
    }
    Ok(())
}

fn cannot_listen(address: &Address, error: &io::Error) -> BadSettings {
    let is = |kind| error.kind() == kind;
    let hint = if is(io::ErrorKind::AddrInUse) {
        "the address is already in use; stop the other program, or choose another address with `--listen`"
    } else if is(io::ErrorKind::PermissionDenied) {
        "ports below 1024 need root privileges; choose another port with `--listen`"
    } else {
        "choose an address of this machine with `--listen`"
    };
    BadSettings { message: format!("cannot listen at {address}: {error}"), hint: hint.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn as_much_is_read_as_tells_which_http_it_is() {
        for (said, read) in [
            ("", ""),
            ("GET / HTTP/1.1\r\n", "GET / HTTP/1.1\r\n"),
            ("P", "P"),
            ("POST / HTTP/1.1\r\nHost: localhost\r\n", "POST / HTTP/1.1\r\nHost: l"),
            ("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nmore", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        ] {
            let mut from = said.as_bytes();
            assert_eq!(String::from_utf8(first_bytes(&mut from).await.unwrap()).unwrap(), read);
            assert_eq!(from, &said.as_bytes()[read.len()..], "the rest is there");
        }
    }

    #[test]
    fn connections_of_a_trusted_proxy_rest_apart() {
        let desk = Reception {
            router: Router::new(),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
            asks_nobody: false,
            agents: ForeignAgents::default(),
            rests: Rests::default(),
            proxies: Arc::from(["10.0.0.0/8".parse::<IpNet>().unwrap()]),
        };
        let at = |address: &str| {
            let (from, other_end) = (address.parse().unwrap(), OtherEnd::Unknown);
            Peer::Address { from, to_loopback: false, encrypted: false, of_agent: false, other_end }
        };
        let unix = Peer::Unix { own: true, of_agent: false, other_end: OtherEnd::Unknown };
        let are_apart = |peer| !desk.rests.is_same(&desk.rests_of(peer));
        assert_eq!([at("10.1.2.3"), at("192.0.2.1"), unix].map(are_apart), [true, false, false]);
    }

    #[tokio::test]
    async fn a_socket_is_its_owners_and_one_that_nobody_listens_at_gives_way() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pintle.sock");
        let mode = || std::fs::symlink_metadata(&path).unwrap().permissions().mode() & 0o777;
        let listener = bind_unix(&path).unwrap();
        assert_eq!(mode(), 0o600);
        assert_eq!(bind_unix(&path).unwrap_err().kind(), io::ErrorKind::AddrInUse, "somebody listens");
        drop(listener);
        bind_unix(&path).unwrap();
        assert_eq!(mode(), 0o600);
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "a file").unwrap();
        assert!(bind_unix(&path).is_err(), "a file is no socket");
        assert_eq!(std::fs::read(&path).unwrap(), b"a file");
    }
}
