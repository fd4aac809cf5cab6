//! What the user writes under `hooks`: the raw keys, and the hooks that they become.
//!
//! Read in this order: [`raw`] (every key there is; the JSON Schema of the configuration is made from it),
//! [`stages`] (where a hook acts, how long it may take, what its faults become), [`entry`] (one entry resolved,
//! switched off, or turned into a stub that stays shut), [`problem`] (what is wrong, and where).

pub mod entry;
pub mod problem;
pub mod raw;
pub mod stages;

pub use entry::{ChildMode, EntryContext, EventForm, ProcessEntry, broken, builtin, idle, process};
pub use problem::{EntryProblem, MemberPart};
pub use stages::{Defaults, StagePolicy};
