//! Where agents have our hooks in their settings, as far as that can be seen without them.

use std::fs;
use std::path::{Path, PathBuf};

use guard::host::InstallScope;
use guard::{GuardHost, HOSTS, settings};
use host::config::Env;
use pintle_hook::key;
use pintle_hook::start::START_FILE;

use super::entry::{self, HookEntry};
use super::places::GuardPlaces;
use crate::error::CliError;

/// The name of the hook's program.
pub(crate) const HOOK_PROGRAM: &str = "pintle-hook";

/// An installation that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Installed {
    /// Whom it is about.
    pub(crate) scope: &'static str,
    /// The file.
    pub(crate) file: PathBuf,
    /// Why it guards nothing.
    pub(crate) flaw: Option<String>,
}

/// The word for whom an installation is about.
pub(crate) const fn scope_word(scope: InstallScope) -> &'static str {
    match scope {
        InstallScope::User => "user",
        InstallScope::Project => "project",
        InstallScope::ProjectLocal => "local",
        InstallScope::System => "system",
    }
}

/// The file that `path` of the table means here.
pub(crate) fn file_of(path: &str, env: &Env) -> Option<PathBuf> {
    match (path.strip_prefix("~/"), path.strip_prefix("./")) {
        (Some(below), _) => Some(Path::new(env.text("HOME")?).join(below)),
        (None, Some(below)) => Some(env.cwd.join(below)),
        (None, None) => Some(PathBuf::from(path)),
    }
}

/// The program of the hook: it stands beside this one.
pub(crate) fn hook_program() -> std::io::Result<PathBuf> {
    Ok(std::env::current_exe()?.with_file_name(HOOK_PROGRAM))
}

/// The installations of `host` that can be found from here.
pub(crate) fn found(host: &'static GuardHost, env: &Env, places: &GuardPlaces) -> Vec<Installed> {
    let in_file = |scope: InstallScope, path: &str| {
        let file = file_of(path, env)?;
        let text = fs::read_to_string(&file).ok()?;
        let flaw = || flaw(&text, places).or_else(|| differs(host, &text, places)).or_else(|| switched_off(host, env));
        text.contains(HOOK_PROGRAM).then(|| Installed { scope: scope_word(scope), flaw: flaw(), file })
    };
    host.config.places.iter().filter_map(|place| in_file(place.scope, place.path)).collect()
}

/// How much sooner than the host the hook gives up, in seconds.
const MARGIN_S: u32 = 2;

/// What is written into the settings of `host`.
pub(crate) fn entry_of(host: &GuardHost, places: &GuardPlaces, program: PathBuf) -> HookEntry {
    HookEntry {
        program,
        socket: places.socket.clone(),
        key_file: places.key_file(),
        timeout_s: host.deadline.installed_s,
        deadline_ms: u64::from(host.deadline.installed_s.saturating_sub(MARGIN_S)) * 1000,
    }
}

/// How the entries in `text` differ from those that are written today, in anything that the host reads.
fn differs(host: &GuardHost, text: &str, places: &GuardPlaces) -> Option<String> {
    let written = entry::installed(host, text, &entry_of(host, places, hook_program().ok()?));
    let read = |text: &str| serde_json::from_str::<serde_json::Value>(text).map_err(|error| error.to_string());
    match written.and_then(|written| Ok((read(&written)?, read(text)?))) {
        Ok((written, there)) if written == there => None,
        Ok(_) => Some("its entries are not those that `pintle guard install` writes, which puts them right".to_owned()),
        Err(why) => Some(format!("it cannot be read: {why}")),
    }
}

/// The setting that turns the hooks of `host` off here, if one does.
fn switched_off(host: &GuardHost, env: &Env) -> Option<String> {
    host.config.switches.iter().find_map(|switch| {
        let file = file_of(switch.path, env)?;
        let text = fs::read_to_string(&file).ok()?;
        let name = switch.names.join(".");
        match settings::is_off(switch, &text) {
            Ok(false) => None,
            Ok(true) => Some(format!("`{name}` in {} turns hooks off", file.display())),
            Err(why) => Some(format!("whether `{name}` in {} turns hooks off cannot be read: {why}", file.display())),
        }
    })
}

/// Why the hooks that stand in `text` guard nothing.
fn flaw(text: &str, places: &GuardPlaces) -> Option<String> {
    let missing = |what: &str, path: &Path| format!("{what} {} is not there", path.display());
    let program = hook_program().ok()?;
    if !text.contains(&*program.to_string_lossy()) {
        return Some(format!("its entries name another program than {}", program.display()));
    }
    if !program.exists() {
        return Some(missing("the hook's program", &program));
    }
    if !text.contains(&*places.socket.to_string_lossy()) {
        return Some(format!("its entries ask another daemon than that at {}", places.socket.display()));
    }
    if let Err(error) = key::read(&places.key_file()) {
        return Some(format!("the key {} cannot be used: {error}", places.key_file().display()));
    }
    let start = places.folder.join(START_FILE);
    (!start.exists()).then(|| missing("what says how the daemon is started,", &start))
}

/// The agents whose files these commands edit.
const INSTALLED_INTO: [&str; 1] = ["claude"];

/// The host called `id`, or all, of those that hooks are installed into.
///
/// # Errors
/// There is no such host.
pub(crate) fn hosts(id: Option<&str>) -> Result<Vec<&'static GuardHost>, CliError> {
    let all = || HOSTS.iter().filter(|host| INSTALLED_INTO.contains(&host.id));
    let Some(id) = id else { return Ok(all().copied().collect()) };
    all().find(|host| host.id == id).map(|host| vec![*host]).ok_or_else(|| {
        let known: Vec<&str> = all().map(|host| host.id).collect();
        CliError::usage(format!("there is no agent `{id}`")).hint(format!("the agents are {}", known.join(", ")))
    })
}
