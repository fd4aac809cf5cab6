//! What a fault becomes, and in which words.

use std::time::Duration;

use crate::account::Account;
use crate::checkpoint::{CheckpointKind, Duty};
use crate::execution::masked;
use crate::fault::{Fault, ProtocolBreach};
use crate::hook::{Family, Hook, OnFailure};
use crate::record::Change;

/// What a fault of a hook leaves beside itself.
pub(super) struct Beside {
    pub(super) account: Option<Box<Account>>,
    /// What it had changed all the same.
    pub(super) change: Option<Box<Change>>,
}

/// The treatment of a fault of `hook` at `at`. A gate may say `continue` for timeouts only, an approver never;
/// a bad `respond` always denies, since the real tool must never run in its place.
pub(super) fn on_failure(hook: &Hook, at: CheckpointKind, fault: &Fault) -> OnFailure {
    let stage = hook.stages.get(at);
    let wanted = stage.map_or(OnFailure::default_at(at), |stage| stage.on_failure);
    match (at.duty(), fault) {
        (_, Fault::Protocol(ProtocolBreach::Respond(_))) | (Duty::Approver, _) => OnFailure::Close,
        (Duty::Gate, Fault::TimedOut { .. }) if wanted == OnFailure::Continue => OnFailure::Continue,
        (Duty::Gate, _) => OnFailure::Close,
        (Duty::Rewriter | Duty::Observer | Duty::Injector, _) if stage.is_some_and(|stage| stage.paired) => {
            OnFailure::Continue
        }
        (Duty::Rewriter | Duty::Observer | Duty::Injector, _) => wanted,
    }
}

/// The reason that a fault gives when it refuses, as the model reads it: without secrets.
pub(super) fn fault_reason(at: CheckpointKind, hook: &Hook, fault: &Fault, detail: Option<&str>) -> String {
    masked(&whole_reason(at, hook, fault, detail)).into_owned()
}

fn whole_reason(at: CheckpointKind, hook: &Hook, fault: &Fault, detail: Option<&str>) -> String {
    let name = &hook.name;
    match (at.duty(), hook.family, fault) {
        (Duty::Approver, _, Fault::TimedOut { .. }) => format!("tool approval hook \"{name}\" timed out"),
        (Duty::Approver, _, _) => format!("tool approval hook \"{name}\" failed"),
        (_, Family::Rule, Fault::TimedOut { after }) => {
            format!("hook \"{name}\" did not answer within {}", in_words(*after))
        }
        (_, Family::Rule, _) => match detail {
            Some(detail) => format!("hook \"{name}\" failed: {detail}"),
            None => format!("hook \"{name}\" failed: {fault}"),
        },
        (
            Duty::Observer | Duty::Gate | Duty::Rewriter | Duty::Injector,
            Family::Native | Family::Process | Family::Skill,
            _,
        ) => {
            format!("hook \"{name}\" {fault}")
        }
    }
}

/// A deadline as configuration writes it: `5s`, `500ms`.
fn in_words(time: Duration) -> String {
    match time.as_millis() {
        ms if ms % 1000 == 0 => format!("{}s", ms / 1000),
        ms => format!("{ms}ms"),
    }
}
