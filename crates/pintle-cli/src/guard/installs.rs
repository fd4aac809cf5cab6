//! Where agents have our hooks in their settings, and whether those would run.

use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use guard::host::{ConfigForm, ConfigPlace, HookAcceptance, HostSwitch, InstallScope};
use guard::settings::{self, CLIENT, NotEdited, OtherHook};
use guard::{ClientEntry, GuardHost, HOSTS};
use host::config::Env;
use pintle_hook::key;
use pintle_hook::start::START_FILE;

use super::accepted::{self, Acceptance, OwnHooks};
use super::host_files::{file_of, files_of, text_of};
use super::places::GuardPlaces;
use crate::error::CliError;

/// An installation that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Installed {
    /// Whom it is about.
    pub(crate) scope: &'static str,
    /// The file, or the folder of its files.
    pub(crate) file: PathBuf,
    /// Why it guards nothing.
    pub(crate) flaw: Option<String>,
    /// What it does not guard, although nothing is wrong with it.
    pub(crate) limit: Option<&'static str>,
}

/// What an installation for the machine does not guard.
pub(crate) const ONE_ACCOUNT: &str = "it guards the agents of one account, the one that installed it: the entries name \
                                      its socket and its key, and calls of every other account are refused";

/// The word for whom an installation is about.
pub(crate) const fn scope_word(scope: InstallScope) -> &'static str {
    match scope {
        InstallScope::User => "user",
        InstallScope::Project => "project",
        InstallScope::ProjectLocal => "local",
        InstallScope::System => "system",
    }
}

/// The program of the hook: it stands beside this one.
pub(crate) fn hook_program() -> io::Result<PathBuf> {
    Ok(std::env::current_exe()?.with_file_name(CLIENT))
}

/// The installations of `host` that can be found from here.
pub(crate) fn found(host: &'static GuardHost, env: &Env, places: &GuardPlaces) -> Vec<Installed> {
    let looked = |place: &ConfigPlace| Look { host, env, places, asks: true }.at(place);
    host.config.places.iter().filter_map(looked).collect()
}

/// The same, by files alone: a host that keeps elsewhere what somebody accepted is not asked.
pub(crate) fn found_in_files(host: &'static GuardHost, env: &Env, places: &GuardPlaces) -> Vec<Installed> {
    let looked = |place: &ConfigPlace| Look { host, env, places, asks: false }.at(place);
    host.config.places.iter().filter_map(looked).collect()
}

/// What turns the hooks of `host` off for whoever works in the folder of `env`, if something does.
pub(crate) fn switched_off(host: &'static GuardHost, env: &Env, places: &GuardPlaces) -> Option<String> {
    Look { host, env, places, asks: false }.switched_off()
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

/// The variable of the environment that has `host` look for the files of a person elsewhere, if it is set.
pub(crate) fn moved_by(host: &GuardHost, env: &Env) -> Option<&'static str> {
    host.config.moved_by.filter(|name| env.vars.get(*name).is_some_and(|value| !value.is_empty()))
}

/// Looks at the installations of one host.
#[derive(Clone, Copy)]
struct Look<'a> {
    host: &'static GuardHost,
    env: &'a Env,
    places: &'a GuardPlaces,
    /// Whether the host itself may be asked.
    asks: bool,
}

impl Look<'_> {
    fn at(&self, place: &ConfigPlace) -> Option<Installed> {
        let file = file_of(place.path, self.env)?;
        let flaw = match self.host.config.form {
            ConfigForm::Executables { .. } => self.in_folder(&file)?,
            ConfigForm::Json { .. } | ConfigForm::Toml { .. } | ConfigForm::WholeFile { .. } => match text_of(&file) {
                Ok(None) => return None,
                Ok(Some(text)) => match settings::has_ours(self.host, &text) {
                    Ok(false) => return None,
                    Ok(true) => self.in_text(&text),
                    // Whether ours are among what cannot be read is not known: their name says that they may be.
                    Err(_) if !text.contains(CLIENT) => return None,
                    Err(why) => Some(format!("it cannot be read: {why}")),
                },
                Err(error) => Some(format!("it cannot be read: {error}")),
            },
        };
        let flaw = flaw
            .or_else(|| self.switched_off())
            .or_else(|| self.moved(place.scope))
            .or_else(|| self.overruled(place.scope))
            .or_else(|| self.not_trusted(place.scope))
            .or_else(|| self.not_accepted(place.scope, &file));
        let limit = (place.scope == InstallScope::System).then_some(ONE_ACCOUNT);
        Some(Installed { scope: scope_word(place.scope), file, flaw, limit })
    }

    /// Why the hooks that stand in `text` guard nothing.
    fn in_text(&self, text: &str) -> Option<String> {
        missing(self.places).or_else(|| self.differs(text))
    }

    /// The same of a folder with a file for each event; nothing where none of them is ours.
    #[expect(clippy::option_option, reason = "no installation, or one with or without a flaw")]
    fn in_folder(&self, folder: &Path) -> Option<Option<String>> {
        let rows: Vec<_> = settings::installed(self.host).map(|row| (row, folder.join(row.name))).collect();
        let texts: Vec<_> = rows.iter().map(|(_, file)| text_of(file)).collect();
        let is_ours = |text: &io::Result<Option<String>>| matches!(text, Ok(Some(text)) if settings::has_ours(self.host, text) == Ok(true));
        if !texts.iter().any(is_ours) {
            return None;
        }
        let own = match self.own() {
            Ok(own) => own,
            Err(why) => return Some(Some(why)),
        };
        let flaw = rows.iter().zip(texts).find_map(|((row, file), text)| {
            let name = row.name;
            let text = match text {
                Ok(Some(text)) => text,
                Ok(None) => return Some(format!("`{name}` is not there; `pintle guard install` puts it right")),
                Err(error) => return Some(format!("`{name}` cannot be read: {error}")),
            };
            if let Some(flaw) = missing(self.places) {
                return Some(flaw);
            }
            let entry = own.for_host(self.host);
            let written = settings::install_event(self.host, (&entry, row), Some(&text), None);
            if written.map(|written| written.text) != Ok(text) {
                return Some(format!("`{name}` is not what `pintle guard install` writes, which puts it right"));
            }
            let runs = file.metadata().is_ok_and(|metadata| metadata.permissions().mode() & 0o100 != 0);
            (!runs).then(|| format!("`{name}` may not be executed"))
        });
        Some(flaw)
    }

    /// What stands in entries that are written today, or why nothing can be compared with it.
    fn own(&self) -> Result<OwnEntry, String> {
        let program = hook_program().map_err(|error| error.to_string());
        let own = program.and_then(|program| OwnEntry::of(self.places, &program).map_err(|error| error.message));
        own.map_err(|why| format!("its entries cannot be compared with those written today: {why}"))
    }

    /// How the entries in `text` differ from those that are written today, in anything that the host reads.
    fn differs(&self, text: &str) -> Option<String> {
        let own = match self.own() {
            Ok(own) => own,
            Err(why) => return Some(why),
        };
        let written = settings::install(self.host, &own.for_host(self.host), Some(text), None);
        match written.and_then(|written| settings::is_same(self.host, &written.text, text)) {
            Ok(true) => None,
            Ok(false) => {
                Some("its entries are not those that `pintle guard install` writes, which puts them right".to_owned())
            }
            Err(why @ NotEdited::Dropped(_)) => Some(why.to_string()),
            Err(why) => Some(format!("it cannot be read: {why}")),
        }
    }

    /// The hook of another file that comes behind ours and may undo what we say, if there is one.
    fn overruled(&self, scope: InstallScope) -> Option<String> {
        if scope == InstallScope::Project || scope == InstallScope::ProjectLocal {
            return None;
        }
        self.host.config.behind.iter().find_map(|path| {
            let file = file_of(path, self.env)?;
            let unread = |why: String| Some(format!("what {} says behind it cannot be read: {why}", file.display()));
            let text = match text_of(&file) {
                Ok(text) => text?,
                Err(error) => return unread(error.to_string()),
            };
            let others = match (settings::has_ours(self.host, &text), settings::others_in(self.host, &text)) {
                // Ours stands there as well, where it has the last word.
                (Ok(true), _) => return None,
                (Ok(false), Ok(others)) => others,
                (Err(why), _) | (_, Err(why)) => return unread(why.to_string()),
            };
            let OtherHook { event, runs } = others.into_iter().next()?;
            Some(format!(
                "`{runs}` at `{event}` in {} comes behind it, and what it allows runs; `pintle guard install --host {} \
                 --project` stands behind that",
                file.display(),
                self.host.id
            ))
        })
    }

    /// Whether the host reads nothing of this project, because nobody trusts its folder.
    fn not_trusted(&self, scope: InstallScope) -> Option<String> {
        let trusted = self.host.config.trusted_in.as_ref().filter(|_| scope == InstallScope::Project)?;
        let (file, folder) = (file_of(trusted.path, self.env)?, self.env.cwd.to_str()?);
        let text = text_of(&file).map_err(|error| error.to_string());
        let trusts = text.and_then(|text| {
            settings::trusts(trusted, text.as_deref().unwrap_or_default(), folder).map_err(|why| why.to_string())
        });
        match trusts {
            Ok(true) => None,
            Ok(false) => Some(format!(
                "{} does not read it: `{}` in {} does not have this folder",
                self.host.name,
                trusted.member,
                file.display()
            )),
            Err(why) => Some(format!("whether {} trusts this folder cannot be read: {why}", self.host.name)),
        }
    }

    /// The setting that turns the hooks off here, if one does.
    fn switched_off(&self) -> Option<String> {
        let all = self.host.config.switches.iter();
        let thrown = |switch: &'static HostSwitch| {
            let files = files_of(switch.path, self.env);
            files.iter().find_map(|file| Self::thrown_in(switch, file))
        };
        all.into_iter().find_map(thrown)
    }

    /// How `switch` turns the hooks off in `file`, if it does.
    fn thrown_in(switch: &HostSwitch, file: &Path) -> Option<String> {
        let (name, file_name) = (switch.names.join("."), file.display());
        let off = match text_of(file) {
            Ok(None) => return None,
            Ok(Some(text)) => settings::is_off(switch, &text).map_err(|why| why.to_string()),
            Err(error) => Err(error.to_string()),
        };
        match off {
            Ok(false) => None,
            Ok(true) => Some(format!("`{name}` in {file_name} turns hooks off")),
            Err(why) => Some(format!("whether `{name}` in {file_name} turns hooks off cannot be read: {why}")),
        }
    }

    fn moved(&self, scope: InstallScope) -> Option<String> {
        let name = moved_by(self.host, self.env).filter(|_| scope == InstallScope::User)?;
        Some(format!("`{name}` is set, so that {} does not read this file", self.host.name))
    }

    /// Whether the host passes our entries over because nobody accepted them.
    fn not_accepted(&self, scope: InstallScope, file: &Path) -> Option<String> {
        match self.host.config.acceptance {
            HookAcceptance::NotNeeded => None,
            HookAcceptance::AppServer { .. } if scope == InstallScope::System || !self.asks => None,
            HookAcceptance::AppServer { .. } => {
                let name = self.host.name;
                let commands = match self.own() {
                    Ok(own) => settings::commands(self.host, &own.for_host(self.host)),
                    Err(why) => return Some(why),
                };
                let own = OwnHooks { file, commands: &commands };
                match accepted::look(Path::new(self.host.id), own, &self.env.cwd) {
                    Ok(found) if found.is_whole() => None,
                    Ok(Acceptance { known: 0, .. }) => Some(format!("{name} knows none of its entries")),
                    Ok(Acceptance { written, known, passed_over: 0 }) => {
                        Some(format!("{name} knows {known} of its {written} entries"))
                    }
                    Ok(Acceptance { known, passed_over, .. }) => Some(format!(
                        "{name} passes {passed_over} of its {known} entries over, because nobody accepted them as they \
                         are; `pintle guard install` puts that right"
                    )),
                    Err(why) => Some(format!("whether {name} accepted its entries cannot be asked: {why}")),
                }
            }
        }
    }
}

/// What entries of ours need and is not there.
fn missing(places: &GuardPlaces) -> Option<String> {
    let missing = |what: &str, path: &Path| format!("{what} {} is not there", path.display());
    let program = hook_program().ok()?;
    if !program.exists() {
        return Some(missing("the hook's program", &program));
    }
    if let Err(error) = key::read(&places.key_file()) {
        return Some(format!("the key {} cannot be used: {error}", places.key_file().display()));
    }
    let start = places.folder.join(START_FILE);
    (!start.exists()).then(|| missing("what says how the daemon is started,", &start))
}

/// The agents whose files these commands edit: those whose real program was seen to be held by it.
const INSTALLED_INTO: [&str; 9] = ["claude", "codex", "gemini", "qwen", "copilot", "kimi", "cline", "opencode", "pi"];

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
