//! Starts a child: directly, below an adopter of its own, with three descriptors, and bound to the host's life.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::unistd::{AccessFlags, access, pipe2};
use tokio::net::unix::pipe;

use crate::platform::{self, Image, Start, StartFailure, Started, Step, widen};
use crate::starters::in_turn;

/// Longest `#!` line that is read for a message; the kernel itself reads less.
const SHEBANG_BYTES: u64 = 512;

/// A child that runs, with its pipes; what became of its input is the caller's.
#[derive(Debug)]
pub(crate) struct Spawned<I = pipe::Sender> {
    pub(crate) child: Started,
    pub(crate) stdin: I,
    pub(crate) stdout: pipe::Receiver,
    pub(crate) stderr: pipe::Receiver,
}

/// A child that runs without input, and the one pipe that both its outputs go to.
#[derive(Debug)]
pub(crate) struct Joined {
    pub(crate) child: Started,
    pub(crate) output: pipe::Receiver,
}

/// Starts a child, on a thread where others need not wait until its program runs; an error says which program failed
/// and why.
pub(crate) async fn spawn(start: Start<'_>) -> Result<Spawned, String> {
    let Prepared { program, image, theirs, ours: [stdin, stdout, stderr] } = Prepared::new(start)?;
    widen(&stdin);
    widen(&stdout);
    let stdin = pipe::Sender::from_owned_fd_unchecked(stdin).map_err(no_pipes)?;
    let stdout = pipe::Receiver::from_owned_fd_unchecked(stdout).map_err(no_pipes)?;
    let stderr = pipe::Receiver::from_owned_fd_unchecked(stderr).map_err(no_pipes)?;
    let child = started(image, theirs).await?.map_err(|failed| why(&program, start.dir, failed))?;
    Ok(Spawned { child, stdin, stdout, stderr })
}

/// The same for a child whose outputs are one, and whose input is empty.
pub(crate) async fn spawn_joined(start: Start<'_>) -> Result<Joined, String> {
    let program = program(start)?;
    let image = image(&program, start)?;
    let (theirs, ours) = joined().map_err(no_pipes)?;
    let output = pipe::Receiver::from_owned_fd_unchecked(ours).map_err(no_pipes)?;
    let child = started(image, theirs).await?.map_err(|failed| why(&program, start.dir, failed))?;
    Ok(Joined { child, output })
}

async fn started(image: Image, theirs: [OwnedFd; 3]) -> Result<Result<Started, StartFailure>, String> {
    // Where nobody waits for it any more, what is started goes at once.
    in_turn(move || platform::start(&image, theirs)).await.ok_or_else(|| "what starts it panicked".to_owned())
}

fn no_pipes(error: impl std::fmt::Display) -> String {
    format!("its pipes failed: {error}")
}

/// Starts a child that is soon over, in the calling thread. Its input, the end of a pipe that does not block, is given
/// to `input` first.
///
/// Going to another thread and back would cost a twentieth of what a small command does. What the host does itself
/// comes before the start, so that the child need not share its processor.
pub(crate) fn spawn_here<I>(
    start: Start<'_>,
    input: impl FnOnce(OwnedFd) -> io::Result<I>,
) -> Result<Spawned<I>, String> {
    let Prepared { program, image, theirs, ours: [stdin, stdout, stderr] } = Prepared::new(start)?;
    let stdin = input(stdin).map_err(no_pipes)?;
    let stdout = pipe::Receiver::from_owned_fd_unchecked(stdout).map_err(no_pipes)?;
    let stderr = pipe::Receiver::from_owned_fd_unchecked(stderr).map_err(no_pipes)?;
    let child = platform::start(&image, theirs).map_err(|failed| why(&program, start.dir, failed))?;
    Ok(Spawned { child, stdin, stdout, stderr })
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
        let image = image(&program, start)?;
        let (theirs, ours) = pipes().map_err(no_pipes)?;
        Ok(Self { program, image, theirs, ours })
    }
}

fn image(program: &Path, start: Start<'_>) -> Result<Image, String> {
    Image::new(program, &start).map_err(|error| format!("`{}`: {error}", program.display()))
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

/// An empty input and one pipe for both outputs: the child's ends, then the host's, which does not block.
fn joined() -> io::Result<([OwnedFd; 3], OwnedFd)> {
    let (hear, say) = pipe()?;
    fcntl(&hear, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    let (nothing, say) = (above(File::open("/dev/null")?.into())?, above(say)?);
    Ok(([nothing, say.try_clone()?, say], hear))
}

fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(pipe2(OFlag::O_CLOEXEC)?)
}

/// The same end, not among the first three descriptors: the child puts its own there, one after the other.
fn above(end: OwnedFd) -> io::Result<OwnedFd> {
    if end.as_raw_fd() > 2 { Ok(end) } else { end.try_clone() }
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
fn resolve(word: &OsStr, dir: Option<&Path>, path: Option<&OsStr>) -> Result<PathBuf, String> {
    // What the kernel's callers use when there is no PATH.
    const DEFAULT_PATH: &str = "/bin:/usr/bin";
    if word.is_empty() {
        return Err("the first word of its command is empty".into());
    }
    let here = |relative: &Path| dir.map_or_else(|| relative.to_owned(), |dir| dir.join(relative));
    if word.as_bytes().contains(&b'/') {
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
        None => format!("program `{}` was not found through PATH", word.display()),
    })
}

/// Says why there is no child.
fn why(program: &Path, dir: Option<&Path>, failed: StartFailure) -> String {
    let error = io::Error::from(failed.errno);
    match (failed.step, dir) {
        (Step::Run, _) => blame(program, &error),
        (Step::Folder, Some(dir)) => format!("its folder `{}` cannot be entered: {error}", dir.display()),
        (Step::Begin | Step::Adopt | Step::Prepare | Step::Folder, _) => {
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
