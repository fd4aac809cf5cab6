//! Sub-agents: turns one level deeper, under the same hooks, that answer to the gates of every agent above.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use pintle_domain::checkpoint::{RuntimeEvent, SubagentStart};
use pintle_domain::id::{AgentId, SessionId, TurnId};
use pintle_domain::identity::Identity;
use pintle_domain::tool::ToolCall;
use pintle_engine::Stopped;

use super::Turn;
use super::subagent::SubagentContext;
use crate::outcome::{Refusal, Stop};

impl Turn {
    /// Lets `agent` begin `task` as the turn `id`, as `call` of a model wants it if one does. What comes back is its
    /// turn: one level deeper, in a session of its own, stopped with this one. Its [`Turn::begin`] takes the task.
    ///
    /// # Errors
    /// It does not begin: gates refuse it, it would stand too deep, or this turn is over.
    pub async fn delegate(&self, agent: &str, task: &str, call: Option<&ToolCall>, id: TurnId) -> Result<Self, Stop> {
        self.go_on()?;
        let hooks = self.at(call.map(|call| &call.id));
        let start = hooks.subagent(AgentId::from(agent), task, call.cloned());
        let start = start.map_err(|too_deep| self.not_begun(agent, Refusal::new(too_deep, None)))?;
        match hooks.pass(start).await {
            Ok(start) => Ok(self.child(start, id)),
            Err((_, Stopped::Denied(denied))) => {
                Err(self.not_begun(agent, Refusal::new(denied.of_delegation(agent), Some(denied.by))))
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
