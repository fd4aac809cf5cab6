//! How a turn ended.

use super::Turn;
use crate::checkpoint::RuntimeEvent;
use crate::checkpoint::runtime::{InterruptKind, TurnStatus};
use crate::json::Rendered;
use crate::message::Message;
use crate::ruling::Aborted;
use crate::verdict::AbortScope;

/// The end of a turn.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnEnd {
    /// The word of `turn_end`.
    pub status: TurnStatus,
    /// The text that the user reads at the end; empty when the results went out already or nothing came of it.
    pub reply: String,
    /// The failure, for a turn that ended in an error: the stage and the text.
    pub error: Option<(String, String)>,
    /// Whether history goes back to where the turn began.
    pub roll_back: bool,
    /// The hook's order that ended it, where one did.
    pub stopped_by: Option<Aborted>,
    /// Whether all rounds were spent.
    pub at_limit: bool,
}

impl TurnEnd {
    fn with(status: TurnStatus) -> Self {
        Self { status, reply: String::new(), error: None, roll_back: false, stopped_by: None, at_limit: false }
    }

    /// The turn has its answer.
    pub fn completed(reply: impl Into<String>) -> Self {
        Self { reply: reply.into(), ..Self::with(TurnStatus::Completed) }
    }

    /// The turn failed at `stage`.
    pub fn failed(stage: impl Into<String>, text: impl Into<String>) -> Self {
        Self { error: Some((stage.into(), text.into())), ..Self::with(TurnStatus::Error) }
    }

    /// All `limit` rounds are spent, and the model said `reply` in one more call.
    pub fn at_limit(limit: u32, reply: impl Into<String>) -> Self {
        let failed = Self::failed("llm", format!("iteration limit {limit} reached"));
        Self { reply: reply.into(), at_limit: true, ..failed }
    }

    /// Somebody stopped the turn; what it did stays in the history.
    pub fn cancelled() -> Self {
        Self::with(TurnStatus::Aborted)
    }

    /// The whole run was stopped; the history goes back to the start of the turn.
    pub fn hard_aborted() -> Self {
        Self { roll_back: true, ..Self::cancelled() }
    }

    /// A hook stopped the turn, or the whole run.
    pub fn stopped(by: Aborted) -> Self {
        let end = match by.abort.abort_scope {
            AbortScope::Turn => Self::failed(format!("hook.{}", by.at.name()), by.text()),
            AbortScope::Run => Self::hard_aborted(),
        };
        Self { stopped_by: Some(by), ..end }
    }

    /// The event that observers are told of this end, right before `turn_end`.
    pub fn told(&self) -> Option<RuntimeEvent> {
        let hook = self.stopped_by.as_ref().map(|aborted| aborted.by.to_string());
        if let Some((stage, message)) = &self.error {
            return Some(RuntimeEvent::Error { stage: stage.clone(), message: message.clone(), hook });
        }
        let aborted = self.stopped_by.as_ref()?;
        Some(RuntimeEvent::InterruptReceived {
            kind: InterruptKind::HardAbort,
            role: "hook".into(),
            content_len: 0,
            queue_depth: 0,
            hint_len: aborted.abort.reason.as_str().len(),
            hook,
        })
    }
}

impl Turn {
    /// The limit of rounds, if they are all spent and the turn is at the call that sums up.
    pub fn limit_reached(&self) -> Option<u32> {
        (self.iteration > self.max_iterations && !self.interrupted).then_some(self.max_iterations)
    }

    /// The conversation that stood before it.
    pub fn before(&self) -> Vec<Rendered<Message>> {
        self.before.clone().unwrap_or_else(|| self.messages[..self.base.min(self.messages.len())].to_vec())
    }
}
