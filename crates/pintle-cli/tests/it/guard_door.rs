//! The hook door: the built daemon and the built hook, with payloads as Claude Code writes them.

mod adopting;
mod asks;
mod calls;
mod door;
mod every_agent;
mod faults;
mod install;
mod models;
mod people;
mod plugins;
mod reconciled;
mod taken_away;
mod upstream;
