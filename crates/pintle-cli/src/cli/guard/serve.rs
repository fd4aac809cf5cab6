//! `pintle guard serve`: the daemon.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use nix::sys::signal::SigSet;
use pintle_host::config::Env;
use tokio_util::sync::CancellationToken;

use crate::cli::stops::Stops;
use crate::cli::{Global, terminal};
use crate::error::CliError;
use crate::guard::daemon_process::DaemonOf;
use crate::guard::folders::Folders;
use crate::guard::heartbeat;
use crate::guard::hook_door::HookDoor;
use crate::guard::listening::Listening;
use crate::guard::model_door::{self, OpenDoor};
use crate::guard::places::GuardPlaces;
use crate::operator;

/// How long a daemon goes on when no hook asks, where the next one starts it again: through its start file, or through
/// the socket of a service manager.
const IDLE: Duration = Duration::from_secs(30 * 60);

/// Flags of `guard serve`.
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Where to listen [default: guard.sock in $XDG_RUNTIME_DIR/pintle, or in the home folder]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Where agents ask their model through the door, such as 127.0.0.1:8787; only addresses of this machine
    #[arg(long, value_name = "ADDR")]
    http: Option<SocketAddr>,
    /// Let agents change their own settings and Pintle's configuration while this daemon runs, such as for work on an
    /// installation; each time is in the record
    #[arg(long, conflicts_with = "by_hook")]
    allow_self_edit: bool,
    /// A hook started it: it ends when none asks for long
    #[arg(long, hide = true)]
    by_hook: bool,
}

pub(super) fn run(global: &Global, args: &ServeArgs) -> Result<u8, CliError> {
    if args.by_hook {
        // The hook catches signals by itself, and what it starts takes that over.
        if let Err(error) = SigSet::empty().thread_set_mask() {
            tracing::warn!(%error, "signals may not end the daemon");
        }
        // Whoever ends the session or the terminal of a host does not mean the daemon.
        if let Err(error) = nix::unistd::setsid() {
            tracing::debug!(%error, "the session stays that of the hook");
        }
    }
    let runtime = terminal::runtime()?;
    runtime.block_on(serve(global, args))
}

async fn serve(global: &Global, args: &ServeArgs) -> Result<u8, CliError> {
    args.http.map_or(Ok(()), model_door::check)?;
    if args.allow_self_edit {
        // Only a person lifts it: who is below an agent would lift it for that.
        operator::refuse_agents()?;
    }
    let env = Env::of_process()?;
    let mut stops = Stops::listen(false)?;
    let places = GuardPlaces::of(&env, global.home.as_deref(), args.socket.as_deref())?;
    let listening = Listening::open(&places, DaemonOf::GuardServe)?;
    let flags = [("--config", global.config.as_deref()), ("--home", global.home.as_deref())];
    places.write_start(&env, &flags).map_err(|error| {
        CliError::failed(format!(
            "how hooks start the daemon cannot be written to {}: {error}",
            places.folder.display()
        ))
    })?;
    let home = env.text("HOME").unwrap_or("/").to_owned();
    let folders = Arc::new(Folders::new(env.clone(), global.config.clone(), global.home.clone()));
    let door = match args.http {
        Some(address) => Some(OpenDoor::open(address, folders.clone(), (env.cwd.clone(), home)).await?),
        None => None,
    };
    let is_started_again = (args.by_hook || listening.is_handed_over) && args.http.is_none();
    let stop = CancellationToken::new();
    heartbeat::watch(folders.clone(), stop.clone())
        .map_err(|error| CliError::failed(format!("the daemon cannot watch itself: {error}")))?;
    let hooks = HookDoor::open(listening, (env, folders), args.allow_self_edit)?;
    if args.allow_self_edit {
        terminal::warn("agents may change their own settings while this runs");
    }
    terminal::note(&format!("guarding at {}", places.socket.display()));
    let door_stop = CancellationToken::new();
    if let Some(door) = &door {
        if let Err(error) = places.mark_model_door(door.address) {
            terminal::warn(&format!("`pintle guard status` cannot be told of the model door: {error}"));
        }
        terminal::note(&format!("model door at http://{}/door", door.address));
    }
    let served = hooks.serve(&stop, is_started_again.then_some(IDLE));
    tokio::pin!(served);
    let work = async {
        let is_idle = tokio::select! {
            () = &mut served => true,
            _ = stops.next() => false,
        };
        door_stop.cancel();
        is_idle
    };
    let doors = async {
        if let Some(door) = door {
            door.serve(door_stop.clone()).await;
        }
    };
    // Answers of the door that are under way have the hooks that they began with: these end after them.
    let (is_idle, ()) = tokio::join!(work, doors);
    stop.cancel();
    if !is_idle {
        served.await;
    }
    Ok(0)
}
