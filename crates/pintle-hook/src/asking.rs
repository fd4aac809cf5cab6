//! Asks the daemon once: connects, proves both sides, sends the question, hears the answer.

use std::io::{self, BufReader};
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, UnixAddr, getsockopt, socket, sockopt::PeerCredentials};
use nix::unistd::geteuid;

use crate::account;
use crate::frame::{self, DaemonAnswer, Question, Ruled};
use crate::key;
use crate::options::{AskedDaemon, Options};
use crate::start::{self, FoundDaemon, LOOK_EVERY, is_away};
use crate::waiting::{WaitedStream, Waiting};

/// How long a hook that wants no answer stays so that the daemon sees which agent started it: many times what a daemon
/// takes that has something else to do, and little for an agent that waits for its hook.
const SEEN_TIME: Duration = Duration::from_millis(500);

/// The bytes of an answer that are read at once: most are shorter.
const ANSWER_BYTES: usize = 1 << 10;

/// Why there is no ruling.
#[derive(Debug)]
pub enum Unanswered {
    /// No daemon can be reached or started.
    Away(String),
    /// For any other reason.
    Otherwise(String),
}

impl From<io::Error> for Unanswered {
    fn from(error: io::Error) -> Self {
        Self::Otherwise(error.to_string())
    }
}

/// Asks `question`, and waits for the ruling.
///
/// # Errors
/// There is none, whatever the reason.
pub fn ask(options: &Options, question: &Question, waiting: &Waiting) -> Result<Ruled, Unanswered> {
    let daemon = find(options)?;
    let stream = connect(&daemon, waiting)?;
    Ok(answered(WaitedStream { stream, waiting }, &daemon, question)?)
}

fn find(options: &Options) -> io::Result<FoundDaemon> {
    match &options.daemon {
        AskedDaemon::Named { socket, key_file } => {
            Ok(FoundDaemon { socket: socket.clone(), key_file: key_file.clone(), first: None })
        }
        AskedDaemon::Account => account::find(),
    }
}

fn answered(mut stream: WaitedStream<'_>, daemon: &FoundDaemon, question: &Question) -> io::Result<Ruled> {
    let (asked, waiting) = (question.to_bytes(), stream.waiting);
    frame::write(&mut stream, &asked)?;
    if !question.wants_answer() {
        // The daemon closes the connection once it has seen who asks, and says nothing.
        waiting.within(stream.stream.as_fd(), SEEN_TIME)?;
        return Ok(Ruled::default());
    }
    // Read as late as this: a daemon that was started just now may have made it.
    let key = key::read(&daemon.key_file)?;
    let mut answers = BufReader::with_capacity(ANSWER_BYTES, stream);
    loop {
        let bytes = frame::read(&mut answers)?;
        match DaemonAnswer::of_bytes(&bytes, &key, &asked).map_err(io::Error::other)? {
            DaemonAnswer::Held => waiting.for_a_person(),
            DaemonAnswer::Ruled(ruled) => return Ok(ruled),
        }
    }
}

/// Connects to the daemon, which is started if nobody listens.
fn connect(daemon: &FoundDaemon, waiting: &Waiting) -> Result<UnixStream, Unanswered> {
    match to(&daemon.socket, waiting) {
        Err(error) if is_away(&error) => {
            let started = daemon.clone();
            let started = beside(waiting, move || start::start(&started))?;
            started.map_err(|error| Unanswered::Away(error.to_string()))?;
            start::wait(waiting, || to(&daemon.socket, waiting)).map_err(|error| match is_away(&error) {
                true => Unanswered::Away(error.to_string()),
                false => error.into(),
            })
        }
        connected => Ok(connected?),
    }
}

/// Does `work` in a thread of its own, and waits for it: the system runs a program once its file is there, and whoever holds
/// that up must not hold up the hook.
fn beside<T: Send + 'static>(waiting: &Waiting, work: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    let (tell, told) = mpsc::channel();
    // Nobody listens any more where it took too long.
    thread::Builder::new().spawn(move || drop(tell.send(work())))?;
    loop {
        match told.recv_timeout(LOOK_EVERY) {
            Ok(done) => return Ok(done),
            Err(RecvTimeoutError::Timeout) => waiting.pause(Duration::ZERO)?,
            Err(RecvTimeoutError::Disconnected) => return Err(io::Error::other("the daemon cannot be started")),
        }
    }
}

fn to(path: &Path, waiting: &Waiting) -> io::Result<UnixStream> {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    let ours = socket(AddressFamily::Unix, SockType::Stream, flags, None)?;
    let address = UnixAddr::new(path)?;
    loop {
        match nix::sys::socket::connect(ours.as_raw_fd(), &address) {
            Ok(()) => break,
            // More hooks wait there than it takes at once.
            Err(Errno::EAGAIN) => waiting.pause(LOOK_EVERY)?,
            Err(error) => return Err(error.into()),
        }
    }
    let peer = getsockopt(&ours, PeerCredentials)?;
    if peer.uid() == geteuid().as_raw() { Ok(ours.into()) } else { Err(io::Error::other("another user listens there")) }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_start_that_takes_too_long_is_not_waited_for() {
        let waiting = Waiting::until(Instant::now(), Duration::from_millis(50)).unwrap();
        assert_eq!(beside(&waiting, || 7).unwrap(), 7);
        let (hold, held) = mpsc::channel::<()>();
        let late = beside(&waiting, move || held.recv().is_ok()).unwrap_err();
        assert_eq!(late.kind(), io::ErrorKind::TimedOut);
        drop(hold);
    }
}
