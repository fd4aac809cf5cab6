//! `pre_tool_use`: a tool call has its final input; gates let it pass, change it, block it or want a human.

use std::collections::BTreeSet;

use super::verdict::{ParsedVerdict, Verdict};
use super::{AgentInfo, Checkpoint, CheckpointKind, Facts, Reply, Snapshot, Subject};
use crate::id::HookName;
use crate::json::{Object, same_value};
use crate::reason::{Never, Reason};
use crate::rule::Rights;
use crate::tool::ToolCall;

/// A call before the gates.
///
/// # Example
///
/// A gate may want a human; it cannot answer for the tool or end the turn, and its fault blocks.
///
/// ```
/// use pintle_domain::checkpoint::{Checkpoint, PreToolUse};
/// use pintle_domain::verdict::{Verdict, VerdictKind};
///
/// let verdict = Verdict::<PreToolUse>::Ask("it deletes files".into());
/// assert_eq!(verdict.told().0, VerdictKind::Ask);
/// assert_eq!(PreToolUse::closed("no answer".into()), Some(Verdict::Deny("no answer".into())));
/// assert_eq!(PreToolUse::aborted("no answer".into()), None);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct PreToolUse {
    /// The call as it is about to run.
    pub call: ToolCall,
}

impl Checkpoint for PreToolUse {
    const KIND: CheckpointKind = CheckpointKind::PreToolUse;
    const TAKES_NOTES: bool = true;
    /// The complete new input.
    type Modify = Object;
    type Respond = Never;
    /// Why a human must say.
    type Ask = Reason;
    type Deny = Reason;
    type Abort = Never;

    fn facts(&self) -> Facts<'_> {
        Facts::of_call(&self.call)
    }

    fn modify(&mut self, with: Object, _by: &HookName, _known: &dyn AgentInfo) -> Result<Vec<String>, String> {
        self.call.arguments = with;
        Ok(Vec::new())
    }

    fn permitted(&self, with: Object, rights: &Rights) -> (Option<Object>, Option<String>) {
        let keys: BTreeSet<&String> = with.keys().chain(self.call.arguments.keys()).collect();
        let differs = |key: &str| match (with.get(key), self.call.arguments.get(key)) {
            (Some(new), Some(old)) => !same_value(new, old),
            (None, None) => false,
            (Some(_), None) | (None, Some(_)) => true,
        };
        let denied: Vec<String> =
            keys.into_iter().filter(|key| differs(key) && !rights.argument(key)).cloned().collect();
        if denied.is_empty() {
            return (Some(with), None);
        }
        // What may be changed is; the rest stays as it was.
        let mut left = self.call.arguments.clone();
        left.retain(|key, _| with.contains_key(key) || !rights.argument(key));
        for (key, value) in with {
            if rights.argument(&key) {
                left.insert(key, value);
            }
        }
        let any = left.len() != self.call.arguments.len()
            || left.iter().any(|(key, value)| self.call.arguments.get(key).is_none_or(|old| !same_value(old, value)));
        (any.then_some(left), Some(format!("it may not change {}", denied.join(", "))))
    }

    fn closed(why: Reason) -> Option<Verdict<Self>> {
        Some(Verdict::Deny(why))
    }

    fn aborted(_why: Reason) -> Option<Verdict<Self>> {
        None
    }

    fn subject(&self) -> Subject<'_> {
        Subject::PreToolUse(self)
    }

    fn heard(reply: Reply) -> Option<ParsedVerdict<Self>> {
        if let Reply::PreToolUse(heard) = reply { Some(heard) } else { None }
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot::Call { tool: self.call.tool.clone(), arguments: self.call.arguments.clone() }
    }
}
