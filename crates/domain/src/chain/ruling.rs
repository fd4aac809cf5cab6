//! From an answer to a ruling, and what is kept of it.

use std::collections::BTreeMap;

use crate::account::Account;
use crate::checkpoint::Checkpoint;
use crate::hook::{Hook, State};
use crate::id::HookName;
use crate::record::{Change, Lines, NotRun, Outcome};
use crate::ruling::{Aborted, Denied, Ground, KEPT_REWRITING, Ruling};
use crate::verdict::{Abort, Extent, Reason, Verdict, Word};

/// What a hook wants the model to read besides.
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
        State::Disabled => NotRun::Disabled,
        State::Untrusted => NotRun::Untrusted,
        State::Armed | State::Broken(_) | State::Tripped { .. } => NotRun::Decided { by: by.clone() },
    }
}

pub(super) fn kept_rewriting<C: Checkpoint>(hook: &Hook) -> Ruling<C> {
    Ruling::Deny(Denied {
        by: hook.name.clone(),
        at: C::KIND,
        reason: Reason::new(KEPT_REWRITING),
        ground: Ground::Said,
    })
}

/// The ruling that a refusal or an abort is.
pub(super) fn rule<C: Checkpoint>(hook: &Hook, verdict: &Verdict<C>, ground: Ground) -> Ruling<C> {
    let (word, reason) = verdict.told();
    let reason = reason.cloned().unwrap_or_default();
    let (by, at) = (hook.name.clone(), C::KIND);
    match word {
        Word::AbortTurn => Ruling::Abort(Aborted { by, at, abort: Abort { extent: Extent::Turn, reason } }),
        Word::HardAbort => Ruling::Abort(Aborted { by, at, abort: Abort { extent: Extent::Run, reason } }),
        Word::Deny | Word::Ask | Word::Respond | Word::Modify | Word::Continue | Word::Inject => {
            Ruling::Deny(Denied { by, at, reason, ground })
        }
    }
}

/// Of an event's changes only those of the last rewriter may be read: what an earlier one left there may be just what
/// the later one took out.
pub(crate) fn hide_replaced(records: &mut Lines) {
    let mut changes =
        records.whole_mut().rev().filter_map(|record| record.change.as_mut()).filter(|change| !change.places_only);
    changes.next();
    changes.for_each(|change| change.places_only = true);
}

/// Of a chain that does not go on nothing is read: the records of those who wanted that say so.
pub(super) fn drop_notes(records: &mut Lines, notes: &BTreeMap<usize, Note>) {
    for note in notes.values() {
        if let Some(record) = records.whole_mut().rev().find(|record| record.hook == note.by) {
            record.warnings.push("its `additionalContext` was dropped: another hook refused".to_owned());
            record.account.get_or_insert_with(Box::default).context_dropped = true;
        }
    }
}

/// What is recorded of a hook, beside who it is.
pub(super) struct Told {
    pub(super) outcome: Outcome,
    pub(super) warnings: Vec<String>,
    pub(super) change: Option<Box<Change>>,
    pub(super) account: Option<Box<Account>>,
}

impl Told {
    pub(super) fn of(outcome: Outcome) -> Self {
        Self { outcome, warnings: Vec::new(), change: None, account: None }
    }
}
