//! What children leave behind stays below the host until it ends.
//!
//! A process whose parent ends goes to the nearest adoptive parent. The host makes itself one, so that whatever a
//! command of `exec` started has the host above it and cannot pass for a person ([`crate::operator`]). Who adopts has
//! to bury, too.

use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::{Pid, getpgrp, getpid};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::platform::{self, EndedProcess};

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
        if let Err(error) = platform::adopt_orphans() {
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
    for ended in platform::ended_processes().filter(is_adopted) {
        // An error means that somebody else was faster.
        waitpid(Pid::from_raw(ended.pid), Some(WaitPidFlag::WNOHANG)).ok();
    }
}

/// Whether it came to the host because its own parent ended.
fn is_adopted(ended: &EndedProcess) -> bool {
    ended.parent == getpid().as_raw() && ended.group != ended.pid && ended.group != getpgrp().as_raw()
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
        assert!(!is_adopted(&ended));
        assert!(is_adopted(&EndedProcess { group: pid + 1, ..ended }));
        leader.wait().unwrap();
        assert_eq!(EndedProcess::read(pid), None);
    }
}
