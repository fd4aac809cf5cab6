//! Where agents have our hooks in their settings, as far as that can be seen without them.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use guard::host::InstallScope;
use guard::settings::{self, CLIENT, KeptFile};
use guard::{ClientEntry, GuardHost, HOSTS};
use host::config::Env;
use pintle_hook::key;
use pintle_hook::start::START_FILE;
use serde_json::{Value, json};
use uuid::Uuid;

use super::places::GuardPlaces;
use crate::error::CliError;

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
    Ok(std::env::current_exe()?.with_file_name(CLIENT))
}

/// The installations of `host` that can be found from here.
pub(crate) fn found(host: &'static GuardHost, env: &Env, places: &GuardPlaces) -> Vec<Installed> {
    let in_file = |scope: InstallScope, path: &str| {
        let file = file_of(path, env)?;
        let text = fs::read_to_string(&file).ok()?;
        let flaw = || flaw(&text, places).or_else(|| differs(host, &text, places)).or_else(|| switched_off(host, env));
        text.contains(CLIENT).then(|| Installed { scope: scope_word(scope), flaw: flaw(), file })
    };
    host.config.places.iter().filter_map(|place| in_file(place.scope, place.path)).collect()
}

/// What entries of ours say on this machine.
pub(crate) struct OwnEntry {
    program: String,
    socket: String,
    key_file: String,
}

impl OwnEntry {
    /// # Errors
    /// A path is not UTF-8, which settings have to be.
    pub(crate) fn of(places: &GuardPlaces, program: &Path) -> Result<Self, CliError> {
        let text = |path: &Path| {
            path.to_str().map(str::to_owned).ok_or_else(|| CliError::usage(format!("{} is not UTF-8", path.display())))
        };
        Ok(Self { program: text(program)?, socket: text(&places.socket)?, key_file: text(&places.key_file())? })
    }

    /// What stands in the settings of `host`.
    pub(crate) fn for_host(&self, host: &GuardHost) -> ClientEntry<'_> {
        ClientEntry {
            host: host.id,
            program: &self.program,
            socket: &self.socket,
            key_file: &self.key_file,
            timeout_s: host.deadline.installed_s,
        }
    }
}

/// How the entries in `text` differ from those that are written today, in anything that the host reads.
fn differs(host: &GuardHost, text: &str, places: &GuardPlaces) -> Option<String> {
    let own = OwnEntry::of(places, &hook_program().ok()?).ok()?;
    let read = |text: &str| serde_json::from_str::<Value>(text).map_err(|error| error.to_string());
    let written = settings::install(host, &own.for_host(host), Some(text), None).map_err(|why| why.to_string());
    match written.and_then(|written| Ok((read(&written.text)?, read(text)?))) {
        Ok((written, there)) if written == there => None,
        Ok(_) => Some("its entries are not those that `pintle guard install` writes, which puts them right".to_owned()),
        Err(why) => Some(format!("it cannot be read: {why}")),
    }
}

/// Where it is kept what `file` of `host` was before it was changed.
fn kept_file(places: &GuardPlaces, host: &GuardHost, file: &Path) -> PathBuf {
    let name = Uuid::new_v5(&Uuid::NAMESPACE_URL, file.as_os_str().as_encoded_bytes());
    places.folder.join("kept").join(format!("{}-{name}.json", host.id))
}

/// What the last installation left in `file`, and what was there before.
pub(crate) fn kept(places: &GuardPlaces, host: &GuardHost, file: &Path) -> Option<KeptFile> {
    let bytes = fs::read(kept_file(places, host, file)).ok()?;
    let kept: Value = serde_json::from_slice(&bytes).ok()?;
    let before = kept["before"].as_str().map(str::to_owned);
    Some(KeptFile { before, after: kept["after"].as_str()?.to_owned() })
}

/// Keeps that, for nobody else to read; or forgets it.
///
/// # Errors
/// It cannot be written.
pub(crate) fn write_kept(
    places: &GuardPlaces,
    host: &GuardHost,
    (file, kept): (&Path, Option<&KeptFile>),
) -> io::Result<()> {
    let at = kept_file(places, host, file);
    match kept {
        Some(kept) => {
            fs::create_dir_all(at.parent().unwrap_or(&places.folder))?;
            let text = json!({"file": file, "before": kept.before, "after": kept.after}).to_string();
            let mut made = File::options().write(true).create(true).truncate(true).mode(0o600).open(at)?;
            made.write_all(text.as_bytes())
        }
        None if at.exists() => fs::remove_file(at),
        None => Ok(()),
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
