//! What the loop must do after a whole chain.

use crate::checkpoint::{AskedKind, Checkpoint, CheckpointKind};
use crate::id::HookName;
use crate::verdict::{Abort, AbortScope, Describe as _, Reason, VerdictKind};

/// The refusal when hooks and gates do not agree on one input.
pub const KEPT_REWRITING: &str = "hooks kept rewriting the input";

/// The ruling that the loop must follow. What goes on is the subject that stands beside it.
#[derive(Clone, Debug, PartialEq)]
#[must_use = "a ruling nobody reads is a gate nobody closes"]
pub enum Ruling<C: Checkpoint> {
    /// Go on.
    Proceed,
    /// Take this result; do not run the tool.
    Respond {
        /// The hook that answered.
        by: HookName,
        /// Its answer.
        with: C::Respond,
    },
    /// A human must say.
    Ask {
        /// The hook that wants it.
        by: HookName,
        /// Why.
        why: C::Ask,
    },
    /// No.
    Deny(Denied),
    /// Stop the turn, or more.
    Abort(Aborted),
}

/// A refusal, with everything that its texts need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denied {
    /// The hook that refused or failed.
    pub by: HookName,
    /// Where.
    pub at: CheckpointKind,
    /// Why, in the hook's words or, for a fault, in ours; may be empty.
    pub reason: Reason,
    /// The ground of the refusal.
    pub ground: DenialGround,
}

/// The ground that a refusal rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DenialGround {
    /// The hook said so.
    Said,
    /// The hook failed: the reason names it already.
    Fault,
    /// The hook wanted a person to say, and they said no, or nobody could or did: the reason is the whole text.
    Person,
}

impl Denied {
    /// The text that the model and the user read: a fact, not an instruction.
    pub fn text(&self) -> String {
        if self.ground == DenialGround::Person {
            return format!("{} (asked by hook \"{}\")", self.reason, self.by);
        }
        match self.at.asked() {
            Some(AskedKind::ApproveTool) => self.phrase("Tool execution denied by approval hook"),
            Some(AskedKind::PreToolUse) => format!("Hook blocked: pre_tool_use: {}: {}", self.by, self.why()),
            Some(AskedKind::UserPromptSubmit) => {
                format!("hook blocked user_prompt_submit: {}: {}", self.by, self.why())
            }
            Some(AskedKind::SubagentStart) => format!("hook blocked subagent_start: {}: {}", self.by, self.why()),
            Some(AskedKind::BeforeLlm | AskedKind::AfterLlm | AskedKind::BeforeTool | AskedKind::AfterTool) | None => {
                self.phrase("Tool execution denied by hook")
            }
        }
    }

    /// The text that the agent reads which wanted to delegate to `agent`.
    pub fn of_delegation(&self, agent: &str) -> String {
        format!("delegation to \"{agent}\" blocked by hook policy: {}", self.because())
    }

    fn phrase(&self, head: &str) -> String {
        if self.ground == DenialGround::Fault {
            format!("{head}: {}", self.reason)
        } else if self.reason.is_empty() {
            format!("{head} (hook \"{}\")", self.by)
        } else {
            format!("{head}: {} (hook \"{}\")", self.reason, self.by)
        }
    }

    /// The hook and its reason, for a text that says itself what was refused.
    pub fn because(&self) -> String {
        format!("{}: {}", self.by, self.why())
    }

    fn why(&self) -> String {
        if self.reason.is_empty() { format!("blocked by hook \"{}\"", self.by) } else { self.reason.to_string() }
    }
}

/// An order to stop, with everything that its texts need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Aborted {
    /// The hook that ordered it.
    pub by: HookName,
    /// Where.
    pub at: CheckpointKind,
    /// The abort that the hook ordered.
    pub abort: Abort,
}

impl Aborted {
    /// Its word, for the record.
    pub fn word(&self) -> VerdictKind {
        self.abort.told(VerdictKind::AbortTurn).0
    }

    /// The text that the user reads.
    pub fn text(&self) -> String {
        let reason =
            if self.abort.reason.is_empty() { "hook requested turn abort" } else { self.abort.reason.as_str() };
        match self.abort.abort_scope {
            AbortScope::Turn => format!("hook aborted turn during {}: {reason}", self.at.name()),
            AbortScope::Run => format!("hook \"{}\" stopped the run: {reason}", self.by),
        }
    }

    /// The same for people who ask who stopped it: what the protocol says of a turn does not name the hook.
    pub fn text_with_hook(&self) -> String {
        let (text, by) = (self.text(), format!("hook \"{}\"", self.by));
        if text.contains(&by) { text } else { format!("{text} ({by})") }
    }
}

impl<C: Checkpoint> Ruling<C> {
    /// Its word, for the record. `changed` tells a modification from going on as before.
    pub fn word(&self, changed: bool) -> VerdictKind {
        match self {
            Self::Proceed if changed => VerdictKind::Modify,
            Self::Proceed => VerdictKind::Continue,
            Self::Respond { .. } => VerdictKind::Respond,
            Self::Ask { .. } => VerdictKind::Ask,
            Self::Deny(_) => VerdictKind::Deny,
            Self::Abort(aborted) => aborted.word(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_names_the_hook_that_ordered_it_once() {
        let order = |abort_scope| Aborted {
            by: "guard".into(),
            at: CheckpointKind::BeforeLlm,
            abort: Abort { abort_scope, reason: "too far".into() },
        };
        let turn = "hook aborted turn during before_llm: too far (hook \"guard\")";
        assert_eq!(order(AbortScope::Turn).text_with_hook(), turn);
        assert_eq!(order(AbortScope::Run).text_with_hook(), "hook \"guard\" stopped the run: too far");
    }
}
