//! How far a file that was merely found is trusted: entry by entry, by content.
//!
//! [`covers`] says what an entry is made of: its own text in normal form, the program that it runs, and the files
//! that its command names or may mean and that the user can write. [`TrustStore`] keeps what was accepted. A [`SpawnSeal`]
//! checks it once more before every spawn. Files that those files import are not covered; [`unread`] says where a command
//! may run more.

mod acceptance;
mod coverage;
mod file;
mod meant;
mod skills;
mod stamps;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use pintle_domain::fault::Fault;
use pintle_domain::json::{Object, Value, json};
use pintle_process::hook::{SpawnCheck, StillSame, unchecked};

pub(super) use self::acceptance::{Acceptance, AcceptedSkills};
pub use self::coverage::{Coverage, CoveredPart, CoveredPlace, FileHashes, PlaceKind, covers, covers_by};
pub use self::file::{AcceptedEntry, TrustStore};
pub use self::meant::unread;
use self::skills::FoundSkills;
pub(crate) use self::skills::leads_out;
pub(super) use self::skills::{SKILLS, path_of};
pub use self::stamps::FileStamps;
use super::commands::rule_files;
use super::diagnostic::dotted;
use super::layer::{CLAUDE_HOOKS, ENTRY_TABLES, Layer, MCP_SERVERS, entry_path};
use super::places::Env;
use super::{LoadOptions, found, places};
use crate::error::HostError;
use crate::rule_files::folder::text_of;
use crate::rule_files::{RecordsFile, RuleFolder};

/// The words for an entry whose content is not the one that was accepted.
pub(super) const CHANGED: &str = pintle_domain::fault::CHANGED;

/// The sections that are trusted whole, as far as something in them can count.
pub(super) const SECTIONS: [&str; 10] =
    ["audit", "store", "tools", "agent_hooks", "gateway", "background", "skills", "telemetry", "doors", "guard"];

/// Something in a file that is accepted or not.
#[derive(Clone, Debug, PartialEq)]
pub struct TrustEntry {
    /// The keys that lead to it, with dots.
    pub path: String,
    /// The value that is written there, together with what else of the file decides what it does.
    pub value: Value,
    /// The command that it runs, if it runs something.
    pub command: Option<EntryCommand>,
    /// Where else it leads: what is there is accepted with it.
    pub places: Vec<CoveredPlace>,
}

/// The command that an entry runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryCommand {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// The texts in which a shell or a program finds further files to run: these may name them in any way.
    pub texts: Vec<String>,
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
    /// Its keys that never count in a file that was found.
    pub never: Vec<String>,
    /// What it names and what is not loaded, each with the reason.
    pub refused: Vec<String>,
    search_path: Option<OsString>,
}

/// Looks at the file that is found nearest, or at the one that is named.
///
/// # Errors
/// There is none, it is a link or does not parse, or what was accepted cannot be read.
pub fn survey(env: &Env, options: &LoadOptions<'_>, named: Option<&Path>) -> Result<Survey, HostError> {
    let file = surveyed(env, named)?;
    let store = TrustStore::open(&env.home(options.home)?)?;
    let (layer, _) = Layer::read(&file, &env.cwd)?;
    let search_path = env.vars.get("PATH").cloned();
    let own = places::own_file(env)?.and_then(|file| Layer::read(&file, &env.cwd).ok());
    let own_dir = own.and_then(|(own, _)| own.raw.skills_dir.map(|dir| own.folder.join(dir)));
    let skills = FoundSkills::of(&layer, own_dir.as_deref(), true);
    let entries = entries(&layer).into_iter().chain(skills.entries());
    let mut hashes = FileHashes::default();
    let entries = entries
        .map(|entry| {
            let standing = store.check(&file, &entry, (search_path.as_deref(), &mut hashes));
            (entry, standing)
        })
        .collect();
    let refused = refused(&layer, &skills);
    Ok(Survey { file, entries, never: found::never_counting(&layer.document.root), refused, search_path })
}

/// The file to look at, by the real path of its folder.
fn surveyed(env: &Env, named: Option<&Path>) -> Result<PathBuf, HostError> {
    let none = || HostError::usage("there is no pintle.toml or pintle.json in this folder or above");
    let in_folder = |found: places::FolderFiles| {
        let (files, link) = (found.files.clone(), found.links.first().cloned());
        match files.as_slice() {
            [first, second] => {
                Err(places::both(first, second).hint("keep one of them, or name one: `pintle trust FILE`"))
            }
            _ => Ok(files.first().cloned().or(link)),
        }
    };
    let file = match named.map(|named| env.cwd.join(named)) {
        Some(folder) if folder.is_dir() => {
            let real = folder.canonicalize().unwrap_or(folder);
            in_folder(places::files_of(&real)?)?
        }
        Some(file) => {
            let folder = file.parent().and_then(|folder| folder.canonicalize().ok());
            Some(folder.zip(file.file_name()).map_or(file.clone(), |(folder, name)| folder.join(name)))
        }
        None => places::found(env, None)?.into_iter().next().map(in_folder).transpose()?.flatten(),
    };
    let file = file.ok_or_else(none)?;
    if file.symlink_metadata().is_ok_and(|of| of.is_symlink()) {
        let target = file.canonicalize().unwrap_or_default();
        let message = format!("{} is a link to {}, and a found link never counts", file.display(), target.display());
        return Err(HostError::usage(message).hint("put the file itself there, or name it where it is used: `-c FILE`"));
    }
    Ok(file)
}

/// What `layer` names and what is not loaded, since it leads out of the folder or is not a skill that anybody could accept.
pub(super) fn refused(layer: &Layer, skills: &FoundSkills) -> Vec<String> {
    let rules = layer.raw.rules_dir.as_ref().map(|dir| RuleFolder::found(layer.folder.join(dir), &layer.folder));
    let rules = rules.map(|rules| rules.refused()).unwrap_or_default();
    let skills = skills.skills.iter().filter_map(|(name, seal)| Some((name, seal.as_ref().err()?)));
    rules.into_iter().chain(skills.map(|(name, why)| format!("the skill `{name}` {why}"))).collect()
}

/// Accepts everything in `survey` as it was shown; what was accepted of that file before is forgotten.
///
/// # Errors
/// The home folder cannot be written.
pub fn accept(home: &Path, survey: &Survey) -> Result<(), HostError> {
    let mut store = TrustStore::open(home)?;
    let mut hashes = FileHashes::default();
    let accepted = survey.entries.iter().map(|(entry, _)| {
        let coverage = covers_by(entry, survey.search_path.as_deref(), &mut hashes);
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
                ["hooks", "processes"] => process_entry(path, written, layer),
                CLAUDE_HOOKS => command_entry(path, written, layer),
                MCP_SERVERS => {
                    let command = written.get("command").is_some().then(|| command(&written, layer));
                    let dir = command.iter().map(|command| CoveredPlace::new(PlaceKind::Dir, command.dir.clone()));
                    TrustEntry { path, places: dir.collect(), value: written, command }
                }
                ["hooks", _] => {
                    TrustEntry { path, value: hook_value(written, layer), command: None, places: Vec::new() }
                }
                _ => TrustEntry { path, places: places_of(&written, layer), value: written, command: None },
            };
            found.push(entry);
        }
    }
    let whole =
        |path: &str, value: Value| TrustEntry { path: path.to_owned(), value, command: None, places: Vec::new() };
    for section in SECTIONS.into_iter().filter(|section| found::can_count(section)) {
        if layer.document.root.get(section).is_some() {
            let mut value = layer.value(&[section]);
            if section == RULES {
                cover_files(&mut value, layer);
            }
            found.push(whole(section, value));
        }
    }
    if layer.document.root.get("hooks").is_some() {
        found.push(whole("hooks", settings(layer)));
    }
    found
}

/// The process hook at `path` of `layer`, where `written` stands.
pub(super) fn process_entry(path: String, written: Value, layer: &Layer) -> TrustEntry {
    let mut command = command(&written, layer);
    // The text of a shell also has files that it works on, and such a hook lives on while these change.
    let is_shell = command.argv.iter().any(|word| word == "-c");
    command.texts = (!is_shell).then(|| command.argv.join(" ")).into_iter().collect();
    let places = vec![CoveredPlace::new(PlaceKind::Dir, command.dir.clone())];
    TrustEntry { path, value: hook_value(written, layer), command: Some(command), places }
}

/// The list of commands of one event at `path` of `layer`, where `written` stands: with the files that they name.
pub(super) fn command_entry(path: String, written: Value, layer: &Layer) -> TrustEntry {
    let (argv, texts) = (words(&written, &layer.folder), texts(&written));
    let command = EntryCommand { argv, texts, dir: layer.folder.clone(), path: None };
    TrustEntry { path, value: hook_value(written, layer), command: Some(command), places: Vec::new() }
}

/// The list of commands of one event that was adopted from the settings of an agent that works in `folder`.
pub(super) fn adopted_entry(list: &Value, folder: &Path) -> TrustEntry {
    // Whoever starts the daemon may have another `PATH`, and that changes nothing of what was adopted.
    let path = Some(OsString::from("/bin:/usr/bin"));
    let command = EntryCommand { argv: words(list, folder), texts: texts(list), dir: folder.to_owned(), path };
    TrustEntry { path: "adopted".to_owned(), value: list.clone(), command: Some(command), places: Vec::new() }
}

/// The words of the commands of a list, those of shell texts as far as blanks and quotes part them, with `project` in the
/// place of the variable that stands for it.
fn words(list: &Value, project: &Path) -> Vec<String> {
    let groups = list.as_array().map(Vec::as_slice).unwrap_or_default();
    let commands = groups.iter().filter_map(|group| group.get("hooks")?.as_array()).flatten();
    let mut words = vec!["sh".to_owned()];
    for command in commands {
        let text = command.get("command").and_then(Value::as_str).unwrap_or_default();
        match command.get("args").and_then(Value::as_array) {
            Some(args) => {
                words.push(text.to_owned());
                words.extend(args.iter().filter_map(Value::as_str).map(str::to_owned));
            }
            None => words.extend(shell_words(&meant::without_targets(text))),
        }
    }
    let project = project.to_string_lossy();
    words.iter().map(|word| PROJECT.iter().fold(word.clone(), |word, name| word.replace(name, &project))).collect()
}

/// The commands of a list, each as one text.
fn texts(list: &Value) -> Vec<String> {
    let groups = list.as_array().map(Vec::as_slice).unwrap_or_default();
    let commands = groups.iter().filter_map(|group| group.get("hooks")?.as_array()).flatten();
    commands.map(command_text).collect()
}

/// One entry of a list of commands as a text: its command, and its arguments where it has some.
pub fn command_text(command: &Value) -> String {
    let args = command.get("args").and_then(Value::as_array).into_iter().flatten();
    let words = command.get("command").into_iter().chain(args).filter_map(Value::as_str);
    words.collect::<Vec<_>>().join(" ")
}

/// How shell texts name the folder of the project.
const PROJECT: [&str; 2] = ["${CLAUDE_PROJECT_DIR}", "$CLAUDE_PROJECT_DIR"];

/// The words of a shell text: enough to find the files that it names.
fn shell_words(text: &str) -> impl Iterator<Item = String> {
    let parts = text.split(|c: char| c.is_whitespace() || ";|&()<>=".contains(c));
    parts.map(|word| word.replace(['"', '\''], "")).filter(|word| !word.is_empty())
}

/// The workspace of an agent, the file of a scripted provider: where these lead is part of what is accepted.
fn places_of(written: &Value, layer: &Layer) -> Vec<CoveredPlace> {
    let at = |key: &str, kind| {
        let path = written.get(key).and_then(Value::as_str)?;
        Some(CoveredPlace::new(kind, layer.folder.join(path)))
    };
    at("workspace", PlaceKind::Workspace).into_iter().chain(at("script", PlaceKind::Script)).collect()
}

/// The section that names files with rules: what stands in these counts, not only where they are.
const RULES: &str = "agent_hooks";

/// Lays the files with rules beside the section that names their folder.
fn cover_files(section: &mut Value, layer: &Layer) {
    let Some(dir) = section.get("dir").and_then(Value::as_str) else { return };
    let files = RuleFolder::found(layer.folder.join(dir), &layer.folder).files().unwrap_or_default();
    let read = |path: &std::path::PathBuf| {
        let name = path.file_name()?.to_string_lossy().into_owned();
        Some((name, Value::from(text_of(path))))
    };
    let contents: Object = files.iter().filter_map(read).collect();
    let scripts: Object = files.iter().flat_map(|file| scripts(file, layer)).collect();
    if let Some(members) = section.as_object_mut() {
        members.insert("files".to_owned(), Value::Object(contents));
        if !scripts.is_empty() {
            members.insert("scripts".to_owned(), Value::Object(scripts));
        }
    }
}

/// The files below the folder of `layer` that the commands of the rules in `file` run, each with its digest.
fn scripts(file: &Path, layer: &Layer) -> Vec<(String, Value)> {
    // A pipe has no end to wait for.
    if !file.is_file() {
        return Vec::new();
    }
    let folder = file.parent().unwrap_or(&layer.folder);
    let records = RecordsFile::open(file).map(|records| records.all().to_vec()).unwrap_or_default();
    let mut hashes = FileHashes::default();
    let configs = records.into_iter().filter_map(|record| record.get("config")?.as_object().cloned());
    let named = configs.flat_map(|config| rule_files(config, folder));
    let own = named.filter(|path| path.starts_with(&layer.folder));
    own.map(|path| (path.display().to_string(), Value::from(hashes.of(&path)))).collect()
}

/// The settings that all hooks of a file share.
fn settings(layer: &Layer) -> Value {
    let keep = ["enabled", "strict_start", "defaults"];
    // Only these: the section has all hooks besides, and each of them asks.
    let kept = keep.iter().filter_map(|key| {
        let written = layer.document.root.at(&["hooks", key])?;
        Some(((*key).to_owned(), written.to_json()))
    });
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
    matches!(fault, Fault::CannotStart { cause } if *cause == *CHANGED)
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
        texts: Vec::new(),
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
    fn new(entry: TrustEntry, digest: String, search_path: Option<OsString>) -> Self {
        Self { entry, digest, search_path }
    }

    /// The seal of what was adopted when its digest was `digest`.
    pub(super) fn of_adopted(entry: TrustEntry, digest: String) -> Self {
        Self::new(entry, digest, None)
    }

    /// The digest of what was accepted.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Whether the entry still is what was accepted; the files that were read for that, to be looked at once more when
    /// the child has read them.
    ///
    /// # Errors
    /// The detail of the fault that it is otherwise.
    pub fn check(&self) -> Result<FileStamps, String> {
        let mut hashes = FileHashes::default();
        let now = covers_by(&self.entry, self.search_path.as_deref(), &mut hashes);
        if now.is(&self.digest) { Ok(hashes.stamps) } else { Err(CHANGED.to_owned()) }
    }
}

/// The check before every spawn; a hook that is trusted for its place has nothing to check.
pub fn before_spawn(seal: Option<&SpawnSeal>) -> SpawnCheck {
    match seal.cloned() {
        Some(seal) => Arc::new(move || {
            let stamps = seal.check()?;
            let still_same: StillSame = Box::new(move || stamps.check());
            Ok(still_same)
        }),
        None => unchecked(),
    }
}

fn search_path<'a>(command: &'a EntryCommand, inherited: Option<&'a OsStr>) -> Option<&'a OsStr> {
    command.path.as_deref().or(inherited)
}
