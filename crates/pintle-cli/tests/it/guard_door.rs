//! The hook door: the built daemon and the built hook, with payloads as Claude Code writes them.

mod adopting;
mod asks;
mod calls;
mod chains;
mod changed_doors;
pub(crate) mod door;
mod door_records;
mod every_agent;
mod faults;
mod handed_over;
mod hosts_ask;
mod install;
mod machine;
mod mistakes;
mod models;
mod newcomers;
mod packed;
mod people;
mod plugins;
mod reading;
mod reconciled;
mod served;
mod taken_away;
pub(crate) mod upstream;
