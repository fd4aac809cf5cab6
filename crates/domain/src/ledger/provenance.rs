//! Where a message of a list comes from: it stands beside the message, never in it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::skill::timing::Timing;

/// The identity of a message that a ledger put into its list. Counted from 1, so that the same turn, made again, has the
/// same ones; with the id of the turn it is unique everywhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MsgId(u64);

impl MsgId {
    pub(super) fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

impl fmt::Display for MsgId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "#{}", self.0)
    }
}

/// Who brought a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageSource {
    /// The user.
    User,
    /// The model.
    Model,
    /// A tool.
    Tool,
    /// The host itself.
    Builtin,
    /// A hook, in this request.
    Hook,
    /// A hook, in an earlier request: it came back with the history.
    HookHistory,
    /// The user, while the turn was worked.
    Steering,
    /// A sub-agent that worked in the background.
    Subagent,
    /// A hook that rewrote the request.
    Rewriter,
}

/// A prompt of the host's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HostPrompt {
    /// Ends the list of the planning call.
    PlanningPrompt,
    /// Ends the list of the first call of the loop.
    FirstStepPrompt,
    /// Ends the list of every later call of the loop.
    AgentLoopPrompt,
}

impl HostPrompt {
    /// Its name in listings.
    pub fn word(self) -> &'static str {
        match self {
            Self::PlanningPrompt => "planning_prompt",
            Self::FirstStepPrompt => "first_step_prompt",
            Self::AgentLoopPrompt => "agent_loop_prompt",
        }
    }
}

/// Where a message comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Provenance {
    /// Who brought it.
    pub origin: MessageSource,
    /// Its identity, if a ledger put it in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub msg_id: Option<MsgId>,
    /// The skill, of a hook's text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skill: Option<String>,
    /// The hook.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hook: Option<String>,
    /// When it went in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timing: Option<Timing>,
    /// Which prompt of the host's own it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<HostPrompt>,
    /// The round in which it came; 0 before the first, or where nobody knows.
    pub round: u32,
    /// The call of a tool that it answers or is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// The texts that were in force.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot_hash: Option<String>,
}

impl Provenance {
    /// Of something that `origin` brought in `round`.
    pub fn new(origin: MessageSource, round: u32) -> Self {
        Self {
            origin,
            msg_id: None,
            skill: None,
            hook: None,
            timing: None,
            prompt: None,
            round,
            tool_call_id: None,
            snapshot_hash: None,
        }
    }
}
