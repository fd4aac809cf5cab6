//! The ways of running a hook.

pub mod native;
pub mod process;
