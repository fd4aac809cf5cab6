//! Starts a child: directly, in a group of its own, with three descriptors, and bound to the host's life.
//!
//! The parent-death signal fires when the thread that started the child ends. So children that may live long are
//! started by one thread that lives as long as the host; those that are soon over keep their thread (`thread_hold.rs`).

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{OnceLock, mpsc};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::{AccessFlags, Pid, access, pipe2};
use tokio::net::unix::pipe;
use tokio::sync::oneshot;

use crate::platform::{self, Image, Start, StartFailure, Step, widen};
use crate::thread_hold::ThreadHold;

/// Longest `#!` line that is read for a message; the kernel itself reads less.
const SHEBANG_BYTES: u64 = 512;

/// A child that runs, with its pipes; what became of its input is the caller's.
#[derive(Debug)]
pub(crate) struct Spawned<I = pipe::Sender> {
    pub(crate) child: StartingChild,
    pub(crate) stdin: I,
    pub(crate) stdout: pipe::Receiver,
    pub(crate) stderr: pipe::Receiver,
}

type Job = Box<dyn FnOnce() + Send>;

/// Starts a child that may live as long as the host; an error says which program failed and why.
pub(crate) async fn spawn(start: Start<'_>) -> Result<Spawned, String> {
    let Prepared { program, image, theirs, ours: [stdin, stdout, stderr] } = Prepared::new(start)?;
    let pipes = |error| format!("its pipes failed: {error}");
    widen(&stdin);
    widen(&stdout);
    let stdin = pipe::Sender::from_owned_fd_unchecked(stdin).map_err(pipes)?;
    let stdout = pipe::Receiver::from_owned_fd_unchecked(stdout).map_err(pipes)?;
    let stderr = pipe::Receiver::from_owned_fd_unchecked(stderr).map_err(pipes)?;
    let (tell, told) = oneshot::channel();
    let job: Job = Box::new(move || {
        let started = platform::start(&image, theirs).map(|pid| StartingChild(Some((pid, None))));
        // Nobody listens any more when the hook is being closed; the child then goes at once.
        tell.send(started).unwrap_or_else(drop);
    });
    spawner()?.send(job).map_err(|_| "the thread that starts children is gone".to_owned())?;
    let outcome = told.await.map_err(|_| "the thread that starts children is gone".to_owned())?;
    let child = outcome.map_err(|failed| why(&program, start.dir, failed))?;
    Ok(Spawned { child, stdin, stdout, stderr })
}

/// Starts a child that is soon over, in the calling thread, which will not end before it. Its input, the end of a pipe
/// that does not block, is given to `input` first.
///
/// Going to another thread and back would cost a twentieth of what a small command does. What the host does itself
/// comes before the start, so that the child need not share its processor.
pub(crate) fn spawn_here<I>(
    start: Start<'_>,
    input: impl FnOnce(OwnedFd) -> io::Result<I>,
) -> Result<Spawned<I>, String> {
    let Prepared { program, image, theirs, ours: [stdin, stdout, stderr] } = Prepared::new(start)?;
    let pipes = |error| format!("its pipes failed: {error}");
    let stdin = input(stdin).map_err(pipes)?;
    let stdout = pipe::Receiver::from_owned_fd_unchecked(stdout).map_err(pipes)?;
    let stderr = pipe::Receiver::from_owned_fd_unchecked(stderr).map_err(pipes)?;
    let bond = ThreadHold::here().ok_or("the thread that should start it is ending")?;
    let pid = platform::start(&image, theirs).map_err(|failed| why(&program, start.dir, failed))?;
    Ok(Spawned { child: StartingChild(Some((pid, Some(bond)))), stdin, stdout, stderr })
}

/// What a start needs.
struct Prepared {
    program: PathBuf,
    image: Image,
    /// The child's ends of its pipes.
    theirs: [OwnedFd; 3],
    /// The host's, which do not block.
    ours: [OwnedFd; 3],
}

impl Prepared {
    fn new(start: Start<'_>) -> Result<Self, String> {
        let program = program(start)?;
        let image = Image::new(&program, &start).map_err(|error| format!("`{}`: {error}", program.display()))?;
        let (theirs, ours) = pipes().map_err(|error| format!("its pipes failed: {error}"))?;
        Ok(Self { program, image, theirs, ours })
    }
}

/// A child that is killed unless somebody takes it over.
#[derive(Debug)]
pub(crate) struct StartingChild(Option<(Pid, Option<ThreadHold>)>);

impl StartingChild {
    /// Whoever takes it sees to its end, and keeps its bond until then. It names the child, and its group.
    pub(crate) fn take(mut self) -> (Pid, Option<ThreadHold>) {
        self.0.take().expect("it is there until it is taken, and taking it ends this")
    }

    /// Its process id.
    pub(crate) fn id(&self) -> Pid {
        self.0.as_ref().expect("it is there until it is taken, and taking it ends this").0
    }
}

impl Drop for StartingChild {
    fn drop(&mut self) {
        if let Some((child, _bond)) = self.0.take() {
            // It leads a group, and what it started meanwhile goes with it.
            killpg(child, Signal::SIGKILL).unwrap_or_default();
            let gone = platform::reap_blocking(child);
            tracing::debug!(?gone, "a child that nobody took over was ended");
        }
    }
}

/// Three pipes: the child's ends, then the host's, which do not block.
fn pipes() -> io::Result<([OwnedFd; 3], [OwnedFd; 3])> {
    let ((stdin, feed), (hear, stdout), (listen, stderr)) = (pipe()?, pipe()?, pipe()?);
    for end in [&feed, &hear, &listen] {
        // A new pipe has no other status flag.
        fcntl(end, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    }
    Ok(([above(stdin)?, above(stdout)?, above(stderr)?], [feed, hear, listen]))
}

fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(pipe2(OFlag::O_CLOEXEC)?)
}

/// The same end, not among the first three descriptors: the child puts its own there, one after the other.
fn above(end: OwnedFd) -> io::Result<OwnedFd> {
    if end.as_raw_fd() > 2 { Ok(end) } else { end.try_clone() }
}

/// The queue of the thread that starts children.
fn spawner() -> Result<&'static mpsc::Sender<Job>, String> {
    static SPAWNER: OnceLock<Result<mpsc::Sender<Job>, String>> = OnceLock::new();
    let made = SPAWNER.get_or_init(|| {
        let (jobs, queue) = mpsc::channel::<Job>();
        let work = move || queue.into_iter().for_each(|job| job());
        match std::thread::Builder::new().name("spawner".into()).spawn(work) {
            Ok(_for_ever) => Ok(jobs),
            Err(error) => Err(format!("no thread to start children: {error}")),
        }
    });
    made.as_ref().map_err(Clone::clone)
}

/// The file to run.
fn program(start: Start<'_>) -> Result<PathBuf, String> {
    let word = start.argv.first().ok_or("no command is given")?;
    if let Some(dir) = start.dir.filter(|dir| !dir.is_dir()) {
        return Err(format!("its folder `{}` does not exist or is not a folder", dir.display()));
    }
    let path = start.env.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_os_str());
    resolve(word, start.dir, path)
}

/// The file that `word` names: one with a slash resolves against `dir`, a bare one through `path`.
fn resolve(word: &str, dir: Option<&Path>, path: Option<&OsStr>) -> Result<PathBuf, String> {
    // What the kernel's callers use when there is no PATH.
    const DEFAULT_PATH: &str = "/bin:/usr/bin";
    if word.is_empty() {
        return Err("the first word of its command is empty".into());
    }
    let here = |relative: &Path| dir.map_or_else(|| relative.to_owned(), |dir| dir.join(relative));
    if word.contains('/') {
        return Ok(here(Path::new(word)));
    }
    let mut refused = None;
    for folder in std::env::split_paths(path.unwrap_or(OsStr::new(DEFAULT_PATH))) {
        let candidate = here(&folder).join(word);
        if candidate.is_file() {
            if access(&candidate, AccessFlags::X_OK).is_ok() {
                return Ok(candidate);
            }
            refused.get_or_insert(candidate);
        }
    }
    Err(match refused {
        Some(file) => format!("`{}` is not executable", file.display()),
        None => format!("program `{word}` was not found through PATH"),
    })
}

/// Says why there is no child.
fn why(program: &Path, dir: Option<&Path>, failed: StartFailure) -> String {
    let error = io::Error::from(failed.errno);
    match (failed.step, dir) {
        (Step::Run, _) => blame(program, &error),
        (Step::Folder, Some(dir)) => format!("its folder `{}` cannot be entered: {error}", dir.display()),
        (Step::Begin | Step::Prepare | Step::Folder, _) => {
            format!("the system could not make a process for `{}`: {error}", program.display())
        }
    }
}

/// Says which file is to blame for a failed start.
fn blame(program: &Path, error: &io::Error) -> String {
    let shown = program.display();
    let is = |kind| error.kind() == kind;
    if is(io::ErrorKind::NotFound) && program.exists() {
        return match interpreter(program) {
            Some(missing) => {
                format!("`{shown}` cannot run: its interpreter `{}` does not exist", missing.display())
            }
            None => format!("`{shown}` cannot run: the loader that it names does not exist"),
        };
    }
    if is(io::ErrorKind::NotFound) {
        format!("program `{shown}` does not exist")
    } else if is(io::ErrorKind::PermissionDenied) && program.is_dir() {
        format!("`{shown}` is a folder, not a program")
    } else if is(io::ErrorKind::PermissionDenied) {
        format!("`{shown}` is not executable")
    } else {
        format!("`{shown}`: {error}")
    }
}

/// What the `#!` line of a script names.
fn interpreter(script: &Path) -> Option<PathBuf> {
    let mut head = Vec::new();
    File::open(script).ok()?.take(SHEBANG_BYTES).read_to_end(&mut head).ok()?;
    let line = head.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let word = line.trim_ascii().split(u8::is_ascii_whitespace).next()?;
    // A trailing carriage return is the commonest cause, so it must stay visible.
    let cr = if line.ends_with(b"\r") { "\\r" } else { "" };
    Some(PathBuf::from(OsString::from(format!("{}{cr}", String::from_utf8_lossy(word)))))
}
