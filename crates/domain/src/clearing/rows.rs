//! What is kept of a clearing: one event for each checkpoint that it passed.

use std::time::Duration;

use super::{CLEARING, Outcome};
use crate::chain::GATE_BUDGET;
use crate::checkpoint::CheckpointKind;
use crate::record::{EventRecord, Lines, Outcome as Ran, Record, Ruled};
use crate::tool::Digest;
use crate::verdict::Word;

/// How long a tool call waits at least for its clearing to be on disk: far above what a store that works takes. Gates
/// may use their whole budget up and let a call pass all the same, which is then not the fault of the store.
const LEAST_COMMIT_TIME: Duration = Duration::from_secs(1);

/// One checkpoint of a clearing.
#[derive(Clone, Debug)]
pub struct Row {
    /// Which.
    pub kind: CheckpointKind,
    /// What the loop did after it.
    pub ruling: Ruled,
    /// One line for every hook that is registered for it.
    pub hooks: Lines,
}

/// The rows of a clearing that came to `outcome`: one for each checkpoint that has hooks, and for
/// a call that gets a `permit` always the decision at the last one. `approval` is the one that a person gave.
pub fn rows(outcome: &Outcome, permit: Option<Digest>, approval: Option<&str>, mut records: Lines) -> Vec<Row> {
    let approved = approval.map(|id| format!("approved by a person ({id})"));
    let (text, decided_at) = match outcome {
        Outcome::Run(_) => (approved, CheckpointKind::ApproveTool),
        Outcome::Substituted { .. } => (approved, CheckpointKind::BeforeTool),
        Outcome::Ask { by, why, .. } => {
            let why = if why.is_empty() { String::new() } else { format!(": {why}") };
            (Some(format!("a person must say{why} (hook \"{by}\")")), CheckpointKind::PreToolUse)
        }
        Outcome::Refused { denied, .. } => (Some(denied.text()), denied.at),
        Outcome::Abort { aborted, .. } => (Some(aborted.text()), aborted.at),
    };
    let substituted = matches!(outcome, Outcome::Substituted { .. });
    let kept = |kind: CheckpointKind, row: &Lines| {
        !row.is_empty() || (kind == CheckpointKind::ApproveTool && permit.is_some())
    };
    let ruled = |kind: CheckpointKind, row: &Lines| {
        if kind < decided_at {
            let changed = row.whole().any(|record| record.change.is_some());
            return Ruled::word(if changed { Word::Modify } else { Word::Continue });
        }
        let permit = permit.filter(|_| kind == CheckpointKind::ApproveTool);
        Ruled { word: outcome.word(), text: text.clone(), permit, substituted }
    };
    CLEARING
        .into_iter()
        .map(|kind| (kind, records.take(kind)))
        .filter(|(kind, row)| kept(*kind, row))
        .map(|(kind, hooks)| Row { kind, ruling: ruled(kind, &hooks), hooks })
        .collect()
}

/// How long the hook took that answered in the tool's place; nothing if none did.
pub fn time_of_substitute(records: &Lines) -> Duration {
    records
        .whole()
        .find_map(|record| match &record.outcome {
            Ran::Said { word: Word::Respond, took, .. } => Some(*took),
            Ran::Said { .. } | Ran::Failed { .. } | Ran::Told | Ran::NotRun(_) => None,
        })
        .unwrap_or_default()
}

/// How long a call waits for `records`, those of its clearing, to be kept: for what its gates left of their budget.
pub fn time_to_commit(records: &[EventRecord]) -> Duration {
    let gates = records.iter().filter(|record| record.checkpoint == CheckpointKind::PreToolUse);
    let spent = gates.flat_map(|record| record.hooks.whole()).filter_map(Record::took).sum();
    GATE_BUDGET.saturating_sub(spent).max(LEAST_COMMIT_TIME)
}
