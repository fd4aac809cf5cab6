//! From checked addresses to an open socket, checked once more on the way.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use futures_util::stream::FuturesUnordered;
use tokio::net::TcpStream;
use url::Host;

use super::{Egress, EgressError};

/// Head start of one address before the next is tried as well. Source: RFC 8305, section 5.
const HEAD_START: Duration = Duration::from_millis(250);

/// Addresses of one name that are tried: more would not be reached within the longest timeout of a hook.
const MAX_TRIED: usize = 8;

/// Opens sockets. Tests bring their own, to see what would have been connected to.
pub trait Dial: Send + Sync {
    /// A connection to exactly this address.
    fn dial(&self, at: SocketAddr) -> BoxFuture<'_, io::Result<TcpStream>>;
}

/// The system's sockets.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemDial;

impl Dial for SystemDial {
    fn dial(&self, at: SocketAddr) -> BoxFuture<'_, io::Result<TcpStream>> {
        Box::pin(async move {
            let stream = TcpStream::connect(at).await?;
            // A request is one small write that waits for its answer.
            stream.set_nodelay(true)?;
            Ok(stream)
        })
    }
}

/// Why there is no socket.
#[derive(Debug)]
pub(super) enum ConnectError {
    /// The guard says no, now that it looks again.
    Refused(EgressError),
    /// Nobody answers there.
    Failed(io::Error),
}

/// Connects to one of `ips`, answers for `host` that were checked. Each is looked at again before it is tried,
/// with this host's own addresses as they are then. The first failure is the one that is told.
pub(super) async fn connect(
    (egress, dial): (&Egress, &dyn Dial),
    host: &Host<&str>,
    ips: &[IpAddr],
    port: u16,
) -> Result<(TcpStream, IpAddr), ConnectError> {
    let mut waiting = ips.iter().take(MAX_TRIED).copied();
    let mut tried = FuturesUnordered::new();
    let mut first_failure = None;
    loop {
        if let Some(ip) = waiting.next() {
            egress.check_again(host, ip, port).map_err(ConnectError::Refused)?;
            tried.push(async move { dial.dial(SocketAddr::new(ip, port)).await.map(|stream| (stream, ip)) });
        } else if tried.is_empty() {
            break;
        }
        let came = if waiting.len() == 0 {
            tried.next().await
        } else {
            tokio::time::timeout(HEAD_START, tried.next()).await.unwrap_or_default()
        };
        match came {
            Some(Ok(connected)) => return Ok(connected),
            Some(Err(error)) => first_failure = first_failure.or(Some(error)),
            None => {}
        }
    }
    Err(ConnectError::Failed(first_failure.unwrap_or_else(|| io::Error::other("there is no address to try"))))
}
