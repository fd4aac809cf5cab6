//! The hook door of a gateway: where this account has a guard and no daemon guards yet, the hooks of its coding agents ask
//! this process. Nothing else is shared: configurations, stores and surroundings are those of the daemon that a hook would
//! start.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use pintle_host::config::Env;
use tokio_util::sync::CancellationToken;

use crate::clean::{clean, prose};
use crate::cli::{Global, terminal};
use crate::error::CliError;
use crate::guard::daemon_process::DaemonOf;
use crate::guard::folders::Folders;
use crate::guard::hook_door::HookDoor;
use crate::guard::listening::Listening;
use crate::guard::set_up::SetUpGuard;

/// Opens it, and says so. What keeps it shut keeps no gateway from serving: hooks start a daemon of their own then.
pub(super) fn open(global: &Global) -> Option<HookDoor> {
    let guard = SetUpGuard::find(&Env::of_process().ok()?, global.home.as_deref())?;
    match opened(&guard) {
        Ok(door) => {
            terminal::note(&format!("hook door: {}", clean(&guard.places.socket.display().to_string())));
            Some(door)
        }
        Err(error) if guard.places.is_guarded() => {
            terminal::note(&format!("hook door: {}", prose(&error.message)));
            None
        }
        Err(error) => {
            let why = prose(&error.message);
            terminal::warn(&format!("the hook door stays shut, and hooks start a daemon of their own: {why}"));
            None
        }
    }
}

fn opened(SetUpGuard { places, flags, env }: &SetUpGuard) -> Result<HookDoor, CliError> {
    let listening = Listening::open(places, DaemonOf::Serve)?;
    let folders = Arc::new(Folders::new(env.clone(), flags.config.clone(), flags.home.clone()));
    HookDoor::open(listening, (env.clone(), folders), false)
}

/// Answers hooks until `stop`; what they asked is answered then, unless `hurry` ends that, too. A fault here ends no
/// gateway.
pub(super) async fn serve(door: Option<HookDoor>, stop: &CancellationToken, hurry: &CancellationToken) {
    let Some(door) = door else { return };
    let served = AssertUnwindSafe(door.serve(stop, None)).catch_unwind();
    let is_whole = tokio::select! {
        served = served => served.is_ok(),
        () = hurry.cancelled() => return,
    };
    if !is_whole || !stop.is_cancelled() {
        terminal::warn("the hook door is shut: the next hook starts a daemon of its own");
    }
}
