//! One entry: every field good, or the entry falls.

use pintle_domain::skill::finding::{FileRefusal, FindingCode};
use pintle_domain::skill::{Timing, Voice};

use super::{
    AgentView, HOOKS, Instead, MAX_KEYS_NAMED, ManifestEntry, ManifestPlace, Reader, finding, quoted, shown,
    twice_within,
};
use crate::skill::name;
use crate::tree::{NodeKind, TreeNode};
use pintle_domain::nearest::nearest;

/// The fields that every entry has, in the order in which they are named.
const REQUIRED: [&str; 5] = ["name", "file", "timing", "role", "persistent"];

/// Every field there is.
const KEYS: [&str; 6] = ["name", "file", "timing", "role", "persistent", FILTER];

/// The field that some entries have.
const FILTER: &str = "tool_filter";

/// Keys that a later version gives a meaning. They have none now.
pub(super) const RESERVED: [&str; 15] = [
    "priority",
    "on_duplicate",
    "when",
    "every",
    "first_after",
    "max_fires",
    "once_per",
    "cooldown",
    "max_tokens",
    "overflow",
    "required",
    "template",
    "position",
    "audience",
    "requires",
];

/// Longest name of a hook, in characters: it stands in listings and records.
const MAX_NAME_CHARS: usize = 128;

/// The words of both roles.
const ROLES: [&str; 2] = ["system", "user"];

/// What a field may hold.
#[derive(Clone, Copy)]
enum FieldType {
    Text,
    Switch,
}

/// A word that stands at a key.
struct MemberWord<'a> {
    key: &'a str,
    word: &'a str,
}

impl Reader<'_> {
    /// The entry with this number, if it is good. `names` are those of the entries before it.
    pub(super) fn entry(&mut self, number: usize, item: &TreeNode, names: &mut Vec<String>) -> Option<ManifestEntry> {
        let index = number.to_string();
        let at = NumberedEntry { number: &index, item };
        let whole = self.place(item.span.start, &[HOOKS, &index]);
        if !item.is_table() {
            let message = format!("an entry is to be an object, got {}", shown(item));
            self.say_instead(FindingCode::E1, &whole, message, Instead::of("an object", shown(item)));
            return None;
        }
        if let Some((member, steps)) = twice_within(item) {
            let steps: Vec<&str> = [HOOKS, &index].into_iter().chain(steps.iter().map(String::as_str)).collect();
            let place = self.place(member.span.start, &steps);
            self.say(
                FindingCode::F9,
                &place,
                format!("the key {} stands twice; the entry is skipped", quoted(&member.key)),
            );
            return None;
        }
        let before = self.errors();
        self.missing(&whole, item);
        let fields = self.fields(&at, names);
        let timing = fields.as_ref().and_then(|fields| fields.timing).or_else(|| timing_of(item));
        let filter = self.filter(&at, timing);
        self.unknown_keys(FindingCode::W4, item, &[HOOKS, &index], &KEYS);
        if self.errors() > before {
            return None;
        }
        let Fields { name, file, timing: Some(timing), role: Some(role), persistent } = fields? else { return None };
        let entry = ManifestEntry {
            name,
            file,
            timing,
            role,
            persistent,
            tool_filter: filter,
            name_at: self.of(&at, "name"),
            file_at: self.of(&at, "file"),
        };
        self.odd(&at, &entry);
        Some(entry)
    }

    fn errors(&self) -> usize {
        self.found.iter().filter(|found| found.severity == pintle_domain::skill::finding::Severity::Error).count()
    }

    fn missing(&mut self, whole: &ManifestPlace, item: &TreeNode) {
        let missing: Vec<&str> = REQUIRED.into_iter().filter(|key| item.get(key).is_none()).collect();
        if !missing.is_empty() {
            let names = missing.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ");
            let got = item.members().iter().map(|member| member.key.as_str()).take(MAX_KEYS_NAMED).collect::<Vec<_>>();
            let message = format!("the entry lacks {names}; it is skipped");
            self.say_instead(FindingCode::E2, whole, message, Instead::of(&missing.join(", "), got.join(", ")));
        }
    }

    /// The required fields, as far as they are there and have the right type. None if one of them has not.
    fn fields(&mut self, at: &NumberedEntry<'_>, names: &mut Vec<String>) -> Option<Fields> {
        let name = self.text(at, "name");
        let file = self.text(at, "file");
        let timing = self.text(at, "timing").and_then(|word| self.timing(at, &word));
        let role = self.text(at, "role").and_then(|word| self.role(at, &word));
        let persistent = self.field(at, "persistent", FieldType::Switch);
        if let Some(name) = &name {
            self.name(at, name, names);
        }
        if let Some(file) = &file {
            self.file(at, file);
        }
        let persistent = matches!(persistent?.kind, NodeKind::Bool(true));
        Some(Fields { name: name?, file: file?, timing, role, persistent })
    }

    /// The value of `key`, if it is there and of the type that is wanted.
    fn field<'n>(&mut self, at: &NumberedEntry<'n>, key: &str, wanted: FieldType) -> Option<&'n TreeNode> {
        let node = at.item.get(key)?;
        let expected = match (wanted, &node.kind) {
            (FieldType::Text, NodeKind::Text(_)) | (FieldType::Switch, NodeKind::Bool(_)) => return Some(node),
            (FieldType::Text, _) => "a string",
            (FieldType::Switch, _) => "true or false",
        };
        let message = format!("`{key}` is to be {expected}, got {}", shown(node));
        let place = self.of(at, key);
        self.say_instead(FindingCode::E3, &place, message, Instead::of(expected, shown(node)));
        None
    }

    fn text(&mut self, at: &NumberedEntry<'_>, key: &str) -> Option<String> {
        match &self.field(at, key, FieldType::Text)?.kind {
            NodeKind::Text(text) => Some(text.clone()),
            NodeKind::Null
            | NodeKind::Bool(_)
            | NodeKind::Number(_)
            | NodeKind::Foreign(_)
            | NodeKind::List(_)
            | NodeKind::Table(_) => None,
        }
    }

    fn name(&mut self, at: &NumberedEntry<'_>, name: &str, names: &mut Vec<String>) {
        let place = self.of(at, "name");
        let expected = "1 to 128 characters without control characters";
        if name.is_empty() || name.chars().count() > MAX_NAME_CHARS || name.chars().any(char::is_control) {
            let message = format!("`name` is to have {expected}, got {}", quoted(name));
            return self.say_instead(FindingCode::E4, &place, message, Instead::of(expected, quoted(name)));
        }
        if names.iter().any(|before| before == name) {
            let message = format!("the name {name:?} is taken by an entry before this one, which stays");
            return self.say_instead(FindingCode::E5, &place, message, Instead::of("a name of its own", quoted(name)));
        }
        names.push(name.to_owned());
    }

    fn file(&mut self, at: &NumberedEntry<'_>, file: &str) {
        let Err(why) = name::text(file) else { return };
        let place = self.of(at, "file");
        let message = format!("`file` is to name a `.md` file in `hooks/`; {} {why}", quoted(file));
        self.say_instead(
            FindingCode::E8,
            &place,
            message,
            Instead::of("the name of a .md file in hooks/", FileRefusal::Name.word().into()),
        );
    }

    fn timing(&mut self, at: &NumberedEntry<'_>, word: &str) -> Option<Timing> {
        let known = Timing::ALL.into_iter().find(|timing| timing.word() == word);
        if known.is_none() {
            self.unknown_word(FindingCode::E6, at, MemberWord { key: "timing", word }, &Timing::ALL.map(Timing::word));
        }
        known
    }

    fn role(&mut self, at: &NumberedEntry<'_>, word: &str) -> Option<Voice> {
        match word {
            "system" => Some(Voice::System),
            "user" => Some(Voice::User),
            _ => {
                self.unknown_word(FindingCode::E7, at, MemberWord { key: "role", word }, &ROLES);
                None
            }
        }
    }

    fn unknown_word(&mut self, code: FindingCode, at: &NumberedEntry<'_>, member: MemberWord<'_>, known: &[&str]) {
        let MemberWord { key, word } = member;
        let place = &self.of(at, key);
        let list = known.join(", ");
        let message = format!("there is no {key} {}; expected one of {list}", quoted(word));
        let mut found = finding(self.manifest_context, code, place, message).instead(list, quoted(word));
        found.nearest = nearest(word, known.iter().copied()).or_else(|| begun(word, known)).map(str::to_owned);
        self.found.push(found);
    }

    /// The tools that a hook is about. It counts only after tool calls; what cannot be read there is an error, because a
    /// hook without its filter would be about more than was meant.
    fn filter(&mut self, at: &NumberedEntry<'_>, timing: Option<Timing>) -> Vec<String> {
        let (Some(node), Some(timing)) = (at.item.get(FILTER), timing) else { return Vec::new() };
        let place = self.of(at, FILTER);
        if timing != Timing::AfterToolCall {
            let message =
                format!("`tool_filter` counts only at `after_tool_call`; it has no effect at `{}`", timing.word());
            self.say(FindingCode::W1, &place, message);
            return Vec::new();
        }
        match &node.kind {
            NodeKind::Null => {
                self.say(FindingCode::W3, &place, "`tool_filter` is null: the hook is about every tool".into())
            }
            NodeKind::List(items) if items.is_empty() => {
                self.say(FindingCode::W2, &place, "`tool_filter` is empty: the hook is about every tool".into());
            }
            NodeKind::List(items) => return self.filter_members(at, items),
            NodeKind::Bool(_) | NodeKind::Number(_) | NodeKind::Text(_) | NodeKind::Foreign(_) | NodeKind::Table(_) => {
                let message = format!("`tool_filter` is to be an array of names of tools, got {}", shown(node));
                self.say_instead(FindingCode::E9, &place, message, Instead::of("an array of strings", shown(node)));
            }
        }
        Vec::new()
    }

    fn filter_members(&mut self, at: &NumberedEntry<'_>, items: &[TreeNode]) -> Vec<String> {
        let mut names = Vec::new();
        for (number, item) in items.iter().enumerate() {
            match &item.kind {
                NodeKind::Text(name) if !name.is_empty() => names.push(name.clone()),
                NodeKind::Text(_)
                | NodeKind::Null
                | NodeKind::Bool(_)
                | NodeKind::Number(_)
                | NodeKind::Foreign(_)
                | NodeKind::List(_)
                | NodeKind::Table(_) => {
                    let place = self.place(item.span.start, &[HOOKS, at.number, FILTER, &number.to_string()]);
                    let message =
                        format!("`tool_filter` is to hold names of tools, got {}; the entry is skipped", shown(item));
                    self.say_instead(FindingCode::E9, &place, message, Instead::of("the name of a tool", shown(item)));
                    return Vec::new();
                }
            }
        }
        names
    }

    /// What is in order, and probably not meant.
    fn odd(&mut self, at: &NumberedEntry<'_>, entry: &ManifestEntry) {
        let persistent = self.of(at, "persistent");
        match (entry.persistent, entry.timing) {
            (true, Timing::BeforeEachAgent) => {
                let text = "a persistent text at `before_each_agent` grows with every round, in the conversation too";
                self.say(FindingCode::W6, &persistent, text.into());
            }
            (true, Timing::AfterToolCall) => {
                let text = "a persistent text at `after_tool_call` grows with every tool call, in the conversation too";
                self.say(FindingCode::W6, &persistent, text.into());
            }
            (true, Timing::BeforePlanning) => {
                let text = "a persistent text at `before_planning` stays visible after the planning call";
                self.say(FindingCode::W7, &persistent, text.into());
            }
            (true, Timing::AfterUserInput | Timing::BeforeFirstAgent)
            | (
                false,
                Timing::AfterUserInput
                | Timing::BeforePlanning
                | Timing::BeforeEachAgent
                | Timing::BeforeFirstAgent
                | Timing::AfterToolCall,
            ) => {}
        }
        if let Some(agent) = self.manifest_context.agent {
            self.odd_for(agent, at, entry);
        }
    }

    fn odd_for(&mut self, agent: AgentView<'_>, at: &NumberedEntry<'_>, entry: &ManifestEntry) {
        let unknown = entry.tool_filter.iter().enumerate().filter(|(_, name)| !(agent.knows)(name));
        for (number, tool) in unknown.take(MAX_KEYS_NAMED) {
            let node = at.item.get(FILTER).and_then(|filter| filter.step(&number.to_string()));
            let start = node.map_or(at.item.span.start, |(node, _)| node.span.start);
            let place = self.place(start, &[HOOKS, at.number, FILTER, &number.to_string()]);
            let message = format!("this agent has no tool {}; the hook waits for it in vain", quoted(tool));
            let mut found = finding(self.manifest_context, FindingCode::W9, &place, message)
                .instead(agent.tools.join(", "), quoted(tool));
            // A name that stands in the filter anyway is not the one that was meant.
            let others = agent.tools.iter().copied().filter(|other| !entry.tool_filter.iter().any(|it| it == other));
            found.nearest = nearest(tool, others).map(str::to_owned);
            self.found.push(found);
        }
        if entry.timing == Timing::BeforePlanning && !agent.plans {
            let place = self.of(at, "timing");
            let message = "this agent's flow is `direct`, which has no planning call: the text never goes in";
            self.say_instead(
                FindingCode::W10,
                &place,
                message.into(),
                Instead::of("flow = \"planned\"", "flow = \"direct\"".into()),
            );
        }
    }

    /// The place of a field, or of the entry if it is not there.
    fn of(&self, at: &NumberedEntry<'_>, key: &str) -> ManifestPlace {
        match at.item.get(key) {
            Some(node) => self.place(node.span.start, &[HOOKS, at.number, key]),
            None => self.place(at.item.span.start, &[HOOKS, at.number]),
        }
    }
}

/// An entry and its number.
struct NumberedEntry<'n> {
    number: &'n str,
    item: &'n TreeNode,
}

/// The required fields.
struct Fields {
    name: String,
    file: String,
    timing: Option<Timing>,
    role: Option<Voice>,
    persistent: bool,
}

/// The only one of `known` that begins with `word`: `after_tool` is the name of a checkpoint, and no timing.
fn begun<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let mut longer = known.iter().filter(|known| !word.is_empty() && known.starts_with(word));
    match (longer.next(), longer.next()) {
        (Some(only), None) => Some(only),
        (Some(_) | None, _) => None,
    }
}

/// The timing of an entry that is bad for another reason.
fn timing_of(item: &TreeNode) -> Option<Timing> {
    let NodeKind::Text(word) = &item.get("timing")?.kind else { return None };
    Timing::ALL.into_iter().find(|timing| timing.word() == word)
}
