//! Clears tool calls: hooks first, then the person, then the record, then the permit.

use std::time::Duration;

use domain::approval::Approval;
use domain::clearing::{ApprovalQuestion, Clearing, ClearingOutcome, ClearingRow, GateNotes, rows, time_of_substitute};
use domain::id::HookName;
use domain::identity::Identity;
use domain::json::Object;
use domain::record::EventRecord;
use domain::ruling::Aborted;
use domain::tool::{Digest, ToolCall, ToolOutput};

use super::{Dispatcher, Ids, TurnCx, blank, has_stored};
use crate::approvals::{QuestionResult, nobody_to_ask};
use crate::permit::Permit;

/// The refusal of a call whose clearing could not be written down.
pub const NOT_RECORDED: &str = "audit record could not be written";

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

impl Dispatcher {
    /// Clears one tool call: `before_tool`, the gates, the approvers, the person. The record of a call that may run
    /// is committed before this returns.
    pub async fn clear(&self, cx: &TurnCx, call: ToolCall) -> Clearance {
        let mut ids = Ids::default();
        let set = self.current.set();
        let began = self.evidence.moment();
        let mut clearing = Clearing::new(set.roster().clone(), cx.event_context(), call);
        let mut person = Person::Unasked;
        loop {
            self.drive((cx, &set), &mut ids, &mut clearing).await;
            let Some(question) = clearing.question() else { break };
            match ask_person(cx, question).await {
                QuestionResult::Yes { id } => {
                    person = Person::Approved { id };
                    clearing.approved();
                }
                QuestionResult::No(text) => clearing.refused(&text),
                QuestionResult::Later(waiting) => {
                    person = Person::Waiting(waiting);
                    break;
                }
            }
        }
        let gate_notes = clearing.take_gate_notes();
        let (outcome, records) = clearing.conclude();
        self.tell_faults(cx, &records);
        self.current.live.count(&cx.who, &set, &records);
        let took = time_of_substitute(&records);
        let digest = match &outcome {
            ClearingOutcome::Run(call) => Some(Digest::of(&cx.who, call)),
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
        let input = || Some(about.arguments.clone());
        let kept = |ClearingRow { kind, ruling, hooks }| EventRecord {
            input: if has_stored(&hooks) { input() } else { None },
            tool: Some(tool.clone()),
            ruling,
            hooks,
            ..blank(ids.of(kind), kind, &cx.who)
        };
        let events: Vec<EventRecord> = rows.into_iter().map(kept).collect();
        self.evidence.concluded(began, &events);
        self.settle(&cx.who, (outcome, person), (digest, took, gate_notes), events).await
    }

    async fn settle(
        &self,
        who: &Identity,
        (outcome, person): (ClearingOutcome, Person),
        (digest, took, gate_notes): (Option<Digest>, Duration, GateNotes),
        events: Vec<EventRecord>,
    ) -> Clearance {
        if let (ClearingOutcome::Run(call), Some(digest)) = (&outcome, digest) {
            let call = call.clone();
            let approval = match person {
                Person::Approved { id } => Some(id),
                Person::Unasked | Person::Waiting(_) => None,
            };
            return match self.evidence.commit(events, NOT_RECORDED).await {
                Ok(()) => Clearance::Run(Permit::grant(who, call, digest, approval), gate_notes),
                Err(error) => {
                    // Only the log has the detail: it may name a path of the user's.
                    tracing::error!("{NOT_RECORDED}: {error}");
                    Clearance::Refused { call, text: NOT_RECORDED.into(), by: None, rewritten: gate_notes.rewritten }
                }
            };
        }
        self.evidence.keep(events).await;
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
}

async fn ask_person(cx: &TurnCx, question: ApprovalQuestion<'_>) -> QuestionResult {
    match &cx.approvals {
        Some(approvals) => approvals.put(&cx.who, question, &cx.cancel).await,
        None => QuestionResult::No(nobody_to_ask(question.why.as_str())),
    }
}
