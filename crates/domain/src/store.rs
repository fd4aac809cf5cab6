//! The port to what is kept. Machines do not know it; the engine's evidence writes through it, listings read through it.

use std::any::Any;
use std::pin::Pin;

use serde::{Deserialize, Serialize};

use crate::approval::{Approval, ApprovalStanding, PersonAnswer};
use crate::id::{AgentId, SessionId, TenantId, TurnId};
use crate::json::Value;
use crate::lease::Fence;
use crate::record::EventRecord;
use crate::session::JournalEntry;

mod acceptance;
mod call;
mod error;
mod exchange;
mod hold;
mod hooks;
mod identity;
mod identity_change;
mod nodes;
mod record_query;
mod row;
mod session_key;
mod session_listing;
mod session_settings;
mod spending;
mod tenant_scope;
mod turns;
mod uses;
mod webhooks;

pub use acceptance::{STORE_ACCEPTED, StoreAcceptance};
pub use call::{MAX_CALL_BYTES, StoredCall};
pub use error::StoreError;
pub use exchange::{Repeat, RepeatName, RepeatStore, Upload, UploadStore};
pub use hold::{OnLost, SessionHold};
pub use hooks::{
    Actor, AuditStore, Budget, BudgetChange, BudgetStore, ExecutionQuery, ExecutionStore, LoggedChange, NO_HOOK,
    NullSubscription, OnRulesChanged, OpenBreaker, OutboxJob, OutboxStore, RuleChange, RuleChangeResult, RuleStore,
    RuleSubscription, StoredRules, Tenant,
};
pub use identity::{
    ApiKey, ConsoleSession, IdentityStore, KeyScope, Member, SecretDigest, SessionOrigin, SessionSecrets, SignInLink,
};
pub use identity_change::{IdentityAction, IdentityChange};
pub use nodes::{Letter, LetterKind, NodeStore, Steerer};
pub use record_query::RecordQuery;
pub use row::{MAX_PATCH_BYTES, MAX_ROW_DEPTH};
pub use session_key::SessionKey;
pub use session_listing::{LeftTurn, SessionQuery};
pub use session_settings::{SessionPatch, SessionSettings};
pub use spending::{SpendingAccount, SpendingHold, SpendingRoom, SpendingStanding, SpendingStore, SpentSum};
pub use tenant_scope::TenantScope;
pub use turns::{TurnOutcome, TurnPage, TurnQuery, TurnRow, WhichTurns};
pub use uses::{GatewayUse, ParkedTurn, TurnRoom, UseKind, UseRoom};
pub use webhooks::{FailedTurn, RetryWhich, StoredEndpoint, WebhookStore};

/// Called once the records handed over are as durable as the store promises, or cannot be.
pub type OnKept = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

/// Room for what is on its way to the store; given back when it is dropped.
pub type Room = Box<dyn Any + Send>;

/// Room that will be there.
pub type RoomSoon = Pin<Box<dyn Future<Output = Room> + Send>>;

/// Keeps what hooks did, and finds it again.
pub trait RecordStore: Send + Sync {
    /// Hands `records` over, in order, as one transaction. Never blocks; `done` says how it went.
    fn keep(&self, records: Vec<EventRecord>, done: OnKept);

    /// Keeps `records` like [`keep`](Self::keep), for whoever does not wait for `done`: a fault of the store that may
    /// pass, such as a file that somebody locked or a server that starts anew, is waited out, but not for ever. `done`
    /// says how it went in the end; `room` is given back as soon as `records` are written or wait for such a fault to
    /// pass.
    fn keep_patiently(&self, records: Vec<EventRecord>, room: Room, done: OnKept) {
        self.keep(
            records,
            Box::new(move |kept| {
                drop(room);
                done(kept);
            }),
        );
    }

    /// Room for `records`, which is there once less waits to be written. Whoever keeps records and does not wait for
    /// `done` waits for room first, and gives it back in `done`: then nothing is turned away, and what waits is
    /// bounded.
    fn room(&self, _records: &[EventRecord]) -> RoomSoon {
        Box::pin(std::future::ready(Box::new(()) as Room))
    }

    /// The store, if nothing waits to be written and writing takes no longer than it should: whoever waits for a record
    /// writes it in its own thread then, which saves two changes of thread. `None` where that cannot be.
    fn idle(&self) -> Option<Box<dyn IdleStore + '_>> {
        None
    }

    /// The events that `query` asks for, newest last. Blocks.
    ///
    /// # Errors
    /// The store cannot be read.
    fn find(&self, query: &RecordQuery) -> Result<Vec<StoredEvent>, StoreError>;
}

/// A store that has nothing to do. Others wait for as long as it is held.
pub trait IdleStore {
    /// Writes `records`, in order, as one transaction, as durably as the store promises, and says how that went. Blocks
    /// until then, but not while somebody else writes: nobody can give up who waits here.
    ///
    /// # Errors
    /// Somebody else does. Nothing is written, and these are the records.
    fn write(self: Box<Self>, records: Vec<EventRecord>) -> Result<Result<(), StoreError>, Vec<EventRecord>>;
}

/// An event as it was kept. This is also its JSON in listings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredEvent {
    /// Which occurrence.
    pub event_id: String,
    /// RFC 3339, UTC.
    pub at: String,
    /// The checkpoint's name; for runtime events, theirs.
    pub event: String,
    /// The checkpoint's name.
    pub checkpoint: String,
    /// The tenant that owns the event.
    pub tenant_id: String,
    /// The agent whose event it is.
    pub agent_id: String,
    /// Which conversation.
    pub session_id: String,
    /// Which turn.
    pub turn_id: String,
    /// Which round, from 1.
    pub iteration: u32,
    /// Which call of the model, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// The tool, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Whether `doctor` or `hooks test` made it.
    pub is_test: bool,
    /// The word of the ruling.
    pub ruling: String,
    /// The text of the ruling, as the model or the user read it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The digest of the permit, for a cleared call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permit: Option<String>,
    /// Whether the result came from a hook in the tool's place.
    pub substituted: bool,
    /// The call that the ruling decided on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<StoredCall>,
    /// One line for every registered hook, in running order.
    pub hooks: Vec<StoredRecord>,
}

/// A turn in a listing. This is also its JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredTurn {
    /// Which turn.
    pub turn_id: String,
    /// The tenant that owns it.
    pub tenant_id: String,
    /// The conversation.
    pub session_id: String,
    /// The agent whose turn it is.
    pub agent_id: String,
    /// The time of its first record: RFC 3339, UTC.
    pub began: String,
    /// The beginning of its prompt, on one line, as long as its conversation is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// The number of calls of tools that hooks were asked about.
    pub calls: u64,
    /// The number of prompts, calls and texts that were refused.
    pub refused: u64,
    /// The number of calls that wait for a person, or did to the end.
    #[serde(default)]
    pub waiting: u64,
}

/// The record that was kept of one hook at one event. This is also its JSON in listings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct StoredRecord {
    /// Which hook.
    pub hook: String,
    /// Its family.
    pub family: String,
    /// The checkpoint it was asked at.
    pub checkpoint: String,
    /// Whether it ran.
    pub ran: bool,
    /// Why it did not run, a word of the closed list; or the reason that it gave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The hook that had decided already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The condition that does not hold, or the number that was reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// What of its answer did not count, and why.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<String>,
    /// The comparison that a matcher failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compared: Option<FailedComparison>,
    /// The word of its verdict, or of what its fault became, or of what stood in the place of one that did not run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<String>,
    /// Its fault's word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault: Option<String>,
    /// Its fault in closed words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fault_detail: Option<String>,
    /// What was said of that fault, without what may be secret in it; for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// The time that the hook took, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<f64>,
    /// The time that it waited for a place to run before that, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slot_wait_ms: Option<f64>,
    /// The change that the hook made, as a JSON Patch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<Value>,
    /// Likely mistakes in its answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Whether it was asked once more because a later hook changed the value.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub again: bool,
}

/// The two sides of a comparison that said no.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FailedComparison {
    /// The pattern of the hook.
    pub pattern: String,
    /// The names it was compared with.
    pub value: String,
}

/// The facts that are to be appended to a session's journal, and the records that belong to it: one transaction.
#[derive(Clone, Debug)]
pub struct JournalAppend {
    /// Which session.
    pub key: SessionKey,
    /// The agent that runs it.
    pub agent: AgentId,
    /// The session of the agent that this one works for, if it is a sub-agent's.
    pub parent: Option<SessionId>,
    /// The lease that they were made under, where the session is held by one: they are refused once there is a newer.
    pub fence: Option<Fence>,
    /// The moment.
    pub at: jiff::Timestamp,
    /// The entries, in order.
    pub entries: Vec<JournalEntry>,
    /// The JSON of each of them, where somebody wrote it beforehand because that takes long; else nothing.
    pub worded: Vec<String>,
    /// Records that are true exactly if the entries are.
    pub records: Vec<EventRecord>,
}

/// Keeps conversations.
pub trait SessionStore: Send + Sync {
    /// Hands entries over, as one transaction, in the order of the calls. Never blocks; `done` says how it went.
    ///
    /// Beside the journal, in the same transaction: a [`Fact::Ended`](crate::turn::Fact::Ended) makes what still waits
    /// or was not used of the turn's approvals void.
    fn append(&self, append: JournalAppend, done: OnKept);

    /// Takes the session for this process until the hold is dropped or the process ends, however it does. Blocks
    /// shortly, never for another holder.
    ///
    /// # Errors
    /// [`StoreError::Conflict`], which names the holder; or the store cannot do it.
    fn hold(&self, key: &SessionKey) -> Result<Box<dyn SessionHold>, StoreError>;

    /// The journal of a session, oldest first; empty if there is none. Blocks.
    ///
    /// # Errors
    /// The store cannot be read.
    fn journal(&self, key: &SessionKey) -> Result<Vec<JournalEntry>, StoreError>;

    /// The first `limit` entries of `turn` in the journal of a session, each with its moment; empty if there are none.
    /// Blocks.
    ///
    /// # Errors
    /// The store cannot be read.
    fn turn_journal(
        &self,
        _key: &SessionKey,
        _turn: &TurnId,
        _limit: usize,
    ) -> Result<Vec<(jiff::Timestamp, JournalEntry)>, StoreError> {
        Ok(Vec::new())
    }

    /// The sessions of a tenant, the one used last first. Blocks.
    ///
    /// # Errors
    /// The store cannot be read.
    fn sessions(&self, tenant: &TenantId) -> Result<Vec<SessionRow>, StoreError>;

    /// A page of that listing. Blocks.
    ///
    /// # Errors
    /// The store cannot be read.
    fn session_page(&self, tenant: &TenantId, query: &SessionQuery) -> Result<Vec<SessionRow>, StoreError> {
        let rows = self.sessions(tenant)?;
        let from = match &query.after {
            Some(after) => rows.iter().position(|row| row.session_id == after.as_str()).map_or(rows.len(), |at| at + 1),
            None => 0,
        };
        let wanted = rows.into_iter().skip(from).filter(|row| query.children || row.parent.is_none());
        Ok(wanted.take(query.limit).collect())
    }

    /// The turns that have begun and not ended, of sessions that nobody works now and no sub-agent began. Blocks.
    ///
    /// # Errors
    /// The store cannot be read.
    fn left_turns(&self) -> Result<Vec<LeftTurn>, StoreError> {
        Ok(Vec::new())
    }

    /// The node that works or worked the session last, if one ever did. Blocks.
    ///
    /// # Errors
    /// The store cannot be read.
    fn last_node(&self, _key: &SessionKey) -> Result<Option<String>, StoreError> {
        Ok(None)
    }

    /// Who works the session now, if anybody does. Blocks.
    ///
    /// # Errors
    /// The store cannot be read.
    fn holder(&self, _key: &SessionKey) -> Result<Option<String>, StoreError> {
        Ok(None)
    }

    /// What somebody said of a session; nothing if there is none. Blocks.
    ///
    /// # Errors
    /// The store cannot be read.
    fn session_settings(&self, key: &SessionKey) -> Result<Option<SessionSettings>, StoreError>;

    /// Changes that. Whether there is such a session. Blocks.
    ///
    /// # Errors
    /// The store cannot do it.
    fn patch_session(&self, key: &SessionKey, patch: &SessionPatch) -> Result<bool, StoreError>;

    /// Deletes a session with its journal, its approvals and its sub-agents' sessions. Says whether there was one. Blocks.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] if a process works on it; or the store cannot do it.
    fn delete(&self, key: &SessionKey) -> Result<bool, StoreError>;
}

/// One session in a listing. This is also its JSON.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRow {
    /// Its key.
    pub session_id: String,
    /// The agent that worked it last.
    pub agent_id: String,
    /// The session of the agent that it works for, if it is a sub-agent's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// When it was first used. RFC 3339, UTC.
    pub created_at: String,
    /// When it was last used. RFC 3339, UTC.
    pub updated_at: String,
    /// The beginning of its first prompt.
    pub title: String,
    /// The number of turns that the session had.
    pub turns: u64,
    /// The turn that has begun and not ended, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_turn: Option<String>,
    /// The number of calls that wait for a person.
    pub waiting: u64,
    /// Who works on it now, if anybody does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_by: Option<String>,
    /// The reason for which the last process that worked on the session ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_end: Option<String>,
    /// What somebody said of it.
    #[serde(default, skip_serializing_if = "SessionSettings::is_empty")]
    pub settings: SessionSettings,
}

/// Keeps questions for persons.
pub trait ApprovalStore: Send + Sync {
    /// Brings `question` to where it stands: [`plan`](crate::approval::plan) over the questions about the same call of
    /// the model, carried out in one transaction. Blocks.
    ///
    /// # Errors
    /// The store cannot do it.
    fn ask(&self, question: Approval, now: jiff::Timestamp) -> Result<ApprovalStanding, StoreError>;

    /// Answers the question `id` of `of`, or the only one there whose id begins so, in one transaction. Blocks.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], [`StoreError::Conflict`] with why it cannot be answered; or the store cannot do it.
    fn answer(
        &self,
        of: &TenantScope,
        id: &str,
        said: PersonAnswer,
        now: jiff::Timestamp,
    ) -> Result<Approval, StoreError>;

    /// Answers the question as somebody was shown it, if it still says the same, in one transaction. Blocks.
    ///
    /// # Errors
    /// As [`ApprovalStore::answer`]; [`StoreError::Conflict`] also if it was altered since.
    fn answer_shown(&self, shown: &Approval, said: PersonAnswer, now: jiff::Timestamp) -> Result<Approval, StoreError> {
        let of = TenantScope::from(&shown.tenant_id);
        match self.approval(&of, &shown.id)? {
            Some(found) if found.shown() != shown.shown() => {
                let why = format!("approval `{}` was altered since it was shown; look at it again", shown.id);
                Err(StoreError::Conflict(why))
            }
            Some(_) | None => self.answer(&of, &shown.id, said, now),
        }
    }

    /// Uses up the approval `id` of `tenant`, which stands approved: the only use of it. Blocks.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] if it does not stand approved at `now`; or the store cannot do it.
    fn use_up(&self, tenant: &TenantId, id: &str, now: jiff::Timestamp) -> Result<(), StoreError>;

    /// The question `id` of `of`, as it is kept. Blocks.
    ///
    /// # Errors
    /// The store cannot be read.
    fn approval(&self, of: &TenantScope, id: &str) -> Result<Option<Approval>, StoreError>;

    /// The newest questions that `query` asks for, oldest first. Blocks.
    ///
    /// # Errors
    /// The store cannot be read.
    fn approvals(&self, query: &ApprovalQuery) -> Result<Vec<Approval>, StoreError>;
}

/// Which questions are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApprovalQuery {
    /// Whose calls they are about.
    pub tenant: TenantScope,
    /// This question only.
    pub id: Option<String>,
    /// Only those that are still to be answered.
    pub waiting_only: bool,
    /// At most this many, the newest.
    pub limit: usize,
}

impl ApprovalQuery {
    /// The newest `limit` questions.
    pub fn newest(tenant: TenantScope, limit: usize) -> Self {
        Self { tenant, id: None, waiting_only: false, limit }
    }

    /// The newest `limit` questions that are still to be answered.
    pub fn waiting(tenant: TenantScope, limit: usize) -> Self {
        Self { waiting_only: true, ..Self::newest(tenant, limit) }
    }
}
