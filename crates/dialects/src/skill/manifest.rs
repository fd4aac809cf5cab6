//! `hooks.json`: which texts of a skill go in when, and everything that can be wrong with that.
//!
//! A fault costs the smallest unit that holds it, and is never silent: an entry falls alone, and only a file that cannot
//! be read as a whole has no hooks at all.

mod entry;

use std::path::Path;

use pintle_domain::skill::finding::{Finding, FindingCode};
use pintle_domain::skill::{Timing, Voice};

use crate::tree::{LineIndex, NodeKind, TreeMember, TreeNode, json};
use pintle_domain::nearest::nearest;

/// Largest manifest, in bytes: room for as many entries as there may be, with long names and filters.
pub const MAX_MANIFEST_BYTES: usize = 256 << 10;

/// Most entries of one manifest: far more texts than a conversation can carry.
pub const MAX_ENTRIES: usize = 256;

/// Most keys of one object that are named one by one: whoever has more has another kind of file.
const MAX_KEYS_NAMED: usize = 16;

/// How much of a wrong value is repeated, in characters.
const SHOWN_CHARS: usize = 60;

/// The keys of the root: the hooks, and three that only people and editors read.
const ROOT_KEYS: [&str; 4] = [HOOKS, "description", "version", "$schema"];

/// The key of the array.
const HOOKS: &str = "hooks";

/// What a manifest is read against.
#[derive(Clone, Copy)]
pub struct ManifestContext<'a> {
    /// The skill.
    pub skill: &'a str,
    /// The manifest, as it is shown.
    pub file: &'a Path,
    /// The agent whose hooks they are to be; none where nobody says.
    pub agent: Option<AgentView<'a>>,
}

/// What is known of the agent that enables a skill.
#[derive(Clone, Copy)]
pub struct AgentView<'a> {
    /// Whether it may call a tool of this name.
    pub knows: &'a dyn Fn(&str) -> bool,
    /// The names of its tools, to guess what was meant.
    pub tools: &'a [&'a str],
    /// Whether its turns have a planning call.
    pub plans: bool,
}

/// What a manifest says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    /// The good entries, in the order of the file.
    pub entries: Vec<ManifestEntry>,
    /// What is wrong.
    pub findings: Vec<Finding>,
    /// Whether the file as a whole cannot be read: then an earlier state of it may be better than none.
    pub broken: bool,
}

/// An entry whose every field is good. Its text is not read yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestEntry {
    /// Its name.
    pub name: String,
    /// The name of the file with its text.
    pub file: String,
    /// When it goes in.
    pub timing: Timing,
    /// Who seems to say it.
    pub role: Voice,
    /// Whether it stays.
    pub persistent: bool,
    /// The tools it is about; every tool when empty.
    pub tool_filter: Vec<String>,
    /// Where `name` stands.
    pub name_at: ManifestPlace,
    /// Where `file` stands.
    pub file_at: ManifestPlace,
}

/// A place in a manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestPlace {
    /// Line and column, from 1.
    pub at: (usize, usize),
    /// The same as a JSON pointer.
    pub pointer: String,
}

/// What is said of a text that is not JSON, with what people put there who know its laxer kin.
fn not_json(why: &str) -> String {
    let lax = matches!(why, "expected value" | "key must be a string" | "trailing comma");
    let hint = if lax { " (no comments, no trailing commas, strings in double quotes)" } else { "" };
    format!("it is not JSON: {why}{hint}")
}

/// Reads the manifest that `bytes` are.
pub fn read(manifest_context: ManifestContext<'_>, bytes: &[u8]) -> Manifest {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let lossy = String::from_utf8_lossy(bytes);
    let mut reader = Reader { manifest_context, lines: LineIndex::new(&lossy), found: Vec::new() };
    let parsed = match std::str::from_utf8(bytes) {
        Ok(text) => json::parse(text).map_err(|why| (why.at, not_json(&why.message))),
        Err(why) => Err((why.valid_up_to(), "it is not valid UTF-8".to_owned())),
    };
    let entries = match parsed {
        Ok(root) => reader.root(&root),
        Err((at, message)) => {
            let place = ManifestPlace { at: reader.lines.place(at), pointer: String::new() };
            reader.say(FindingCode::F3, &place, message);
            None
        }
    };
    let broken = entries.is_none();
    Manifest { entries: entries.unwrap_or_default(), findings: reader.found, broken }
}

/// A finding with its place.
pub fn finding(
    manifest_context: ManifestContext<'_>,
    code: FindingCode,
    place: &ManifestPlace,
    message: impl Into<String>,
) -> Finding {
    let found = Finding::new(code, manifest_context.skill, message).of(manifest_context.file).at(place.at);
    Finding { path: place.pointer.clone(), ..found }
}

/// Reads one manifest.
struct Reader<'a> {
    manifest_context: ManifestContext<'a>,
    lines: LineIndex,
    found: Vec<Finding>,
}

impl Reader<'_> {
    /// The entries; none if the whole file cannot be read.
    fn root(&mut self, root: &TreeNode) -> Option<Vec<ManifestEntry>> {
        let whole = self.place(root.span.start, &[]);
        if !root.is_table() {
            let message = format!("expected an object with an array `hooks`, got {}", shown(root));
            self.say_instead(FindingCode::F4, &whole, message, Instead::of("an object", shown(root)));
            return None;
        }
        if let Some(twice) = first_twice(root.members()) {
            let place = self.place(twice.span.start, &[&twice.key]);
            self.say(FindingCode::F9, &place, format!("the key {} stands twice", quoted(&twice.key)));
            return None;
        }
        let Some(hooks) = root.get(HOOKS) else {
            let mut found = finding(self.manifest_context, FindingCode::F4, &whole, "there is no array `hooks`");
            let keys = root.members().iter().map(|member| member.key.as_str());
            found = found.instead("an array `hooks`", "no `hooks`");
            if let Some(meant) = nearest(HOOKS, keys) {
                found.message = format!("there is no array `hooks`, but {meant:?}");
            }
            self.found.push(found);
            return None;
        };
        let place = self.place(hooks.span.start, &[HOOKS]);
        let entries = match &hooks.kind {
            NodeKind::List(items) => self.entries(items),
            NodeKind::Table(_) => {
                let message = "`hooks` is an object: this is a manifest of another kind of hooks, keyed by events \
                    (`foreign_manifest`); it brings no texts, and nothing of it runs here";
                self.say_instead(
                    FindingCode::F5,
                    &place,
                    message.to_owned(),
                    Instead::of("an array", "an object".into()),
                );
                Vec::new()
            }
            NodeKind::Null | NodeKind::Bool(_) | NodeKind::Number(_) | NodeKind::Text(_) | NodeKind::Foreign(_) => {
                let message = format!("`hooks` is to be an array, got {}", shown(hooks));
                self.say_instead(FindingCode::F4, &place, message, Instead::of("an array", shown(hooks)));
                return None;
            }
        };
        self.unknown_keys(FindingCode::F7, root, &[], &ROOT_KEYS);
        Some(entries)
    }

    fn entries(&mut self, items: &[TreeNode]) -> Vec<ManifestEntry> {
        let mut names = Vec::new();
        let mut entries = Vec::new();
        for (number, item) in items.iter().enumerate().take(MAX_ENTRIES) {
            entries.extend(self.entry(number, item, &mut names));
        }
        if let Some(surplus) = items.get(MAX_ENTRIES) {
            let place = self.place(surplus.span.start, &[HOOKS, &MAX_ENTRIES.to_string()]);
            let message =
                format!("at most {MAX_ENTRIES} entries count, got {}; those from here on do not", items.len());
            self.say_instead(
                FindingCode::F8,
                &place,
                message,
                Instead::of(&format!("{MAX_ENTRIES} entries"), items.len().to_string()),
            );
        }
        entries
    }

    /// Says which keys of `table` nobody knows.
    fn unknown_keys(&mut self, code: FindingCode, table: &TreeNode, path: &[&str], known: &[&str]) {
        let unknown: Vec<&TreeMember> =
            table.members().iter().filter(|member| !known.contains(&member.key.as_str())).collect();
        for (number, member) in unknown.iter().take(MAX_KEYS_NAMED).enumerate() {
            let steps: Vec<&str> = path.iter().copied().chain([member.key.as_str()]).collect();
            let place = self.place(member.span.start, &steps);
            let reserved = code == FindingCode::W4 && entry::RESERVED.contains(&member.key.as_str());
            let what =
                if reserved { "is reserved for later and has no effect yet" } else { "is unknown and has no effect" };
            let mut message = format!("the key {} {what}", quoted(&member.key));
            let rest = unknown.len() - MAX_KEYS_NAMED.min(unknown.len());
            if number + 1 == MAX_KEYS_NAMED && rest > 0 {
                message = format!("{message}; nor have {rest} further unknown keys");
            }
            let mut found = finding(self.manifest_context, code, &place, message);
            found = found.instead(known.join(", "), member.key.chars().take(SHOWN_CHARS).collect::<String>());
            found.nearest = nearest(&member.key, known.iter().copied()).filter(|_| !reserved).map(str::to_owned);
            self.found.push(found);
        }
    }

    fn place(&self, at: usize, steps: &[&str]) -> ManifestPlace {
        let pointer = steps.iter().map(|step| format!("/{}", step.replace('~', "~0").replace('/', "~1"))).collect();
        ManifestPlace { at: self.lines.place(at), pointer }
    }

    fn say(&mut self, code: FindingCode, place: &ManifestPlace, message: String) {
        self.found.push(finding(self.manifest_context, code, place, message));
    }

    fn say_instead(&mut self, code: FindingCode, place: &ManifestPlace, message: String, instead: Instead<'_>) {
        let Instead { expected, got } = instead;
        self.found.push(finding(self.manifest_context, code, place, message).instead(expected, got));
    }
}

/// What stands at a place, and what was expected there.
struct Instead<'a> {
    expected: &'a str,
    got: String,
}

impl<'a> Instead<'a> {
    fn of(expected: &'a str, got: String) -> Self {
        Self { expected, got }
    }
}

/// The first member of a table whose key another one before it has.
fn first_twice(members: &[TreeMember]) -> Option<&TreeMember> {
    let mut seen = std::collections::BTreeSet::new();
    members.iter().find(|member| !seen.insert(member.key.as_str()))
}

/// The first key, at any depth of `node`, that stands twice in its table, and the steps that lead to it.
fn twice_within(node: &TreeNode) -> Option<(&TreeMember, Vec<String>)> {
    let with = |step: String, found: (_, Vec<String>)| (found.0, std::iter::once(step).chain(found.1).collect());
    match &node.kind {
        NodeKind::Table(members) => {
            let own = first_twice(members).map(|member| (member, vec![member.key.clone()]));
            own.or_else(|| members.iter().find_map(|of| Some(with(of.key.clone(), twice_within(&of.node)?))))
        }
        NodeKind::List(items) => {
            items.iter().enumerate().find_map(|(number, item)| Some(with(number.to_string(), twice_within(item)?)))
        }
        NodeKind::Null | NodeKind::Bool(_) | NodeKind::Number(_) | NodeKind::Text(_) | NodeKind::Foreign(_) => None,
    }
}

/// What stands there, short enough for a message.
fn shown(node: &TreeNode) -> String {
    match &node.kind {
        NodeKind::Null => "null".into(),
        NodeKind::Bool(value) => value.to_string(),
        NodeKind::Number(number) => number.to_string().chars().take(SHOWN_CHARS).collect(),
        NodeKind::Text(text) | NodeKind::Foreign(text) => quoted(text),
        NodeKind::List(_) => "an array".into(),
        NodeKind::Table(_) => "an object".into(),
    }
}

/// A text in quotes, cut if it is long.
fn quoted(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{:?} and more", &text[..end]),
        None => format!("{text:?}"),
    }
}

#[cfg(test)]
mod tests;
