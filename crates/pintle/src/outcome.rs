//! What comes of a call, of a prompt, of a model call.

use domain::approval::Approval;
use domain::chain::Note;
use domain::id::HookName;
use domain::ruling::Aborted;
use domain::tool::{ToolCall, ToolOutput};

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
    /// What gates want the model to read besides.
    pub notes: Vec<Note>,
    /// Whether a gate changed the arguments: then the model's own are to be replaced by those of `call` wherever they
    /// are kept.
    pub rewritten: bool,
}

/// Why there is no result. Each is an answer that the loop must act on.
#[derive(Debug)]
#[must_use = "a stop that nobody reads is a gate that nobody closes"]
#[non_exhaustive]
pub enum Stop<E> {
    /// It did not run, or its result reaches nobody; the model reads [`Refusal::text`].
    Refused(Refusal),
    /// A person must say, and nobody has yet. Ask again with the same turn and call once the question is answered.
    Parked(Box<Approval>),
    /// A hook stops the turn, or the whole run: no further call of the turn runs.
    Aborted(Aborted),
    /// The turn was cancelled before every hook had said something.
    Cancelled,
    /// The host's own failure.
    Own(E),
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
    /// Whether the tool ran all the same, and only its result is withheld.
    pub ran: bool,
}

impl<E> Stop<E> {
    /// What the model reads in the place of a result.
    pub fn text(&self) -> String {
        match self {
            Self::Refused(refusal) => refusal.text.clone(),
            Self::Parked(approval) => approval.reason.clone(),
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
