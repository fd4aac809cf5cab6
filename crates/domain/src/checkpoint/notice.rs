//! What observers are told: the runtime events and the three places that only gates' families observe.

use std::time::Duration;

use super::runtime::TurnStatus;
use super::{AgentInfo, Checkpoint as _, CheckpointKind, EventContext, Facts, RuntimeEvent, SubagentStart};
use crate::chain::wanted;
use crate::hook::{Family, Hook, HookState};
use crate::id::{AgentId, EventId, HookName, SessionId, agent_uuid};
use crate::identity::Identity;
use crate::llm::Usage;
use crate::reason::VerdictKind;
use crate::record::{HookOutcome, NotRun};
use crate::tool::{ToolCall, ToolOutput};

/// One occurrence that observers are told of.
#[derive(Clone, Debug, PartialEq)]
pub struct Notice {
    /// Which occurrence.
    pub event_id: EventId,
    /// When, RFC 3339, UTC, nanoseconds.
    pub at: jiff::Timestamp,
    /// The identity of the turn that the event belongs to.
    pub who: Identity,
    /// The event that observers are told of.
    pub what: ObservedEvent,
}

/// The event that happened.
///
/// # Example
///
/// ```
/// use pintle_domain::checkpoint::{CheckpointKind, ObservedEvent};
///
/// assert_eq!(ObservedEvent::SessionStart.name(), "session_start");
/// assert_eq!(ObservedEvent::SessionStart.checkpoint(), CheckpointKind::SessionStart);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum ObservedEvent {
    /// A session is new; once per session.
    SessionStart,
    /// A tool's result is settled: what went in, what came out.
    PostToolUse {
        /// The call as it ran or was answered.
        call: ToolCall,
        /// The settled result.
        output: ToolOutput,
        /// The time that the call took.
        duration: Duration,
        /// Whether a hook answered in the tool's place.
        substituted: bool,
    },
    /// A sub-agent has ended; once for each that was let begin.
    SubagentStop {
        /// The subject that the sub-agent was begun with.
        start: Box<SubagentStart>,
        /// The session that it worked in.
        session_id: SessionId,
        /// The status in which the sub-agent's turn ended.
        status: TurnStatus,
        /// Whether it was stopped because its time was over.
        timed_out: bool,
        /// The result that the sub-agent brought, or the error.
        outcome: String,
        /// The calls that the sub-agent was denied.
        denials: Vec<String>,
        /// The time that the sub-agent took.
        duration: Duration,
    },
    /// A turn completed with this reply.
    Stop {
        /// The text that the user got.
        reply: String,
        /// The number of rounds that the turn took.
        iterations: u32,
        /// The usage of the turn's model calls together.
        usage: Usage,
        /// The time that the turn took.
        duration: Duration,
    },
    /// A runtime event.
    Runtime(RuntimeEvent),
}

impl Notice {
    /// The outcome of `hook`, which is registered for this, if it is not told of it; `None` if it is.
    pub fn passes_over(&self, hook: &Hook) -> Option<HookOutcome> {
        let not_run = |why| Some(HookOutcome::NotRun(why));
        match &hook.state {
            HookState::Disabled => return not_run(NotRun::Disabled),
            HookState::Untrusted => return not_run(NotRun::Untrusted),
            // Of what a configuration says nobody can tell what it was to hear.
            HookState::Broken(_) if hook.stored.is_none() => return not_run(NotRun::OutOfScope),
            HookState::Tripped { since } => return not_run(NotRun::BreakerOpen { since: since.clone() }),
            HookState::Armed | HookState::Broken(_) => {}
        }
        // A rule of the agent family binds those who work for its agents; what it observes is its agents' alone.
        let above = if hook.family == Family::Rule { &[] } else { self.who.ancestors.as_slice() };
        let agents: Vec<AgentId> = std::iter::once(&self.who.agent_id).chain(above).cloned().collect();
        if !hook.scope.covers(&agents) {
            return not_run(NotRun::OutOfScope);
        }
        if let ObservedEvent::Runtime(event) = &self.what {
            let wanted = hook.events.as_ref().is_none_or(|kinds| kinds.contains(&event.kind()));
            return if wanted { None } else { not_run(NotRun::OutOfScope) };
        }
        let known = NoAgentInfo { agent_uuid: agent_uuid(&self.who.tenant_id, self.who.agent_id.as_str()) };
        let event_context = EventContext { who: &self.who, known: &known };
        let failed = |fault| Some(HookOutcome::Failed { fault, became: VerdictKind::Continue, took: Duration::ZERO });
        match wanted(hook, self.what.name(), &self.what.facts(), event_context) {
            Err(why) => not_run(why),
            Ok(Some(fault)) => failed(fault),
            Ok(None) => match &hook.state {
                HookState::Broken(fault) => failed(fault.clone()),
                HookState::Armed | HookState::Disabled | HookState::Untrusted | HookState::Tripped { .. } => None,
            },
        }
    }
}

/// The identity of an agent, which is all that observers' conditions see of it.
struct NoAgentInfo {
    agent_uuid: String,
}

impl AgentInfo for NoAgentInfo {
    fn tool(&self, _name: &str) -> Option<String> {
        None
    }

    fn model(&self, _model: &str) -> bool {
        false
    }

    fn owner(&self, _name: &str) -> Option<HookName> {
        None
    }

    fn agent_uuid(&self) -> &str {
        &self.agent_uuid
    }
}

impl ObservedEvent {
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

    /// The facts that matchers may see.
    pub fn facts(&self) -> Facts<'_> {
        match self {
            Self::PostToolUse { call, .. } => Facts::of_call(call),
            Self::SubagentStop { start, .. } => start.facts(),
            Self::SessionStart | Self::Stop { .. } | Self::Runtime(_) => Facts::default(),
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

impl From<RuntimeEvent> for ObservedEvent {
    fn from(event: RuntimeEvent) -> Self {
        Self::Runtime(event)
    }
}
