//! Puts our entries into the files of hosts and takes them out again: text in, text out.

use domain::json::Value;

use crate::host::{ClientEntry, ConfigForm, EventRow, GuardHost, HostSwitch, SwitchValue, TrustedFolders};

mod accepted;
pub mod adopt;
mod json_edit;
mod json_text;
mod mcp_json;
mod others;
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
            let wanted = installed(host).map(|row| (row.name, entry(hook, row))).collect::<Vec<_>>();
            let edit = json_edit::Edit { comments, position: host.config.position, wanted: &wanted };
            (edit.install(old)?, edit.others(old)?)
        }
        ConfigForm::Toml { entry } => {
            let tables: String = installed(host).map(|row| entry(hook, row)).collect::<Vec<_>>().join("\n");
            let text = toml_block::install(&tables, old)?;
            if let Some(why) = wrong_entry(host, &text)? {
                return Err(NotEdited::Dropped(why));
            }
            (text, toml_block::others(old, &|event| installed(host).any(|row| row.name == event))?)
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

/// The same for the executable of the event `row`.
///
/// # Errors
/// When there is one of somebody else.
pub fn install_event(
    host: &GuardHost,
    (hook, row): (&ClientEntry<'_>, &EventRow),
    old: Option<&str>,
    kept: Option<&KeptFile>,
) -> Result<EditedFile, NotEdited> {
    let ConfigForm::Executables { text } = host.config.form else { return Err(NotEdited::PerEvent) };
    if old.is_some_and(|old| !old.trim().is_empty() && !others::is_own_file(old)) {
        return Err(NotEdited::Taken);
    }
    finish(host, old, kept, (text(hook, row), Vec::new()))
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

/// What our entries run, event by event, where they stand in a list for each event: these texts, and no others, are ours.
pub fn commands(host: &GuardHost, hook: &ClientEntry<'_>) -> Vec<String> {
    let ConfigForm::Json { entry, .. } = host.config.form else { return Vec::new() };
    let command = |row: &EventRow| Some(entry(hook, row).get("hooks")?.get(0)?.get("command")?.as_str()?.to_owned());
    installed(host).filter_map(command).collect()
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
        ConfigForm::Toml { .. } => toml_block::remove(current).map(Some),
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
        ConfigForm::WholeFile { .. } | ConfigForm::Executables { .. } => Ok(others::is_own_file(text)),
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
        ConfigForm::Toml { .. } => Ok(toml_block::at(one, &[])? == toml_block::at(other, &[])?),
        ConfigForm::WholeFile { .. } | ConfigForm::Executables { .. } => Ok(one == other),
    }
}
