//! Children of other kinds than hooks, started and ended in the same way: in a group of their own, with three
//! descriptors, bound to the host's life, and leaving nothing behind.

use std::ffi::OsString;
use std::path::PathBuf;

use tokio::net::unix::pipe;

use crate::group::ChildGuard;
use crate::platform::Start;
use crate::spawn;

pub use crate::restart::Restarts;

/// What to start. The environment is whole: nothing else is inherited.
#[derive(Clone, PartialEq)]
pub struct Launch {
    /// Program and arguments; no shell.
    pub argv: Vec<String>,
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

/// A child that runs. Dropping it kills its whole group.
#[derive(Debug)]
pub struct Child(ChildGuard);

impl Child {
    /// Starts what `launch` says. Needs a runtime with IO.
    ///
    /// # Errors
    /// Which program could not be started, and why.
    pub async fn start(launch: &Launch) -> Result<(Self, Pipes), String> {
        let start = Start { argv: &launch.argv, dir: launch.dir.as_deref(), env: &launch.vars };
        let spawned = spawn::spawn(start).await?;
        let child_guard =
            ChildGuard::new(spawned.child).map_err(|error| format!("its end could not be watched: {error}"))?;
        Ok((Self(child_guard), Pipes { stdin: spawned.stdin, stdout: spawned.stdout, stderr: spawned.stderr }))
    }

    /// Its process id, which also names its group.
    pub fn id(&self) -> u32 {
        self.0.id()
    }

    /// Waits until the child has ended by itself. What it started may still run.
    pub async fn ended(&mut self) {
        self.0.ended().await;
    }

    /// Ends what is left of the group: TERM, half a second, KILL. Says how the child ended.
    pub async fn end_group(&mut self) -> String {
        self.0.end_group().await;
        self.0.reap().to_string()
    }
}
