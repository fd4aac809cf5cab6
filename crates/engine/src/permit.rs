//! Leave to run one tool call. Only this crate can make one.

use pintle_domain::id::{AgentId, SessionId, TenantId, TurnId};
use pintle_domain::identity::Identity;
use pintle_domain::tool::{Digest, ToolCall};

/// The turn that a permit was made for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The tenant that owns the call.
    pub tenant_id: TenantId,
    /// The agent that makes it.
    pub agent_id: AgentId,
    /// The conversation.
    pub session_id: SessionId,
    /// The turn.
    pub turn_id: TurnId,
}

/// Leave to run exactly one call, once: it is not `Clone`, has no public constructor, and running takes it by value.
#[derive(Debug)]
pub struct Permit {
    owner: Owner,
    call: ToolCall,
    digest: Digest,
    approval: Option<String>,
}

impl Permit {
    pub(crate) fn grant(who: &Identity, call: ToolCall, digest: Digest, approval: Option<String>) -> Self {
        let owner = Owner {
            tenant_id: who.tenant_id.clone(),
            agent_id: who.agent_id.clone(),
            session_id: who.session_id.clone(),
            turn_id: who.turn_id.clone(),
        };
        Self { owner, call, digest, approval }
    }

    /// The turn for which the call was cleared.
    pub fn owner(&self) -> &Owner {
        &self.owner
    }

    /// The approval by a person that it rests on, if it rests on one; it is used up.
    pub fn approval(&self) -> Option<&str> {
        self.approval.as_deref()
    }

    /// The call itself. The permit is used up.
    pub fn into_call(self) -> ToolCall {
        self.call
    }

    /// The call that may run.
    pub fn call(&self) -> &ToolCall {
        &self.call
    }

    /// The digest that the record of its clearing carries.
    pub fn digest(&self) -> Digest {
        self.digest
    }
}
