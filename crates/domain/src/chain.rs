//! The hooks of one event, asked one after another. Every rule about order, rank, faults and evidence is here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::account::{Account, HandlerAnswer, RewriteOutcome};
use crate::breaker;
use crate::checkpoint::{Checkpoint, Duty, EventContext, Subject};
use crate::fault::Fault;
use crate::hook::{Hook, HookState, OnFailure};
use crate::id::HookName;
use crate::record::{Change, HookOutcome, NotRun, Record, RecordLines};
use crate::roster::Roster;
use crate::rule::{Fallback, HandlerType};
use crate::ruling::{DenialGround, Ruling};
use crate::verdict::{ParsedVerdict, Reason, Verdict};

mod asking;
mod failing;
mod ruling;
mod wanting;

pub use failing::GATE_BUDGET;
use failing::{Beside, cut_by_chain, fails_unasked, fault_reason, left, on_failure, shares_time, too_late};
pub use ruling::Note;
use ruling::{AnswerSummary, drop_notes, hide_output_after, kept_rewriting, rule};
pub(crate) use ruling::{hide_output_of_changed, hide_replaced, unreached};
pub use wanting::wanted;

/// Something that asks hooks, one at a time, until it has concluded.
pub trait HookMachine {
    /// Whom to ask now, and what; `None` when nobody is left to ask.
    fn next(&mut self) -> Option<HookQuestion<'_>>;

    /// Takes in the answer to the last [`HookQuestion`].
    fn settle(&mut self, answered: impl Into<HandlerAnswer>, took: Duration);
}

/// A question that must be put to one hook.
#[derive(Clone, Copy, Debug)]
pub struct HookQuestion<'a> {
    /// The hook's number in the roster.
    pub hook: usize,
    /// The time that the answer may take.
    pub timeout: Duration,
    /// The time that all hooks still to be asked may take, where they share a time; else the same as `timeout`.
    pub budget: Duration,
    /// Whether the hook is asked once more about a value that was changed after it.
    pub again: bool,
    /// The question.
    pub subject: Subject<'a>,
    /// Needs of one event with the same version have the same subject, so that a rendering of it can be kept
    /// for the next hook.
    pub version: u32,
}

/// The hooks of one event, being asked.
pub struct Chain<'a, C: Checkpoint> {
    roster: Arc<Roster>,
    event_context: EventContext<'a>,
    subject: C,
    version: u32,
    changed: bool,
    pass: Pass,
    at: usize,
    /// The place at which `upcoming` stopped: its hook applies, and is not matched again until it has answered.
    due: Option<usize>,
    /// Places in the row of those that were asked, for a settling pass.
    asked: Vec<usize>,
    last_rewriter: Option<usize>,
    /// The place of the hook that asks a person, its name, and what it asks.
    question: Option<(usize, HookName, C::Ask)>,
    /// The notes that hooks want the model to read besides, by place: what a hook says in the second pass replaces the
    /// first.
    notes: BTreeMap<usize, Note>,
    decision: Option<Ruling<C>>,
    /// The time that the answers took so far.
    spent: Duration,
    records: RecordLines,
}

/// Which time the row is walked.
enum Pass {
    /// Everyone that matches is asked.
    First,
    /// Only these places are asked, once more, on a value that was changed after them: they may refuse it,
    /// but another change would never settle.
    Again(Vec<usize>),
}

/// The conclusion that a whole chain came to.
#[derive(Debug)]
pub struct Conclusion<C: Checkpoint> {
    /// The value as the chain left it.
    pub subject: C,
    /// The ruling: what the loop must do.
    pub ruling: Ruling<C>,
    /// Whether a hook changed the value.
    pub changed: bool,
    /// One line per registered hook, in running order; those asked again have a second one.
    pub records: RecordLines,
    /// The numbers of the hooks that were asked, each once, in running order.
    pub asked: Vec<usize>,
    /// The notes that hooks want the model to read besides, in running order; nothing if the chain does not go on.
    pub notes: Vec<Note>,
}

impl<'a, C: Checkpoint> Chain<'a, C> {
    /// A chain over everyone in `roster` who is registered for `C`.
    pub fn new(roster: Arc<Roster>, event_context: EventContext<'a>, subject: C) -> Self {
        Self {
            roster,
            event_context,
            subject,
            version: 0,
            changed: false,
            pass: Pass::First,
            at: 0,
            due: None,
            asked: Vec::new(),
            last_rewriter: None,
            question: None,
            notes: BTreeMap::new(),
            decision: None,
            spent: Duration::ZERO,
            records: RecordLines::new(),
        }
    }

    /// A chain over the hooks with the numbers `hooks` only, asked once more because the value changed after them.
    pub fn again(roster: Arc<Roster>, event_context: EventContext<'a>, subject: C, hooks: &[usize]) -> Self {
        let row = roster.at(C::KIND);
        let places = (0..row.len()).filter(|place| hooks.contains(&row[*place])).collect();
        // Another subject than that of the first walk, so another version.
        Self { pass: Pass::Again(places), version: 1 << 16, ..Self::new(roster, event_context, subject) }
    }

    /// This chain with its subjects numbered from `version` on: for events that take several chains.
    pub(crate) fn numbered_from(self, version: u32) -> Self {
        Self { version, ..self }
    }

    /// The value as it stands.
    pub fn subject(&self) -> &C {
        &self.subject
    }

    /// Puts another value in the place of the subject, for the hooks that are still to be asked.
    pub fn replace(&mut self, subject: C) {
        self.subject = subject;
        self.version += 1;
        self.due = None;
    }

    /// The numbers of the hooks that were asked so far, in running order.
    pub fn asked(&self) -> Vec<usize> {
        let row = self.roster.at(C::KIND);
        let places: BTreeSet<usize> = self.asked.iter().copied().collect();
        places.into_iter().map(|place| row[place]).collect()
    }

    /// The numbers of the hooks that stand before the last one that changed the value, and were not asked.
    pub(crate) fn passed_over(&self) -> Vec<usize> {
        let row = self.roster.at(C::KIND);
        let before = 0..self.last_rewriter.unwrap_or(0);
        before.filter(|place| !self.asked.contains(place)).map(|place| row[place]).collect()
    }

    /// Hands over the records so far; the chain goes on without them.
    pub(crate) fn take_records(&mut self) -> RecordLines {
        std::mem::take(&mut self.records)
    }

    /// The hook that is to be asked next. Those that do not apply are recorded, broken ones answer with their fault.
    pub fn upcoming(&mut self) -> Option<&Arc<Hook>> {
        let roster = self.roster.clone();
        let row = roster.at(C::KIND);
        loop {
            let place = self.place()?;
            if self.due == Some(place) {
                return Some(self.roster.hook(row[place]));
            }
            // At the end of one pass another one may begin.
            let Some((place, fault)) = self.pass_over(&roster) else { continue };
            let hook = roster.hook(row[place]);
            if fault.is_none() && (self.tripped(hook) || self.is_too_late(hook)) {
                self.at += 1;
            } else if let Some(fault) = fault.or_else(|| fails_unasked(hook)) {
                self.asked.push(place);
                // Its handler had no part in it, so its circuit breaker does not hear of it.
                let account = Account { uncounted: true, ..Account::default() };
                self.take(hook, Err(fault), Some(Box::new(account)), Duration::ZERO);
                self.at += 1;
            } else {
                self.due = Some(place);
                return Some(self.roster.hook(row[place]));
            }
        }
    }

    /// The place in the row that is due, or `None` when the chain is over. Starts the settling pass of gates.
    fn place(&mut self) -> Option<usize> {
        if self.decision.is_some() {
            return None;
        }
        let end = match &self.pass {
            Pass::First => self.roster.at(C::KIND).len(),
            Pass::Again(places) => places.len(),
        };
        if self.at < end {
            return Some(match &self.pass {
                Pass::First => self.at,
                Pass::Again(places) => places[self.at],
            });
        }
        // Gates ordered before the last one that changed the value have not seen it yet.
        match (&self.pass, C::KIND.duty(), self.last_rewriter) {
            (Pass::First, Duty::Gate, Some(last)) => {
                self.pass = Pass::Again((0..last).collect());
                self.at = 0;
                self.last_rewriter = None;
                self.place()
            }
            (Pass::First | Pass::Again(_), _, _) => None,
        }
    }

    /// Whether nothing is left of the time of the chain; what a late answer counts for is taken in the place of `hook`.
    fn is_too_late(&mut self, hook: &Arc<Hook>) -> bool {
        if fails_unasked(hook).is_some() || left(C::KIND, hook, self.spent) != Some(Duration::ZERO) {
            return false;
        }
        self.asked.push(self.place_now());
        let (verdict, account) = too_late::<C>(hook);
        self.take(hook, Ok(verdict.into()), Some(Box::new(account)), Duration::ZERO);
        true
    }

    /// Whether the circuit breaker of `hook` is open; what that counts for is taken in its place.
    fn tripped(&mut self, hook: &Arc<Hook>) -> bool {
        let HookState::Tripped { since } = &hook.state else { return false };
        let stored = hook.stored.as_ref();
        let blocks = C::KIND.duty() == Duty::Gate && stored.is_none_or(|stored| stored.on_trip == Fallback::Block);
        if !blocks {
            if matches!(self.pass, Pass::First) {
                self.record(hook, AnswerSummary::of(HookOutcome::NotRun(NotRun::BreakerOpen { since: since.clone() })));
            }
            return true;
        }
        let (id, policy) = stored.map(|stored| (stored.id.as_str(), stored.breaker)).unwrap_or_default();
        let text = breaker::refusal(hook.name.as_str(), id, since, policy);
        let open = NotRun::BreakerOpen { since: since.clone() };
        let account = Account { uncounted: true, instead: Some(open), ..Account::default() };
        match C::closed(Reason::new(&text)) {
            Some(verdict) => self.take(hook, Ok(verdict.into()), Some(Box::new(account)), Duration::ZERO),
            None => {
                self.take(hook, Err(Fault::Unavailable { cause: text.into() }), Some(Box::new(account)), Duration::ZERO)
            }
        }
        true
    }

    /// Takes what `hook` said or how it failed.
    fn take(
        &mut self,
        hook: &Arc<Hook>,
        heard: Result<ParsedVerdict<C>, Fault>,
        account: Option<Box<Account>>,
        took: Duration,
    ) {
        let heard = heard.and_then(|heard| {
            self.subject.admit(&heard.verdict, hook, self.event_context.known)?;
            Ok(heard)
        });
        match heard {
            Ok(heard) => self.take_verdict(hook, heard, account, took),
            Err(fault) => self.take_fault(hook, fault, Beside { account, change: None }, took),
        }
    }

    fn take_verdict(
        &mut self,
        hook: &Arc<Hook>,
        heard: ParsedVerdict<C>,
        account: Option<Box<Account>>,
        took: Duration,
    ) {
        let ParsedVerdict { verdict, warnings, rewrite, context } = heard;
        let (word, reason) = verdict.told();
        let reason = reason.filter(|reason| !reason.is_empty()).map(ToString::to_string);
        let mut told =
            AnswerSummary { outcome: HookOutcome::Said { word, reason, took }, warnings, change: None, account };
        let (verdict, rewrite) = match verdict {
            Verdict::Modify(with) => (Verdict::Continue, Some(with)),
            // Who refuses changes nothing.
            Verdict::Deny(_) | Verdict::Abort(_) | Verdict::Respond(_) => (verdict, None),
            Verdict::Continue | Verdict::Ask(_) => (verdict, rewrite.map(|with| *with)),
        };
        if let Some(with) = rewrite
            && let Err(detail) = self.rewrite(hook, with, &mut told)
        {
            let beside = Beside { account: told.account, change: told.change };
            return self.take_fault(hook, Fault::broke(detail), beside, took);
        }
        let goes_on = matches!(verdict, Verdict::Continue | Verdict::Ask(_)) && self.decision.is_none();
        match context {
            Some(text) if goes_on && C::TAKES_NOTES => self.note(hook, text),
            Some(_) => {
                told.warnings.push("its `additionalContext` was dropped: it has no place here".to_owned());
                told.account.get_or_insert_with(Box::default).context_dropped = true;
            }
            // What a hook does not say again in the second pass it has taken back.
            None => drop(self.notes.remove(&self.place_now())),
        }
        match verdict {
            Verdict::Continue | Verdict::Modify(_) => {}
            Verdict::Respond(_) if matches!(self.pass, Pass::Again(_)) => self.decision = Some(kept_rewriting(hook)),
            Verdict::Respond(with) => self.decision = Some(Ruling::Respond { by: hook.name.clone(), with }),
            Verdict::Ask(why) => self.ask(hook, why),
            Verdict::Deny(_) | Verdict::Abort(_) => self.decision = Some(rule(hook, &verdict, DenialGround::Said)),
        }
        self.record(hook, told);
    }

    /// Puts what `hook` has the right to into the place of the subject.
    fn rewrite(&mut self, hook: &Arc<Hook>, with: C::Modify, told: &mut AnswerSummary) -> Result<(), String> {
        let rights = hook.stored.as_ref().map(|stored| &stored.rights);
        let (with, dropped) = match rights {
            Some(rights) => self.subject.permitted(with, rights),
            None => (Some(with), None),
        };
        let mut applied = false;
        if let Some(with) = with {
            let before = self.subject.clone();
            // What is wrong with one part of it does not undo the others.
            let modified = self.subject.modify(with, &hook.name, self.event_context.known);
            told.change = self.changed(hook, &before);
            told.warnings.extend(modified?);
            applied = told.change.is_some();
        }
        if rights.is_some() {
            let account = told.account.get_or_insert_with(Box::default);
            account.rewrite = match dropped {
                Some(why) => Some(RewriteOutcome::Dropped(why)),
                None => applied.then_some(RewriteOutcome::Applied),
            };
        }
        Ok(())
    }

    fn note(&mut self, hook: &Hook, text: String) {
        let judged = hook.stored.as_ref().is_some_and(|stored| stored.handler == HandlerType::Prompt);
        self.notes.insert(self.place_now(), Note { by: hook.name.clone(), text, judged });
    }

    /// The place in the row of the hook whose answer is being taken.
    fn place_now(&self) -> usize {
        match &self.pass {
            Pass::First => self.at,
            Pass::Again(places) => places.get(self.at).copied().unwrap_or(self.at),
        }
    }

    /// Notes a change by `hook`; in a settling pass one more change refuses the call instead.
    fn changed(&mut self, hook: &Arc<Hook>, before: &C) -> Option<Box<Change>> {
        let (was, is) = (before.snapshot(), self.subject.snapshot());
        if was == is {
            return None;
        }
        match self.pass {
            Pass::First => {
                self.version += 1;
                self.changed = true;
                self.last_rewriter = Some(self.at);
            }
            Pass::Again(_) => {
                self.subject = before.clone();
                self.decision = Some(kept_rewriting(hook));
            }
        }
        // What was not let into force is nobody's to read.
        Some(Box::new(Change { before: was, after: is, places_only: matches!(self.pass, Pass::Again(_)) }))
    }

    fn take_fault(&mut self, hook: &Arc<Hook>, fault: Fault, beside: Beside, took: Duration) {
        let Beside { mut account, change } = beside;
        let late = if let Fault::TimedOut { after } = &fault { Some(*after) } else { None };
        // Only gates have a time that they share.
        let cut = late
            .filter(|_| left(C::KIND, hook, self.spent).is_some())
            .and_then(|late| cut_by_chain(C::KIND, hook, late, account.as_deref()));
        if let Some(cut) = cut {
            account.get_or_insert_with(Box::default).detail = Some(cut);
        }
        let why = Reason::new(&fault_reason(C::KIND, hook, &fault, late));
        // A turn that is ending needs nobody to end it, and it does not end in an error of a hook.
        let aborted = |why| if fault == Fault::Cancelled { None } else { C::aborted(why) };
        // Where one way of stopping does not exist, the other one does: only `continue` goes on.
        let verdict = match on_failure(hook, C::KIND, &fault) {
            OnFailure::Close => C::closed(why.clone()).or_else(|| aborted(why)),
            OnFailure::AbortTurn => aborted(why.clone()).or_else(|| C::closed(why)),
            OnFailure::Continue => None,
        };
        let verdict = verdict.unwrap_or(Verdict::Continue);
        let (became, _) = verdict.told();
        match verdict {
            Verdict::Deny(_) | Verdict::Abort(_) => self.decision = Some(rule(hook, &verdict, DenialGround::Fault)),
            Verdict::Continue | Verdict::Modify(_) | Verdict::Respond(_) | Verdict::Ask(_) => {}
        }
        let outcome = HookOutcome::Failed { fault, became, took };
        self.record(hook, AnswerSummary { account, change, ..AnswerSummary::of(outcome) });
    }

    fn record(&mut self, hook: &Hook, told: AnswerSummary) {
        let AnswerSummary { outcome, warnings, change, account } = told;
        let again = matches!(self.pass, Pass::Again(_));
        self.records.push(Record { warnings, change, account, again, ..Record::of(hook, C::KIND, outcome) });
    }

    /// The conclusion that the whole chain came to. Hooks that were not reached leave their record too.
    ///
    /// A chain that is left before its end concludes as if everyone who is still due had been cancelled:
    /// gates stay shut.
    pub fn conclude(mut self) -> Conclusion<C> {
        while self.upcoming().is_some() {
            self.settle(Err(Fault::Cancelled), Duration::ZERO);
        }
        let decider = match &self.decision {
            Some(Ruling::Deny(denied)) => Some(denied.by.clone()),
            Some(Ruling::Abort(aborted)) => Some(aborted.by.clone()),
            Some(Ruling::Respond { by, .. }) => Some(by.clone()),
            Some(Ruling::Ask { .. } | Ruling::Proceed) | None => None,
        };
        if let (Some(by), Pass::First) = (decider, &self.pass) {
            let row = self.roster.at(C::KIND)[self.at..].to_vec();
            for number in row {
                let hook = self.roster.hook(number).clone();
                let why = unreached(&hook, &by);
                self.record(&hook, AnswerSummary::of(HookOutcome::NotRun(why)));
            }
        }
        if C::KIND.duty() == Duty::Gate {
            hide_replaced(&mut self.records);
        }
        let asked = self.asked();
        let ruling = match (self.decision, self.question) {
            (Some(decision), _) => decision,
            (None, Some((_, by, why))) => Ruling::Ask { by, why },
            (None, None) => Ruling::Proceed,
        };
        hide_output_after(&mut self.records, &ruling);
        let goes_on = matches!(ruling, Ruling::Proceed | Ruling::Ask { .. });
        if !goes_on {
            drop_notes(&mut self.records, &std::mem::take(&mut self.notes));
        }
        let notes = self.notes.into_values().collect();
        Conclusion { subject: self.subject, ruling, changed: self.changed, records: self.records, asked, notes }
    }
}

impl<C: Checkpoint> HookMachine for Chain<'_, C> {
    fn next(&mut self) -> Option<HookQuestion<'_>> {
        self.upcoming()?;
        let place = self.place()?;
        let hook = self.roster.at(C::KIND)[place];
        let asked = self.roster.hook(hook);
        let own = asked.stages.get(C::KIND).map_or(Duration::ZERO, |stage| stage.timeout);
        let left = left(C::KIND, asked, self.spent);
        let (timeout, budget) = (left.map_or(own, |left| own.min(left)), left.unwrap_or(own));
        let again = matches!(self.pass, Pass::Again(_));
        Some(HookQuestion { hook, timeout, budget, again, subject: self.subject.subject(), version: self.version })
    }

    fn settle(&mut self, answered: impl Into<HandlerAnswer>, took: Duration) {
        let HandlerAnswer { heard, account } = answered.into();
        let Some(hook) = self.upcoming().cloned() else { return };
        let Some(place) = self.place() else { return };
        self.asked.push(place);
        self.spent += if shares_time(hook.family) { took } else { Duration::ZERO };
        let took = account.as_ref().map_or(took, |account| took.saturating_sub(account.slot_wait));
        let heard = heard.and_then(|reply| C::heard(reply).ok_or_else(|| Fault::broke("it answered another question")));
        self.take(&hook, heard, account, took);
        self.at += 1;
        self.due = None;
    }
}

#[cfg(test)]
mod tests;
