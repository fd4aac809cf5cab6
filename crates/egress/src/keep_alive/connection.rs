//! One HTTP/1 connection, driven by whoever uses it: no task stands behind it, so dropping it closes the socket.

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsRawFd as _, RawFd};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use nix::errno::Errno;
use nix::sys::socket::{MsgFlags, recv};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use url::Host;

use super::relay::Relay;
use super::tls::Tls;

/// Longest head of a response, in bytes: several times what servers themselves accept of a request's.
const MAX_HEAD_BYTES: usize = 64 << 10;

trait Io: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Io for T {}

type Driver = http1::Connection<TokioIo<Box<dyn Io>>, Full<Bytes>>;

/// A connection that is open, or was.
pub(super) struct Connection {
    sender: http1::SendRequest<Full<Bytes>>,
    driver: Pin<Box<Driver>>,
    /// Whether the driver has come to its end; it must not be polled again.
    ended: bool,
    relay: Arc<Relay>,
    /// The socket below, which the driver owns and keeps open as long as it is there.
    socket: RawFd,
    /// The address that it was opened to.
    pub(super) ip: IpAddr,
}

/// Why a request had no response head.
#[derive(Debug)]
pub(super) enum NoResponse {
    /// Nothing of it was sent: here it is again.
    Unsent(Box<Request<Full<Bytes>>>),
    /// It may have arrived.
    Lost(hyper::Error),
}

impl Connection {
    /// Speaks TLS if `tls` is there, then HTTP/1.
    pub(super) async fn open(
        (stream, ip): (TcpStream, IpAddr),
        host: &Host<&str>,
        tls: Option<&Tls>,
    ) -> io::Result<Self> {
        let socket = stream.as_raw_fd();
        let io: Box<dyn Io> = match tls {
            Some(tls) => Box::new(tls.wrap(host, stream).await?),
            None => Box::new(stream),
        };
        let mut http = http1::Builder::new();
        http.max_header_size(MAX_HEAD_BYTES);
        let (sender, driver) = http.handshake(TokioIo::new(io)).await.map_err(io::Error::other)?;
        Ok(Self { sender, driver: Box::pin(driver), ended: false, relay: Arc::default(), socket, ip })
    }

    /// Sends a request and waits for the head of its response.
    pub(super) async fn send(&mut self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, NoResponse> {
        let answered = self.sender.try_send_request(request);
        let (driver, ended) = (&mut self.driver, &mut self.ended);
        drive(self.relay.clone(), (driver, ended), answered).await.map_err(|mut error| match error.take_message() {
            Some(request) => NoResponse::Unsent(Box::new(request)),
            None => NoResponse::Lost(error.into_error()),
        })
    }

    /// Waits for `future`, which needs what this connection receives.
    pub(super) async fn drive<F: Future>(&mut self, future: F) -> F::Output {
        drive(self.relay.clone(), (&mut self.driver, &mut self.ended), future).await
    }

    /// Whether it could take a request now. Never waits, and leaves nobody to be woken.
    ///
    /// An idle connection is not watched. Whatever came meanwhile, a farewell or bytes that nobody asked for, makes
    /// it useless, and the socket is asked directly: the reactor may not have heard of it yet.
    pub(super) fn is_usable(&mut self) -> bool {
        if !self.is_open() {
            return false;
        }
        let peeked = recv(self.socket, &mut [0], MsgFlags::MSG_PEEK | MsgFlags::MSG_DONTWAIT);
        peeked == Err(Errno::EAGAIN)
    }

    /// Whether it is worth keeping, as far as it has been heard. Never waits, and leaves nobody to be woken.
    pub(super) fn is_open(&mut self) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        if !self.ended {
            self.ended = self.driver.as_mut().poll(&mut context).is_ready();
        }
        !self.ended && matches!(self.sender.poll_ready(&mut context), Poll::Ready(Ok(())))
    }
}

/// Lets the connection work while `future` waits for it.
async fn drive<F: Future>(
    relay: Arc<Relay>,
    (driver, ended): (&mut Pin<Box<Driver>>, &mut bool),
    future: F,
) -> F::Output {
    let mut future = pin!(future);
    relay
        .drive(|cx| {
            // The future may have something for the driver, and the driver may then have something for the future.
            if let Poll::Ready(output) = future.as_mut().poll(cx) {
                return Poll::Ready(output);
            }
            if !*ended {
                // An error reaches the future, whose request it ends.
                *ended = driver.as_mut().poll(cx).is_ready();
            }
            future.as_mut().poll(cx)
        })
        .await
}
