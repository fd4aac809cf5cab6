//! Linux: from a program, and what it is given, to a process below an adopter of its own, and what is left of them. The
//! only `unsafe` of the crate stands here and below.
//!
//! Adopter and child share the host's memory, the child until it runs its program, the adopter (`adopter.rs`) for its
//! life: a copy of the tables of a large host's memory costs more than most programs do. The thread that starts them
//! stands still until the program runs. `posix_spawn` works in the same way, but will not do: what binds a child to
//! the life of somebody else can only be asked for by the child.

use std::cell::Cell;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd as _, OwnedFd, RawFd};
use std::ptr;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::libc;
use nix::sys::prctl::{set_child_subreaper, set_name, set_pdeathsig};
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::unistd::{Pid, chdir, dup2_stderr, dup2_stdin, dup2_stdout, getpid, getppid, pipe2, setpgid, setsid};

use super::ADOPTER_NAME;

mod adopter;
mod code;
mod files;
mod handle;
mod image;
mod peers;
mod processes;
mod raw;
mod words;

pub use code::give_back_code;
pub use files::raise_open_files;
pub(crate) use files::{read_into, watched};
pub(crate) use handle::{Adopter, Order};
pub(crate) use image::{Image, Lead, Start};
pub use peers::{peer_of_pid, peer_of_tcp};
pub use processes::ProcessStat;
pub(crate) use processes::{ChildProcess, adopt_orphans, children};
pub(crate) use words::{StartFailure, Step, Told};

use handle::{Stack, living, wait};
use words::{ENDED, FAILED, RUNS, Words};

/// Room for the child until it runs its program: a dozen calls of the system, some frames deep each. The C library
/// gives its own children half of that.
const STACK_BYTES: usize = 64 << 10;
/// Room for the adopter: it follows a tree of processes some generations down. What it never needs costs nothing.
const ADOPTER_STACK_BYTES: usize = 96 << 10;
/// The adopter's end of the pipe through which it tells the host.
const EVENTS: c_int = 3;
/// What runs a program that has no `#!` line and that the kernel does not know, as every shell would.
const SHELL: &CStr = c"/bin/sh";
/// Capacity asked for each pipe: long conversations cross in one piece. The kernel's usual limit for it.
const PIPE_BYTES: i32 = 1 << 20;
/// What a child leaves with that could not run its program; nobody sees it, since it is told in another way.
const NOT_RUN: c_int = 127;

/// A child that runs, and what stands between it and the host.
#[derive(Debug)]
pub(crate) struct Started {
    /// Its process id, until it is reaped by its adopter.
    pub(crate) child: Pid,
    pub(crate) adopter: Adopter,
    /// The adopter's words, each a [`Told`], and their end when nothing is left below it. Does not block.
    pub(crate) events: OwnedFd,
}

/// Starts `image` below an adopter, with these three descriptors and no others, with no signal caught or blocked.
/// Returns when its program runs. The descriptors may not be among the first three.
#[expect(unsafe_code, reason = "no safe call makes a process that shares memory")]
pub(crate) fn start(image: &Image, stdio: [OwnedFd; 3]) -> Result<Started, StartFailure> {
    handle::bury_forgotten();
    let begin = Step::Begin.failed();
    let (events, tell) = pipe().map_err(&begin)?;
    let mut stack = Stack::of(ADOPTER_STACK_BYTES);
    let mut setup = Setup::of(image, stdio, tell.as_raw_fd());
    // No handler of the host may run in either.
    let mask = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK).map_err(&begin)?;
    let made = {
        // Whoever looks for what is nobody's finds either no adopter or a known one.
        let mut living = living();
        // SAFETY: both stacks are aligned, large enough and used by nobody else. `setup` and what it points to are used
        // by adopter and child until the child has left this memory, by running its program or by its end; until then
        // one of them holds the other end of `events`, and `heard` waits for that or for word that it has happened.
        // The adopter's stack goes when the adopter has been waited for.
        let made = unsafe {
            let setup = ptr::from_mut(&mut setup).cast();
            Errno::result(libc::clone(adopt, stack.top(), raw::MEMORY, setup))
        };
        made.map(|pid| Adopter::known(Pid::from_raw(pid), stack, &mut living))
    };
    drop(tell);
    let heard = made.map(|adopter| (adopter, heard(&events)));
    mask.thread_set_mask().map_err(&begin)?;
    let (adopter, heard) = heard.map_err(&begin)?;
    match heard {
        Some([RUNS, child, _]) => {
            // A new pipe has no other status flag.
            fcntl(&events, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)).map_err(&begin)?;
            Ok(Started { child: Pid::from_raw(child), adopter, events })
        }
        heard => {
            let is_whole = adopter.bury();
            tracing::debug!(is_whole, "a child could not run its program");
            let [_, step, errno] = heard.unwrap_or([FAILED, Step::Begin as c_int, libc::ECHILD]);
            Err(StartFailure { step: Step::numbered(step), errno: Errno::from_raw(errno) })
        }
    }
}

/// Both ends are closed in whatever is started. The second one is not among the first three descriptors.
fn pipe() -> Result<(OwnedFd, OwnedFd), Errno> {
    let (hear, tell) = pipe2(OFlag::O_CLOEXEC)?;
    let is_above = tell.as_raw_fd() > libc::STDERR_FILENO;
    let tell = if is_above { Ok(tell) } else { tell.try_clone() };
    Ok((hear, tell.map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or(libc::EMFILE)))?))
}

/// The first words of an adopter; none if it was killed before it said any, and has no child either by then.
///
/// Adopter and child write numbers of errors where this thread has its own. So it asks the kernel without the C library.
fn heard(events: &OwnedFd) -> Option<Words> {
    let mut said = [0; Told::BYTES];
    (raw::read(events.as_raw_fd(), &mut said) == said.len()).then(|| words::words(said))
}

/// What adopter and child need. Nothing here is made or freed by them: the memory is the host's.
struct Setup<'a> {
    image: &'a Image,
    stdio: [OwnedFd; 3],
    /// The other end of what the host hears. The host closes its own copy, so that it hears the end, too.
    tell: RawFd,
    /// Pointers into `image`, each list with a null at its end.
    argv: Vec<*const c_char>,
    script: Vec<*const c_char>,
    vars: Vec<*const c_char>,
    /// What the child stands on until it runs its program.
    stack: Cell<*mut c_void>,
    _stack: Stack,
    host: Pid,
    /// Set by the adopter before there is a child.
    adopter: Cell<Pid>,
    /// What the child leaves behind if it does not run its program.
    failed: Cell<Option<StartFailure>>,
}

impl<'a> Setup<'a> {
    fn of(image: &'a Image, stdio: [OwnedFd; 3], tell: RawFd) -> Self {
        let list = |words: &[CString]| words.iter().map(|word| word.as_ptr()).chain([ptr::null()]).collect::<Vec<_>>();
        let argv = list(&image.argv);
        let mut script = vec![SHELL.as_ptr(), image.program.as_ptr()];
        script.extend(&argv[1.min(argv.len() - 1)..]);
        let vars = list(&image.vars);
        let mut stack = Stack::of(STACK_BYTES);
        let host = getpid();
        Self {
            image,
            stdio,
            tell,
            argv,
            script,
            vars,
            stack: Cell::new(stack.top()),
            _stack: stack,
            host,
            adopter: Cell::new(host),
            failed: Cell::new(None),
        }
    }
}

/// The adopter's life. It allocates nothing, takes no lock and does not panic.
#[expect(unsafe_code, reason = "it is called by the C library")]
extern "C" fn adopt(setup: *mut c_void) -> c_int {
    let (host, started) = {
        // SAFETY: `start` passes a `Setup`, which lives until it has heard what is told below, or that nothing will be.
        let setup = unsafe { &*setup.cast::<Setup<'_>>() };
        if setup.take_descriptors().is_err() {
            // There is nothing to tell it through.
            return NOT_RUN;
        }
        (setup.host.as_raw(), setup.adopt())
    };
    match started {
        Ok(child) => {
            tell([RUNS, child.as_raw(), 0]);
            // From here on the host goes on, and `setup` may be gone.
            adopter::serve(host, child.as_raw(), |status, is_left| tell([ENDED, status, c_int::from(is_left)]))
        }
        Err(failed) => {
            tell([FAILED, failed.step as c_int, failed.errno as c_int]);
            0
        }
    }
}

fn tell(words: Words) {
    raw::write(EVENTS, &words::bytes(words));
}

/// The child's life before its program. It allocates nothing, takes no lock and does not panic.
#[expect(unsafe_code, reason = "it is called by the C library")]
extern "C" fn be_born(setup: *mut c_void) -> c_int {
    // SAFETY: `adopt` passes the `Setup` that it was given, which lives until the child has left this memory.
    let setup = unsafe { &*setup.cast::<Setup<'_>>() };
    let failed = setup.prepare().err().unwrap_or_else(|| setup.run());
    setup.failed.set(Some(failed));
    NOT_RUN
}

impl Setup<'_> {
    /// Makes this process the child's adopter, and the child.
    #[expect(unsafe_code, reason = "no safe call makes a process that shares memory")]
    fn adopt(&self) -> Result<Pid, StartFailure> {
        self.take_place().map_err(Step::Adopt.failed())?;
        // SAFETY: the stack is aligned, large enough for `be_born`, and used by nobody else. With CLONE_VFORK this
        // call returns only when the child has left this memory, by running its program or by its end.
        let made = unsafe {
            let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
            Errno::result(libc::clone(be_born, self.stack.get(), flags, ptr::from_ref(self).cast_mut().cast()))
        };
        let child = Pid::from_raw(made.map_err(Step::Prepare.failed())?);
        // What the child holds is the child's alone.
        for own in 0..EVENTS {
            raw::close(own);
        }
        match self.failed.take() {
            None => Ok(child),
            // It has ended, or is about to.
            Some(failed) => wait(child, 0).map_or(Err(failed), |_| Err(failed)),
        }
    }

    /// The child's descriptors and the adopter's own, and no others.
    fn take_descriptors(&self) -> Result<(), Errno> {
        let [stdin, stdout, stderr] = &self.stdio;
        dup2_stdin(stdin)?;
        dup2_stdout(stdout)?;
        dup2_stderr(stderr)?;
        place_events(self.tell)?;
        close_others();
        Ok(())
    }

    /// The adopter's own place: a group that no key in a terminal reaches, and its bond to the host.
    fn take_place(&self) -> Result<(), Errno> {
        setpgid(Pid::from_raw(0), Pid::from_raw(0))?;
        set_child_subreaper(true)?;
        set_pdeathsig(Signal::SIGHUP)?;
        // The host may have died before the signal was set.
        if getppid() != self.host {
            return Err(Errno::ESRCH);
        }
        heed_children();
        // Only for whoever lists processes.
        set_name(ADOPTER_NAME).unwrap_or_default();
        self.adopter.set(getpid());
        Ok(())
    }

    fn prepare(&self) -> Result<(), StartFailure> {
        self.take_shape().map_err(Step::Prepare.failed())?;
        self.image.dir.as_deref().map_or(Ok(()), chdir).map_err(Step::Folder.failed())
    }

    fn take_shape(&self) -> Result<(), Errno> {
        match self.image.lead {
            Lead::Group => setpgid(Pid::from_raw(0), Pid::from_raw(0))?,
            Lead::Session => drop(setsid()?),
        }
        set_pdeathsig(Signal::SIGKILL)?;
        // The adopter may have died before the signal was set.
        if getppid() != self.adopter.get() {
            return Err(Errno::ESRCH);
        }
        files::put_back_limit()?;
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
        let mut errno = run(&self.image.program, &self.argv);
        if errno == Errno::ENOEXEC {
            errno = run(SHELL, &self.script);
        }
        Step::Run.failed()(errno)
    }
}

/// Puts the adopter's end of its pipe where it belongs. The child has it too, until it runs its program.
#[expect(unsafe_code, reason = "the safe form of this call wants to own a descriptor that is not open yet")]
fn place_events(tell: RawFd) -> Result<(), Errno> {
    if tell == EVENTS {
        return Ok(());
    }
    // SAFETY: a plain system call on the adopter's own table, in which nobody owns this number.
    Errno::result(unsafe { libc::dup3(tell, EVENTS, libc::O_CLOEXEC) }).map(drop)
}

/// Closes every descriptor but the first three and [`EVENTS`], in the adopter, whose table is its own.
#[expect(unsafe_code, reason = "these calls have no safe form")]
fn close_others() {
    /// Where there is no `close_range`, descriptors above this are not looked at: hosts open far fewer.
    const HIGHEST: c_int = 65_536;
    const FIRST: c_int = EVENTS + 1;
    // SAFETY: a plain system call on the adopter's own table; the host's table stays as it is.
    let closed = unsafe { libc::syscall(libc::SYS_close_range, FIRST, c_int::MAX, 0_u32) };
    if closed == 0 {
        return;
    }
    for fd in FIRST..HIGHEST {
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

/// Lets the adopter know of its children: where the host ignores the ends of its own, nobody could wait for them.
#[expect(unsafe_code, reason = "these calls have no safe form")]
fn heed_children() {
    // SAFETY: as in `forget_handlers`.
    unsafe {
        let default = MaybeUninit::<libc::sigaction>::zeroed().assume_init();
        libc::sigaction(libc::SIGCHLD, &raw const default, ptr::null_mut());
    }
}

/// Asks for a large pipe; where the system refuses, the default one works as well, only slower.
pub(crate) fn widen(end: &impl AsFd) {
    if let Err(error) = fcntl(end, FcntlArg::F_SETPIPE_SZ(PIPE_BYTES)) {
        tracing::debug!(%error, "a pipe keeps its default capacity");
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::fs::File;
    use std::io::{PipeReader, Read as _, pipe};
    use std::os::unix::process::ExitStatusExt as _;
    use std::path::Path;
    use std::process::ExitStatus;

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
        Ok((told(child).status, text))
    }

    /// What the adopter has to say, until it leaves.
    fn told(started: Started) -> Told {
        fcntl(&started.events, FcntlArg::F_SETFL(OFlag::empty())).unwrap();
        let mut said = Vec::new();
        File::from(started.events).read_to_end(&mut said).unwrap();
        assert!(started.adopter.bury());
        Told::read(said.try_into().unwrap()).unwrap()
    }

    fn begin(
        program: &str,
        argv: &[&str],
        env: &[(&str, &str)],
        dir: Option<&str>,
    ) -> Result<(Started, PipeReader), StartFailure> {
        let (said, say) = pipe().unwrap();
        let argv: Vec<OsString> = argv.iter().map(OsString::from).collect();
        let env: Vec<(OsString, OsString)> = env.iter().map(|(name, value)| (name.into(), value.into())).collect();
        let lead = Lead::Group;
        let start_of = Start { argv: &argv, dir: dir.map(Path::new), env: &env, lead };
        let image = Image::new(Path::new(program), &start_of).unwrap();
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
        let pid = child.adopter.id();
        assert_eq!(told(child), Told { status: ExitStatus::from_raw(0), is_left: false });
        assert_eq!(wait(pid, libc::__WALL).unwrap_err().raw_os_error(), Some(libc::ECHILD), "it was buried");
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
