//! The ends of a proxy: what comes from a client and a server, and lines.

use std::io;

use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::mpsc;

use super::message::{MAX_MESSAGE_BYTES, RequestKey};
use super::proxy::{ClientBound, ServerBound, SignInWanted};

/// How many messages wait between two tasks: more stay where they are written.
pub(super) const QUEUE: usize = 32;

/// How much is read at once: what a pipe holds by default.
const READ_BYTES: usize = 64 << 10;

/// What comes from a client.
#[derive(Debug)]
pub(super) enum FromClient {
    /// A message.
    Message(String),
    /// It does not wait for this any more.
    Left(RequestKey),
}

/// What comes from a server.
#[derive(Debug)]
pub(super) enum FromServer {
    /// A message, and the request of the client that it came with, where that is known.
    Message(String, Option<RequestKey>),
    /// This request will not be answered, for this reason; what the server wants first, if it said so.
    Failed(RequestKey, String, Option<SignInWanted>),
    /// Nothing more comes.
    Gone(String),
}

/// A client's end.
pub(super) struct ClientEnd {
    pub(super) from: mpsc::Receiver<FromClient>,
    pub(super) to: mpsc::Sender<ClientBound>,
}

/// A server's end.
pub(super) struct ServerEnd {
    pub(super) from: mpsc::Receiver<FromServer>,
    pub(super) to: mpsc::Sender<ServerBound>,
}

/// A line of a stream.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// All of it.
    Whole(String),
    /// One that was too long, of which nothing is left.
    TooLong,
}

/// A stream of lines. Dropping a read that has not finished loses nothing.
pub(super) struct Lines<R> {
    from: BufReader<R>,
    line: Vec<u8>,
    is_too_long: bool,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    pub(super) fn new(from: R) -> Self {
        Self { from: BufReader::with_capacity(READ_BYTES, from), line: Vec::new(), is_too_long: false }
    }

    /// The next line that is not empty; nothing at the end. What stands there without a newline is no line.
    pub(super) async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            let piece = self.from.fill_buf().await?;
            if piece.is_empty() {
                return Ok(None);
            }
            let newline = piece.iter().position(|byte| *byte == b'\n');
            let text = &piece[..newline.unwrap_or(piece.len())];
            self.is_too_long |= self.line.len() + text.len() > MAX_MESSAGE_BYTES;
            if self.is_too_long {
                self.line.clear();
            } else {
                self.line.extend_from_slice(text);
            }
            let taken = text.len() + usize::from(newline.is_some());
            self.from.consume(taken);
            if newline.is_none() {
                continue;
            }
            let line = std::mem::take(&mut self.line);
            if std::mem::take(&mut self.is_too_long) {
                return Ok(Some(Line::TooLong));
            }
            // Bytes that are no text have become replacement characters: within a text they harm nobody.
            let line = String::from_utf8(line).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into());
            if !line.trim().is_empty() {
                return Ok(Some(Line::Whole(line)));
            }
        }
    }
}

/// Writes one message as a line.
pub(super) async fn write_line<W: AsyncWrite + Unpin>(to: &mut W, text: String) -> io::Result<()> {
    // Over HTTP a message may come over several lines. No line break stands within a text.
    let mut line = if text.contains(['\n', '\r']) { text.replace(['\n', '\r'], " ") } else { text };
    line.push('\n');
    to.write_all(line.as_bytes()).await?;
    to.flush().await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_are_cut_and_bounded() {
        let long = "x".repeat(MAX_MESSAGE_BYTES + 1);
        let text = format!("a\n\n \nb\r\n{long}\nc\nd");
        let mut lines = Lines::new(text.as_bytes());
        let mut found = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            found.push(line);
        }
        let whole = |text: &str| Line::Whole(text.into());
        assert_eq!(found, [whole("a"), whole("b\r"), Line::TooLong, whole("c")]);
    }

    #[tokio::test]
    async fn a_message_is_one_line() {
        let mut written = Vec::new();
        write_line(&mut written, "{\"a\":\r\n1}".into()).await.unwrap();
        write_line(&mut written, "{}\r".into()).await.unwrap();
        assert_eq!(written, b"{\"a\":  1}\n{} \n");
    }
}
