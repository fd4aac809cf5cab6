//! The body of an answer: bounded bytes, and the server-sent events in them.

use std::time::Duration;

use bytes::{Buf as _, Bytes, BytesMut};
use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt};
use pintle_domain::checkpoint::runtime::RetryReason;
use pintle_egress::sse::{BYTE_ORDER_MARK, Splitter, SseError};
use tokio::time::{Instant, timeout_at};

use crate::{ProviderError, failure};

/// Largest single event, in bytes: servers that send a whole tool call at once put a file's content into one.
pub(crate) const MAX_EVENT_BYTES: usize = 4 << 20;
/// Largest answer, in bytes: a hundred times the longest that a model writes, with its framing.
pub(crate) const MAX_ANSWER_BYTES: usize = 64 << 20;

/// The bytes of an answer as they arrive, with every bound applied.
pub(crate) struct Body {
    chunks: BoxStream<'static, Result<Bytes, ProviderError>>,
    ahead: Option<Bytes>,
    idle: Duration,
    total: usize,
}

impl Body {
    /// Reads `chunks`, each of which must arrive within `idle`.
    pub(crate) fn new(
        chunks: impl Stream<Item = Result<Bytes, ProviderError>> + Send + 'static,
        idle: Duration,
    ) -> Self {
        Self { chunks: chunks.boxed(), ahead: None, idle, total: 0 }
    }

    /// Reads the body of `response`.
    pub(crate) fn of(response: reqwest::Response, idle: Duration) -> Self {
        let origin = response.url().origin().ascii_serialization();
        let broken = move |error| failure::of_transport(error, &origin);
        Self::new(response.bytes_stream().map(move |chunk| chunk.map_err(&broken)), idle)
    }

    async fn chunk(&mut self) -> Result<Option<Bytes>, ProviderError> {
        if let Some(chunk) = self.ahead.take() {
            return Ok(Some(chunk));
        }
        let Ok(next) = tokio::time::timeout(self.idle, self.chunks.next()).await else {
            return Err(no_content(self.idle));
        };
        let Some(chunk) = next.transpose()? else { return Ok(None) };
        self.total += chunk.len();
        if self.total > MAX_ANSWER_BYTES {
            return Err(ProviderError::fatal(format!("the answer is larger than {} MiB", MAX_ANSWER_BYTES >> 20)));
        }
        Ok(Some(chunk))
    }

    /// The first byte that is not blank, without taking it; none if there is none. A byte order mark before it goes.
    pub(crate) async fn peek(&mut self) -> Result<Option<u8>, ProviderError> {
        let until = Instant::now() + self.idle;
        let (mut first, mut is_first) = (BytesMut::new(), true);
        while let Some(chunk) = self.chunk_by(until).await? {
            first.extend_from_slice(&chunk);
            if is_first && BYTE_ORDER_MARK.starts_with(&first) && first.len() < BYTE_ORDER_MARK.len() {
                continue;
            }
            if is_first && first.starts_with(BYTE_ORDER_MARK) {
                first.advance(BYTE_ORDER_MARK.len());
            }
            is_first = false;
            if let Some(&byte) = first.iter().find(|byte| !byte.is_ascii_whitespace()) {
                self.ahead = Some(first.freeze());
                return Ok(Some(byte));
            }
            first.clear();
        }
        Ok(None)
    }

    /// The next bytes, if they are there by `until`.
    async fn chunk_by(&mut self, until: Instant) -> Result<Option<Bytes>, ProviderError> {
        let idle = self.idle;
        timeout_at(until, self.chunk()).await.unwrap_or_else(|_elapsed| Err(no_content(idle)))
    }

    /// The first `most` bytes, and whatever could be read of them if the rest fails or does not come in time.
    pub(crate) async fn beginning(mut self, most: usize) -> Vec<u8> {
        let mut all = Vec::new();
        let until = Instant::now() + self.idle;
        while all.len() < most {
            let Ok(Some(chunk)) = self.chunk_by(until).await else { break };
            all.extend_from_slice(&chunk);
        }
        all.truncate(most);
        all
    }

    /// The whole body.
    pub(crate) async fn whole(mut self) -> Result<Vec<u8>, ProviderError> {
        let mut all = Vec::new();
        let mut until = Instant::now() + self.idle;
        while let Some(chunk) = self.chunk_by(until).await? {
            // Some servers send blanks as long as they have nothing to say.
            if !chunk.trim_ascii().is_empty() {
                until = Instant::now() + self.idle;
            }
            all.extend_from_slice(&chunk);
        }
        Ok(all)
    }
}

/// The error of an answer of which nothing comes any more, whatever else does.
fn no_content(idle: Duration) -> ProviderError {
    let message = format!("no content arrived for {idle:?} in the middle of the answer");
    ProviderError::transient(RetryReason::Timeout, message)
}

/// Why a stream of events cannot be read.
fn unreadable(why: SseError) -> ProviderError {
    ProviderError::fatal(match why {
        SseError::TooLong(_) => format!("one event of the answer is larger than {} MiB", MAX_EVENT_BYTES >> 20),
        SseError::NotText => "the answer is not UTF-8".into(),
        SseError::NoEvent | SseError::TwoData => "the answer is not an event stream; check `base_url`".into(),
    })
}

/// The events of an answer.
pub(crate) struct Events {
    body: Body,
    splitter: Splitter,
    /// When content is due: comments and events without any keep nobody waiting for ever.
    until: Instant,
}

impl Events {
    /// Reads the events in `body`.
    pub(crate) fn new(body: Body) -> Self {
        let until = Instant::now() + body.idle;
        Self { body, splitter: Splitter::with_limit(MAX_EVENT_BYTES), until }
    }

    /// Notes that the last event brought a part of the answer: the next one has the whole time again.
    pub(crate) fn brought_content(&mut self) {
        self.until = Instant::now() + self.body.idle;
    }

    /// The next event's data; none at the end. Events without data are left out.
    pub(crate) async fn next(&mut self) -> Result<Option<String>, ProviderError> {
        loop {
            while let Some(event) = self.splitter.cut_plain().map_err(unreadable)? {
                if let Some(data) = event.data.filter(|data| !data.trim().is_empty()) {
                    return Ok(Some(data));
                }
            }
            if self.splitter.is_over() {
                return Ok(None);
            }
            match self.body.chunk_by(self.until).await? {
                Some(chunk) => self.splitter.feed(&chunk),
                None => self.splitter.end(),
            }
        }
    }

    /// Whether nothing follows the last event.
    pub(crate) async fn at_end(&mut self) -> bool {
        matches!(self.next().await, Ok(None) | Err(_))
    }
}

#[cfg(test)]
mod tests {
    use futures_util::stream;

    use super::*;

    const IDLE: Duration = Duration::from_secs(5);

    fn body_of(chunks: Vec<Vec<u8>>) -> Body {
        Body::new(stream::iter(chunks.into_iter().map(|chunk| Ok(Bytes::from(chunk)))), IDLE)
    }

    async fn read(chunks: Vec<Vec<u8>>) -> Result<Vec<String>, ProviderError> {
        let mut events = Events::new(body_of(chunks));
        let mut all = Vec::new();
        while let Some(data) = events.next().await? {
            all.push(data);
        }
        Ok(all)
    }

    #[tokio::test]
    async fn events_are_the_same_however_their_bytes_arrive() {
        let text =
            ": hi\r\n\r\nevent: a\r\ndata: grüße\r\n\r\ndata: x\ndata: 😀\n\nid: 7\rdata:y\r\rdata:\n\ndata: [DONE]";
        let expected = ["grüße", "x\n😀", "y", "[DONE]"];
        for size in [1, 2, 3, 5, 7, 1000] {
            let chunks = text.as_bytes().chunks(size).map(<[u8]>::to_vec).collect();
            assert_eq!(read(chunks).await.unwrap(), expected, "chunks of {size}");
        }
    }

    #[tokio::test]
    async fn a_stream_may_begin_with_a_byte_order_mark() {
        let marked = "\u{feff}data: a\n\ndata: b\n\n";
        for size in [1, 2, 3, 4, 1000] {
            let chunks = marked.as_bytes().chunks(size).map(<[u8]>::to_vec).collect();
            assert_eq!(read(chunks).await.unwrap(), ["a", "b"], "chunks of {size}");
        }
    }

    #[tokio::test]
    async fn an_event_and_an_answer_have_bounds() {
        let endless = [b"data: ".to_vec()].into_iter().chain((0..80).map(|_| vec![b'x'; 64 << 10])).collect();
        assert_eq!(read(endless).await, Err(ProviderError::fatal("one event of the answer is larger than 4 MiB")));
        let many_lines = (0..80).map(|_| [b"data: ".to_vec(), vec![b'x'; 64 << 10], b"\n".to_vec()].concat()).collect();
        assert_eq!(read(many_lines).await, Err(ProviderError::fatal("one event of the answer is larger than 4 MiB")));
        let flood = (0..65).map(|_| vec![b'x'; 1 << 20]).collect();
        assert_eq!(body_of(flood).whole().await, Err(ProviderError::fatal("the answer is larger than 64 MiB")));
    }

    #[tokio::test]
    async fn a_flood_of_short_lines_is_read_in_linear_time() {
        let lines = "a\n".repeat(1 << 18) + "\ndata: end\n\n";
        assert_eq!(read(vec![lines.into_bytes()]).await.unwrap(), ["end"]);
    }

    #[tokio::test]
    async fn bytes_that_are_not_text_are_refused() {
        let error = read(vec![b"data: \xff\xfe\n\n".to_vec()]).await;
        assert_eq!(error, Err(ProviderError::fatal("the answer is not UTF-8")));
    }

    #[tokio::test]
    async fn silence_ends_in_a_timeout() {
        let first = stream::iter([Ok(Bytes::from_static(b"data: a\n\n"))]);
        let mut events = Events::new(Body::new(first.chain(stream::pending()), Duration::from_millis(5)));
        assert_eq!(events.next().await, Ok(Some("a".into())));
        let message = "no content arrived for 5ms in the middle of the answer";
        assert_eq!(events.next().await, Err(ProviderError::transient(RetryReason::Timeout, message)));
    }

    /// A body that never ends: `piece` again and again, four times within [`IDLE`].
    fn ticking(piece: &'static str) -> Body {
        let every = Duration::from_millis(1_100);
        let ticks = tokio::time::interval_at(Instant::now() + every, every);
        let pieces = stream::unfold(ticks, move |mut ticks| async move {
            ticks.tick().await;
            Some((Ok(Bytes::from_static(piece.as_bytes())), ticks))
        });
        Body::new(pieces, IDLE)
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_no_content_keeps_nobody_waiting() {
        let late = no_content(IDLE);
        for empty in [": still there\n\n", "event: ping\n\n", "data:\n\n", "\n", " "] {
            assert_eq!(Events::new(ticking(empty)).next().await, Err(late.clone()), "{empty:?}");
        }
        assert_eq!(ticking("  \n").peek().await, Err(late.clone()));
        assert_eq!(ticking("\r\n").whole().await, Err(late.clone()));
        assert_eq!(ticking("x").beginning(1000).await, b"xxxx");
        // An event that brings nothing is no content either; one that does gives the next one its time.
        let mut events = Events::new(ticking("data: {}\n\n"));
        for at in 0..4 {
            assert_eq!(events.next().await, Ok(Some("{}".into())), "{at}");
        }
        events.brought_content();
        for at in 0..4 {
            assert_eq!(events.next().await, Ok(Some("{}".into())), "{at}");
        }
        assert_eq!(events.next().await, Err(late));
    }

    #[tokio::test]
    async fn the_first_byte_can_be_seen_before_the_body_is_read() {
        for pieces in [&[" \n", "", "{}"][..], &["\u{feff}", " {}"], &["\u{feff}{}"]] {
            let mut body = body_of(pieces.iter().map(|piece| piece.as_bytes().to_vec()).collect());
            assert_eq!(body.peek().await, Ok(Some(b'{')), "{pieces:?}");
            assert_eq!(body.whole().await.unwrap().trim_ascii(), b"{}", "{pieces:?}");
        }
        let mut split = body_of(vec![b"\xef".to_vec(), b"\xbb\xbf".to_vec(), b"{}".to_vec()]);
        assert_eq!(split.peek().await, Ok(Some(b'{')));
    }
}
