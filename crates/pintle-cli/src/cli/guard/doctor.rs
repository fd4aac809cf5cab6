//! `pintle guard doctor`: a harmless call of a real agent, to see whether the guard refuses it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use clap::Args;
use guard::GuardHost;
use guard::trial::TrialModel;
use host::config::Env;
use jiff::Timestamp;
use pintle_hook::key;
use serde_json::json;
use tokio::process::Command;

use crate::clean::clean;
use crate::cli::session::UNGUARDED;
use crate::cli::{Global, terminal};
use crate::error::CliError;
use crate::guard::canary::{CanaryModel, CanaryResult};
use crate::guard::installs::{found, hosts};
use crate::guard::places::GuardPlaces;
use crate::guard::proofs::{self, GuardProof};
use crate::guard::versions::{self, HostVersion};

/// How long a host has for its two requests: it starts in some seconds on a busy machine.
const RUN_TIME: Duration = Duration::from_secs(120);

/// Longest end of what a host said that is shown, in characters.
const SHOWN_CHARS: usize = 400;

/// What the agent is told.
const PROMPT: &str = "pintle canary: call the tool once, then stop";

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
        return terminal::runtime()?.block_on(prove(args, host, &places));
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

async fn prove(args: &DoctorArgs, host: &'static GuardHost, places: &GuardPlaces) -> Result<u8, CliError> {
    let failed = |error: io::Error| CliError::failed(format!("the canary cannot be made ready: {error}"));
    let nonce: String = key::random::<8>().map_err(failed)?.iter().map(|byte| format!("{byte:02x}")).collect();
    let folder = std::env::temp_dir().join(format!("pintle-canary-{nonce}"));
    fs::create_dir(&folder).map_err(failed)?;
    let folder = folder.canonicalize().map_err(failed)?;
    let program = args.program.clone().unwrap_or_else(|| PathBuf::from(host.id));
    let model = CanaryModel::open(&nonce, host.trial).await.map_err(failed)?;
    let ran = ran((host, &program), &model.url, &folder).await;
    model.close().await;
    fs::remove_dir_all(&folder).map_err(failed)?;
    let said = ran?;
    let result = model.result();
    let is_proven = result.is_proof(&nonce, &host.trial, proofs::was_heard(places, &nonce));
    let version = match versions::look(&program, host.versions).await {
        HostVersion::Known(version) | HostVersion::Unproven(version) => version,
        HostVersion::Unsaid(_) => "an unknown version".to_owned(),
    };
    if places.folder.exists() {
        let proof = is_proven.then(|| GuardProof { version, at: Timestamp::now() });
        proofs::keep(places, host.id, proof).map_err(failed)?;
    }
    let (word, detail) = words(&result, is_proven, &said);
    let text = match args.json {
        true => format!("{}\n", json!({"host": host.id, "proven": is_proven, "detail": detail})),
        false => format!("{}  {word}: {}\n", host.id, clean(&detail)),
    };
    terminal::say(&text)?;
    Ok(if is_proven { 0 } else { UNGUARDED })
}

/// Runs the host until its turn is over; what it said at last.
async fn ran((host, program): (&GuardHost, &Path), url: &str, folder: &Path) -> Result<String, CliError> {
    let failed = |error: io::Error| CliError::failed(format!("the canary cannot be made ready: {error}"));
    let text = folder.to_str().ok_or_else(|| CliError::failed(format!("{} is not UTF-8", folder.display())))?;
    let run = (host.trial.run)(&TrialModel { url, folder: text, prompt: PROMPT });
    for (name, text) in &run.files {
        let file = folder.join(name);
        fs::create_dir_all(file.parent().unwrap_or(folder)).and_then(|()| fs::write(&file, text)).map_err(failed)?;
    }
    let mut command = Command::new(program);
    command.args(&run.args).envs(run.env).current_dir(folder);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let child = command.spawn().map_err(|error| {
        CliError::usage(format!("{} cannot be started: {error}", program.display())).hint("name it with --program FILE")
    })?;
    match tokio::time::timeout(RUN_TIME, child.wait_with_output()).await {
        Ok(Ok(output)) => {
            let said = [output.stdout, output.stderr].concat();
            Ok(String::from_utf8_lossy(&said).trim().to_owned())
        }
        Ok(Err(error)) => Err(CliError::failed(format!("{} cannot be waited for: {error}", program.display()))),
        Err(_) => Ok(format!("it did not end within {} s", RUN_TIME.as_secs())),
    }
}

/// How it stands, in a word and more.
fn words(result: &CanaryResult, is_proven: bool, said: &str) -> (&'static str, String) {
    let shown: String = said.chars().take(SHOWN_CHARS).collect();
    match (is_proven, &result.result) {
        (true, _) => ("proven", "its call came past the guard and was refused".into()),
        (false, Some(result)) => {
            let result: String = result.chars().take(SHOWN_CHARS).collect();
            ("open", format!("its call was not refused by the guard; the agent says of it: {result}"))
        }
        (false, None) if result.called => {
            ("open", format!("its call was not refused by the guard, and ended its turn; it said: {shown}"))
        }
        (false, None) if result.asked => ("unproven", format!("it made no call; it said: {shown}")),
        (false, None) => ("unproven", format!("it did not ask the model of the canary; it said: {shown}")),
    }
}
