//! Where agents have our hooks in their settings, and whether those would run.

use std::io;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use pintle_guard::host::{ConfigForm, ConfigPlace, EventRow, HookAcceptance, HostSwitch, InstallScope};
use pintle_guard::settings::{self, CLIENT, NotEdited, OtherHook, Theirs, theirs_of};
use pintle_guard::{ClientEntry, EntryDaemon, GuardHost, HOSTS, in_scope};
use pintle_hook::key;
use pintle_hook::start::START_FILE;
use pintle_host::config::{self, Env, LoadOptions};

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
    pub(crate) limit: Option<String>,
}

/// What an installation does not guard that lets calls run while its daemon is away.
const AWAY: &str =
    "everything runs, unguarded and unrecorded, while its daemon cannot be reached: `on_daemon_away` says so";

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

/// What turns the hooks of `host` off for whoever works in the folder of `env`, if something does. Hooks of the machine may
/// hold all the same.
pub(crate) fn switched_off(host: &'static GuardHost, env: &Env, places: &GuardPlaces) -> Option<String> {
    let look = Look { host, env, places, asks: false };
    let off = look.switched_off(InstallScope::User)?;
    let machine = host.config.places.iter().filter(|place| place.scope == InstallScope::System);
    let holds = machine.filter_map(|place| look.at(place)).any(|it| it.flaw.is_none());
    (!holds).then_some(off)
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

    /// What stands in the settings of `host` in `scope`. Those of the machine are for every account, each with its own
    /// daemon.
    pub(crate) fn for_host(&self, host: &GuardHost, scope: InstallScope) -> ClientEntry<'_> {
        let daemon = match scope {
            InstallScope::System => EntryDaemon::Account,
            InstallScope::User | InstallScope::Project | InstallScope::ProjectLocal => {
                EntryDaemon::Named { socket: &self.socket, key_file: &self.key_file }
            }
        };
        ClientEntry {
            host: host.id,
            program: &self.program,
            daemon,
            timeout_s: host.deadline.installed_s,
            allows_away: false,
            events: None,
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
        Look { host: in_scope(self.host, place.scope), ..*self }.in_place(place)
    }

    fn in_place(&self, place: &ConfigPlace) -> Option<Installed> {
        let file = file_of(place.path, self.env)?;
        let unread = |why: String| Err(format!("it cannot be read: {why}"));
        let found = match self.host.config.form {
            ConfigForm::Executables { .. } => self.in_folder(&file)?,
            ConfigForm::Json { .. }
            | ConfigForm::Toml { .. }
            | ConfigForm::Requirements { .. }
            | ConfigForm::WholeFile { .. } => match text_of(&file) {
                Ok(None) => return None,
                Ok(Some(text)) => match settings::has_ours(self.host, &text) {
                    Ok(false) => return None,
                    Ok(true) => self.in_text(&text, place.scope),
                    // Whether ours are among what cannot be read is not known: their name says that they may be.
                    Err(_) if !text.contains(CLIENT) => return None,
                    Err(why) => unread(why.to_string()),
                },
                Err(error) => unread(error.to_string()),
            },
        };
        let (flaw, limit) = match found {
            Ok(limit) => (None, limit),
            Err(flaw) => (Some(flaw), None),
        };
        let flaw = flaw
            .or_else(|| self.switched_off(place.scope))
            .or_else(|| self.moved(place.scope))
            .or_else(|| self.overruled(place.scope))
            .or_else(|| self.not_trusted(place.scope))
            .or_else(|| self.not_accepted(place.scope, &file));
        Some(Installed { scope: scope_word(place.scope), file, flaw, limit })
    }

    /// What the hooks that stand in `text` do not guard, or why they guard nothing.
    fn in_text(&self, text: &str, scope: InstallScope) -> Result<Option<String>, String> {
        self.missing(scope)?;
        let events = settings::own_events(self.host, text).map_err(|why| format!("it cannot be read: {why}"))?;
        let entry = LookedEntry { scope, allows_away: self.allows_away(text), events: &events };
        self.differs(text, &entry)?;
        let left: Vec<&EventRow> =
            settings::installed(self.host).filter(|row| !events.iter().any(|event| event == row.name)).collect();
        let limit = left_out(&left)?;
        Ok(limit.or_else(|| entry.allows_away.then(|| AWAY.to_owned())))
    }

    /// Whether the entries in `text` let everything run while the daemon is away, and their person wants that.
    fn allows_away(&self, text: &str) -> bool {
        if !text.contains("--away") {
            return false;
        }
        let flags = self.places.start_flags();
        let options =
            LoadOptions { config: flags.config.as_deref(), home: flags.home.as_deref(), builtins: &[], probe: None };
        let loaded = config::load(self.env, &options);
        loaded.is_ok_and(|loaded| loaded.config.guard_hosts.get(self.host.id).is_some_and(|it| it.allows_away))
    }

    /// Why entries of ours cannot work.
    fn missing(&self, scope: InstallScope) -> Result<(), String> {
        match scope {
            InstallScope::System => for_everybody(),
            InstallScope::User | InstallScope::Project | InstallScope::ProjectLocal => {
                missing(self.places).map_or(Ok(()), Err)
            }
        }
    }

    /// The same of a folder with a file for each event; nothing where none of them is ours.
    fn in_folder(&self, folder: &Path) -> Option<Result<Option<String>, String>> {
        let rows: Vec<_> = settings::installed(self.host).map(|row| (row, folder.join(row.name))).collect();
        let texts: Vec<_> = rows.iter().map(|(_, file)| text_of(file)).collect();
        let is_ours = |text: &io::Result<Option<String>>| matches!(text, Ok(Some(text)) if settings::has_ours(self.host, text) == Ok(true));
        if !texts.iter().any(is_ours) {
            return None;
        }
        let looked = || {
            let own = self.own()?;
            missing(self.places).map_or(Ok(()), Err)?;
            let mut left = Vec::new();
            let mut allows_away = false;
            for ((row, file), text) in rows.iter().zip(texts) {
                let Some(text) = text.map_err(|error| format!("`{}` cannot be read: {error}", row.name))? else {
                    left.push(*row);
                    continue;
                };
                allows_away |= self.allows_away(&text);
                let entry =
                    ClientEntry { allows_away: self.allows_away(&text), ..own.for_host(self.host, InstallScope::User) };
                in_script(self.host, (&entry, row), (file, &text))?;
            }
            let limit = left_out(&left)?;
            Ok(limit.or_else(|| allows_away.then(|| AWAY.to_owned())))
        };
        Some(looked())
    }

    /// What stands in entries that are written today, or why nothing can be compared with it.
    fn own(&self) -> Result<OwnEntry, String> {
        let program = hook_program().map_err(|error| error.to_string());
        let own = program.and_then(|program| OwnEntry::of(self.places, &program).map_err(|error| error.message));
        own.map_err(|why| format!("its entries cannot be compared with those written today: {why}"))
    }

    /// How the entries in `text` differ from those that are written today, in anything that the host reads.
    fn differs(&self, text: &str, looked: &LookedEntry<'_>) -> Result<(), String> {
        let own = self.own()?;
        let (scope, allows_away) = (looked.scope, looked.allows_away);
        let entry = ClientEntry { allows_away, events: Some(looked.events), ..own.for_host(self.host, scope) };
        let written = settings::install(self.host, &entry, Some(text), None);
        match written.and_then(|written| settings::is_same(self.host, &written.text, text)) {
            Ok(true) => Ok(()),
            Ok(false) => {
                Err("its entries are not those that `pintle guard install` writes, which puts them right".to_owned())
            }
            Err(why @ NotEdited::Dropped(_)) => Err(why.to_string()),
            Err(why) => Err(format!("it cannot be read: {why}")),
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

    /// The setting that turns the hooks of `scope` off here, if one does.
    fn switched_off(&self, scope: InstallScope) -> Option<String> {
        let thrown = |switch: &'static HostSwitch| {
            let files = files_of(switch.path, self.env);
            files.iter().find_map(|file| Self::thrown_in(switch, file))
        };
        self.host.config.switches.of(scope).filter(|switch| !self.is_pinned(switch)).find_map(thrown)
    }

    /// Whether the settings of the machine keep `switch` from turning anything off.
    fn is_pinned(&self, switch: &HostSwitch) -> bool {
        let Some(pin) = self.host.config.switches.pin_of(switch) else { return false };
        // What cannot be read pins nothing.
        let text = file_of(pin.path, self.env).and_then(|file| text_of(&file).ok().flatten());
        text.is_some_and(|text| settings::is_off(&pin, &text) == Ok(true))
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
                    Ok(own) => settings::commands(self.host, &own.for_host(self.host, scope)),
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

/// How entries of ours in a text are looked at.
struct LookedEntry<'a> {
    scope: InstallScope,
    allows_away: bool,
    events: &'a [String],
}

/// What an installation leaves out: nothing is held where it is not asked, and that is a flaw where something could be.
fn left_out(left: &[&EventRow]) -> Result<Option<String>, String> {
    let names = |rows: &mut dyn Iterator<Item = &&EventRow>| {
        let names: Vec<String> = rows.map(|row| format!("`{}`", row.name)).collect();
        (!names.is_empty()).then(|| names.join(", "))
    };
    if let Some(names) = names(&mut left.iter().filter(|row| row.stops)) {
        return Err(format!("{names} is not there; `pintle guard install` puts it right"));
    }
    Ok(names(&mut left.iter()).map(|names| format!("it hears nothing of {names}")))
}

/// Why the script of one event is not what an installation writes.
fn in_script(
    host: &GuardHost,
    (entry, row): (&ClientEntry<'_>, &EventRow),
    (file, text): (&Path, &str),
) -> Result<(), String> {
    let name = row.name;
    let theirs = theirs_of(file);
    let written = settings::install_event(host, (entry, row), Some(text), Theirs { file: &theirs, kept: None });
    if written.map(|written| written.text).as_deref() != Ok(text) {
        return Err(format!("`{name}` is not what `pintle guard install` writes, which puts it right"));
    }
    let runs = file.metadata().is_ok_and(|metadata| metadata.permissions().mode() & 0o100 != 0);
    if runs { Ok(()) } else { Err(format!("`{name}` may not be executed")) }
}

/// Why the programs of the guard cannot guard every account: each one has to be able to run them, and nobody but root to
/// change them.
pub(crate) fn for_everybody() -> Result<(), String> {
    let hook = hook_program().map_err(|error| error.to_string())?;
    let daemon = hook.with_file_name("pintle");
    for program in [&hook, &daemon] {
        for path in program.ancestors() {
            let read = path.metadata().map_err(|error| format!("{} cannot be looked at: {error}", path.display()))?;
            let (mode, is_sticky) = (read.mode(), read.mode() & 0o1000 != 0);
            let why = match () {
                () if read.uid() != 0 => "belongs to another account than root",
                () if mode & 0o022 != 0 && !is_sticky => "can be changed by other accounts than root",
                () if mode & 0o001 == 0 => "cannot be used by every account",
                () => continue,
            };
            return Err(format!(
                "{} {why}, so {} can guard none but its own; put `pintle` and `{CLIENT}` where only root changes them, \
                 such as /usr/local/bin",
                path.display(),
                program.display()
            ));
        }
    }
    Ok(())
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

/// The word for all agents.
pub(crate) const ALL: &str = "all";

/// Whether `names` are the word for all agents.
pub(crate) fn is_all(names: &[String]) -> bool {
    names.len() == 1 && names[0] == ALL
}

/// The hosts called `names`; all where nobody is named, or [`ALL`] is.
///
/// # Errors
/// There is no such host.
pub(crate) fn named(names: &[String]) -> Result<Vec<&'static GuardHost>, CliError> {
    if names.is_empty() || is_all(names) {
        return hosts(None);
    }
    names.iter().map(|name| Ok(hosts(Some(name))?[0])).collect()
}
