//! The `pintle` command as a library, so that tests reach its parts without a process.

mod boot;
pub mod clean;
pub mod cli;
mod collector;
pub mod config;
pub mod crew;
pub mod error;
mod files;
pub mod home;
pub mod host;
pub(crate) mod judges;
pub mod moment;
pub mod operator;
pub mod orphans;
mod rule_files;
pub mod rules;
pub mod reload;
mod servers;
mod skills;
pub mod timeline;
pub mod tool_names;
