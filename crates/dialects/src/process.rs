//! Process hooks: JSON-RPC 2.0, one message a line, as PicoClaw speaks it.

pub mod config;
pub mod frame;
pub mod wire;
