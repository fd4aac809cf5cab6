//! What hosts write down of a conversation: the calls in it that have a result, whoever let them run.
//!
//! Hosts keep the messages of their model's wire, each in a frame of its own, one JSON document a line or one for all.
//! So calls and results are looked for by the shapes of the wires, wherever they stand.

use std::collections::{BTreeMap, BTreeSet};

use pintle_domain::json::{self, Object, Value, canonical};

use crate::host::HostRefusals;
use crate::unread::behind_unanswered;

/// A call that a host wrote down, with what came of it.
#[derive(Clone, Debug, PartialEq)]
pub struct TranscriptCall {
    /// The id of the call, if it has one.
    pub id: Option<String>,
    /// The tool, as the host calls it there.
    pub tool: String,
    /// Its arguments, as the model wrote them.
    pub arguments: Value,
    /// When, as the host wrote it, if at all: RFC 3339, or milliseconds since 1970.
    pub at: Option<String>,
    /// What came of it, as text, or how that begins.
    pub result: String,
    /// Whether the host marks it as an error.
    pub failed: bool,
}

/// The members of a result in which its texts stand.
const SAID: [&str; 8] = ["text", "content", "output", "error", "message", "result", "response", "functionResponse"];

/// How much of a result is kept, in characters: refusals are short, and conversations are long.
const RESULT_CHARS: usize = 2000;

/// The members of one shape of a call.
struct CallShape {
    /// The member that says what the object is, and its word; none where the members alone say it.
    kind: Option<(&'static str, &'static str)>,
    id: &'static str,
    tool: &'static str,
    arguments: &'static str,
}

/// The members of one shape of a result.
struct ResultShape {
    kind: Option<(&'static str, &'static str)>,
    id: &'static str,
    result: &'static str,
}

/// Messages; responses, with functions and with free text; events of a loop and of a session; a list of parts; `generate
/// content`, or a recorded call with its result beside it.
const CALLS: [CallShape; 7] = [
    CallShape { kind: Some(("type", "tool_use")), id: "id", tool: "name", arguments: "input" },
    CallShape { kind: Some(("type", "function_call")), id: "call_id", tool: "name", arguments: "arguments" },
    CallShape { kind: Some(("type", "custom_tool_call")), id: "call_id", tool: "name", arguments: "input" },
    CallShape { kind: Some(("type", "tool.call")), id: "toolCallId", tool: "name", arguments: "args" },
    CallShape { kind: Some(("type", "toolCall")), id: "id", tool: "name", arguments: "arguments" },
    CallShape { kind: None, id: "toolCallId", tool: "toolName", arguments: "arguments" },
    CallShape { kind: None, id: "id", tool: "name", arguments: "args" },
];

const RESULTS: [ResultShape; 7] = [
    ResultShape { kind: Some(("type", "tool_result")), id: "tool_use_id", result: "content" },
    ResultShape { kind: Some(("type", "function_call_output")), id: "call_id", result: "output" },
    ResultShape { kind: Some(("type", "custom_tool_call_output")), id: "call_id", result: "output" },
    ResultShape { kind: Some(("type", "tool.result")), id: "toolCallId", result: "result" },
    ResultShape { kind: Some(("role", "toolResult")), id: "toolCallId", result: "content" },
    ResultShape { kind: None, id: "toolCallId", result: "success" },
    ResultShape { kind: None, id: "id", result: "response" },
];

/// The members that say when something was.
const TIMES: [&str; 3] = ["timestamp", "time", "ts"];

/// The calls in `text` that have a result, in their order.
pub fn transcript_calls(text: &str) -> Vec<TranscriptCall> {
    let mut found = Transcript::default();
    if !found.take(text) {
        // The newest line may not be whole yet.
        for line in text.lines() {
            found.take(line);
        }
    }
    found.calls()
}

/// The member of a line in which the host says itself how a call ended, beside what its model was told.
const ENDED: &str = "toolCallResult";

/// A conversation, as far as it was read.
#[derive(Debug, Default)]
pub struct Transcript {
    calls: Vec<TranscriptCall>,
    /// The ids of the calls.
    ids: BTreeSet<String>,
    /// The ids of the calls that the host turned away before it started them.
    not_started: BTreeSet<String>,
    /// What came of calls, by their ids, and whether it is marked as an error.
    results: BTreeMap<String, (String, bool)>,
}

impl Transcript {
    /// Takes the calls and results of one document, such as a line: whether it is one.
    pub fn take(&mut self, document: &str) -> bool {
        let read = json::parse(document);
        if let Ok(value) = &read {
            self.not_started.extend(not_started(value));
            self.look(value, None);
        }
        read.is_ok()
    }

    fn look(&mut self, value: &Value, at: Option<&str>) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.look(item, at)),
            Value::Object(members) => {
                let own = TIMES.iter().find_map(|name| time(members.get(name)?));
                let at = own.as_deref().or(at);
                let inside = self.part(members, at).or_else(|| self.call(members, at)).or_else(|| self.result(members));
                let rest = members.iter().filter(|(name, _)| inside.is_none_or(|inside| *name != inside));
                rest.for_each(|(_, member)| self.look(member, at));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    /// Takes a call with what came of it in one member, as a session store has it.
    fn part(&mut self, members: &Object, at: Option<&str>) -> Option<&'static str> {
        let text = |name: &str| members.get(name).and_then(Value::as_str);
        text("type").filter(|kind| *kind == "tool")?;
        let (id, tool) = (text("callID")?, text("tool")?.to_owned());
        let state = members.get("state")?.as_object()?;
        let own = state.get("time").and_then(|times| time(times.get("start")?));
        let (at, arguments) =
            (own.or_else(|| at.map(str::to_owned)), state.get("input").cloned().unwrap_or(Value::Null));
        let result = match state.get("status").and_then(Value::as_str) {
            Some("completed") => Some((state.get("output").map(said).unwrap_or_default(), false)),
            Some("error") => Some((state.get("error").map(said).unwrap_or_default(), true)),
            Some(_) | None => None,
        };
        if let Some(result) = result {
            self.results.insert(id.to_owned(), result);
        }
        if self.ids.insert(id.to_owned()) {
            let id = Some(id.to_owned());
            self.calls.push(TranscriptCall { id, tool, arguments, at, result: String::new(), failed: false });
        }
        Some("state")
    }

    /// Takes the call that `members` are; the member with what it is about, in which nothing else is looked for.
    fn call(&mut self, members: &Object, at: Option<&str>) -> Option<&'static str> {
        let text = |name: &str| members.get(name).and_then(Value::as_str);
        let is = |shape: &&CallShape| {
            shape.kind.is_none_or(|(name, word)| text(name) == Some(word))
                && text(shape.tool).is_some()
                && members.contains_key(shape.arguments)
        };
        let shape = CALLS.iter().find(is)?;
        let id = text(shape.id).map(str::to_owned);
        // Some write the arguments as a text of their own.
        let arguments = match members.get(shape.arguments) {
            Some(Value::String(text)) => json::parse(text).unwrap_or_else(|_| Value::from(text.as_str())),
            Some(_) | None => members.get(shape.arguments).cloned().unwrap_or(Value::Null),
        };
        let tool = text(shape.tool).unwrap_or_default().to_owned();
        let call =
            TranscriptCall { id, tool, arguments, at: at.map(str::to_owned), result: String::new(), failed: false };
        let beside = members.get("result").filter(|result| !result.is_null() && shape.kind.is_none());
        if let (Some(result), Some(id)) = (beside, &call.id) {
            self.results.insert(id.clone(), (said(result), is_marked(members)));
        }
        if call.id.as_ref().is_none_or(|id| self.ids.insert(id.clone())) {
            self.calls.push(call);
        }
        Some(shape.arguments)
    }

    fn result(&mut self, members: &Object) -> Option<&'static str> {
        let text = |name: &str| members.get(name).and_then(Value::as_str);
        let is = |shape: &&ResultShape| {
            shape.kind.is_none_or(|(name, word)| text(name) == Some(word))
                && text(shape.id).is_some()
                && members.contains_key(shape.result)
        };
        let shape = RESULTS.iter().find(is)?;
        // What only says whether it went well has more beside it.
        let result = members.get("result").or_else(|| members.get("error")).filter(|_| shape.result == "success");
        let result = result.or_else(|| members.get(shape.result)).map(said).unwrap_or_default();
        self.results.insert(text(shape.id).unwrap_or_default().to_owned(), (result, is_marked(members)));
        Some(shape.result)
    }

    /// The calls that were started and have a result, in their order.
    pub fn calls(self) -> Vec<TranscriptCall> {
        let Self { calls, results, not_started, ids: _ } = self;
        let done = |call: TranscriptCall| {
            if call.id.as_ref().is_some_and(|id| not_started.contains(id)) {
                return None;
            }
            let (result, failed) = results.get(call.id.as_ref()?)?.clone();
            Some(TranscriptCall { result, failed, ..call })
        };
        calls.into_iter().filter_map(done).collect()
    }
}

/// The call that was not started, where `line` is about the end of one. What stands deeper may be a tool's own words.
fn not_started(line: &Value) -> Option<String> {
    let ended = line.get(ENDED)?;
    (ended.get("executionStatus").and_then(Value::as_str) == Some("not_started")).then_some(())?;
    ended.get("callId").and_then(Value::as_str).map(str::to_owned)
}

/// Whether the members of a result say that it is an error.
fn is_marked(members: &Object) -> bool {
    let says = |name: &str, word: bool| members.get(name).and_then(Value::as_bool) == Some(word);
    says("is_error", true) || says("isError", true) || says("success", false)
}

fn time(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned).or_else(|| Some(value.as_u64()?.to_string()))
}

fn said(result: &Value) -> String {
    let text = result.as_str().map_or_else(|| result.to_string(), str::to_owned);
    let end = text.char_indices().nth(RESULT_CHARS).map(|(end, _)| end);
    match end {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

/// The texts in `result`, apart from names and ids.
fn texts(result: &Value) -> Vec<&str> {
    match result {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().flat_map(texts).collect(),
        Value::Object(members) => SAID.iter().filter_map(|name| members.get(name)).flat_map(texts).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

impl HostRefusals {
    /// Whether the host rejected `call` itself, before it asked any hook.
    pub fn rejects(&self, call: &TranscriptCall) -> bool {
        call.failed && self.rejected.is_some_and(|begin| all_said(&call.result, |text| text.starts_with(begin)))
    }

    /// Whether `call` was refused because nobody answered, or because it could not be read: its whole result says so, and
    /// nothing else. Nobody knows of such a call.
    pub fn was_unanswered(&self, call: &TranscriptCall) -> bool {
        let is_reason = |text: &str| {
            self.around.iter().any(|(before, behind)| {
                let rest = text.strip_prefix(before).and_then(behind_unanswered);
                rest.is_some_and(|rest| rest.is_empty() || !behind.is_empty() && rest.starts_with(behind))
            })
        };
        (call.failed || !self.marked) && all_said(&call.result, |text| is_reason(text.trim()))
    }
}

/// Whether `result` has texts, and `is` holds for each of them.
fn all_said(result: &str, is: impl Fn(&str) -> bool) -> bool {
    match json::parse(result) {
        Ok(value @ (Value::Array(_) | Value::Object(_))) => {
            let texts = texts(&value);
            !texts.is_empty() && texts.into_iter().all(is)
        }
        Ok(Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_)) | Err(_) => is(result),
    }
}

/// The calls that a guard was asked about in one session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KnownCalls {
    ids: BTreeSet<String>,
    /// The numbers of the calls that were asked about with each content, by a digest of it.
    contents: BTreeMap<String, Vec<u64>>,
    /// How many contents were asked about.
    asked: u64,
    /// The numbers of those whose call was found.
    found: BTreeSet<u64>,
}

/// What a call is about, as one text: its tool and its arguments.
pub fn call_content(tool: &str, arguments: &Value) -> String {
    canonical(&Value::from(vec![Value::from(tool), arguments.clone()]))
}

impl KnownCalls {
    /// The guard was asked about a call with this id, whichever of several a host has for it.
    pub fn asked_id(&mut self, id: &str) {
        self.ids.insert(id.to_owned());
    }

    /// The guard was asked about a call of the content with this digest.
    pub fn asked_content(&mut self, digest: &str) {
        self.contents.entry(digest.to_owned()).or_default().push(self.asked);
        self.asked += 1;
    }

    /// The guard made the call of the content `before` one of the content `after`: it stands there as either of them,
    /// once.
    pub fn changed_content(&mut self, before: &str, after: &str) {
        let known = self.contents.get(after);
        let is_new = |number: &&u64| known.is_none_or(|known| !known.contains(number));
        let number = self.contents.get(before).and_then(|numbers| numbers.iter().rev().find(is_new).copied());
        match number {
            Some(number) => self.contents.entry(after.to_owned()).or_default().push(number),
            None => self.asked_content(after),
        }
    }

    /// Those of `calls` that ran, as far as the host says, and that the guard was not asked about. `refusals` is how the
    /// host writes down those that did not run, `digest` that of [`call_content`].
    pub fn unknown(
        &mut self,
        calls: Vec<TranscriptCall>,
        refusals: &HostRefusals,
        digest: impl Fn(&str) -> String,
    ) -> Vec<TranscriptCall> {
        let mut unknown = Vec::new();
        for call in calls {
            let by_id = call.id.as_ref().is_some_and(|id| self.ids.contains(id));
            if !by_id && refusals.rejects(&call) {
                continue;
            }
            let numbers = self.contents.get_mut(&digest(&call_content(&call.tool, &call.arguments)));
            // Each content that was asked about stands for one call, whether that is known by its id, too, or not.
            let found = &mut self.found;
            let by_content =
                numbers.is_some_and(|numbers| std::iter::from_fn(|| numbers.pop()).any(|number| found.insert(number)));
            if !by_id && !by_content && !refusals.was_unanswered(&call) {
                unknown.push(call);
            }
        }
        unknown
    }
}
