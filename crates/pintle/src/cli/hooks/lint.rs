//! `pintle hooks lint`: everything that is wrong with the configuration, and what is probably wrong with its hooks.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use agent::tools::BUILTIN;
use clap::Args;
use dialects::process::config::ProcessEntry;
use domain::checkpoint::CheckpointKind;
use domain::hook::{Hook, State};
use domain::roster::Roster;

use super::super::{Global, terminal};
use crate::config::{self, Config, Diagnostic, Env, HookKind, LoadOptions, Loaded, LoadedHook, Place};
use crate::error::{CliError, USAGE};
use crate::host::load;
use crate::tool_names::{is_about, meant};

/// Endings of files that are handed to an interpreter: such a word of a command is a file that has to be there.
const SCRIPTS: [&str; 10] = ["py", "js", "mjs", "cjs", "ts", "sh", "rb", "pl", "php", "lua"];

/// Flags of `hooks lint`.
#[derive(Debug, Args)]
pub struct LintArgs {
    /// Print a JSON array
    #[arg(long)]
    json: bool,
}

pub(super) fn run(global: &Global, args: &LintArgs) -> Result<u8, CliError> {
    let (env, loaded) = load(global.config.as_deref(), global.home.as_deref())?;
    let found = findings(&env, loaded, global.home.as_deref())?;
    let text = if args.json {
        serde_json::to_string_pretty(&found).map_err(|error| CliError::failed(error.to_string()))? + "\n"
    } else {
        found.iter().map(|diagnostic| format!("{diagnostic}\n")).collect()
    };
    terminal::say(&text)?;
    if found.is_empty() && !args.json {
        terminal::note("no mistakes");
    }
    Ok(if found.is_empty() { 0 } else { USAGE })
}

/// Everything that is wrong, file by file.
fn findings(env: &Env, mut loaded: Loaded, home: Option<&Path>) -> Result<Vec<Diagnostic>, CliError> {
    let mut found = loaded.diagnostics;
    // Nothing is run here, so what nobody accepted yet is looked at as well.
    if !loaded.left_out.is_empty() {
        for file in &loaded.files {
            let options = LoadOptions { config: Some(file), home, ..LoadOptions::default() };
            let alone = config::load(env, &options)?;
            let hooks = alone.diagnostics.into_iter().filter(|diagnostic| diagnostic.path.starts_with("hooks"));
            found.extend(hooks);
            adopt(&mut loaded.config, alone.config);
        }
    }
    found.extend(loaded.config.hooks.iter().flat_map(|hook| suspicions(env, hook)));
    found.extend(shadows(&loaded.config));
    found.sort_by(|a, b| (&a.place, &a.path, &a.message).cmp(&(&b.place, &b.path, &b.message)));
    found.dedup();
    Ok(found)
}

/// Puts hooks of a file that was read by itself in the place of those that are idle because nobody accepted it.
fn adopt(config: &mut Config, alone: Config) {
    let mut alone: BTreeMap<String, LoadedHook> =
        alone.hooks.into_iter().map(|loaded| (loaded.hook.origin.clone(), loaded)).collect();
    for loaded in config.hooks.iter_mut().filter(|loaded| loaded.hook.state == State::Untrusted) {
        if let Some(read) = alone.remove(&loaded.hook.origin) {
            *loaded = read;
        }
    }
}

/// What is probably wrong with a hook that is well-formed.
fn suspicions(env: &Env, loaded: &LoadedHook) -> Vec<Diagnostic> {
    let hook = &loaded.hook;
    if hook.state != State::Armed {
        return Vec::new();
    }
    let mut found = Vec::new();
    found.extend(blind_matcher(hook));
    if let HookKind::Process(entry) = &loaded.kind {
        found.extend(missing(env, entry).map(|(key, message)| suspicion(hook, key, message, None)));
    }
    found
}

/// A matcher that says no to every tool there is. A hook that is asked before model calls may bring tools of its own.
fn blind_matcher(hook: &Hook) -> Option<Diagnostic> {
    let matcher = hook.matcher.as_ref()?;
    let brings_tools = hook.stages.get(CheckpointKind::BeforeLlm).is_some();
    if brings_tools || BUILTIN.iter().any(|tool| is_about(hook, tool)) {
        return None;
    }
    let pattern = matcher.pattern();
    let nearest = meant(pattern).map(str::to_owned);
    let mut message = format!("`{pattern}` matches no tool");
    if nearest.is_none() {
        message = format!("{message}; the tools are {}", BUILTIN.join(", "));
    }
    Some(suspicion(hook, "matcher", message, nearest))
}

/// What a command names and is not there.
fn missing(env: &Env, entry: &ProcessEntry) -> Option<(&'static str, String)> {
    if !entry.dir.is_dir() {
        return Some(("dir", format!("the folder {} does not exist", entry.dir.display())));
    }
    let program = entry.argv.first()?;
    if !is_program(env, entry, program) {
        let place =
            if program.contains('/') { "does not exist or is not executable" } else { "was not found through PATH" };
        return Some(("command", format!("the program `{program}` {place}")));
    }
    let is_script = |word: &&String| {
        let ending = Path::new(word.as_str()).extension().and_then(OsStr::to_str);
        !word.starts_with('-') && ending.is_some_and(|ending| SCRIPTS.contains(&ending))
    };
    let gone = entry.argv[1..].iter().find(|word| is_script(word) && !entry.dir.join(word).exists())?;
    Some(("command", format!("the file `{gone}` does not exist in {}", entry.dir.display())))
}

fn is_program(env: &Env, entry: &ProcessEntry, word: &str) -> bool {
    use nix::unistd::{AccessFlags, access};
    let runs = |path: PathBuf| path.is_file() && access(&path, AccessFlags::X_OK).is_ok();
    if word.contains('/') {
        return runs(entry.dir.join(word));
    }
    let own = entry.env.get("PATH").map(OsStr::new);
    let search = own.or_else(|| env.vars.get("PATH").map(AsRef::as_ref)).unwrap_or(OsStr::new("/bin:/usr/bin"));
    std::env::split_paths(search).any(|folder| runs(entry.dir.join(folder).join(word)))
}

/// Pairs of hooks of which the first may keep the second from ever being asked.
fn shadows(config: &Config) -> Vec<Diagnostic> {
    let roster = Roster::new(config.hooks.iter().map(|loaded| loaded.hook.clone()).collect());
    let pairs = roster.shadowed(&BUILTIN);
    let told = pairs.into_iter().map(|(first, later)| {
        let message =
            format!("it may answer for a tool before hook \"{}\", which also matches it, is asked", later.name);
        suspicion(first, "respond", message, None)
    });
    told.collect()
}

fn suspicion(hook: &Hook, key: &str, message: String, nearest: Option<String>) -> Diagnostic {
    let guard = [CheckpointKind::BeforeTool, CheckpointKind::ApproveTool];
    Diagnostic {
        place: place(&hook.origin),
        path: config::diagnostic::dotted(&["hooks", "processes", hook.name.as_str(), key]),
        message,
        nearest,
        guard: guard.iter().any(|kind| hook.stages.get(*kind).is_some_and(|stage| !stage.paired)),
    }
}

/// The place that an origin names: `FILE:LINE:COLUMN`.
fn place(origin: &str) -> Place {
    let mut parts = origin.rsplitn(3, ':');
    let mut number = || parts.next().and_then(|part| part.parse().ok());
    let (column, line) = (number().unwrap_or(1), number().unwrap_or(1));
    Place { file: PathBuf::from(parts.next().unwrap_or(origin)), line, column }
}
