//! What keeps a store from doing something.

use std::fmt;

/// Why the store did not do it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreError {
    /// It cannot be reached, opened or written.
    Unavailable(String),
    /// The content of the store cannot be read.
    Corrupt(String),
    /// There is no such thing.
    NotFound(String),
    /// Somebody else was faster, or holds it.
    Conflict(String),
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unavailable(why) => write!(f, "the store is unavailable: {why}"),
            Self::Corrupt(why) => write!(f, "the store holds something unreadable: {why}"),
            Self::NotFound(what) | Self::Conflict(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for StoreError {}
