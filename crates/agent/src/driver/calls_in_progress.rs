//! The calls of one turn that are not settled.

use std::collections::BTreeMap;
use std::time::Duration;

use pintle_domain::clearing::GateNotes;
use pintle_domain::tool::{ToolCall, ToolOutput};
use pintle_engine::Permit;
use pintle_engine::approvals::OpenQuestion;
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;

/// Permits that wait, and calls that run.
pub(super) struct CallsInProgress {
    pub(super) tasks: TaskTracker,
    pub(super) permits: BTreeMap<usize, Permit>,
    /// What gates left beside their ruling on calls that have no answer yet.
    pub(super) gate_notes_by_place: BTreeMap<usize, GateNotes>,
    pub(super) running: BTreeMap<usize, CallInProgress>,
    /// What persons were asked before the turn was left, by digest: a no stays a no, and a question stays open, also
    /// when nobody asks it any more.
    pub(super) unsettled: BTreeMap<String, OpenQuestion>,
}

pub(super) struct CallInProgress {
    pub(super) call: ToolCall,
    pub(super) handle: JoinHandle<CallResult>,
}

/// What came of a call that ran.
pub(super) struct CallResult {
    pub(super) output: ToolOutput,
    pub(super) took: Duration,
    /// What sub-agents that worked for it were denied.
    pub(super) denials: Vec<String>,
}

impl CallsInProgress {
    pub(super) fn new(tasks: TaskTracker) -> Self {
        Self {
            tasks,
            permits: BTreeMap::new(),
            gate_notes_by_place: BTreeMap::new(),
            running: BTreeMap::new(),
            unsettled: BTreeMap::new(),
        }
    }
}
