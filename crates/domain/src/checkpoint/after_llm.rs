//! `after_llm`: a model has answered; hooks rewrite the answer before anyone reads it.

use super::verdict::{ParsedVerdict, Verdict};
use super::{AgentInfo, Checkpoint, CheckpointKind, Facts, Reply, Snapshot, Subject};
use crate::id::HookName;
use crate::llm::LlmReply;
use crate::message::Role;
use crate::reason::{Abort, AbortScope, Never, Reason};

/// A model's answer on its way to the agent.
///
/// # Example
///
/// A replaced answer keeps what it cost.
///
/// ```
/// use pintle_domain::checkpoint::{AfterLlm, Checkpoint, AgentInfo};
/// use pintle_domain::id::HookName;
/// use pintle_domain::llm::{LlmReply, Usage};
/// # struct Agent;
/// # impl AgentInfo for Agent {
/// #     fn tool(&self, name: &str) -> Option<String> { (name == "read").then(|| name.to_owned()) }
/// #     fn model(&self, model: &str) -> bool { model == "big" }
/// #     fn owner(&self, _name: &str) -> Option<HookName> { None }
/// # }
///
/// let usage = Some(Usage { prompt_tokens: 7, completion_tokens: 2, total_tokens: 9 });
/// let mut event = AfterLlm { model: "m".into(), response: LlmReply { usage, ..LlmReply::text("hello") } };
/// event.modify(LlmReply::text("Hi!"), &HookName::from("polite"), &Agent).expect("any answer is allowed");
/// assert_eq!((event.response.content.as_str(), event.response.usage), ("Hi!", usage));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct AfterLlm {
    /// The model that answered; read-only.
    pub model: String,
    /// The answer.
    pub response: LlmReply,
}

impl Checkpoint for AfterLlm {
    const KIND: CheckpointKind = CheckpointKind::AfterLlm;
    /// The whole answer; its `usage` is ignored, the provider's stays.
    type Modify = LlmReply;
    type Respond = Never;
    type Ask = Never;
    type Deny = Never;
    type Abort = Abort;

    fn facts(&self) -> Facts<'_> {
        Facts::default()
    }

    fn modify(&mut self, with: LlmReply, _by: &HookName, _known: &dyn AgentInfo) -> Result<Vec<String>, String> {
        let usage = self.response.usage;
        // A changed answer is no longer what the provider signed.
        let private = std::mem::take(&mut self.response.private);
        let same = with.content == self.response.content
            && with.tool_calls == self.response.tool_calls
            && with.reasoning_content == self.response.reasoning_content;
        self.response = LlmReply { role: Role::Assistant, usage, ..with };
        if same {
            self.response.private = private;
        }
        if self.response.finish_reason.is_empty() {
            let word = if self.response.tool_calls.is_empty() { "stop" } else { "tool_calls" };
            self.response.finish_reason = word.into();
        }
        Ok(Vec::new())
    }

    fn closed(_why: Reason) -> Option<Verdict<Self>> {
        None
    }

    fn aborted(why: Reason) -> Option<Verdict<Self>> {
        Some(Verdict::Abort(Abort { abort_scope: AbortScope::Turn, reason: why }))
    }

    fn subject(&self) -> Subject<'_> {
        Subject::AfterLlm(self)
    }

    fn heard(reply: Reply) -> Option<ParsedVerdict<Self>> {
        if let Reply::AfterLlm(heard) = reply { Some(heard) } else { None }
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot::Reply(self.response.clone())
    }
}
