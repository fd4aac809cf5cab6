//! What a child writes to its standard error: logged, and the end of it kept.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use domain::id::HookName;
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;
use tokio_util::sync::CancellationToken;

/// Longest piece that is read and logged at once: what a pipe holds by default.
const PIECE_BYTES: usize = 64 << 10;
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

/// Reads to the end, so that the child never blocks on what it has to say.
pub(super) async fn listen(mut stderr: pipe::Receiver, name: HookName, tail: &Tail, stop: &CancellationToken) {
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let read = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            read = stderr.read(&mut piece) => read,
        };
        match read {
            Ok(0) | Err(_) => return,
            Ok(len) => {
                let text = String::from_utf8_lossy(&piece[..len]);
                // Debug form, so that control characters reach no terminal.
                tracing::info!(target: "hook.stderr", hook = %name, text = ?text.trim_end());
                tail.push(&piece[..len]);
            }
        }
    }
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
}
