//! The surroundings of a turn: where it tells what it does, who stops it, and the turn that it works for.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pintle_domain::id::{AgentId, SessionId, TurnId};
use pintle_engine::Dispatcher;
use tokio_util::task::TaskTracker;

use super::runner::AgentRegistry;
use crate::conversation::LateInbox;
use crate::journal::Journal;
use crate::media::MediaScope;
use crate::turn_handle::TurnHandle;
use crate::user_output::UserOutput;

/// What a turn is worked with.
#[derive(Clone)]
pub(super) struct TurnEnv {
    pub(super) user_output: Arc<dyn UserOutput>,
    pub(super) turn_handle: TurnHandle,
    /// The hooks of the turn that this one works for.
    pub(super) parent: Option<Dispatcher>,
    /// Whose media its own turn may use beside its own.
    pub(super) above: Option<MediaScope>,
    /// Who takes what comes too late for it: nobody goes on with the session of a sub-agent.
    pub(super) upper: Option<Arc<SubagentContext>>,
}

impl TurnEnv {
    pub(super) fn top(user_output: Arc<dyn UserOutput>, turn_handle: &TurnHandle) -> Self {
        Self { user_output, turn_handle: turn_handle.for_one_turn(), parent: None, above: None, upper: None }
    }
}

/// Everything that a sub-agent needs of the turn it works for.
pub(super) struct SubagentContext {
    pub(super) registry: Option<Arc<AgentRegistry>>,
    pub(super) turn_env: TurnEnv,
    pub(super) hooks: Dispatcher,
    pub(super) session: SessionId,
    pub(super) scope: MediaScope,
    pub(super) journal: Journal,
    pub(super) late: Arc<LateInbox>,
    pub(super) children: Arc<Children>,
    pub(super) tasks: TaskTracker,
}

/// The sub-agents that work in the background for one turn.
#[derive(Default)]
pub(super) struct Children(Mutex<BTreeMap<TurnId, AgentId>>);

impl Children {
    pub(super) fn lock(&self) -> MutexGuard<'_, BTreeMap<TurnId, AgentId>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
