//! Real coding agents under guard, with a model of ours on loopback. `./pintle test --hosts` installs and runs them.

#![cfg(test)]

mod agents;
mod cells;
mod door;
mod model;
mod taken_away;
mod world;
