//! `pintle hook`: the client of the guard, for entries that somebody writes by hand.

use std::path::Path;
use std::time::{Duration, Instant};

use clap::Args;
use guard::GuardHost;
use guard::host::MARGIN_S;
use host::config::Env;
use pintle_hook::client;
use pintle_hook::options::{AskedDaemon, Options};
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
    let Some(host) = guard::host(&args.host) else {
        client::wrong_use(&format!("there is no agent `{}`", args.host));
    };
    let (event, payload) = match args.event {
        Some(event) => (event, None),
        None => match client::said() {
            Ok(payload) => (named(&payload), Some(payload)),
            Err(error) => client::wrong_use(&error.to_string()),
        },
    };
    let daemon = match global.home.as_deref().map(daemon_of) {
        None => AskedDaemon::Account,
        Some(Ok(daemon)) => daemon,
        Some(Err(error)) => client::wrong_use(&error.message),
    };
    let options = Options { host: args.host, event, daemon, deadline: deadline(host), allows_away: false };
    client::run(options, payload, began)
}

/// The daemon of the home that somebody named.
fn daemon_of(home: &Path) -> Result<AskedDaemon, CliError> {
    let places = GuardPlaces::of(&Env::of_process()?, Some(home), None)?;
    Ok(AskedDaemon::Named { key_file: places.key_file(), socket: places.socket })
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
