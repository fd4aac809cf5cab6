//! What a child writes to its standard error: logged, and the end of it kept.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pintle_domain::execution::masked;
use pintle_domain::id::HookName;
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;
use tokio_util::sync::CancellationToken;

/// Longest piece that is read at once: what a pipe holds by default.
const PIECE_BYTES: usize = 64 << 10;
/// Longest line that is logged as one; of a longer one each such piece is a line of the log.
const LINE_BYTES: usize = 8 << 10;
/// How much of the end is kept for reports of faults: a long stack trace.
const KEPT_BYTES: usize = 64 << 10;

/// Most lines that are the last words of a child: a stack trace's place and error.
const LAST_LINES: usize = 12;
/// Longest last words, in bytes: less than what is shown of the cause of a fault.
const LAST_BYTES: usize = 1500;

/// The end of what was written.
#[derive(Debug, Default)]
pub(super) struct Tail(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    bytes: VecDeque<u8>,
    /// How many of the bytes are of the child that runs now, or ran last.
    own: usize,
}

impl Tail {
    /// Another child begins to write.
    pub(super) fn begin(&self) {
        self.kept().own = 0;
    }

    fn push(&self, piece: &[u8]) {
        let piece = &piece[piece.len().saturating_sub(KEPT_BYTES)..];
        let mut kept = self.kept();
        let surplus = (kept.bytes.len() + piece.len()).saturating_sub(KEPT_BYTES);
        kept.bytes.drain(..surplus);
        kept.bytes.extend(piece);
        kept.own = (kept.own + piece.len()).min(KEPT_BYTES);
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the child of now wrote, as far as it is kept.
    fn own(&self) -> String {
        let mut kept = self.kept();
        let own = kept.own;
        let bytes = kept.bytes.make_contiguous();
        String::from_utf8_lossy(&bytes[bytes.len() - own..]).into_owned()
    }

    /// The last lines that the child of now wrote.
    pub(super) fn last_words(&self) -> Option<String> {
        let text = self.own();
        let text = text.trim_end();
        let mut from = text.len().saturating_sub(LAST_BYTES);
        if from > 0 {
            // A line that is cut says nothing; one that is longer than all of it is cut all the same.
            let rest = &text[text.ceil_char_boundary(from)..];
            from = text.len() - rest.split_once('\n').map_or(rest, |(_, whole)| whole).len();
        }
        let lines: Vec<&str> = text[from..].lines().map(str::trim_end).collect();
        let last = lines[lines.len().saturating_sub(LAST_LINES)..].join("\n");
        (!last.is_empty()).then_some(last)
    }

    /// The text that is kept, cleaned of invalid bytes.
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(self.kept().bytes.make_contiguous()).into_owned()
    }

    /// The last line of the child of now that says something.
    pub(super) fn last_line(&self) -> Option<String> {
        let text = self.own();
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
    let log = |text: &str| tracing::info!(target: "hook.stderr", hook = %name, text = ?masked(text));
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
    fn last_words_are_those_of_the_child_of_now() {
        let tail = Tail::default();
        assert_eq!(tail.last_words(), None);
        tail.push(b"Traceback:\n  File \"g.py\"\nKeyError: 'x'\n\n");
        assert_eq!(tail.last_words().as_deref(), Some("Traceback:\n  File \"g.py\"\nKeyError: 'x'"));
        tail.begin();
        assert_eq!((tail.last_words(), tail.last_line()), (None, None), "what another child said explains nothing");
        assert!(tail.text().contains("KeyError"), "and it is kept");
        let many: Vec<String> = (0..100).map(|number| format!("line {number}")).collect();
        tail.push(many.join("\n").as_bytes());
        assert_eq!(tail.last_words().unwrap().lines().count(), LAST_LINES);
        tail.begin();
        tail.push(format!("short\n{}\nend", "ä".repeat(LAST_BYTES)).as_bytes());
        assert_eq!(tail.last_words().as_deref(), Some("end"), "a line that is cut is left out");
        tail.push("ö".repeat(LAST_BYTES).as_bytes());
        assert!(tail.last_words().unwrap().len() <= LAST_BYTES, "one that is too long is cut");
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
