//! Everything in a PostgreSQL database, which several processes on several machines may share.
//!
//! One thread drives the connections, another writes what nobody waits for in place, joining what is there into one
//! transaction. Whoever waits for their answer has one of a few connections meanwhile. When the server goes away, calls
//! fail at once and say so; when it is back, they work again. A pooler in between has to pool sessions, not
//! transactions: who holds a conversation is a lock of the server's session.
//!
//! What [`Durability`] means here: with `commit` a commit is as durable as the server has it, which is on its disk
//! unless somebody chose otherwise for the server, the database or the user (`synchronous_commit`); with
//! `before_effect` it is on its disk whatever they chose.

mod base;
mod cells;
mod executions;
mod foreign;
mod holder;
mod holds;
mod hooks;
mod link;
mod listening;
mod net;
mod pause;
mod schema;
mod target;
mod text;
mod tls;
mod writer;

use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::thread::{self, JoinHandle};

use domain::approval::{Approval, ApprovalStanding, PersonAnswer};
use domain::id::TenantId;
use domain::record::EventRecord;
use domain::session::JournalEntry;
use domain::store::{
    ApprovalQuery, ApprovalStore, JournalAppend, OnKept, RecordQuery, RecordStore, Room, RoomSoon, SessionHold,
    SessionKey, SessionRow, SessionStore, StoreError, StoredEvent,
};

use crate::db::{Db, Failure};
use crate::migration::NEWEST;
use crate::place::place;
use crate::room::{QUEUE_BATCHES, Rooms};
use crate::rows::batch::Batch;
use crate::rows::group::is_awaited_by;
use crate::rows::{approvals, journal, records, sessions};
use crate::sealing::StoreKeys;
use crate::timing::HookTiming;
use crate::{Durability, StoreOpenError};
use base::Base;
use holds::Holds;
use target::Target;
use writer::Writer;

/// Keeps everything in a database of a server.
pub struct Postgres {
    base: Arc<Base>,
    holds: Arc<Holds>,
    /// Taken out by `drop`, which ends the writer.
    queue: Option<SyncSender<Batch>>,
    writer: Option<JoinHandle<()>>,
    sealing: StoreKeys,
    rooms: Rooms,
}

impl Postgres {
    /// Opens the database at `url`, `postgres://USER:PASSWORD@HOST:PORT/DATABASE?OPTIONS`, and brings its schema up to
    /// date. The options are those of PostgreSQL's own clients, `sslmode` and `sslrootcert` among them.
    ///
    /// # Errors
    /// `Url`: the URL is none, or has what is not known. `Store`: the server cannot be reached or lets nobody in, or a
    /// newer Pintle was there. No message repeats a password.
    pub fn open(url: &str, durability: Durability) -> Result<Self, StoreOpenError> {
        Self::open_with(url, durability, StoreKeys::default())
    }

    /// The same with keys.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_with(url: &str, durability: Durability, sealing: StoreKeys) -> Result<Self, StoreOpenError> {
        let base = Arc::new(Base::new(target(url)?, durability)?);
        let link = base.connect()?;
        schema::migrate(&link, &base.target, NEWEST).map_err(|failure| base.target.error(failure))?;
        let holds = Arc::new(Holds::new(base.clone()));
        let (queue, batches) = sync_channel(QUEUE_BATCHES);
        let writer = Writer::new(base.clone(), holds.clone(), link, sealing.clone());
        let writer =
            thread::Builder::new().name("pintle-store".into()).spawn(move || writer.run(&batches)).map_err(|e| {
                StoreError::Unavailable(format!("the writer of `{}` did not start: {e}", base.target.name()))
            })?;
        Ok(Self { base, holds, queue: Some(queue), writer: Some(writer), sealing, rooms: Rooms::default() })
    }

    /// Takes the database at `url` to the schema `to`, which is known.
    pub(crate) fn migrate(url: &str, to: u32) -> Result<(), StoreOpenError> {
        let base = Base::new(target(url)?, Durability::BeforeEffect)?;
        let link = base.connect()?;
        Ok(schema::migrate(&link, &base.target, to).map_err(|failure| base.target.error(failure))?)
    }

    /// Host, port and database, without user and password.
    pub fn name(&self) -> &str {
        self.base.target.name()
    }

    /// How long hooks took, over the newest `limit` events that are no tests. Blocks.
    ///
    /// # Errors
    /// The database cannot be read.
    pub fn hook_timings(&self, limit: usize) -> Result<Vec<HookTiming>, StoreError> {
        self.base.read(|db| records::hook_timings(db, limit))
    }

    /// Does `work` in one transaction, once more if it stood in the way of another one, and waits for it.
    pub(crate) fn write<T>(&self, work: impl FnMut(&dyn Db) -> Result<T, Failure>) -> Result<T, StoreError> {
        self.base.write(work)
    }

    fn hand_over(&self, batch: Batch) {
        let queue = self.queue.as_ref().expect("only `drop` takes the queue");
        match queue.try_send(batch) {
            Ok(()) => {}
            Err(TrySendError::Full(batch)) => batch.finish(Err(StoreError::Unavailable(format!(
                "`{}` cannot be written fast enough: {QUEUE_BATCHES} batches wait already",
                self.name()
            )))),
            // A dropped batch answers for itself.
            Err(TrySendError::Disconnected(batch)) => drop(batch),
        }
    }
}

fn target(url: &str) -> Result<Target, StoreOpenError> {
    Target::of(url).map_err(|why| StoreOpenError::Url(format!("of PostgreSQL: {why}")))
}

impl RecordStore for Postgres {
    fn keep(&self, records: Vec<EventRecord>, done: OnKept) {
        self.hand_over(Batch::records(records, done));
    }

    fn keep_patiently(&self, records: Vec<EventRecord>, room: Room, done: OnKept) {
        self.hand_over(Batch::records(records, done).patient(Some(room)));
    }

    fn room(&self, records: &[EventRecord]) -> RoomSoon {
        self.rooms.soon(records)
    }

    fn find(&self, query: &RecordQuery) -> Result<Vec<StoredEvent>, StoreError> {
        self.base.read(|db| records::find(db, query))
    }
}

impl SessionStore for Postgres {
    fn append(&self, append: JournalAppend, done: OnKept) {
        self.hand_over(Batch::append(append, done));
    }

    fn hold(&self, key: &SessionKey) -> Result<Box<dyn SessionHold>, StoreError> {
        Ok(Box::new(self.holds.take(key)?))
    }

    fn journal(&self, key: &SessionKey) -> Result<Vec<JournalEntry>, StoreError> {
        self.base.read(|db| journal::read(db, key))
    }

    fn sessions(&self, tenant: &TenantId) -> Result<Vec<SessionRow>, StoreError> {
        self.base.read(|db| {
            let taken = self.holds.taken(db)?;
            sessions::list(db, tenant, &|key| Ok(taken.get(&place(key)).cloned()))
        })
    }

    fn delete(&self, key: &SessionKey) -> Result<bool, StoreError> {
        // Each time it is asked: by then nobody takes a session any more.
        self.base.write(|db| sessions::delete(db, key, &|member| Ok(self.holds.taken(db)?.remove(&place(member)))))
    }
}

impl ApprovalStore for Postgres {
    fn ask(&self, question: Approval, now: jiff::Timestamp) -> Result<ApprovalStanding, StoreError> {
        self.base.write(|db| approvals::ask(db, question.clone(), now))
    }

    fn answer(&self, id: &str, said: PersonAnswer, now: jiff::Timestamp) -> Result<Approval, StoreError> {
        self.base.write(|db| approvals::answer(db, id, said.clone(), now))
    }

    fn use_up(&self, id: &str, now: jiff::Timestamp) -> Result<(), StoreError> {
        self.base.write(|db| approvals::use_up(db, id, now))
    }

    fn approval(&self, id: &str) -> Result<Option<Approval>, StoreError> {
        self.base.read(|db| approvals::by_id(db, id))
    }

    fn approvals(&self, query: &ApprovalQuery) -> Result<Vec<Approval>, StoreError> {
        self.base.read(|db| approvals::newest(db, query))
    }
}

/// Writes what still waits, then ends the writer.
impl Drop for Postgres {
    fn drop(&mut self) {
        drop(self.queue.take());
        let Some(writer) = self.writer.take() else { return };
        // A `done` may own the last handle of the store; the writer cannot wait for itself.
        if !is_awaited_by(writer.thread()) {
            // If it panicked, each batch that it had taken was answered with an error as it unwound.
            drop(writer.join());
        }
    }
}

impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Postgres").field("name", &self.name()).finish_non_exhaustive()
    }
}
