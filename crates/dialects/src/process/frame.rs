//! Lines to and from a child: one JSON object each.

use std::ops::Range;

/// A line from the child, read as far as its envelope.
#[derive(Debug)]
pub enum Incoming {
    /// A reply to the pending call `id`.
    Reply(RpcReply),
    /// No reply to anything: blank, an event, a request of the hook's own. `why` is for the log; empty for silence.
    Noise {
        /// What it was, for the log.
        why: String,
    },
    /// A line that cannot be decoded.
    Bad {
        /// The call that it would have answered, if that can still be read.
        id: Option<u64>,
        /// What is wrong.
        detail: String,
    },
}

/// A reply, its result still as text inside its line.
#[derive(Debug)]
pub struct RpcReply {
    /// Which call it answers.
    pub id: u64,
    /// What it carries.
    pub body: RpcBody,
    /// Likely mistakes in the envelope.
    pub warnings: Vec<String>,
}

/// What a reply carries.
#[derive(Debug)]
pub enum RpcBody {
    /// A result that is not null: the bytes of `line` in `range` are one JSON value in valid UTF-8.
    Result {
        /// The whole line, cleaned of invalid text.
        line: String,
        /// Where the result stands in it.
        range: Range<usize>,
    },
    /// No result, `null` or neither member: an empty answer.
    Empty,
    /// The hook's own error.
    Error {
        /// Its message.
        message: String,
    },
}
