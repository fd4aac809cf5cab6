//! How far a file that was merely found is trusted: entry by entry, by content.
//!
//! [`covers`] says what an entry is made of: its own text in normal form, the program that it runs, and the files
//! in its command that the user can write. [`TrustStore`] keeps what was accepted. A [`SpawnSeal`] checks it once more
//! before every spawn. Files that those files import are not covered.

mod coverage;
mod file;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use domain::fault::Fault;
use domain::json::{Object, Value, json};

pub use self::coverage::{Coverage, CoveredPart, covers};
pub use self::file::{AcceptedEntry, TrustStore};
use super::diagnostic::dotted;
use super::layer::{ENTRY_TABLES, Layer, MCP_SERVERS, entry_path};
use super::places::Env;
use super::{LoadOptions, found_file, places};
use crate::error::HostError;
use crate::rule_files::folder::{listed, text_of};

/// The words for an entry whose content is not the one that was accepted.
pub(super) const CHANGED: &str = "changed since it was trusted";

/// The sections that are trusted whole.
const SECTIONS: [&str; 8] = ["audit", "store", "tools", "agent_hooks", "gateway", "background", "skills", "telemetry"];

/// Something in a file that is accepted or not.
#[derive(Clone, Debug, PartialEq)]
pub struct TrustEntry {
    /// The keys that lead to it, with dots.
    pub path: String,
    /// The value that is written there, together with what else of the file decides what it does.
    pub value: Value,
    /// The command that it runs, if it runs something.
    pub command: Option<EntryCommand>,
}

/// The command that an entry runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryCommand {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// The working directory.
    pub dir: PathBuf,
    /// The `PATH` that the entry sets for its child.
    pub path: Option<OsString>,
}

/// How an entry stands.
#[derive(Clone, Debug, PartialEq)]
pub enum TrustStanding {
    /// Accepted as it is.
    Trusted,
    /// Never accepted.
    Unknown,
    /// Accepted once, and different now.
    Changed {
        /// The entry as it was accepted.
        accepted: Value,
        /// The differences, a line each: `-` for what was accepted, `+` for what is there now.
        diff: Vec<String>,
    },
}

/// The survey of what a file that was found would do, for the eyes of the one who is to accept it.
#[derive(Clone, Debug)]
pub struct Survey {
    /// The file.
    pub file: PathBuf,
    /// Its entries, and how each stands.
    pub entries: Vec<(TrustEntry, TrustStanding)>,
    search_path: Option<OsString>,
}

/// Looks at the file that would be laid over the user's own, or at the one that is named.
///
/// # Errors
/// There is none, it does not parse, or what was accepted cannot be read.
pub fn survey(env: &Env, options: &LoadOptions<'_>, named: Option<&Path>) -> Result<Survey, HostError> {
    let file = match named.map(|named| env.cwd.join(named)) {
        Some(folder) if folder.is_dir() => places::file_in(&folder)?,
        Some(file) => Some(file),
        None => found_file(env, None)?,
    };
    let Some(file) = file else {
        return Err(HostError::usage("there is no pintle.toml or pintle.json in this folder or above"));
    };
    let store = TrustStore::open(&env.home(options.home)?)?;
    let layer = Layer::read(&file, &env.cwd)?;
    let search_path = env.vars.get("PATH").cloned();
    let entries = entries(&layer)
        .into_iter()
        .map(|entry| {
            let standing = store.check(&file, &entry, search_path.as_deref());
            (entry, standing)
        })
        .collect();
    Ok(Survey { file, entries, search_path })
}

/// Accepts everything in `survey` as it was shown; what was accepted of that file before is forgotten.
///
/// # Errors
/// The home folder cannot be written.
pub fn accept(home: &Path, survey: &Survey) -> Result<(), HostError> {
    let mut store = TrustStore::open(home)?;
    let accepted = survey.entries.iter().map(|(entry, _)| {
        let coverage = covers(entry, survey.search_path.as_deref());
        (entry.path.clone(), AcceptedEntry::new(coverage, entry.value.clone()))
    });
    store.accept(&survey.file, accepted.collect());
    store.save()
}

/// Everything in `layer` that is accepted or not.
pub(super) fn entries(layer: &Layer) -> Vec<TrustEntry> {
    let mut found = Vec::new();
    for table in ENTRY_TABLES {
        for member in layer.entries(table) {
            let path = dotted(&entry_path(table, &member.key));
            let written = member.node.to_json();
            let entry = match table {
                ["hooks", "processes"] => {
                    let command = command(&written, layer);
                    TrustEntry { path, value: hook_value(written, layer), command: Some(command) }
                }
                MCP_SERVERS => {
                    let command = written.get("command").is_some().then(|| command(&written, layer));
                    TrustEntry { path, value: written, command }
                }
                ["hooks", _] => TrustEntry { path, value: hook_value(written, layer), command: None },
                _ => TrustEntry { path, value: written, command: None },
            };
            found.push(entry);
        }
    }
    for section in SECTIONS {
        if layer.document.root.get(section).is_some() {
            let mut value = layer.value(&[section]);
            if section == RULES {
                cover_files(&mut value, layer);
            }
            found.push(TrustEntry { path: section.to_owned(), value, command: None });
        }
    }
    if layer.document.root.get("hooks").is_some() {
        found.push(TrustEntry { path: "hooks".to_owned(), value: settings(layer), command: None });
    }
    found
}

/// The section that names files with rules: what stands in these counts, not only where they are.
const RULES: &str = "agent_hooks";

/// Lays the files with rules beside the section that names their folder.
fn cover_files(section: &mut Value, layer: &Layer) {
    let Some(dir) = section.get("dir").and_then(Value::as_str) else { return };
    let folder = layer.document.file.parent().map(|parent| parent.join(dir)).unwrap_or_default();
    let files = listed(&folder).unwrap_or_default();
    let read = |path: &std::path::PathBuf| {
        let name = path.file_name()?.to_string_lossy().into_owned();
        Some((name, Value::from(text_of(path))))
    };
    let contents: Object = files.iter().filter_map(read).collect();
    if let Some(members) = section.as_object_mut() {
        members.insert("files".to_owned(), Value::Object(contents));
    }
}

/// The settings that all hooks of a file share.
fn settings(layer: &Layer) -> Value {
    let keep = ["enabled", "strict_start", "defaults"];
    let all = layer.value(&["hooks"]);
    let kept = keep.iter().filter_map(|key| Some(((*key).to_owned(), all.get(key)?.clone())));
    Value::Object(kept.collect::<Object>())
}

/// What a hook does depends on the settings of its file too, so they are part of what is accepted.
fn hook_value(written: Value, layer: &Layer) -> Value {
    json!({ "entry": written, "hooks": settings(layer) })
}

/// The hook's own entry inside what was accepted.
pub(super) fn hook_entry(accepted: &Value) -> &Value {
    accepted.get("entry").unwrap_or(accepted)
}

/// Whether a hook was switched off when it was accepted: by itself, or with its whole file.
pub(super) fn was_off(accepted: &Value) -> bool {
    let is = |table: Option<&Value>, value: bool| table.and_then(|table| table.get("enabled")) == Some(&value.into());
    is(accepted.get("hooks"), false) || !is(Some(hook_entry(accepted)), true)
}

/// Whether `fault` says that a hook is not the one that was accepted.
pub fn is_changed(fault: &Fault) -> bool {
    matches!(fault, Fault::CannotStart { detail } if detail == CHANGED)
}

/// Whether `why`, for which something did not start, says the same.
pub fn is_changed_text(why: &str) -> bool {
    why == CHANGED
}

fn command(written: &Value, layer: &Layer) -> EntryCommand {
    let texts = |key: &str| written.get(key).and_then(Value::as_array).into_iter().flatten();
    let dir = written.get("dir").and_then(Value::as_str).unwrap_or_default();
    EntryCommand {
        argv: texts("command").filter_map(Value::as_str).map(str::to_owned).collect(),
        dir: layer.folder.join(dir),
        path: written.get("env").and_then(|env| env.get("PATH")).and_then(Value::as_str).map(OsString::from),
    }
}

/// The seal of what has to be the same at every spawn as it was when the configuration was loaded.
#[derive(Clone, Debug)]
pub struct SpawnSeal {
    entry: TrustEntry,
    digest: String,
    search_path: Option<OsString>,
}

impl SpawnSeal {
    pub(super) fn new(entry: TrustEntry, digest: String, search_path: Option<OsString>) -> Self {
        Self { entry, digest, search_path }
    }

    /// The digest of what was accepted.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Whether the entry still is what was accepted.
    ///
    /// # Errors
    /// The detail of the fault that it is otherwise.
    pub fn check(&self) -> Result<(), String> {
        let now = covers(&self.entry, self.search_path.as_deref());
        if now.digest == self.digest { Ok(()) } else { Err(CHANGED.to_owned()) }
    }
}

/// The check that is called before every spawn of a hook, restarts included.
pub type SealCheck = Arc<dyn Fn() -> Result<(), String> + Send + Sync>;

/// The check before every spawn; a hook that is trusted for its place has nothing to check.
pub fn before_spawn(seal: Option<&SpawnSeal>) -> SealCheck {
    match seal.cloned() {
        Some(seal) => Arc::new(move || seal.check()),
        None => Arc::new(|| Ok(())),
    }
}

fn search_path<'a>(command: &'a EntryCommand, inherited: Option<&'a OsStr>) -> Option<&'a OsStr> {
    command.path.as_deref().or(inherited)
}
