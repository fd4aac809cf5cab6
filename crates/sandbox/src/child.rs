//! The host's side of one child: started, asked, and killed when it is dropped.

use std::ffi::OsString;
use std::io::{self, PipeReader, Read as _};
use std::os::fd::AsFd as _;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, fcntl};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{self, ChildStdin, ChildStdout, Command};

use crate::frame::{self, HEAD_BYTES, Reply};

/// How a child is started: a program that does nothing but [`crate::worker_main`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launcher {
    /// The program; no shell, no search through `PATH`.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Its whole environment: nothing is inherited.
    pub vars: Vec<(OsString, OsString)>,
}

/// Capacity asked for the pipe that events go through. The kernel's usual limit for it.
const PIPE_BYTES: i32 = 1 << 20;

/// How long a caller looks for its reply before it goes to sleep, with a child that has answered promptly of late: to
/// fall asleep and to be woken by way of another core takes longer than most scripts, and other tasks of the worker
/// do not notice so short a time.
const PATIENCE: Duration = Duration::from_micros(150);
/// After so many prompt replies in a row a caller looks; one that looked in vain begins the count anew. So slow
/// scripts cost a moment of looking once at most.
const PROMPT_REPLIES: u32 = 4;
/// What is read at once.
const PIECE_BYTES: usize = 4 << 10;

/// The process ids of the children that live.
pub(crate) type Living = Arc<Mutex<Vec<u32>>>;

/// A child. Dropping it kills the process.
#[derive(Debug)]
pub(crate) struct Child {
    process: process::Child,
    requests: ChildStdin,
    replies: ChildStdout,
    /// The same pipe, never waited for.
    ear: PipeReader,
    /// How many replies in a row were prompt.
    prompt: u32,
    /// How many requests it has answered.
    pub(crate) answered: u32,
    living: Living,
    id: u32,
}

impl Child {
    /// Starts a child. Needs a runtime with IO.
    pub(crate) fn start(launcher: &Launcher, living: &Living) -> Result<Self, String> {
        let shown = launcher.program.display();
        let mut command = Command::new(&launcher.program);
        command.args(&launcher.args).env_clear().envs(launcher.vars.iter().map(|(name, value)| (name, value)));
        // Its own group, so that a key pressed in a terminal is for the host alone. Local time is UTC: the child
        // cannot read what the system says of zones, and the same script says the same everywhere.
        command.env("TZ", "UTC0").current_dir("/").process_group(0).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().map_err(|error| format!("`{shown}` could not be started: {error}"))?;
        let missing = || format!("`{shown}` was started without a pipe");
        let requests = process.stdin.take().ok_or_else(missing)?;
        let replies = process.stdout.take().ok_or_else(missing)?;
        // Only speed: a long event crosses in one piece. Where the system refuses, it crosses in several.
        fcntl(&requests, FcntlArg::F_SETPIPE_SZ(PIPE_BYTES)).unwrap_or_default();
        let id = process.id().ok_or_else(missing)?;
        living.lock().unwrap_or_else(PoisonError::into_inner).push(id);
        let ear = replies.as_fd().try_clone_to_owned().map_err(|error| format!("its output: {error}"))?.into();
        Ok(Self { process, requests, replies, ear, prompt: 0, answered: 0, living: living.clone(), id })
    }

    /// Whether it still runs.
    pub(crate) fn lives(&mut self) -> bool {
        matches!(self.process.try_wait(), Ok(None))
    }

    pub(crate) async fn ask(&mut self, request: &[u8]) -> Result<(), String> {
        match self.requests.write_all(request).await {
            Ok(()) => Ok(()),
            Err(error) => Err(self.end(&error).await),
        }
    }

    pub(crate) async fn hear(&mut self) -> Result<Reply, String> {
        let bytes = match self.read().await {
            Ok(bytes) => bytes,
            Err(error) => return Err(self.end(&error).await),
        };
        self.answered += 1;
        frame::decode_reply(&bytes).ok_or_else(|| "it answered something that is not an answer".to_owned())
    }

    async fn read(&mut self) -> io::Result<Vec<u8>> {
        let began = Instant::now();
        let mut bytes = Vec::with_capacity(PIECE_BYTES);
        if self.prompt >= PROMPT_REPLIES && !self.look(&mut bytes, began)? {
            self.prompt = 0;
        }
        loop {
            let missing = missing(&bytes)?;
            if missing == 0 {
                break;
            }
            bytes.reserve(missing);
            if self.replies.read_buf(&mut bytes).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        self.prompt = if began.elapsed() <= PATIENCE { self.prompt.saturating_add(1) } else { 0 };
        bytes.drain(..HEAD_BYTES);
        Ok(bytes)
    }

    /// Reads without sleeping, as long as a caller is patient. Whether the whole reply came.
    fn look(&mut self, bytes: &mut Vec<u8>, began: Instant) -> io::Result<bool> {
        let mut piece = [0; PIECE_BYTES];
        loop {
            match (&self.ear).read(&mut piece) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => {
                    bytes.extend_from_slice(&piece[..read]);
                    if missing(bytes)? == 0 {
                        return Ok(true);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
            if began.elapsed() > PATIENCE {
                return Ok(false);
            }
            // The child may be waiting for this very core.
            thread::yield_now();
        }
    }

    /// How it ended, when its pipe failed with `error`.
    async fn end(&mut self, error: &io::Error) -> String {
        if error.kind() == io::ErrorKind::InvalidData {
            return "it answered something that is not an answer".to_owned();
        }
        match self.process.kill().await.and(self.process.wait().await) {
            Ok(status) => ending(status),
            Err(_) => error.to_string(),
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // The process itself goes with its handle.
        self.living.lock().unwrap_or_else(PoisonError::into_inner).retain(|id| *id != self.id);
    }
}

/// How many bytes of a reply are still to come, at least.
fn missing(bytes: &[u8]) -> io::Result<usize> {
    let Some((head, reply)) = bytes.split_first_chunk::<HEAD_BYTES>() else { return Ok(HEAD_BYTES - bytes.len()) };
    let size = frame::reply_size(*head).ok_or(io::ErrorKind::InvalidData)?;
    // Nobody asked for more.
    size.checked_sub(reply.len()).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

fn ending(status: ExitStatus) -> String {
    use std::os::unix::process::ExitStatusExt as _;
    match (status.signal(), status.code()) {
        (Some(signal), _) => format!("signal {signal}"),
        (None, Some(code)) => format!("exit code {code}"),
        (None, None) => status.to_string(),
    }
}
