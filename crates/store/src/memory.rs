//! Everything of this process alone, for embedders and tests.

mod state;
mod exchange;
mod executions;
mod history;
mod hooks;
mod identity;
mod spending;
mod turns;
mod webhooks;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pintle_domain::approval::{Approval, ApprovalStanding, ApprovalState, PersonAnswer};
use pintle_domain::audit::AuditKind;
use pintle_domain::id::{EventId, TenantId, TurnId};
use pintle_domain::json::Object;
use pintle_domain::node::NodeKeys;
use pintle_domain::record::EventRecord;
use pintle_domain::rule::Rule;
use pintle_domain::session::JournalEntry;
use pintle_domain::store::{
    Actor, ApprovalQuery, ApprovalStore, JournalAppend, LeftTurn, NodeStore, OnKept, RecordQuery, RecordStore,
    SessionHold, SessionKey, SessionPatch, SessionRow, SessionSettings, SessionStore, StoreError, StoredEvent,
    StoredTurn, TenantScope, TurnPage, TurnQuery,
};

use jiff::Timestamp;

use exchange::Exchange;
use history::History;
use hooks::RuleTables;
use identity::IdentityTables;
use spending::DoorAccounts;
use state::{Held, MemoryState};
use webhooks::WebhookTables;

use crate::Store;
use crate::evidence::has_chain;
use crate::keyring::Keyring;
use crate::rows::records::ids;
use crate::rows::rotation::{RotationBatch, SealedColumn};
use crate::sealing::StoreKeys;
use crate::timing::{HookTiming, Timings};

/// Most events that are held; the oldest go first. A long session leaves some hundreds, and each may hold on to a
/// whole conversation.
pub const MAX_EVENTS: usize = 4096;

/// Most executions that are held, for the same reason.
pub const MAX_EXECUTIONS: usize = 4096;

/// Most entries of one audit chain that are held: some for each event. The oldest go first, up to a checkpoint if there
/// is a key to sign with.
pub const MAX_ENTRIES: usize = 4 * MAX_EVENTS;

/// Keeps the newest events, and all conversations, until the process ends. As durable as the process.
#[derive(Debug, Default)]
pub struct Memory {
    history: Mutex<History>,
    memory: Arc<Mutex<MemoryState>>,
    tables: Mutex<RuleTables>,
    identities: Mutex<IdentityTables>,
    exchange: Mutex<Exchange>,
    spending: Mutex<DoorAccounts>,
    webhooks: Mutex<WebhookTables>,
}

impl Memory {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty store with keys.
    pub fn with_sealing(sealing: StoreKeys) -> Self {
        Self { history: Mutex::new(History::new(sealing)), ..Self::default() }
    }

    fn history(&self) -> MutexGuard<'_, History> {
        // A panic elsewhere leaves whole events behind, never half ones.
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn memory(&self) -> MutexGuard<'_, MemoryState> {
        state::locked(&self.memory)
    }

    fn exchange(&self) -> MutexGuard<'_, Exchange> {
        // Each change is one step.
        self.exchange.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn spending(&self) -> MutexGuard<'_, DoorAccounts> {
        // As above.
        self.spending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, records: Vec<EventRecord>) {
        self.history().push(records);
    }
}

impl Store for Memory {
    fn hook_timings(&self, limit: usize) -> Result<Vec<HookTiming>, StoreError> {
        let mut timings = Timings::default();
        for event in self.history().events.iter().rev().filter(|event| !event.who.is_test).take(limit) {
            let event = StoredEvent::from(event);
            timings.add(&event.at, event.hooks);
        }
        Ok(timings.finish())
    }

    fn turns(
        &self,
        tenant: Option<&TenantId>,
        since: Option<Timestamp>,
        limit: usize,
    ) -> Result<Vec<StoredTurn>, StoreError> {
        // The conversations first, as whoever appends takes them.
        let memory = self.memory();
        Ok(self.history().turns(tenant, since, limit, |key, turn| memory.prompt(key, turn)))
    }

    fn turn_page(&self, query: &TurnQuery) -> Result<TurnPage, StoreError> {
        let memory = self.memory();
        Ok(self.history().turn_page(query, |key, turn| memory.prompt(key, turn)))
    }

    fn key_ids(&self) -> NodeKeys {
        NodeKeys::default()
    }

    fn identity_doubts(&self) -> Result<Vec<String>, StoreError> {
        // Nobody else has it.
        Ok(Vec::new())
    }

    fn other_key(&self) -> Result<Option<String>, StoreError> {
        Ok(None)
    }

    fn reseal_identities(&self, _keyring: &Keyring) -> Result<(), StoreError> {
        Ok(())
    }

    fn forget_events(&self, before: Timestamp, limit: usize) -> Result<usize, StoreError> {
        Ok(self.history().forget_events(before, limit))
    }

    fn missing_events(&self, told: &[(EventId, Timestamp)]) -> Result<Vec<EventId>, StoreError> {
        let history = self.history();
        let Some(oldest) = history.events.front().map(|event| event.at) else { return Ok(Vec::new()) };
        let gone =
            |(id, at): &&(EventId, Timestamp)| *at > oldest && !history.events.iter().any(|it| it.event_id == *id);
        Ok(told.iter().filter(gone).map(|(id, _)| id.clone()).collect())
    }

    /// What it has is sealed with the key of this process, or not at all, and goes with it.
    fn rotate(&self, _: SealedColumn, _: &Keyring, _: Option<&str>, _: usize) -> Result<RotationBatch, StoreError> {
        Ok(RotationBatch::default())
    }

    fn rotate_config(&self, _: &Rule, _: &Object) -> Result<bool, StoreError> {
        Err(StoreError::Unavailable("rows in memory go with their process; nothing is rotated there".into()))
    }

    fn void_session(&self, key: &SessionKey, why: Option<&str>) -> Result<(), StoreError> {
        self.memory().void_session(key, why);
        Ok(())
    }

    fn forget_session(&self, key: &SessionKey) -> Result<(), StoreError> {
        self.exchange().forget_session(key);
        Ok(())
    }

    fn decided_turns(&self, limit: usize) -> Result<Vec<(SessionKey, TurnId)>, StoreError> {
        Ok(self.memory().decided_turns(limit))
    }

    fn accept(&self, _by: &Actor) -> Result<Vec<String>, StoreError> {
        // Nobody else can write to it, and nothing outlives it.
        Ok(Vec::new())
    }
}

impl RecordStore for Memory {
    fn keep(&self, records: Vec<EventRecord>, done: OnKept) {
        self.push(records);
        done(Ok(()));
    }

    fn find(&self, query: &RecordQuery) -> Result<Vec<StoredEvent>, StoreError> {
        let history = self.history();
        let events = &history.events;
        let ours = |event: &&EventRecord| query.tenant.has(&event.who.tenant_id);
        let last = events.iter().rev().filter(ours).find(|event| !event.who.is_test);
        let last_turn = last.map(|event| &event.who.turn_id);
        let begins = |event: &EventRecord, id: &str| event.who.turn_id.as_str().starts_with(id);
        let turn_begins = query.turn.as_ref().is_some_and(|id| events.iter().any(|event| begins(event, id)));
        let end = query.turn.as_deref().filter(|_| !turn_begins).and_then(ids::end_of);
        let of_session = query.session.as_ref().map(|session| history.last_turn_of(session));
        let wanted = |event: &&EventRecord| {
            let who = &event.who;
            ours(event)
                && query.event_id.as_ref().is_none_or(|id| event.event_id.as_str().starts_with(id.as_str()))
                && query.turn.as_ref().is_none_or(|turn| match &end {
                    Some(end) => who.turn_id.as_str().replace('-', "").ends_with(end.as_str()),
                    None => begins(event, turn),
                })
                && query
                    .call
                    .as_ref()
                    .is_none_or(|call| who.tool_call_id.as_ref().is_some_and(|id| id.as_str() == call))
                && of_session
                    .as_ref()
                    .is_none_or(|owner| owner.as_ref().is_some_and(|owner| history::is_one_turn(owner, who)))
                && query.tool.as_ref().is_none_or(|tool| event.tool.as_ref() == Some(tool))
                && query.hook.as_ref().is_none_or(|hook| event.hooks.iter().any(|line| line.hook.as_str() == hook))
                && (!query.last_turn || (!who.is_test && Some(&who.turn_id) == last_turn))
                && (!query.refused || event.ruling.stops())
                && query.since.is_none_or(|since| event.at >= since)
        };
        let mut found: Vec<StoredEvent> =
            events.iter().rev().filter(wanted).take(query.limit).map(StoredEvent::from).collect();
        found.reverse();
        Ok(found)
    }
}

impl SessionStore for Memory {
    fn append(&self, mut append: JournalAppend, done: OnKept) {
        let records = std::mem::take(&mut append.records);
        let mut memory = self.memory();
        memory.append(append);
        // Before anybody else sees the entries.
        self.push(records);
        drop(memory);
        done(Ok(()));
    }

    fn hold(&self, key: &SessionKey) -> Result<Box<dyn SessionHold>, StoreError> {
        Ok(Box::new(Held::take(&self.memory, key)?))
    }

    fn journal(&self, key: &SessionKey) -> Result<Vec<JournalEntry>, StoreError> {
        Ok(self.memory().journal(key))
    }

    fn turn_journal(
        &self,
        key: &SessionKey,
        turn: &TurnId,
        limit: usize,
    ) -> Result<Vec<(Timestamp, JournalEntry)>, StoreError> {
        Ok(self.memory().turn_journal(key, turn.as_str(), limit))
    }

    fn sessions(&self, tenant: &TenantId) -> Result<Vec<SessionRow>, StoreError> {
        Ok(self.memory().sessions(tenant))
    }

    fn left_turns(&self) -> Result<Vec<LeftTurn>, StoreError> {
        Ok(self.memory().left_turns())
    }

    fn holder(&self, key: &SessionKey) -> Result<Option<String>, StoreError> {
        Ok(self.memory().holder(key))
    }

    fn session_settings(&self, key: &SessionKey) -> Result<Option<SessionSettings>, StoreError> {
        Ok(self.memory().session_settings(key))
    }

    fn patch_session(&self, key: &SessionKey, patch: &SessionPatch) -> Result<bool, StoreError> {
        Ok(self.memory().patch_session(key, patch))
    }

    fn delete(&self, key: &SessionKey) -> Result<bool, StoreError> {
        let gone = self.memory().delete(key)?;
        gone.iter().for_each(|key| self.exchange().forget_session(key));
        Ok(!gone.is_empty())
    }
}

impl NodeStore for Memory {}

impl ApprovalStore for Memory {
    fn ask(&self, question: Approval, now: jiff::Timestamp) -> Result<ApprovalStanding, StoreError> {
        self.memory().ask(question, now)
    }

    fn answer(
        &self,
        of: &TenantScope,
        id: &str,
        said: PersonAnswer,
        now: jiff::Timestamp,
    ) -> Result<Approval, StoreError> {
        let answered = self.memory().answer((of, id), said, now)?;
        if answered.state == ApprovalState::Refused && has_chain(&answered.tenant_id) {
            let refused = answered.refused_by_person(now);
            self.history().note(&answered.tenant_id, now, AuditKind::Change, refused)?;
        }
        Ok(answered)
    }

    fn use_up(&self, tenant: &TenantId, id: &str, now: jiff::Timestamp) -> Result<(), StoreError> {
        let used = self.memory().use_up((tenant, id), now)?;
        if !has_chain(&used.tenant_id) {
            return Ok(());
        }
        self.history().note(&used.tenant_id, now, AuditKind::Change, used.used_by_call(now))
    }

    fn approval(&self, of: &TenantScope, id: &str) -> Result<Option<Approval>, StoreError> {
        Ok(self.memory().approval(of, id))
    }

    fn approvals(&self, query: &ApprovalQuery) -> Result<Vec<Approval>, StoreError> {
        Ok(self.memory().approvals(query))
    }
}
