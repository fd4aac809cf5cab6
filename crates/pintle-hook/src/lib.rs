//! The hook that coding agents start: as little as can ask the daemon of the guard, and refuse where nobody answers.
//!
//! [`frame`] is what goes over the socket, in both directions, and knows no file and no clock; [`key`] the key that proves
//! an answer; [`options`] the command line that an installation writes; [`asking`] asks once; [`start`] brings a daemon
//! up where none listens; [`account`] finds the daemon of whoever runs the hook; [`waiting`] says how long all of it may take. [`client`] puts them together: exactly one
//! document leaves, before the host's deadline.
//!
//! To stay small it imports no crate of ours but `guard`. `cargo xtask hook` builds it as it ships.

pub mod account;
pub mod asking;
pub mod client;
pub mod frame;
pub mod key;
pub mod options;
pub mod start;
pub mod waiting;
