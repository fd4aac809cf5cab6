//! The agent hooks' own words: their conditions, their records, what is sent to a handler and what it may answer.

pub mod builtin;
pub mod condition;
pub mod judge;
pub mod reply;
pub mod payload;
pub mod record;
