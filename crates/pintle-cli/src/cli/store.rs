//! `pintle store`: what a person does about a store that is not the one that was known.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use pintle_domain::anchor::Anchor;
use pintle_domain::shown_url::shown_url;
use pintle_domain::store::Actor;
use pintle_host::config::{Config, Env};
use pintle_host::host::load;
use pintle_host::host_rules::{anchor, in_doubt, open_known_store};
use pintle_store::{AnchorFile, Durability, StoreKeys};

use super::audit::failed;
use super::{Global, terminal};
use crate::clean::prose;
use crate::error::CliError;
use crate::operator;

/// The files that belong to a file of SQLite.
const COMPANIONS: [&str; 3] = ["", "-wal", "-shm"];

/// Bytes that tell an export from a copy.
const START_BYTES: u64 = 64;

/// What can be done with the store.
#[derive(Debug, Subcommand)]
pub enum StoreCommand {
    /// Put a copy of the store in its place; what stands there is moved aside
    Restore(RestoreArgs),
    /// Take the store as it is found: older, or with rules that something other than Pintle changed
    Accept,
    /// Go on without the guards of a store that is gone
    Forget(ForgetArgs),
}

/// Flags of `store restore`.
#[derive(Debug, Args)]
pub struct RestoreArgs {
    /// A copy of the file of the store
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// Flags of `store forget`.
#[derive(Debug, Args)]
pub struct ForgetArgs {
    /// With the number of guards that are lost
    #[arg(value_name = "--yes-i-lose-N-guards", allow_hyphen_values = true)]
    confirmed: Option<String>,
}

pub(super) fn run(global: &Global, command: StoreCommand) -> Result<u8, CliError> {
    operator::require()?;
    let (env, loaded) = load(global.config.as_deref(), global.home.as_deref())?;
    let config = &loaded.config;
    let Some(known) = anchor(config) else {
        return Err(CliError::usage("there is no store that is kept, so nothing of it is lost"));
    };
    match command {
        StoreCommand::Restore(args) => restore((config, &env), &known, &args.file),
        StoreCommand::Accept => accept(config, &env),
        StoreCommand::Forget(args) => forget((config, &env), &known, args.confirmed.as_deref()),
    }
}

fn accept(config: &Config, env: &Env) -> Result<u8, CliError> {
    let store = open_known_store(config, env)?;
    let by = Actor { name: "cli".into(), at: jiff::Timestamp::now(), reason: String::new() };
    let taken = store.accept(&by).map_err(failed)?;
    if taken.is_empty() {
        terminal::note("the store is as it was left");
    }
    taken.iter().try_for_each(|line| terminal::tell(&format!("accepted: {}\n", prose(line))))?;
    Ok(0)
}

fn forget((config, env): (&Config, &Env), known: &AnchorFile, confirmed: Option<&str>) -> Result<u8, CliError> {
    // A file that says nothing any more holds nothing back either.
    let guards = known.read().unwrap_or_default().as_ref().map_or(0, |known| known.guards().count());
    let wanted = format!("--yes-i-lose-{guards}-guards");
    if confirmed != Some(wanted.as_str()) {
        let error = CliError::usage(format!("{guards} guards were known in this store, and are no longer missed then"));
        return Err(error.hint(format!("`pintle store forget {wanted}`")));
    }
    if open_known_store(config, env).is_err()
        && let Some(file) = sqlite_file(config)
    {
        let aside = move_aside(&file)?;
        terminal::note(&format!("what cannot be opened is now {}", aside.display()));
    }
    known.forget().map_err(failed)?;
    // What stands there now is known from now on.
    open_known_store(config, env)?.rules().map_err(failed)?;
    terminal::tell(&format!("forgotten: {guards} guards\n"))?;
    Ok(0)
}

fn restore((config, env): (&Config, &Env), known: &AnchorFile, copy: &Path) -> Result<u8, CliError> {
    let Some(file) = sqlite_file(config) else {
        return Err(CliError::usage("the store is a database of a server")
            .hint("restore it with the server's own tools, then `pintle store accept` if the copy is older"));
    };
    no_export(copy)?;
    let cannot = |what: &Path, error: std::io::Error| CliError::failed(format!("{}: {error}", what.display()));
    let draft = beside(&file, ".restored");
    fs::copy(copy, &draft).map_err(|error| cannot(copy, error))?;
    let (from, to) = (beside(copy, "-wal"), beside(&draft, "-wal"));
    if from.is_file() {
        fs::copy(&from, &to).map_err(|error| cannot(&from, error))?;
    }
    let checked = check(&draft, config, known);
    if let Err(error) = checked {
        COMPANIONS.iter().for_each(|companion| drop(fs::remove_file(beside(&draft, companion))));
        return Err(error);
    }
    if COMPANIONS.iter().any(|companion| beside(&file, companion).exists()) {
        let aside = move_aside(&file)?;
        terminal::note(&format!("what stood there is now {}", aside.display()));
    }
    for companion in COMPANIONS {
        let (from, to) = (beside(&draft, companion), beside(&file, companion));
        if from.exists() {
            fs::rename(&from, &to).map_err(|error| cannot(&from, error))?;
        }
    }
    let rules = open_known_store(config, env)?.rules().map_err(failed)?;
    in_doubt(&rules).iter().for_each(|line| terminal::note(&prose(line)));
    terminal::tell(&format!("restored: {} from {}\n", file.display(), copy.display()))?;
    Ok(0)
}

/// Refuses an export of the audit record, of which no rule can be put together again.
fn no_export(file: &Path) -> Result<(), CliError> {
    let mut start = Vec::new();
    let read = File::open(file).and_then(|file| file.take(START_BYTES).read_to_end(&mut start));
    read.map_err(|error| CliError::failed(format!("{}: {error}", file.display())))?;
    if !start.trim_ascii_start().starts_with(b"{") {
        return Ok(());
    }
    let what = "looks like an export of the audit record, which restores no rule: it has what was changed of each, without \
                secrets and without when it was made";
    Err(CliError::usage(format!("{} {what}", file.display())).hint(
        "a copy of the store's file, or of its database, brings rules back; without one, `pintle store forget`, and add them \
         again",
    ))
}

/// Whether the copy is one of the store that was known.
fn check(draft: &Path, config: &Config, known: &AnchorFile) -> Result<(), CliError> {
    let url = format!("sqlite://{}", draft.display());
    let store = pintle_store::open_with(&url, &config.home, Durability::Commit, StoreKeys::default());
    let store = store.map_err(|error| CliError::failed(prose(&error.to_string())))?;
    let rules = store.rules().map_err(failed)?;
    let Some(known) = known.read().unwrap_or_default() else { return Ok(()) };
    let missing = missing(&known, |id| rules.hooks.iter().any(|rule| rule.id.as_str() == id));
    if missing == 0 || missing < known.guards().count() {
        return Ok(());
    }
    Err(CliError::failed(format!("none of the {missing} guards that are lost is in this copy")))
}

fn missing(known: &Anchor, has: impl Fn(&str) -> bool) -> usize {
    known.rules.iter().filter(|(id, rule)| rule.is_guard() && !has(id.as_str())).count()
}

/// The store of `config` for people: its file, or its address without a password.
pub(in crate::cli) fn shown_store(config: &Config) -> String {
    sqlite_file(config).map_or_else(|| shown_url(&config.store_url), |file| file.display().to_string())
}

/// The file of the store, if it is one.
fn sqlite_file(config: &Config) -> Option<PathBuf> {
    config.store_url.strip_prefix("sqlite://").map(|file| config.home.join(file))
}

fn beside(file: &Path, ending: &str) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

/// Gives the file and its companions another name, and says which.
fn move_aside(file: &Path) -> Result<PathBuf, CliError> {
    let aside = beside(file, &format!(".before-{}", jiff::Timestamp::now().as_second()));
    for companion in COMPANIONS {
        let from = beside(file, companion);
        if from.exists() {
            let to = beside(&aside, companion);
            fs::rename(&from, &to).map_err(|error| CliError::failed(format!("{}: {error}", from.display())))?;
        }
    }
    Ok(aside)
}
