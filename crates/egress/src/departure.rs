//! Whether anything of a request left this host.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame, SizeHint};

/// Knows of one request whether anything of it left: its body is first looked at when a connection stands, TLS included,
/// and its head is about to be written.
#[derive(Clone, Debug, Default)]
pub struct Departure(Arc<AtomicBool>);

impl Departure {
    /// `bytes` as the body of the request. It has a length, as any body of bytes has.
    pub fn body(&self, bytes: impl Into<Bytes>) -> reqwest::Body {
        reqwest::Body::wrap(WatchedBody { bytes: Some(bytes.into()), departure: self.clone() })
    }

    /// Whether the request may have left.
    pub fn has_left(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// A body of one piece that says when it is taken.
struct WatchedBody {
    bytes: Option<Bytes>,
    departure: Departure,
}

impl Body for WatchedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.departure.0.store(true, Ordering::Release);
        Poll::Ready(self.bytes.take().map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
    }
}
