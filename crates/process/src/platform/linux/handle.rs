//! An adopter as the host sees it: given orders, and waited for.

use std::collections::BTreeSet;
use std::ffi::{c_int, c_void};
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::errno::Errno;
use nix::libc;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use super::adopter;

/// What an adopter is told to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Everything below it is asked to end.
    Ask,
    /// Everything below it is killed, and it leaves.
    End,
}

/// An adopter that runs. Dropping it ends it, with everything below it.
#[derive(Debug)]
pub(crate) struct Adopter {
    pid: Pid,
    /// It stands on this until it is reaped; none then.
    stack: Option<Stack>,
}

impl Adopter {
    pub(crate) fn order(&self, order: Order) {
        let signal = match order {
            Order::Ask => adopter::ASK,
            Order::End => adopter::END,
        };
        // It may have been stopped by somebody below it. Both signals fail only if it has ended, and then there is
        // nobody left who could be told.
        for signal in [signal, libc::SIGCONT] {
            send(self.pid, signal);
        }
    }

    /// Lets go of one that has told that nothing is left below it: it leaves by itself, and nobody waits for that.
    pub(crate) fn dismiss(mut self) {
        if let Some(stack) = self.stack.take() {
            forgotten().push((self.pid, stack));
        }
        bury_forgotten();
    }

    /// Waits for its end, which has begun. Whether it left by itself: one that was killed leaves behind what it had.
    pub(crate) fn bury(mut self) -> bool {
        let gone = wait(self.pid, libc::__WALL);
        self.forget();
        // Somebody in this process may reap whatever there is, and then nothing is known against it.
        !gone.is_ok_and(|status| status.is_some_and(|status| status.signal().is_some()))
    }

    /// The adopter `pid`, which was just made, and stands on `stack`.
    pub(super) fn known(pid: Pid, stack: Stack, living: &mut BTreeSet<Pid>) -> Self {
        living.insert(pid);
        Self { pid, stack: Some(stack) }
    }

    /// Its process id.
    #[cfg(test)]
    pub(super) fn id(&self) -> Pid {
        self.pid
    }

    fn forget(&mut self) {
        living().remove(&self.pid);
        self.stack = None;
    }
}

impl Drop for Adopter {
    fn drop(&mut self) {
        if let Some(stack) = self.stack.take() {
            self.order(Order::End);
            forgotten().push((self.pid, stack));
            bury_forgotten();
        }
    }
}

fn send(pid: Pid, signal: c_int) {
    if let Ok(signal) = Signal::try_from(signal)
        && let Err(error) = kill(pid, signal)
    {
        tracing::debug!(%error, %signal, "an adopter was gone before it was told");
    }
}

/// The adopters of this process that are not reaped.
pub(super) fn living() -> MutexGuard<'static, BTreeSet<Pid>> {
    static LIVING: Mutex<BTreeSet<Pid>> = Mutex::new(BTreeSet::new());
    // It is whole whatever panics.
    LIVING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Those that nobody has any more and that take a moment to end, with what they stand on. What is left of the last ones
/// is reaped when the next one is made.
fn forgotten() -> MutexGuard<'static, Vec<(Pid, Stack)>> {
    static FORGOTTEN: Mutex<Vec<(Pid, Stack)>> = Mutex::new(Vec::new());
    FORGOTTEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reaps the adopters that nobody has any more and that have ended.
pub(super) fn bury_forgotten() {
    let runs = |pid: Pid| matches!(wait(pid, libc::__WALL | libc::WNOHANG), Ok(None));
    forgotten().retain(|(pid, _)| runs(*pid) || !living().remove(pid));
}

/// Memory that a process stands on.
pub(super) struct Stack(Vec<u128>);

impl Stack {
    pub(super) fn of(bytes: usize) -> Self {
        Self(Vec::with_capacity(bytes / size_of::<u128>()))
    }

    /// Where it begins: it grows downwards.
    pub(super) fn top(&mut self) -> *mut c_void {
        self.0.spare_capacity_mut().as_mut_ptr_range().end.cast()
    }
}

impl std::fmt::Debug for Stack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Stack").finish_non_exhaustive()
    }
}

/// The form of `nix` does not know every signal that can end a process, and loses what it was then.
#[expect(unsafe_code, reason = "the safe form loses the status")]
pub(super) fn wait(pid: Pid, flags: c_int) -> io::Result<Option<ExitStatus>> {
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
