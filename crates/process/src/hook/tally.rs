//! What is counted over the life of a hook, all its children together.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// Counters that only grow.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) late_replies: Count,
    pub(super) unknown_replies: Count,
    pub(super) oversized_calls: Count,
    pub(super) stray_lines: Count,
    pub(super) answered: LastTime,
}

/// When something happened last.
#[derive(Debug)]
pub(super) struct LastTime {
    from: Instant,
    /// Milliseconds since `from`, counted from 1; 0 while it never happened.
    last: AtomicU64,
}

impl Default for LastTime {
    fn default() -> Self {
        Self { from: Instant::now(), last: AtomicU64::new(0) }
    }
}

impl LastTime {
    /// It happened at about `at`.
    pub(super) fn is(&self, at: Instant) {
        let millis = at.saturating_duration_since(self.from).as_millis();
        self.last.store(u64::try_from(millis).unwrap_or(u64::MAX - 1) + 1, Ordering::Relaxed);
    }

    /// How long ago it was at `now`, if it ever was.
    pub(super) fn ago(&self, now: Instant) -> Option<Duration> {
        let last = self.last.load(Ordering::Relaxed).checked_sub(1)?;
        Some(now.saturating_duration_since(self.from + Duration::from_millis(last)))
    }
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
