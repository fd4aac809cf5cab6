//! How a host is run without its person, against a model of ours: to prove that its calls reach the guard.
//!
//! The host works with the settings that its person has; only its model is another one, which says what it is told to
//! in one of four wires.

use pintle_domain::json::{Object, Value};

mod chat;
mod gemini;
mod messages;
mod responses;

/// How one host is tried.
#[derive(Clone, Copy, Debug)]
pub struct HostTrial {
    /// The words in which it speaks with its model.
    pub wire: TrialWire,
    /// The call with which its model runs a shell text.
    pub shell: fn(&str) -> TrialCall,
    /// How it is started.
    pub run: fn(&TrialModel<'_>) -> TrialRun,
    /// Whether its model hears of a refusal; else the refusal ends the turn.
    pub hears_refusals: bool,
}

/// Where the model of a trial is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrialModel<'a> {
    /// Its base URL, without a slash at the end.
    pub url: &'a str,
    /// The folder that the host works in, absolute.
    pub folder: &'a str,
    /// What the person says.
    pub prompt: &'a str,
}

/// How a host is started for a trial.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrialRun {
    /// The words behind the program's name.
    pub args: Vec<String>,
    /// Variables that are set besides those of the person.
    pub env: Vec<(&'static str, String)>,
    /// Files below the folder that it works in: name and text.
    pub files: Vec<(&'static str, String)>,
}

impl TrialRun {
    pub(crate) fn of(args: &[&str], env: &[(&'static str, &str)]) -> Self {
        let env = env.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        Self { args: args.iter().map(|word| (*word).to_owned()).collect(), env, files: Vec::new() }
    }
}

/// The name of the model, where a host wants one that it need not know.
pub(crate) const MODEL: &str = "pintle-canary";

/// The key that the model of a trial takes.
pub(crate) const KEY: &str = "pintle-canary";

/// A call that a model makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrialCall {
    /// The tool.
    pub tool: &'static str,
    /// The group of tools that it belongs to, where a wire has such groups.
    pub namespace: Option<&'static str>,
    /// Its arguments.
    pub arguments: Object,
}

impl TrialCall {
    /// A call of `tool`; arguments that are no object are none.
    pub fn of(tool: &'static str, arguments: Value) -> Self {
        let arguments = match arguments {
            Value::Object(members) => members,
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Object::new(),
        };
        Self { tool, namespace: None, arguments }
    }
}

/// The words of a model's interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TrialWire {
    /// Anthropic's messages.
    Messages,
    /// OpenAI's responses.
    Responses,
    /// OpenAI's chat completions.
    Chat,
    /// Gemini's `generateContent`.
    Gemini,
}

/// What a host asks its model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrialRequest {
    /// The names of the tools that it offers.
    pub tools: Vec<String>,
    /// What came of the calls that the model made so far.
    pub results: Vec<String>,
}

/// What the model answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TrialSaid {
    /// A text, and nothing more is to be done.
    Text(String),
    /// A call.
    Call(TrialCall),
}

/// An answer as bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrialReply {
    /// What kind of text it is.
    pub content_type: &'static str,
    /// The text.
    pub body: String,
}

/// A stream of events.
const STREAM: &str = "text/event-stream";

impl TrialReply {
    /// One document.
    pub fn json(document: &Value) -> Self {
        Self { content_type: "application/json", body: document.to_string() }
    }

    fn stream(events: impl IntoIterator<Item = String>) -> Self {
        Self { content_type: STREAM, body: events.into_iter().collect() }
    }
}

impl TrialWire {
    /// The wire in which somebody asks for an answer at `path`, which has no query any more.
    pub fn of_path(path: &str) -> Option<Self> {
        let ends = |end: &str| path.ends_with(end);
        if ends("/messages") {
            Some(Self::Messages)
        } else if ends("/responses") {
            Some(Self::Responses)
        } else if ends("/chat/completions") {
            Some(Self::Chat)
        } else if ends("enerateContent") {
            Some(Self::Gemini)
        } else {
            None
        }
    }

    /// What `request` asks.
    pub fn read(self, request: &Value) -> TrialRequest {
        match self {
            Self::Messages => messages::read(request),
            Self::Responses => responses::read(request),
            Self::Chat => chat::read(request),
            Self::Gemini => gemini::read(request),
        }
    }

    /// The answer to `request`, which came to `path`, under the id `id`.
    pub fn reply(self, (path, request): (&str, &Value), said: &TrialSaid, id: &str) -> TrialReply {
        match self {
            Self::Messages => messages::reply(request, said, id),
            Self::Responses => responses::reply(request, said, id),
            Self::Chat => chat::reply(request, said, id),
            Self::Gemini => gemini::reply(path, request, said, id),
        }
    }
}

/// The members of the list `name`.
fn list<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    value.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default().iter()
}

/// The text `name`.
fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// The text of a content, which is one or a list of parts with texts.
fn content(value: Option<&Value>) -> String {
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    }
}

/// Whether `request` wants a stream.
fn streams(request: &Value) -> bool {
    request.get("stream").and_then(Value::as_bool) == Some(true)
}

/// One event without a name.
fn data(event: &Value) -> String {
    format!("data: {event}\n\n")
}

/// One event that is named by its type.
fn named(event: &Value) -> String {
    format!("event: {}\n{}", text(event, "type"), data(event))
}
