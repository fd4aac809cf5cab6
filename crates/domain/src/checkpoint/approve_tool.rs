//! `approve_tool`: a tool call passed the gates; approvers approve exactly this call or refuse it.

use super::verdict::{ParsedVerdict, Verdict};
use super::{AgentInfo, Checkpoint, CheckpointKind, Facts, Reply, Snapshot, Subject};
use crate::id::HookName;
use crate::reason::{Never, Reason};
use crate::tool::ToolCall;

/// A call that waits for approval. [`Verdict::Continue`] approves it.
///
/// # Example
///
/// An approver approves or refuses; there is nothing else it can say, and its fault refuses.
///
/// ```
/// use pintle_domain::checkpoint::{ApproveTool, Checkpoint, CheckpointKind};
/// use pintle_domain::ruling::{Denied, DenialGround};
/// use pintle_domain::verdict::Verdict;
///
/// assert_eq!(ApproveTool::closed("it failed".into()), Some(Verdict::Deny("it failed".into())));
/// let (at, ground) = (CheckpointKind::ApproveTool, DenialGround::Said);
/// let denied = Denied { by: "boss".into(), at, reason: "no".into(), ground };
/// assert_eq!(denied.text(), "Tool execution denied by approval hook: no (hook \"boss\")");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct ApproveTool {
    /// The final call.
    pub call: ToolCall,
}

impl Checkpoint for ApproveTool {
    const KIND: CheckpointKind = CheckpointKind::ApproveTool;
    type Modify = Never;
    type Respond = Never;
    type Ask = Never;
    type Deny = Reason;
    type Abort = Never;

    fn facts(&self) -> Facts<'_> {
        Facts::of_call(&self.call)
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
        Subject::ApproveTool(self)
    }

    fn heard(reply: Reply) -> Option<ParsedVerdict<Self>> {
        if let Reply::ApproveTool(heard) = reply { Some(heard) } else { None }
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot::Call { tool: self.call.tool.clone(), arguments: self.call.arguments.clone() }
    }
}
