//! What was not read of the body of a request that is refused: some clients see an answer only once all was taken that
//! they send.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Error;
use axum::body::{Body, Bytes, HttpBody};
use axum::extract::Request;
use axum::http::header;
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt as _;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::body::timed;

/// How much is taken and thrown away, in bytes: twice what the longest file has, so that the answer to one that is a
/// little too long is read.
const MOST: usize = 52 << 20;

/// How long that may take.
const LONGEST: Duration = Duration::from_secs(5);

/// The rest of a body, once nobody reads it.
pub(super) struct Unread(oneshot::Receiver<Body>);

/// The request, whose body is cut where nothing comes of it, and what is left of that later.
pub(super) fn watched(request: Request) -> (Request, Unread) {
    let (head, body) = request.into_parts();
    let (back, rest) = oneshot::channel();
    // Whoever asks whether to send it at all is told by the refusal.
    let asks_first = head.headers.contains_key(header::EXPECT);
    let lent = Lent { body: timed(body), back: Some(back), comes: !asks_first };
    (Request::from_parts(head, Body::new(lent)), Unread(rest))
}

impl Unread {
    /// Takes the rest and throws it away, within bounds.
    pub(super) async fn drain(mut self) {
        let Ok(mut body) = self.0.try_recv() else { return };
        // Of what is announced as longer than that, nothing is waited for: the rest would be cut in any case.
        if !usize::try_from(body.size_hint().lower()).is_ok_and(|announced| announced <= MOST) {
            return;
        }
        let all = async {
            let mut taken = 0;
            while let Some(Ok(frame)) = body.frame().await {
                taken += frame.data_ref().map_or(0, Bytes::len);
                if taken > MOST {
                    break;
                }
            }
        };
        // What takes longer is cut.
        drop(timeout(LONGEST, all).await);
    }
}

/// A body that comes back when it is dropped.
struct Lent {
    body: Body,
    back: Option<oneshot::Sender<Body>>,
    /// Whether the client sends it by now.
    comes: bool,
}

impl Drop for Lent {
    fn drop(&mut self) {
        if let Some(back) = self.back.take().filter(|_| self.comes && !self.body.is_end_stream()) {
            // Nobody waits for it where the request was answered.
            drop(back.send(std::mem::take(&mut self.body)));
        }
    }
}

impl HttpBody for Lent {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        self.comes = true;
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::super::body::tests::Announced;
    use super::*;

    #[tokio::test]
    async fn what_nobody_read_comes_back_and_what_was_read_does_not() {
        let request = || Request::new(Body::from("hello"));
        let (dropped, mut unread) = watched(request());
        drop(dropped);
        let rest = unread.0.try_recv().unwrap().collect().await.unwrap().to_bytes();
        assert_eq!(rest, "hello");
        let mut asks = request();
        asks.headers_mut().insert(header::EXPECT, "100-continue".parse().unwrap());
        let (dropped, mut unread) = watched(asks);
        drop(dropped);
        assert!(unread.0.try_recv().is_err(), "it is not sent");
        let (read, mut unread) = watched(request());
        assert_eq!(read.into_body().collect().await.unwrap().to_bytes(), "hello");
        assert!(unread.0.try_recv().is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_rest_that_does_not_come_is_not_waited_for() {
        let never = futures_util::stream::pending::<Result<Bytes, std::io::Error>>();
        let (request, unread) = watched(Request::new(Body::from_stream(never)));
        drop(request);
        let began = tokio::time::Instant::now();
        unread.drain().await;
        assert_eq!(began.elapsed(), LONGEST);
    }

    #[tokio::test(start_paused = true)]
    async fn a_rest_that_is_announced_as_too_long_is_not_waited_for_at_all() {
        let (request, unread) = watched(Request::new(Body::new(Announced(99_999_999_999))));
        drop(request);
        let began = tokio::time::Instant::now();
        unread.drain().await;
        assert_eq!(began.elapsed(), Duration::ZERO);
    }
}
