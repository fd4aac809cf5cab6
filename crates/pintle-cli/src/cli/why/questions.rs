//! The questions that a person was asked, and whether each still waits: an event says only that it was asked.

use std::collections::{BTreeMap, BTreeSet};

use domain::approval::ApprovalState;
use domain::store::{ApprovalQuery, StoredEvent, StoredTurn, TenantScope};
use jiff::Timestamp;
use store::Store;

use crate::error::CliError;

/// Among how many waiting questions those of a turn are looked for: far more than a person leaves waiting.
const MAX_WAITING: usize = 1000;

/// A turn and a call of it.
type CallKey = (String, String);

/// The questions that a person was asked.
#[derive(Default)]
pub(super) struct Questions {
    /// Those that are not over: they wait, or were approved and not used yet.
    open: BTreeSet<CallKey>,
    /// Who approved the calls that ran since.
    approvers: BTreeMap<CallKey, String>,
}

impl Questions {
    /// Those that `store` has.
    pub(super) fn of(store: &dyn Store) -> Result<Self, CliError> {
        let now = Timestamp::now();
        let found = store.approvals(&ApprovalQuery::newest(TenantScope::All, MAX_WAITING));
        let found = found.map_err(|error| CliError::failed(error.to_string()))?;
        let mut questions = Self::default();
        for approval in found {
            let key = (approval.turn_id.to_string(), approval.tool_call_id.to_string());
            match approval.state_at(now) {
                ApprovalState::Waiting | ApprovalState::Approved => {
                    questions.open.insert(key);
                }
                ApprovalState::Used => {
                    questions.approvers.extend(approval.answered_by.map(|who| (key, who)));
                }
                ApprovalState::Refused | ApprovalState::Void | ApprovalState::Expired => {}
            }
        }
        Ok(questions)
    }

    /// Whether the question of `event` is not over.
    pub(super) fn waits(&self, event: &StoredEvent) -> bool {
        self.open.contains(&key_of(event))
    }

    /// Who approved the call of `event`, if it ran and somebody is known.
    pub(super) fn approver(&self, event: &StoredEvent) -> Option<&str> {
        self.approvers.get(&key_of(event)).map(String::as_str)
    }

    /// How many questions of `turn` are not over.
    pub(super) fn waiting(&self, turn: &StoredTurn) -> u64 {
        self.open.iter().filter(|(of, _)| *of == turn.turn_id).count() as u64
    }
}

fn key_of(event: &StoredEvent) -> CallKey {
    (event.turn_id.clone(), event.tool_call_id.clone().unwrap_or_default())
}
