//! Clears tool calls: hooks first, then the person, then the record, then the permit.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use pintle_domain::approval::{Approval, USABLE_SECONDS, by_content};
use pintle_domain::checkpoint::CheckpointKind;
use pintle_domain::clearing::{
    ApprovalQuestion, Clearing, ClearingOutcome, ClearingRow, GateNotes, rows, time_of_substitute,
};
use pintle_domain::id::{EventId, HookName};
use pintle_domain::json::Object;
use pintle_domain::record::{EventRecord, EventRuling};
use pintle_domain::ruling::Aborted;
use pintle_domain::tool::{Digest, ToolCall, ToolOutput};
use pintle_domain::verdict::VerdictKind;

use super::{Dispatcher, Ids, has_stored};
use crate::approvals::{OpenQuestion, QuestionResult, WaitEnd, nobody_to_ask};
use crate::permit::Permit;

/// The refusal of a call whose clearing could not be written down.
pub const NOT_RECORDED: &str = "audit record could not be written";

/// The record of a call whose question is still open, though no hook asks it any more.
const NOT_ANSWERED: &str = "a person was asked about this call and has not answered";

/// The outcome for one tool call.
#[derive(Debug)]
#[must_use = "a clearance nobody reads is a gate nobody closes"]
pub enum Clearance {
    /// It may run, with what the gates left beside that.
    Run(Permit, GateNotes),
    /// A hook answered in the tool's place.
    Substituted {
        /// The call that the result belongs to.
        call: ToolCall,
        /// The result.
        output: ToolOutput,
        /// The hook that answered.
        by: HookName,
        /// How long it took.
        took: Duration,
        /// The notes that the gates left beside that.
        gate_notes: GateNotes,
    },
    /// A person must say, and nobody has yet: the question is in the store. Clear the same call again later.
    Waiting {
        /// The question, with the call as it stands.
        approval: Box<Approval>,
        /// Whether a gate changed the call before.
        rewritten: bool,
    },
    /// It does not run.
    Refused {
        /// The call as it stood.
        call: ToolCall,
        /// Why, as the model and the user read it.
        text: String,
        /// The hook that refused; none when the record could not be written.
        by: Option<HookName>,
        /// Whether a gate had changed the call before.
        rewritten: bool,
    },
    /// The turn, or more, stops.
    Abort {
        /// Why, and how far.
        aborted: Aborted,
        /// The call as it stood.
        call: ToolCall,
        /// Whether a gate had changed it before.
        rewritten: bool,
    },
}

impl Clearance {
    /// The arguments as the gates left them, and whether these are others than the model's.
    pub fn left(&self) -> (&Object, bool) {
        match self {
            Self::Run(permit, gate_notes) => (&permit.call().arguments, gate_notes.rewritten),
            Self::Substituted { call, gate_notes, .. } => (&call.arguments, gate_notes.rewritten),
            Self::Waiting { approval, rewritten } => (&approval.arguments, *rewritten),
            Self::Refused { call, rewritten, .. } | Self::Abort { call, rewritten, .. } => {
                (&call.arguments, *rewritten)
            }
        }
    }
}

/// The part that a person had in a clearing.
enum Person {
    /// Nobody was needed.
    Unasked,
    /// They said yes.
    Approved { id: String },
    /// They have not said.
    Waiting(Box<Approval>),
}

/// The calls that persons approved in one clearing, over all the times that it began: digest and approval. Each is used
/// up already, for this clearing.
type Approved = Vec<(String, String)>;

/// A clearing that came to its end, before its record is kept.
struct Concluded {
    outcome: ClearingOutcome,
    person: Person,
    /// How long the hook took that answered in the tool's place.
    took: Duration,
    gate_notes: GateNotes,
}

impl Dispatcher {
    /// Clears one tool call: `before_tool`, the gates, the approvers, the person. The record of a call that may run
    /// is committed before this returns.
    pub async fn clear(&self, call: ToolCall) -> Clearance {
        self.clear_resumed(call, &mut BTreeMap::new()).await
    }

    /// Clears a call of a turn that somebody left open. `open` holds what persons were asked about its calls, by digest:
    /// a no stays a no, and a question stays open, also when no hook asks any more. An entry that was used is removed.
    ///
    /// Where somebody waits for a person here, the clearing begins again after every answer that may let the call run, as
    /// it does when a parked turn is resumed: the hooks that are in force then rule, and the approval answers for nothing
    /// but the question.
    pub async fn clear_resumed(&self, call: ToolCall, open: &mut BTreeMap<String, OpenQuestion>) -> Clearance {
        let mut approved = Approved::new();
        if !open.is_empty() {
            self.current.live.look().await;
        }
        // Few calls are cleared where somebody waits: the others are not copied.
        let waits = self.approvals.as_ref().filter(|approvals| approvals.waits_here());
        let again = waits.map(|approvals| (approvals, call.clone()));
        let mut clearance = self.settled(self.clear_once(call, &mut approved).await, open);
        let Some((approvals, call)) = again else { return clearance };
        loop {
            let Clearance::Waiting { approval, rewritten } = &clearance else { return clearance };
            match approvals.wait(approval, &self.cancel).await {
                WaitEnd::Left => return clearance,
                WaitEnd::Answered(left) => match left {
                    Some(left) => drop(open.insert(approval.digest.clone(), left)),
                    None => drop(open.remove(&approval.digest)),
                },
                WaitEnd::Refused(text) => {
                    self.said(approval, VerdictKind::Deny, text.clone()).await;
                    let by = Some(approval.by.clone());
                    return Clearance::Refused { call: approval.call(), text, by, rewritten: *rewritten };
                }
            }
            self.current.live.look().await;
            clearance = self.settled(self.clear_once(call.clone(), &mut approved).await, open);
        }
    }

    /// Clears a call without waiting for anybody but hooks.
    async fn clear_once(&self, call: ToolCall, approved: &mut Approved) -> Clearance {
        let mut ids = Ids::default();
        let set = self.current.set();
        let began = self.evidence.moment();
        let mut clearing = Clearing::new(set.roster().clone(), self.event_context(), call);
        let mut person = Person::Unasked;
        loop {
            self.drive(&set, &mut ids, &mut clearing).await;
            let Some(question) = clearing.question() else { break };
            match self.ask_person(question, approved).await {
                QuestionResult::Yes { id } => {
                    person = Person::Approved { id };
                    clearing.approved();
                }
                QuestionResult::No(text) => clearing.refused(&text),
                QuestionResult::Waiting { approval, is_new } => {
                    if let Some(why) = approval.again_because.as_ref().filter(|_| is_new) {
                        let text = format!("a person has to approve it again: {why}");
                        self.said(&approval, VerdictKind::Ask, text).await;
                    }
                    person = Person::Waiting(approval);
                    break;
                }
            }
        }
        let gate_notes = clearing.take_gate_notes();
        let (outcome, records) = clearing.conclude();
        self.tell_faults(&records);
        self.current.live.count(&self.who, &set, &records);
        let took = time_of_substitute(&records);
        let digest = match &outcome {
            ClearingOutcome::Run(call) => Some(Digest::of(&self.who, call)),
            ClearingOutcome::Substituted { .. }
            | ClearingOutcome::Ask { .. }
            | ClearingOutcome::Refused { .. }
            | ClearingOutcome::Abort { .. } => None,
        };
        let approval = match &person {
            Person::Approved { id } => Some(id.as_str()),
            Person::Unasked | Person::Waiting(_) => None,
        };
        let rows = rows(&outcome, digest, approval, records);
        let about = outcome.call();
        let tool = about.tool.clone();
        // Nearly every clearing has a record that says what became of the call.
        let input = Arc::new(about.arguments.clone());
        let kept = |ClearingRow { kind, ruling, hooks }| {
            let has_stored = has_stored(&hooks);
            let record = EventRecord { tool: Some(tool.clone()), ruling, hooks, ..self.blank(ids.of(kind), kind) };
            let input = (has_stored || record.decides()).then(|| input.clone());
            EventRecord { input, ..record }
        };
        let events: Vec<EventRecord> = rows.into_iter().map(kept).collect();
        self.evidence.concluded(began, &events);
        let concluded = Concluded { outcome, person, took, gate_notes };
        match digest {
            Some(digest) => self.permit(concluded, digest, events).await,
            None => self.leave(concluded, events).await,
        }
    }

    /// What `clearance` comes to with what persons were asked about the call.
    fn settled(&self, clearance: Clearance, open: &mut BTreeMap<String, OpenQuestion>) -> Clearance {
        let Clearance::Run(permit, gate_notes) = clearance else { return clearance };
        if permit.approval().is_some() {
            // A person said yes in the meantime: that is the answer, and nothing is open.
            open.remove(&permit.digest().to_string());
            return Clearance::Run(permit, gate_notes);
        }
        let rewritten = gate_notes.rewritten;
        match open.remove(&permit.digest().to_string()) {
            None => Clearance::Run(permit, gate_notes),
            Some(OpenQuestion::Waiting(approval)) => {
                self.refused(CheckpointKind::PreToolUse, NOT_ANSWERED);
                Clearance::Waiting { approval, rewritten }
            }
            Some(OpenQuestion::There(there)) => match self.known.place(&permit.call().tool).differs_from(&there) {
                None => Clearance::Run(permit, gate_notes),
                Some(differs) => {
                    let text = format!("Tool execution was approved, but not here: {differs}");
                    self.refused(CheckpointKind::PreToolUse, &text);
                    Clearance::Refused { call: permit.into_call(), text, by: None, rewritten }
                }
            },
            Some(OpenQuestion::No(text)) => {
                self.refused(CheckpointKind::PreToolUse, &text);
                Clearance::Refused { call: permit.into_call(), text, by: None, rewritten }
            }
        }
    }

    /// The permit of a call that may run, as soon as its record is kept.
    async fn permit(&self, concluded: Concluded, digest: Digest, events: Vec<EventRecord>) -> Clearance {
        let Concluded { outcome, person, gate_notes, .. } = concluded;
        let call = outcome.into_call();
        let approval = match person {
            Person::Approved { id } => Some(id),
            Person::Unasked | Person::Waiting(_) => None,
        };
        match self.evidence.commit(events, NOT_RECORDED).await {
            Ok(()) => Clearance::Run(Permit::grant(&self.who, call, digest, approval), gate_notes),
            Err(error) => {
                // Only the log has the detail: it may name a path of the user's.
                tracing::error!("{NOT_RECORDED}: {error}");
                Clearance::Refused { call, text: NOT_RECORDED.into(), by: None, rewritten: gate_notes.rewritten }
            }
        }
    }

    /// Keeps the record of a call that does not run, and says what came of it.
    async fn leave(&self, concluded: Concluded, events: Vec<EventRecord>) -> Clearance {
        self.evidence.keep(events).await;
        let Concluded { outcome, person, took, gate_notes } = concluded;
        let rewritten = gate_notes.rewritten;
        match (outcome, person) {
            (ClearingOutcome::Run(call), _) => {
                Clearance::Refused { call, text: NOT_RECORDED.into(), by: None, rewritten }
            }
            (ClearingOutcome::Substituted { call, by, result }, _) => {
                Clearance::Substituted { call, output: result, by, took, gate_notes }
            }
            (ClearingOutcome::Ask { .. }, Person::Waiting(approval)) => Clearance::Waiting { approval, rewritten },
            (ClearingOutcome::Ask { call, by, why }, Person::Unasked | Person::Approved { .. }) => {
                Clearance::Refused { call, text: nobody_to_ask(why.as_str()), by: Some(by), rewritten }
            }
            (ClearingOutcome::Refused { call, denied }, _) => {
                Clearance::Refused { call, text: denied.text(), by: Some(denied.by), rewritten }
            }
            (ClearingOutcome::Abort { aborted, call }, _) => Clearance::Abort { aborted, call, rewritten },
        }
    }

    async fn ask_person(&self, question: ApprovalQuestion<'_>, approved: &mut Approved) -> QuestionResult {
        let Some(approvals) = &self.approvals else {
            return QuestionResult::No(nobody_to_ask(question.why.as_str()));
        };
        let digest = Digest::of(&self.who, question.call).to_string();
        if let Some((_, id)) = approved.iter().find(|(same, _)| *same == digest) {
            return QuestionResult::Yes { id: id.clone() };
        }
        let place = self.known.place(&question.call.tool);
        let result = match self.asks_by_content {
            false => approvals.look(&self.who, question, place, None).await,
            true => {
                let (who, call) = by_content(&self.who, question.call, &place);
                let question = ApprovalQuestion { call: &call, ..question };
                approvals.look(&who, question, place, Some(USABLE_SECONDS)).await
            }
        };
        if let QuestionResult::Yes { id } = &result {
            approved.push((digest, id.clone()));
        }
        result
    }

    /// Keeps what became of the call of `approval` beside its hooks.
    async fn said(&self, approval: &Approval, word: VerdictKind, text: String) {
        let ruling = EventRuling { text: Some(text), ..EventRuling::word(word) };
        let event = self.blank(EventId::fresh(), CheckpointKind::PreToolUse);
        let (tool, input) = (Some(approval.tool.clone()), Some(Arc::new(approval.arguments.clone())));
        self.evidence.keep(vec![EventRecord { tool, input, ruling, ..event }]).await;
    }
}
