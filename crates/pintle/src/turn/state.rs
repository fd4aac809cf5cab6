//! The state of a turn while it is worked, and the part of it that a host keeps.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::Instant;

use pintle_domain::checkpoint::runtime::ToolExecution;
use pintle_domain::id::{CallId, HookName};
use pintle_domain::llm::Usage;
use pintle_domain::ruling::Aborted;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

/// The turns of one prompt of a person: the one at the top, and all that work for it.
pub(super) struct Run {
    pub(super) cancel: CancellationToken,
    pub(super) stopped: Mutex<Option<Aborted>>,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) open: TurnSnapshot,
    pub(super) aborted: Option<Aborted>,
    /// When it began, or was taken up again.
    pub(super) begun: Option<Instant>,
    /// Whether it began here: then only calls that were parked here were asked about before.
    pub(super) here: bool,
}

/// A turn that has not ended, as its host keeps it: [`Turn::snapshot`](crate::Turn::snapshot) gives it at any time, and [`Turn::resumed`](crate::Turn::resumed) goes on
/// with it, in another process if need be.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TurnSnapshot {
    pub(super) prompt: String,
    pub(super) round: u32,
    /// The hooks that brought a tool for the calls of the last answer.
    pub(super) owners: BTreeMap<String, HookName>,
    pub(super) executions: Vec<ToolExecution>,
    pub(super) usage: Usage,
    pub(super) denials: Vec<String>,
    /// Calls about which a person was asked: what they said counts, whatever hooks say later.
    pub(super) asked: BTreeSet<CallId>,
    /// Those of them that wait for an answer.
    pub(super) waiting: BTreeSet<CallId>,
}
