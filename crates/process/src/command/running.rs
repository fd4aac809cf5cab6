//! One run of a command, from its start to its burial.

use std::convert::Infallible;
use std::future::pending;
use std::io;
use std::os::fd::OwnedFd;
use std::pin::pin;
use std::time::Duration;

use bytes::{Buf as _, Bytes};
use futures_util::FutureExt as _;
use futures_util::future::try_join;
use nix::errno::Errno;
use pintle_domain::fault::Fault;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::unix::pipe;
use tokio::runtime::Handle;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

use super::{CommandEnd, MAX_OUTPUT_BYTES, Stream};
use crate::child::Launch;
use crate::group::{ChildGuard, TERM_GRACE};
use crate::platform::{Lead, widen};
use crate::spawn::{self, Spawned};

/// What a pipe takes that nobody made larger.
const USUAL_PIPE_BYTES: usize = 64 << 10;
/// Room for what is read at once: most answers come in one piece.
const READ_BYTES: usize = 8 << 10;
/// How long output is still waited for when the command has left but somebody holds its pipes open: a process at the
/// other end of a pipeline needs that long to write its last words, and a program in the background costs no more.
const LAST_WORDS: Duration = Duration::from_millis(100);

/// What a command has written so far.
#[derive(Default)]
pub(super) struct CapturedOutput {
    pub(super) stdout: Vec<u8>,
    pub(super) stderr: Vec<u8>,
}

/// Where what a run leaves behind is ended.
#[derive(Clone)]
pub(super) struct Reaper {
    tasks: TaskTracker,
    runtime: Handle,
}

impl Reaper {
    pub(super) fn new(tasks: &TaskTracker) -> Self {
        Self { tasks: tasks.clone(), runtime: Handle::current() }
    }

    /// Ends what `remains` does, in the background. Where the runtime is going away, dropping it does.
    fn reap(&self, leftover: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn_on(leftover, &self.runtime);
    }
}

/// A command that runs. Dropping it ends it in the background.
pub(super) struct RunningCommand {
    /// None once nothing of it is left.
    body: Option<CommandProcess>,
    reaper: Reaper,
}

struct CommandProcess {
    child_guard: ChildGuard,
    /// None once the payload is written.
    stdin: Option<PendingInput>,
    stdout: pipe::Receiver,
    stderr: pipe::Receiver,
}

impl CommandProcess {
    /// On failure the child is killed.
    fn new(spawned: Spawned<Option<PendingInput>>) -> Result<Self, String> {
        let child_guard =
            ChildGuard::new(spawned.child).map_err(|error| format!("its end could not be watched: {error}"))?;
        Ok(Self { child_guard, stdin: spawned.stdin, stdout: spawned.stdout, stderr: spawned.stderr })
    }
}

impl RunningCommand {
    /// Starts what `launch` says, with `payload` as its input.
    pub(super) fn begin(launch: &Launch, payload: Bytes, reaper: Reaper) -> Result<Self, String> {
        let spawned = spawn::spawn_here(launch.start(Lead::Group), |stdin| PendingInput::of(payload, stdin))?;
        let body = CommandProcess::new(spawned)?;
        Ok(Self { body: Some(body), reaper })
    }

    /// Gives the command the rest of its payload and hears it to its end.
    pub(super) async fn lead(&mut self, heard: &mut CapturedOutput) -> CommandEnd {
        let body = self.body.as_mut().expect("a life begins with a body and loses it only below");
        let end = tokio::select! {
            biased;
            never = feed(&mut body.stdin) => match never {},
            end = hear(&mut body.child_guard, [&mut body.stdout, &mut body.stderr], heard) => end,
        };
        if let Err(stream) = end {
            // What the other one has to say already may tell why.
            let other = match stream {
                Stream::Stdout => gather(&mut body.stderr, &mut heard.stderr, Stream::Stderr).now_or_never(),
                Stream::Stderr => gather(&mut body.stdout, &mut heard.stdout, Stream::Stdout).now_or_never(),
            };
            tracing::debug!(stream = stream.name(), ?other, "a command wrote too much");
            return CommandEnd::TooMuch { stream };
        }
        // Where nothing is left, as usual, this is over at once; else it goes on in the background.
        let alone = body.child_guard.end_all(TERM_GRACE).now_or_never().is_some();
        let end = match body.child_guard.fault() {
            Fault::Killed { signal, .. } => CommandEnd::Signal(signal),
            Fault::BadExit { status, .. } => CommandEnd::Exit(status),
            other @ (Fault::CannotStart { .. }
            | Fault::TimedOut { .. }
            | Fault::Unreadable { .. }
            | Fault::TooLarge { .. }
            | Fault::Protocol(_)
            | Fault::Panicked
            | Fault::Cancelled
            | Fault::ConditionFailed { .. }
            | Fault::Unavailable { .. }) => CommandEnd::CannotStart(other.explained().to_string()),
        };
        if alone {
            self.body = None;
        }
        end
    }
}

impl Drop for RunningCommand {
    fn drop(&mut self) {
        if let Some(body) = self.body.take() {
            self.reaper.reap(end(body));
        }
    }
}

/// The pipes stay open until nothing is left: a command that cleans up after TERM may speak, though nobody listens.
async fn end(mut body: CommandProcess) {
    body.child_guard.end_all(TERM_GRACE).await;
}

/// What of a payload did not fit into its pipe at once.
struct PendingInput {
    payload: Bytes,
    pipe: pipe::Sender,
}

impl PendingInput {
    /// Writes what fits of `payload`. Where that is all, as usual, the pipe is closed behind it, and no runtime ever
    /// knows of it.
    fn of(mut payload: Bytes, pipe: OwnedFd) -> io::Result<Option<Self>> {
        if payload.len() > USUAL_PIPE_BYTES {
            widen(&pipe);
        }
        while !payload.is_empty() {
            match nix::unistd::write(&pipe, &payload) {
                Ok(written) => payload.advance(written),
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => {
                    return Ok(Some(Self { payload, pipe: pipe::Sender::from_owned_fd_unchecked(pipe)? }));
                }
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(None)
    }
}

/// Writes the rest of the payload, then closes the pipe; never comes back. A command need not read it.
async fn feed(stdin: &mut Option<PendingInput>) -> Infallible {
    if let Some(rest) = stdin
        && let Err(error) = rest.pipe.write_all_buf(&mut rest.payload).await
    {
        tracing::debug!(%error, "a command did not read its payload to the end");
    }
    *stdin = None;
    pending().await
}

/// Reads both outputs until the command has ended and they have too; `Err` is the one that had too much to say.
async fn hear(
    child_guard: &mut ChildGuard,
    [stdout, stderr]: [&mut pipe::Receiver; 2],
    heard: &mut CapturedOutput,
) -> Result<(), Stream> {
    let out = gather(stdout, &mut heard.stdout, Stream::Stdout);
    let err = gather(stderr, &mut heard.stderr, Stream::Stderr);
    let mut both = pin!(try_join(out, err));
    tokio::select! {
        biased;
        read = &mut both => {
            read?;
            child_guard.ended().await;
        }
        () = child_guard.ended() => {
            if let Ok(read) = timeout(LAST_WORDS, both).await {
                read?;
            }
        }
    }
    Ok(())
}

async fn gather(pipe: &mut pipe::Receiver, into: &mut Vec<u8>, stream: Stream) -> Result<(), Stream> {
    let mut wide = false;
    loop {
        into.reserve(READ_BYTES);
        let room = into.capacity() - into.len();
        match pipe.read_buf(into).await {
            Ok(0) => return Ok(()),
            // It has more to say than most.
            Ok(read) if read == room && !wide => {
                wide = true;
                widen(pipe);
            }
            Ok(_) if into.len() > MAX_OUTPUT_BYTES => {
                into.truncate(MAX_OUTPUT_BYTES);
                return Err(stream);
            }
            Ok(_) => {}
            Err(error) => {
                tracing::warn!(%error, stream = stream.name(), "an output of a command could not be read to its end");
                return Ok(());
            }
        }
    }
}
