//! One child and its group: notices the end, sees to it that nothing outlives it.

use std::os::unix::process::ExitStatusExt as _;
use std::process::Child;
use std::time::Duration;

use domain::fault::Fault;
use nix::errno::Errno;
use nix::sys::signal::{Signal as Kill, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, sleep, timeout};

/// Between TERM and KILL: time to write a file to its end.
const TERM_GRACE: Duration = Duration::from_millis(500);
/// How often the group is looked at during [`TERM_GRACE`].
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// How long a killed child may take to vanish; one that hangs in the kernel is left to it.
const REAP_GRACE: Duration = Duration::from_secs(1);

/// A child and its group. Dropping it kills both.
#[derive(Debug)]
pub(crate) struct Leash {
    child: Child,
    group: Pid,
    ends: Signal,
    /// Set once the child was waited for.
    end: Option<Fault>,
    gone: bool,
}

impl Leash {
    /// Takes charge of `child`, which leads a group of its own. On failure the child is killed.
    pub(crate) fn new(mut child: Child) -> std::io::Result<Self> {
        // A process id is a positive i32 on every system that has them.
        let group = Pid::from_raw(i32::try_from(child.id()).map_err(std::io::Error::other)?);
        match signal(SignalKind::child()) {
            Ok(ends) => Ok(Self { child, group, ends, end: None, gone: false }),
            Err(error) => {
                child.kill()?;
                child.wait()?;
                Err(error)
            }
        }
    }

    /// The child's process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until the child has ended. It stays unreaped, so that its id keeps naming its group.
    pub(crate) async fn ended(&mut self) {
        while self.end.is_none() && self.runs() {
            self.ends.recv().await;
        }
    }

    /// How the child ended, as a fault. Only after [`Leash::ended`] or [`Leash::end_group`].
    pub(crate) fn reap(&mut self) -> Fault {
        if let Some(end) = &self.end {
            return end.clone();
        }
        let fault = match self.child.try_wait() {
            // It hangs in the kernel and goes when the kernel lets it.
            Ok(None) => return Fault::Killed { signal: Kill::SIGKILL as i32 },
            Ok(Some(status)) => match (status.code(), status.signal()) {
                (Some(status), _) => Fault::BadExit { status },
                (None, Some(signal)) => Fault::Killed { signal },
                (None, None) => Fault::BadExit { status: -1 },
            },
            Err(error) => {
                tracing::warn!(%error, "a child's exit status is lost");
                Fault::BadExit { status: -1 }
            }
        };
        self.end.insert(fault).clone()
    }

    /// Ends what is left of the group: TERM, grace, KILL.
    pub(crate) async fn end_group(&mut self) {
        if self.gone {
            // Its id may name somebody else by now.
            return;
        }
        let until = Instant::now() + TERM_GRACE;
        let mut left = self.signal(Some(Kill::SIGTERM));
        while left && Instant::now() < until {
            if self.end.is_none() && !self.runs() {
                self.reap();
            }
            left = self.signal(None);
            if left {
                sleep(LOOK_EVERY).await;
            }
        }
        if left {
            self.signal(Some(Kill::SIGKILL));
        }
        if self.end.is_none() && timeout(REAP_GRACE, self.ended()).await.is_ok() {
            self.reap();
        }
        self.gone = true;
    }

    fn runs(&self) -> bool {
        let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
        // Any other answer, errors included, means that there is nothing left to wait for.
        matches!(waitid(Id::Pid(self.group), flags), Ok(WaitStatus::StillAlive) | Err(Errno::EINTR))
    }

    /// Sends `what` to the group; answers whether anybody is in it.
    fn signal(&self, what: Option<Kill>) -> bool {
        killpg(self.group, what) != Err(Errno::ESRCH)
    }
}

impl Drop for Leash {
    fn drop(&mut self) {
        if !self.gone {
            self.signal(Some(Kill::SIGKILL));
            let status = self.child.try_wait();
            tracing::debug!(?status, "a child was killed because its supervisor went away");
        }
    }
}
