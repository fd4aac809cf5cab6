//! `pintle guard stop`: ends the daemon.

use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pintle_host::config::Env;
use pintle_process::ProcessStat;

use crate::cli::{Global, terminal};
use crate::error::CliError;
use crate::guard::daemon_process::{DaemonOf, DaemonProcess, gateway_guards};
use crate::guard::places::GuardPlaces;
use crate::operator;

/// How long a daemon may take to end: calls that are being cleared are answered first.
const END_TIME: Duration = Duration::from_secs(60);

/// How often is looked whether it has.
const LOOK_EVERY: Duration = Duration::from_millis(20);

pub(super) fn run(global: &Global) -> Result<u8, CliError> {
    operator::require()?;
    let env = Env::of_process()?;
    let places = GuardPlaces::of(&env, global.home.as_deref(), None)?;
    if !places.is_guarded() {
        terminal::say("no daemon guards with this home\n")?;
        return Ok(0);
    }
    let unknown = || CliError::failed("which process the daemon is cannot be said: it begins or ends just now");
    let DaemonProcess { pid, since, of } = places.daemon().ok_or_else(unknown)?;
    if of == DaemonOf::Serve {
        let hint = "end that one where it was started; the next hook starts a daemon of its own then";
        return Err(CliError::failed(gateway_guards(pid)).hint(hint));
    }
    let failed = |why: String| CliError::failed(format!("the daemon (pid {pid}) cannot be ended: {why}"));
    let process = i32::try_from(pid).map_err(|error| failed(error.to_string()))?;
    kill(Pid::from_raw(process), Signal::SIGTERM).map_err(|error| failed(error.to_string()))?;
    let began = Instant::now();
    while ProcessStat::of(pid).is_some_and(|stat| stat.since == since && !stat.has_ended) {
        if began.elapsed() > END_TIME {
            return Err(failed(format!("it still works after {} s", END_TIME.as_secs())));
        }
        std::thread::sleep(LOOK_EVERY);
    }
    terminal::say(&format!("the daemon (pid {pid}) has ended; the next hook starts another one\n"))?;
    Ok(0)
}
