//! Children of other kinds than hooks, started and ended in the same way: below an adopter of their own, with three
//! descriptors, bound to the host's life, and leaving nothing behind.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

use tokio::net::unix::pipe;

use crate::group::{ChildGuard, TERM_GRACE};
use crate::platform::{Lead, Start};
use crate::spawn;

pub use crate::platform::ADOPTER_NAME;
pub use crate::restart::Restarts;

/// What to start. The environment is whole: nothing else is inherited.
#[derive(Clone, PartialEq)]
pub struct Launch {
    /// Program and arguments; no shell.
    pub argv: Vec<OsString>,
    /// The working directory, absolute; the host's when absent.
    pub dir: Option<PathBuf>,
    /// The whole environment.
    pub vars: Vec<(OsString, OsString)>,
}

/// Without the environment: its values may be secret.
impl std::fmt::Debug for Launch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Launch").field("argv", &self.argv).field("dir", &self.dir).finish_non_exhaustive()
    }
}

/// The host's ends of a child's pipes.
#[derive(Debug)]
pub struct Pipes {
    /// What the child reads.
    pub stdin: pipe::Sender,
    /// What the child writes.
    pub stdout: pipe::Receiver,
    /// What the child complains.
    pub stderr: pipe::Receiver,
}

impl Launch {
    pub(crate) fn start(&self, lead: Lead) -> Start<'_> {
        Start { argv: &self.argv, dir: self.dir.as_deref(), env: &self.vars, lead }
    }
}

/// A child that runs. Dropping it kills it, and everything that it started.
#[derive(Debug)]
pub struct Child(ChildGuard);

impl Child {
    /// Starts what `launch` says, in a group of its own. Needs a runtime with IO.
    ///
    /// # Errors
    /// Which program could not be started, and why.
    pub async fn start(launch: &Launch) -> Result<(Self, Pipes), String> {
        let spawned = spawn::spawn(launch.start(Lead::Group)).await?;
        let child = Self(ChildGuard::new(spawned.child).map_err(unwatched)?);
        Ok((child, Pipes { stdin: spawned.stdin, stdout: spawned.stdout, stderr: spawned.stderr }))
    }

    /// Starts what `launch` says, in a session of its own: without a terminal, without input, and with one pipe for
    /// both outputs. Needs a runtime with time and IO.
    ///
    /// # Errors
    /// Which program could not be started, and why.
    pub async fn start_apart(launch: &Launch) -> Result<(Self, pipe::Receiver), String> {
        let joined = spawn::spawn_joined(launch.start(Lead::Session)).await?;
        Ok((Self(ChildGuard::new(joined.child).map_err(unwatched)?), joined.output))
    }

    /// Its process id, which also names its group.
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// Waits until the child has ended by itself. What it started may still run.
    pub async fn ended(&mut self) {
        self.0.ended().await;
    }

    /// Ends the child and everything that it started: TERM, half a second, KILL. Says how the child ended.
    pub async fn end_all(&mut self) -> String {
        self.0.end_all(TERM_GRACE).await;
        self.0.fault().phrase().to_string()
    }

    /// The same with another time between TERM and KILL. None if nobody saw how the child ended.
    pub async fn end_all_within(&mut self, grace: Duration) -> Option<ExitStatus> {
        self.0.end_all(grace).await;
        self.0.status()
    }
}

fn unwatched(error: std::io::Error) -> String {
    format!("its end could not be watched: {error}")
}
