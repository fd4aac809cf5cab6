//! Proves that an agent's calls reach the guard: runs it against a model of ours that wants one harmless call.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use jiff::Timestamp;
use pintle_guard::GuardHost;
use pintle_guard::trial::{TrialModel, TrialRun};
use pintle_hook::key;
use pintle_host::config::Env;
use pintle_process::child::{Child, Launch};
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;

use super::canary::{CanaryModel, CanaryResult};
use super::places::GuardPlaces;
use super::proofs::{self, GuardProof};
use super::versions::{self, HostVersion};
use crate::error::CliError;

/// How long a host has for its two requests: it starts in some seconds on a busy machine.
const RUN_TIME: Duration = Duration::from_secs(120);

/// Longest end of what a host said that is shown, in characters.
const SHOWN_CHARS: usize = 400;

/// Most bytes of what a host says that are kept.
const MAX_SAID_BYTES: u64 = 64 << 10;

/// What the agent is told.
const PROMPT: &str = "pintle canary: call the tool once, then stop";

/// What the name of a folder begins with in which a host is tried.
const FOLDER: &str = "pintle-canary-";

/// How many random bytes stand behind that, in hexadecimal.
const NONCE_BYTES: usize = 8;

/// Who wants a proof.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ProofBy<'a> {
    /// A person, as they would start the agent. A daemon that its hooks start stays.
    Person,
    /// The daemon, in its surroundings, which are not those of its process where it is part of a gateway. Whatever the
    /// agent starts ends with it.
    Daemon(&'a Env),
}

/// How an agent stands after it was tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Proved {
    /// Whether its call was refused by the guard.
    pub(crate) is_proven: bool,
    /// That in a word.
    pub(crate) word: &'static str,
    /// That in more.
    pub(crate) detail: String,
}

/// Whether somebody is tried in `folder`.
pub(crate) fn is_trial(folder: &Path) -> bool {
    let name = folder.file_name().and_then(|name| name.to_str());
    let nonce = name.and_then(|name| name.strip_prefix(FOLDER));
    nonce.is_some_and(|nonce| nonce.len() == 2 * NONCE_BYTES && nonce.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

/// Whether `prompt` is the one of somebody who is tried in `folder`: it asks for nothing but a call that is refused.
pub(crate) fn is_trial_prompt(folder: &Path, prompt: &str) -> bool {
    is_trial(folder) && prompt.contains(PROMPT) && prompt.len() < 2 * PROMPT.len()
}

/// Tries `program`, which is `host`, and keeps what came of it.
///
/// # Errors
/// Nothing can be made ready, or the program cannot be started.
pub(crate) async fn prove(
    host: &'static GuardHost,
    program: &Path,
    (places, by): (&GuardPlaces, ProofBy<'_>),
) -> Result<Proved, CliError> {
    let nonce: String =
        key::random::<NONCE_BYTES>().map_err(unready)?.iter().map(|byte| format!("{byte:02x}")).collect();
    let folder = TrialFolder::make(&nonce).map_err(unready)?;
    let model = CanaryModel::open(&nonce, host.trial).await.map_err(unready)?;
    let ran = ran((host, program), &model.url, (&folder.0, by)).await;
    model.close().await;
    drop(folder);
    let said = ran?;
    let result = model.result();
    let is_proven = result.is_proof(&nonce, &host.trial, proofs::was_heard(places, &nonce));
    let version = match versions::look(program, host.versions).await {
        HostVersion::Known(version) | HostVersion::Unproven(version) => version,
        HostVersion::Unsaid(_) => "an unknown version".to_owned(),
    };
    if places.folder.exists() {
        let proof = is_proven.then(|| GuardProof { version, at: Timestamp::now() });
        proofs::keep(places, host.id, proof).map_err(unready)?;
    }
    let (word, detail) = words(&result, is_proven, &said);
    Ok(Proved { is_proven, word, detail })
}

fn unready(error: io::Error) -> CliError {
    CliError::failed(format!("the canary cannot be made ready: {error}"))
}

/// An empty folder, gone with this.
struct TrialFolder(PathBuf);

impl TrialFolder {
    fn make(nonce: &str) -> io::Result<Self> {
        let folder = std::env::temp_dir().join(format!("{FOLDER}{nonce}"));
        fs::create_dir(&folder)?;
        Ok(Self(folder.canonicalize()?))
    }
}

impl Drop for TrialFolder {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            tracing::warn!("{} cannot be removed: {error}", self.0.display());
        }
    }
}

/// Runs the host until its turn is over; what it said at last.
async fn ran(
    (host, program): (&GuardHost, &Path),
    url: &str,
    (folder, by): (&Path, ProofBy<'_>),
) -> Result<String, CliError> {
    let text = folder.to_str().ok_or_else(|| CliError::failed(format!("{} is not UTF-8", folder.display())))?;
    let run = (host.trial.run)(&TrialModel { url, folder: text, prompt: PROMPT });
    for (name, text) in &run.files {
        let file = folder.join(name);
        fs::create_dir_all(file.parent().unwrap_or(folder)).and_then(|()| fs::write(&file, text)).map_err(unready)?;
    }
    match by {
        ProofBy::Person => beside(program, run, folder).await,
        ProofBy::Daemon(env) => apart(program, run, (folder, env)).await,
    }
}

fn not_started(program: &Path, why: &str) -> CliError {
    CliError::usage(format!("{} cannot be started: {why}", program.display())).hint("name it with --program FILE")
}

fn late() -> String {
    format!("it did not end within {} s", RUN_TIME.as_secs())
}

/// As a person starts it.
async fn beside(program: &Path, run: TrialRun, folder: &Path) -> Result<String, CliError> {
    let mut command = Command::new(program);
    command.args(&run.args).envs(run.env).current_dir(folder);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let child = command.spawn().map_err(|error| not_started(program, &error.to_string()))?;
    match tokio::time::timeout(RUN_TIME, child.wait_with_output()).await {
        Ok(Ok(output)) => {
            let said = [output.stdout, output.stderr].concat();
            Ok(String::from_utf8_lossy(&said).trim().to_owned())
        }
        Ok(Err(error)) => Err(CliError::failed(format!("{} cannot be waited for: {error}", program.display()))),
        Err(_) => Ok(late()),
    }
}

/// In a session of its own, without a terminal, and with an end of everything that it starts.
async fn apart(program: &Path, run: TrialRun, (folder, env): (&Path, &Env)) -> Result<String, CliError> {
    let own = env.vars.iter().map(|(name, value)| (OsString::from(name), value.clone()));
    let mut vars: BTreeMap<OsString, OsString> = own.collect();
    vars.extend(run.env.into_iter().map(|(name, value)| (name.into(), value.into())));
    let words = run.args.into_iter().map(OsString::from);
    let launch = Launch {
        argv: std::iter::once(program.as_os_str().to_owned()).chain(words).collect(),
        dir: Some(folder.to_owned()),
        vars: vars.into_iter().collect(),
    };
    let (mut child, output) = Child::start_apart(&launch).await.map_err(|why| not_started(program, &why))?;
    let mut said = Vec::new();
    let mut output = output.take(MAX_SAID_BYTES);
    let read = async {
        // What it started may hold the pipe for longer than it runs; who says too much waits for nobody.
        let all = async {
            output.read_to_end(&mut said).await.ok();
            tokio::io::copy(output.get_mut(), &mut tokio::io::sink()).await.ok();
            std::future::pending::<()>().await;
        };
        tokio::select! {
            () = child.ended() => {}
            () = all => {}
        }
    };
    let is_late = tokio::time::timeout(RUN_TIME, read).await.is_err();
    child.end_all().await;
    Ok(if is_late { late() } else { String::from_utf8_lossy(&said).trim().to_owned() })
}

/// How it stands, in a word and more.
fn words(result: &CanaryResult, is_proven: bool, said: &str) -> (&'static str, String) {
    let shown: String = said.chars().take(SHOWN_CHARS).collect();
    match (is_proven, &result.result) {
        (true, _) => ("proven", "its call reached the guard and was refused".into()),
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_prompt_of_a_trial_in_its_folder_is_one() {
        let is = |folder: &str, prompt: &str| is_trial_prompt(Path::new(folder), prompt);
        let folder = "/tmp/pintle-canary-0a1b2c3d4e5f6071";
        assert!(is(folder, PROMPT) && is(folder, &format!("\"{PROMPT}\"")));
        assert!(!is("/w", PROMPT) && !is(&format!("{folder}/x"), PROMPT));
        assert!(!is("/w/pintle-canary-docs", PROMPT) && !is(&format!("{folder}0"), PROMPT));
        assert!(!is(folder, "do it") && !is(folder, &PROMPT.repeat(3)));
    }
}
