//! From a record of the engine to what is kept of it. Patches are computed here, off the hot path.

use std::time::Duration;

use super::{FailedComparison, StoredCall, StoredEvent, StoredRecord};
use crate::account::{Account, RewriteOutcome};
use crate::fault::Cause;
use crate::json::{MAX_DEPTH, Value, depth};
use crate::record::{Change, EventRecord, HookOutcome, NotRun, Record};

/// Longest JSON Patch that is kept, in bytes. A rewrite of a whole conversation would otherwise be stored once a round.
pub const MAX_PATCH_BYTES: usize = 64 * 1024;

/// Deepest nesting that a row may have: a value of the deepest kind that is read from outside, inside a patch,
/// inside a record, inside the row's array.
pub const MAX_ROW_DEPTH: usize = MAX_DEPTH + 8;

impl From<&EventRecord> for StoredEvent {
    /// The event that is kept of `record`, in the published form.
    fn from(record: &EventRecord) -> Self {
        let who = &record.who;
        Self {
            event_id: record.event_id.as_str().to_owned(),
            at: record.at.to_string(),
            event: record.kind.unwrap_or(record.checkpoint.name()).to_owned(),
            checkpoint: record.checkpoint.name().to_owned(),
            tenant_id: who.tenant_id.as_str().to_owned(),
            agent_id: who.agent_id.as_str().to_owned(),
            session_id: who.session_id.as_str().to_owned(),
            turn_id: who.turn_id.as_str().to_owned(),
            iteration: who.iteration,
            tool_call_id: who.tool_call_id.as_ref().map(|id| id.as_str().to_owned()),
            tool: record.tool.clone(),
            is_test: who.is_test,
            ruling: record.ruling.word.as_str().to_owned(),
            text: record.ruling.text.clone(),
            permit: record.ruling.permit.map(|digest| digest.to_string()),
            substituted: record.ruling.substituted,
            call: record.decides().then(|| record.input.as_deref().map(StoredCall::of)).flatten(),
            hooks: record.hooks.iter().map(|record| stored_hook(&record)).collect(),
        }
    }
}

impl StoredRecord {
    /// The line that is kept of `record`.
    pub fn of(record: &Record) -> Self {
        stored_hook(record)
    }
}

fn stored_hook(record: &Record) -> StoredRecord {
    let base = StoredRecord {
        hook: record.hook.as_str().to_owned(),
        family: record.family.word().to_owned(),
        checkpoint: record.checkpoint.name().to_owned(),
        ran: true,
        change: record.change.as_deref().map(patch),
        warnings: record.warnings.clone(),
        again: record.again,
        slot_wait_ms: Some(record.slot_wait()).filter(|wait| !wait.is_zero()).map(millis),
        dropped: record.account.as_deref().map(dropped).unwrap_or_default(),
        ..StoredRecord::default()
    };
    let instead = record.account.as_ref().and_then(|account| account.instead.as_ref());
    match &record.outcome {
        // What that counted for stands in its place; the words for it are the text of the ruling.
        HookOutcome::Said { word: said, .. } if let Some(why) = instead => StoredRecord {
            ran: false,
            reason: Some(word(why).to_owned()),
            value: value(why),
            verdict: Some(said.as_str().to_owned()),
            ..base
        },
        HookOutcome::Said { word, reason, took } => StoredRecord {
            verdict: Some(word.as_str().to_owned()),
            reason: reason.clone().or_else(|| record.account.as_ref()?.allowed.clone()),
            duration_ms: Some(millis(*took)),
            ..base
        },
        HookOutcome::Failed { fault, became, took } => StoredRecord {
            verdict: Some(became.as_str().to_owned()),
            fault: Some(fault.kind().word().to_owned()),
            fault_detail: Some(fault.phrase().to_string()),
            cause: record.account.as_ref().and_then(|it| it.detail.as_ref()).or(fault.cause()).map(Cause::shown),
            duration_ms: Some(millis(*took)),
            ..base
        },
        HookOutcome::Told => base,
        HookOutcome::NotRun(why) => {
            let by = match why {
                NotRun::Decided { by } => Some(by.to_string()),
                NotRun::Disabled
                | NotRun::OutOfScope
                | NotRun::Matcher { .. }
                | NotRun::Condition { .. }
                | NotRun::BreakerOpen { .. }
                | NotRun::Untrusted
                | NotRun::ChainTimeSpent { .. }
                | NotRun::BudgetSpent(_)
                | NotRun::CapReached { .. }
                | NotRun::Dropped => None,
            };
            let (reason, compared, value) = (Some(word(why).to_owned()), compared(why), value(why));
            StoredRecord { ran: false, reason, by, compared, value, ..base }
        }
    }
}

/// The word of the closed list.
fn word(why: &NotRun) -> &'static str {
    match why {
        NotRun::Disabled => "disabled",
        NotRun::OutOfScope => "out of scope",
        NotRun::Matcher { .. } => "matcher said no",
        NotRun::Condition { .. } => "condition said no",
        NotRun::BreakerOpen { .. } => "breaker open",
        NotRun::Decided { .. } => "decided already",
        NotRun::Untrusted => "untrusted",
        NotRun::ChainTimeSpent { .. } => "chain time spent",
        NotRun::BudgetSpent(_) => "budget spent",
        NotRun::CapReached { .. } => "cap reached",
        NotRun::Dropped => "dropped",
    }
}

fn compared(why: &NotRun) -> Option<FailedComparison> {
    match why {
        NotRun::Matcher { pattern, value } => {
            Some(FailedComparison { pattern: pattern.to_string(), value: value.to_string() })
        }
        NotRun::Disabled
        | NotRun::OutOfScope
        | NotRun::Condition { .. }
        | NotRun::BreakerOpen { .. }
        | NotRun::Decided { .. }
        | NotRun::Untrusted
        | NotRun::ChainTimeSpent { .. }
        | NotRun::BudgetSpent(_)
        | NotRun::CapReached { .. }
        | NotRun::Dropped => None,
    }
}

/// What the word alone does not say.
fn value(why: &NotRun) -> Option<String> {
    match why {
        NotRun::Condition { text } => Some(text.to_string()),
        NotRun::CapReached { cap } => Some(cap.to_string()),
        NotRun::ChainTimeSpent { ms } => Some(format!("{ms} ms")),
        NotRun::BudgetSpent(need) => Some(need.to_string()),
        NotRun::Disabled
        | NotRun::OutOfScope
        | NotRun::Matcher { .. }
        | NotRun::BreakerOpen { .. }
        | NotRun::Decided { .. }
        | NotRun::Untrusted
        | NotRun::Dropped => None,
    }
}

/// What of an answer did not count.
fn dropped(account: &Account) -> Vec<String> {
    let rewrite = match &account.rewrite {
        Some(RewriteOutcome::Dropped(why)) => Some(format!("rewrite: {why}")),
        Some(RewriteOutcome::Applied) | None => None,
    };
    let context = account.context_dropped.then(|| "context: nothing is added here".to_owned());
    rewrite.into_iter().chain(context).collect()
}

/// The patch, or how long it would have been.
fn patch(change: &Change) -> Value {
    let patch = change.patch();
    let text = patch.to_string();
    if text.len() > MAX_PATCH_BYTES || depth(text.as_bytes()) > MAX_DEPTH {
        return crate::json::json!({ "omitted_bytes": text.len() });
    }
    patch
}

/// Milliseconds, to the microsecond: finer digits are noise and make listings unreadable.
fn millis(took: Duration) -> f64 {
    // Dividing whole microseconds gives the nearest double; multiplying seconds would show its rounding.
    took.as_micros() as f64 / 1000.0
}
