//! JSON lines between rmcp and a pair of byte streams.
//!
//! rmcp has such a transport of its own. Ours differs in what hooks and models rely on: numbers keep their digits,
//! one odd block or tool does not spoil the message around it, and hostile lines are bounded, logged and skipped.

pub(crate) mod exact;
mod lines;
pub(crate) mod news;
pub(crate) mod outline;
mod side;

use std::io;

use pintle_domain::json::Value;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use self::lines::{Line, Lines};
use self::outline::outline;
use self::side::{Ends, UnreadableMessage};
pub(crate) use self::side::{Side, no_answer};

/// Longest line that is read, in bytes: screenshots and files cross as text, so real lines are long. A reply above it
/// is answered with an error in its place.
pub(crate) const MAX_LINE_BYTES: usize = 64 << 20;
/// Lines that may wait for a peer that reads slowly; senders wait beyond it.
const MAX_QUEUED_LINES: usize = 64;
/// How much of a line that is not a message is logged, in characters.
const SHOWN_CHARS: usize = 200;

/// A line to be written, and who waits for it.
struct Outgoing {
    line: Vec<u8>,
    written: oneshot::Sender<io::Result<()>>,
}

/// The transport of `S`, reading from `R`.
pub(crate) struct Wire<S: Side, R> {
    /// Whom it talks to, for the log.
    name: String,
    lines: Lines<R>,
    out: Option<mpsc::Sender<Outgoing>>,
    side: S::Memory,
}

/// Writes what a [`Wire`] sends; ends when the wire is closed and everything is written, or at `stop`.
pub(crate) struct Writer<W> {
    to: W,
    queue: mpsc::Receiver<Outgoing>,
}

impl<S: Side, R: AsyncRead + Unpin + Send> Wire<S, R> {
    /// A wire that reads `from` and whose [`Writer`] writes `to`.
    pub(crate) fn new<W>(name: &str, from: R, to: W) -> (Self, Writer<W>) {
        Self::with_limit(name, from, to, MAX_LINE_BYTES)
    }

    fn with_limit<W>(name: &str, from: R, to: W, limit: usize) -> (Self, Writer<W>) {
        let (out, queue) = mpsc::channel(MAX_QUEUED_LINES);
        let side = S::Memory::default();
        let wire = Self { name: name.to_owned(), lines: Lines::new(from, limit), out: Some(out), side };
        (wire, Writer { to, queue })
    }

    /// The message of a line; nothing for a line that is none.
    fn hear(&mut self, line: Line) -> Option<RxJsonRpcMessage<S>> {
        let (heard, text) = match line {
            Line::Whole(bytes) => {
                let text = String::from_utf8_lossy(&bytes).into_owned();
                let line = text.trim_start_matches('\u{feff}').trim();
                if line.is_empty() {
                    return None;
                }
                (self.read(line), text)
            }
            Line::TooLong { head, tail } => {
                let heard = S::too_long(&mut self.side, Ends { head: &head, tail: &tail }, self.lines.limit());
                tracing::warn!(mcp = %self.name, limit = self.lines.limit(), "a line was too long");
                (heard.map(Some), String::from_utf8_lossy(&head).into_owned())
            }
        };
        match heard {
            Ok(message) => message,
            Err(UnreadableMessage { why, answer }) => {
                tracing::info!(mcp = %self.name, line = ?shown(&text), why, "a line was skipped");
                answer.iter().for_each(|answer| self.answer(answer));
                None
            }
        }
    }

    /// Bytes that are not text have become replacement characters: within a string they harm nobody.
    fn read(&mut self, line: &str) -> Result<Option<RxJsonRpcMessage<S>>, UnreadableMessage> {
        match pintle_domain::json::parse(line) {
            Ok(value) => S::read(&mut self.side, value),
            // Nobody must wait for an answer to what was skipped, or for one that was.
            Err(why) => S::unread(&mut self.side, outline(line), why).map(Some),
        }
    }

    /// Answers a request that cannot be handed on. One that does not fit the queue is lost, as its sender reads nothing.
    fn answer(&self, answer: &Value) {
        let (written, _nobody_waits) = oneshot::channel();
        let mut line = answer.to_string().into_bytes();
        line.push(b'\n');
        let queued = self.out.as_ref().map(|out| out.try_send(Outgoing { line, written }));
        if matches!(queued, Some(Err(_))) {
            tracing::warn!(mcp = %self.name, "an answer was dropped, because the peer does not read");
        }
    }
}

impl<S: Side, R: AsyncRead + Unpin + Send> Transport<S> for Wire<S, R> {
    type Error = io::Error;

    fn send(&mut self, item: TxJsonRpcMessage<S>) -> impl Future<Output = io::Result<()>> + Send + 'static {
        S::sent(&mut self.side, &item);
        let (written, outcome) = oneshot::channel();
        let encoded = exact::written(&item).map_err(io::Error::from);
        // Queued at once if there is room, so that what was answered before an end is still written.
        let queued = encoded.and_then(|message| {
            let line = format!("{message}\n").into_bytes();
            let out = self.out.as_ref().ok_or_else(closed)?;
            match out.try_send(Outgoing { line, written }) {
                Ok(()) => Ok(None),
                Err(mpsc::error::TrySendError::Full(outgoing)) => Ok(Some((out.clone(), outgoing))),
                Err(mpsc::error::TrySendError::Closed(_)) => Err(closed()),
            }
        });
        async move {
            if let Some((out, outgoing)) = queued? {
                out.send(outgoing).await.map_err(|_| closed())?;
            }
            outcome.await.unwrap_or_else(|_| Err(closed()))
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<S>> {
        loop {
            let line = match self.lines.next().await {
                Ok(Some(line)) => line,
                Ok(None) => {
                    S::linger(&mut self.side).await;
                    return None;
                }
                Err(error) => {
                    tracing::debug!(mcp = %self.name, %error, "reading failed");
                    return None;
                }
            };
            if let Some(message) = self.hear(line) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.out = None;
        Ok(())
    }
}

impl<W: AsyncWrite + Unpin> Writer<W> {
    /// Writes line after line.
    pub(crate) async fn write_on(mut self, stop: CancellationToken) {
        loop {
            let outgoing = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                outgoing = self.queue.recv() => outgoing,
            };
            let Some(Outgoing { line, written }) = outgoing else { return };
            let outcome = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                outcome = write(&mut self.to, &line) => outcome,
            };
            let broken = outcome.is_err();
            // Who sent it may have gone.
            drop(written.send(outcome));
            if broken {
                return;
            }
        }
    }
}

async fn write<W: AsyncWrite + Unpin>(to: &mut W, line: &[u8]) -> io::Result<()> {
    to.write_all(line).await?;
    to.flush().await
}

fn closed() -> io::Error {
    io::Error::new(io::ErrorKind::BrokenPipe, "it does not read any more")
}

/// The beginning of `text`, for a log that shows control characters escaped.
fn shown(text: &str) -> &str {
    text.char_indices().nth(SHOWN_CHARS).map_or(text, |(end, _)| &text[..end])
}
