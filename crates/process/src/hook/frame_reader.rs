//! The reader of one child's frames: where it is read, and what was read so far.

use std::io::{self, PipeReader};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tokio::net::unix::pipe;
use tokio::sync::Notify;

use super::lines::Lines;

/// Where to hear the child, for callers.
#[derive(Debug)]
pub(super) struct FrameReader {
    /// The child's output. Callers never wait for it, the reader's task does.
    pub(super) stdout: Arc<PipeReader>,
    /// Wakes the reader's task from a nap.
    pub(super) wake: Notify,
    /// The reader's task takes a nap, or is about to. Set with the state locked.
    pub(super) naps: AtomicBool,
}

/// What is read, and by whom.
#[derive(Debug)]
pub(super) struct ReadState {
    /// The lines in the making; whoever has taken them reads.
    pub(super) lines: Option<Lines>,
    /// A caller has read since the nap began or went on.
    pub(super) used: bool,
    /// How many replies callers have read since one of them let other tasks run.
    pub(super) in_a_row: u32,
    /// How many prompt replies there were in a row.
    pub(super) prompt: u32,
}

impl FrameReader {
    /// An ear at `stdout`.
    ///
    /// # Errors
    /// Why the runtime does not let go of it.
    pub(super) fn at(stdout: pipe::Receiver) -> io::Result<Self> {
        let stdout = Arc::new(stdout.into_nonblocking_fd()?.into());
        Ok(Self { stdout, wake: Notify::new(), naps: AtomicBool::new(false) })
    }
}

impl ReadState {
    /// Nothing heard yet; lines have at most `limit` bytes.
    pub(super) fn new(limit: usize) -> Self {
        Self { lines: Some(Lines::new(limit)), used: false, in_a_row: 0, prompt: 0 }
    }
}
