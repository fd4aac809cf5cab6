//! What a fault becomes, and in which words.

use std::time::Duration;

use crate::account::Account;
use crate::checkpoint::{Checkpoint, CheckpointKind, Duty};
use crate::fault::{Cause, Fault, ProtocolBreach};
use crate::hook::{Family, Hook, HookState, OnFailure};
use crate::record::{Change, NotRun};
use crate::verdict::{Reason, Verdict};

/// The time that all gates of one event may take together. Source: the published format of rules, the chain's budget.
/// Commands of the family `command` have the time that each of their entries says, as where they come from.
pub const GATE_BUDGET: Duration = Duration::from_secs(10);

/// Whether the hooks of `family` share [`GATE_BUDGET`].
pub(super) fn shares_time(family: Family) -> bool {
    match family {
        Family::Native | Family::Process | Family::Rule | Family::Skill => true,
        Family::Command => false,
    }
}

/// The time that is left to `hook` of the one that the hooks at `at` share, if it shares it and `spent` is gone.
pub(super) fn left(at: CheckpointKind, hook: &Hook, spent: Duration) -> Option<Duration> {
    let shares = at.duty() == Duty::Gate && shares_time(hook.family);
    shares.then(|| GATE_BUDGET.saturating_sub(spent))
}

/// What a fault of a hook leaves beside itself.
pub(super) struct Beside {
    pub(super) account: Option<Box<Account>>,
    /// What it had changed all the same.
    pub(super) change: Option<Box<Change>>,
}

/// The treatment of a fault of `hook` at `at`. A gate may say `continue` for timeouts only, but for one of the family
/// `command`, whose entry says it of every fault; an approver never. A bad `respond` always denies, since the real tool
/// must never run in its place.
pub(super) fn on_failure(hook: &Hook, at: CheckpointKind, fault: &Fault) -> OnFailure {
    let stage = hook.stages.get(at);
    let wanted = stage.map_or(OnFailure::default_at(at), |stage| stage.on_failure);
    match (at.duty(), fault) {
        (_, Fault::Protocol(ProtocolBreach::Respond(_))) | (Duty::Approver, _) => OnFailure::Close,
        (Duty::Gate, Fault::TimedOut { .. }) if wanted == OnFailure::Continue => OnFailure::Continue,
        // A turn that ends, and an entry that cannot be read, say nothing.
        (Duty::Gate, Fault::Cancelled | Fault::CannotStart { .. }) => OnFailure::Close,
        (Duty::Gate, _) if hook.family == Family::Command && wanted == OnFailure::Continue => OnFailure::Continue,
        (Duty::Gate, _) => OnFailure::Close,
        (Duty::Rewriter | Duty::Observer | Duty::Injector, _) if stage.is_some_and(|stage| stage.paired) => {
            OnFailure::Continue
        }
        (Duty::Rewriter | Duty::Observer | Duty::Injector, _) => wanted,
    }
}

/// The reason that a fault gives when it refuses, as the model reads it: it takes the phrase, and so no cause.
pub(super) fn fault_reason(at: CheckpointKind, hook: &Hook, fault: &Fault, after: Option<Duration>) -> String {
    let (name, phrase) = (&hook.name, fault.phrase());
    match (at.duty(), hook.family, after) {
        (Duty::Approver, _, Some(_)) => format!("tool approval hook \"{name}\" timed out"),
        (Duty::Approver, _, None) => format!("tool approval hook \"{name}\" failed"),
        (_, Family::Rule, Some(after)) => format!("hook \"{name}\" did not answer within {}", in_words(after)),
        (_, Family::Rule, None) => format!("hook \"{name}\" failed: it {phrase}"),
        // What was accepted is a command of a person's, who is told by whoever is refused.
        (_, Family::Command, _) => format!("hook \"{name}\" {}", fault.refusing()),
        (
            Duty::Observer | Duty::Gate | Duty::Rewriter | Duty::Injector,
            Family::Native | Family::Process | Family::Skill,
            _,
        ) => {
            format!("hook \"{name}\" {phrase}")
        }
    }
}

/// Why `hook` fails without being asked, if it does.
pub(super) fn fails_unasked(hook: &Hook) -> Option<Fault> {
    match &hook.state {
        HookState::Broken(fault) => Some(fault.clone()),
        HookState::Armed | HookState::Disabled | HookState::Untrusted | HookState::Tripped { .. } => None,
    }
}

/// What counts for `hook`, which did not start because those before it took the time of all: what a late answer of it
/// would, without a word about it to its circuit breaker.
pub(super) fn too_late<C: Checkpoint>(hook: &Hook) -> (Verdict<C>, Account) {
    let (name, all) = (&hook.name, in_words(GATE_BUDGET));
    let text = format!(
        "hook \"{name}\" was not asked: the hooks before it took the {all} that the hooks of one event have together"
    );
    let why = Reason::new(&text);
    let verdict = match on_failure(hook, C::KIND, &Fault::TimedOut { after: GATE_BUDGET }) {
        OnFailure::Close | OnFailure::AbortTurn => C::closed(why.clone()).or_else(|| C::aborted(why)),
        OnFailure::Continue => None,
    };
    let ms = u64::try_from(GATE_BUDGET.as_millis()).unwrap_or(u64::MAX);
    let account = Account {
        uncounted: true,
        instead: Some(NotRun::ChainTimeSpent { ms }),
        allowed: verdict.is_none().then_some(text),
        ..Account::default()
    };
    (verdict.unwrap_or(Verdict::Continue), account)
}

/// Said where `hook` was ended after `late` since no more was left of the time of all, and its own limit is longer.
pub(super) fn cut_by_chain(
    at: CheckpointKind,
    hook: &Hook,
    late: Duration,
    account: Option<&Account>,
) -> Option<Cause> {
    if account.is_some_and(|account| account.uncounted) {
        return None;
    }
    let own = hook.stages.get(at)?.timeout;
    let (left, all, own_limit) = (in_words(late), in_words(GATE_BUDGET), in_words(own));
    let said = format!(
        "{left} were left of the {all} that the hooks of one event have together; its own limit is {own_limit}"
    );
    (late < own).then(|| said.into())
}

/// A deadline as configuration writes it: `5s`, `500ms`.
fn in_words(time: Duration) -> String {
    match time.as_millis() {
        ms if ms % 1000 == 0 => format!("{}s", ms / 1000),
        ms => format!("{ms}ms"),
    }
}
