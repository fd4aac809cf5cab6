//! Results of prompts, model calls and tool calls.

use std::convert::Infallible;

use pintle_domain::approval::Approval;
use pintle_domain::chain::Note;
use pintle_domain::id::HookName;
use pintle_domain::llm::LlmReply;
use pintle_domain::ruling::Aborted;
use pintle_domain::tool::{ToolCall, ToolOutput};

/// A message that passed the gates.
#[derive(Clone, Debug, PartialEq)]
#[must_use = "only this text may reach a model"]
#[non_exhaustive]
pub struct Submitted {
    /// The text, as gates left it.
    pub prompt: String,
    /// The notes of gates, for the model to read besides.
    pub notes: Vec<Note>,
}

/// An answer of a model that passed its hooks.
#[derive(Debug)]
#[must_use = "an answer that nobody reads was paid for"]
#[non_exhaustive]
pub struct Completion {
    /// The answer, as hooks left it.
    pub reply: LlmReply,
    /// The model that was asked: hooks may have chosen another one.
    pub model: String,
}

/// A call that has a result.
#[derive(Debug)]
#[must_use = "a result that nobody reads is work that nobody sees"]
#[non_exhaustive]
pub struct Done {
    /// The call as it ran: hooks may have changed what the model wrote.
    pub call: ToolCall,
    /// The result as hooks left it.
    pub output: ToolOutput,
    /// The hook that answered in the tool's place, if one did.
    pub by: Option<HookName>,
    /// The notes of gates, for the model to read besides.
    pub notes: Vec<Note>,
    /// Whether a gate changed the arguments: then the model's own are to be replaced by those of `call` wherever they
    /// are kept.
    pub rewritten: bool,
    /// Whether the call ran earlier and this is what was kept of it: see [`CallJournal`](crate::CallJournal).
    pub kept: bool,
}

/// Why a call has no result. Handle every variant.
#[derive(Debug)]
#[must_use = "a stop that nobody reads is a gate that nobody closes"]
#[non_exhaustive]
pub enum Stop<E = Infallible> {
    /// It did not run, or its result reaches nobody; the model reads [`Refusal::text`].
    Refused(Box<Refusal>),
    /// A person must say, and nobody has yet. Ask again with the same turn and call once the question is answered.
    Parked(Parked),
    /// A hook stops the turn, or the whole run: no further call of the turn runs.
    Aborted(Aborted),
    /// The turn was cancelled before every hook had said something.
    Cancelled,
    /// The error that the executor or `send` returned.
    Own(E),
}

/// A call that waits for a person.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Parked {
    /// The question, with the call as it stands.
    pub question: Box<Approval>,
    /// Whether a gate changed the arguments: then the model's own are to be replaced wherever they are kept.
    pub rewritten: bool,
}

/// A refusal.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Refusal {
    /// Why, as the model and the user read it.
    pub text: String,
    /// The hook that refused; none when the record could not be written or the host's own rule refused.
    pub by: Option<HookName>,
    /// The call as it stood, where it was one.
    pub call: Option<ToolCall>,
    /// Whether a gate changed the arguments before.
    pub rewritten: bool,
    /// Whether the tool ran all the same, and only its result is withheld, or nobody knows what became of it.
    pub ran: bool,
}

impl Refusal {
    /// A refusal by `by`, or by the host's own rule, of something that is not a call.
    pub(crate) fn new(text: impl Into<String>, by: Option<HookName>) -> Self {
        Self { text: text.into(), by, call: None, rewritten: false, ran: false }
    }

    /// A refusal of `call` by the host's own rule.
    pub(crate) fn of_call(text: impl Into<String>, call: ToolCall) -> Self {
        Self { call: Some(call), ..Self::new(text, None) }
    }
}

impl<E> Stop<E> {
    /// The text that the model reads in the place of a result.
    pub fn text(&self) -> String {
        match self {
            Self::Refused(refusal) => refusal.text.clone(),
            Self::Parked(parked) => format!("a person has to approve it first: {}", parked.question.reason),
            Self::Aborted(aborted) => aborted.text(),
            Self::Cancelled => "the turn was cancelled".to_owned(),
            Self::Own(_) => "the tool failed".to_owned(),
        }
    }
}

impl<E: std::fmt::Display> std::fmt::Display for Stop<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Own(error) => error.fmt(f),
            Self::Refused(_) | Self::Parked(_) | Self::Aborted(_) | Self::Cancelled => f.write_str(&self.text()),
        }
    }
}

impl<E: std::fmt::Debug + std::fmt::Display> std::error::Error for Stop<E> {}
