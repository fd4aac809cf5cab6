//! Leave to run one tool call. Only this crate can make one.

use domain::identity::Identity;
use domain::tool::{Digest, ToolCall};

/// Leave to run exactly one call, once: it is not `Clone`, has no public constructor, and running takes it by value.
#[derive(Debug)]
pub struct Permit {
    who: Identity,
    call: ToolCall,
    digest: Digest,
    approval: Option<String>,
}

impl Permit {
    pub(crate) fn grant(who: Identity, call: ToolCall, digest: Digest, approval: Option<String>) -> Self {
        Self { who, call, digest, approval }
    }

    /// Whose call it is: tenant, agent, session, turn.
    pub fn identity(&self) -> &Identity {
        &self.who
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
