//! How many files this process may have open, and how many children that is enough for.

/// What a host holds open for a child: its input, its two outputs, and the word of its adopter.
const PER_CHILD: u64 = 4;
/// What a host needs besides: stores, servers, requests, its runtime.
const BESIDES: u64 = 64;

/// Limits of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenFiles {
    /// How many files it could have open when it began. Its children get this limit.
    pub before: u64,
    /// How many it can have open now.
    pub now: u64,
}

impl OpenFiles {
    /// For how many children that is enough at once.
    pub fn children(&self) -> u64 {
        self.now.saturating_sub(BESIDES) / PER_CHILD
    }
}
