//! What a model answers, call by call: the machines of all wires are driven in one way.

use pintle_domain::json::{Object, Value};

use crate::request::{HostedTool, SeenRequest};
use crate::spans::{JsonDocument, Node};
use crate::tokens::Tally;

/// A call that a model wants, whole.
#[derive(Clone, Debug, PartialEq)]
pub struct WantedCall {
    /// Its id.
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments; what is no object stands in the member `input`.
    pub arguments: Object,
}

/// What became of a call.
#[derive(Clone, Debug, PartialEq)]
#[must_use = "a ruling nobody reads is a gate nobody closes"]
pub enum CallRuling {
    /// It goes on as it is.
    Allowed,
    /// It goes on with these arguments.
    Rewritten(Object),
    /// It goes no further, for this reason.
    Denied(String),
    /// It goes no further, and nothing more is asked of the model in its place.
    Aborted(String),
}

/// An answer that the client gets as the vendor keeps it.
#[derive(Clone, Debug, PartialEq)]
pub struct StoredAnswer {
    /// The id by which a later request goes on from it.
    pub id: String,
    /// The calls in it, each of which may run as it is.
    pub calls: Vec<WantedCall>,
}

/// What is to be done next with an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum AnswerStep {
    /// These bytes go to the client.
    Send(Vec<u8>),
    /// This call wants a ruling, which [`AnswerMachine::rule`] takes.
    Rule(WantedCall),
    /// This call is refused without a ruling, because its arguments cannot be read: the record is to say so.
    Unread {
        /// Its id.
        id: String,
        /// The tool.
        name: String,
    },
    /// All calls were refused: ask again, with these messages behind the conversation, and feed what comes.
    GoOn(Vec<String>),
    /// It is over; what the client did not get of it is kept.
    Done(Option<Exchange>),
    /// It cannot be read: the client is told so, and nothing that was held goes on. It is over.
    Broken(String),
}

impl AnswerStep {
    /// The call `id` of the tool `name` has arguments that cannot be read.
    pub(crate) fn unread(id: &str, name: &str) -> Self {
        Self::Unread { id: id.to_owned(), name: name.to_owned() }
    }
}

/// What the door said to a model in a client's name, and what stands in its place for the client.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Exchange {
    /// The ids of the calls that the client got.
    pub calls: Vec<String>,
    /// The text that the client got.
    pub text: String,
    /// Messages that stand before the one that the client got.
    pub before: Vec<String>,
    /// How many parts of the client's message these stand for.
    pub lead_parts: usize,
    /// The text of these parts.
    pub lead_text: String,
    /// Calls that were refused beside others that were not, and their results.
    pub denied: Vec<DeniedCall>,
    /// Where a conversation is a list of items: those of the answer in their order.
    pub items: Vec<KeptItem>,
}

impl Exchange {
    /// Whether the client got all that there was.
    pub fn is_empty(&self) -> bool {
        self.before.is_empty() && self.denied.is_empty() && self.items.iter().all(|item| item.sent.is_none())
    }
}

/// One item of an answer, where a conversation is a list of items.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptItem {
    /// Its bytes as the model is sent them; none where those of the client stay.
    pub sent: Option<String>,
    /// How that of the client is known again; none where the client never got it.
    pub seen: Option<ItemMark>,
}

/// How an item is known again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ItemMark {
    /// A call, by its id.
    Call(String),
    /// A message of the model's, by its text, and by its id where the client says one.
    Text {
        /// The text.
        text: String,
        /// The id.
        id: Option<String>,
    },
    /// A thought, by what is sealed in it or by its id. Clients may leave it out.
    Thought(String),
}

/// Where a request says how many choices it asks for.
const CHOICES: [&[&str]; 5] = [
    &["n"],
    &["generationConfig", "candidateCount"],
    &["generationConfig", "candidate_count"],
    &["generation_config", "candidateCount"],
    &["generation_config", "candidate_count"],
];

fn number(document: &JsonDocument, root: &Node, path: &[&str]) -> Option<u64> {
    let (name, before) = path.split_last()?;
    document.number_at(root.at(before)?, name)
}

/// What an answer is to, as far as its reading depends on that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerTo {
    /// Whether it comes as events.
    pub streams: bool,
    /// How many choices were asked for.
    pub choices: u64,
    /// The kinds of tools that may run at the vendor.
    pub hosted: Vec<String>,
    /// The namespaces of the tools that the request offers.
    pub namespaces: Vec<String>,
    /// Whether the vendor keeps the answer: thoughts that are not sealed can then be named again.
    pub is_stored: bool,
}

impl AnswerTo {
    /// The answer to `request`.
    pub fn of(request: &SeenRequest, streams: bool) -> Self {
        let (document, root) = (&request.document, &request.document.root);
        let kind = |tool: &HostedTool| tool.arguments.get("type").and_then(Value::as_str).map(str::to_owned);
        Self {
            streams,
            choices: CHOICES.iter().find_map(|path| number(document, root, path)).unwrap_or(1),
            hosted: request.hosted.iter().filter_map(kind).collect(),
            namespaces: request.namespaces.clone(),
            is_stored: root.get("store").is_none_or(|store| document.raw(store) != "false"),
        }
    }
}

impl Default for AnswerTo {
    fn default() -> Self {
        Self { streams: false, choices: 1, hosted: Vec::new(), namespaces: Vec::new(), is_stored: true }
    }
}

/// A call that was refused, as the wire has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeniedCall {
    /// The call.
    pub call: String,
    /// Its result.
    pub result: String,
    /// Whether it stands before all calls of the answer that were not.
    pub leads: bool,
}

/// One answer, whole or as events.
pub trait AnswerMachine: Send {
    /// Takes bytes of the answer.
    fn feed(&mut self, bytes: &[u8]);
    /// Says that no more bytes come.
    fn end(&mut self);
    /// What is next; nothing where more bytes are needed.
    fn next(&mut self) -> Option<AnswerStep>;
    /// Takes the ruling on the call that [`AnswerStep::Rule`] named last.
    fn rule(&mut self, ruling: CallRuling);
    /// The answer, once, where the vendor keeps it and the client gets the same: known before the client gets its end,
    /// because it may go on from it at once.
    fn take_stored(&mut self) -> Option<StoredAnswer> {
        None
    }
    /// The text that the client got, once it is over.
    fn said(&self) -> String;
    /// What the vendor says that it cost so far.
    fn tally(&self) -> Tally;
    /// Bytes that keep a connection awake while a person thinks; none where there are none.
    fn keep_alive(&self) -> Option<&'static [u8]>;
}

/// How calls are refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DenyMode {
    /// The door answers the model.
    #[default]
    Answer,
    /// A sentence stands in the call's place.
    Text,
}

/// How often the door answers a model in a row.
pub const MAX_ROUNDS: usize = 3;

/// The result of a call that was refused, as the model reads it.
pub fn refusal_result(reason: &str) -> String {
    format!("This call was refused and did not run: {reason}")
}

/// The sentence in the place of a call that was refused.
pub fn refusal_text(name: &str, reason: &str) -> String {
    format!("[The call of `{name}` was refused and did not run: {reason}]")
}

/// The arguments that the text `written` is, if it is an object.
pub(crate) fn arguments(written: &str) -> Option<Object> {
    if written.trim().is_empty() {
        return Some(Object::new());
    }
    // A member that stands twice is read one way here, and maybe another way by whoever runs the tool.
    let document = JsonDocument::read(written.to_owned()).ok()?;
    document.value(&document.root).as_object().cloned()
}

/// Why a call whose arguments cannot be read goes no further.
pub(crate) const NO_ARGUMENTS: &str = "its arguments are not one whole JSON object";
