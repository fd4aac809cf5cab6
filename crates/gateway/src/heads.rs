//! How long the head of a request may take, and how long a connection may rest between two requests. The second is much
//! longer: a proxy keeps connections for the next request, and sends it without looking whether the other end is just
//! closing.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Error;
use axum::body::{Body, Bytes, HttpBody};
use axum::http::StatusCode;
use axum::response::Response;
use http_body::{Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// How long the head of a request may take, from its first byte. Source: the published protocol.
pub(crate) const HEAD_TIME: Duration = Duration::from_secs(10);
/// How long a connection may rest. Proxies keep theirs for one minute (nginx) or two (Caddy), and have to be the first to
/// let go.
pub(crate) const REST_TIME: Duration = Duration::from_secs(180);

/// How many connections may rest that long at once: more than proxies keep, and half of the files that a process may have
/// open where nobody raised that. Others rest as long as a head may take, so that strangers who say nothing hold few.
/// Those of proxies that are trusted are not among them.
const MOST_RESTING: usize = 512;

/// Whether a request of a connection is being answered.
#[derive(Clone, Default)]
pub(crate) struct Answering(Arc<Answers>);

/// The requests of a connection that came, and those that were answered.
#[derive(Default)]
struct Answers {
    begun: AtomicUsize,
    written: AtomicUsize,
}

impl Answering {
    /// The head of a request is there.
    pub(crate) fn begin(&self) {
        self.0.begun.fetch_add(1, Ordering::Relaxed);
    }

    /// `response`, which ends the answering once it was written. A connection that is another protocol's from now on has
    /// no more heads.
    pub(crate) fn until_written(self, response: Response) -> Response {
        if response.status() == StatusCode::SWITCHING_PROTOCOLS {
            return response;
        }
        response.map(|body| Body::new(Written { body, answering: self }))
    }

    fn goes_on(&self) -> bool {
        self.0.begun.load(Ordering::Relaxed) != self.written()
    }

    fn written(&self) -> usize {
        self.0.written.load(Ordering::Relaxed)
    }
}

/// The connections that rest.
#[derive(Clone, Debug)]
pub(crate) struct Rests {
    now: Arc<AtomicUsize>,
    most: usize,
}

impl Default for Rests {
    fn default() -> Self {
        Self { now: Arc::default(), most: MOST_RESTING }
    }
}

impl Rests {
    /// Those of proxies that are trusted, which keep as many as they need.
    pub(crate) fn of_proxies() -> Self {
        Self { most: usize::MAX, ..Self::default() }
    }

    /// Whether they are counted together.
    #[cfg(test)]
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.now, &other.now)
    }

    /// One more rests, and so long it may.
    fn begin(&self) -> (Rest, Duration) {
        let others = self.now.fetch_add(1, Ordering::Relaxed);
        (Rest(self.now.clone()), if others < self.most { REST_TIME } else { HEAD_TIME })
    }
}

/// The rest of one connection.
#[derive(Debug)]
struct Rest(Arc<AtomicUsize>);

impl Drop for Rest {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The body of an answer.
struct Written {
    body: Body,
    answering: Answering,
}

impl Drop for Written {
    fn drop(&mut self) {
        self.answering.0.written.fetch_add(1, Ordering::Relaxed);
    }
}

impl HttpBody for Written {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// A connection of HTTP/1 whose heads arrive in time, or not at all.
pub(crate) struct TimedHeads<S> {
    stream: S,
    answering: Answering,
    rests: Rests,
    /// How many answers were written when a rest began last. It is counted, since nothing may be read while an answer is
    /// written that comes at once.
    rested_after: usize,
    /// Its rest, until the next head begins.
    rest: Option<Rest>,
    /// Rings when the rest takes too long, or the head whose first byte is there.
    late: Pin<Box<Sleep>>,
}

impl<S> TimedHeads<S> {
    /// `stream`, of which the first head has begun; between its heads it is one of `rests`.
    pub(crate) fn new(stream: S, answering: Answering, rests: Rests) -> Self {
        let late = Box::pin(sleep(HEAD_TIME));
        Self { stream, answering, rests, rested_after: 0, rest: None, late }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TimedHeads<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.answering.goes_on() {
            this.rest = None;
        } else {
            let written = this.answering.written();
            if written != this.rested_after {
                this.rested_after = written;
                let (rest, time) = this.rests.begin();
                this.rest = Some(rest);
                this.late.as_mut().reset(Instant::now() + time);
            }
            if this.late.as_mut().poll(context).is_ready() {
                return Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the next request took too long")));
            }
        }
        let before = into.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(context, into))?;
        if into.filled().len() > before && this.rest.take().is_some() {
            this.late.as_mut().reset(Instant::now() + HEAD_TIME);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TimedHeads<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use axum::http::{HeaderName, HeaderValue};
    use hyper::body::Incoming;
    use hyper::server::conn::http1;
    use hyper::service::service_fn;
    use hyper_util::rt::{TokioIo, TokioTimer};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
    use tokio_util::task::TaskTracker;

    use super::*;

    const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n";

    /// A client of a server that answers "yes" after `thinks`.
    fn connected(thinks: Duration) -> DuplexStream {
        connected_among(&Rests::default(), thinks)
    }

    /// The same, where connections rest among `rests`.
    fn connected_among(rests: &Rests, thinks: Duration) -> DuplexStream {
        let (client, server) = duplex(4096);
        let answering = Answering::default();
        let stream = TimedHeads::new(server, answering.clone(), rests.clone());
        let service = service_fn(move |request: hyper::Request<Incoming>| {
            let answering = answering.clone();
            answering.begin();
            async move {
                if !thinks.is_zero() {
                    sleep(thinks).await;
                }
                drop(request);
                Ok::<_, Infallible>(answering.until_written(Response::new(Body::from("yes"))))
            }
        });
        TaskTracker::new().spawn(async move {
            let mut builder = http1::Builder::new();
            builder.timer(TokioTimer::new()).header_read_timeout(REST_TIME + HEAD_TIME);
            builder.serve_connection(TokioIo::new(stream), service).await.ok();
        });
        client
    }

    async fn answered(client: &mut DuplexStream, sent: &[u8]) -> bool {
        client.write_all(sent).await.unwrap();
        let mut seen = Vec::new();
        while !seen.ends_with(b"yes") {
            if client.read_buf(&mut seen).await.unwrap_or(0) == 0 {
                return false;
            }
        }
        String::from_utf8(seen).unwrap().contains("content-length: 3")
    }

    async fn closed_after(client: &mut DuplexStream) -> Duration {
        let began = Instant::now();
        assert_eq!(client.read(&mut [0]).await.unwrap(), 0);
        began.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_rests_longer_than_proxies_keep_theirs() {
        let mut client = connected(Duration::ZERO);
        for _ in 0..3 {
            assert!(answered(&mut client, GET).await);
            sleep(Duration::from_secs(150)).await;
        }
        assert!(answered(&mut client, GET).await);
        assert_eq!(closed_after(&mut client).await.as_secs(), 180);
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_rests_as_long_after_an_answer_that_came_before_the_body_was_read() {
        let post = b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 2\r\n\r\nab";
        let mut client = connected(Duration::ZERO);
        assert!(answered(&mut client, post).await);
        assert_eq!(closed_after(&mut client).await.as_secs(), 180);
    }

    #[tokio::test(start_paused = true)]
    async fn a_request_that_was_sent_before_the_answer_is_not_too_late() {
        let mut client = connected(Duration::from_secs(60));
        let pipelined = [GET, &GET[..9]].concat();
        assert!(answered(&mut client, &pipelined).await);
        assert!(answered(&mut client, &GET[9..]).await);
    }

    #[tokio::test(start_paused = true)]
    async fn of_many_that_rest_the_last_ones_go_soon() {
        let rests = Rests { most: 1, ..Rests::default() };
        let [mut first, mut second] = [(); 2].map(|()| connected_among(&rests, Duration::ZERO));
        assert!(answered(&mut first, GET).await && answered(&mut second, GET).await);
        assert_eq!(closed_after(&mut second).await.as_secs(), 10);
        // Whoever asks rests no more, and has its place again.
        assert!(answered(&mut first, GET).await);
        assert_eq!(closed_after(&mut first).await.as_secs(), 180);
        assert_eq!(rests.now.load(Ordering::Relaxed), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_that_is_not_whole_in_time_ends_the_connection() {
        let mut first = connected(Duration::ZERO);
        first.write_all(&GET[..9]).await.unwrap();
        assert_eq!(closed_after(&mut first).await.as_secs(), 10);
        let mut later = connected(Duration::ZERO);
        assert!(answered(&mut later, GET).await);
        sleep(Duration::from_secs(100)).await;
        // However little comes, it does not begin anew.
        later.write_all(&GET[..9]).await.unwrap();
        sleep(Duration::from_secs(6)).await;
        later.write_all(&GET[9..12]).await.unwrap();
        assert_eq!(closed_after(&mut later).await.as_secs(), 4);
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_takes_its_time() {
        let mut client = connected(Duration::from_secs(600));
        assert!(answered(&mut client, GET).await);
        assert!(answered(&mut client, GET).await);
    }

    #[test]
    fn another_protocol_has_no_heads() {
        let answering = Answering::default();
        answering.begin();
        let mut response = Response::new(Body::empty());
        *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        response.headers_mut().insert(HeaderName::from_static("upgrade"), HeaderValue::from_static("websocket"));
        drop(answering.clone().until_written(response));
        assert!(answering.goes_on());
        drop(answering.clone().until_written(Response::new(Body::empty())));
        assert!(!answering.goes_on());
    }
}
