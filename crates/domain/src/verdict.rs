//! The verdict of one hook, with everything that it carries.

pub use crate::checkpoint::verdict::{ParsedVerdict, Verdict};
pub use crate::reason::{Abort, AbortScope, Describe, MAX_REASON_BYTES, Never, Reason, VerdictKind};
