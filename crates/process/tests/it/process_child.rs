//! Process hooks with real children: what they do wrong, and what the hook makes of it.

#![expect(clippy::unwrap_used, reason = "a step that fails fails its test")]

mod close;
mod events;
mod faults;
mod logs;
mod replies;
mod restart;
mod stage;
