//! Who acts, where and in which turn: stamped on every event, out of reach of hooks.

use std::sync::Arc;

use serde::Serialize;

use crate::id::{AgentId, CallId, SessionId, TenantId, TraceId, TurnId};
use crate::json::{Object, Value};

/// The identity that every event carries. Hooks read it; nothing they answer changes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Identity {
    /// Owner of the data.
    pub tenant_id: TenantId,
    /// The agent whose turn this is.
    pub agent_id: AgentId,
    /// The conversation.
    pub session_id: SessionId,
    /// The turn.
    pub turn_id: TurnId,
    /// The turn that delegated this one, if any.
    pub parent_turn_id: Option<TurnId>,
    /// Round of the turn, from 1; 0 outside rounds.
    pub iteration: u32,
    /// The call of the model that the event is about, if any.
    pub tool_call_id: Option<CallId>,
    /// 0 for the agent a person talks to.
    pub depth: u8,
    /// Where the message came from, such as `cli`.
    pub channel: String,
    /// The conversation's name on that channel.
    pub chat_id: String,
    /// Who wrote the message, on that channel.
    pub sender_id: String,
    /// Ties together the events of one outside request.
    pub trace_id: TraceId,
    /// True when the event is made by `doctor` or `hooks test`, not by an agent.
    pub is_test: bool,
    /// The agents that this one works for, nearest first; empty at the top. For the host, not for hooks' wires.
    #[serde(skip)]
    pub ancestors: Vec<AgentId>,
    /// What a foreign agent said of the event, where one acts. Hooks read it in their own wires.
    #[serde(skip)]
    pub foreign: Option<Arc<ForeignEvent>>,
}

/// An event of a foreign agent: what it is called there, and what was said of it that has no place of its own here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForeignEvent {
    /// The agent, such as `claude`.
    pub host: String,
    /// Its version, where that is known.
    pub version: Option<String>,
    /// Its name for the event.
    pub event: String,
    /// The members that it said besides.
    pub raw: Object,
    /// Where it happened, by the agent's own names. For hooks in the agent's own wire.
    pub place: ForeignPlace,
    /// What came of the call, where one has run. For hooks in the agent's own wire.
    pub result: Option<ForeignResult>,
    /// The process of the agent, and since when that runs, in ticks since the machine started, where that is known.
    pub process: Option<(u32, u64)>,
}

/// Where an event of a foreign agent happened, by its own names.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForeignPlace {
    /// The session.
    pub session: String,
    /// The file with the conversation.
    pub transcript: Option<String>,
    /// The sub-agent that acts.
    pub agent_id: Option<String>,
    /// Its kind.
    pub agent_kind: Option<String>,
}

/// A result in the shape of a foreign agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForeignResult {
    /// The text as which hooks read it.
    pub text: String,
    /// The result.
    pub value: Value,
}

impl Identity {
    /// An identity for the top agent of a session, outside any round.
    pub fn top(agent: &str, session: &str, turn: TurnId) -> Self {
        Self {
            tenant_id: TenantId::default_tenant(),
            agent_id: AgentId::from(agent),
            session_id: SessionId::from(session),
            trace_id: TraceId::from(turn.as_str()),
            turn_id: turn,
            parent_turn_id: None,
            iteration: 0,
            tool_call_id: None,
            depth: 0,
            channel: "cli".into(),
            chat_id: "direct".into(),
            sender_id: "user".into(),
            is_test: false,
            ancestors: Vec::new(),
            foreign: None,
        }
    }

    /// This identity, about the call `call` of the model.
    pub fn for_call(&self, call: &CallId) -> Self {
        Self { tool_call_id: Some(call.clone()), ..self.clone() }
    }
}
