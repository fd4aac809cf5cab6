//! The processes that have come to the host.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;

use nix::unistd::{Pid, getpid};

use super::handle::living;

/// Makes the host the parent of what its children's adopters leave behind when they are killed.
pub(crate) fn adopt_orphans() -> io::Result<()> {
    Ok(nix::sys::prctl::set_child_subreaper(true)?)
}

/// The children of this process, those that have ended included, that are no adopters of its own.
pub(crate) fn children() -> Vec<ChildProcess> {
    // Nobody makes an adopter meanwhile, so that none is taken for another child.
    let living = living();
    let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
    let all = pids.filter_map(|entry| ChildProcess::read(entry.file_name().to_str()?.parse().ok()?));
    all.filter(|child| child.parent == getpid().as_raw() && !living.contains(&Pid::from_raw(child.pid))).collect()
}

/// A process, as the parent that has it now sees it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ChildProcess {
    /// Its id.
    pub(crate) pid: i32,
    /// Its parent's.
    pub(crate) parent: i32,
    /// Its group's.
    pub(crate) group: i32,
    /// Whether it has ended and waits to be reaped.
    pub(crate) has_ended: bool,
}

impl ChildProcess {
    /// The process `pid`, if there is one.
    pub(crate) fn read(pid: i32) -> Option<Self> {
        let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
        // The second field is the name in parentheses and may hold anything; then come state, parent, group.
        let after_name = stat.iter().rposition(|byte| *byte == b')')?;
        let fields = std::str::from_utf8(&stat[after_name + 1..]).ok()?;
        let mut fields = fields.split_ascii_whitespace();
        let has_ended = fields.next()? == "Z";
        let (parent, group) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        Some(Self { pid, parent, group, has_ended })
    }

    /// Whether it runs the same program as this process.
    pub(crate) fn is_own_program(&self) -> bool {
        let identity = |exe: String| fs::metadata(exe).ok().map(|of| (of.dev(), of.ino()));
        let own = identity("/proc/self/exe".into());
        own.is_some() && own == identity(format!("/proc/{}/exe", self.pid))
    }
}
