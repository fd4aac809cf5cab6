//! What is left where an adopter was killed stays below the host, which ends it.
//!
//! Every child has an adopter, which ends what the child leaves behind. But a program with the rights of the user can
//! kill its adopter. What was below it then goes to the nearest adoptive process above: a program that is nothing but a
//! host of agents makes itself one, so that nothing gets from below it and passes for a person. Other programs, which
//! have children of their own, must not.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::{Pid, getpgrp};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::platform::{self, ChildProcess};

/// How often strays are looked for until none is left: whoever starts processes faster than they are found is met in
/// one of these rounds, or a later time.
const ROUNDS: usize = 50;
/// The time between two rounds.
const ROUND: Duration = Duration::from_millis(1);

/// Whether this process adopts.
static ADOPTS: AtomicBool = AtomicBool::new(false);

/// The task that buries what was adopted.
#[derive(Debug, Default)]
pub struct OrphanReaper {
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl OrphanReaper {
    /// Adopts what killed adopters leave behind from now on, and buries it until [`OrphanReaper::close`]. Only for a
    /// program whose other children run the same program as itself: whatever else comes to be its child may be killed.
    /// Needs a runtime.
    pub fn adopt() -> Self {
        let this = Self::default();
        if let Err(error) = platform::adopt_orphans() {
            tracing::warn!(%error, "what killed adopters leave behind cannot be kept below the host");
            return this;
        }
        ADOPTS.store(true, Ordering::Relaxed);
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

/// Kills what has come to this process from below an adopter that was killed, if this process adopts.
pub(crate) fn end_strays() {
    if !ADOPTS.load(Ordering::Relaxed) {
        return;
    }
    for _ in 0..ROUNDS {
        let strays: Vec<ChildProcess> = platform::children().into_iter().filter(is_stray).collect();
        if strays.is_empty() {
            return;
        }
        for stray in &strays {
            // Both fail only for who is gone already, or belongs to another user.
            kill(Pid::from_raw(stray.pid), Signal::SIGKILL).unwrap_or_default();
            waitpid(Pid::from_raw(stray.pid), Some(WaitPidFlag::WNOHANG)).ok();
        }
        thread::sleep(ROUND);
    }
    tracing::warn!("what came to the host from below a killed adopter could not be ended");
}

/// Whether it was started neither as an adopter nor as another process of this program.
fn is_stray(child: &ChildProcess) -> bool {
    !child.has_ended && !child.is_own_program()
}

/// Reaps the adopted processes that have ended.
///
/// Every other child of the host's own leads a group and is waited for by whoever started it. So only those that are not
/// leaders are taken; a leader that was adopted and ended by itself stays until the host ends.
fn reap() {
    for ended in platform::children().into_iter().filter(is_adopted) {
        // An error means that somebody else was faster.
        waitpid(Pid::from_raw(ended.pid), Some(WaitPidFlag::WNOHANG)).ok();
    }
}

/// Whether it has ended, and came to the host because its own parent had.
fn is_adopted(child: &ChildProcess) -> bool {
    child.has_ended && child.group != child.pid && child.group != getpgrp().as_raw()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::unistd::getpid;
    use std::os::unix::process::CommandExt as _;
    use std::process::Command;

    #[test]
    fn only_what_is_not_a_leader_was_adopted() {
        let mut leader = Command::new("true").process_group(0).spawn().unwrap();
        let pid = i32::try_from(leader.id()).unwrap();
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT;
        nix::sys::wait::waitid(nix::sys::wait::Id::Pid(Pid::from_raw(pid)), flags).unwrap();
        let ended = ChildProcess::read(pid).unwrap();
        assert_eq!(ended, ChildProcess { pid, parent: getpid().as_raw(), group: pid, has_ended: true });
        assert!(!is_adopted(&ended));
        assert!(is_adopted(&ChildProcess { group: pid + 1, ..ended }));
        leader.wait().unwrap();
        assert_eq!(ChildProcess::read(pid), None);
    }

    #[test]
    fn only_strangers_are_strays() {
        let mut stranger = Command::new("sleep").arg("1000").process_group(0).spawn().unwrap();
        let of = |pid: u32| ChildProcess::read(i32::try_from(pid).unwrap()).unwrap();
        assert!(is_stray(&of(stranger.id())));
        assert!(!is_stray(&of(std::process::id())));
        stranger.kill().unwrap();
        stranger.wait().unwrap();
    }
}
