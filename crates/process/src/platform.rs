//! What the system of this machine does in its own way: how a child is made and bound to the host's life, how its end is
//! noticed, who adopts what it leaves behind and ends it. Another system is another file with the same functions.

use std::ffi::CStr;

#[cfg(target_os = "linux")]
mod linux;

/// What the processes are called that stand between a host and each of its children. Whoever has one above it was
/// started by a host of agents.
pub const ADOPTER_NAME: &CStr = c"pintle-adopter";

/// Who is at the other end of a connection within this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerProcess {
    /// A process that a host of agents started, or one below it.
    OfAgent,
    /// Another one.
    Other,
    /// Nobody any more, so nobody can say who it was.
    Gone,
}

#[cfg(target_os = "linux")]
pub(crate) use linux::{
    Adopter, ChildProcess, Image, Lead, Order, Start, StartFailure, Started, Step, Told, adopt_orphans, children,
    read_into, start, watched, widen,
};
#[cfg(target_os = "linux")]
pub use linux::{ProcessStat, give_back_code, peer_of_pid, peer_of_tcp, raise_open_files};
