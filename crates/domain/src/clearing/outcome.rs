//! What one tool call came to, in words.

use super::ClearingOutcome;
use crate::id::HookName;
use crate::tool::ToolCall;
use crate::verdict::VerdictKind;

impl ClearingOutcome {
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

    /// The call as it stands.
    pub fn into_call(self) -> ToolCall {
        match self {
            Self::Run(call)
            | Self::Substituted { call, .. }
            | Self::Ask { call, .. }
            | Self::Refused { call, .. }
            | Self::Abort { call, .. } => call,
        }
    }

    /// The word of the whole clearing, for the record.
    pub fn word(&self) -> VerdictKind {
        match self {
            Self::Run(_) => VerdictKind::Continue,
            Self::Substituted { .. } => VerdictKind::Respond,
            Self::Ask { .. } => VerdictKind::Ask,
            Self::Refused { .. } => VerdictKind::Deny,
            Self::Abort { aborted, .. } => aborted.word(),
        }
    }
}
