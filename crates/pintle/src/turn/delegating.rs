//! Sub-agents: turns one level deeper, under the same hooks, that answer to the gates of every agent above.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use domain::checkpoint::{CheckpointKind, RuntimeEvent, SubagentStart};
use domain::id::{AgentId, SessionId, TurnId};
use domain::identity::Identity;
use domain::tool::ToolCall;
use engine::Stopped;

use super::Turn;
use super::subagent::SubagentContext;
use crate::outcome::{Refusal, Stop};

/// How deep sub-agents may stand below the agent that a person talks to. Source: lifecycle, agent hooks' loop depth.
const MAX_DEPTH: u8 = 3;
/// The refusal of a sub-agent that would stand too deep.
const TOO_DEEP: &str = "sub-agents may stand at most 3 levels below the first agent";

impl Turn {
    /// Lets `agent` begin `task` as the turn `id`, as `call` of a model wants it if one does. What comes back is its
    /// turn: one level deeper, in a session of its own, stopped with this one. Its [`Turn::begin`] takes the task.
    ///
    /// # Errors
    /// It does not begin: gates refuse it, it would stand too deep, or this turn is over.
    pub async fn delegate(&self, agent: &str, task: &str, call: Option<&ToolCall>, id: TurnId) -> Result<Self, Stop> {
        self.go_on()?;
        let depth = self.identity().depth + 1;
        let hooks = self.at(call.map(|call| &call.id));
        if depth > MAX_DEPTH {
            hooks.refused(CheckpointKind::SubagentStart, TOO_DEEP);
            return Err(self.not_begun(agent, Refusal::new(TOO_DEEP, None)));
        }
        let start = SubagentStart::new(AgentId::from(agent), task, depth, call.cloned());
        match hooks.pass(start).await {
            Ok(start) => Ok(self.child(start, id)),
            Err((_, Stopped::Denied(denied))) => {
                let text = format!("delegation to \"{agent}\" blocked by hook policy: {}", denied.because());
                Err(self.not_begun(agent, Refusal::new(text, Some(denied.by))))
            }
            Err((_, Stopped::Aborted(aborted))) => Err(self.aborted(aborted)),
            Err((_, Stopped::Cancelled)) => Err(self.cut_off()),
        }
    }

    fn child(&self, start: SubagentStart, id: TurnId) -> Self {
        let session = SessionId::new(format!("{}/delegate:{}:{id}", self.identity().session_id, start.agent));
        self.tell(
            start.call.as_ref().map(|call| &call.id),
            RuntimeEvent::SubturnSpawn {
                agent_id: start.agent.to_string(),
                label: id.to_string(),
                parent_turn_id: self.identity().turn_id.to_string(),
            },
        );
        let who = Identity {
            agent_id: start.agent.clone(),
            session_id: session.clone(),
            turn_id: id,
            parent_turn_id: Some(self.identity().turn_id.clone()),
            depth: start.depth,
            ancestors: std::iter::once(&self.identity().agent_id).chain(&self.identity().ancestors).cloned().collect(),
            ..self.identity().clone()
        };
        self.host.meets(&who.agent_id);
        let subagent = SubagentContext {
            hooks: self.at(None),
            state: self.state.clone(),
            start,
            session,
            begun: Instant::now(),
            told: AtomicBool::new(false),
        };
        Self {
            host: self.host.clone(),
            // The hooks that the first agent's turn began with.
            hooks: self.hooks.below(who).with_cancel(self.cancel().child_token()),
            run: self.run.clone(),
            state: Arc::default(),
            subagent: Some(subagent),
        }
    }

    fn not_begun(&self, agent: &str, refusal: Refusal) -> Stop {
        self.state().open.denials.push(format!("{agent}: {}", refusal.text));
        Stop::Refused(Box::new(refusal))
    }
}
