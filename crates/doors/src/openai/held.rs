//! What is held of a streamed answer.

use crate::spans::JsonDocument;
use crate::strict::MAX_HELD_BYTES;
use pintle_egress::sse::Event;

/// All that came since the first part of a call.
#[derive(Debug, Default)]
pub(super) struct HeldChunks {
    /// Them, as far as they could be read.
    pub(super) events: Vec<(Event, Option<JsonDocument>)>,
    /// Whether what comes is held.
    pub(super) is_holding: bool,
    /// How many bytes are held, with those of the text.
    pub(super) bytes: usize,
}

impl HeldChunks {
    /// Holds one more.
    pub(super) fn push(&mut self, event: Event, document: Option<JsonDocument>) {
        self.bytes += event.raw.len();
        self.events.push((event, document));
    }

    /// Whether that is too much.
    pub(super) const fn is_too_much(&self) -> bool {
        self.bytes > MAX_HELD_BYTES
    }
}
