//! What the system of this machine does in its own way: how a child is made and bound to the host's life, how its end is
//! noticed, who adopts what it leaves behind. Another system is another file with the same functions.

#[cfg(target_os = "linux")]
mod linux;

#[cfg(target_os = "linux")]
pub(crate) use linux::{
    EndedProcess, Image, Start, StartFailure, Step, adopt_orphans, ended_processes, reap, reap_blocking, start, watch,
    widen,
};
