//! From an answer to a ruling, and what is kept of it.

use std::collections::BTreeMap;

use crate::account::Account;
use crate::checkpoint::{Checkpoint, CheckpointKind};
use crate::hook::{Hook, HookState};
use crate::id::HookName;
use crate::record::{Change, HookOutcome, NotRun, RecordLines};
use crate::ruling::{Aborted, DenialGround, Denied, KEPT_REWRITING, Ruling};
use crate::verdict::{Abort, AbortScope, Reason, Verdict, VerdictKind};

/// A note that a hook wants the model to read besides.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// The hook.
    pub by: HookName,
    /// The text.
    pub text: String,
    /// Whether a judge wrote it: a model, whose words never stand among the operator's.
    pub judged: bool,
}

/// Why a hook that was not reached did not run.
pub(crate) fn unreached(hook: &Hook, by: &HookName) -> NotRun {
    match hook.state {
        HookState::Disabled => NotRun::Disabled,
        HookState::Untrusted => NotRun::Untrusted,
        HookState::Armed | HookState::Broken(_) | HookState::Tripped { .. } => NotRun::Decided { by: by.clone() },
    }
}

pub(super) fn kept_rewriting<C: Checkpoint>(hook: &Hook) -> Ruling<C> {
    Ruling::Deny(Denied {
        by: hook.name.clone(),
        at: C::KIND,
        reason: Reason::new(KEPT_REWRITING),
        ground: DenialGround::Said,
    })
}

/// The ruling that a refusal or an abort is.
pub(super) fn rule<C: Checkpoint>(hook: &Hook, verdict: &Verdict<C>, ground: DenialGround) -> Ruling<C> {
    let (word, reason) = verdict.told();
    let reason = reason.cloned().unwrap_or_default();
    let (by, at) = (hook.name.clone(), C::KIND);
    match word {
        VerdictKind::AbortTurn => {
            Ruling::Abort(Aborted { by, at, abort: Abort { abort_scope: AbortScope::Turn, reason } })
        }
        VerdictKind::HardAbort => {
            Ruling::Abort(Aborted { by, at, abort: Abort { abort_scope: AbortScope::Run, reason } })
        }
        VerdictKind::Deny
        | VerdictKind::Ask
        | VerdictKind::Respond
        | VerdictKind::Modify
        | VerdictKind::Continue
        | VerdictKind::Inject => Ruling::Deny(Denied { by, at, reason, ground }),
    }
}

/// Of an event's changes only those of the last rewriter may be read: what an earlier one left there may be just what
/// the later one took out.
pub(crate) fn hide_replaced(records: &mut RecordLines) {
    let mut changes =
        records.whole_mut().rev().filter_map(|record| record.change.as_mut()).filter(|change| !change.places_only);
    changes.next();
    changes.for_each(|change| change.places_only = true);
}

/// Of what handlers wrote nothing is kept where a hook changed what the event held: it may be just what was taken out,
/// whoever was asked first.
pub(crate) fn hide_output_of_changed(records: &mut RecordLines) {
    if records.whole().any(|record| record.change.is_some()) {
        hide_output(records);
    }
}

/// The same after a whole chain; and of a message that does not reach the model nothing is kept at all.
pub(super) fn hide_output_after<C: Checkpoint>(records: &mut RecordLines, ruling: &Ruling<C>) {
    if C::KIND == CheckpointKind::UserPromptSubmit && !matches!(ruling, Ruling::Proceed) {
        hide_output(records);
    }
    hide_output_of_changed(records);
}

fn hide_output(records: &mut RecordLines) {
    for account in records.whole_mut().filter_map(|record| record.account.as_mut()) {
        account.hides_output = true;
    }
}

/// Of a chain that does not go on nothing is read: the records of those who wanted that say so.
pub(super) fn drop_notes(records: &mut RecordLines, notes: &BTreeMap<usize, Note>) {
    for note in notes.values() {
        if let Some(record) = records.whole_mut().rev().find(|record| record.hook == note.by) {
            record.warnings.push("its `additionalContext` was dropped: another hook refused".to_owned());
            record.account.get_or_insert_with(Box::default).context_dropped = true;
        }
    }
}

/// The summary that is recorded of a hook's answer, beside who the hook is.
pub(super) struct AnswerSummary {
    pub(super) outcome: HookOutcome,
    pub(super) warnings: Vec<String>,
    pub(super) change: Option<Box<Change>>,
    pub(super) account: Option<Box<Account>>,
}

impl AnswerSummary {
    pub(super) fn of(outcome: HookOutcome) -> Self {
        Self { outcome, warnings: Vec::new(), change: None, account: None }
    }
}
