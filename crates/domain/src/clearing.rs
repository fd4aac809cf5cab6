//! What one tool call still needs before it may run: rewriters, gates, approvers, in that order.
//!
//! The owner of an injected tool answers in the tool's place, so the gates run right before it is asked.
//! Whatever a gate changes, those who were asked before see again.

use std::sync::Arc;
use std::time::Duration;

use crate::account::HandlerAnswer;
use crate::chain::{
    Chain, Conclusion, HookMachine, HookQuestion, Note, hide_output_of_changed, hide_replaced, unreached,
};
use crate::checkpoint::{ApproveTool, BeforeTool, CheckpointKind, EventContext, PreToolUse, Substitute};
use crate::fault::Fault;
use crate::id::HookName;
use crate::record::{HookOutcome as Ran, NotRun, Record, RecordLines};
use crate::roster::Roster;
use crate::ruling::{Aborted, DenialGround, Denied, KEPT_REWRITING, Ruling};
use crate::tool::{ToolCall, ToolOutput};
use crate::verdict::Reason;

mod outcome;
mod rows;

pub use rows::{ClearingRow, rows, time_of_substitute, time_to_commit};

/// The checkpoints that one clearing passes, in order.
pub const CLEARING: [CheckpointKind; 3] =
    [CheckpointKind::BeforeTool, CheckpointKind::PreToolUse, CheckpointKind::ApproveTool];

/// One tool call on its way to a permit.
pub struct Clearing<'a> {
    roster: Arc<Roster>,
    event_context: EventContext<'a>,
    phase: Phase<'a>,
    /// The last call that the gates let pass as it is.
    gated: Option<ToolCall>,
    question: Option<(HookName, Reason)>,
    /// The numbers of the `before_tool` hooks that were asked, and of those that were passed over.
    earlier: Earlier,
    /// The hooks that were asked once more, and the call that it was about.
    settled: Option<(ToolCall, Vec<usize>)>,
    owner_asked: Option<HookName>,
    /// The number of chains that were begun; keeps the versions of their subjects apart.
    chains: u32,
    records: RecordLines,
    /// The notes that the gates left beside their ruling, when they last ran.
    gate_notes: GateNotes,
}

/// The notes that gates leave beside their ruling on a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GateNotes {
    /// The notes that the gates want the model to read besides; nothing if the call does not go on.
    pub notes: Vec<Note>,
    /// Whether one of them changed the input: then nobody is to read what was there before.
    pub rewritten: bool,
}

/// The `before_tool` hooks that a chain came to, by their numbers.
#[derive(Default)]
struct Earlier {
    asked: Vec<usize>,
    passed_over: Vec<usize>,
}

impl Earlier {
    fn of(chain: &Chain<'_, BeforeTool>) -> Self {
        Self { asked: chain.asked(), passed_over: chain.passed_over() }
    }
}

enum Phase<'a> {
    Before(Chain<'a, BeforeTool>),
    Gates(Chain<'a, PreToolUse>, ToolCall, Then<'a>),
    Again(Chain<'a, BeforeTool>, Then<'a>),
    Approve(Chain<'a, ApproveTool>),
    /// A person must say, and then it goes on.
    Person {
        call: ToolCall,
        by: HookName,
        why: Reason,
        then: Said<'a>,
    },
    Done(ClearingOutcome),
    /// Only while a phase is being replaced by the next one.
    Between,
}

/// Where a clearing goes once the gates have let a call pass.
enum Then<'a> {
    /// Back to the owner of the tool, who is to be asked next.
    Owner(Chain<'a, BeforeTool>),
    /// On to the approvers.
    Approve,
    /// The result that a hook gave stands.
    Substitute { by: HookName, result: ToolOutput, call: ToolCall },
}

/// Where a clearing goes once a person has said yes.
#[expect(clippy::large_enum_variant, reason = "a clearing holds one of these, and one clearing lives at a time")]
enum Said<'a> {
    /// To the owner of the tool, whose answer is the execution.
    Owner(Chain<'a, BeforeTool>),
    /// The call runs.
    Run,
    /// The result that a hook gave stands.
    Substitute { by: HookName, result: ToolOutput },
}

/// The question that a person must answer.
#[derive(Clone, Copy, Debug)]
pub struct ApprovalQuestion<'a> {
    /// The call that would run, or that a hook's answer would stand for.
    pub call: &'a ToolCall,
    /// The hook that wants a person to say.
    pub by: &'a HookName,
    /// Why.
    pub why: &'a Reason,
}

/// The outcome of the clearing of one tool call.
#[derive(Clone, Debug, PartialEq)]
#[must_use = "an outcome nobody reads is a gate nobody closes"]
pub enum ClearingOutcome {
    /// It may run, exactly like this.
    Run(ToolCall),
    /// A hook's result stands in its place.
    Substituted {
        /// The call that the result belongs to.
        call: ToolCall,
        /// The hook that answered.
        by: HookName,
        /// Its result.
        result: ToolOutput,
    },
    /// A human must say whether exactly this may run.
    Ask {
        /// The call.
        call: ToolCall,
        /// The hook that wants it.
        by: HookName,
        /// Why.
        why: Reason,
    },
    /// It does not run.
    Refused {
        /// The call as it stood.
        call: ToolCall,
        /// Who refused, and why.
        denied: Denied,
    },
    /// The turn, or more, stops.
    Abort {
        /// The call as it stood.
        call: ToolCall,
        /// Who stopped it, and how much.
        aborted: Aborted,
    },
}

impl<'a> Clearing<'a> {
    /// A clearing of `call`, which belongs to the hook `owner` if one brought the tool.
    pub fn new(roster: Arc<Roster>, event_context: EventContext<'a>, call: ToolCall) -> Self {
        let owner = event_context.known.owner(&call.tool);
        let before = Chain::new(roster.clone(), event_context, BeforeTool { call, owner });
        Self {
            roster,
            event_context,
            phase: Phase::Before(before),
            gated: None,
            question: None,
            earlier: Earlier::default(),
            settled: None,
            owner_asked: None,
            chains: 0,
            records: RecordLines::new(),
            gate_notes: GateNotes::default(),
        }
    }

    /// Moves on until somebody is to be asked or everything is said.
    fn advance(&mut self) {
        loop {
            match std::mem::replace(&mut self.phase, Phase::Between) {
                Phase::Before(mut chain) => match chain.upcoming().map(|hook| hook.name.clone()) {
                    Some(name) if self.must_gate_before(&chain, &name) => {
                        let call = chain.subject().call.clone();
                        self.records.append(chain.take_records());
                        self.phase = self.gates(call, Then::Owner(chain));
                    }
                    Some(_) => return self.phase = Phase::Before(chain),
                    None => self.phase = self.after_rewriters(chain),
                },
                Phase::Gates(mut chain, input, then) => match chain.upcoming() {
                    Some(_) => return self.phase = Phase::Gates(chain, input, then),
                    None => self.phase = self.after_gates(chain, &input, then),
                },
                Phase::Again(mut chain, then) => match chain.upcoming() {
                    Some(_) => return self.phase = Phase::Again(chain, then),
                    None => self.phase = self.after_again(chain, then),
                },
                Phase::Approve(mut chain) => match chain.upcoming() {
                    Some(_) => return self.phase = Phase::Approve(chain),
                    None => self.phase = self.after_approvers(chain),
                },
                done @ (Phase::Person { .. } | Phase::Done(_) | Phase::Between) => return self.phase = done,
            }
        }
    }

    /// The gates must have ruled on the input before the owner of the tool is asked: its answer is the execution.
    fn must_gate_before(&self, chain: &Chain<'a, BeforeTool>, upcoming: &HookName) -> bool {
        let subject = chain.subject();
        subject.owner.as_ref() == Some(upcoming) && self.gated.as_ref() != Some(&subject.call)
    }

    fn gates(&mut self, call: ToolCall, then: Then<'a>) -> Phase<'a> {
        let subject = PreToolUse { call: call.clone() };
        let version = self.next_version();
        let chain = Chain::new(self.roster.clone(), self.event_context, subject).numbered_from(version);
        Phase::Gates(chain, call, then)
    }

    /// The first version of another chain: no chain changes its subject as often as this leaves room for.
    fn next_version(&mut self) -> u32 {
        self.chains += 1;
        self.chains << 16
    }

    fn after_rewriters(&mut self, chain: Chain<'a, BeforeTool>) -> Phase<'a> {
        self.earlier = Earlier::of(&chain);
        let Conclusion { subject, ruling, records, .. } = chain.conclude();
        self.records.append(records);
        self.owner_asked = subject.owner;
        let call = subject.call;
        match ruling {
            Ruling::Deny(denied) => Phase::Done(ClearingOutcome::Refused { call, denied }),
            Ruling::Abort(aborted) => Phase::Done(ClearingOutcome::Abort { call, aborted }),
            Ruling::Ask { why, .. } => match why {},
            Ruling::Respond { by, with } => self.after_respond(by, *with, call),
            Ruling::Proceed if self.gated.as_ref() == Some(&call) => self.ask_again(call, false, Then::Approve),
            Ruling::Proceed => self.gates(call, Then::Approve),
        }
    }

    /// The gates rule on the call that the hook was asked about, and again on the one it says it answered.
    fn after_respond(&mut self, by: HookName, with: Substitute, asked_about: ToolCall) -> Phase<'a> {
        let mut call = asked_about.clone();
        if let Some(Err(detail)) = with.call.map(|patch| patch.apply_to_answered(&mut call, self.event_context.known)) {
            let reason = Reason::new(&format!("hook \"{by}\" {}", Fault::broke(detail).phrase()));
            let denied = Denied { by, at: CheckpointKind::BeforeTool, reason, ground: DenialGround::Fault };
            return Phase::Done(ClearingOutcome::Refused { call, denied });
        }
        let then = Then::Substitute { by, result: with.result, call };
        if self.gated.as_ref() == Some(&asked_about) {
            self.then(asked_about, then)
        } else {
            self.gates(asked_about, then)
        }
    }

    fn after_gates(&mut self, chain: Chain<'a, PreToolUse>, input: &ToolCall, then: Then<'a>) -> Phase<'a> {
        let Conclusion { subject, ruling, records, notes, .. } = chain.conclude();
        self.take_gate_records(records);
        // A later run of the gates rules on another call: what was said of the earlier one is void.
        self.gate_notes.notes = notes;
        let call = subject.call;
        self.gate_notes.rewritten |= call != *input;
        match ruling {
            Ruling::Deny(denied) => return Phase::Done(ClearingOutcome::Refused { call, denied }),
            // What was said last is about the call that would run; an earlier question stands if nothing is.
            Ruling::Ask { by, why } => self.question = Some((by, why)),
            Ruling::Proceed => {}
            Ruling::Respond { with, .. } => match with {},
            // Gates cannot abort: the type of their `Abort` has no value.
            Ruling::Abort(aborted) => return Phase::Done(ClearingOutcome::Abort { call, aborted }),
        }
        let changed = call != *input;
        self.gated = Some(call.clone());
        match then {
            Then::Owner(mut before) => {
                self.earlier = Earlier::of(&before);
                let subject = BeforeTool { owner: before.subject().owner.clone(), call: call.clone() };
                before.replace(subject);
                self.ask_again(call, changed, Then::Owner(before))
            }
            Then::Approve => self.ask_again(call, changed, Then::Approve),
            // The result was made for another input than the gates let pass, and its maker was asked already.
            Then::Substitute { by, .. } if changed => self.refuse_rewriting(by, call),
            Then::Substitute { .. } => self.then(call, then),
        }
    }

    /// A second run of the gates, on another call, leaves records of its own.
    fn take_gate_records(&mut self, records: RecordLines) {
        let ran_before = self.records.has(CheckpointKind::PreToolUse);
        self.records.append(if ran_before { records.again() } else { records });
    }

    /// Asks hooks once more about the call as it ends up: those that were asked, if a gate changed the input after
    /// them, and those that were passed over, if they want it now that it has another name. They may refuse it.
    fn ask_again(&mut self, call: ToolCall, changed: bool, then: Then<'a>) -> Phase<'a> {
        let settled = self.settled.as_ref().filter(|(about, _)| *about == call).map(|(_, hooks)| hooks.as_slice());
        let is_owner = |number: &usize| Some(&self.roster.hook(*number).name) == self.owner_asked.as_ref();
        let asked = self.earlier.asked.iter().filter(|number| changed && !is_owner(number));
        let passed_over =
            self.earlier.passed_over.iter().filter(|number| settled.is_none_or(|settled| !settled.contains(number)));
        let hooks: Vec<usize> = asked.chain(passed_over).copied().collect();
        if hooks.is_empty() {
            return self.then(call, then);
        }
        let subject = BeforeTool { owner: self.event_context.known.owner(&call.tool), call };
        let version = self.next_version();
        let chain = Chain::again(self.roster.clone(), self.event_context, subject, &hooks).numbered_from(version);
        Phase::Again(chain, then)
    }

    fn after_again(&mut self, chain: Chain<'a, BeforeTool>, then: Then<'a>) -> Phase<'a> {
        let Conclusion { subject, ruling, records, asked, .. } = chain.conclude();
        self.records.append(records);
        self.settled = Some((subject.call.clone(), asked));
        match ruling {
            Ruling::Proceed => self.then(subject.call, then),
            Ruling::Deny(denied) => Phase::Done(ClearingOutcome::Refused { call: subject.call, denied }),
            Ruling::Abort(aborted) => Phase::Done(ClearingOutcome::Abort { call: subject.call, aborted }),
            Ruling::Respond { by, .. } => self.refuse_rewriting(by, subject.call),
            Ruling::Ask { why, .. } => match why {},
        }
    }

    /// Where the clearing goes with a call that the gates let pass.
    fn then(&mut self, call: ToolCall, then: Then<'a>) -> Phase<'a> {
        match then {
            Then::Owner(before) => match self.question.take() {
                // The owner's answer is the execution, so the human comes first.
                Some((by, why)) => Phase::Person { call, by, why, then: Said::Owner(before) },
                None => Phase::Before(before),
            },
            Then::Approve => self.approve(call),
            Then::Substitute { by, result, call: answered } if answered != call => {
                self.gates(answered.clone(), Then::Substitute { by, result, call: answered })
            }
            Then::Substitute { by, result, call } => match self.question.take() {
                Some((asker, why)) => Phase::Person { call, by: asker, why, then: Said::Substitute { by, result } },
                None => Phase::Done(ClearingOutcome::Substituted { call, by, result }),
            },
        }
    }

    fn approve(&mut self, call: ToolCall) -> Phase<'a> {
        let version = self.next_version();
        let chain = Chain::new(self.roster.clone(), self.event_context, ApproveTool { call });
        Phase::Approve(chain.numbered_from(version))
    }

    fn after_approvers(&mut self, chain: Chain<'a, ApproveTool>) -> Phase<'a> {
        let Conclusion { subject, ruling, records, .. } = chain.conclude();
        self.records.append(records);
        let call = subject.call;
        match (ruling, self.question.take()) {
            (Ruling::Deny(denied), _) => Phase::Done(ClearingOutcome::Refused { call, denied }),
            (Ruling::Abort(aborted), _) => Phase::Done(ClearingOutcome::Abort { call, aborted }),
            (Ruling::Proceed, Some((by, why))) => Phase::Person { call, by, why, then: Said::Run },
            (Ruling::Proceed, None) => Phase::Done(ClearingOutcome::Run(call)),
            (Ruling::Respond { with: never, .. } | Ruling::Ask { why: never, .. }, _) => match never {},
        }
    }

    fn refuse_rewriting(&mut self, by: HookName, call: ToolCall) -> Phase<'a> {
        let denied = Denied {
            by,
            at: CheckpointKind::BeforeTool,
            reason: Reason::new(KEPT_REWRITING),
            ground: DenialGround::Said,
        };
        Phase::Done(ClearingOutcome::Refused { call, denied })
    }

    /// The notes that the gates left beside their ruling; they are taken out.
    pub fn take_gate_notes(&mut self) -> GateNotes {
        std::mem::take(&mut self.gate_notes)
    }

    /// The question that a person must answer now, once nobody else is to be asked. Goes on with
    /// [`Clearing::approved`] or [`Clearing::refused`].
    pub fn question(&mut self) -> Option<ApprovalQuestion<'_>> {
        self.advance();
        match &self.phase {
            Phase::Person { call, by, why, .. } => Some(ApprovalQuestion { call, by, why }),
            Phase::Before(_)
            | Phase::Gates(..)
            | Phase::Again(..)
            | Phase::Approve(_)
            | Phase::Done(_)
            | Phase::Between => None,
        }
    }

    /// A person said yes to [`Clearing::question`]: to exactly this call, and once.
    pub fn approved(&mut self) {
        self.phase = match std::mem::replace(&mut self.phase, Phase::Between) {
            Phase::Person { call, then, .. } => match then {
                Said::Owner(before) => Phase::Before(before),
                Said::Run => Phase::Done(ClearingOutcome::Run(call)),
                Said::Substitute { by, result } => Phase::Done(ClearingOutcome::Substituted { call, by, result }),
            },
            other @ (Phase::Before(_)
            | Phase::Gates(..)
            | Phase::Again(..)
            | Phase::Approve(_)
            | Phase::Done(_)
            | Phase::Between) => other,
        };
    }

    /// A person said no to [`Clearing::question`], or could not be asked: `text` says so.
    pub fn refused(&mut self, text: &str) {
        self.phase = match std::mem::replace(&mut self.phase, Phase::Between) {
            Phase::Person { call, by, .. } => {
                let at = CheckpointKind::PreToolUse;
                let denied = Denied { by, at, reason: Reason::new(text), ground: DenialGround::Person };
                Phase::Done(ClearingOutcome::Refused { call, denied })
            }
            other @ (Phase::Before(_)
            | Phase::Gates(..)
            | Phase::Again(..)
            | Phase::Approve(_)
            | Phase::Done(_)
            | Phase::Between) => other,
        };
    }

    /// The outcome of the call's clearing, with one record for every hook that is registered for any checkpoint of
    /// [`CLEARING`], as they came, so in running order at each; those asked again have further ones.
    ///
    /// A clearing that is left before its end concludes as if everyone who is still due had been cancelled, and as a
    /// question if a person is due: nothing runs.
    pub fn conclude(mut self) -> (ClearingOutcome, RecordLines) {
        while self.next().is_some() {
            self.settle(Err(Fault::Cancelled), Duration::ZERO);
        }
        let outcome = self.outcome();
        let by = outcome.decided_by();
        for kind in CLEARING {
            // Those that were reached are the first of their row.
            let reached = self.records.reached(kind);
            for number in self.roster.at(kind).iter().skip(reached) {
                let hook = self.roster.hook(*number);
                let why = by.map_or(NotRun::OutOfScope, |by| unreached(hook, by));
                self.records.push(Record::of(hook, kind, Ran::NotRun(why)));
            }
        }
        let by_gate = |record: &Record| record.checkpoint == CheckpointKind::PreToolUse && record.change.is_some();
        if self.records.whole().any(by_gate) {
            hide_replaced(&mut self.records);
        }
        hide_output_of_changed(&mut self.records);
        (outcome, self.records)
    }

    /// The outcome of the clearing, once nobody is left to ask but a person.
    fn outcome(&mut self) -> ClearingOutcome {
        match std::mem::replace(&mut self.phase, Phase::Between) {
            Phase::Done(outcome) => outcome,
            Phase::Person { call, by, why, .. } => ClearingOutcome::Ask { call, by, why },
            Phase::Before(_) | Phase::Gates(..) | Phase::Again(..) | Phase::Approve(_) | Phase::Between => {
                unreachable!("a clearing that asks nobody is done, or waits for a person")
            }
        }
    }
}

impl HookMachine for Clearing<'_> {
    fn next(&mut self) -> Option<HookQuestion<'_>> {
        self.advance();
        match &mut self.phase {
            Phase::Before(chain) | Phase::Again(chain, _) => chain.next(),
            Phase::Gates(chain, ..) => chain.next(),
            Phase::Approve(chain) => chain.next(),
            Phase::Person { .. } | Phase::Done(_) | Phase::Between => None,
        }
    }

    fn settle(&mut self, answered: impl Into<HandlerAnswer>, took: Duration) {
        match &mut self.phase {
            Phase::Before(chain) | Phase::Again(chain, _) => chain.settle(answered, took),
            Phase::Gates(chain, ..) => chain.settle(answered, took),
            Phase::Approve(chain) => chain.settle(answered, took),
            Phase::Person { .. } | Phase::Done(_) | Phase::Between => {}
        }
    }
}

#[cfg(test)]
mod tests;
