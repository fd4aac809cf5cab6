//! `pintle guard doctor`: a harmless call of a real agent, to see whether the guard refuses it.

use std::path::PathBuf;

use clap::Args;
use guard::GuardHost;
use host::config::Env;
use serde_json::json;

use crate::clean::clean;
use crate::cli::session::UNGUARDED;
use crate::cli::{Global, terminal};
use crate::error::CliError;
use crate::guard::installs::{found, hosts};
use crate::guard::places::GuardPlaces;
use crate::guard::proving::{ProofBy, Proved, prove};

/// Flags of `guard doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// The agent
    #[arg(long, value_name = "HOST")]
    host: String,
    /// Run the agent, with its own settings and a model of ours on this machine, and let it make a call that does nothing
    #[arg(long)]
    live: bool,
    /// The program of the agent [default: the one on the path]
    #[arg(long, value_name = "FILE", requires = "live")]
    program: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(global: &Global, args: &DoctorArgs) -> Result<u8, CliError> {
    let host = hosts(Some(&args.host))?[0];
    let env = Env::of_process()?;
    let places = GuardPlaces::of(&env, global.home.as_deref(), None)?;
    if args.live {
        return terminal::runtime()?.block_on(prove_live(args, host, &places));
    }
    let installed = found(host, &env, &places);
    let (word, detail) = match (installed.is_empty(), installed.iter().find_map(|it| it.flaw.clone())) {
        (true, _) => ("unguarded", format!("nothing is installed: `pintle guard install --host {}`", host.id)),
        (false, Some(flaw)) => ("broken", flaw),
        (false, None) => (
            ARMED,
            "its entries are in place, and nothing that can be read turns them off; --live proves it".to_owned(),
        ),
    };
    let is_armed = word == ARMED;
    let text = match args.json {
        true => format!("{}\n", json!({"host": host.id, "armed": is_armed, "proven": false, "detail": detail})),
        false => format!("{}  {word}: {}\n", host.id, clean(&detail)),
    };
    terminal::say(&text)?;
    Ok(if is_armed { 0 } else { UNGUARDED })
}

/// The word for a host whose entries are in place.
const ARMED: &str = "armed";

async fn prove_live(args: &DoctorArgs, host: &'static GuardHost, places: &GuardPlaces) -> Result<u8, CliError> {
    let program = args.program.clone().unwrap_or_else(|| PathBuf::from(host.id));
    let Proved { is_proven, word, detail } = prove(host, &program, (places, ProofBy::Person)).await?;
    let text = match args.json {
        true => format!("{}\n", json!({"host": host.id, "proven": is_proven, "detail": detail})),
        false => format!("{}  {word}: {}\n", host.id, clean(&detail)),
    };
    terminal::say(&text)?;
    Ok(if is_proven { 0 } else { UNGUARDED })
}
