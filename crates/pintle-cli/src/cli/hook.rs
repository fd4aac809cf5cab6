//! `pintle hook`: the client of the guard, for entries that somebody writes by hand.

use std::time::{Duration, Instant};

use clap::Args;
use pintle_guard::GuardHost;
use pintle_guard::host::MARGIN_S;
use pintle_hook::options::{AskedDaemon, Options};
use pintle_hook::{account, client};
use pintle_host::config::Env;
use serde_json::Value;

use super::Global;
use crate::error::CliError;
use crate::guard::places::GuardPlaces;

/// Flags of `hook`.
#[derive(Debug, Args)]
pub struct HookArgs {
    /// The agent that starts it, by its name in `guard status`
    #[arg(long)]
    host: String,
    /// The agent's name of the event; needed where what it says does not name it
    #[arg(long)]
    event: Option<String>,
}

/// Answers an agent as `pintle-hook` does, and ends the process: with the same bytes, whatever goes wrong.
pub(super) fn run(global: &Global, args: HookArgs) -> Result<u8, CliError> {
    let began = Instant::now();
    let Some(host) = pintle_guard::host(&args.host) else {
        client::wrong_use(&format!("there is no agent `{}`", args.host));
    };
    let deadline = deadline(host);
    let (event, payload) = match args.event {
        Some(event) => (event, None),
        None => match client::said(began, deadline) {
            Ok(payload) => (named(&payload), Some(payload)),
            Err(error) => client::wrong_use(&error.to_string()),
        },
    };
    let daemon = daemon_of(global).unwrap_or_else(|error| client::wrong_use(&error.message));
    let options = Options { host: args.host, event, daemon, deadline, allows_away: false };
    client::run(options, payload, began)
}

/// The daemon of the home that every command has here, where it was started last; an installation starts it, too. A
/// project's settings can set the environment of a hook: where the account has a guard in its own home folder, only
/// `--home` names another one.
fn daemon_of(global: &Global) -> Result<AskedDaemon, CliError> {
    if global.home.is_none() && account::is_set_up() {
        return Ok(AskedDaemon::Account);
    }
    let places = GuardPlaces::of(&Env::of_process()?, global.home.as_deref(), None)?;
    let key_file = places.key_file();
    let started = places.start_flags().socket;
    // Nothing says yet how it is started. That of the account can do without; of another home nothing is taken from the
    // surroundings of a hook, since a project's settings can set them.
    if started.is_none() && account::key_file().as_ref() == Some(&key_file) {
        return Ok(AskedDaemon::Account);
    }
    Ok(AskedDaemon::Named { socket: started.unwrap_or(places.socket), key_file })
}

/// An entry of somebody else's has the time that the agent gives where nothing is said.
fn deadline(host: &GuardHost) -> Duration {
    let seconds = host.deadline.default_s.unwrap_or(host.deadline.installed_s);
    Duration::from_secs(u64::from(seconds.saturating_sub(MARGIN_S).max(1)))
}

/// The event that the agent says it is.
fn named(payload: &[u8]) -> String {
    let said = serde_json::from_slice::<Value>(payload).ok();
    let event = said.as_ref().and_then(|said| said.get("hook_event_name")).and_then(Value::as_str);
    match event {
        Some(event) => event.to_owned(),
        None => client::wrong_use("`--event` is missing, and what the agent says does not name its event"),
    }
}
