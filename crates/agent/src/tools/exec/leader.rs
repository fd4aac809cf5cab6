//! The helper between the host and the shell: what it started does not outlive the host.
//!
//! Its standard input is a pipe of which only the host holds the other end. The kernel closes that end when the host
//! ends, killed or not, and the helper then kills its session. A parent-death signal would reach the shell alone, and
//! not what the shell started.

use std::io::{self, Read as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError};

use nix::sys::signal::{SigSet, Signal, raise};
use nix::unistd::{getpid, getsid};

use super::session::kill_own_session;

/// The number that shells add to that of the signal that ended a command.
const BY_SIGNAL: i32 = 128;

/// The exit code where there is no better one.
const UNKNOWN: u8 = 255;

/// Requests to end that go to the whole group: the command decides what to do about them, and the helper stays for as
/// long as the command does.
const FOR_THE_COMMAND: [Signal; 4] = [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGQUIT];

/// Runs `command`, and answers its exit code. One that a signal ended ends this process by the same signal.
pub(crate) fn run_for_host(command: &mut Command) -> io::Result<u8> {
    /// Held by whoever decides how this process ends.
    static END: Mutex<()> = Mutex::new(());
    let mut child = command.stdin(Stdio::null()).spawn()?;
    let deaf: SigSet = FOR_THE_COMMAND.into_iter().collect();
    deaf.thread_block()?;
    // Whoever runs the helper by hand has a session with other things in it.
    if getsid(None) == Ok(getpid()) {
        std::thread::Builder::new().name("lifeline".into()).spawn(|| outlive_nothing(&END))?;
    }
    let status = child.wait()?;
    // The shell may have been the first that was killed, and then the rest comes before the end of this process.
    let _decided = END.lock().unwrap_or_else(PoisonError::into_inner);
    deaf.thread_unblock()?;
    Ok(pass_on(status))
}

/// Waits for the end of the host, then ends the session and this process.
fn outlive_nothing(end: &Mutex<()>) {
    // Nothing is ever written: a byte, the end and an error all mean that the other end is not what it was.
    drop(io::stdin().lock().read(&mut [0]));
    let _decided = end.lock().unwrap_or_else(PoisonError::into_inner);
    kill_own_session();
    std::process::exit(UNKNOWN.into());
}

fn pass_on(status: ExitStatus) -> u8 {
    let code = match (status.code(), status.signal()) {
        (Some(code), _) => code,
        (None, Some(signal)) => {
            // The shell has left its core dump, if it was to leave one.
            nix::sys::prctl::set_dumpable(false).ok();
            if let Ok(signal) = Signal::try_from(signal) {
                raise(signal).ok();
            }
            BY_SIGNAL + signal
        }
        (None, None) => return UNKNOWN,
    };
    u8::try_from(code).unwrap_or(UNKNOWN)
}
