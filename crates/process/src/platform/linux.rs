//! Linux: from a program, and what it is given, to a process, and what is left of it. The only `unsafe` of the crate
//! stands here.
//!
//! The child shares the host's memory until it runs its program, and the thread that starts it stands still until
//! then: a copy of the tables of a large host's memory costs more than most programs do. `posix_spawn` works in the
//! same way, but will not do: what binds a child to the host's life can only be asked for by the child.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, OsStr, OsString, c_char, c_int, c_void};
use std::fs;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, FromRawFd as _, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::ExitStatus;
use std::ptr;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;
use nix::sys::prctl::set_pdeathsig;
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::unistd::{Pid, chdir, dup2_stderr, dup2_stdin, dup2_stdout, getpid, getppid, setpgid};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// Room for the child until it runs its program: a dozen calls of the system, some frames deep each. The C library
/// gives its own children half of that.
const STACK_BYTES: usize = 64 << 10;
/// What runs a program that has no `#!` line and that the kernel does not know, as every shell would.
const SHELL: &CStr = c"/bin/sh";
/// Capacity asked for each pipe: long conversations cross in one piece. The kernel's usual limit for it.
const PIPE_BYTES: i32 = 1 << 20;
/// What a child leaves with that could not run its program; nobody sees it, since it is told in another way.
const NOT_RUN: c_int = 127;

/// What to start, as [`crate::child::Launch`] describes it.
#[derive(Clone, Copy)]
pub(crate) struct Start<'a> {
    pub(crate) argv: &'a [String],
    pub(crate) dir: Option<&'a Path>,
    pub(crate) env: &'a [(OsString, OsString)],
}

/// A program and everything that it is given, in the form of the kernel.
#[derive(Debug)]
pub(crate) struct Image {
    program: CString,
    argv: Vec<CString>,
    vars: Vec<CString>,
    dir: Option<CString>,
}

impl Image {
    /// `program` with what `start` gives it. Of two variables of one name, the last one counts.
    pub(crate) fn new(program: &Path, start: &Start<'_>) -> io::Result<Self> {
        let word = |bytes: &[u8]| {
            let why = |_| io::Error::new(io::ErrorKind::InvalidInput, "nul byte found in provided data");
            CString::new(bytes).map_err(why)
        };
        let vars: BTreeMap<&OsStr, &OsStr> =
            start.env.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str())).collect();
        let var = |(name, value): (&OsStr, &OsStr)| word(&[name.as_bytes(), b"=", value.as_bytes()].concat());
        Ok(Self {
            program: word(program.as_os_str().as_bytes())?,
            argv: start.argv.iter().map(|argument| word(argument.as_bytes())).collect::<io::Result<_>>()?,
            vars: vars.into_iter().map(var).collect::<io::Result<_>>()?,
            dir: start.dir.map(|dir| word(dir.as_os_str().as_bytes())).transpose()?,
        })
    }
}

/// Why there is no process, and how far it got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StartFailure {
    pub(crate) step: Step,
    pub(crate) errno: Errno,
}

/// What stands between a program and its process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// There is no child yet.
    Begin,
    /// The child takes its descriptors, its group, its bond to the host and its signals.
    Prepare,
    /// It goes to its folder.
    Folder,
    /// It runs its program.
    Run,
}

impl Step {
    fn failed(self) -> impl Fn(Errno) -> StartFailure {
        move |errno| StartFailure { step: self, errno }
    }
}

/// Starts `image` in a group of its own, with these three descriptors and no others, with no signal caught or blocked,
/// and killed when the calling thread ends. Returns when its program runs.
#[expect(unsafe_code, reason = "no safe call makes a child that shares memory and binds itself to its parent's life")]
pub(crate) fn start(image: &Image, stdio: [OwnedFd; 3]) -> Result<Pid, StartFailure> {
    let list = |words: &[&CString]| words.iter().map(|word| word.as_ptr()).chain([ptr::null()]).collect::<Vec<_>>();
    let argv = list(&image.argv.iter().collect::<Vec<_>>());
    let mut script = vec![SHELL.as_ptr(), image.program.as_ptr()];
    script.extend(&argv[1.min(argv.len() - 1)..]);
    let vars = list(&image.vars.iter().collect::<Vec<_>>());
    let setup =
        ChildSetup { image, stdio, argv: &argv, script: &script, vars: &vars, host: getpid(), failed: Cell::new(None) };
    let mut stack = Vec::<u128>::with_capacity(STACK_BYTES / size_of::<u128>());
    // No handler of the host may run in the child.
    let mask = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK).map_err(Step::Begin.failed())?;
    // SAFETY: the stack is aligned, large enough for `be_born`, and used by nobody else. It, `birth` and what that
    // points to outlive the child's use of them: with CLONE_VFORK this call returns only when the child has left this
    // memory, by running its program or by its end.
    let made = unsafe {
        let top = stack.as_mut_ptr().add(stack.capacity());
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        Errno::result(libc::clone(be_born, top.cast(), flags, ptr::from_ref(&setup).cast_mut().cast()))
    };
    mask.thread_set_mask().map_err(Step::Begin.failed())?;
    let child = Pid::from_raw(made.map_err(Step::Begin.failed())?);
    match setup.failed.take() {
        None => Ok(child),
        Some(failed) => {
            let gone = reap_blocking(child);
            tracing::debug!(?gone, "a child could not run its program");
            Err(failed)
        }
    }
}

/// What the child needs. Nothing here is made or freed by the child: the memory is the host's.
struct ChildSetup<'a> {
    image: &'a Image,
    stdio: [OwnedFd; 3],
    /// Pointers into `image`, each list with a null at its end.
    argv: &'a [*const c_char],
    script: &'a [*const c_char],
    vars: &'a [*const c_char],
    host: Pid,
    /// What the child leaves behind if it does not run its program.
    failed: Cell<Option<StartFailure>>,
}

/// The child's life before its program. It allocates nothing, takes no lock and does not panic.
#[expect(unsafe_code, reason = "it is called by the C library")]
extern "C" fn be_born(setup: *mut c_void) -> c_int {
    // SAFETY: `start` passes a `ChildSetup`, which lives until the child has left this memory, and stands still
    // meanwhile.
    let setup = unsafe { &*setup.cast::<ChildSetup<'_>>() };
    let failed = setup.prepare().err().unwrap_or_else(|| setup.run());
    setup.failed.set(Some(failed));
    NOT_RUN
}

impl ChildSetup<'_> {
    fn prepare(&self) -> Result<(), StartFailure> {
        self.take_shape().map_err(Step::Prepare.failed())?;
        self.image.dir.as_deref().map_or(Ok(()), chdir).map_err(Step::Folder.failed())
    }

    fn take_shape(&self) -> Result<(), Errno> {
        let [stdin, stdout, stderr] = &self.stdio;
        dup2_stdin(stdin)?;
        dup2_stdout(stdout)?;
        dup2_stderr(stderr)?;
        close_others();
        setpgid(Pid::from_raw(0), Pid::from_raw(0))?;
        set_pdeathsig(Signal::SIGKILL)?;
        // The host may have died before the signal was set.
        if getppid() != self.host {
            return Err(Errno::ESRCH);
        }
        forget_handlers();
        SigSet::empty().thread_set_mask()
    }

    /// Comes back only if the program cannot run.
    #[expect(unsafe_code, reason = "the safe form of this call allocates")]
    fn run(&self) -> StartFailure {
        let run = |program: &CStr, argv: &[*const c_char]| {
            // SAFETY: both lists end with a null, and what they point to is owned by the image, or static.
            unsafe { libc::execve(program.as_ptr(), argv.as_ptr(), self.vars.as_ptr()) };
            Errno::last()
        };
        let mut errno = run(&self.image.program, self.argv);
        if errno == Errno::ENOEXEC {
            errno = run(SHELL, self.script);
        }
        Step::Run.failed()(errno)
    }
}

/// Closes every descriptor but the first three, in the child, whose table is its own.
#[expect(unsafe_code, reason = "these calls have no safe form")]
fn close_others() {
    /// Where there is no `close_range`, descriptors above this are not looked at: hosts open far fewer.
    const HIGHEST: c_int = 65_536;
    // SAFETY: a plain system call on the child's own table; the host's table stays as it is.
    let closed = unsafe { libc::syscall(libc::SYS_close_range, 3_u32, u32::MAX, 0_u32) };
    if closed == 0 {
        return;
    }
    for fd in 3..HIGHEST {
        // SAFETY: as above; closing a descriptor that is not open has no effect but an error code.
        unsafe { libc::close(fd) };
    }
}

/// Puts back to its default what the host catches, and the broken pipe, which Rust programs ignore. What else is
/// ignored stays so, as for every child. A handler would run on the host's memory.
#[expect(unsafe_code, reason = "these calls have no safe form")]
fn forget_handlers() {
    for signal in 1..=libc::SIGRTMAX() {
        // SAFETY: a `sigaction` is plain data, and all zeroes are its default: SIG_DFL, no flags, an empty mask. The
        // child's table of handlers is its own. The C library refuses the few signals that are its own, which nobody
        // else sends.
        unsafe {
            let default = MaybeUninit::<libc::sigaction>::zeroed().assume_init();
            let mut now = default;
            let known = libc::sigaction(signal, ptr::null(), &raw mut now) == 0;
            let kept =
                now.sa_sigaction == libc::SIG_DFL || (now.sa_sigaction == libc::SIG_IGN && signal != libc::SIGPIPE);
            if known && !kept {
                libc::sigaction(signal, &raw const default, ptr::null_mut());
            }
        }
    }
}

/// Makes the host the parent of what its children leave behind.
pub(crate) fn adopt_orphans() -> io::Result<()> {
    Ok(nix::sys::prctl::set_child_subreaper(true)?)
}

/// The processes of this machine that have ended and wait to be reaped.
pub(crate) fn ended_processes() -> impl Iterator<Item = EndedProcess> {
    let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
    pids.filter_map(|entry| EndedProcess::read(entry.file_name().to_str()?.parse().ok()?))
}

/// A process that has ended and waits to be reaped.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct EndedProcess {
    /// Its id.
    pub(crate) pid: i32,
    /// Its parent's.
    pub(crate) parent: i32,
    /// Its group's.
    pub(crate) group: i32,
}

impl EndedProcess {
    /// The process `pid`, if it has ended.
    pub(crate) fn read(pid: i32) -> Option<Self> {
        let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
        // The second field is the name in parentheses and may hold anything; then come state, parent, group.
        let after_name = stat.iter().rposition(|byte| *byte == b')')?;
        let fields = std::str::from_utf8(&stat[after_name + 1..]).ok()?;
        let mut fields = fields.split_ascii_whitespace();
        let state = fields.next()?;
        let (parent, group) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        (state == "Z").then_some(Self { pid, parent, group })
    }
}

/// Asks for a large pipe; where the system refuses, the default one works as well, only slower.
pub(crate) fn widen(end: &impl AsFd) {
    if let Err(error) = fcntl(end, FcntlArg::F_SETPIPE_SZ(PIPE_BYTES)) {
        tracing::debug!(%error, "a pipe keeps its default capacity");
    }
}

/// A descriptor that becomes readable when the child `pid` has ended. Older kernels have none. Needs a runtime with IO.
#[expect(unsafe_code, reason = "these calls have no safe form")]
pub(crate) fn watch(pid: Pid) -> io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: a plain system call without memory.
    let opened = unsafe { libc::syscall(libc::SYS_pidfd_open, pid.as_raw(), 0) };
    let fd = RawFd::try_from(Errno::result(opened)?).map_err(io::Error::other)?;
    // SAFETY: the kernel has just made it, for nobody else.
    let end = unsafe { OwnedFd::from_raw_fd(fd) };
    // SAFETY: an `OwnedFd` stays open, and the same one, until it is dropped.
    Ok(unsafe { AsyncFd::register_with_interest(end, Interest::READABLE)? })
}

/// How the child `pid` ended; none if it runs. Once that is said, its id may name somebody else.
pub(crate) fn reap(pid: Pid) -> io::Result<Option<ExitStatus>> {
    wait(pid, libc::WNOHANG)
}

/// Waits, without a runtime, until the child `pid` has ended.
pub(crate) fn reap_blocking(pid: Pid) -> io::Result<Option<ExitStatus>> {
    wait(pid, 0)
}

/// The form of `nix` does not know every signal that can end a process, and loses what it was then.
#[expect(unsafe_code, reason = "the safe form loses the status")]
fn wait(pid: Pid, flags: c_int) -> io::Result<Option<ExitStatus>> {
    let mut status = 0;
    loop {
        // SAFETY: the status is written into a number of this frame.
        match Errno::result(unsafe { libc::waitpid(pid.as_raw(), &raw mut status, flags) }) {
            Ok(0) => return Ok(None),
            Ok(_) => return Ok(Some(ExitStatus::from_raw(status))),
            Err(Errno::EINTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::fs::File;
    use std::io::{PipeReader, Read as _, pipe};

    use super::*;

    /// Runs this program with these words, no input, and one pipe for both outputs.
    fn run(
        program: &str,
        argv: &[&str],
        env: &[(&str, &str)],
        dir: Option<&str>,
    ) -> Result<(ExitStatus, String), StartFailure> {
        let (child, mut said) = begin(program, argv, env, dir)?;
        let mut text = String::new();
        said.read_to_string(&mut text).unwrap();
        Ok((reap_blocking(child).unwrap().unwrap(), text))
    }

    fn begin(
        program: &str,
        argv: &[&str],
        env: &[(&str, &str)],
        dir: Option<&str>,
    ) -> Result<(Pid, PipeReader), StartFailure> {
        let (said, say) = pipe().unwrap();
        let argv: Vec<String> = argv.iter().map(|&word| word.to_owned()).collect();
        let env: Vec<(OsString, OsString)> = env.iter().map(|(name, value)| (name.into(), value.into())).collect();
        let image = Image::new(Path::new(program), &Start { argv: &argv, dir: dir.map(Path::new), env: &env }).unwrap();
        let null = File::open("/dev/null").unwrap();
        let child = start(&image, [null.into(), say.try_clone().unwrap().into(), say.into()])?;
        Ok((child, said))
    }

    fn sh(script: &str) -> (Option<i32>, Option<i32>, String) {
        let (status, said) = run("/bin/sh", &["sh", "-c", script], &[], None).unwrap();
        (status.code(), status.signal(), said)
    }

    #[test]
    fn ends_are_told() {
        for (script, code, signal) in [
            ("exit 0", Some(0), None),
            ("exit 7", Some(7), None),
            ("kill -KILL $$", None, Some(9)),
            // Neither has a name in `nix`.
            ("kill -34 $$", None, Some(34)),
            ("kill -64 $$", None, Some(64)),
        ] {
            assert_eq!(sh(script), (code, signal, String::new()), "{script}");
        }
        let (child, said) = begin("/bin/cat", &["cat", "/dev/stdin"], &[], None).unwrap();
        drop(said);
        assert!(reap_blocking(child).unwrap().is_some());
        assert_eq!(reap(child).unwrap_err().raw_os_error(), Some(libc::ECHILD));
    }

    #[test]
    fn it_has_what_it_was_given_and_nothing_else() {
        let vars = [("B", "2"), ("A", "1"), ("B", "3")];
        let (_, said) = run(
            "/bin/sh",
            &["name", "-c", "cat /proc/$$/environ; echo \"$0 $1\"; pwd", "zero", "one"],
            &vars,
            Some("/usr"),
        )
        .unwrap();
        assert_eq!(said, "A=1\0B=3\0zero one\n/usr\n");
        let (_, said) = run("/bin/cat", &["other name", "/proc/self/cmdline"], &[], None).unwrap();
        assert_eq!(said, "other name\0/proc/self/cmdline\0");
    }

    #[test]
    fn its_signals_are_as_new() {
        // The test itself catches what Rust catches, ignores broken pipes, and blocks one signal in this thread.
        let mut blocked = SigSet::empty();
        blocked.add(Signal::SIGUSR1);
        blocked.thread_block().unwrap();
        let (_, _, said) = sh("exec cat /proc/self/status");
        let mask = |name: &str| {
            let line = said.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            u64::from_str_radix(line.trim(), 16).unwrap()
        };
        // Whatever else the surroundings of this test ignore stays ignored.
        let pipe = 1 << (libc::SIGPIPE - 1);
        assert_eq!([mask("SigBlk:"), mask("SigCgt:"), mask("SigIgn:") & pipe], [0; 3]);
        assert!(SigSet::thread_get_mask().unwrap().contains(Signal::SIGUSR1), "the host's own mask is as before");
    }

    #[test]
    fn what_fails_says_where() {
        let (file, none) = ("/etc/passwd", "/no/such/file");
        let rows = [
            (none, None, Step::Run, Errno::ENOENT),
            (file, None, Step::Run, Errno::EACCES),
            ("/", None, Step::Run, Errno::EACCES),
            ("/bin/sh", Some(none), Step::Folder, Errno::ENOENT),
            ("/bin/sh", Some(file), Step::Folder, Errno::ENOTDIR),
        ];
        for (program, dir, step, errno) in rows {
            assert_eq!(run(program, &["sh"], &[], dir).unwrap_err(), StartFailure { step, errno }, "{program} {dir:?}");
        }
        let long = "x".repeat(1 << 20);
        assert_eq!(run("/bin/sh", &["sh", &long], &[], None).unwrap_err(), Step::Run.failed()(Errno::E2BIG));
    }

    #[test]
    fn a_program_without_a_first_line_is_a_shell_s() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("plain");
        std::fs::write(&file, "echo \"$0 $*\"\n").unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        let program = file.to_str().unwrap();
        let (_, said) = run(program, &["name", "a", "b c"], &[], None).unwrap();
        assert_eq!(said, format!("{program} a b c\n"));
    }
}
