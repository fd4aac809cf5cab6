//! Where the facts of a conversation go: to the session store, or nowhere if the host keeps none.

use std::sync::{Arc, Weak};

use pintle_domain::id::{AgentId, SessionId};
use pintle_domain::lease::Fence;
use pintle_domain::record::EventRecord;
use pintle_domain::session::JournalEntry;
use pintle_domain::store::{JournalAppend, SessionHold, SessionKey, SessionStore, StoreError};
use pintle_engine::Dispatcher;
use tokio::sync::oneshot;

/// Writes the journal of one session.
#[derive(Clone)]
pub(crate) struct Journal {
    store: Option<Arc<dyn SessionStore>>,
    key: SessionKey,
    parent: Option<SessionId>,
    standing: Standing,
}

/// Whether nobody else can work a session, whenever it is asked. It keeps nobody away by itself.
#[derive(Clone, Default)]
pub(crate) struct Standing {
    hold: Option<Weak<dyn SessionHold>>,
    fence: Option<Fence>,
}

impl Standing {
    pub(crate) fn of(hold: &Arc<dyn SessionHold>) -> Self {
        Self { hold: Some(Arc::downgrade(hold)), fence: hold.fence() }
    }

    /// Whether somebody else may have it although it was not given back.
    fn is_lost(&self) -> bool {
        self.hold.as_ref().and_then(Weak::upgrade).is_some_and(|hold| !hold.stands())
    }

    /// Whether it is held, or needs not be.
    pub(crate) fn is_ours(&self) -> bool {
        self.hold.as_ref().is_none_or(|hold| hold.upgrade().is_some_and(|hold| hold.stands()))
    }
}

/// Comes true once what was noted is as durable as the store promises.
pub(crate) struct PendingWrite(Option<oneshot::Receiver<Result<(), StoreError>>>);

impl PendingWrite {
    /// Nothing was noted, so nothing is waited for.
    pub(crate) fn nothing() -> Self {
        Self(None)
    }

    /// Waits for it.
    pub(crate) async fn kept(self) -> Result<(), StoreError> {
        match self.0 {
            None => Ok(()),
            Some(kept) => kept.await.unwrap_or_else(|_| Err(StoreError::Unavailable("its writer is gone".into()))),
        }
    }
}

/// Entries, and their JSON where it was made beforehand.
pub(crate) struct Entries {
    entries: Vec<JournalEntry>,
    worded: Vec<String>,
}

impl Entries {
    /// `entries`, put into words on a thread of their own if that takes long: other turns wait for this one and for the
    /// writer of the store.
    pub(crate) async fn worded(entries: Vec<JournalEntry>) -> Self {
        if !entries.iter().any(JournalEntry::is_long) {
            return Self { entries, worded: Vec::new() };
        }
        let long = entries.clone();
        let write = move || long.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>().unwrap_or_default();
        // What comes to nothing is put into words later.
        Self { entries, worded: tokio::task::spawn_blocking(write).await.unwrap_or_default() }
    }
}

impl Journal {
    pub(crate) fn new(store: Option<Arc<dyn SessionStore>>, key: SessionKey, parent: Option<SessionId>) -> Self {
        Self { store, key, parent, standing: Standing::default() }
    }

    /// The same, which writes under what holds the session.
    pub(crate) fn under(self, standing: Standing) -> Self {
        Self { standing, ..self }
    }

    pub(crate) fn key(&self) -> &SessionKey {
        &self.key
    }

    pub(crate) fn store(&self) -> Option<&Arc<dyn SessionStore>> {
        self.store.as_ref()
    }

    /// Hands entries over, in order, with the records that are true exactly if they are.
    pub(crate) fn note(
        &self,
        agent: &AgentId,
        entries: Vec<JournalEntry>,
        records: Vec<EventRecord>,
        hooks: &Dispatcher,
    ) -> PendingWrite {
        if self.store.is_none() {
            hooks.keep(records);
            return PendingWrite(None);
        }
        hooks.show(&records);
        self.append(agent, Entries { entries, worded: Vec::new() }, records)
    }

    /// Hands entries over that no record belongs to.
    pub(crate) fn write(&self, agent: &AgentId, entries: Vec<JournalEntry>) -> PendingWrite {
        self.append(agent, Entries { entries, worded: Vec::new() }, Vec::new())
    }

    /// The same of entries that were put into words beforehand.
    pub(crate) fn write_worded(&self, agent: &AgentId, entries: Entries) -> PendingWrite {
        self.append(agent, entries, Vec::new())
    }

    fn append(&self, agent: &AgentId, entries: Entries, records: Vec<EventRecord>) -> PendingWrite {
        let Some(store) = &self.store else { return PendingWrite(None) };
        let (sender, kept) = oneshot::channel();
        if self.standing.is_lost() {
            // Whoever takes the session goes on with the turn as it stands; nothing said here may change that.
            drop(sender.send(Err(StoreError::Conflict("another node may work the session by now".into()))));
            return PendingWrite(Some(kept));
        }
        let session = self.key.session.clone();
        let append = JournalAppend {
            key: self.key.clone(),
            agent: agent.clone(),
            parent: self.parent.clone(),
            fence: self.standing.fence,
            at: jiff::Timestamp::now(),
            entries: entries.entries,
            worded: entries.worded,
            records,
        };
        store.append(
            append,
            Box::new(move |result| {
                if let Err(error) = &result {
                    tracing::warn!("session {session} could not be written: {error}");
                }
                // Most notes are waited for by nobody: they are in order, and the next that matters waits.
                drop(sender.send(result));
            }),
        );
        PendingWrite(Some(kept))
    }
}
