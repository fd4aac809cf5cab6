//! Commands of rules, as real processes: what they do, and what is left of them.

#![expect(clippy::unwrap_used, reason = "a step that fails fails its test")]

mod ends;
mod flows;
mod leftovers;
mod stage;
