//! One child and its group: notices the end, sees to it that nothing outlives it.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt as _;
use std::time::Duration;

use domain::fault::Fault;
use nix::errno::Errno;
use nix::sys::signal::{Signal as Kill, killpg};
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid};
use nix::unistd::Pid;
use tokio::io::unix::AsyncFd;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, sleep, timeout};

use crate::platform;
use crate::spawn::StartingChild;
use crate::thread_hold::ThreadHold;

/// Between TERM and KILL: time to write a file to its end.
const TERM_GRACE: Duration = Duration::from_millis(500);
/// How often the group is looked at during [`TERM_GRACE`].
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// How long a killed child may take to vanish; one that hangs in the kernel is left to it.
const REAP_GRACE: Duration = Duration::from_secs(1);

/// A child and its group. Dropping it kills both.
#[derive(Debug)]
pub(crate) struct ChildGuard {
    /// The child, whose group has the same id.
    child: Pid,
    ends: EndSignal,
    /// Set once the child was waited for.
    end: Option<Fault>,
    gone: bool,
    /// Goes with this: nothing of the child is left then.
    _bond: Option<ThreadHold>,
}

/// The signal that tells that the child has ended.
#[derive(Debug)]
enum EndSignal {
    /// A descriptor of the child itself.
    Own(AsyncFd<OwnedFd>),
    /// Where the kernel has none: the signal that any child has ended.
    Any(Signal),
}

impl EndSignal {
    fn of(child: Pid) -> io::Result<Self> {
        platform::watch(child).map(Self::Own).or_else(|error| {
            tracing::debug!(%error, "a child is watched by signals");
            Self::any()
        })
    }

    fn any() -> io::Result<Self> {
        signal(SignalKind::child()).map(Self::Any)
    }
}

impl ChildGuard {
    /// Takes charge of `child`. On failure it is killed.
    pub(crate) fn new(child: StartingChild) -> io::Result<Self> {
        let ends = EndSignal::of(child.id())?;
        let (child, bond) = child.take();
        Ok(Self { child, ends, end: None, gone: false, _bond: bond })
    }

    /// The child's process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.as_raw().unsigned_abs()
    }

    /// Waits until the child has ended. It stays unreaped, so that its id keeps naming its group.
    pub(crate) async fn ended(&mut self) {
        if self.end.is_some() {
            return;
        }
        let child = self.child;
        match &mut self.ends {
            EndSignal::Own(own) => {
                // An error means that the runtime is ending, and the child with it.
                while let Ok(mut seen) = own.readable().await
                    && runs(child)
                {
                    seen.clear_ready();
                }
            }
            EndSignal::Any(any) => {
                while runs(child) {
                    any.recv().await;
                }
            }
        }
    }

    /// How the child ended, as a fault. Only after [`ChildGuard::ended`] or [`ChildGuard::end_group`].
    pub(crate) fn reap(&mut self) -> Fault {
        if let Some(end) = &self.end {
            return end.clone();
        }
        let fault = match platform::reap(self.child) {
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
            if self.end.is_none() && !runs(self.child) {
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

    /// Sends `what` to the group; answers whether anybody is in it.
    fn signal(&self, what: Option<Kill>) -> bool {
        killpg(self.child, what) != Err(Errno::ESRCH)
    }
}

/// Whether the child has not ended. An ended one stays as it is.
fn runs(child: Pid) -> bool {
    let flags = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    // Any other answer, errors included, means that there is nothing left to wait for.
    matches!(waitid(Id::Pid(child), flags), Ok(WaitStatus::StillAlive) | Err(Errno::EINTR))
}

impl Drop for ChildGuard {
    fn drop(&mut self) {
        if !self.gone {
            self.signal(Some(Kill::SIGKILL));
            // One that was waited for may have left its id to somebody else.
            let status = self.end.is_none().then(|| platform::reap(self.child));
            tracing::debug!(?status, "a child was killed because its supervisor went away");
        }
    }
}
