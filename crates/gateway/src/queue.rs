//! What waits to be written to one connection. Pure.
//!
//! Responses and texts of hooks are never dropped: a client that does not take them is closed. Events are, and the gap in
//! their numbers tells the client.

use std::collections::VecDeque;

use crate::frame::numbered;

/// Most events that wait: some seconds of a lively conversation. Source: the published protocol.
pub(crate) const MAX_EVENTS: usize = 256;

/// Most bytes that wait before a connection is closed: more than anybody reads who still reads.
pub(crate) const MAX_WAITING_BYTES: usize = 4 << 20;

/// The frames of one connection, in order.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    frames: VecDeque<Frame>,
    events: usize,
    bytes: usize,
    dropped: usize,
    seq: u64,
}

#[derive(Debug)]
struct Frame {
    text: String,
    is_event: bool,
}

/// How far a client is behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) frames: usize,
    pub(crate) bytes: usize,
    /// Events that it did not get.
    pub(crate) dropped: usize,
}

/// The client does not take what it is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TooSlow;

impl Queue {
    /// A response goes out after what waits.
    pub(crate) fn response(&mut self, text: String) -> Result<(), TooSlow> {
        self.push(text, false)
    }

    /// The text of a hook, with the next number.
    pub(crate) fn hook(&mut self, head: &str) -> Result<(), TooSlow> {
        self.seq += 1;
        let text = numbered(head, self.seq);
        self.push(text, false)
    }

    /// An event, with the next number; dropped where too many wait.
    pub(crate) fn event(&mut self, head: &str) -> Result<(), TooSlow> {
        self.seq += 1;
        if self.events >= MAX_EVENTS {
            self.dropped += 1;
            return Ok(());
        }
        let text = numbered(head, self.seq);
        self.push(text, true)
    }

    fn push(&mut self, text: String, is_event: bool) -> Result<(), TooSlow> {
        self.bytes += text.len();
        self.events += usize::from(is_event);
        self.frames.push_back(Frame { text, is_event });
        if self.bytes > MAX_WAITING_BYTES { Err(TooSlow) } else { Ok(()) }
    }

    /// How much waits, and what was dropped.
    pub(crate) fn waiting(&self) -> Waiting {
        Waiting { frames: self.frames.len(), bytes: self.bytes, dropped: self.dropped }
    }

    /// The next frame to write.
    pub(crate) fn pop(&mut self) -> Option<String> {
        let Frame { text, is_event } = self.frames.pop_front()?;
        self.bytes -= text.len();
        self.events -= usize::from(is_event);
        if self.frames.is_empty() {
            // An idle connection keeps no room.
            self.frames = VecDeque::new();
        }
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(queue: &mut Queue) -> Vec<String> {
        std::iter::from_fn(|| queue.pop()).collect()
    }

    #[test]
    fn everything_keeps_its_order() {
        let mut queue = Queue::default();
        queue.event("{\"e\":1").unwrap();
        queue.response("r".into()).unwrap();
        queue.hook("{\"h\":1").unwrap();
        assert_eq!(all(&mut queue), [r#"{"e":1,"seq":1}"#, "r", r#"{"h":1,"seq":2}"#]);
    }

    #[test]
    fn events_that_nobody_takes_leave_a_gap_and_nothing_else_is_dropped() {
        let mut queue = Queue::default();
        for _ in 0..MAX_EVENTS + 3 {
            queue.event("{\"e\":1").unwrap();
        }
        queue.response("r".into()).unwrap();
        queue.hook("{\"h\":1").unwrap();
        let taken = all(&mut queue);
        assert_eq!(taken.len(), MAX_EVENTS + 2);
        assert_eq!(taken[MAX_EVENTS - 1], format!(r#"{{"e":1,"seq":{MAX_EVENTS}}}"#));
        assert_eq!(taken[MAX_EVENTS + 1], format!(r#"{{"h":1,"seq":{}}}"#, MAX_EVENTS + 4));
    }

    #[test]
    fn whoever_takes_nothing_is_too_slow() {
        let mut queue = Queue::default();
        assert_eq!(queue.response("x".repeat(MAX_WAITING_BYTES)), Ok(()));
        assert_eq!(queue.response("x".into()), Err(TooSlow));
    }
}
