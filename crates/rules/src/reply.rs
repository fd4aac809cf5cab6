//! What the handlers of rules answer, read into one type: [`HandlerReply`].
//!
//! A command speaks by its exit and its output ([`stdout`]), an endpoint by the body of its answer ([`body`]), an
//! evaluating model by its calls ([`decide`]), a script by what it returns ([`script`]). Whatever cannot be read is a
//! [`ReplyFault`], never an allow. What an answer wants to change is read by [`rewrite()`].

use pintle_domain::checkpoint::CheckpointKind;
use pintle_domain::fault::FaultKind;
use pintle_domain::json::Object;

mod evaluator;
mod http;
mod members;
mod output;
mod rewrite;
mod script;
mod spelling;
mod text;
#[cfg(test)]
mod tests;

pub use evaluator::{DECIDE, InjectionEffect, decide, saw_injection};
pub use http::{BodyReply, body};
pub use output::{BLOCKS, Exit, is_json, stdout};
pub use rewrite::{CurrentInput, InputShape, Rewrite, rewrite};
pub use script::script;

/// Largest reply that is read, in bytes. Ten thousand times a usual one; a hook that sends more is out of order.
pub const MAX_REPLY_BYTES: usize = 1 << 20;
/// Longest reason and longest quotation of standard error, in characters: a paragraph or a short stack trace.
pub const MAX_REASON_CHARS: usize = 2_000;
/// Longest additional context, in characters: some pages, so that a few hooks do not fill a model's window.
pub const MAX_CONTEXT_CHARS: usize = 10_000;

/// The reply of a hook, whichever way it is run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HandlerReply {
    /// The decision.
    pub decision: Decision,
    /// Why, in the hook's words: one line of at most [`MAX_REASON_CHARS`], never empty.
    pub reason: Option<String>,
    /// A text for the conversation: at most [`MAX_CONTEXT_CHARS`], then a mark that it was cut; never empty.
    pub context: Option<String>,
    /// The input that it wants to change, as it came; [`rewrite()`] reads it.
    pub updated_input: Option<Object>,
    /// Whether an evaluator saw an attempt to instruct it. Where that is not to be ignored, the decision is a block.
    pub injection_detected: bool,
    /// Likely mistakes in how it was said: members that are not read and are near one that is.
    pub warnings: Vec<String>,
}

/// A word of decision.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Decision {
    /// Go on.
    #[default]
    Allow,
    /// No.
    Block,
    /// A person must say.
    Ask,
    /// Not yet a decision; counts as a block.
    Defer,
}

impl Decision {
    /// All of them, in the order in which messages list them.
    pub const ALL: [Self; 4] = [Self::Allow, Self::Block, Self::Ask, Self::Defer];

    /// The decision that `word` names.
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|decision| decision.word() == word)
    }

    /// The stricter one of the two: what is not decided yet is nearer to a block than a question.
    fn stricter(self, other: Self) -> Self {
        const RISING: [Decision; 4] = [Decision::Allow, Decision::Ask, Decision::Defer, Decision::Block];
        let rank = |decision| RISING.iter().position(|known| *known == decision);
        if rank(other) > rank(self) { other } else { self }
    }

    /// The word that it counts for at `event`, and is recorded as: a person can be asked about a call of a tool and
    /// about nothing else, and what is not decided yet is not allowed.
    pub fn at(self, event: CheckpointKind) -> Self {
        match self {
            Self::Allow | Self::Block => self,
            Self::Ask if event == CheckpointKind::PreToolUse => self,
            Self::Ask | Self::Defer => Self::Block,
        }
    }

    /// Its word on the wire.
    pub fn word(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Block => "block",
            Self::Ask => "ask",
            Self::Defer => "defer",
        }
    }
}

/// Why an answer says nothing that counts. Its text is the fault as messages and records quote it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplyFault {
    /// A command left with a code that says neither allow nor block.
    #[error("hook: command exited {code}: {}", text::or_nothing(stderr))]
    Exited {
        /// Its exit code.
        code: i32,
        /// The complaint on standard error, cleaned and cut.
        stderr: String,
    },
    /// A signal ended a command. The number is the one that shells give for it.
    #[error("hook: command exited {}: killed by signal {signal}: {}", 128 + signal, text::or_nothing(stderr))]
    Killed {
        /// The signal.
        signal: i32,
        /// The complaint on standard error, cleaned and cut.
        stderr: String,
    },
    /// The reply is longer than any that is read.
    #[error("reply: {got} bytes, more than the {MAX_REPLY_BYTES} that are read")]
    TooLarge {
        /// Its length, in bytes.
        got: usize,
    },
    /// The reply is not JSON, or a known member of it is not what it must be.
    #[error("{0}")]
    Unreadable(String),
}

impl ReplyFault {
    /// Its place in the closed list of faults.
    pub fn kind(&self) -> FaultKind {
        match self {
            Self::Exited { .. } => FaultKind::BadExit,
            Self::Killed { .. } => FaultKind::Killed,
            Self::TooLarge { .. } => FaultKind::TooLarge,
            Self::Unreadable(_) => FaultKind::Unreadable,
        }
    }
}
