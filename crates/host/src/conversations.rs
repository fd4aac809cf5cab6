//! Conversations in a store of their own, where a found folder names one; everything else stays in the user's store.
//!
//! What is evidence of a call, and what a person was asked about it, never leaves the user's store: a folder that could
//! keep these could also make them up. They are written before what the journal says of the call.

use std::fmt;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use jiff::Timestamp;
use pintle_domain::id::{TenantId, TurnId};
use pintle_domain::rule::Source;
use pintle_domain::session::JournalEntry;
use pintle_domain::store::{
    ApprovalQuery, JournalAppend, LeftTurn, OnKept, SessionHold, SessionKey, SessionPatch, SessionQuery, SessionRow,
    SessionSettings, SessionStore, StoreError, TenantScope,
};
use pintle_domain::turn::Fact;
use pintle_store::{Store, StoreKeys};

use crate::config::Config;
use crate::config_store::open_at;
use crate::error::HostError;

/// Most questions that are looked through for those that wait: far more than persons answer.
const MAX_QUESTIONS: usize = 10_000;

/// Journals in one store, what belongs to them beside in another one.
pub struct SplitSessions {
    own: Arc<dyn Store>,
    journals: Arc<dyn Store>,
    writer: Mutex<Option<Writer>>,
}

/// The thread that keeps the order of what is handed over.
struct Writer {
    queue: Sender<(JournalAppend, OnKept)>,
    thread: JoinHandle<()>,
}

impl SplitSessions {
    /// Journals in `journals`, all else in `own`.
    ///
    /// # Errors
    /// The system has no thread to give.
    pub fn new(own: Arc<dyn Store>, journals: Arc<dyn Store>) -> Result<Self, StoreError> {
        let (queue, handed) = channel();
        let (to, beside) = (journals.clone(), own.clone());
        let thread = std::thread::Builder::new()
            .name("conversations".to_owned())
            .spawn(move || write(&*beside, &*to, &handed))
            .map_err(|error| StoreError::Unavailable(error.to_string()))?;
        Ok(Self { own, journals, writer: Mutex::new(Some(Writer { queue, thread })) })
    }

    /// `rows` with the questions of the user's store that wait.
    fn with_questions(&self, tenant: &TenantId, mut rows: Vec<SessionRow>) -> Result<Vec<SessionRow>, StoreError> {
        let query = ApprovalQuery::waiting(TenantScope::from(tenant), MAX_QUESTIONS);
        let waiting = self.own.approvals(&query)?;
        for row in &mut rows {
            row.waiting = waiting.iter().filter(|asked| asked.session_id.as_str() == row.session_id).count() as u64;
        }
        Ok(rows)
    }
}

/// Writes what is handed over, in order, until nobody hands anything over any more.
fn write(own: &dyn Store, journals: &dyn Store, handed: &Receiver<(JournalAppend, OnKept)>) {
    while let Ok((mut append, done)) = handed.recv() {
        let records = std::mem::take(&mut append.records);
        let mut kept = Ok(());
        if !records.is_empty() {
            let (say, hear) = channel();
            own.keep(records, Box::new(move |kept| drop(say.send(kept))));
            kept = hear.recv().unwrap_or_else(|_| Err(StoreError::Unavailable("its writer is gone".into())));
        }
        match kept {
            Ok(()) => journals.append(append, done),
            Err(error) => done(Err(error)),
        }
    }
}

impl SessionStore for SplitSessions {
    fn append(&self, append: JournalAppend, done: OnKept) {
        // Where a turn begins or ends, no question of an earlier one is answered any more. At once: what the turn asks
        // next goes straight to the user's store, and must not meet this on its way.
        let turns = |entry: &JournalEntry| matches!(entry, JournalEntry::Turn(Fact::Begun { .. } | Fact::Ended { .. }));
        if append.entries.iter().any(turns)
            && let Err(error) = self.own.void_session(&append.key, None)
        {
            return done(Err(error));
        }
        let writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let gone = match writer.as_ref() {
            Some(writer) => writer.queue.send((append, done)).err().map(|unsent| unsent.0.1),
            None => Some(done),
        };
        if let Some(done) = gone {
            done(Err(StoreError::Unavailable("its writer is gone".into())));
        }
    }

    fn hold(&self, key: &SessionKey) -> Result<Box<dyn SessionHold>, StoreError> {
        self.journals.hold(key)
    }

    fn journal(&self, key: &SessionKey) -> Result<Vec<JournalEntry>, StoreError> {
        self.journals.journal(key)
    }

    fn turn_journal(
        &self,
        key: &SessionKey,
        turn: &TurnId,
        limit: usize,
    ) -> Result<Vec<(Timestamp, JournalEntry)>, StoreError> {
        self.journals.turn_journal(key, turn, limit)
    }

    fn sessions(&self, tenant: &TenantId) -> Result<Vec<SessionRow>, StoreError> {
        self.with_questions(tenant, self.journals.sessions(tenant)?)
    }

    fn session_page(&self, tenant: &TenantId, query: &SessionQuery) -> Result<Vec<SessionRow>, StoreError> {
        self.with_questions(tenant, self.journals.session_page(tenant, query)?)
    }

    fn left_turns(&self) -> Result<Vec<LeftTurn>, StoreError> {
        self.journals.left_turns()
    }

    fn last_node(&self, key: &SessionKey) -> Result<Option<String>, StoreError> {
        self.journals.last_node(key)
    }

    fn holder(&self, key: &SessionKey) -> Result<Option<String>, StoreError> {
        self.journals.holder(key)
    }

    fn session_settings(&self, key: &SessionKey) -> Result<Option<SessionSettings>, StoreError> {
        self.journals.session_settings(key)
    }

    fn patch_session(&self, key: &SessionKey, patch: &SessionPatch) -> Result<bool, StoreError> {
        self.journals.patch_session(key, patch)
    }

    fn delete(&self, key: &SessionKey) -> Result<bool, StoreError> {
        let was_there = self.journals.delete(key)?;
        self.own.void_session(key, None)?;
        self.own.forget_session(key)?;
        Ok(was_there)
    }
}

impl Drop for SplitSessions {
    /// Waits until everything that was handed over is with the stores.
    fn drop(&mut self) {
        let writer = self.writer.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Writer { queue, thread }) = writer {
            drop(queue);
            if thread.join().is_err() {
                tracing::error!("conversations were not written to the end");
            }
        }
    }
}

impl fmt::Debug for SplitSessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SplitSessions").field("journals", &self.journals).finish_non_exhaustive()
    }
}

/// The conversations of `config`, whose own store is `own`.
///
/// # Errors
/// The store that a found folder names cannot be opened.
pub fn open_sessions(config: &Config, own: &Arc<dyn Store>) -> Result<Arc<dyn SessionStore>, HostError> {
    let Some(url) = &config.conversations_url else { return Ok(own.clone()) };
    let journals = open_at(url, config, StoreKeys::default())?;
    if let Some(line) = left_behind(&*journals) {
        tracing::warn!("{line}");
    }
    let split = SplitSessions::new(own.clone(), journals).map_err(|error| HostError::failed(error.to_string()))?;
    Ok(Arc::new(split))
}

/// The message about rules in a store that was in force as a whole once and keeps conversations now.
fn left_behind(journals: &dyn Store) -> Option<String> {
    let rules = journals.rules().ok()?;
    let count = rules.hooks.iter().filter(|rule| rule.file().is_none() && rule.source == Source::User).count();
    (count > 0).then(|| {
        format!(
            "{count} rules stand in the store that a found folder names, and are not in force: such a store keeps \
             conversations only. Add them to your own with `pintle hooks add FILE`; `pintle -c FILE hooks list` shows them"
        )
    })
}

#[cfg(test)]
mod tests;
