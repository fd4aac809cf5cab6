//! What a child writes to its standard error: logged, and the end of it kept.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use domain::id::HookName;
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;
use tokio_util::sync::CancellationToken;

/// Longest piece that is read at once: what a pipe holds by default.
const PIECE_BYTES: usize = 64 << 10;
/// Longest line that is logged as one; of a longer one each such piece is a line of the log.
const LINE_BYTES: usize = 8 << 10;
/// How much of the end is kept for reports of faults: a long stack trace.
const KEPT_BYTES: usize = 64 << 10;

/// The end of what was written.
#[derive(Debug, Default)]
pub(super) struct Tail(Mutex<VecDeque<u8>>);

impl Tail {
    fn push(&self, piece: &[u8]) {
        let piece = &piece[piece.len().saturating_sub(KEPT_BYTES)..];
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let surplus = (kept.len() + piece.len()).saturating_sub(KEPT_BYTES);
        kept.drain(..surplus);
        kept.extend(piece);
    }

    /// The text that is kept, cleaned of invalid bytes.
    pub(super) fn text(&self) -> String {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(kept.make_contiguous()).into_owned()
    }

    /// The last line that says something.
    pub(super) fn last_line(&self) -> Option<String> {
        let text = self.text();
        text.lines().rev().map(str::trim).find(|line| !line.is_empty()).map(str::to_owned)
    }
}

/// Puts together what came in pieces: a log is read line by line, and a program writes as it likes.
#[derive(Default)]
struct WholeLines {
    begun: Vec<u8>,
}

impl WholeLines {
    /// Takes a piece, and says each line that it ends.
    fn take(&mut self, piece: &[u8], mut say: impl FnMut(&str)) {
        for part in piece.split_inclusive(|byte| *byte == b'\n') {
            self.begun.extend_from_slice(part);
            while self.begun.len() > LINE_BYTES {
                let rest = self.begun.split_off(LINE_BYTES);
                self.end(&mut say);
                self.begun = rest;
            }
            if self.begun.ends_with(b"\n") {
                self.end(&mut say);
            }
        }
    }

    /// Says what was begun, if it says anything.
    fn end(&mut self, mut say: impl FnMut(&str)) {
        let line = std::mem::take(&mut self.begun);
        let text = String::from_utf8_lossy(line.trim_ascii_end());
        if !text.is_empty() {
            say(&text);
        }
    }
}

/// Reads to the end, so that the child never blocks on what it has to say.
pub(super) async fn listen(mut stderr: pipe::Receiver, name: HookName, tail: &Tail, stop: &CancellationToken) {
    let mut piece = vec![0; PIECE_BYTES];
    let mut lines = WholeLines::default();
    // Debug form, so that control characters reach no terminal.
    let log = |text: &str| tracing::info!(target: "hook.stderr", hook = %name, ?text);
    loop {
        let read = tokio::select! {
            biased;
            () = stop.cancelled() => break,
            read = stderr.read(&mut piece) => read,
        };
        match read {
            Ok(0) | Err(_) => break,
            Ok(len) => {
                tail.push(&piece[..len]);
                lines.take(&piece[..len], log);
            }
        }
    }
    lines.end(log);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_is_kept() {
        let tail = Tail::default();
        tail.push(b"first ");
        tail.push(&vec![b'x'; KEPT_BYTES - 2]);
        tail.push(b"end");
        let text = tail.text();
        assert_eq!((text.len(), &text[..2], &text[text.len() - 4..]), (KEPT_BYTES, "xx", "xend"));
        tail.push(&[vec![b'y'; 3 * KEPT_BYTES], b"last".to_vec()].concat());
        let text = tail.text();
        assert_eq!((text.len(), &text[..2], &text[text.len() - 5..]), (KEPT_BYTES, "yy", "ylast"));
        tail.push(b"\nNameError: x\n \n");
        assert_eq!((tail.last_line().as_deref(), Tail::default().last_line()), (Some("NameError: x"), None));
    }

    #[test]
    fn lines_are_said_whole_whatever_the_pieces() {
        let text = b"Traceback:\r\n  File \"g.py\", line 3\n\n \nSyntaxError: \xff\nlast";
        let expected = ["Traceback:", "  File \"g.py\", line 3", "SyntaxError: \u{fffd}", "last"];
        for piece in 1..=text.len() {
            let (mut lines, mut said) = (WholeLines::default(), Vec::new());
            text.chunks(piece).for_each(|piece| lines.take(piece, |line| said.push(line.to_owned())));
            lines.end(|line| said.push(line.to_owned()));
            assert_eq!(said, expected, "pieces of {piece}");
        }
        let (mut lines, mut said) = (WholeLines::default(), Vec::new());
        lines.take(&vec![b'y'; 2 * LINE_BYTES + 3], |line| said.push(line.len()));
        lines.end(|line| said.push(line.len()));
        assert_eq!(said, [LINE_BYTES, LINE_BYTES, 3], "and no line is longer than the log takes");
    }
}
