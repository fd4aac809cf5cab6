//! The questions that a person was asked, and whether each still waits: an event says only that it was asked.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use pintle_domain::approval::{Approval, ApprovalState};
use pintle_domain::json::canonical;
use pintle_domain::store::{ApprovalQuery, RecordQuery, StoredCall, StoredEvent, StoredTurn, TenantScope};
use pintle_store::Store;

use super::{MAX_EVENTS, find};
use crate::clean::clean;
use crate::cli::command_line::complete;
use crate::error::CliError;

/// Among how many waiting questions those of a turn are looked for: far more than a person leaves waiting.
const MAX_WAITING: usize = 1000;

/// How much earlier than its question an event is looked for: stores keep whole microseconds.
const SLACK: SignedDuration = SignedDuration::from_millis(1);

/// A turn and a call of it.
type CallKey = (String, String);

/// The questions that a person was asked.
#[derive(Default)]
pub(super) struct Questions {
    /// Those that are not over: they wait, or were approved and not used yet; each with what there is to do.
    open: BTreeMap<CallKey, String>,
    /// Who approved the calls that ran since.
    approvers: BTreeMap<CallKey, String>,
}

impl Questions {
    /// Those that `store` has.
    pub(super) fn of(store: &dyn Store) -> Result<Self, CliError> {
        let now = Timestamp::now();
        let found = store.approvals(&ApprovalQuery::newest(TenantScope::All, MAX_WAITING));
        let found = found.map_err(|error| CliError::failed(error.to_string()))?;
        let (by_content, of_calls): (Vec<Approval>, Vec<Approval>) =
            found.into_iter().partition(Approval::is_by_content);
        let mut questions = Self::default();
        for approval in &of_calls {
            let key = (approval.turn_id.to_string(), approval.tool_call_id.to_string());
            questions.take(key, approval, now);
        }
        let Some(since) = by_content.iter().map(|it| it.asked_at).min() else { return Ok(questions) };
        // Agents with a loop of their own are asked about by content: their events say which calls these were.
        let since = since.checked_sub(SLACK).ok();
        let query = RecordQuery { refused: true, since, limit: MAX_EVENTS, ..RecordQuery::of(TenantScope::All) };
        let of_content = ByContent::of(&by_content);
        for event in find(store, &query)? {
            if let Some(approval) = of_content.asked_by(&event) {
                questions.take(key_of(&event), approval, now);
            }
        }
        Ok(questions)
    }

    fn take(&mut self, key: CallKey, approval: &Approval, now: Timestamp) {
        match approval.state_at(now) {
            state @ (ApprovalState::Waiting | ApprovalState::Approved) => {
                self.open.insert(key, to_do(approval, state));
            }
            ApprovalState::Used => {
                self.approvers.extend(approval.answered_by.clone().map(|who| (key, who)));
            }
            ApprovalState::Refused | ApprovalState::Void | ApprovalState::Expired => {}
        }
    }

    /// Whether the question of `event` is not over.
    pub(super) fn waits(&self, event: &StoredEvent) -> bool {
        self.open.contains_key(&key_of(event))
    }

    /// What there is to do about the question of `event`, if it is not over.
    pub(super) fn to_do(&self, event: &StoredEvent) -> Option<&str> {
        self.open.get(&key_of(event)).map(String::as_str)
    }

    /// Who approved the call of `event`, if it ran and somebody is known.
    pub(super) fn approver(&self, event: &StoredEvent) -> Option<&str> {
        self.approvers.get(&key_of(event)).map(String::as_str)
    }

    /// How many questions of `turn` are not over.
    pub(super) fn waiting(&self, turn: &StoredTurn) -> u64 {
        self.open.keys().filter(|(of, _)| *of == turn.turn_id).count() as u64
    }
}

/// What there is to do about the open question `approval`, which is in `state`.
fn to_do(approval: &Approval, state: ApprovalState) -> String {
    match (state, &approval.answered_by) {
        (ApprovalState::Approved, Some(by)) => format!("approved by {}, and not used yet", clean(by)),
        (_, _) => complete(&format!("to let it run: `pintle approvals approve {}`", clean(&approval.id))),
    }
}

/// Questions about what a call is, whatever its turn and its id.
struct ByContent<'a>(BTreeMap<(&'a str, &'a str, String), Vec<&'a Approval>>);

impl<'a> ByContent<'a> {
    fn of(approvals: &'a [Approval]) -> Self {
        let mut all = BTreeMap::<_, Vec<&'a Approval>>::new();
        for approval in approvals {
            // Records have the call without its secrets.
            let call = content(&StoredCall::of(&approval.arguments));
            all.entry((approval.session_id.as_str(), approval.tool.as_str(), call)).or_default().push(approval);
        }
        Self(all)
    }

    /// The newest one that `event` may have asked.
    fn asked_by(&self, event: &StoredEvent) -> Option<&'a Approval> {
        let (tool, call) = (event.tool.as_deref()?, content(event.call.as_ref()?));
        let until = event.at.parse::<Timestamp>().ok()?.checked_add(SLACK).ok()?;
        let same = self.0.get(&(event.session_id.as_str(), tool, call))?;
        same.iter().copied().filter(|it| it.asked_at <= until).max_by_key(|it| it.asked_at)
    }
}

/// What tells the arguments of `call` from others.
fn content(call: &StoredCall) -> String {
    call.arguments.as_ref().map_or_else(|| call.line(), canonical)
}

fn key_of(event: &StoredEvent) -> CallKey {
    (event.turn_id.clone(), event.tool_call_id.clone().unwrap_or_default())
}
