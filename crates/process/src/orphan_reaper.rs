//! What children leave behind stays below the host until it ends.
//!
//! A process whose parent ends goes to the nearest adoptive parent. The host makes itself one, so that whatever a
//! command of `exec` started has the host above it and cannot pass for a person ([`crate::operator`]). Who adopts has
//! to bury, too.

use std::fs;

use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::{Pid, getpgrp, getpid};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The task that buries what was adopted.
#[derive(Debug, Default)]
pub struct OrphanReaper {
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl OrphanReaper {
    /// Adopts what children leave behind from now on, and buries it until [`OrphanReaper::close`]. Needs a runtime.
    pub fn adopt() -> Self {
        let this = Self::default();
        if let Err(error) = nix::sys::prctl::set_child_subreaper(true) {
            tracing::warn!(%error, "what children leave behind cannot be kept below the host");
            return this;
        }
        let Ok(mut ends) = signal(SignalKind::child()) else { return this };
        let stop = this.stop.clone();
        this.tasks.spawn(async move {
            loop {
                tokio::select! {
                    () = stop.cancelled() => return,
                    _ = ends.recv() => reap(),
                }
            }
        });
        this
    }

    /// Buries no more, and waits for the task.
    pub async fn close(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// Reaps the adopted processes that have ended.
///
/// Every child of the host's own leads a group and is waited for by whoever started it. So only those that are not
/// leaders are taken; a leader that was adopted stays until the host ends.
fn reap() {
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        if EndedProcess::read(pid).is_some_and(|ended| ended.is_adopted()) {
            // An error means that somebody else was faster.
            waitpid(Pid::from_raw(pid), Some(WaitPidFlag::WNOHANG)).ok();
        }
    }
}

/// A process that has ended and waits to be reaped.
#[derive(Debug, PartialEq, Eq)]
struct EndedProcess {
    pid: i32,
    parent: i32,
    group: i32,
}

impl EndedProcess {
    fn read(pid: i32) -> Option<Self> {
        let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
        // The second field is the name in parentheses and may hold anything; then come state, parent, group.
        let after_name = stat.iter().rposition(|byte| *byte == b')')?;
        let fields = std::str::from_utf8(&stat[after_name + 1..]).ok()?;
        let mut fields = fields.split_ascii_whitespace();
        let state = fields.next()?;
        let (parent, group) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        (state == "Z").then_some(Self { pid, parent, group })
    }

    fn is_adopted(&self) -> bool {
        self.parent == getpid().as_raw() && self.group != self.pid && self.group != getpgrp().as_raw()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::CommandExt as _;
    use std::process::Command;

    #[test]
    fn only_what_is_not_a_leader_was_adopted() {
        let mut leader = Command::new("true").process_group(0).spawn().unwrap();
        let pid = i32::try_from(leader.id()).unwrap();
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
        nix::sys::wait::waitid(nix::sys::wait::Id::Pid(Pid::from_raw(pid)), flags).unwrap();
        let ended = EndedProcess::read(pid).unwrap();
        assert_eq!(ended, EndedProcess { pid, parent: getpid().as_raw(), group: pid });
        assert!(!ended.is_adopted());
        assert!(EndedProcess { group: pid + 1, ..ended }.is_adopted());
        leader.wait().unwrap();
        assert_eq!(EndedProcess::read(pid), None);
    }
}
