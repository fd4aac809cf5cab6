//! Other people's hook wires, to and from our words. Pure.

pub mod claude;
pub mod compact;
pub mod process;
pub mod skill;
pub mod tree;
