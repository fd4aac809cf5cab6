//! The ways of running a hook.

pub mod agent;
pub mod http;
pub mod command;
pub mod native;
pub mod process;
