//! Hooks that only observe: what becomes of their jobs, in memory and in an outbox.

mod closing;
mod judged;
mod lasting;
mod memory;
mod sharing;
mod spans;
mod stage;
mod traced;
