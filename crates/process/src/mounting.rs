//! From a configuration to hooks in force.

use std::collections::BTreeSet;
use std::path::Path;

use pintle_dialects::command::FilesBeside;
use pintle_dialects::process::config::raw::RawProcess;
use pintle_dialects::process::config::{Defaults, EntryContext, ProcessEntry};
use pintle_domain::hook::{Hook, HookState};
use pintle_domain::json::Value;

use crate::environment::child_environment;
use crate::hook::{ProcessHook, ProcessSpec, SpawnCheck, unchecked};
use pintle_engine::Engine;
use pintle_engine::Mount;

/// The problems of the entry of a process hook, one line each.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("hook \"{name}\": {}", problems.join("; "))]
pub struct EntryError {
    /// The hook.
    pub name: String,
    /// The problems.
    pub problems: Vec<String>,
}

/// Prepares a process hook for [`Engine::replace`], and starts its child.
pub fn mount(engine: &Engine, hook: Hook, spec: ProcessSpec) -> Mount {
    Mount { hook, handler: ProcessHook::start(spec, engine.tasks().clone(), engine.deadlines().clone()) }
}

/// Prepares a process hook from what would stand under `hooks.processes.NAME` in a configuration.
/// Relative paths start from `folder`, where the files that its command runs have to be there. The child gets this process's environment without secrets.
///
/// # Errors
/// What is wrong with the entry.
pub fn mount_entry(engine: &Engine, name: &str, entry: &Value, folder: &Path) -> Result<Mount, EntryError> {
    let bad = |problems: Vec<String>| EntryError { name: name.to_owned(), problems };
    let raw: RawProcess =
        pintle_domain::json::from_value(entry.clone()).map_err(|error| bad(vec![error.to_string()]))?;
    let around = EntryContext { name, origin: "code", folder, defaults: Defaults::default() };
    if raw.enabled != Some(true) {
        return Ok(Mount::idle(pintle_dialects::process::config::idle(
            &around,
            pintle_domain::hook::Family::Process,
            entry,
            HookState::Disabled,
        )));
    }
    let (hook, entry) = pintle_dialects::process::config::process(&around, &raw)
        .map_err(|problems| bad(problems.iter().map(ToString::to_string).collect()))?;
    let dir = std::path::absolute(&entry.dir).map_err(|error| bad(vec![error.to_string()]))?;
    let files = FilesBeside { folder: &dir, is_file: &|path| path.is_file() };
    let argv = files.place(&entry.argv).map_err(|missing| bad(vec![missing.to_string()]))?.argv;
    let entry = ProcessEntry { argv, ..entry };
    let vars = child_environment(std::env::vars_os(), &BTreeSet::new(), &entry.inherit_env, &entry.env).vars;
    let spec = spec(&hook, &entry, vars, unchecked());
    Ok(mount(engine, hook, spec))
}

/// The specification that the child of `hook` needs to run, with `vars` as its whole environment.
pub fn spec(
    hook: &Hook,
    entry: &ProcessEntry,
    vars: Vec<(std::ffi::OsString, std::ffi::OsString)>,
    before_spawn: SpawnCheck,
) -> ProcessSpec {
    ProcessSpec {
        name: hook.name.clone(),
        argv: entry.argv.clone(),
        dir: Some(entry.dir.clone()),
        env: vars,
        modes: entry.modes.iter().map(|mode| mode.word()).collect(),
        start_timeout: entry.start_timeout,
        max_frame_bytes: entry.max_frame_bytes,
        observer_timeout: entry.observer_timeout,
        strict: entry.strict,
        event_form: entry.events,
        events: hook.events.clone(),
        before_spawn,
    }
}
