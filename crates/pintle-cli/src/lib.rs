//! The `pintle` command as a library, so that tests reach its parts without a process.

pub mod clean;
pub mod cli;
pub mod error;
mod guard;
pub mod moment;
pub mod operator;
mod table;
pub mod text;
pub mod timeline;
mod turn_counts;
