//! `subagent_start`: an agent is about to delegate to another; gates let it, or block it.

use super::verdict::{ParsedVerdict, Verdict};
use super::{AgentInfo, Checkpoint, CheckpointKind, Facts, Reply, Snapshot, Subject};
use crate::id::{AgentId, HookName};
use crate::json::Object;
use crate::reason::{Never, Reason};
use crate::tool::ToolCall;

/// The depth at which a sub-agent may stand below the agent that a person talks to. Source: lifecycle, rules' loop depth.
pub const MAX_SUBAGENT_DEPTH: u8 = 3;

/// The refusal of a sub-agent that would stand too deep.
pub const TOO_DEEP: &str = "sub-agents may stand at most 3 levels below the first agent";

/// A sub-agent before it begins.
///
/// # Example
///
/// A gate may block it; there is nothing to rewrite, and its fault blocks.
///
/// ```
/// use pintle_domain::checkpoint::{Checkpoint, SubagentStart};
/// use pintle_domain::verdict::{Verdict, VerdictKind};
///
/// let verdict = Verdict::<SubagentStart>::deny("one agent is enough");
/// assert_eq!(verdict.told().0, VerdictKind::Deny);
/// assert_eq!(SubagentStart::closed("no answer".into()), Some(Verdict::Deny("no answer".into())));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct SubagentStart {
    /// The agent that is to begin.
    pub agent: AgentId,
    /// The task of the sub-agent.
    pub task: String,
    /// The depth at which the sub-agent would stand; 1 is a child of the agent that a person talks to.
    pub depth: u8,
    /// The call of the model that wants it, if one does.
    pub call: Option<ToolCall>,
    /// The arguments of that call, or `{agent, task}`: what conditions see as input.
    pub input: Object,
}

impl SubagentStart {
    /// `agent` is to begin `task` at `depth`, as `call` of a model wants it if one does.
    pub fn new(agent: AgentId, task: impl Into<String>, depth: u8, call: Option<ToolCall>) -> Self {
        let task = task.into();
        let input = match &call {
            Some(call) => call.arguments.clone(),
            None => Object::from_iter([
                ("agent".to_owned(), agent.as_str().into()),
                ("task".to_owned(), task.as_str().into()),
            ]),
        };
        Self { agent, task, depth, call, input }
    }
}

impl Checkpoint for SubagentStart {
    const KIND: CheckpointKind = CheckpointKind::SubagentStart;
    type Modify = Never;
    type Respond = Never;
    type Ask = Never;
    type Deny = Reason;
    type Abort = Never;

    fn facts(&self) -> Facts<'_> {
        let tool = self.call.as_ref().map(|call| (call.tool.as_str(), call.raw_tool.as_str()));
        Facts { tool, input: Some(&self.input), depth: Some(self.depth), ..Facts::default() }
    }

    fn modify(&mut self, with: Never, _by: &HookName, _known: &dyn AgentInfo) -> Result<Vec<String>, String> {
        match with {}
    }

    fn closed(why: Reason) -> Option<Verdict<Self>> {
        Some(Verdict::Deny(why))
    }

    fn aborted(_why: Reason) -> Option<Verdict<Self>> {
        None
    }

    fn subject(&self) -> Subject<'_> {
        Subject::SubagentStart(self)
    }

    fn heard(reply: Reply) -> Option<ParsedVerdict<Self>> {
        if let Reply::SubagentStart(heard) = reply { Some(heard) } else { None }
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot::Task { agent: self.agent.to_string(), task: self.task.clone() }
    }
}
