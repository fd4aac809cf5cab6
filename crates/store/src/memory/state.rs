//! Conversations and questions as values.

use std::collections::{BTreeMap, BTreeSet};
use std::process;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use pintle_domain::approval::{Approval, ApprovalStanding, ApprovalState, PersonAnswer, QuestionPlan, plan};
use pintle_domain::checkpoint::runtime::TurnStatus;
use pintle_domain::id::{TenantId, TurnId};
use pintle_domain::session::{JournalEntry, settle};
use pintle_domain::store::{
    ApprovalQuery, FailedTurn, JournalAppend, LeftTurn, ParkedTurn, SessionHold, SessionKey, SessionPatch, SessionRow,
    SessionSettings, StoreError, TenantScope,
};
use pintle_domain::turn::Fact;

use crate::progress::{self, Progress};
use crate::refusal;
use crate::rows::journal::{begins, of_one_turn};

/// The state that one mutex guards: each method is one transaction.
#[derive(Debug, Default)]
pub(super) struct MemoryState {
    sessions: BTreeMap<SessionKey, Conversation>,
    /// In the order of asking.
    approvals: Vec<Approval>,
    held: BTreeSet<SessionKey>,
    /// How many appends there were.
    appends: u64,
}

#[derive(Debug)]
struct Conversation {
    entries: Vec<JournalEntry>,
    /// The moment of each of them.
    times: Vec<Timestamp>,
    /// Without what is counted when somebody looks.
    row: SessionRow,
    /// Whether a process came and did not say that it left.
    opened: bool,
    /// The number of its newest append.
    used: u64,
}

impl Conversation {
    /// The turns that ended in an error.
    fn failed(&self, key: &SessionKey) -> Vec<FailedTurn> {
        let (mut begun, mut failed) = (None, Vec::new());
        for (at, entry) in self.times.iter().zip(&self.entries) {
            match entry {
                JournalEntry::Turn(Fact::Begun { turn_id, .. }) => begun = Some(turn_id),
                JournalEntry::Turn(Fact::Ended { status: TurnStatus::Error, error: Some((stage, error)), .. }) => {
                    failed.extend(begun.map(|turn| FailedTurn {
                        tenant: key.tenant.clone(),
                        agent: self.row.agent_id.clone(),
                        session: key.session.clone(),
                        turn: turn.clone(),
                        stage: stage.clone(),
                        error: error.clone(),
                        at: *at,
                    }));
                }
                JournalEntry::Turn(_)
                | JournalEntry::Opened { .. }
                | JournalEntry::Closed { .. }
                | JournalEntry::Kept(_) => {}
            }
        }
        failed
    }

    fn new(append: &JournalAppend) -> Self {
        let row = SessionRow {
            session_id: append.key.session.to_string(),
            agent_id: append.agent.to_string(),
            parent: append.parent.as_ref().map(ToString::to_string),
            created_at: append.at.to_string(),
            updated_at: append.at.to_string(),
            title: String::new(),
            turns: 0,
            open_turn: None,
            waiting: 0,
            held_by: None,
            last_end: None,
            settings: SessionSettings::default(),
        };
        Self { entries: Vec::new(), times: Vec::new(), row, opened: false, used: 0 }
    }
}

/// The one who uses the book now.
pub(super) fn locked(memory: &Mutex<MemoryState>) -> MutexGuard<'_, MemoryState> {
    // Nothing in here calls anybody who could panic half way.
    memory.lock().unwrap_or_else(PoisonError::into_inner)
}

impl MemoryState {
    pub(super) fn append(&mut self, append: JournalAppend) {
        if append.entries.is_empty() {
            return;
        }
        self.appends += 1;
        let conversation = self.sessions.entry(append.key.clone()).or_insert_with(|| Conversation::new(&append));
        let row = &mut conversation.row;
        let progress = Progress::of(row.open_turn.take(), conversation.opened, &append.entries);
        row.agent_id = append.agent.to_string();
        row.updated_at = append.at.to_string();
        if row.title.is_empty() {
            row.title = progress.title;
        }
        row.turns += progress.turns;
        row.open_turn = progress.open_turn;
        row.last_end = progress.last_end.map(|cause| cause.word().to_owned()).or(row.last_end.take());
        conversation.opened = progress.opened;
        conversation.used = self.appends;
        let new = conversation.entries.len();
        conversation.entries.extend(append.entries);
        conversation.times.resize(conversation.entries.len(), append.at);
        // What is left over is of no answer at all.
        drop(settle(&mut conversation.entries, new));

        let live = |it: &Approval| matches!(it.state, ApprovalState::Waiting | ApprovalState::Approved);
        let over = |it: &Approval| progress.ended.iter().any(|turn| turn == it.turn_id.as_str());
        let void = |it: &&mut Approval| is_of(it, &append.key) && over(it) && live(it);
        self.approvals.iter_mut().filter(void).for_each(|it| it.state = ApprovalState::Void);
    }

    /// The turns of `tenant` that wait for a person who can still answer.
    pub(super) fn parked(&self, tenant: &TenantId, now: Timestamp) -> Vec<ParkedTurn> {
        let parked = |(key, it): (&SessionKey, &Conversation)| {
            let turn = it.row.open_turn.clone().filter(|_| key.tenant == *tenant)?;
            let waits = |it: &Approval| it.turn_id.as_str() == turn && it.state_at(now) == ApprovalState::Waiting;
            let is_parked = self.approvals.iter().any(|it| is_of(it, key) && waits(it));
            is_parked.then(|| ParkedTurn { session: key.session.to_string(), turn: turn.clone() })
        };
        self.sessions.iter().filter_map(parked).collect()
    }

    /// Makes void what nobody answered or used of the questions of a session, and notes why, where somebody says it.
    pub(super) fn void_session(&mut self, key: &SessionKey, why: Option<&str>) {
        let live = |it: &&mut Approval| matches!(it.state, ApprovalState::Waiting | ApprovalState::Approved);
        let of_it = self.approvals.iter_mut().filter(live).filter(|it| is_of(it, key));
        of_it.for_each(|it| {
            it.state = ApprovalState::Void;
            why.into_iter().for_each(|why| why.clone_into(&mut it.note));
        });
    }

    pub(super) fn journal(&self, key: &SessionKey) -> Vec<JournalEntry> {
        self.sessions.get(key).map(|it| it.entries.clone()).unwrap_or_default()
    }

    /// The first `limit` entries of `turn`, with their moments.
    pub(super) fn turn_journal(&self, key: &SessionKey, turn: &str, limit: usize) -> Vec<(Timestamp, JournalEntry)> {
        let Some(conversation) = self.sessions.get(key) else { return Vec::new() };
        let Some(from) = conversation.entries.iter().position(|entry| begins(entry, Some(turn))) else {
            return Vec::new();
        };
        let timed = conversation.times.iter().copied().zip(conversation.entries.iter().cloned()).skip(from);
        of_one_turn(timed).into_iter().take(limit).collect()
    }

    /// The turns that ended in an error since `since`, in sessions that no agent began for another, oldest first.
    pub(super) fn failed_since(&self, since: Timestamp, limit: usize) -> Vec<FailedTurn> {
        let own = self.sessions.iter().filter(|(_, conversation)| conversation.row.parent.is_none());
        let mut failed: Vec<FailedTurn> = own.flat_map(|(key, conversation)| conversation.failed(key)).collect();
        failed.retain(|turn| turn.at >= since);
        failed.sort_by_key(|turn| turn.at);
        failed.truncate(limit);
        failed
    }

    /// How the prompt of a turn begins, if its conversation is kept.
    pub(super) fn prompt(&self, key: &SessionKey, turn: &str) -> Option<String> {
        let begun = |entry: &JournalEntry| match entry {
            JournalEntry::Turn(Fact::Begun { turn_id, prompts, .. }) if turn_id.as_str() == turn => {
                Some(progress::title(prompts))
            }
            JournalEntry::Turn(_)
            | JournalEntry::Opened { .. }
            | JournalEntry::Closed { .. }
            | JournalEntry::Kept(_) => None,
        };
        self.sessions.get(key)?.entries.iter().find_map(begun)
    }

    pub(super) fn sessions(&self, tenant: &TenantId) -> Vec<SessionRow> {
        let mut found: Vec<_> = self.sessions.iter().filter(|(key, _)| key.tenant == *tenant).collect();
        found.sort_by_key(|(_, it)| std::cmp::Reverse(it.used));
        let row = |(key, it): (&SessionKey, &Conversation)| {
            let waits = |approval: &&Approval| is_of(approval, key) && approval.state == ApprovalState::Waiting;
            SessionRow {
                waiting: self.approvals.iter().filter(waits).count() as u64,
                held_by: self.holder(key),
                ..it.row.clone()
            }
        };
        found.into_iter().map(row).collect()
    }

    pub(super) fn holder(&self, key: &SessionKey) -> Option<String> {
        self.held.contains(key).then(this_process)
    }

    pub(super) fn session_settings(&self, key: &SessionKey) -> Option<SessionSettings> {
        self.sessions.get(key).map(|it| it.row.settings.clone())
    }

    pub(super) fn patch_session(&mut self, key: &SessionKey, patch: &SessionPatch) -> bool {
        let found = self.sessions.get_mut(key);
        found.map(|it| it.row.settings.patch(patch)).is_some()
    }

    pub(super) fn left_turns(&self) -> Vec<LeftTurn> {
        let left = |(key, it): (&SessionKey, &Conversation)| {
            let (turn_id, agent) = (it.row.open_turn.as_deref()?.into(), it.row.agent_id.as_str().into());
            let is_left = it.row.parent.is_none() && !self.held.contains(key);
            is_left.then(|| LeftTurn { key: key.clone(), agent, turn_id, died: it.opened, node: None })
        };
        self.sessions.iter().filter_map(left).collect()
    }

    pub(super) fn delete(&mut self, key: &SessionKey) -> Result<Vec<SessionKey>, StoreError> {
        let family = self.family(key);
        if let Some(held) = family.iter().find(|member| self.held.contains(member)) {
            return Err(refusal::in_use(&held.session, &this_process()));
        }
        self.sessions.retain(|key, _| !family.contains(key));
        self.approvals.retain(|it| !family.iter().any(|key| is_of(it, key)));
        Ok(family)
    }

    /// The open turns that wait for nobody any more.
    pub(super) fn decided_turns(&self, limit: usize) -> Vec<(SessionKey, TurnId)> {
        let decided = |(key, it): (&SessionKey, &Conversation)| {
            let turn = TurnId::from(it.row.open_turn.as_deref()?);
            let of_turn = |it: &&Approval| is_of(it, key) && it.turn_id == turn;
            let mut states = self.approvals.iter().filter(of_turn).map(|it| it.state);
            let (mut answered, mut waits) = (false, false);
            states.by_ref().for_each(|state| {
                answered |= matches!(state, ApprovalState::Approved | ApprovalState::Refused);
                waits |= state == ApprovalState::Waiting;
            });
            (answered && !waits).then(|| (key.clone(), turn))
        };
        self.sessions.iter().filter_map(decided).take(limit).collect()
    }

    /// The session and all that began for it, however far down.
    fn family(&self, key: &SessionKey) -> Vec<SessionKey> {
        let mut family: Vec<SessionKey> = self.sessions.contains_key(key).then(|| key.clone()).into_iter().collect();
        let mut seen = 0;
        while let Some(parent) = family.get(seen).cloned() {
            seen += 1;
            for (child, it) in &self.sessions {
                let is_child =
                    child.tenant == parent.tenant && it.row.parent.as_deref() == Some(parent.session.as_str());
                if is_child && !family.contains(child) {
                    family.push(child.clone());
                }
            }
        }
        family
    }

    pub(super) fn ask(&mut self, question: Approval, now: jiff::Timestamp) -> Result<ApprovalStanding, StoreError> {
        let same_call = |it: &&Approval| {
            (&it.tenant_id, &it.session_id, &it.turn_id, &it.tool_call_id)
                == (&question.tenant_id, &question.session_id, &question.turn_id, &question.tool_call_id)
        };
        let earlier: Vec<Approval> = self.approvals.iter().filter(same_call).cloned().collect();
        match plan(question, &earlier, now) {
            QuestionPlan::Stands(standing) => Ok(standing),
            QuestionPlan::Park { new, void } => {
                if self.approvals.iter().any(|it| it.id == new.id) {
                    return Err(refusal::taken(&new.id));
                }
                self.approvals
                    .iter_mut()
                    .filter(|it| void.contains(&it.id))
                    .for_each(|it| it.state = ApprovalState::Void);
                self.approvals.push((*new).clone());
                Ok(ApprovalStanding::Waiting(new))
            }
        }
    }

    pub(super) fn answer(
        &mut self,
        (of, id): (&TenantScope, &str),
        said: PersonAnswer,
        now: jiff::Timestamp,
    ) -> Result<Approval, StoreError> {
        let i = self.named(of, id)?;
        let approval = &mut self.approvals[i];
        approval.answer(said, now).map_err(|why| refusal::unanswerable(&approval.id, &why))?;
        Ok(approval.clone())
    }

    pub(super) fn use_up(
        &mut self,
        (tenant, id): (&TenantId, &str),
        now: jiff::Timestamp,
    ) -> Result<Approval, StoreError> {
        let is_it = |it: &&mut Approval| it.tenant_id == *tenant && it.id == id;
        let approval = self.approvals.iter_mut().find(is_it).ok_or_else(|| refusal::unknown(id))?;
        match approval.state_at(now) {
            ApprovalState::Approved => {
                approval.state = ApprovalState::Used;
                Ok(approval.clone())
            }
            state @ (ApprovalState::Waiting
            | ApprovalState::Refused
            | ApprovalState::Used
            | ApprovalState::Void
            | ApprovalState::Expired) => Err(refusal::unusable(id, state)),
        }
    }

    /// The place of the only question of `of` whose id is or begins as `id`.
    fn named(&self, of: &TenantScope, id: &str) -> Result<usize, StoreError> {
        if let Some(exact) = self.approvals.iter().position(|it| of.has(&it.tenant_id) && it.id == id) {
            return Ok(exact);
        }
        // Every id begins with nothing, and nobody means the only one by that.
        if id.is_empty() {
            return Err(refusal::unknown(id));
        }
        let begins = |it: &Approval| of.has(&it.tenant_id) && it.id.starts_with(id);
        let mut found = self.approvals.iter().enumerate().filter(|(_, it)| begins(it)).map(|(i, _)| i);
        let first = found.next().ok_or_else(|| refusal::unknown(id))?;
        if found.next().is_some() { Err(refusal::ambiguous(id)) } else { Ok(first) }
    }

    pub(super) fn approval(&self, of: &TenantScope, id: &str) -> Option<Approval> {
        self.approvals.iter().find(|it| of.has(&it.tenant_id) && it.id == id).cloned()
    }

    pub(super) fn approvals(&self, query: &ApprovalQuery) -> Vec<Approval> {
        let wanted = |it: &&Approval| {
            (!query.waiting_only || it.state == ApprovalState::Waiting)
                && query.tenant.has(&it.tenant_id)
                && query.id.as_ref().is_none_or(|id| it.id == *id)
        };
        let mut found: Vec<Approval> = self.approvals.iter().rev().filter(wanted).take(query.limit).cloned().collect();
        found.reverse();
        found
    }
}

fn is_of(approval: &Approval, key: &SessionKey) -> bool {
    approval.tenant_id == key.tenant && approval.session_id == key.session
}

fn this_process() -> String {
    format!("process {}", process::id())
}

/// A session that this process works on.
#[derive(Debug)]
pub(super) struct Held {
    memory: Arc<Mutex<MemoryState>>,
    key: SessionKey,
}

impl SessionHold for Held {}

impl Held {
    pub(super) fn take(memory: &Arc<Mutex<MemoryState>>, key: &SessionKey) -> Result<Self, StoreError> {
        if !locked(memory).held.insert(key.clone()) {
            return Err(refusal::in_use(&key.session, &this_process()));
        }
        Ok(Self { memory: memory.clone(), key: key.clone() })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        locked(&self.memory).held.remove(&self.key);
    }
}
