//! Cuts a stream into lines of bounded length.

use std::io;

use memchr::memchr;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, BufReader};

/// How much is read at once: what a pipe holds by default.
const READ_BYTES: usize = 64 << 10;
/// How much of the beginning and of the end of an oversized line is kept: where the ids of replies stand.
const KEPT_BYTES: usize = 256;

/// One line, without its newline.
#[derive(Debug, PartialEq)]
pub(super) enum Line {
    /// All of it.
    Whole(Vec<u8>),
    /// Only the ends of one that was too long.
    TooLong {
        /// How it began.
        head: Vec<u8>,
        /// How it ended.
        tail: Vec<u8>,
    },
}

/// A stream of lines. Dropping a read that has not finished loses nothing.
pub(super) struct Lines<R> {
    from: BufReader<R>,
    line: Vec<u8>,
    /// The beginning of the line that is being skipped.
    head: Option<Vec<u8>>,
    limit: usize,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// Lines of at most `limit` bytes.
    pub(super) fn new(from: R, limit: usize) -> Self {
        Self { from: BufReader::with_capacity(READ_BYTES, from), line: Vec::new(), head: None, limit }
    }

    /// Longest line, in bytes.
    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    /// The next line; nothing at the end. What stands there without a newline is no line.
    pub(super) async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            let piece = self.from.fill_buf().await?;
            if piece.is_empty() {
                return Ok(None);
            }
            let newline = memchr(b'\n', piece);
            let text = &piece[..newline.unwrap_or(piece.len())];
            self.line.extend_from_slice(text);
            let taken = text.len() + usize::from(newline.is_some());
            self.from.consume(taken);
            self.bound();
            if newline.is_some() {
                let line = std::mem::take(&mut self.line);
                return Ok(Some(match self.head.take() {
                    None => Line::Whole(line),
                    Some(head) => Line::TooLong { head, tail: line },
                }));
            }
        }
    }

    /// Forgets the middle of a line that is too long.
    fn bound(&mut self) {
        if self.head.is_none() && self.line.len() > self.limit {
            self.head = Some(self.line[..self.line.len().min(KEPT_BYTES)].to_vec());
            self.line = self.line.split_off(self.line.len().saturating_sub(KEPT_BYTES));
        } else if self.head.is_some() {
            self.line.drain(..self.line.len().saturating_sub(KEPT_BYTES));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn cut(limit: usize, text: &[u8]) -> Vec<String> {
        let mut lines = Lines::new(text, limit);
        let mut found = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            found.push(match line {
                Line::Whole(line) => String::from_utf8(line).unwrap(),
                Line::TooLong { head, tail } => {
                    format!("{}…{}", String::from_utf8(head).unwrap(), String::from_utf8(tail).unwrap())
                }
            });
        }
        found
    }

    #[tokio::test]
    async fn lines_are_cut_and_bounded() {
        assert_eq!(cut(4, b"a\n\nbcde\r\nx").await, ["a", "", "bcde\r…bcde\r"]);
        assert_eq!(cut(4, b"abcd\nabcde\nz\n").await, ["abcd", "abcde…abcde", "z"]);
        let long = [b"{\"id\":1,".to_vec(), vec![b'x'; 300_000], b"\"end\"}\nnext\n".to_vec()].concat();
        let found = cut(1000, &long).await;
        assert!(found[0].starts_with("{\"id\":1,xxx") && found[0].ends_with("\"end\"}"), "{}", found[0]);
        assert_eq!((found[0].chars().count(), found[1].as_str()), (2 * KEPT_BYTES + 1, "next"));
    }
}
