//! How long a hook waits: for bytes of its host or its daemon, never beyond its deadline, and no longer once a signal says
//! that nobody wants its answer.
//!
//! Everything but the start of a daemon happens in one thread, which asks before it reads whether there is something: a
//! second one would cost more than the whole question.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, pthread_sigmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::stat::{SFlag, fstat};

/// How long the daemon has until its first word, whatever the deadline: one that says nothing for so long is stuck.
const FIRST_WORD: Duration = Duration::from_secs(28);

/// Where a process finds its standard input by name. Source: proc_pid_fd(5).
const OWN_INPUT: &str = "/proc/self/fd/0";

/// A file, and what it is to be ready for.
type Waited<'a> = (BorrowedFd<'a>, PollFlags);

/// What ends the waiting of one hook.
#[derive(Debug)]
pub struct Waiting {
    signals: SignalFd,
    /// Until when is waited: for the first word, and once that was said, for the ruling.
    until: Cell<Instant>,
    deadline: Instant,
}

impl Waiting {
    /// Waits no longer than `deadline` after `began`. From here on, no signal that somebody may end a hook with ends it: no
    /// other thread may run yet, since each one would take them.
    ///
    /// # Errors
    /// The signals cannot be caught.
    pub fn until(began: Instant, deadline: Duration) -> io::Result<Self> {
        pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&held_up()), None)?;
        let signals = SignalFd::with_flags(&caught(), SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?;
        let until = Cell::new(began + deadline.min(FIRST_WORD));
        Ok(Self { signals, until, deadline: began + deadline })
    }

    /// The daemon has said its first word: a person is asked, who has until the deadline.
    pub fn for_a_person(&self) {
        self.until.set(self.deadline);
    }

    /// Waits until `file` is `ready`, or has ended.
    ///
    /// # Errors
    /// The time is over, or nobody wants the answer any more.
    pub fn ready(&self, file: BorrowedFd<'_>, ready: PollFlags) -> io::Result<()> {
        if self.is_ready(Some((file, ready)), self.until.get())? { Ok(()) } else { Err(late()) }
    }

    /// Waits until `file` has something to be read, or has ended, but no longer than `time`.
    ///
    /// # Errors
    /// The time of the whole hook is over, or nobody wants the answer any more.
    pub fn within(&self, file: BorrowedFd<'_>, time: Duration) -> io::Result<()> {
        self.some_time(Some((file, PollFlags::POLLIN)), time)
    }

    /// Waits for `time`.
    ///
    /// # Errors
    /// The time of the whole hook is over, or nobody wants the answer any more.
    pub fn pause(&self, time: Duration) -> io::Result<()> {
        self.some_time(None, time)
    }

    fn some_time(&self, file: Option<Waited<'_>>, time: Duration) -> io::Result<()> {
        let (until, end) = (self.until.get(), Instant::now() + time);
        if self.is_ready(file, until.min(end))? || end < until { Ok(()) } else { Err(late()) }
    }

    /// Whether `file` gets ready until `end`. Also where it is over already: what is there is taken.
    fn is_ready(&self, file: Option<Waited<'_>>, end: Instant) -> io::Result<bool> {
        let signals = (self.signals.as_fd(), PollFlags::POLLIN);
        let mut files = [signals, file.unwrap_or(signals)].map(|(file, ready)| PollFd::new(file, ready));
        loop {
            let left = end.saturating_duration_since(Instant::now());
            // Rounded up: what is left of the last millisecond would be waited for in turns of none.
            let left = PollTimeout::try_from(left + Duration::from_micros(999)).unwrap_or(PollTimeout::MAX);
            match poll(&mut files, left) {
                Err(Errno::EINTR) => continue,
                Err(error) => return Err(error.into()),
                Ok(_) => {}
            }
            if files[0].any() != Some(false) {
                return Err(io::Error::other("the host wants no answer any more"));
            }
            if file.is_some() && files[1].any() != Some(false) {
                return Ok(true);
            }
            if end <= Instant::now() {
                return Ok(false);
            }
        }
    }
}

fn late() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "the guard did not answer in time")
}

/// The signals that say that nobody wants an answer any more: all but those that end no program, and those that a terminal
/// stops one with.
fn caught() -> SigSet {
    let mut all = held_up();
    [Signal::SIGTSTP, Signal::SIGTTIN, Signal::SIGTTOU].into_iter().for_each(|signal| all.remove(signal));
    all
}

/// The signals that do nothing by themselves from here on: a hook that one of them ends, or stops, says nothing, and its
/// host runs the call.
fn held_up() -> SigSet {
    let mut all = SigSet::all();
    let harmless = [Signal::SIGCHLD, Signal::SIGCONT, Signal::SIGURG, Signal::SIGWINCH];
    harmless.into_iter().for_each(|signal| all.remove(signal));
    all
}

/// Standard input, which is read only where there is something.
#[derive(Debug)]
pub struct WaitedInput<'a> {
    waiting: &'a Waiting,
    /// The same pipe, opened once more, so that reading it never waits: somebody else who reads it may take what is there
    /// between the question and the reading.
    pipe: Option<File>,
}

impl<'a> WaitedInput<'a> {
    /// That of this process, which waits as long as `waiting` says.
    pub fn of(waiting: &'a Waiting) -> Self {
        let is_pipe =
            fstat(io::stdin()).is_ok_and(|found| found.st_mode & SFlag::S_IFMT.bits() == SFlag::S_IFIFO.bits());
        let open = || File::options().read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(OWN_INPUT).ok();
        Self { waiting, pipe: is_pipe.then(open).flatten() }
    }
}

impl Read for WaitedInput<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let input = io::stdin();
        let file = self.pipe.as_ref().map_or(input.as_fd(), AsFd::as_fd);
        loop {
            if self.pipe.is_none() {
                self.waiting.ready(file, PollFlags::POLLIN)?;
            }
            // Straight from the descriptor: what the handle of the library had read already, nobody would wait for.
            match nix::unistd::read(file, bytes) {
                // The host, which has the other end, may have made it one that never waits.
                Err(Errno::EAGAIN) => self.waiting.ready(file, PollFlags::POLLIN)?,
                Err(Errno::EINTR) => {}
                read => return Ok(read?),
            }
        }
    }
}

/// A connection that never waits by itself.
#[derive(Debug)]
pub struct WaitedStream<'a> {
    /// The connection.
    pub stream: UnixStream,
    /// How long is waited.
    pub waiting: &'a Waiting,
}

impl Read for WaitedStream<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            // Asked first: hardly ever is an answer there already.
            self.waiting.ready(self.stream.as_fd(), PollFlags::POLLIN)?;
            match self.stream.read(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                read => return read,
            }
        }
    }
}

impl Write for WaitedStream<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        loop {
            match self.stream.write(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.waiting.ready(self.stream.as_fd(), PollFlags::POLLOUT)?;
                }
                written => return written,
            }
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}
