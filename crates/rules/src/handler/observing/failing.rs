//! Says which observers failed.

use pintle_domain::execution::Execution;
use pintle_domain::fault::FaultKind;
use pintle_domain::record::{HookOutcome, Record};

/// Says that an observer failed: the turn did not wait for it, so nothing else of it would. What the end of the host came
/// before is said by whoever ends it.
pub(super) fn say_failure(record: &Record, row: &Execution) {
    if let HookOutcome::Failed { fault, .. } = &record.outcome
        && fault.kind() != FaultKind::Cancelled
    {
        let (hook, error) = (&row.hook_name, fault.phrase().to_string());
        tracing::warn!(?hook, event = row.event.name(), ?error, "hooks.observer_failed");
    }
}
