//! The turns of one session: what stands in it, and what keeps it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pintle_domain::history::RecalledHistory;
use pintle_domain::id::{AgentId, SessionId, TenantId};
use pintle_domain::json::Rendered;
use pintle_domain::message::Message;
use pintle_domain::session::{ConfigDrift, JournalEntry, OpenTurn, ReleaseReason, Session, WorkedUnder};
use pintle_domain::store::{SessionHold, SessionKey, SessionStore, StoreError};
use pintle_domain::turn::{Fact, WaitingMessage};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::journal::{Journal, Standing};

/// A conversation and what stands in it, without the system text.
///
/// Dropping it ends this process's work on its session; a store must live longer.
pub struct Conversation {
    /// Its key.
    pub key: SessionId,
    /// The name of the channel that it is held on.
    pub channel: String,
    /// Its name on that channel.
    pub chat_id: String,
    /// Who speaks to the agent there.
    pub sender: String,
    pub(crate) session: Session,
    pub(crate) journal: Journal,
    /// Results that came too late for their turn.
    pub(crate) late: Arc<LateInbox>,
    /// The agent that runs it, once it was opened.
    opened_by: Option<AgentId>,
    /// The agent that it was taken over from, by the word of a person, until that is noted.
    taken_from: Option<AgentId>,
    /// The configuration under which this process works it, until that is noted.
    under: Option<WorkedUnder>,
    /// How its work would end now.
    cause: ReleaseReason,
    hold: Option<Arc<dyn SessionHold>>,
}

impl std::fmt::Debug for Conversation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Conversation").field("key", &self.key).field("session", &self.session).finish_non_exhaustive()
    }
}

impl Conversation {
    /// An empty conversation under `key` on the command line, kept nowhere.
    pub fn new(key: impl Into<SessionId>) -> Self {
        Self::new_of(SessionKey { tenant: TenantId::default_tenant(), session: key.into() })
    }

    /// The same of any tenant.
    pub fn new_of(key: SessionKey) -> Self {
        Self::over(None, key, None, Session::default(), None)
    }

    /// The conversation under `key` of the default tenant in `store`, new or not, taken for this process alone. Blocks.
    ///
    /// # Errors
    /// Another process works on it, or the store cannot be read.
    pub fn open(store: Arc<dyn SessionStore>, key: impl Into<SessionId>) -> Result<Self, StoreError> {
        Self::open_of(store, SessionKey { tenant: TenantId::default_tenant(), session: key.into() })
    }

    /// The same of any tenant. Blocks.
    ///
    /// # Errors
    /// Another process works on it, or the store cannot be read.
    pub fn open_of(store: Arc<dyn SessionStore>, key: SessionKey) -> Result<Self, StoreError> {
        Self::open_child(store, key, None)
    }

    /// Opens the conversation of an agent that works for the one of the session `parent`.
    pub(crate) fn open_child(
        store: Arc<dyn SessionStore>,
        key: SessionKey,
        parent: Option<SessionId>,
    ) -> Result<Self, StoreError> {
        let hold = store.hold(&key)?;
        let session = Session::fold(store.journal(&key)?);
        Ok(Self::over(Some(store), key, parent, session, Some(hold)))
    }

    fn over(
        store: Option<Arc<dyn SessionStore>>,
        key: SessionKey,
        parent: Option<SessionId>,
        session: Session,
        hold: Option<Box<dyn SessionHold>>,
    ) -> Self {
        let hold: Option<Arc<dyn SessionHold>> = hold.map(Arc::from);
        Self {
            key: key.session.clone(),
            journal: Journal::new(store, key, parent).under(hold.as_ref().map(Standing::of).unwrap_or_default()),
            channel: "cli".into(),
            chat_id: "direct".into(),
            sender: "user".into(),
            session,
            late: Arc::default(),
            opened_by: None,
            taken_from: None,
            under: None,
            cause: ReleaseReason::Done,
            hold,
        }
    }

    /// This conversation, held as `chat_id` on `channel`.
    #[must_use]
    pub fn on(mut self, channel: impl Into<String>, chat_id: impl Into<String>) -> Self {
        self.channel = channel.into();
        self.chat_id = chat_id.into();
        self
    }

    /// This conversation, in which `sender` speaks to the agent.
    #[must_use]
    pub fn with(mut self, sender: impl Into<String>) -> Self {
        self.sender = sender.into();
        self
    }

    /// The tenant that it belongs to.
    pub fn tenant(&self) -> &TenantId {
        &self.journal.key().tenant
    }

    /// This conversation, which the agent `before` worked until now: its journal says that it was taken over.
    #[must_use]
    pub fn taken_from(mut self, before: AgentId) -> Self {
        self.taken_from = Some(before);
        self
    }

    /// This conversation, worked under `under` from now on. Its journal keeps that, and says so where a person let it
    /// be another configuration than before.
    #[must_use]
    pub fn under(mut self, under: WorkedUnder) -> Self {
        self.under = Some(under);
        self
    }

    /// The configuration under which it was worked last, if anybody said.
    pub fn worked_under(&self) -> Option<&WorkedUnder> {
        self.session.worked_under()
    }

    /// The id of the API key with which somebody asked for the turn that began last, where they had one.
    pub fn asked_with(&self) -> Option<&str> {
        self.session.asked_with()
    }

    /// Whether nobody else can work it now.
    pub fn is_ours(&self) -> bool {
        self.hold.as_ref().is_none_or(|hold| hold.stands())
    }

    /// Says so at any time later.
    pub(crate) fn standing(&self) -> Standing {
        self.hold.as_ref().map(Standing::of).unwrap_or_default()
    }

    /// Stops what `cancel` stops once somebody else can work it.
    pub(crate) fn cancel_when_lost(&self, cancel: &CancellationToken) {
        if let Some(hold) = &self.hold {
            let cancel = cancel.clone();
            hold.on_lost(Box::new(move || cancel.cancel()));
        }
    }

    /// The messages that stand in it.
    pub fn messages(&self) -> &[Rendered<Message>] {
        self.session.messages()
    }

    /// Messages that wait for the next turn, results of sub-agents among them.
    pub fn queue(&mut self) -> &[WaitingMessage] {
        self.take_late();
        self.session.queue()
    }

    /// Waits until something came in that no turn took, for whoever has nothing else to do. It may be true once too often.
    pub async fn arrival(&self) {
        self.late.bell.notified().await;
    }

    /// The turn that has begun and not ended: it waits for a person, or its process died.
    pub fn open_turn(&self) -> Option<&OpenTurn> {
        self.session.open()
    }

    /// Takes the turn back that ended last, if somebody had stopped it: nothing of it stands in the conversation any
    /// more, and what persons said while it was worked goes unheard. What happened stays in the journal. Whether there
    /// was such a turn.
    ///
    /// # Errors
    /// The journal could not be written: the turn stays, for whoever opens the session next would find it there.
    pub async fn take_back(&mut self) -> Result<bool, StoreError> {
        let Some(agent) = self.opened_by.clone().filter(|_| self.session.can_take_back()) else { return Ok(false) };
        let taken_back = JournalEntry::Turn(Fact::TakenBack);
        self.journal.write(&agent, vec![taken_back.clone()]).kept().await?;
        self.session.apply(taken_back);
        Ok(true)
    }

    /// Lets the conversation go on from its last `keep` messages, or a few more: calls stay with their results. What was
    /// said stays in the journal. `agent` is whose conversation it is.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] while a turn of it waits; or the journal could not be written, and nothing changed.
    pub async fn forget(&mut self, agent: &AgentId, keep: usize) -> Result<(), StoreError> {
        if self.session.open().is_some() {
            return Err(StoreError::Conflict("a turn of the session waits: decide it, or stop it first".to_owned()));
        }
        let fact = match (keep, self.messages().len().saturating_sub(keep)) {
            (0, _) => Fact::Recalled(RecalledHistory { keep: 0, messages: Vec::new(), withheld: Vec::new() }),
            (_, 0) => return Ok(()),
            (_, upto) => Fact::Compacted { upto, summary: None },
        };
        let mut entries = self.opening(agent).unwrap_or_default();
        entries.push(JournalEntry::Turn(fact.clone()));
        self.journal.write(agent, entries).kept().await?;
        self.session.apply(JournalEntry::Turn(fact));
        Ok(())
    }

    /// How the last process that worked on it ended.
    pub fn last_cause(&self) -> Option<ReleaseReason> {
        self.session.last_cause()
    }

    /// Queues the input that came too late for its turn.
    fn take_late(&mut self) {
        for waiting in self.late.take() {
            self.session.apply(JournalEntry::Turn(Fact::Queued(waiting)));
        }
    }

    /// A turn is worked from now on: whoever works it notes what comes too late for an earlier one.
    pub(crate) fn begin_work(&mut self) {
        let mut late = self.late.lock();
        late.worked = true;
        for waiting in std::mem::take(&mut late.results) {
            self.session.apply(JournalEntry::Turn(Fact::Queued(waiting)));
        }
    }

    /// No turn is worked any more: what came in last is noted.
    pub(crate) fn end_work(&mut self, agent: &AgentId) {
        let mut late = self.late.lock();
        late.worked = false;
        for waiting in std::mem::take(&mut late.results) {
            let queued = JournalEntry::Turn(Fact::Queued(waiting));
            drop(self.journal.write(agent, vec![queued.clone()]));
            self.session.apply(queued);
        }
    }

    /// Notes that this process works on it from now on, and whether the one before ended without saying so.
    /// `None` if it is noted already.
    pub(crate) fn opening(&mut self, agent: &AgentId) -> Option<Vec<JournalEntry>> {
        if self.opened_by.is_some() {
            return None;
        }
        self.opened_by = Some(agent.clone());
        let died = self.session.is_held().then_some(JournalEntry::Closed { cause: ReleaseReason::Killed });
        let from = self.taken_from.take().map(|from| format!(", agent {agent} in the place of {from}"));
        let elsewhere = self.elsewhere().unwrap_or_default();
        let by = format!("process {}{}{elsewhere}", std::process::id(), from.unwrap_or_default());
        let opened = JournalEntry::Opened { by, under: self.under.take() };
        let entries: Vec<JournalEntry> = died.into_iter().chain([opened]).collect();
        entries.iter().cloned().for_each(|entry| self.session.apply(entry));
        Some(entries)
    }

    /// What the journal says where other files count than before, or a guard is gone.
    fn elsewhere(&self) -> Option<String> {
        let (now, before) = (self.under.as_ref()?, self.session.worked_under()?);
        let ConfigDrift::Another { files, gone } = now.drift(before) else { return None };
        let files = if files {
            format!(", configuration {} in the place of {}", now.files(), before.files())
        } else {
            String::new()
        };
        let gone = if gone.is_empty() { String::new() } else { format!(", without the guards {}", gone.join(", ")) };
        Some(files + &gone)
    }

    /// Whether a process that worked on it ended without saying so, and nobody has worked on it since.
    pub(crate) fn was_left_by_the_dead(&self) -> bool {
        self.opened_by.is_none() && self.session.is_held()
    }

    /// How the work on it would end, if it ended now.
    pub(crate) fn now_is(&mut self, cause: ReleaseReason) {
        self.cause = cause;
    }
}

/// Results of sub-agents that came too late for their turn.
///
/// A journal must tell things in the order in which they count, so while a turn is worked only its worker writes.
#[derive(Debug, Default)]
pub(crate) struct LateInbox {
    late: Mutex<LateResults>,
    /// Rung when one is left.
    bell: Notify,
}

#[derive(Debug, Default)]
struct LateResults {
    results: Vec<WaitingMessage>,
    /// Whether a turn is worked, whose worker has still to note these; else they are noted already.
    worked: bool,
}

impl LateInbox {
    fn lock(&self) -> MutexGuard<'_, LateResults> {
        self.late.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what has come.
    pub(crate) fn take(&self) -> Vec<WaitingMessage> {
        std::mem::take(&mut self.lock().results)
    }

    /// Leaves a result for the next turn of the session.
    pub(crate) fn leave(&self, result: WaitingMessage, journal: &Journal, agent: &AgentId) {
        let mut late = self.lock();
        if !late.worked {
            drop(journal.write(agent, vec![JournalEntry::Turn(Fact::Queued(result.clone()))]));
        }
        late.results.push(result);
        drop(late);
        self.bell.notify_one();
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        if let Some(agent) = self.opened_by.take() {
            // Nobody waits: the store writes what it was handed before it closes.
            drop(self.journal.write(&agent, vec![JournalEntry::Closed { cause: self.cause }]));
        }
    }
}
