//! Starts a child: directly, in a group of its own, with three descriptors, and bound to the host's life.
//!
//! All children are started by one thread that lives as long as the host, since the parent-death signal fires
//! when the thread that started the child ends. The only `unsafe` of the crate stands here.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{OnceLock, mpsc};

use nix::fcntl::{FcntlArg, fcntl};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::{AccessFlags, Pid, access};
use tokio::net::unix::pipe;
use tokio::sync::oneshot;

/// Capacity asked for each pipe: long conversations cross in one piece. The kernel's usual limit for it.
const PIPE_BYTES: i32 = 1 << 20;
/// Longest `#!` line that is read for a message; the kernel itself reads less.
const SHEBANG_BYTES: u64 = 512;

/// A child that runs, with its pipes.
#[derive(Debug)]
pub(crate) struct Spawned {
    pub(crate) child: Child,
    pub(crate) stdin: pipe::Sender,
    pub(crate) stdout: pipe::Receiver,
    pub(crate) stderr: pipe::Receiver,
}

type Job = Box<dyn FnOnce() + Send>;

/// What to start, as [`crate::child::Launch`] describes it.
#[derive(Clone, Copy)]
pub(crate) struct Start<'a> {
    pub(crate) argv: &'a [String],
    pub(crate) dir: Option<&'a Path>,
    pub(crate) env: &'a [(OsString, OsString)],
}

/// Starts a child; an error says which program failed and why.
pub(crate) async fn spawn(start: Start<'_>) -> Result<Spawned, String> {
    let (program, mut command) = command(start)?;
    let (tell, told) = oneshot::channel();
    let job: Job = Box::new(move || {
        // Nobody listens any more when the hook is being closed; the child then goes at once.
        tell.send(command.spawn().map(|child| Unclaimed(Some(child)))).unwrap_or_else(drop);
    });
    spawner()?.send(job).map_err(|_| "the thread that starts children is gone".to_owned())?;
    let outcome = told.await.map_err(|_| "the thread that starts children is gone".to_owned())?;
    let child = outcome.map_err(|error| blame(&program, &error))?;
    child.adopt().map_err(|error| format!("its pipes failed: {error}"))
}

/// A child that is killed unless somebody takes it over.
struct Unclaimed(Option<Child>);

impl Unclaimed {
    fn adopt(mut self) -> io::Result<Spawned> {
        let missing = || io::Error::other("a pipe is missing");
        let child = self.0.as_mut().ok_or_else(missing)?;
        let stdin = OwnedFd::from(child.stdin.take().ok_or_else(missing)?);
        let stdout = OwnedFd::from(child.stdout.take().ok_or_else(missing)?);
        let stderr = OwnedFd::from(child.stderr.take().ok_or_else(missing)?);
        widen(&stdin);
        widen(&stdout);
        let stdin = pipe::Sender::from_owned_fd(stdin)?;
        let stdout = pipe::Receiver::from_owned_fd(stdout)?;
        let stderr = pipe::Receiver::from_owned_fd(stderr)?;
        let child = self.0.take().ok_or_else(missing)?;
        Ok(Spawned { child, stdin, stdout, stderr })
    }
}

impl Drop for Unclaimed {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            // It leads a group, and what it started meanwhile goes with it.
            if let Ok(group) = i32::try_from(child.id()) {
                killpg(Pid::from_raw(group), Signal::SIGKILL).unwrap_or_default();
            }
            let gone = child.kill().and_then(|()| child.wait());
            tracing::debug!(?gone, "a child that nobody took over was ended");
        }
    }
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

fn command(start: Start<'_>) -> Result<(PathBuf, Command), String> {
    let word = start.argv.first().ok_or("no command is given")?;
    if let Some(dir) = start.dir.filter(|dir| !dir.is_dir()) {
        return Err(format!("its folder `{}` does not exist or is not a folder", dir.display()));
    }
    let path = start.env.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_os_str());
    let program = resolve(word, start.dir, path)?;
    let mut command = Command::new(&program);
    command.arg0(word).args(&start.argv[1..]).env_clear().envs(start.env.iter().map(|(name, value)| (name, value)));
    if let Some(dir) = start.dir {
        command.current_dir(dir);
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    tie_to_host(&mut command);
    Ok((program, command))
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

/// Asks for a large pipe; where the system refuses, the default one works as well, only slower.
fn widen(end: &impl AsFd) {
    if let Err(error) = fcntl(end, FcntlArg::F_SETPIPE_SZ(PIPE_BYTES)) {
        tracing::debug!(%error, "a pipe keeps its default capacity");
    }
}

#[expect(unsafe_code, reason = "what is set between fork and exec can only be set there")]
fn tie_to_host(command: &mut Command) {
    let host = nix::unistd::getpid();
    let prepare = move || {
        nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL)?;
        // The host may have died before the signal was set.
        if nix::unistd::getppid() != host {
            return Err(io::Error::from(nix::errno::Errno::ESRCH));
        }
        close_others()
    };
    // SAFETY: between fork and exec only async-signal-safe calls are made: prctl, getppid, close_range, fcntl,
    // getrlimit; nothing allocates, locks or panics.
    unsafe {
        command.pre_exec(prepare);
    }
}

/// Marks every descriptor but the first three to be closed at exec. They are not closed here, because the error of
/// a failed exec goes back through one of them.
#[expect(unsafe_code, reason = "these calls have no safe form")]
fn close_others() -> io::Result<()> {
    use nix::libc;
    /// Where there is no `close_range`, descriptors above this are not looked at: hosts open far fewer.
    const HIGHEST: libc::c_int = 65_536;
    // SAFETY: plain system call on this process's own descriptor table.
    let marked =
        unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, libc::c_uint::from(CLOSE_RANGE_CLOEXEC)) };
    if marked == 0 {
        return Ok(());
    }
    for fd in 3..HIGHEST {
        // SAFETY: setting a flag on a descriptor that may not be open has no effect but an error code.
        unsafe {
            libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC);
        }
    }
    Ok(())
}

/// `CLOSE_RANGE_CLOEXEC` of Linux 5.11.
const CLOSE_RANGE_CLOEXEC: u8 = 4;
