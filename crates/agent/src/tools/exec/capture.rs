//! The output of a command: its head and its tail, never more.

use std::collections::VecDeque;
use std::io;

use tokio::net::unix::pipe::Receiver;

/// How much of the output is kept, in bytes: half from its start, half from its end, where builds say what failed.
pub(super) const MAX_OUTPUT: usize = 64 * 1024;

/// The number of bytes that are read at once.
const CHUNK: usize = 16 * 1024;

/// Output as it comes.
pub(super) struct Capture {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    lost: u64,
}

impl Capture {
    pub(super) fn new() -> Self {
        Self { head: Vec::new(), tail: VecDeque::new(), lost: 0 }
    }

    /// Reads until every writer has gone. May be dropped and called again at any time.
    pub(super) async fn fill(&mut self, output: &Receiver) {
        let mut chunk = vec![0; CHUNK];
        loop {
            if output.readable().await.is_err() {
                return;
            }
            match output.try_read(&mut chunk) {
                Ok(0) => return,
                Ok(length) => self.push(&chunk[..length]),
                Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                Err(_) => return,
            }
        }
    }

    fn push(&mut self, bytes: &[u8]) {
        let half = MAX_OUTPUT / 2;
        let (to_head, to_tail) = bytes.split_at(bytes.len().min(half - self.head.len()));
        self.head.extend_from_slice(to_head);
        self.tail.extend(to_tail);
        let over = self.tail.len().saturating_sub(half);
        self.lost += over as u64;
        drop(self.tail.drain(..over));
    }

    /// The text, with a line where something is missing.
    pub(super) fn into_text(self) -> String {
        let mut bytes = self.head;
        if self.lost > 0 {
            // A character that was cut in two would become litter.
            trim_end(&mut bytes);
            bytes.extend(format!("\n[… {} bytes left out …]\n", self.lost).into_bytes());
        }
        let mut tail: Vec<u8> = self.tail.into();
        if self.lost > 0 {
            let broken = tail.iter().take(3).take_while(|byte| **byte & 0xc0 == 0x80).count();
            drop(tail.drain(..broken));
        }
        bytes.extend(tail);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

fn trim_end(bytes: &mut Vec<u8>) {
    let whole = match std::str::from_utf8(bytes) {
        Err(e) if e.error_len().is_none() => e.valid_up_to(),
        Ok(_) | Err(_) => bytes.len(),
    };
    bytes.truncate(whole);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn head_and_tail_are_kept_and_the_gap_is_named() {
        let mut capture = Capture::new();
        capture.push(b"start ");
        for _ in 0..10_000 {
            capture.push("\u{20ac}0123456789".as_bytes());
        }
        capture.push(b" end");
        let text = capture.into_text();
        assert!(text.starts_with("start \u{20ac}0123"), "{}", &text[..40]);
        assert!(text.ends_with("0123456789 end"));
        assert!(text.contains("\n[… 64474 bytes left out …]\n"), "{}", text.len());
        assert!(!text.contains('\u{fffd}'));
        assert!(text.len() <= MAX_OUTPUT + 60);
    }

    #[test]
    fn short_output_is_whole_and_bad_bytes_are_marked() {
        let mut capture = Capture::new();
        capture.push(b"a\xffb");
        assert_eq!(capture.into_text(), "a\u{fffd}b");
        assert_eq!(Capture::new().into_text(), "");
    }
}
