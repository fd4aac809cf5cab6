//! Cuts what a child writes into lines, without looking at any byte twice. Pure.

use memchr::memchr;
use pintle_dialects::process::frame::IdScanner;

/// Least room offered to a read: what a pipe holds by default.
const READ_BYTES: usize = 64 << 10;
/// Room while an oversized line is skipped: what our pipes hold.
const SKIP_BYTES: usize = 1 << 20;
/// From this length on a line takes the buffer with it instead of being copied out.
const MOVED_BYTES: usize = 32 << 10;

/// A buffer that gives out whole lines.
#[derive(Debug)]
pub(super) struct Lines {
    buf: Vec<u8>,
    /// Where the unread part begins.
    start: usize,
    /// Before this no newline stands in the unread part.
    scanned: usize,
    limit: usize,
    skipping: Option<IdScanner>,
}

/// One line.
#[derive(Debug, PartialEq)]
pub(super) enum Line {
    /// Without its newline.
    Whole(Vec<u8>),
    /// Above the limit; of its content only the top-level id was kept.
    TooLong(Option<u64>),
}

impl Lines {
    /// Lines of at most `limit` bytes.
    pub(super) fn new(limit: usize) -> Self {
        Self { buf: Vec::new(), start: 0, scanned: 0, limit, skipping: None }
    }

    /// Room to append what was read.
    pub(super) fn room(&mut self) -> &mut Vec<u8> {
        if self.start > 0 {
            self.buf.drain(..self.start);
            self.scanned -= self.start;
            self.start = 0;
        }
        // `reserve` at least doubles, so a long line is moved a logarithmic number of times.
        self.buf.reserve(READ_BYTES);
        &mut self.buf
    }

    /// The next line that is complete.
    pub(super) fn next(&mut self) -> Option<Line> {
        let newline = memchr(b'\n', &self.buf[self.scanned..]).map(|at| self.scanned + at);
        if let Some(scanner) = &mut self.skipping {
            let end = newline.unwrap_or(self.buf.len());
            scanner.feed(&self.buf[self.start..end]);
            self.pass(newline.map_or(end, |at| at + 1));
            newline?;
            return self.skipping.take().map(|scanner| Line::TooLong(scanner.id()));
        }
        let Some(end) = newline else {
            self.scanned = self.buf.len();
            if self.buf.len() - self.start > self.limit {
                self.skip();
            }
            return None;
        };
        Some(self.cut(end))
    }

    /// The last line, if it was not ended.
    pub(super) fn finish(mut self) -> Option<Line> {
        if let Some(scanner) = self.skipping {
            return Some(Line::TooLong(scanner.id()));
        }
        (self.start < self.buf.len()).then(|| self.cut(self.buf.len()))
    }

    fn cut(&mut self, end: usize) -> Line {
        if end - self.start > self.limit {
            let mut scanner = IdScanner::new();
            scanner.feed(&self.buf[self.start..end]);
            self.pass((end + 1).min(self.buf.len()));
            return Line::TooLong(scanner.id());
        }
        if self.start == 0 && end >= MOVED_BYTES {
            let rest = self.buf.get(end + 1..).unwrap_or_default().to_vec();
            let mut line = std::mem::replace(&mut self.buf, rest);
            line.truncate(end);
            self.scanned = 0;
            return Line::Whole(line);
        }
        let line = self.buf[self.start..end].to_vec();
        self.pass((end + 1).min(self.buf.len()));
        Line::Whole(line)
    }

    /// From here to its newline the line is only scanned for its id.
    fn skip(&mut self) {
        let mut scanner = IdScanner::new();
        scanner.feed(&self.buf[self.start..]);
        self.buf = Vec::with_capacity(SKIP_BYTES);
        (self.start, self.scanned) = (0, 0);
        self.skipping = Some(scanner);
    }

    /// Everything before `to` has been dealt with.
    fn pass(&mut self, to: usize) {
        if to == self.buf.len() && self.buf.capacity() > SKIP_BYTES {
            // One long line must not keep its memory for ever.
            *self = Self { skipping: self.skipping.take(), ..Self::new(self.limit) };
        } else if to == self.buf.len() {
            self.buf.clear();
            (self.start, self.scanned) = (0, 0);
        } else {
            (self.start, self.scanned) = (to, to);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of `text` when it arrives in pieces of `piece` bytes.
    fn lines(text: &[u8], piece: usize, limit: usize) -> Vec<Line> {
        let mut lines = Lines::new(limit);
        let mut out = Vec::new();
        for chunk in text.chunks(piece) {
            lines.room().extend_from_slice(chunk);
            while let Some(line) = lines.next() {
                out.push(line);
            }
        }
        out.extend(lines.finish());
        out
    }

    fn whole(text: &str) -> Line {
        Line::Whole(text.as_bytes().to_vec())
    }

    #[test]
    fn lines_come_out_whole_whatever_the_pieces() {
        let text = b"a\n\nbcd\r\n\xff\xfe\nlast";
        let expected = [whole("a"), whole(""), whole("bcd\r"), Line::Whole(b"\xff\xfe".to_vec()), whole("last")];
        for piece in 1..=text.len() {
            assert_eq!(lines(text, piece, 100), expected, "pieces of {piece}");
        }
    }

    #[test]
    fn long_lines_are_moved_out_and_what_follows_stays() {
        let long = "x".repeat(200_000);
        let text = format!("a\n{long}\nb\n{long}\nc");
        for piece in [1000, 65_536, 1 << 20] {
            assert_eq!(
                lines(text.as_bytes(), piece, 1 << 20),
                [whole("a"), whole(&long), whole("b"), whole(&long), whole("c")],
                "pieces of {piece}"
            );
        }
    }

    #[test]
    fn a_line_above_the_limit_keeps_its_id_and_nothing_else() {
        let long = format!(r#"{{"x":"{}","id":7,"y":{{"id":8}}}}"#, "z".repeat(5000));
        let text = format!("before\n{long}\nafter\n{long}");
        for piece in [1, 7, 100, 4096, 100_000] {
            assert_eq!(
                lines(text.as_bytes(), piece, 1000),
                [whole("before"), Line::TooLong(Some(7)), whole("after"), Line::TooLong(Some(7))],
                "pieces of {piece}"
            );
        }
    }

    #[test]
    fn a_line_of_exactly_the_limit_passes() {
        assert_eq!(lines(b"12345\n123456\n12345", 3, 5), [whole("12345"), Line::TooLong(None), whole("12345")]);
    }
}
