//! Drives turns: the loop, its tools, its conversations.

pub mod tools;
