//! What a command answered: by its exit code, its output, or not at all.
//!
//! Whatever looks like a refusal is one. Whatever cannot be read, or says a word that nobody knows, is a fault and never an
//! answer that lets pass.

use std::time::Duration;

use pintle_domain::fault::{Cause, Direction, Fault};
use pintle_domain::json::{self, NotAlike, Object, Value};
use pintle_domain::nearest::nearest;

use super::event::ClaudeEvent;

/// Longest text for the model, in characters. Source: where the agent whose wire it is cuts.
pub const MAX_CONTEXT_CHARS: usize = 10_000;

/// The exit code that refuses.
const REFUSES: i32 = 2;

/// Longest part of standard error that is kept of a fault, in characters from its end: a short stack trace.
const MAX_LAST_WORDS: usize = 2_000;

/// How much of an output that cannot be read is named, in characters: enough to know the line that printed it.
const HEAD_CHARS: usize = 40;

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommandStop {
    /// With this code.
    Exit(i32),
    /// By this signal.
    Signal(i32),
    /// It was ended after this time.
    TimedOut(Duration),
    /// The turn ended before.
    Cancelled,
    /// It wrote more than this many bytes.
    TooMuch(usize),
    /// It never ran.
    CannotStart(String),
}

/// A command that is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandOutput<'a> {
    /// How it ended.
    pub stop: CommandStop,
    /// What it wrote to standard output until then.
    pub stdout: &'a [u8],
    /// What it wrote to standard error until then.
    pub stderr: &'a [u8],
}

/// What a command decided.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum CommandDecision {
    /// Nothing stands against it.
    #[default]
    Allow,
    /// A person must say.
    Ask(String),
    /// No.
    Deny(String),
    /// No, and the turn ends.
    Stop(String),
}

/// What a command answered.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CommandAnswer {
    /// What it decided.
    pub decision: CommandDecision,
    /// All arguments that it wants instead, in the words that it was told.
    pub updated_input: Option<Object>,
    /// The result that it wants instead.
    pub updated_output: Option<String>,
    /// A text for the model.
    pub context: Option<String>,
    /// A text for the person.
    pub message: Option<String>,
    /// What of it was dropped, and likely mistakes.
    pub warnings: Vec<String>,
}

/// What stands on standard output.
enum Said {
    Nothing,
    Text(String),
    Document(Object),
}

/// The members whose word decides, wherever they stand.
const DECIDING: [&str; 6] = ["decision", "permissionDecision", "permission", "behavior", "verdict", "action"];

/// The members that may hold what decides, a word or an answer, in wires that nobody here knows. Reports have them as well,
/// so a word in them that is no refusal says nothing.
const HOLDING: [&str; 4] = ["result", "response", "outcome", "ruling"];

/// The members that refuse where they are true.
const REFUSING: [&str; 5] = ["block", "blocked", "deny", "denied", "cancel"];

/// The members that refuse where they are false.
const ALLOWING: [&str; 5] = ["ok", "allow", "allowed", "approve", "approved"];

/// The words for a refusal that agents, and people who write for several of them, use.
const REFUSALS: [&str; 13] = [
    "deny",
    "denied",
    "block",
    "blocked",
    "reject",
    "rejected",
    "refuse",
    "refused",
    "forbid",
    "forbidden",
    "disallow",
    "abort",
    "defer",
];

/// The words that object to nothing in the wire that is read here.
const OWN_PERMITS: [&str; 2] = ["allow", "approve"];

/// The words that object to nothing in wires that nobody here knows.
const PERMITS: [&str; 12] = [
    "allow", "allowed", "approve", "approved", "accept", "accepted", "continue", "proceed", "pass", "ok", "none",
    "noop",
];

/// The words for a reason, the most exact first.
const REASONS: [&str; 5] = ["permissionDecisionReason", "reason", "stopReason", "message", "errorMessage"];

/// The members of the whole answer.
const TOP: [&str; 8] = [
    "continue",
    "stopReason",
    "suppressOutput",
    "systemMessage",
    "decision",
    "reason",
    "hookSpecificOutput",
    "terminalSequence",
];

/// The members of what is about one event.
const SPECIFIC: [&str; 8] = [
    "hookEventName",
    "permissionDecision",
    "permissionDecisionReason",
    "updatedInput",
    "additionalContext",
    "updatedToolOutput",
    "updatedMCPToolOutput",
    "classifierContext",
];

/// The member that is about one event.
const OF_EVENT: &str = "hookSpecificOutput";

impl CommandAnswer {
    /// Reads what a command answered at `event`.
    ///
    /// # Errors
    /// The fault that it is.
    pub fn read(event: ClaudeEvent, output: &CommandOutput<'_>) -> Result<Self, Fault> {
        let said = said(event, output.stdout);
        if output.stop == CommandStop::Cancelled {
            return Err(Fault::Cancelled);
        }
        let stderr = text_of(output.stderr);
        let document = if let Ok(Said::Document(document)) = &said { Some(document) } else { None };
        if output.stop == CommandStop::Exit(REFUSES) {
            return Ok(Self::refused(document, &stderr));
        }
        // A refusal that was written counts, however the command ended.
        if let Some(refused) = document.and_then(refusal) {
            return Ok(Self { message: document.and_then(message), ..Self::of(refused) });
        }
        match &output.stop {
            CommandStop::Exit(0) => match said.map_err(unreadable)? {
                Said::Nothing => Ok(Self::default()),
                Said::Text(text) => Ok(Self::plain(event, &text)),
                Said::Document(document) => Self::of_document(event, &document),
            },
            CommandStop::Exit(code) => Err(Fault::exited(*code).with_last_words(last_words(&stderr))),
            CommandStop::Signal(signal) => Err(Fault::killed(*signal).with_last_words(last_words(&stderr))),
            CommandStop::TimedOut(after) => Err(Fault::TimedOut { after: *after }),
            CommandStop::Cancelled => Err(Fault::Cancelled),
            CommandStop::TooMuch(limit) => Err(Fault::TooLarge { way: Direction::Reply, limit: *limit }),
            CommandStop::CannotStart(why) => Err(Fault::CannotStart { cause: why.as_str().into() }),
        }
    }

    /// The refusal that stands somewhere in what a command wrote, where all of it cannot be read: for an entry that lets
    /// faults pass.
    pub fn refusal_within(stdout: &[u8]) -> Option<Self> {
        let found = objects_within(&text_of(stdout)).iter().find_map(refusal)?;
        let warnings = vec!["its refusal stood among other text".to_owned()];
        Some(Self { warnings, ..Self::of(found) })
    }

    fn of(decision: CommandDecision) -> Self {
        Self { decision, ..Self::default() }
    }

    /// Exit code 2 refuses, whatever stands on standard output.
    fn refused(document: Option<&Object>, stderr: &str) -> Self {
        let said = document.and_then(reason);
        let reason = if stderr.trim().is_empty() { said.unwrap_or_default() } else { stderr.trim().to_owned() };
        let stops = document.is_some_and(ends_turn);
        let reason = if reason.is_empty() { "it ended with exit code 2".to_owned() } else { reason };
        let decision = if stops { CommandDecision::Stop(reason) } else { CommandDecision::Deny(reason) };
        Self { message: document.and_then(message), ..Self::of(decision) }
    }

    /// Plain text means nothing where it is not a text for the model; but a word of refusal is one.
    fn plain(event: ClaudeEvent, text: &str) -> Self {
        if is_refusal(text.trim_matches(['"', '.', '!'])) {
            return Self::of(CommandDecision::Deny(text.to_owned()));
        }
        Self { context: event.takes_plain_text().then(|| cut(text)), ..Self::default() }
    }

    fn of_document(event: ClaudeEvent, document: &Object) -> Result<Self, Fault> {
        let empty = Object::new();
        let specific = match document.get(OF_EVENT) {
            None | Some(Value::Null) => &empty,
            Some(Value::Object(specific)) => specific,
            Some(_) => return Err(wrong(format!("`{OF_EVENT}` is no object"))),
        };
        known(document, &TOP, "")?;
        known(specific, &SPECIFIC, OF_EVENT)?;
        misplaced(document)?;
        if document.get("async") == Some(&Value::Bool(true)) {
            return Err(wrong("it answers later, when nobody waits for it".to_owned()));
        }
        if specific.contains_key(OF_EVENT) {
            return Err(wrong(format!("`{OF_EVENT}` stands in itself")));
        }
        for members in [document, specific] {
            match members.get("continue") {
                None | Some(Value::Null | Value::Bool(true)) => {}
                Some(_) => return Err(wrong("`continue` is neither true nor false".to_owned())),
            }
        }
        let about = specific.get("hookEventName").and_then(Value::as_str).unwrap_or(event.name());
        if about != event.name() {
            return Err(wrong(format!("it answers `{about}`, and was asked at `{}`", event.name())));
        }
        let mut asks =
            held(document).any(|members| DECIDING.iter().any(|name| word_of(members, name).is_some_and(is_ask)));
        for members in [document, specific] {
            for name in DECIDING {
                asks |= wants_person(members, name)?;
            }
        }
        let mut answer = Self { message: message(document), ..Self::default() };
        if asks {
            answer.decision = CommandDecision::Ask(reason(document).unwrap_or_default());
        }
        answer.take_changes(event, specific)?;
        Ok(answer)
    }

    /// Takes what it wants to be changed or said besides.
    fn take_changes(&mut self, event: ClaudeEvent, specific: &Object) -> Result<(), Fault> {
        match specific.get("updatedInput") {
            None | Some(Value::Null) => {}
            Some(Value::Object(input)) if event == ClaudeEvent::PreToolUse => self.updated_input = Some(input.clone()),
            Some(Value::Object(_)) => {
                self.warnings.push(format!("its `updatedInput` was dropped: nothing is changed at `{}`", event.name()));
            }
            Some(_) => return Err(wrong("`updatedInput` is no object".to_owned())),
        }
        let output = ["updatedToolOutput", "updatedMCPToolOutput"].iter().find_map(|name| specific.get(name));
        match output {
            None | Some(Value::Null) => {}
            Some(output) if event.checkpoint() == pintle_domain::checkpoint::CheckpointKind::AfterTool => {
                self.updated_output = Some(text_of_result(output));
            }
            Some(_) => {
                self.warnings.push(format!("its changed result was dropped: there is none at `{}`", event.name()))
            }
        }
        match specific.get("additionalContext") {
            None | Some(Value::Null) => {}
            Some(Value::String(text)) if text.trim().is_empty() => {}
            Some(Value::String(text)) => self.context = Some(cut(text)),
            Some(_) => self.warnings.push("its `additionalContext` was dropped: it is no text".to_owned()),
        }
        Ok(())
    }
}

/// What `name` decides among `members`: itself, or its `behavior`.
fn word_of<'a>(members: &'a Object, name: &str) -> Option<&'a Value> {
    let said = members.get(name)?;
    Some(said.get("behavior").unwrap_or(said))
}

fn is_ask(said: &Value) -> bool {
    said.as_str().is_some_and(|word| word.trim().eq_ignore_ascii_case("ask"))
}

/// Whether what `name` decides among `members` wants a person; words of refusal were seen before.
fn wants_person(members: &Object, name: &str) -> Result<bool, Fault> {
    let is_own = matches!(name, "decision" | "permissionDecision");
    let permits: &[&str] = if is_own { &OWN_PERMITS } else { &PERMITS };
    match word_of(members, name) {
        None | Some(Value::Null) => Ok(false),
        Some(said) if is_ask(said) => Ok(true),
        Some(Value::String(word)) if permits.contains(&word.as_str()) => Ok(false),
        Some(Value::String(word)) => Err(wrong(format!("`{name}` is `{word}`, which nobody knows"))),
        Some(_) => Err(wrong(format!("`{name}` is no text"))),
    }
}

/// The objects of `document` that may be a whole answer in another wire.
fn held(document: &Object) -> impl Iterator<Item = &Object> {
    HOLDING.into_iter().filter_map(move |name| document.get(name)).filter_map(Value::as_object).flat_map(nested)
}

/// `members`, what of them is about one event, and what of that is, however deep.
fn nested(members: &Object) -> impl Iterator<Item = &Object> {
    std::iter::successors(Some(members), |members| members.get(OF_EVENT)?.as_object())
}

/// Refuses members that look like a slip of the pen for one that decides or changes something.
fn known(members: &Object, names: &[&'static str], of: &str) -> Result<(), Fault> {
    for name in members.keys().filter(|name| !names.contains(&name.as_str())) {
        if DECIDING.contains(&name.as_str()) || name == "async" {
            continue;
        }
        if let Some(meant) = nearest(name, names.iter().copied().filter(|name| *name != "reason")) {
            let within = if of.is_empty() { String::new() } else { format!(" in `{of}`") };
            return Err(wrong(format!("`{name}`{within} is unknown; did you mean `{meant}`?")));
        }
    }
    Ok(())
}

/// Refuses members that say nothing where they stand.
fn misplaced(document: &Object) -> Result<(), Fault> {
    let within =
        ["permissionDecision", "updatedInput", "updatedToolOutput", "updatedMCPToolOutput", "additionalContext"];
    match within.into_iter().find(|name| document.get(name).is_some_and(|value| !value.is_null())) {
        Some(name) => Err(wrong(format!("`{name}` has to stand in `{OF_EVENT}`"))),
        None => Ok(()),
    }
}

/// The refusal that a document is, in whatever spelling.
fn refusal(document: &Object) -> Option<CommandDecision> {
    let stops = ends_turn(document);
    let says_no = |name: &&str| document.get(name).and_then(Value::as_str).is_some_and(is_refusal);
    let refuses = nested(document).chain(held(document)).any(refuses) || HOLDING.iter().any(says_no);
    if !stops && !refuses {
        return None;
    }
    let said = if refuses { reason(document) } else { text_at(document, "stopReason").or_else(|| reason(document)) };
    let said = said.unwrap_or_else(|| "it gave no reason".to_owned());
    Some(if stops { CommandDecision::Stop(said) } else { CommandDecision::Deny(said) })
}

/// Whether the members of one object refuse.
fn refuses(members: &Object) -> bool {
    let word = |value: &Value| match value {
        Value::String(word) => is_refusal(word),
        Value::Object(inner) => inner.get("behavior").and_then(Value::as_str).is_some_and(is_refusal),
        Value::Bool(_) | Value::Null | Value::Number(_) | Value::Array(_) => false,
    };
    let is = |name: &&str, value: bool| members.get(name) == Some(&Value::Bool(value));
    DECIDING.iter().filter_map(|name| members.get(name)).any(word)
        || REFUSING.iter().any(|name| is(name, true))
        || ALLOWING.iter().any(|name| is(name, false))
}

fn is_refusal(word: &str) -> bool {
    let word = word.trim().to_ascii_lowercase();
    REFUSALS.contains(&word.as_str())
}

fn ends_turn(document: &Object) -> bool {
    nested(document).chain(held(document)).any(|members| members.get("continue") == Some(&Value::Bool(false)))
}

/// The reason that stands in a document.
fn reason(document: &Object) -> Option<String> {
    let specific = document.get(OF_EVENT).and_then(Value::as_object);
    let inner = specific.and_then(|specific| specific.get("decision")).and_then(Value::as_object);
    let places = || specific.into_iter().chain(inner).chain(nested(document)).chain(held(document));
    REASONS.iter().find_map(|name| places().find_map(|place| text_at(place, name)))
}

fn message(document: &Object) -> Option<String> {
    text_at(document, "systemMessage")
}

fn text_at(members: &Object, name: &str) -> Option<String> {
    let text = members.get(name)?.as_str()?.trim();
    (!text.is_empty()).then(|| text.to_owned())
}

/// What stands on standard output; `Err` says why that cannot be known.
fn said(event: ClaudeEvent, stdout: &[u8]) -> Result<Said, String> {
    let text = std::str::from_utf8(stdout).map_err(|_| "its output is not UTF-8".to_owned())?;
    let text = text.trim_start_matches('\u{feff}').trim();
    if text.is_empty() {
        return Ok(Said::Nothing);
    }
    match json::parse_alike(text) {
        Ok(Value::Object(document)) => Ok(Said::Document(document)),
        Ok(Value::Array(items)) if items.iter().any(may_answer) => Err("it answers in a list".to_owned()),
        Err(NotAlike::Twice(name)) => Err(format!("`{name}` stands twice in one object")),
        Ok(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
            Ok(Said::Text(text.to_owned()))
        }
        Err(NotAlike::NotJson(why)) => {
            // A text for the model may hold anything but an answer.
            let begins = |line: &str| line.trim_start().starts_with('{');
            let is_answer = if event.takes_plain_text() { begins(text) } else { text.lines().any(begins) };
            if is_answer || objects_within(text).iter().any(is_answer_like) {
                let head = text.chars().take(HEAD_CHARS).collect::<String>().escape_debug().to_string();
                return Err(format!("not one JSON document and nothing else: {why}; it begins with `{head}`"));
            }
            Ok(Said::Text(text.to_owned()))
        }
    }
}

/// The objects that stand on lines of `text`, or over several of them.
fn objects_within(text: &str) -> Vec<Object> {
    let braces = text.find('{').zip(text.rfind('}')).and_then(|(from, to)| text.get(from..=to));
    let parts = text.lines().map(str::trim).filter(|line| line.contains('{')).chain(braces);
    let object = |part| match json::parse(part) {
        Ok(Value::Object(members)) => Some(members),
        Ok(_) | Err(_) => None,
    };
    parts.filter_map(object).collect()
}

/// Whether something in a list is what answers are made of: whoever wrote it meant an answer.
fn may_answer(item: &Value) -> bool {
    match item {
        Value::Object(members) => is_answer_like(members),
        Value::String(word) => is_refusal(word),
        Value::Array(items) => items.iter().any(may_answer),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Whether an object has a member that answers have.
fn is_answer_like(members: &Object) -> bool {
    members.keys().any(|name| [&TOP[..], &SPECIFIC, &DECIDING].iter().any(|names| names.contains(&name.as_str())))
}

fn unreadable(why: String) -> Fault {
    Fault::Unreadable { cause: why.into() }
}

fn wrong(why: String) -> Fault {
    Fault::broke(why)
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn last_words(stderr: &str) -> Option<Cause> {
    let text = stderr.trim();
    let from = text.char_indices().rev().nth(MAX_LAST_WORDS - 1).map_or(0, |(at, _)| at);
    (!text.is_empty()).then(|| text[from..].into())
}

/// `text`, as much of it as a model gets.
fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_CONTEXT_CHARS) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// The text of a result in the shape of Claude's tools.
fn text_of_result(output: &Value) -> String {
    let at = |name: &str| output.get(name).and_then(Value::as_str).unwrap_or_default();
    match output {
        Value::String(text) => text.clone(),
        Value::Object(members) if members.contains_key("stdout") => {
            [at("stdout"), at("stderr")].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n")
        }
        Value::Object(members) if members.get("content").is_some_and(Value::is_string) => at("content").to_owned(),
        Value::Array(parts) if !parts.is_empty() && parts.iter().all(|part| part.get("text").is_some()) => {
            let texts = parts.iter().filter_map(|part| part.get("text")?.as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => output.to_string(),
    }
}
