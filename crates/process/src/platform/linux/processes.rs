//! The processes that have come to the host.

use std::fs::{self, File};
use std::io::{self, Read as _};
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

/// Room for what the system says of a process up to the last field that is read here: its id, a name of at most 64 bytes,
/// each of which may be written as two, and twenty numbers.
const STAT_BYTES: usize = 1024;

/// What the system says of a process. Source: proc_pid_stat(5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessStat {
    /// What it is called, which it can choose itself.
    pub name: String,
    /// The process that started or adopted it.
    pub parent: u32,
    /// Its group.
    pub group: i32,
    /// Its session: the process that began it.
    pub session: i32,
    /// The number of its controlling terminal; 0 where it has none.
    pub terminal: i32,
    /// Whether it has ended and waits to be reaped.
    pub has_ended: bool,
    /// Since when it runs, in ticks since the machine started: with the id it names a process for good.
    pub since: u64,
}

impl ProcessStat {
    /// What is said of the process `pid`, if there is one.
    pub fn of(pid: u32) -> Option<Self> {
        let mut bytes = [0; STAT_BYTES];
        // The system hands out at once as much of it as there is room for.
        let length = File::open(format!("/proc/{pid}/stat")).ok()?.read(&mut bytes).ok()?;
        Self::read(bytes.get(..length)?)
    }

    fn read(stat: &[u8]) -> Option<Self> {
        // The second field is the name in parentheses and may hold anything; then come state, parent, group, session and
        // terminal.
        let (begins, ends) = (stat.iter().position(|it| *it == b'(')?, stat.iter().rposition(|it| *it == b')')?);
        let name = String::from_utf8_lossy(stat.get(begins + 1..ends)?).into_owned();
        let mut fields = std::str::from_utf8(stat.get(ends + 1..)?).ok()?.split_ascii_whitespace();
        let has_ended = fields.next()? == "Z";
        let (parent, group) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        let (session, terminal) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        // Fourteen others stand between.
        let since = fields.nth(14)?.parse().ok()?;
        Some(Self { name, parent, group, session, terminal, has_ended, since })
    }
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
        let ProcessStat { parent, group, has_ended, .. } = ProcessStat::of(pid.cast_unsigned())?;
        Some(Self { pid, parent: parent.cast_signed(), group, has_ended })
    }

    /// Whether it runs the same program as this process.
    pub(crate) fn is_own_program(&self) -> bool {
        let identity = |exe: String| fs::metadata(exe).ok().map(|of| (of.dev(), of.ino()));
        let own = identity("/proc/self/exe".into());
        own.is_some() && own == identity(format!("/proc/{}/exe", self.pid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_hold_anything() {
        let fields = " S 7 8 8 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 4711 0";
        let of = |name: &str| ProcessStat::read(format!("12 ({name}){fields}").as_bytes()).unwrap();
        let stat = of("a) (b) Z 1");
        assert_eq!((stat.name.as_str(), stat.parent, stat.group, stat.has_ended), ("a) (b) Z 1", 7, 8, false));
        assert_eq!((stat.since, stat.session, stat.terminal), (4711, 8, 0));
        // A name need not be text, and may be cut within a character.
        let stat = ProcessStat::read(&[&b"12 (a\xff) (\xc3)"[..], fields.as_bytes()].concat()).unwrap();
        assert_eq!((stat.name.as_str(), stat.parent, stat.since), ("a\u{fffd}) (\u{fffd}", 7, 4711));
        let ended = ProcessStat::read(b"12 (a) Z 1 12 12 34816 12 4 0 0 0 0 0 0 0 0 20 0 1 0 5 0").unwrap();
        assert_eq!((ended.has_ended, ended.session, ended.terminal, ended.since), (true, 12, 34816, 5));
        for cut in ["", "12", "12 (a", "12 (a) S 7", "12 (a) S 7 8 8 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0"] {
            assert_eq!(ProcessStat::read(cut.as_bytes()), None, "{cut}");
        }
        let (own, line) = (std::process::id(), fs::read("/proc/self/stat").unwrap());
        assert!(line.len() < STAT_BYTES, "{}", line.len());
        assert_eq!(ProcessStat::of(own), ProcessStat::read(&line));
        assert_eq!(ProcessStat::of(own).unwrap().parent, std::os::unix::process::parent_id());
        assert_eq!(ProcessStat::of(u32::MAX), None);
    }
}
