//! One file: parsed, checked, and sorted into entries that are good, switched off, or bad.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use pintle_dialects::process::config::{Defaults, EntryContext, EntryProblem, MemberPart};
use pintle_domain::json::Value;

use super::check::check;
use super::diagnostic::{Diagnostic, dotted};
use super::document::{Document, NodeKind, TreeMember, TreeNode};
use super::found::{FoundConfig, OwnConfig, split};
use super::places;
use super::raw::{RawConfig, cached_schema};
use crate::error::HostError;

/// The keys of an entry, from the root.
pub(super) type EntryPath = Vec<String>;

/// The tables whose members are entries: each is loaded or refused whole.
pub(super) const ENTRY_TABLES: [&[&str]; 6] =
    [&["providers"], &["agents"], &["hooks", "builtins"], &["hooks", "processes"], CLAUDE_HOOKS, MCP_SERVERS];

/// The table of command hooks, each entry of which is the list of one event.
pub(super) const CLAUDE_HOOKS: &[&str] = &["hooks", "claude"];

/// The table of MCP servers.
pub(super) const MCP_SERVERS: &[&str] = &["mcp", "servers"];

/// The two tables of hooks.
pub(super) const HOOK_TABLES: [&str; 2] = ["builtins", "processes"];

/// One configuration file.
pub(super) struct Layer {
    /// The file, parsed.
    pub(super) document: Document,
    /// The folder that relative paths start from.
    pub(super) folder: PathBuf,
    /// Everything that is good and that any file may say, entries that are switched off left out.
    pub(super) raw: FoundConfig,
    /// The limits of hooks that do not set their own.
    pub(super) defaults: Defaults,
    /// The findings.
    pub(super) diagnostics: Vec<Diagnostic>,
    /// The entries that are not loaded, each with the first thing that is wrong with it.
    pub(super) bad: BTreeMap<EntryPath, Diagnostic>,
}

/// Members that a whole configuration of PicoClaw has and none of Pintle.
const PICOCLAW: [&str; 7] = ["model_list", "channels", "channel_list", "gateway", "heartbeat", "devices", "voice"];

/// How many of them make a file plainly one of PicoClaw's: one alone may be a slip of the pen.
const PLAINLY: usize = 2;

/// Whether `document` is a whole configuration of PicoClaw, of which only `hooks` are read here.
fn is_picoclaw(document: &Document) -> bool {
    document.root.members().iter().filter(|member| PICOCLAW.contains(&member.key.as_str())).count() >= PLAINLY
}

fn picoclaw_message(keys: usize) -> String {
    format!(
        "this is a whole configuration of PicoClaw: its `hooks` are read, and {keys} keys beside them say nothing here; \
         `pintle import picoclaw FILE` prints the hooks as a file of their own"
    )
}

impl Layer {
    /// Reads `file`, taken from `cwd`: what any file may say, and what counts only if it is the user's own.
    ///
    /// # Errors
    /// It is missing or does not parse.
    pub(super) fn read(file: &Path, cwd: &Path) -> Result<(Self, OwnConfig), HostError> {
        let bytes = places::read(&cwd.join(file))?;
        let absolute = cwd.join(file);
        let folder = absolute.parent().unwrap_or(cwd).to_owned();
        Self::parse(file, folder, &bytes)
    }

    /// Makes a layer of `bytes`, which `file` holds.
    ///
    /// # Errors
    /// They do not parse.
    pub(super) fn parse(file: &Path, folder: PathBuf, bytes: &[u8]) -> Result<(Self, OwnConfig), HostError> {
        let document = Document::parse(file, bytes).map_err(|why| HostError::usage(why.to_string()))?;
        let checked = check(&document, cached_schema());
        let mut layer = Self {
            document,
            folder,
            raw: FoundConfig::default(),
            defaults: Defaults::default(),
            diagnostics: Vec::new(),
            bad: BTreeMap::new(),
        };
        // A switched-off entry is only checked for keys: its values are of no consequence.
        let (counts, moot): (Vec<_>, Vec<_>) = checked
            .problems
            .into_iter()
            .partition(|problem| problem.at == MemberPart::Key || !layer.is_off(&problem.path));
        let mut dropped: BTreeSet<EntryPath> = moot.into_iter().map(|problem| problem.path).collect();
        dropped.extend(checked.absent);
        dropped.extend(counts.iter().map(|problem| problem.path.clone()));
        let (counts, foreign): (Vec<_>, Vec<_>) = match is_picoclaw(&layer.document) {
            true => counts.into_iter().partition(|problem| problem.path.first().is_some_and(|key| key == "hooks")),
            false => (counts, Vec::new()),
        };
        if !foreign.is_empty() {
            // Its `agents` and `tools` have other members: none of them is half read.
            let others = layer.document.root.members().iter().filter(|member| member.key != "hooks");
            dropped.extend(others.map(|member| vec![member.key.clone()]));
        }
        for problem in counts {
            layer.report(problem);
        }
        if let Some(first) = foreign.first() {
            layer.remark(EntryProblem { message: picoclaw_message(foreign.len()), nearest: None, ..first.clone() });
        }
        let (raw, own) = split(layer.decode(&dropped)?);
        layer.raw = raw;
        layer.read_defaults();
        Ok((layer, own))
    }

    fn decode(&self, dropped: &BTreeSet<EntryPath>) -> Result<RawConfig, HostError> {
        let drop = |path: &[String]| self.bad.contains_key(path) || dropped.contains(path) || self.is_off(path);
        let value = self.document.root.to_value(&mut Vec::new(), &drop);
        // The schema has seen every key and every type, so this is a disagreement between it and the reader.
        pintle_domain::json::from_value(value)
            .map_err(|why| HostError::usage(format!("{}: cannot be read: {why}", self.document.file.display())))
    }

    fn read_defaults(&mut self) {
        let raw = self.raw.hooks.defaults.clone().unwrap_or_default();
        let (defaults, problems) = Defaults::read(&raw);
        self.defaults = defaults;
        for problem in problems {
            self.report(problem.under(&["hooks", "defaults"]));
        }
    }

    /// Adds a diagnostic; the entry that it is about, if any, is then bad.
    pub(super) fn report(&mut self, problem: EntryProblem) {
        let entry = entry_of(&problem.path);
        let place = self.document.place(&problem.path, problem.at);
        let guard = problem.path.first().is_some_and(|section| section == "hooks") && !self.is_off(&problem.path);
        let diagnostic = Diagnostic {
            place,
            path: dotted(&problem.path),
            message: problem.message,
            nearest: problem.nearest,
            guard,
        };
        if let Some(entry) = entry {
            self.bad.entry(entry).or_insert_with(|| diagnostic.clone());
        }
        self.diagnostics.push(diagnostic);
    }

    /// Adds a diagnostic about a guard that stands at `path`, where none is read.
    pub(super) fn report_guard(&mut self, path: &[String], message: String) {
        let place = self.document.place(path, MemberPart::Key);
        self.diagnostics.push(Diagnostic { place, path: dotted(path), message, nearest: None, guard: true });
    }

    /// Adds a diagnostic that leaves the entry in force.
    pub(super) fn remark(&mut self, problem: EntryProblem) {
        let bad = self.bad.clone();
        self.report(problem);
        self.bad = bad;
    }

    /// Forgets what is wrong with entries for which `drop` says so of their path: they are left out anyway.
    pub(super) fn forget(&mut self, drop: impl Fn(&str) -> bool) {
        self.diagnostics.retain(|diagnostic| !drop(&diagnostic.path));
    }

    /// The members of a table of entries, the first of two that have the same name.
    pub(super) fn entries(&self, table: &[&str]) -> Vec<&TreeMember> {
        let mut seen = BTreeSet::new();
        let members = self.document.root.at(table).map_or(&[][..], TreeNode::members);
        let there = members.iter().filter(|member| !matches!(member.node.kind, NodeKind::Null));
        there.filter(|member| seen.insert(&member.key)).collect()
    }

    /// Where an entry stands, for the reader of hooks.
    pub(super) fn around<'a>(&'a self, name: &'a str, origin: &'a str) -> EntryContext<'a> {
        EntryContext { name, origin, folder: &self.folder, defaults: self.defaults }
    }

    /// The place of an entry, as text.
    pub(super) fn origin(&self, path: &[String]) -> String {
        self.document.place(path, MemberPart::Key).to_string()
    }

    /// Whether the entry that `path` leads into is switched off: a hook by itself or with its whole file, an MCP server
    /// by itself.
    pub(super) fn is_off(&self, path: &[String]) -> bool {
        let [section, table, name, ..] = path else { return false };
        if [section.as_str(), table.as_str()] == *MCP_SERVERS {
            let enabled = self.document.root.at(&["mcp", "servers", name, "enabled"]);
            return enabled.is_some_and(|enabled| matches!(enabled.kind, NodeKind::Bool(false)));
        }
        let root = &self.document.root;
        let whole = root.at(&["hooks", "enabled"]).is_some_and(|enabled| matches!(enabled.kind, NodeKind::Bool(false)));
        if [section.as_str(), table.as_str()] == *CLAUDE_HOOKS {
            return whole;
        }
        if section != "hooks" || !HOOK_TABLES.contains(&table.as_str()) {
            return false;
        }
        let entry = root.at(&["hooks", table, name]);
        whole || entry.is_some_and(|entry| matches!(entry.kind, NodeKind::Table(_)) && off(entry.get("enabled")))
    }

    /// The JSON of the entry at `path`.
    pub(super) fn value(&self, path: &[&str]) -> Value {
        self.document.root.at(path).map_or(Value::Null, TreeNode::to_json)
    }
}

/// `enabled` defaults to false. A value that is no boolean does not switch a guard off.
pub(super) fn off(enabled: Option<&TreeNode>) -> bool {
    enabled.is_none_or(|enabled| matches!(enabled.kind, NodeKind::Bool(false) | NodeKind::Null))
}

/// The entry that `path` leads to or into.
pub(super) fn entry_of(path: &[String]) -> Option<EntryPath> {
    let table =
        ENTRY_TABLES.iter().find(|table| path.iter().zip(**table).filter(|(a, b)| a == b).count() == table.len())?;
    path.get(..=table.len()).map(<[String]>::to_vec)
}

/// `table` and `name` as one path.
pub(super) fn entry_path(table: &[&str], name: &str) -> EntryPath {
    table.iter().copied().chain([name]).map(str::to_owned).collect()
}
