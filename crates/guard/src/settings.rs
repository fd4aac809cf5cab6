//! Puts our entries into the files of hosts and takes them out again: text in, text out.

use std::path::{Path, PathBuf};

use pintle_domain::json::Value;

use crate::host::{ClientEntry, ConfigForm, EventRow, GuardHost, HostSwitch, SwitchValue, TrustedFolders};
use crate::wrapping;

mod accepted;
pub mod adopt;
mod json_edit;
mod json_text;
mod mcp_json;
mod others;
mod requirements;
mod toml_block;

pub use accepted::forget;
pub use json_text::pretty;
pub use mcp_json::{DoorCommand, WrappedFile, door_programs, unwrap, wrap};
pub use others::{NotEdited, OtherHook};

pub use crate::shell_text::CLIENT;

/// A file that was edited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EditedFile {
    /// The file from now on.
    pub text: String,
    /// What uninstalling has to know.
    pub kept: KeptFile,
    /// Other people's hooks on the events of ours.
    pub others: Vec<OtherHook>,
}

/// A file as it was before ours came in, and as it was left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptFile {
    /// The text before; none if there was no file.
    pub before: Option<String>,
    /// The text after.
    pub after: String,
}

/// Puts our entries into the file `old` of `host`. `kept` is what the last installation left; where nobody edited the
/// file since, what was before that one stays what uninstalling comes back to.
///
/// # Errors
/// When the file is none that ours can be put into.
pub fn install(
    host: &GuardHost,
    hook: &ClientEntry<'_>,
    old: Option<&str>,
    kept: Option<&KeptFile>,
) -> Result<EditedFile, NotEdited> {
    let (text, others) = match host.config.form {
        ConfigForm::Json { comments, entry, .. } => {
            let wanted = hook.rows(host).map(|row| (row.name, entry(hook, row))).collect::<Vec<_>>();
            let edit = json_edit::Edit { comments, position: host.config.position, wanted: &wanted };
            (edit.install(old)?, edit.others(old)?)
        }
        ConfigForm::Toml { entry } => {
            let tables: String = hook.rows(host).map(|row| entry(hook, row)).collect::<Vec<_>>().join("\n");
            let text = toml_block::install(&tables, old)?;
            if let Some(why) = wrong_entry(host, &text)? {
                return Err(NotEdited::Dropped(why));
            }
            (text, toml_block::others(old, &|event| installed(host).any(|row| row.name == event))?)
        }
        ConfigForm::Requirements { entry } => {
            let wanted = hook.rows(host).map(|row| (row.name, entry(hook, row))).collect::<Vec<_>>();
            let text = requirements::install(&wanted, hook.program, old)?;
            (text, requirements::others(old, &|event| installed(host).any(|row| row.name == event))?)
        }
        ConfigForm::WholeFile { text } => {
            if old.is_some_and(|old| !old.trim().is_empty() && !others::is_own_file(old)) {
                return Err(NotEdited::Taken);
            }
            (text(host, hook), Vec::new())
        }
        ConfigForm::Executables { .. } => return Err(NotEdited::PerEvent),
    };
    finish(host, old, kept, (text, others))
}

/// Somebody else's executable in the place of one of ours.
#[derive(Clone, Copy, Debug)]
pub struct Theirs<'a> {
    /// Where it lies from then on, beside ours.
    pub file: &'a Path,
    /// What the last installation left.
    pub kept: Option<&'a KeptFile>,
}

/// Where somebody else's executable lies while ours stands in its place, `file`.
pub fn theirs_of(file: &Path) -> PathBuf {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    file.with_file_name(format!("{name}.before-pintle"))
}

/// Whether `text` is a script of ours that runs somebody else's behind it.
pub fn is_wrapping(text: &str) -> bool {
    wrapping::wrapped(text).is_some()
}

/// The same for the executable of the event `row`. One of somebody else is run behind ours, from its new place.
///
/// # Errors
/// When that place cannot be named.
pub fn install_event(
    host: &GuardHost,
    (hook, row): (&ClientEntry<'_>, &EventRow),
    old: Option<&str>,
    theirs: Theirs<'_>,
) -> Result<EditedFile, NotEdited> {
    let ConfigForm::Executables { text, deny } = host.config.form else { return Err(NotEdited::PerEvent) };
    let is_theirs = |old: &str| !old.trim().is_empty() && (!others::is_own_file(old) || is_wrapping(old));
    let text = if old.is_some_and(is_theirs) {
        hook.wrapping(row.name, (deny(row.name), theirs.file.to_str().ok_or(NotEdited::Taken)?))
    } else {
        text(hook, row)
    };
    finish(host, old, theirs.kept, (text, Vec::new()))
}

fn finish(
    host: &GuardHost,
    old: Option<&str>,
    kept: Option<&KeptFile>,
    (text, others): (String, Vec<OtherHook>),
) -> Result<EditedFile, NotEdited> {
    let before = uninstall(host, old, kept)?;
    Ok(EditedFile { kept: KeptFile { before, after: text.clone() }, text, others })
}

/// The events that our entry is installed for.
pub fn installed(host: &GuardHost) -> impl Iterator<Item = &EventRow> {
    host.events.iter().filter(|row| row.installed)
}

/// Whether the file of `host` that is ours alone is a program, which asks at every event.
pub fn is_plugin(host: &GuardHost) -> bool {
    let is_data = |path: &str| path.ends_with(".json");
    matches!(host.config.form, ConfigForm::WholeFile { .. }) && !host.config.places.iter().any(|it| is_data(it.path))
}

/// What our entries run, event by event, where they stand in a list for each event: these texts, and no others, are ours.
pub fn commands(host: &GuardHost, hook: &ClientEntry<'_>) -> Vec<String> {
    let ConfigForm::Json { entry, .. } = host.config.form else { return Vec::new() };
    let command = |row: &EventRow| Some(entry(hook, row).get("hooks")?.get(0)?.get("command")?.as_str()?.to_owned());
    hook.rows(host).filter_map(command).collect()
}

/// Takes our entries out of `current`; none: the file goes. Where nobody edited it since it was installed, it is what
/// `kept` says, byte by byte; else ours are taken out of it as it is.
///
/// # Errors
/// When ours cannot be told from what else stands there.
pub fn uninstall(
    host: &GuardHost,
    current: Option<&str>,
    kept: Option<&KeptFile>,
) -> Result<Option<String>, NotEdited> {
    let Some(current) = current else { return Ok(None) };
    if let Some(kept) = kept
        && kept.after == current
    {
        return Ok(kept.before.clone());
    }
    match host.config.form {
        ConfigForm::Json { comments, .. } => {
            let edit = json_edit::Edit { comments, position: host.config.position, wanted: &[] };
            edit.remove(current).map(Some)
        }
        ConfigForm::Toml { .. } | ConfigForm::Requirements { .. } => toml_block::remove(current).map(Some),
        ConfigForm::WholeFile { .. } | ConfigForm::Executables { .. } => {
            Ok((!others::is_own_file(current)).then(|| current.to_owned()))
        }
    }
}

/// Whether hooks of ours stand in `text`, a file of `host`; a text that only names the client has none.
///
/// # Errors
/// When the file cannot be read.
pub fn has_ours(host: &GuardHost, text: &str) -> Result<bool, NotEdited> {
    match host.config.form {
        ConfigForm::Json { comments, .. } => {
            json_edit::Edit { comments, position: host.config.position, wanted: &[] }.has_ours(text)
        }
        ConfigForm::Toml { .. } => toml_block::has_ours(text),
        ConfigForm::Requirements { .. } => requirements::has_ours(text),
        ConfigForm::WholeFile { .. } | ConfigForm::Executables { .. } => Ok(others::is_own_file(text)),
    }
}

/// The events of which hooks of ours stand in `text`, a file of `host`; all of them, where a file of ours has no list.
///
/// # Errors
/// When the file cannot be read.
pub fn own_events(host: &GuardHost, text: &str) -> Result<Vec<String>, NotEdited> {
    match host.config.form {
        ConfigForm::Json { comments, .. } => {
            json_edit::Edit { comments, position: host.config.position, wanted: &[] }.own_events(text)
        }
        ConfigForm::Toml { .. } => toml_block::own_events(text),
        ConfigForm::Requirements { .. } => requirements::own_events(text),
        ConfigForm::WholeFile { .. } | ConfigForm::Executables { .. } => {
            Ok(others::own_file_events(text)
                .unwrap_or_else(|| installed(host).map(|row| row.name.to_owned()).collect()))
        }
    }
}

/// What in `text`, a file of `host`, makes the host drop every hook there, whoever wrote it.
///
/// # Errors
/// When the file cannot be read.
pub fn wrong_entry(host: &GuardHost, text: &str) -> Result<Option<String>, NotEdited> {
    host.config.strict.map_or(Ok(None), |strict| toml_block::wrong_entry(strict, text))
}

/// The hooks of others in `text`, another file of `host`, at events where something can be stopped.
///
/// # Errors
/// When the file cannot be read.
pub fn others_in(host: &GuardHost, text: &str) -> Result<Vec<OtherHook>, NotEdited> {
    let stops = |event: &str| host.event(event).is_some_and(|row| row.stops);
    match host.config.form {
        ConfigForm::Json { comments, .. } => {
            let rows = host.events.iter().map(|row| (row.name, Value::Null)).collect::<Vec<_>>();
            let found =
                json_edit::Edit { comments, position: host.config.position, wanted: &rows }.others(Some(text))?;
            Ok(found.into_iter().filter(|other| stops(&other.event)).collect())
        }
        ConfigForm::Toml { .. } => toml_block::others(Some(text), &stops),
        ConfigForm::Requirements { .. } => requirements::others(Some(text), &stops),
        ConfigForm::WholeFile { .. } | ConfigForm::Executables { .. } => Ok(Vec::new()),
    }
}

/// Whether `text`, the file in which a host keeps the folders that its person trusts, has `folder` or one above it.
///
/// # Errors
/// When the file cannot be read.
pub fn trusts(trusted: &TrustedFolders, text: &str, folder: &str) -> Result<bool, NotEdited> {
    let Some(Value::Array(folders)) = json_text::at(text, &[trusted.member])? else { return Ok(false) };
    let is_above = |above: &str| {
        let above = above.trim_end_matches('/');
        folder.strip_prefix(above).is_some_and(|below| below.is_empty() || below.starts_with('/'))
    };
    Ok(folders.iter().filter_map(Value::as_str).filter(|above| !above.is_empty()).any(is_above))
}

/// Whether `switch` is thrown in the text of its file.
///
/// # Errors
/// When the file cannot be read.
pub fn is_off(switch: &HostSwitch, text: &str) -> Result<bool, NotEdited> {
    let found = if switch.path.ends_with(".toml") {
        toml_block::at(text, switch.names)?
    } else {
        json_text::at(text, switch.names)?
    };
    Ok(match (switch.off, found) {
        (SwitchValue::Is(truth), Some(Value::Bool(found))) => truth == found,
        (SwitchValue::NamesOurs, Some(Value::Array(names))) => {
            names.iter().filter_map(Value::as_str).any(|name| name.starts_with("pintle"))
        }
        (SwitchValue::Is(_) | SwitchValue::NamesOurs, _) => false,
    })
}

/// Whether two texts of a file of `host` say the same to the host.
///
/// # Errors
/// One of them cannot be read.
pub fn is_same(host: &GuardHost, one: &str, other: &str) -> Result<bool, NotEdited> {
    match host.config.form {
        ConfigForm::Json { comments, .. } => {
            let read = |text: &str| json_text::parse(text, comments).map(|node| node.value());
            Ok(read(one)? == read(other)?)
        }
        ConfigForm::Toml { .. } | ConfigForm::Requirements { .. } => {
            Ok(toml_block::at(one, &[])? == toml_block::at(other, &[])?)
        }
        ConfigForm::WholeFile { .. } | ConfigForm::Executables { .. } => Ok(one == other),
    }
}
