//! The `pintle` command as a library, so that tests reach its parts without a process.

pub mod cli;
pub mod config;
pub mod error;
pub mod host;
pub mod reload;
pub mod timeline;
