//! What is kept of a clearing: one event for each checkpoint that it passed.

use std::time::Duration;

use super::{CLEARING, ClearingOutcome};
use crate::chain::GATE_BUDGET;
use crate::checkpoint::CheckpointKind;
use crate::record::{EventRecord, EventRuling, HookOutcome as Ran, RecordLines};
use crate::tool::Digest;
use crate::verdict::VerdictKind;

/// The least time that a tool call waits for its clearing to be on disk: far above what a store that works takes.
/// Gates may use their whole budget up and let a call pass all the same, which is then not the fault of the store.
const LEAST_COMMIT_TIME: Duration = Duration::from_secs(1);

/// One checkpoint of a clearing.
#[derive(Clone, Debug)]
pub struct ClearingRow {
    /// Which.
    pub kind: CheckpointKind,
    /// The ruling that the loop followed after it.
    pub ruling: EventRuling,
    /// One line for every hook that is registered for it.
    pub hooks: RecordLines,
}

/// The rows of a clearing that came to `outcome`: one for each checkpoint that has hooks, and for
/// a call that gets a `permit` always the decision at the last one. `approval` is the one that a person gave.
pub fn rows(
    outcome: &ClearingOutcome,
    permit: Option<Digest>,
    approval: Option<&str>,
    mut records: RecordLines,
) -> Vec<ClearingRow> {
    let approved = approval.map(|id| format!("approved by a person ({id})"));
    let (text, decided_at) = match outcome {
        ClearingOutcome::Run(_) => (approved, CheckpointKind::ApproveTool),
        ClearingOutcome::Substituted { .. } => (approved, CheckpointKind::BeforeTool),
        ClearingOutcome::Ask { by, why, .. } => {
            let why = if why.is_empty() { String::new() } else { format!(": {why}") };
            (Some(format!("waits for a person{why} (hook \"{by}\")")), CheckpointKind::PreToolUse)
        }
        ClearingOutcome::Refused { denied, .. } => (Some(denied.text()), denied.at),
        ClearingOutcome::Abort { aborted, .. } => (Some(aborted.text_with_hook()), aborted.at),
    };
    let substituted = matches!(outcome, ClearingOutcome::Substituted { .. });
    let kept = |kind: CheckpointKind, row: &RecordLines| {
        !row.is_empty() || (kind == CheckpointKind::ApproveTool && permit.is_some())
    };
    let ruled = |kind: CheckpointKind, row: &RecordLines| {
        if kind < decided_at {
            let changed = row.whole().any(|record| record.change.is_some());
            return EventRuling::word(if changed { VerdictKind::Modify } else { VerdictKind::Continue });
        }
        let permit = permit.filter(|_| kind == CheckpointKind::ApproveTool);
        EventRuling { word: outcome.word(), text: text.clone(), permit, substituted }
    };
    CLEARING
        .into_iter()
        .map(|kind| (kind, records.take(kind)))
        .filter(|(kind, row)| kept(*kind, row))
        .map(|(kind, hooks)| ClearingRow { kind, ruling: ruled(kind, &hooks), hooks })
        .collect()
}

/// The time that the hook took that answered in the tool's place; nothing if none did.
pub fn time_of_substitute(records: &RecordLines) -> Duration {
    records
        .whole()
        .find_map(|record| match &record.outcome {
            Ran::Said { word: VerdictKind::Respond, took, .. } => Some(*took),
            Ran::Said { .. } | Ran::Failed { .. } | Ran::Told | Ran::NotRun(_) => None,
        })
        .unwrap_or_default()
}

/// The time that a call waits for `records`, those of its clearing, to be kept: for what its gates left of their
/// budget.
pub fn time_to_commit(records: &[EventRecord]) -> Duration {
    let gates = records.iter().filter(|record| record.checkpoint == CheckpointKind::PreToolUse);
    let spent = gates
        .flat_map(|record| record.hooks.whole())
        .filter_map(|record| Some(record.took()? + record.slot_wait()))
        .sum();
    GATE_BUDGET.saturating_sub(spent).max(LEAST_COMMIT_TIME)
}
