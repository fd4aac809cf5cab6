//! What observers are told: the runtime events and the three places that only gates' families observe.

use std::time::Duration;

use super::{CheckpointKind, Facts, RuntimeEvent};
use crate::id::EventId;
use crate::identity::Identity;
use crate::tool::{ToolCall, ToolOutput};

/// One occurrence that observers are told of.
#[derive(Clone, Debug, PartialEq)]
pub struct Notice {
    /// Which occurrence.
    pub event_id: EventId,
    /// When, RFC 3339, UTC, nanoseconds.
    pub at: jiff::Timestamp,
    /// Whose.
    pub who: Identity,
    /// What.
    pub what: Observed,
}

/// What happened.
///
/// # Example
///
/// ```
/// use pintle_domain::checkpoint::{CheckpointKind, Observed};
///
/// assert_eq!(Observed::SessionStart.name(), "session_start");
/// assert_eq!(Observed::Stop { reply: "done".into() }.checkpoint(), CheckpointKind::Stop);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Observed {
    /// A session is new; once per session.
    SessionStart,
    /// A tool's result is settled: what went in, what came out.
    PostToolUse {
        /// The call as it ran or was answered.
        call: ToolCall,
        /// The settled result.
        output: ToolOutput,
        /// How long it took.
        duration: Duration,
    },
    /// A turn completed with this reply.
    Stop {
        /// The text that the user got.
        reply: String,
    },
    /// A runtime event.
    Runtime(RuntimeEvent),
}

impl Observed {
    /// The checkpoint it belongs to.
    pub fn checkpoint(&self) -> CheckpointKind {
        match self {
            Self::SessionStart => CheckpointKind::SessionStart,
            Self::PostToolUse { .. } => CheckpointKind::PostToolUse,
            Self::Stop { .. } => CheckpointKind::Stop,
            Self::Runtime(_) => CheckpointKind::Runtime,
        }
    }

    /// What matchers may see.
    pub fn facts(&self) -> Facts<'_> {
        match self {
            Self::PostToolUse { call, .. } => Facts { tool: Some((&call.tool, &call.raw_tool)) },
            Self::SessionStart | Self::Stop { .. } | Self::Runtime(_) => Facts::default(),
        }
    }

    /// The name: of the runtime event, else of the checkpoint.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Runtime(event) => event.kind().name(),
            Self::SessionStart | Self::PostToolUse { .. } | Self::Stop { .. } => self.checkpoint().name(),
        }
    }
}

impl From<RuntimeEvent> for Observed {
    fn from(event: RuntimeEvent) -> Self {
        Self::Runtime(event)
    }
}
