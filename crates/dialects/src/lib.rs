//! Other people's hook wires, to and from our words. Pure.

pub mod process;
