//! Why a question or an answer in a store does not count.

use std::fmt;

/// Why what stands in a store of a question does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApprovalFlaw {
    /// What it shows is not what its digest is over, or not what was asked.
    Altered,
    /// It says that it was answered, and nobody sealed that.
    Unsealed,
    /// Its seal is not over what stands there, or not of a key that is here.
    BrokenSeal,
    /// Nothing that was sealed in its store is sealed with a key that is here: it may be as it was asked and answered.
    OtherKey,
    /// The audit chain says that a call used it already.
    UsedBefore,
    /// What the audit chain says since it was asked is not whole.
    BrokenChain,
}

impl fmt::Display for ApprovalFlaw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Altered => "what stands in the store is not what was asked",
            Self::Unsealed => "its answer carries no seal: an older version wrote it, or no person gave it",
            Self::BrokenSeal => "its seal does not fit: it was altered in the store, or another key sealed it",
            Self::OtherKey => {
                "the key here differs from the one that sealed it; set `PINTLE_ENCRYPTION_KEY` as it is set where it was \
                 asked"
            }
            Self::UsedBefore => "it was used before: the audit chain says so",
            Self::BrokenChain => {
                "entries of the audit chain are missing or altered since it was asked, so nothing says that it was not \
                 used before; see `pintle audit verify`"
            }
        })
    }
}
