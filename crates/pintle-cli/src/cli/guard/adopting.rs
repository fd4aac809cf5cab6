//! `pintle guard install --adopt`: the command hooks that an agent's settings have already, taken over and given back.

use std::path::{Path, PathBuf};

use pintle_dialects::claude::ClaudeEvent;
use pintle_dialects::claude::config::ListContext;
use pintle_domain::json::{Object, Value, from_value};
use pintle_guard::host::InstallScope;
use pintle_guard::settings::KeptFile;
use pintle_guard::settings::adopt::{self, AdoptedFile, Adopting, FoundHook, LeftHook};
use pintle_guard::{ClientEntry, GuardHost};
use pintle_host::config::adopted::{self, AdoptedHooks};
use pintle_host::config::trust::{command_text, unread};

use super::changes::{Adoption, Change};
use super::files::{known_of, not_edited, read, warn_of};
use crate::clean::clean;
use crate::cli::terminal;
use crate::error::CliError;
use crate::guard::places::GuardPlaces;
use crate::text::not_watched;

/// The events whose hooks are adopted: what their commands answer has the same force here. At the others the agent
/// carries out what no hook of ours could.
const EVENTS: [ClaudeEvent; 4] =
    [ClaudeEvent::PreToolUse, ClaudeEvent::PostToolUse, ClaudeEvent::PostToolUseFailure, ClaudeEvent::UserPromptSubmit];

/// What an agent does with its hooks, where it is told to, and nobody here would.
const NOT_HERE: [(&str, &str); 3] = [
    ("async", "with `async` nobody waits for its answer, and here every hook is waited for"),
    ("asyncRewake", "with `asyncRewake` it wakes the agent later, which nobody else can"),
    ("once", "with `once` it runs once a session, and here every time"),
];

/// Refuses agents whose hooks nobody can take over.
///
/// # Errors
/// `host` is one of them.
pub(super) fn must_adopt(host: &GuardHost) -> Result<(), CliError> {
    if adopt::adopts(host) {
        return Ok(());
    }
    let message = format!("the hooks of {} cannot be adopted: they have a wire of their own", host.name);
    Err(CliError::usage(message).hint("install without --adopt; its hooks then stay in its settings, beside Pintle's"))
}

/// What is to become of the hooks of others in a file.
#[derive(Clone, Copy)]
pub(super) struct WantedHooks {
    /// Whose file it is.
    pub(super) scope: InstallScope,
    /// Whether they are taken over.
    pub(super) adopts: bool,
}

/// What an installation makes of `file` that takes over what it can, if that is `wanted`, or keeps what was taken over
/// before; nothing where there is neither.
pub(super) fn installed(
    host: &'static GuardHost,
    file: &Path,
    (entry, places): (&ClientEntry<'_>, &GuardPlaces),
    wanted: WantedHooks,
) -> Result<Option<Change>, CliError> {
    let unread =
        |error: CliError| error.hint("`pintle guard uninstall` puts the hooks back, if nobody changed the file");
    let before = of_file(places, host, file).map_err(unread)?;
    if !wanted.adopts && before.is_none() {
        return Ok(None);
    }
    let text = read(file)?;
    let known = known_of(places, host.id, file)?;
    let nothing = Object::new();
    let is_cut_short = is_as_before(known.as_ref(), text.as_ref());
    let taken = before.as_ref().filter(|_| !is_cut_short).map_or(&nothing, |adopted| &adopted.taken);
    if entry.allows_away && (wanted.adopts || !taken.is_empty()) {
        let message = format!(
            "hooks of {} that are adopted do not run while the daemon is away, and `guard.hosts.{}.on_daemon_away` lets \
             everything pass then",
            host.name, host.id
        );
        let hint =
            if taken.is_empty() { "leave --adopt out" } else { "give them back first: `pintle guard uninstall`" };
        return Err(CliError::usage(message).hint(hint));
    }
    if let Some(event) = taken.keys().find(|event| !is_heard(host, entry, event)) {
        let message = format!("hooks at `{event}` of {} were adopted, and `--events` leaves it out", host.name);
        return Err(
            CliError::usage(message).hint("name it, too, or give the hooks back first: `pintle guard uninstall`")
        );
    }
    let takes = |found: &FoundHook| match wanted.adopts {
        true if is_heard(host, entry, &found.event) => adoptable(host, found),
        true => adoptable(host, found).and(Err("Pintle is not asked at this event".to_owned())),
        false => Err("it came later".to_owned()),
    };
    let adopting = Adopting { kept: known.as_ref(), taken, takes: &takes };
    let edited = adopt::install_adopting(host, entry, text.as_deref(), adopting);
    let AdoptedFile { edited, taken: all, left } = edited.map_err(|why| not_edited(file, &why))?;
    let folder = project(wanted.scope, file);
    if wanted.adopts {
        say(host, (taken, &all), (left.as_slice(), folder.as_deref()))?;
    } else {
        warn_of(host, &edited.others);
    }
    let hooks = adopt::runnable(host, &all);
    let adopted = AdoptedHooks { host: host.id.to_owned(), file: file.to_owned(), folder, taken: all, hooks };
    let is_any = adopted.count() > 0;
    Ok(Some(Change {
        host: host.id,
        file: file.to_owned(),
        before: text,
        after: Some(edited.text),
        kept: Some(edited.kept),
        executable: false,
        shared: false,
        adoption: if is_any { Adoption::Kept(Box::new(adopted)) } else { Adoption::Untouched },
    }))
}

/// Whether `host` tells us of `event`: nobody else runs what is adopted there.
fn is_heard(host: &GuardHost, entry: &ClientEntry<'_>, event: &str) -> bool {
    entry.rows(host).any(|row| row.name == event)
}

/// Whether `text` is what the settings were before any hook was adopted: an installation was cut short, and what it
/// took over stands there still.
fn is_as_before(known: Option<&KeptFile>, text: Option<&String>) -> bool {
    known.is_some_and(|known| known.before.as_ref() == text)
}

/// What is left of `file` once ours are out of it and what was taken over is back.
pub(super) fn uninstalled(
    host: &'static GuardHost,
    file: &Path,
    places: &GuardPlaces,
) -> Result<Option<Change>, CliError> {
    let before = read(file)?;
    let known: Option<KeptFile> = known_of(places, host.id, file)?;
    let after = match of_file(places, host, file) {
        Ok(None) => return Ok(None),
        Ok(Some(_)) if is_as_before(known.as_ref(), before.as_ref()) => before.clone(),
        Ok(Some(adopted)) => {
            let after = adopt::uninstall_adopted(host, before.as_deref(), (known.as_ref(), &adopted.taken));
            after.map_err(|why| not_edited(file, &why))?
        }
        // Where nobody touched the settings since, what they were is known all the same.
        Err(error) => match known.filter(|known| Some(&known.after) == before.as_ref()) {
            Some(known) => known.before,
            None => return Err(error),
        },
    };
    let (file, adoption) = (file.to_owned(), Adoption::Forgotten);
    Ok(Some(Change { host: host.id, file, before, after, kept: None, executable: false, shared: false, adoption }))
}

fn of_file(places: &GuardPlaces, host: &GuardHost, file: &Path) -> Result<Option<AdoptedHooks>, CliError> {
    let read = adopted::of_file(places.home(), host.id, file);
    read.map_err(|error| {
        CliError::failed(format!("what was taken over from {} cannot be read: {error}", file.display()))
    })
}

/// The folder in which hooks from `file` count: that of its project, where it belongs to one.
fn project(scope: InstallScope, file: &Path) -> Option<PathBuf> {
    match scope {
        // `FOLDER/.claude/settings.json`
        InstallScope::Project | InstallScope::ProjectLocal => file.parent().and_then(Path::parent).map(Path::to_owned),
        InstallScope::User | InstallScope::System => None,
    }
}

/// Why a hook cannot be taken over, if it cannot.
fn adoptable(host: &GuardHost, found: &FoundHook) -> Result<(), String> {
    let event = ClaudeEvent::named(&found.event).filter(|event| EVENTS.contains(event)).ok_or_else(|| {
        format!("what hooks at `{}` answer is carried out by {} itself", clean(&found.event), host.name)
    })?;
    let kind = found.hook.get("type").and_then(Value::as_str).unwrap_or("command");
    if kind != "command" {
        return Err(format!("only commands can be taken over, and it is of the type `{}`", clean(kind)));
    }
    if let Some((_, why)) = NOT_HERE.iter().find(|(name, _)| found.hook.get(*name) == Some(&Value::Bool(true))) {
        return Err((*why).to_owned());
    }
    let mut group = found.group.clone();
    group["hooks"] = Value::from(vec![found.hook.clone()]);
    let group = adopt::runnable_group(host, &group);
    let groups: Vec<_> = from_value(Value::from(vec![group])).map_err(|error| clean(&error.to_string()))?;
    let around = ListContext { event, origin: "", before: 0, inherit_env: &[], files: None };
    let problems = around.hooks(&groups).err().unwrap_or_default();
    match problems.first() {
        Some(problem) => Err(clean(&problem.to_string())),
        None => Ok(()),
    }
}

/// Says what is taken over, of a project also what of it is not watched, and what stays.
fn say(
    host: &GuardHost,
    (before, all): (&Object, &Object),
    (left, project): (&[LeftHook], Option<&Path>),
) -> Result<(), CliError> {
    for (event, list) in all {
        let known = before.get(event).and_then(Value::as_array).map_or(0, Vec::len);
        let new = list.as_array().into_iter().flatten().skip(known);
        for hook in new.filter_map(|group| group.get("hooks")?.as_array()).flatten() {
            let runs = hook.get("command").and_then(Value::as_str).unwrap_or_default();
            terminal::say(&format!("{}  takes over at {}: {}\n", host.id, clean(event), clean(runs)))?;
            let unread = project.map(|_| unread(&command_text(hook), project)).unwrap_or_default();
            if let Some(why) = not_watched(&unread) {
                terminal::warn(&format!("{}: {why}", clean(runs)));
            }
        }
    }
    for LeftHook { hook, why } in left {
        let (event, runs) = (clean(&hook.event), clean(&hook.runs));
        terminal::warn(&format!("{} keeps its hook at {event}: {runs}; {why}", host.id));
    }
    Ok(())
}
