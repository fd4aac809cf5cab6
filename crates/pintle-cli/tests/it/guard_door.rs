//! The hook door: the built daemon and the built hook, with payloads as Claude Code writes them.

mod asks;
mod calls;
mod door;
mod every_agent;
mod faults;
mod handed_over;
mod hosts_ask;
mod install;
mod machine;
mod models;
mod people;
mod plugins;
mod reconciled;
mod taken_away;
mod upstream;
