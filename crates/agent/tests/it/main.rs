//! The agent's loop, with scripted models and real hooks.

#![cfg(test)]

mod host;
mod hooks;
mod turns;
mod requests;
mod denials;
mod responding;
mod rewriting;
mod aborts;
mod calling;
mod cancelling;
mod overlap;
mod faults;
mod evidence;
mod long;
mod checkpoints;
mod plugin;
mod real_model;
