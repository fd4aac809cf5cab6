//! What is counted over the life of a hook, all its children together.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counters that only grow.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) late_replies: Count,
    pub(super) unknown_replies: Count,
    pub(super) oversized_calls: Count,
    pub(super) stray_lines: Count,
}

/// One counter.
#[derive(Debug, Default)]
pub(super) struct Count(AtomicU64);

impl Count {
    /// Adds one.
    pub(super) fn up(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// The count so far.
    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
