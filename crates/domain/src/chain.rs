//! The hooks of one event, asked one after another. Every rule about order, rank, faults and evidence is here.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use crate::checkpoint::{Checkpoint, CheckpointKind, Duty, Facts, Known, Reply, Subject};
use crate::fault::{Breach, Fault};
use crate::hook::{Hook, OnFailure, State};
use crate::id::HookName;
use crate::record::{Change, NotRun, Outcome, Record};
use crate::roster::Roster;
use crate::ruling::{Aborted, Denied, Ground, KEPT_REWRITING, Ruling};
use crate::verdict::{Abort, Extent, Heard, Reason, Verdict, Word};

/// What all gates of one event may take together. Source: agent hooks' chain budget.
pub const GATE_BUDGET: Duration = Duration::from_secs(10);

/// Something that asks hooks, one at a time, until it has concluded.
pub trait Asks {
    /// Whom to ask now, and what; `None` when nobody is left to ask.
    fn next(&mut self) -> Option<Need<'_>>;

    /// What came of the last [`Need`].
    fn settle(&mut self, heard: Result<Reply, Fault>, took: Duration);
}

/// A question that must be put to one hook.
#[derive(Clone, Copy, Debug)]
pub struct Need<'a> {
    /// The hook's number in the roster.
    pub hook: usize,
    /// How long the answer may take.
    pub timeout: Duration,
    /// The question.
    pub subject: Subject<'a>,
    /// Needs of one event with the same version have the same subject, so that a rendering of it can be kept
    /// for the next hook.
    pub version: u32,
}

/// The hooks of one event, being asked.
pub struct Chain<C: Checkpoint> {
    roster: Arc<Roster>,
    known: Arc<dyn Known>,
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
    question: Option<(HookName, C::Ask)>,
    decision: Option<Ruling<C>>,
    /// What the answers took so far.
    spent: Duration,
    records: Vec<Record>,
}

/// Which time the row is walked.
enum Pass {
    /// Everyone that matches is asked.
    First,
    /// Only these places are asked, once more, on a value that was changed after them: they may refuse it,
    /// but another change would never settle.
    Again(Vec<usize>),
}

/// What a whole chain came to.
#[derive(Debug)]
pub struct Conclusion<C: Checkpoint> {
    /// The value as the chain left it.
    pub subject: C,
    /// What the loop must do.
    pub ruling: Ruling<C>,
    /// Whether a hook changed the value.
    pub changed: bool,
    /// One line per registered hook, in running order; those asked again have a second one.
    pub records: Vec<Record>,
    /// The numbers of the hooks that were asked, each once, in running order.
    pub asked: Vec<usize>,
}

impl<C: Checkpoint> Chain<C> {
    /// A chain over everyone in `roster` who is registered for `C`.
    pub fn new(roster: Arc<Roster>, known: Arc<dyn Known>, subject: C) -> Self {
        let records = Vec::with_capacity(roster.at(C::KIND).len());
        Self {
            roster,
            known,
            subject,
            version: 0,
            changed: false,
            pass: Pass::First,
            at: 0,
            due: None,
            asked: Vec::new(),
            last_rewriter: None,
            question: None,
            decision: None,
            spent: Duration::ZERO,
            records,
        }
    }

    /// A chain over the hooks with the numbers `hooks` only, asked once more because the value changed after them.
    pub fn again(roster: Arc<Roster>, known: Arc<dyn Known>, subject: C, hooks: &[usize]) -> Self {
        let row = roster.at(C::KIND);
        let places = (0..row.len()).filter(|place| hooks.contains(&row[*place])).collect();
        // Another subject than that of the first walk, so another version.
        Self { pass: Pass::Again(places), version: 1 << 16, ..Self::new(roster, known, subject) }
    }

    /// The same chain, its subjects numbered from `version` on: for events that take several chains.
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

    /// The numbers of the hooks that were asked so far, each once, in running order.
    pub fn asked(&self) -> Vec<usize> {
        let row = self.roster.at(C::KIND);
        let places: BTreeSet<usize> = self.asked.iter().copied().collect();
        places.into_iter().map(|place| row[place]).collect()
    }

    /// Hands over the records so far; the chain goes on without them.
    pub(crate) fn take_records(&mut self) -> Vec<Record> {
        std::mem::take(&mut self.records)
    }

    /// The hook that is to be asked next. Hooks that do not apply are recorded and passed over,
    /// broken ones answer with their fault.
    pub fn upcoming(&mut self) -> Option<&Arc<Hook>> {
        loop {
            let place = self.place()?;
            let number = self.roster.at(C::KIND)[place];
            if self.due == Some(place) {
                return Some(self.roster.hook(number));
            }
            let hook = self.roster.hook(number).clone();
            if let Some(why) = self.passes_over(&hook) {
                if matches!(self.pass, Pass::First) {
                    self.record(&hook, Outcome::NotRun(why), Vec::new(), None);
                }
                self.at += 1;
            } else if let State::Broken(fault) = &hook.state {
                self.asked.push(place);
                self.take(&hook, Err(fault.clone()), Duration::ZERO);
                self.at += 1;
            } else if self.left() == Some(Duration::ZERO) {
                self.asked.push(place);
                self.take(&hook, Err(Fault::TimedOut { after: GATE_BUDGET }), Duration::ZERO);
                self.at += 1;
            } else {
                self.due = Some(place);
                return Some(self.roster.hook(number));
            }
        }
    }

    /// How long the rest of the chain may take, where its hooks share a time.
    fn left(&self) -> Option<Duration> {
        (C::KIND.duty() == Duty::Gate).then(|| GATE_BUDGET.saturating_sub(self.spent))
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

    fn passes_over(&self, hook: &Hook) -> Option<NotRun> {
        match hook.state {
            State::Disabled => return Some(NotRun::Disabled),
            State::Untrusted => return Some(NotRun::Untrusted),
            State::Armed | State::Broken(_) => {}
        }
        if !hook.scope.covers(self.known.acting_for()) {
            return Some(NotRun::OutOfScope);
        }
        let facts = self.subject.facts();
        if hook.matches(&facts) || self.owns(hook, &facts) {
            return None;
        }
        let pattern = hook.matcher.as_ref().map(|m| m.pattern().to_owned()).unwrap_or_default();
        let value = match facts.tool {
            Some((tool, raw)) if tool == raw => tool.to_owned(),
            Some((tool, raw)) => format!("{tool} ({raw})"),
            None => String::new(),
        };
        Some(NotRun::Matcher { pattern, value })
    }

    /// Whether `hook` brought the tool that this is about: its matcher then does not count, at any stage.
    fn owns(&self, hook: &Hook, facts: &Facts<'_>) -> bool {
        let owner = facts.tool.and_then(|(tool, _)| self.known.owner(tool));
        owner.as_ref() == Some(&hook.name) || self.subject.owner() == Some(&hook.name)
    }

    /// Takes what `hook` said or how it failed.
    fn take(&mut self, hook: &Arc<Hook>, heard: Result<Heard<C>, Fault>, took: Duration) {
        let heard = heard.and_then(|heard| {
            self.subject.admit(&heard.verdict, hook, &*self.known)?;
            Ok(heard)
        });
        match heard {
            Ok(heard) => self.take_verdict(hook, heard, took),
            Err(fault) => self.take_fault(hook, fault, took),
        }
    }

    fn take_verdict(&mut self, hook: &Arc<Hook>, heard: Heard<C>, took: Duration) {
        let Heard { verdict, mut warnings } = heard;
        let (word, reason) = verdict.told();
        let reason = reason.filter(|reason| !reason.is_empty()).map(ToString::to_string);
        let said = Outcome::Said { word, reason, took };
        let mut change = None;
        match verdict {
            Verdict::Continue => {}
            Verdict::Modify(with) => {
                let before = self.subject.clone();
                match self.subject.modify(with, &hook.name, &*self.known) {
                    Ok(noticed) => warnings.extend(noticed),
                    Err(detail) => return self.take_fault(hook, Fault::broke(detail), took),
                }
                change = self.changed(hook, &before);
            }
            Verdict::Respond(_) if matches!(self.pass, Pass::Again(_)) => self.decision = Some(kept_rewriting(hook)),
            Verdict::Respond(with) => self.decision = Some(Ruling::Respond { by: hook.name.clone(), with }),
            Verdict::Ask(why) => {
                self.question.get_or_insert_with(|| (hook.name.clone(), why));
            }
            Verdict::Deny(_) | Verdict::Abort(_) => self.decision = Some(rule(hook, &verdict, Ground::Said)),
        }
        self.record(hook, said, warnings, change);
    }

    /// Notes a change by `hook`; in a settling pass one more change refuses the call instead.
    fn changed(&mut self, hook: &Arc<Hook>, before: &C) -> Option<Change> {
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
        Some(Change { before: was, after: is })
    }

    fn take_fault(&mut self, hook: &Arc<Hook>, fault: Fault, took: Duration) {
        let why = Reason::new(&fault_reason(C::KIND, &hook.name, &fault));
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
            Verdict::Deny(_) | Verdict::Abort(_) => self.decision = Some(rule(hook, &verdict, Ground::Fault)),
            Verdict::Continue | Verdict::Modify(_) | Verdict::Respond(_) | Verdict::Ask(_) => {}
        }
        self.record(hook, Outcome::Failed { fault, became, took }, Vec::new(), None);
    }

    fn record(&mut self, hook: &Hook, outcome: Outcome, warnings: Vec<String>, change: Option<Change>) {
        self.records.push(Record {
            hook: hook.name.clone(),
            family: hook.family,
            checkpoint: C::KIND,
            outcome,
            warnings,
            change,
            again: matches!(self.pass, Pass::Again(_)),
        });
    }

    /// What the whole chain came to. Hooks that were not reached leave their record too.
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
                self.record(&hook, Outcome::NotRun(why), Vec::new(), None);
            }
        }
        let asked = self.asked();
        let ruling = match (self.decision, self.question) {
            (Some(decision), _) => decision,
            (None, Some((by, why))) => Ruling::Ask { by, why },
            (None, None) => Ruling::Proceed,
        };
        Conclusion { subject: self.subject, ruling, changed: self.changed, records: self.records, asked }
    }
}

impl<C: Checkpoint> Asks for Chain<C> {
    fn next(&mut self) -> Option<Need<'_>> {
        let own = self.upcoming()?.stages.get(C::KIND).map_or(Duration::ZERO, |stage| stage.timeout);
        let timeout = self.left().map_or(own, |left| own.min(left));
        let place = self.place()?;
        let hook = self.roster.at(C::KIND)[place];
        Some(Need { hook, timeout, subject: self.subject.subject(), version: self.version })
    }

    fn settle(&mut self, heard: Result<Reply, Fault>, took: Duration) {
        let Some(hook) = self.upcoming().cloned() else { return };
        let Some(place) = self.place() else { return };
        self.asked.push(place);
        self.spent += took;
        let heard = heard.and_then(|reply| C::heard(reply).ok_or_else(|| Fault::broke("it answered another question")));
        self.take(&hook, heard, took);
        self.at += 1;
        self.due = None;
    }
}

/// Why a hook that was not reached did not run.
pub(crate) fn unreached(hook: &Hook, by: &HookName) -> NotRun {
    match hook.state {
        State::Disabled => NotRun::Disabled,
        State::Untrusted => NotRun::Untrusted,
        State::Armed | State::Broken(_) => NotRun::Decided { by: by.clone() },
    }
}

fn kept_rewriting<C: Checkpoint>(hook: &Hook) -> Ruling<C> {
    Ruling::Deny(Denied {
        by: hook.name.clone(),
        at: C::KIND,
        reason: Reason::new(KEPT_REWRITING),
        ground: Ground::Said,
    })
}

/// The ruling that a refusal or an abort is.
fn rule<C: Checkpoint>(hook: &Hook, verdict: &Verdict<C>, ground: Ground) -> Ruling<C> {
    let (word, reason) = verdict.told();
    let reason = reason.cloned().unwrap_or_default();
    let (by, at) = (hook.name.clone(), C::KIND);
    match word {
        Word::AbortTurn => Ruling::Abort(Aborted { by, at, abort: Abort { extent: Extent::Turn, reason } }),
        Word::HardAbort => Ruling::Abort(Aborted { by, at, abort: Abort { extent: Extent::Run, reason } }),
        Word::Deny | Word::Ask | Word::Respond | Word::Modify | Word::Continue => {
            Ruling::Deny(Denied { by, at, reason, ground })
        }
    }
}

/// What a fault of `hook` becomes at `at`. A gate may say `continue` for timeouts only, an approver never;
/// a bad `respond` always denies, since the real tool must never run in its place.
fn on_failure(hook: &Hook, at: CheckpointKind, fault: &Fault) -> OnFailure {
    let stage = hook.stages.get(at);
    let wanted = stage.map_or(OnFailure::default_at(at), |stage| stage.on_failure);
    match (at.duty(), fault) {
        (_, Fault::Protocol(Breach::Respond(_))) | (Duty::Approver, _) => OnFailure::Close,
        (Duty::Gate, Fault::TimedOut { .. }) if wanted == OnFailure::Continue => OnFailure::Continue,
        (Duty::Gate, _) => OnFailure::Close,
        (Duty::Rewriter | Duty::Observer, _) if stage.is_some_and(|stage| stage.paired) => OnFailure::Continue,
        (Duty::Rewriter | Duty::Observer, _) => wanted,
    }
}

/// The reason that a fault gives when it refuses.
fn fault_reason(at: CheckpointKind, hook: &HookName, fault: &Fault) -> String {
    match (at.duty(), fault) {
        (Duty::Approver, Fault::TimedOut { .. }) => format!("tool approval hook \"{hook}\" timed out"),
        (Duty::Approver, _) => format!("tool approval hook \"{hook}\" failed"),
        (Duty::Observer | Duty::Gate | Duty::Rewriter, _) => format!("hook \"{hook}\" {fault}"),
    }
}

#[cfg(test)]
mod tests;
