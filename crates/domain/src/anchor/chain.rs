//! An audit chain as it is found.

use crate::audit::{ChainHead, Hash};

/// An audit chain as it is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainSeen {
    /// Its end.
    pub head: ChainHead,
    /// The hash of the row that was the last one; nothing if that row is gone.
    pub anchored: Option<Hash>,
    /// Up to which row it is cut.
    pub cut: u64,
    /// Its last row that is signed.
    pub signed: u64,
}

impl ChainSeen {
    /// Whether no row is left of it.
    pub fn is_empty(&self) -> bool {
        self.cut == self.head.seq
    }
}
