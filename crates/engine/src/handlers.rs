//! The ways of running a hook.

pub mod process;
