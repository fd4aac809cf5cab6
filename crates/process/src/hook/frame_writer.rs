//! The frames that are written to one child, and the right to write them.

use std::io::IoSlice;

use bytes::Bytes;
use pintle_dialects::process::frame::{self, FRAME_TAIL};
use tokio::net::unix::pipe;

/// Most bytes of one write. A child that waits is woken when a write ends, so it reads the beginning of a long frame
/// while the next part is being written.
pub(super) const WRITE_BYTES: usize = 128 << 10;

/// Most bytes of short frames that are copied together to be written at once: less than a pipe holds by default, and
/// little enough that copying costs less than another write.
pub(super) const JOINED_BYTES: usize = 32 << 10;

/// Longest frame that is copied into one piece: to write several costs the kernel more than copying so few.
const COPIED_BYTES: usize = 4 << 10;

/// One line on its way, in up to three parts so that shared params are never copied.
#[derive(Debug)]
pub(super) struct Frame {
    head: Vec<u8>,
    params: Bytes,
    tail: &'static [u8],
}

impl Frame {
    /// The call `id`.
    pub(super) fn call(id: u64, method: &str, params: Bytes) -> Self {
        Self { head: frame::request_head(id, method), params, tail: FRAME_TAIL }
    }

    pub(super) fn whole(line: Vec<u8>) -> Self {
        Self { head: line, params: Bytes::new(), tail: &[] }
    }

    pub(super) fn len(&self) -> usize {
        self.head.len() + self.params.len() + self.tail.len()
    }

    /// What is to be written after `written` bytes, if it is in one piece.
    pub(super) fn piece(&self, written: usize) -> Option<&[u8]> {
        (self.params.is_empty() && self.tail.is_empty()).then(|| &self.head[written..])
    }

    /// Its length as a line, without the newline.
    pub(super) fn line_len(&self) -> usize {
        self.len() - 1
    }

    /// What is to be written next, after `written` bytes.
    pub(super) fn rest(&self, mut written: usize) -> [IoSlice<'_>; 3] {
        let mut room = WRITE_BYTES;
        [self.head.as_slice(), &self.params, self.tail].map(|part| {
            let skip = written.min(part.len());
            written -= skip;
            let end = part.len().min(skip + room);
            room -= end - skip;
            IoSlice::new(&part[skip..end])
        })
    }
}

/// A frame of which a part may be written. It is finished whatever happens, or the child could not read on.
#[derive(Debug)]
pub(super) struct BegunFrame {
    pub(super) frame: Frame,
    /// Short frames that are to go out in the same write.
    pub(super) company: Vec<Frame>,
    pub(super) written: usize,
}

impl BegunFrame {
    /// Makes one piece of a short frame, or of one with company. Not done where it is collected, since others wait for
    /// that lock.
    pub(super) fn join(&mut self) {
        let alone = self.company.is_empty();
        if self.written > 0 || alone && (self.frame.len() > COPIED_BYTES || self.frame.piece(0).is_some()) {
            return;
        }
        let mut lines = Vec::with_capacity(if alone { self.frame.len() } else { JOINED_BYTES });
        for frame in std::iter::once(&self.frame).chain(&self.company) {
            for part in [&frame.head, &*frame.params, frame.tail] {
                lines.extend_from_slice(part);
            }
        }
        self.frame = Frame::whole(lines);
        self.company.clear();
    }
}

/// The right to write: whoever holds the pipe has it.
#[derive(Debug)]
pub(super) enum FrameWriter {
    /// Nobody writes.
    Free(pipe::Sender),
    /// The pipe is full; the writer's task is to wait for it.
    Full(pipe::Sender),
    /// Somebody writes.
    Taken,
    /// Somebody writes, and is to close the pipe afterwards.
    Last,
    /// The pipe is closed.
    Shut,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_of_a_frame_begins_where_the_writing_stopped() {
        let frame = Frame::call(7, "hook.x", Bytes::from_static(b"{\"a\":1}"));
        let whole = "{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"hook.x\",\"params\":{\"a\":1}}\n";
        assert_eq!((frame.len(), frame.line_len()), (whole.len(), whole.len() - 1));
        for written in 0..=whole.len() {
            let rest = frame.rest(written).map(|part| part.to_vec()).concat();
            assert_eq!(String::from_utf8(rest).unwrap(), whole[written..]);
        }
        assert_eq!(frame.piece(0), None);
        let mut begun = BegunFrame { frame, company: Vec::new(), written: 0 };
        begun.join();
        assert_eq!(begun.frame.piece(5).unwrap(), &whole.as_bytes()[5..]);
        // What is half written stays as it is, and so does what is long.
        let long = || Frame::call(7, "hook.x", Bytes::from(vec![b' '; COPIED_BYTES]));
        for (frame, written) in [(long(), 0), (Frame::call(7, "hook.x", Bytes::from_static(b"{}")), 3)] {
            let mut begun = BegunFrame { frame, company: Vec::new(), written };
            begun.join();
            assert_eq!(begun.frame.piece(written), None);
        }
    }
}
