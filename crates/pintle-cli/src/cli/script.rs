//! `pintle __script`: runs scripts of hooks, confined, until its pipes close. Not for people.

use std::process::ExitCode;

/// The word that makes this program a worker for scripts.
use pintle_host::SCRIPT_COMMAND;

/// Serves, if this process was started as a worker: before anything else runs in it.
pub(super) fn serve() -> Option<ExitCode> {
    let mut words = std::env::args_os().skip(1);
    let is_worker = words.next().is_some_and(|word| word == SCRIPT_COMMAND) && words.next().is_none();
    is_worker.then(pintle_sandbox::worker_main)
}
