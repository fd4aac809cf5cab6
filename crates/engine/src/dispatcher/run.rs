//! The main path beside the permit: a message through the gates, a subject through the hooks that may change it, a call
//! told from its start to its end. Whoever runs the loop, this part is the same.

use std::time::Duration;

use pintle_domain::chain::Note;
use pintle_domain::checkpoint::subagent_start::{MAX_SUBAGENT_DEPTH, TOO_DEEP};
use pintle_domain::checkpoint::user_prompt_submit::InputKind;
use pintle_domain::checkpoint::{
    AfterTool, Checkpoint, CheckpointKind, FinishedCall, ObservedEvent, RuntimeEvent, SubagentStart, UserPromptSubmit,
};
use pintle_domain::id::{AgentId, HookName};
use pintle_domain::llm::Usage;
use pintle_domain::ruling::{Aborted, DenialGround, Denied, Ruling};
use pintle_domain::tool::{ToolCall, ToolOutput};
use pintle_domain::verdict::Never;

use super::Dispatcher;
use crate::evidence::{ModelFailure, ModelSwitch};

/// The text in the place of a result when the turn was cancelled before every hook had seen it: what they would remove
/// reaches nobody.
pub const WITHHELD: &str =
    "What the tool gave is withheld: the turn was cancelled before every hook had seen it, and maybe before its end.";

/// Why something goes no further.
#[derive(Clone, Debug, PartialEq)]
#[must_use = "what is stopped must not go on"]
pub enum Stopped {
    /// A hook refused it.
    Denied(Denied),
    /// A hook stopped the turn, or more.
    Aborted(Aborted),
    /// The turn was cancelled before every hook had said something.
    Cancelled,
}

impl Dispatcher {
    /// Asks the hooks of a checkpoint that can change `subject` or stop it, and gives back what they leave. An abort
    /// counts also when the turn was cancelled meanwhile.
    ///
    /// # Errors
    /// It goes no further; what is left of it stands beside the reason.
    pub async fn pass<C>(&self, subject: C) -> Result<C, (C, Stopped)>
    where
        C: Checkpoint<Respond = Never, Ask = Never>,
    {
        let (subject, ruling) = self.check(subject).await;
        match ruling {
            Ruling::Abort(aborted) => Err((subject, Stopped::Aborted(aborted))),
            // What hooks say when they are cancelled is not a verdict.
            Ruling::Proceed | Ruling::Deny(_) if self.is_cut_off::<C>() => Err((subject, Stopped::Cancelled)),
            Ruling::Proceed => Ok(subject),
            Ruling::Deny(denied) => Err((subject, Stopped::Denied(denied))),
            Ruling::Respond { with: never, .. } | Ruling::Ask { why: never, .. } => match never {},
        }
    }

    /// Whether hooks of `C` may have been cut off before they said something.
    pub fn is_cut_off<C: Checkpoint>(&self) -> bool {
        self.cancel.is_cancelled() && self.set().roster().waits_at(C::KIND)
    }

    /// Puts a message to the gates, and gives back what they leave of it, with what they want the model to read after it.
    ///
    /// # Errors
    /// It reaches no model.
    pub async fn submit(&self, prompt: &str, input_kind: InputKind) -> Result<(String, Vec<Note>), Stopped> {
        let subject = UserPromptSubmit { prompt: prompt.to_owned(), input_kind };
        let (submitted, ruling, notes) = self.consult(subject).await;
        match ruling {
            Ruling::Proceed => Ok((submitted.prompt, notes)),
            // A gate that was cancelled refuses too, but that is not a verdict on the message.
            Ruling::Deny(denied) if denied.ground == DenialGround::Fault && self.cancel.is_cancelled() => {
                Err(Stopped::Cancelled)
            }
            Ruling::Deny(denied) => Err(Stopped::Denied(denied)),
            Ruling::Abort(aborted) => Err(Stopped::Aborted(aborted)),
            Ruling::Respond { with: never, .. } | Ruling::Ask { why: never, .. } => match never {},
        }
    }

    /// The sub-agent that is to begin for this turn, before its gates.
    ///
    /// # Errors
    /// It would stand too deep: that is logged and recorded, and these are the words for whoever wanted it.
    pub fn subagent(&self, agent: AgentId, task: &str, call: Option<ToolCall>) -> Result<SubagentStart, &'static str> {
        let depth = self.who.depth + 1;
        if depth > MAX_SUBAGENT_DEPTH {
            tracing::warn!(agent = agent.as_str(), depth, "security.hook.loop_depth_exceeded");
            self.refused(CheckpointKind::SubagentStart, TOO_DEEP);
            return Err(TOO_DEEP);
        }
        Ok(SubagentStart::new(agent, task, depth, call))
    }

    /// Shows the result of a call that ran to the hooks that may change it. If it reaches nobody, a text stands in its
    /// place, and the reason beside it.
    pub async fn review(&self, call: ToolCall, output: ToolOutput, took: Duration) -> (FinishedCall, Option<Stopped>) {
        let subject = AfterTool { call, result: output, duration: took };
        let (after, stopped) = match self.pass(subject).await {
            Ok(after) => (after, None),
            Err((after, stopped)) => {
                let text = match &stopped {
                    Stopped::Denied(denied) => denied.text(),
                    Stopped::Aborted(aborted) => aborted.text(),
                    Stopped::Cancelled => WITHHELD.to_owned(),
                };
                (AfterTool { result: ToolOutput::error(text), ..after }, Some(stopped))
            }
        };
        (FinishedCall { call: after.call, output: after.result, by: None, took }, stopped)
    }

    /// Tells that `call` begins to run, or that the hook `by` answered it.
    pub fn tell_started(&self, call: &ToolCall, by: Option<&HookName>) {
        self.tell(RuntimeEvent::tool_exec_start(call, by));
    }

    /// Shows whoever watches that another model is asked.
    pub fn show_switch(&self, switch: &ModelSwitch<'_>) {
        self.evidence.switched(&self.who, switch);
    }

    /// Shows whoever watches that a model gave no answer.
    pub fn show_failure(&self, failure: &ModelFailure<'_>) {
        self.evidence.model_failed(&self.who, failure);
    }

    /// Shows whoever watches what a call of a model cost.
    pub fn show_usage(&self, usage: Usage) {
        self.evidence.used(&self.who, usage);
    }

    /// Tells that `call` does not run, for `reason`; the hook `by` refused it, if one did.
    pub fn tell_skipped(&self, call: &ToolCall, reason: &str, by: Option<&HookName>) {
        self.tell(RuntimeEvent::tool_exec_skipped(call, reason, by));
    }

    /// Tells that the result of a call is settled. Waits, not for long, until there is room to tell it.
    pub async fn tell_finished(&self, finished: FinishedCall) {
        self.tell(RuntimeEvent::tool_exec_end(&finished));
        self.room(CheckpointKind::PostToolUse).await;
        let FinishedCall { call, output, by, took } = finished;
        self.tell(ObservedEvent::PostToolUse { call, output, duration: took, substituted: by.is_some() });
    }
}
