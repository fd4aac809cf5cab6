//! The questions that a person was asked, and whether each still waits: an event says only that it was asked.

use std::collections::BTreeSet;

use domain::approval::ApprovalState;
use domain::store::{ApprovalQuery, StoredEvent, StoredTurn, TenantScope};
use jiff::Timestamp;
use store::Store;

use crate::error::CliError;

/// Among how many waiting questions those of a turn are looked for: far more than a person leaves waiting.
const MAX_WAITING: usize = 1000;

/// The turns and calls of the questions that are not over: they wait, or were approved and not used yet.
#[derive(Default)]
pub(super) struct Questions(BTreeSet<(String, String)>);

impl Questions {
    /// Those that `store` has.
    pub(super) fn of(store: &dyn Store) -> Result<Self, CliError> {
        let now = Timestamp::now();
        let found = store.approvals(&ApprovalQuery::newest(TenantScope::All, MAX_WAITING));
        let found = found.map_err(|error| CliError::failed(error.to_string()))?;
        let open = found.into_iter().filter(|approval| match approval.state_at(now) {
            ApprovalState::Waiting | ApprovalState::Approved => true,
            ApprovalState::Refused | ApprovalState::Used | ApprovalState::Void | ApprovalState::Expired => false,
        });
        Ok(Self(open.map(|approval| (approval.turn_id.to_string(), approval.tool_call_id.to_string())).collect()))
    }

    /// Whether the question of `event` is not over.
    pub(super) fn waits(&self, event: &StoredEvent) -> bool {
        let call = event.tool_call_id.as_deref().unwrap_or_default();
        self.0.iter().any(|(turn, of)| *turn == event.turn_id && of == call)
    }

    /// How many questions of `turn` are not over.
    pub(super) fn waiting(&self, turn: &StoredTurn) -> u64 {
        self.0.iter().filter(|(of, _)| *of == turn.turn_id).count() as u64
    }
}
