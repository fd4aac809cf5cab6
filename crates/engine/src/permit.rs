//! Leave to run one tool call. Only this crate can make one.

use domain::tool::{Digest, ToolCall};

/// Leave to run exactly one call, once: it is not `Clone`, has no public constructor, and running takes it by value.
#[derive(Debug)]
pub struct Permit {
    call: ToolCall,
    digest: Digest,
}

impl Permit {
    pub(crate) fn grant(call: ToolCall, digest: Digest) -> Self {
        Self { call, digest }
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
