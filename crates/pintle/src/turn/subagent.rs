//! The errand of a sub-agent, and its one end.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use pintle_domain::checkpoint::runtime::TurnStatus;
use pintle_domain::checkpoint::{ObservedEvent, RuntimeEvent, SubagentStart};
use pintle_domain::id::SessionId;
use pintle_domain::turn::TurnEnd;
use pintle_engine::Dispatcher;

use super::state::State;

/// The errand of a sub-agent, and the turn that is told its end.
pub(super) struct SubagentContext {
    /// The hooks of the turn above.
    pub(super) hooks: Dispatcher,
    pub(super) state: Arc<Mutex<State>>,
    pub(super) start: SubagentStart,
    pub(super) session: SessionId,
    pub(super) begun: Instant,
    pub(super) told: AtomicBool,
}

impl SubagentContext {
    /// Tells once that the sub-agent has ended, and lists what it was denied with what the turn above was.
    pub(super) fn stop(&self, end: &TurnEnd, denials: Vec<String>) {
        if self.told.swap(true, Ordering::AcqRel) {
            return;
        }
        let agent = &self.start.agent;
        let named = denials.iter().map(|denial| format!("{agent}: {denial}"));
        self.state.lock().unwrap_or_else(PoisonError::into_inner).open.denials.extend(named);
        let outcome = match (&end.stopped_by, &end.error, end.status) {
            (Some(aborted), _, _) => aborted.text(),
            (None, Some((_, why)), _) => why.clone(),
            (None, None, TurnStatus::Completed) => end.reply.clone(),
            (None, None, TurnStatus::Error | TurnStatus::Aborted) => "it was stopped".to_owned(),
        };
        self.hooks.tell(RuntimeEvent::SubturnEnd { agent_id: agent.to_string(), status: end.status });
        let stop = ObservedEvent::SubagentStop {
            start: Box::new(self.start.clone()),
            session_id: self.session.clone(),
            status: end.status,
            timed_out: false,
            outcome,
            denials,
            duration: self.begun.elapsed(),
        };
        self.hooks.tell(stop);
    }
}
