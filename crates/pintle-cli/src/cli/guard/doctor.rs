//! `pintle guard doctor`: a harmless call of a real agent, to see whether the guard refuses it.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use clap::Args;
use pintle_hook::key;
use serde_json::json;
use tokio::process::Command;

use crate::clean::clean;
use crate::cli::session::UNGUARDED;
use crate::cli::terminal;
use crate::error::CliError;
use crate::guard::canary::{CanaryModel, CanaryResult};

/// How long a host has for its two requests: it starts in some seconds on a busy machine.
const RUN_TIME: Duration = Duration::from_secs(120);

/// Longest end of what a host said that is shown, in characters.
const SHOWN_CHARS: usize = 400;

/// Variables that keep Claude Code from asking anybody but the model of the canary.
const CLAUDE_QUIET: [(&str, &str); 6] = [
    ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
    ("DISABLE_AUTOUPDATER", "1"),
    ("DISABLE_BUG_COMMAND", "1"),
    ("DISABLE_ERROR_REPORTING", "1"),
    ("DISABLE_TELEMETRY", "1"),
    ("ANTHROPIC_API_KEY", "pintle-canary"),
];

/// Flags of `guard doctor`.
#[derive(Debug, Args)]
pub struct DoctorArgs {
    /// The agent
    #[arg(long, value_name = "HOST", value_parser = ["claude"])]
    host: String,
    /// Run the agent, with its own settings and a model of ours on this machine, and let it make a call that does nothing
    #[arg(long, required = true)]
    live: bool,
    /// The program of the agent [default: the one on the path]
    #[arg(long, value_name = "FILE")]
    program: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &DoctorArgs) -> Result<u8, CliError> {
    terminal::runtime()?.block_on(prove(args))
}

async fn prove(args: &DoctorArgs) -> Result<u8, CliError> {
    let failed = |error: std::io::Error| CliError::failed(format!("the canary cannot be made ready: {error}"));
    let nonce: String = key::random::<8>().map_err(failed)?.iter().map(|byte| format!("{byte:02x}")).collect();
    let folder = std::env::temp_dir().join(format!("pintle-canary-{nonce}"));
    std::fs::create_dir(&folder).map_err(failed)?;
    let model = CanaryModel::open(&nonce).await.map_err(failed)?;
    let ran = ran(args, &model.url, &folder).await;
    model.close().await;
    std::fs::remove_dir_all(&folder).map_err(failed)?;
    let said = ran?;
    let result = model.result();
    let is_proven = result.is_proof(&nonce);
    let (word, detail) = words(&result, is_proven, &said);
    let text = match args.json {
        true => format!("{}\n", json!({"host": args.host, "proven": is_proven, "detail": detail})),
        false => format!("{}  {word}: {}\n", args.host, clean(&detail)),
    };
    terminal::say(&text)?;
    Ok(if is_proven { 0 } else { UNGUARDED })
}

/// Runs the host until its turn is over; what it said at last.
async fn ran(args: &DoctorArgs, url: &str, folder: &std::path::Path) -> Result<String, CliError> {
    let program = args.program.clone().unwrap_or_else(|| PathBuf::from(&args.host));
    let mut command = Command::new(&program);
    command.args(["-p", "pintle canary: call the tool once, then stop"]).current_dir(folder);
    command.env("ANTHROPIC_BASE_URL", url).envs(CLAUDE_QUIET);
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
        (false, None) if result.asked => ("unproven", format!("it made no call; it said: {shown}")),
        (false, None) => ("unproven", format!("it did not ask the model of the canary; it said: {shown}")),
    }
}
