//! `after_tool`: a tool has run; hooks rewrite its result before anyone reads it.

use std::time::Duration;

use super::verdict::{ParsedVerdict, Verdict};
use super::{AgentInfo, Checkpoint, CheckpointKind, Facts, Reply, Snapshot, Subject};
use crate::id::HookName;
use crate::reason::{Abort, AbortScope, Never, Reason};
use crate::tool::{ToolCall, ToolOutput};

/// A tool's result on its way to the model and the user.
///
/// # Example
///
/// What a hook removes from a result reaches nobody.
///
/// ```
/// use std::time::Duration;
///
/// use pintle_domain::checkpoint::{AfterTool, Checkpoint, AgentInfo};
/// use pintle_domain::id::HookName;
/// use pintle_domain::json::Object;
/// use pintle_domain::tool::{ToolCall, ToolOutput};
/// # struct Agent;
/// # impl AgentInfo for Agent {
/// #     fn tool(&self, name: &str) -> Option<String> { (name == "read").then(|| name.to_owned()) }
/// #     fn model(&self, model: &str) -> bool { model == "big" }
/// #     fn owner(&self, _name: &str) -> Option<HookName> { None }
/// # }
///
/// let call = ToolCall {
///     id: "c1".into(),
///     tool: "exec".into(),
///     raw_tool: "bash".into(),
///     arguments: Object::new(),
/// };
/// let mut event = AfterTool { call, result: ToolOutput::ok("key=hunter2"), duration: Duration::ZERO };
/// event.modify(ToolOutput::ok("[redacted]"), &HookName::from("leaks"), &Agent).expect("any result is allowed");
/// assert_eq!(event.result.for_llm, "[redacted]");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct AfterTool {
    /// The call that ran; read-only.
    pub call: ToolCall,
    /// The result.
    pub result: ToolOutput,
    /// The time that the tool ran.
    pub duration: Duration,
}

impl Checkpoint for AfterTool {
    const KIND: CheckpointKind = CheckpointKind::AfterTool;
    /// The whole result.
    type Modify = ToolOutput;
    type Respond = Never;
    type Ask = Never;
    type Deny = Never;
    type Abort = Abort;

    fn facts(&self) -> Facts<'_> {
        Facts::of_call(&self.call)
    }

    fn modify(&mut self, with: ToolOutput, _by: &HookName, _known: &dyn AgentInfo) -> Result<Vec<String>, String> {
        self.result = with;
        Ok(Vec::new())
    }

    fn closed(_why: Reason) -> Option<Verdict<Self>> {
        None
    }

    fn aborted(why: Reason) -> Option<Verdict<Self>> {
        Some(Verdict::Abort(Abort { abort_scope: AbortScope::Turn, reason: why }))
    }

    fn subject(&self) -> Subject<'_> {
        Subject::AfterTool(self)
    }

    fn heard(reply: Reply) -> Option<ParsedVerdict<Self>> {
        if let Reply::AfterTool(heard) = reply { Some(heard) } else { None }
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot::Output(self.result.clone())
    }
}
