//! What one tool call came to, in words.

use super::Outcome;
use crate::id::HookName;
use crate::tool::ToolCall;
use crate::verdict::Word;

impl Outcome {
    /// The hook that decided, where one did.
    pub fn decided_by(&self) -> Option<&HookName> {
        match self {
            Self::Run(_) => None,
            Self::Substituted { by, .. } | Self::Ask { by, .. } => Some(by),
            Self::Refused { denied, .. } => Some(&denied.by),
            Self::Abort { aborted, .. } => Some(&aborted.by),
        }
    }

    /// The call as it stands.
    pub fn call(&self) -> &ToolCall {
        match self {
            Self::Run(call)
            | Self::Substituted { call, .. }
            | Self::Ask { call, .. }
            | Self::Refused { call, .. }
            | Self::Abort { call, .. } => call,
        }
    }

    /// The word of the whole clearing, for the record.
    pub fn word(&self) -> Word {
        match self {
            Self::Run(_) => Word::Continue,
            Self::Substituted { .. } => Word::Respond,
            Self::Ask { .. } => Word::Ask,
            Self::Refused { .. } => Word::Deny,
            Self::Abort { aborted, .. } => aborted.word(),
        }
    }
}
