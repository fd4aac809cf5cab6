//! The outcome of a hook at one event, as its circuit breaker counts it.

use super::{HookOutcome, Record};
use crate::breaker::BreakerOutcome;
use crate::checkpoint::Duty;
use crate::fault::{Fault, FaultKind};
use crate::hook::Hook;
use crate::reason::VerdictKind;

/// What became of `hook` at one event, as its breaker has it: the worst of its `records` of that event. `None` where
/// its handler was not asked, or what happened says nothing about it: caps and budgets, conditions, the end of the
/// chain's time, a turn that was cancelled.
pub fn counted<'a>(hook: &Hook, records: impl Iterator<Item = &'a Record>) -> Option<BreakerOutcome> {
    records.filter_map(|record| one(hook, record)).max()
}

fn one(hook: &Hook, record: &Record) -> Option<BreakerOutcome> {
    if record.account.as_ref().is_some_and(|account| account.uncounted) {
        return None;
    }
    match &record.outcome {
        // What an observer says decides nothing.
        HookOutcome::Said { .. } if record.checkpoint.duty() == Duty::Observer => Some(BreakerOutcome::Allow),
        HookOutcome::Said { word: VerdictKind::Deny, .. } => Some(BreakerOutcome::Block),
        HookOutcome::Said { word: VerdictKind::Ask, .. } => Some(BreakerOutcome::Ask),
        HookOutcome::Said { .. } => Some(BreakerOutcome::Allow),
        // Less than its own time: the chain's was over.
        HookOutcome::Failed { fault: Fault::TimedOut { after }, .. } => {
            let own = hook.stages.get(record.checkpoint).map(|stage| stage.timeout);
            own.is_none_or(|own| *after >= own).then_some(BreakerOutcome::Timeout)
        }
        HookOutcome::Failed { fault, .. } => match fault.kind() {
            FaultKind::Cancelled | FaultKind::ConditionFailed => None,
            FaultKind::TimedOut => Some(BreakerOutcome::Timeout),
            FaultKind::CannotStart
            | FaultKind::Killed
            | FaultKind::BadExit
            | FaultKind::Unreadable
            | FaultKind::TooLarge
            | FaultKind::ProtocolError
            | FaultKind::Panicked
            | FaultKind::Unavailable => Some(BreakerOutcome::Error),
        },
        HookOutcome::Told | HookOutcome::NotRun(_) => None,
    }
}
