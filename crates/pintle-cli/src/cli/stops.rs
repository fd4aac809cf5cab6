//! The signals that ask a person's program to end, and what a turn makes of them.

use std::future::pending;
use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::error::CliError;

/// Lets a write beyond the limit of a file's size fail as on a full disk: its signal would end the program without a word.
/// It is caught rather than ignored, so that children have it at its default.
///
/// # Errors
/// The system does not let signals be handled.
pub(super) fn outlive_file_limits() -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    let _here = runtime.enter();
    // The handler stays as long as the process.
    signal(SignalKind::from_raw(nix::libc::SIGXFSZ)).map(drop)
}

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stop {
    /// Ctrl-C: the turn that is under way.
    Turn,
    /// TERM, or the terminal is gone: the whole program.
    Program,
}

/// Listens for signals. From its beginning on they no longer end the program by themselves, so it has to be asked.
pub(super) struct Stops {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Option<Signal>,
}

impl Stops {
    /// Listens for INT and TERM, and for HUP if that is to mean the same.
    ///
    /// # Errors
    /// The system does not let signals be handled.
    pub(super) fn listen(with_hang_up: bool) -> Result<Self, CliError> {
        let on = |kind| signal(kind).map_err(|why| CliError::failed(format!("signals cannot be handled: {why}")));
        Ok(Self {
            interrupt: on(SignalKind::interrupt())?,
            terminate: on(SignalKind::terminate())?,
            hang_up: with_hang_up.then(|| on(SignalKind::hangup())).transpose()?,
        })
    }

    /// Waits for the next signal.
    pub(super) async fn next(&mut self) -> Stop {
        let hung_up = async {
            match &mut self.hang_up {
                Some(hang_up) => hang_up.recv().await,
                None => pending().await,
            }
        };
        tokio::select! {
            _ = self.interrupt.recv() => Stop::Turn,
            _ = self.terminate.recv() => Stop::Program,
            _ = hung_up => Stop::Program,
        }
    }

    /// Works `turn` to its end; a signal sets `cancel`. Answers what was asked for meanwhile, too.
    pub(super) async fn work<T>(
        &mut self,
        turn: impl Future<Output = T>,
        cancel: &CancellationToken,
    ) -> (T, Option<Stop>) {
        tokio::pin!(turn);
        let mut asked = None;
        loop {
            tokio::select! {
                done = &mut turn => return (done, asked),
                stop = self.next() => {
                    cancel.cancel();
                    asked = asked.max(Some(stop));
                }
            }
        }
    }
}
