//! The processes of one command: a session, of which nothing survives.
//!
//! The leader is reaped last. Until then its process id, which names the group and the session, cannot be given to
//! anybody else, and so no signal can hit a stranger.

use std::fs;
use std::io::{self, PipeWriter};
use std::os::unix::process::ExitStatusExt as _;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill, killpg};
use nix::sys::wait::{Id, WaitPidFlag, waitid};
use nix::unistd::{Pid, getpid};
use process_wrap::tokio::ChildWrapper;
use tokio::time::Instant;

/// How often the members of a session are looked for while they are given time to end.
const LOOK: Duration = Duration::from_millis(20);

/// How often those that are left are killed: each round outruns what a process started meanwhile, and only a process
/// that the kernel holds in an uninterruptible wait is left after a few.
const MAX_ROUNDS: usize = 50;

/// How a command ended.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Exit {
    Code(i32),
    Signal(i32),
    Unknown,
}

/// A running command. Dropping it kills the group.
pub(super) struct Session {
    child: Box<dyn ChildWrapper>,
    leader: Pid,
    /// The helper holds the other end: when the host is gone, it ends the session.
    _lifeline: Option<PipeWriter>,
    over: bool,
}

impl Session {
    pub(super) fn new(child: Box<dyn ChildWrapper>, lifeline: Option<PipeWriter>) -> io::Result<Self> {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        let leader = Pid::from_raw(id.ok_or_else(|| io::Error::other("it ended before it began"))?);
        Ok(Self { child, leader, _lifeline: lifeline, over: false })
    }

    /// Waits until the leader has ended, and leaves it to be reaped.
    pub(super) async fn ended(&self) {
        let leader = self.leader;
        let wait = move || {
            while waitid(Id::Pid(leader), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT) == Err(Errno::EINTR) {}
        };
        // It can only fail if the runtime shuts down, and then waiting is over too.
        drop(tokio::task::spawn_blocking(wait).await);
    }

    /// Ends every member: asks them to, gives them `grace`, kills the rest. Returns how the leader ended.
    pub(super) async fn stop(&mut self, grace: Duration) -> Exit {
        let until = Instant::now() + grace;
        if !self.members().is_empty() {
            self.signal(Signal::SIGTERM);
            while !self.members().is_empty() && Instant::now() < until {
                tokio::time::sleep(LOOK).await;
            }
        }
        for _ in 0..MAX_ROUNDS {
            if self.members().is_empty() {
                break;
            }
            self.signal(Signal::SIGKILL);
            tokio::time::sleep(LOOK).await;
        }
        self.signal(Signal::SIGKILL);
        self.over = true;
        match self.child.wait().await {
            Ok(status) => match (status.code(), status.signal()) {
                (Some(code), _) => Exit::Code(code),
                (None, Some(signal)) => Exit::Signal(signal),
                (None, None) => Exit::Unknown,
            },
            Err(_) => Exit::Unknown,
        }
    }

    /// Signals the group, and those members of the session that formed groups of their own; nobody twice, since a
    /// second request to end makes many programs give up on ending well.
    fn signal(&self, signal: Signal) {
        let elsewhere = self.members().into_iter().filter(|member| member.group != self.leader);
        // Both fail only for who is gone already.
        killpg(self.leader, signal).ok();
        for member in elsewhere {
            kill(member.pid, signal).ok();
        }
    }

    /// The processes of the session that still run.
    fn members(&self) -> Vec<GroupMember> {
        members(self.leader)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        if !self.over {
            self.signal(Signal::SIGKILL);
        }
    }
}

/// The processes of the session that `leader` leads, as far as they still run.
fn members(leader: Pid) -> Vec<GroupMember> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(GroupMember::read).filter(|member| member.session == leader).collect()
}

/// Kills every process of the session that this process leads, but not this one.
pub(super) fn kill_own_session() {
    let leader = getpid();
    for _ in 0..MAX_ROUNDS {
        let others: Vec<GroupMember> = members(leader).into_iter().filter(|member| member.pid != leader).collect();
        if others.is_empty() {
            return;
        }
        for member in others {
            // It fails only for who is gone already.
            kill(member.pid, Signal::SIGKILL).ok();
        }
        std::thread::sleep(LOOK);
    }
}

/// A process that runs.
struct GroupMember {
    pid: Pid,
    group: Pid,
    session: Pid,
}

impl GroupMember {
    /// `None` for a process that has ended, reaped or not.
    fn read(pid: i32) -> Option<Self> {
        let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
        // The second field is the name in parentheses and may hold anything; then come state, parent, group, session.
        let after_name = stat.iter().rposition(|byte| *byte == b')')?;
        let mut fields = std::str::from_utf8(&stat[after_name + 1..]).ok()?.split_ascii_whitespace();
        if matches!(fields.next()?, "Z" | "X") {
            return None;
        }
        let mut id = |skip| fields.nth(skip)?.parse().ok().map(Pid::from_raw);
        Some(Self { pid: Pid::from_raw(pid), group: id(1)?, session: id(0)? })
    }
}
