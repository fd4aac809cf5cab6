//! The agent's loop, with scripted models and real hooks.

#![cfg(test)]

mod checkpoints;
mod host;
mod plugin;
mod real_model;
mod turns;
