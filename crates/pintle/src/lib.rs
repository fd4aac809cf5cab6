//! The `pintle` command as a library: configuration and errors, so that tests reach them without a process.

pub mod config;
pub mod error;
