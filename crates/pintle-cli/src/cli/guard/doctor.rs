//! `pintle guard doctor`: a harmless call of a real agent, to see whether the guard refuses it.

use std::path::PathBuf;

use clap::Args;
use pintle_guard::GuardHost;
use pintle_host::config::Env;
use serde_json::json;

use super::config_here::ConfigHere;
use crate::clean::clean;
use crate::cli::session::UNGUARDED;
use crate::cli::{Global, terminal};
use crate::error::CliError;
use crate::guard::installs::{found, found_in_files, is_all, named};
use crate::guard::places::GuardPlaces;
use crate::guard::proving::{ProofBy, Proved, prove};

/// Flags of `guard doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// The agents, with commas between them, or `all` that are under guard
    #[arg(long, value_name = "HOST", value_delimiter = ',', required = true)]
    host: Vec<String>,
    /// Run the agent, with its own settings and a model of ours on this machine, and let it make a call that does nothing
    #[arg(long)]
    live: bool,
    /// The program of the agent [default: the one on the path]
    #[arg(long, value_name = "FILE", requires = "live")]
    program: Option<PathBuf>,
    /// Print JSON, one line for each agent
    #[arg(long)]
    json: bool,
}

pub(super) fn run(global: &Global, args: &DoctorArgs) -> Result<u8, CliError> {
    let env = Env::of_process()?;
    let places = GuardPlaces::of(&env, global.home.as_deref(), None)?;
    let mut wanted = named(&args.host)?;
    if is_all(&args.host) {
        wanted.retain(|&host| !found_in_files(host, &env, &places).is_empty());
        if wanted.is_empty() {
            return Err(CliError::usage("no agent is under guard")
                .hint("`pintle guard install --host all` guards those that are there"));
        }
    }
    if args.program.is_some() && wanted.len() > 1 {
        return Err(CliError::usage(format!(
            "--program names the program of one agent, and --host names {}",
            wanted.len()
        ))
        .hint("try them one by one: --host HOST --program FILE"));
    }
    let here = ConfigHere::load(global, &env);
    let is_only = wanted.len() == 1;
    let mut is_well = true;
    for host in wanted {
        let stands = match args.live {
            true => match terminal::runtime()?.block_on(proven_live(args, host, &places)) {
                // Of several, the others are tried all the same.
                Err(error) if !is_only => Stands { is_well: false, word: "unproven", detail: among(host, error) },
                proven => proven?,
            },
            false => read(host, (&env, &places), &here),
        };
        terminal::say(&stands.text(args, host))?;
        is_well &= stands.is_well;
    }
    Ok(if is_well { 0 } else { UNGUARDED })
}

/// What is said of `host`, one of several, that cannot be tried. What there is to do is about one that is named alone.
fn among(host: &GuardHost, CliError { message, hints, .. }: CliError) -> String {
    let hints = hints.into_iter().map(|hint| format!("with `--host {}` alone, {hint}", host.id));
    std::iter::once(message).chain(hints).collect::<Vec<_>>().join("; ")
}

/// How an agent stands.
struct Stands {
    is_well: bool,
    word: &'static str,
    detail: String,
}

impl Stands {
    fn text(&self, args: &DoctorArgs, host: &GuardHost) -> String {
        let Self { is_well, word, detail } = self;
        match (args.json, args.live) {
            (true, true) => format!("{}\n", json!({"host": host.id, "proven": is_well, "detail": detail})),
            (true, false) => {
                format!("{}\n", json!({"host": host.id, "armed": is_well, "proven": false, "detail": detail}))
            }
            (false, _) => format!("{}  {word}: {}\n", host.id, clean(detail)),
        }
    }
}

/// By what can be read.
fn read(host: &'static GuardHost, (env, places): (&Env, &GuardPlaces), here: &ConfigHere) -> Stands {
    let bad = |word: &'static str, detail: String| Stands { is_well: false, word, detail };
    let installed = found(host, env, places);
    if installed.is_empty() {
        return bad("unguarded", format!("nothing is installed: `pintle guard install --host {}`", host.id));
    }
    if let Some(flaw) = installed.into_iter().find_map(|it| it.flaw) {
        return bad("broken", flaw);
    }
    if let Some(why) = here.unloadable() {
        return bad(
            "refused",
            format!("a daemon that starts lets nothing pass: the configuration does not load: {why}"),
        );
    }
    if let Some(why) = here.refuses(host) {
        return bad("refused", format!("a daemon that starts lets nothing of it pass: {why}"));
    }
    Stands {
        is_well: true,
        word: "armed",
        detail: "its entries are in place, and nothing that can be read turns them off; --live proves it".to_owned(),
    }
}

async fn proven_live(args: &DoctorArgs, host: &'static GuardHost, places: &GuardPlaces) -> Result<Stands, CliError> {
    let program = args.program.clone().unwrap_or_else(|| PathBuf::from(host.id));
    let Proved { is_proven, word, detail } = prove(host, &program, (places, ProofBy::Person)).await?;
    Ok(Stands { is_well: is_proven, word, detail })
}
