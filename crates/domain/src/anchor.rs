//! What is known of a store outside of it, and what that says of the store as it is found.
//!
//! Whoever can write to a store can take a rule out of it, put an older copy in its place or empty it, and nothing in
//! the store need tell. An [`Anchor`] lies beside the keys: which store it was, how far its audit chains went, and which
//! rules were there. [`compare`] says what became of that.

mod chain;
mod compare;
mod known;
mod seen;

pub use chain::ChainSeen;
pub use compare::{AnchorStanding, Comparison, compare};
pub use known::{Anchor, AnchoredChain, AnchoredRule};
pub use seen::{DoubtKind, RuleDoubt, RuleEntry, RuleLeft, StoreSeen};
