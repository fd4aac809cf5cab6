//! What a model answers, call by call: the machines of all wires are driven in one way.

use domain::json::Object;

use crate::spans::JsonDocument;

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

/// What is to be done next with an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum AnswerStep {
    /// These bytes go to the client.
    Send(Vec<u8>),
    /// This call wants a ruling, which [`AnswerMachine::rule`] takes.
    Rule(WantedCall),
    /// All calls were refused: ask again, with these messages behind the conversation, and feed what comes.
    GoOn(Vec<String>),
    /// It is over; what the client did not get of it is kept.
    Done(Option<Exchange>),
    /// It cannot be read: the client is told so, and nothing that was held goes on. It is over.
    Broken(String),
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
}

impl Exchange {
    /// Whether the client got all that there was.
    pub const fn is_empty(&self) -> bool {
        self.before.is_empty() && self.denied.is_empty()
    }
}

/// A call that was refused, as the wire has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeniedCall {
    /// The call.
    pub call: String,
    /// Its result.
    pub result: String,
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
    /// The text that the client got, once it is over.
    fn said(&self) -> String;
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
