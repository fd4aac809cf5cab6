//! The agent's loop, with scripted models and real hooks.

mod checkpoints;
mod host;
mod plugin;
mod turns;
