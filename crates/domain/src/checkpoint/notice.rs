//! What observers are told: the runtime events and the three places that only gates' families observe.

use std::time::Duration;

use super::runtime::TurnStatus;
use super::{CheckpointKind, Facts, RuntimeEvent};
use crate::hook::{Hook, State};
use crate::id::{AgentId, EventId};
use crate::identity::Identity;
use crate::record::NotRun;
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
    /// A sub-agent has ended; once for each that was let begin.
    SubagentStop {
        /// The sub-agent.
        agent: AgentId,
        /// What it was to do.
        task: String,
        /// How it ended.
        status: TurnStatus,
        /// What it brought, or what went wrong.
        outcome: String,
        /// What it was denied.
        denials: Vec<String>,
    },
    /// A turn completed with this reply.
    Stop {
        /// The text that the user got.
        reply: String,
    },
    /// A runtime event.
    Runtime(RuntimeEvent),
}

impl Notice {
    /// Why `hook`, which is registered for this, is not told of it; `None` if it is.
    pub fn passes_over(&self, hook: &Hook) -> Option<NotRun> {
        match hook.state {
            State::Disabled => return Some(NotRun::Disabled),
            State::Untrusted => return Some(NotRun::Untrusted),
            State::Broken(_) => return Some(NotRun::OutOfScope),
            State::Armed => {}
        }
        let agents: Vec<AgentId> = std::iter::once(&self.who.agent_id).chain(&self.who.ancestors).cloned().collect();
        if !hook.scope.covers(&agents) {
            return Some(NotRun::OutOfScope);
        }
        if let Observed::Runtime(event) = &self.what {
            let wanted = hook.events.as_ref().is_none_or(|kinds| kinds.contains(&event.kind()));
            return (!wanted).then_some(NotRun::OutOfScope);
        }
        let facts = self.what.facts();
        (!hook.matches(&facts)).then(|| NotRun::Matcher {
            pattern: hook.matcher.as_ref().map(|m| m.pattern().to_owned()).unwrap_or_default(),
            value: facts.tool.map(|(tool, _)| tool.to_owned()).unwrap_or_default(),
        })
    }
}

impl Observed {
    /// The checkpoint it belongs to.
    pub fn checkpoint(&self) -> CheckpointKind {
        match self {
            Self::SessionStart => CheckpointKind::SessionStart,
            Self::PostToolUse { .. } => CheckpointKind::PostToolUse,
            Self::SubagentStop { .. } => CheckpointKind::SubagentStop,
            Self::Stop { .. } => CheckpointKind::Stop,
            Self::Runtime(_) => CheckpointKind::Runtime,
        }
    }

    /// What matchers may see.
    pub fn facts(&self) -> Facts<'_> {
        match self {
            Self::PostToolUse { call, .. } => Facts { tool: Some((&call.tool, &call.raw_tool)) },
            Self::SessionStart | Self::SubagentStop { .. } | Self::Stop { .. } | Self::Runtime(_) => Facts::default(),
        }
    }

    /// The name: of the runtime event, else of the checkpoint.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Runtime(event) => event.kind().name(),
            Self::SessionStart | Self::PostToolUse { .. } | Self::SubagentStop { .. } | Self::Stop { .. } => {
                self.checkpoint().name()
            }
        }
    }
}

impl From<RuntimeEvent> for Observed {
    fn from(event: RuntimeEvent) -> Self {
        Self::Runtime(event)
    }
}
