//! Runs a command for a rule: `sh -c`, the payload on its standard input, the answer by its exit and output.
//!
//! A command leaves nothing behind: whatever it started, in whatever group or session, and is still there when a run
//! is over (at the deadline, on cancellation, after too much output, behind a command that left by itself) is sent
//! TERM, half a second later KILL. That goes on in the background: a run is over at its deadline, not when the
//! processes and their pipes are. A program that is to outlive its hook is started by somebody else, such as a service
//! manager.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::child::Launch;
use pintle_engine::deadlines::Deadlines;

mod environment;
mod running;

pub use environment::environment;

use running::{CapturedOutput, Reaper, RunningCommand};

/// Most that a command may write to each of its two outputs, in bytes: what a reply may have, and as much again for
/// complaints.
pub const MAX_OUTPUT_BYTES: usize = 1 << 20;

/// The shell. Named by its path, so that no `PATH` of a hook chooses another one.
const SHELL: &str = "/bin/sh";

/// A command, ready to run any number of times. Clones share it.
#[derive(Clone, Debug)]
pub struct CommandSpec {
    launch: Arc<Launch>,
}

/// How long a run may take.
#[derive(Clone, Copy, Debug)]
pub struct RunLimit<'a> {
    /// From its beginning on.
    pub time: Duration,
    /// The deadlines that keep it.
    pub deadlines: &'a Deadlines,
}

/// A run that is over.
#[derive(Clone, Debug, PartialEq)]
pub struct CommandResult {
    /// How it ended.
    pub end: CommandEnd,
    /// The bytes that the command wrote to standard output until then, at most [`MAX_OUTPUT_BYTES`].
    pub stdout: Bytes,
    /// The bytes that the command wrote to standard error until then, at most [`MAX_OUTPUT_BYTES`].
    pub stderr: Bytes,
    /// How long it took.
    pub took: Duration,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandEnd {
    /// The command left with this code.
    Exit(i32),
    /// This signal ended the command.
    Signal(i32),
    /// The deadline came first.
    TimedOut,
    /// It was cancelled.
    Cancelled,
    /// It wrote more than [`MAX_OUTPUT_BYTES`].
    TooMuch {
        /// Where.
        stream: Stream,
    },
    /// It never ran: why.
    CannotStart(String),
}

/// One of a command's outputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

impl Stream {
    /// Its usual name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

impl CommandSpec {
    /// A `command` for the shell, the folder it runs in (absolute, see [`folder`]), and its whole environment (see
    /// [`environment`]).
    pub fn new(command: String, cwd: PathBuf, env: Vec<(OsString, OsString)>) -> Self {
        let argv = vec![SHELL.into(), "-c".into(), command.into()];
        Self { launch: Arc::new(Launch { argv, dir: Some(cwd), vars: env }) }
    }

    /// A program with its arguments, in the same way; no shell.
    pub fn of_program(argv: Vec<OsString>, cwd: PathBuf, env: Vec<(OsString, OsString)>) -> Self {
        Self { launch: Arc::new(Launch { argv, dir: Some(cwd), vars: env }) }
    }

    /// Runs the command until it ends, but not beyond `limit`. Dropping the run ends the command too.
    ///
    /// What has to be cleaned up afterwards runs on `tasks`, whose owner waits for it. Needs a runtime with time and
    /// IO.
    pub async fn run(
        &self,
        payload: Bytes,
        limit: RunLimit<'_>,
        cancel: &CancellationToken,
        tasks: &TaskTracker,
    ) -> CommandResult {
        let began = Instant::now();
        let mut heard = CapturedOutput::default();
        // An answer that is there counts, even if it is seen a moment after the deadline.
        let end = tokio::select! {
            biased;
            () = cancel.cancelled() => CommandEnd::Cancelled,
            end = self.live(payload, Reaper::new(tasks), &mut heard) => end,
            () = limit.deadlines.at(began + limit.time) => CommandEnd::TimedOut,
        };
        CommandResult { end, stdout: heard.stdout.into(), stderr: heard.stderr.into(), took: began.elapsed() }
    }

    async fn live(&self, payload: Bytes, reaper: Reaper, heard: &mut CapturedOutput) -> CommandEnd {
        match RunningCommand::begin(&self.launch, payload, reaper) {
            Ok(mut life) => life.lead(heard).await,
            Err(why) => CommandEnd::CannotStart(why),
        }
    }
}

/// The folder in which a command runs: `cwd`, against the agent's `workspace`, which is also the default.
pub fn folder(cwd: &str, workspace: &Path) -> PathBuf {
    if cwd.is_empty() { workspace.to_owned() } else { workspace.join(cwd) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_stand_in_the_workspace() {
        let rows =
            [("", "/w"), ("sub", "/w/sub"), ("./sub/..", "/w/./sub/.."), ("../x", "/w/../x"), ("/else", "/else")];
        for (cwd, expected) in rows {
            assert_eq!(folder(cwd, Path::new("/w")), Path::new(expected), "{cwd}");
        }
    }

    #[test]
    fn streams_are_called_as_ever() {
        assert_eq!([Stream::Stdout, Stream::Stderr].map(Stream::name), ["stdout", "stderr"]);
    }
}
