//! One child and everything that it starts: notices its end, sees to it that nothing outlives it.

use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::time::Duration;

use nix::sys::signal::{Signal as Kill, killpg};
use nix::unistd::Pid;
use pintle_domain::fault::Fault;
use tokio::net::unix::pipe;
use tokio::time::timeout;

use crate::orphan_reaper;
use crate::platform::{Adopter, Order, Started, Told};

/// Between TERM and KILL: time to write a file to its end.
pub(crate) const TERM_GRACE: Duration = Duration::from_millis(500);
/// How long what was killed may take to vanish; what hangs in the kernel is left to it.
const KILL_GRACE: Duration = Duration::from_secs(1);

/// A child, with everything that it starts. Dropping it kills all of them.
#[derive(Debug)]
pub(crate) struct ChildGuard {
    child: Pid,
    /// None once nothing is left of them.
    adopter: Option<Adopter>,
    events: pipe::Receiver,
    told: Option<Told>,
}

impl ChildGuard {
    /// Takes charge of a child. On failure it is killed.
    pub(crate) fn new(started: Started) -> io::Result<Self> {
        let Started { child, adopter, events } = started;
        Ok(Self { child, adopter: Some(adopter), events: pipe::Receiver::from_owned_fd_unchecked(events)?, told: None })
    }

    /// The child's process id, which also names its group.
    pub(crate) fn id(&self) -> u32 {
        self.child.as_raw().unsigned_abs()
    }

    /// Waits until the child has ended. What it started may still run.
    pub(crate) async fn ended(&mut self) {
        while self.told.is_none() && self.adopter.is_some() {
            self.hear().await;
        }
    }

    /// How the child ended; none if it has not, or nobody saw it. Only after [`ChildGuard::ended`] or
    /// [`ChildGuard::end_all`].
    pub(crate) fn status(&self) -> Option<ExitStatus> {
        self.told.map(|told| told.status)
    }

    /// The same as a fault. A child whose end nobody saw was killed.
    pub(crate) fn fault(&self) -> Fault {
        match self.status().map(|status| (status.code(), status.signal())) {
            Some((Some(status), _)) => Fault::exited(status),
            Some((None, Some(signal))) => Fault::killed(signal),
            Some((None, None)) => Fault::exited(-1),
            None => Fault::killed(Kill::SIGKILL as i32),
        }
    }

    /// Ends the child and everything that it started: TERM, `grace`, KILL.
    pub(crate) async fn end_all(&mut self, grace: Duration) {
        if self.told.is_some_and(|told| !told.is_left) {
            self.adopter.take().into_iter().for_each(Adopter::dismiss);
        }
        for (order, patience) in [(Order::Ask, grace), (Order::End, KILL_GRACE)] {
            let Some(adopter) = &self.adopter else { return };
            adopter.order(order);
            let emptied = async {
                while self.adopter.is_some() {
                    self.hear().await;
                }
            };
            // A clock that comes first is answered by the next order.
            timeout(patience, emptied).await.unwrap_or_default();
        }
        if self.adopter.take().is_some() {
            tracing::warn!(child = self.id(), "what a child has started could not be ended in time");
        }
    }

    /// Hears the adopter's next word, or that it leaves.
    async fn hear(&mut self) {
        let mut said = [0; Told::BYTES];
        let heard = loop {
            // An error means that the runtime is ending, and the child with it.
            if self.events.readable().await.is_err() {
                break None;
            }
            match self.events.try_read(&mut said) {
                Ok(read) => break (read == said.len()).then(|| Told::read(said)).flatten(),
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                Err(_) => break None,
            }
        };
        match heard {
            Some(told) => self.told = Some(told),
            None => self.bury(),
        }
    }

    /// Sees off the adopter, which leaves because nothing is left.
    fn bury(&mut self) {
        let Some(adopter) = self.adopter.take() else { return };
        if !adopter.bury() {
            tracing::warn!(child = self.id(), "somebody killed what watches over a child, which is ended with it");
            // The child itself went with its adopter; its id names its group as long as somebody is in there.
            killpg(self.child, Kill::SIGKILL).unwrap_or_default();
            orphan_reaper::end_strays();
        }
    }
}
