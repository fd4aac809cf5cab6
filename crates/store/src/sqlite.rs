//! Everything in one SQLite file, which several processes may share.
//!
//! One thread writes what nobody waits for in place, joining what is there into one transaction; listings read through
//! a connection of their own, and so do those write who want their answer at once.

mod cells;
mod checkpoints;
mod executions;
mod file;
mod holder;
mod holds;
mod hooks;
mod locks;
mod writer;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use domain::approval::{Approval, ApprovalStanding, PersonAnswer};
use domain::id::TenantId;
use domain::record::EventRecord;
use domain::session::JournalEntry;
use domain::store::{
    ApprovalQuery, ApprovalStore, IdleStore, JournalAppend, OnKept, RecordQuery, RecordStore, Room, RoomSoon,
    SessionHold, SessionKey, SessionRow, SessionStore, StoreError, StoredEvent,
};
use rusqlite::Connection;

pub use domain::store::MAX_PATCH_BYTES;

pub use crate::room::QUEUE_BATCHES;
pub use crate::rows::batch::MAX_GROUP_BATCHES;

use crate::Durability;
use crate::db::Failure;
use crate::room::Rooms;
use crate::rows::batch::{Batch, Traffic};
use crate::rows::group::is_awaited_by;
use crate::rows::{approvals, journal, records, sessions};
use crate::sealing::StoreKeys;
use crate::timing::HookTiming;
use file::Place;
use locks::Locks;
use writer::Writer;

/// Keeps everything in a file.
pub struct Sqlite {
    path: PathBuf,
    place: Arc<Place>,
    durability: Durability,
    /// Taken out by `drop`, which ends the writer.
    queue: Option<SyncSender<Batch>>,
    writer: Option<JoinHandle<()>>,
    reader: Mutex<Connection>,
    /// For those who wait for what they write; opened when the first of them comes, since many programs have none.
    desk: Mutex<Option<Box<Connection>>>,
    locks: Arc<Locks>,
    sealing: StoreKeys,
    rooms: Rooms,
    pen: Arc<Mutex<Writer>>,
    traffic: Traffic,
}

impl Sqlite {
    /// Opens the file at `path`, making it (0600) and its folder (0700) where they are missing, and brings its schema
    /// up to date.
    ///
    /// # Errors
    /// `Unavailable`: it cannot be made, opened or written, or a newer Pintle made it. `Corrupt`: it is not a
    /// database, or a damaged one. Both name the file and what to do.
    pub fn open(path: &Path, durability: Durability) -> Result<Self, StoreError> {
        Self::open_with(path, durability, StoreKeys::default())
    }

    /// The same with keys.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub fn open_with(path: &Path, durability: Durability, sealing: StoreKeys) -> Result<Self, StoreError> {
        let (writing, reading) = file::open(path, durability)?;
        let (queue, batches) = sync_channel(QUEUE_BATCHES);
        let place = Arc::new(Place::of(path)?);
        let locks = Arc::new(Locks::beside(&place.real_path()?));
        let pen = Arc::new(Mutex::new(Writer::new(place.clone(), writing, sealing.clone(), durability)));
        let writer = thread::Builder::new()
            .name("pintle-store".into())
            .spawn({
                let pen = pen.clone();
                move || Writer::run(&pen, &batches)
            })
            .map_err(|e| StoreError::Unavailable(format!("the writer of `{}` did not start: {e}", path.display())))?;
        Ok(Self {
            path: path.to_owned(),
            durability,
            queue: Some(queue),
            writer: Some(writer),
            reader: Mutex::new(reading),
            desk: Mutex::default(),
            locks,
            place,
            sealing,
            rooms: Rooms::default(),
            pen,
            traffic: Traffic::default(),
        })
    }

    /// Takes the file at `path` to the schema `to`, which is known.
    pub(crate) fn migrate(path: &Path, to: u32) -> Result<(), StoreError> {
        file::open_at(path, Durability::BeforeEffect, to).map(drop)
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How long hooks took, over the newest `limit` events that are no tests. Blocks.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn hook_timings(&self, limit: usize) -> Result<Vec<HookTiming>, StoreError> {
        self.list(|connection| records::hook_timings(connection, limit))
    }

    fn reader(&self) -> MutexGuard<'_, Connection> {
        // A panic while reading leaves a connection that can read again.
        self.reader.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads what is evidence even of a file that was deleted meanwhile.
    fn list<T>(&self, work: impl FnOnce(&Connection) -> Result<T, Failure>) -> Result<T, StoreError> {
        work(&self.reader()).map_err(|failure| file::into_error(failure, &self.path))
    }

    fn read<T>(&self, work: impl FnOnce(&Connection) -> Result<T, Failure>) -> Result<T, StoreError> {
        self.place.check()?;
        self.list(work)
    }

    /// Does `work` in one transaction, and waits for it.
    pub(crate) fn write<T>(&self, work: impl FnOnce(&Connection) -> Result<T, Failure>) -> Result<T, StoreError> {
        // A panic rolls its transaction back as it unwinds.
        let mut desk = self.desk.lock().unwrap_or_else(PoisonError::into_inner);
        let _turn = self.place.turn();
        self.place.check()?;
        let write = || {
            let connection = match &mut *desk {
                Some(connection) => connection,
                none => none.insert(Box::new(file::another(&self.place, self.durability)?)),
            };
            file::transact(connection, work)
        };
        write().map_err(|failure| file::into_error(failure, &self.path))
    }

    fn hand_over(&self, batch: Batch) {
        let queue = self.queue.as_ref().expect("only `drop` takes the queue");
        match queue.try_send(batch.counted(&self.traffic)) {
            Ok(()) => {}
            Err(TrySendError::Full(batch)) => batch.finish(Err(StoreError::Unavailable(format!(
                "`{}` cannot be written fast enough: {QUEUE_BATCHES} batches wait already",
                self.path.display()
            )))),
            // A dropped batch answers for itself.
            Err(TrySendError::Disconnected(batch)) => drop(batch),
        }
    }
}

impl RecordStore for Sqlite {
    fn keep(&self, records: Vec<EventRecord>, done: OnKept) {
        self.hand_over(Batch::records(records, done));
    }

    fn keep_patiently(&self, records: Vec<EventRecord>, room: Room, done: OnKept) {
        self.hand_over(Batch::records(records, done).patient(Some(room)));
    }

    fn room(&self, records: &[EventRecord]) -> RoomSoon {
        self.rooms.soon(records)
    }

    fn idle(&self) -> Option<Box<dyn IdleStore + '_>> {
        // What was handed over earlier is written earlier.
        let writer = if self.traffic.is_none() { Writer::idle(&self.pen) } else { None };
        writer.map(|writer| Box::new(Unoccupied { store: self, writer }) as Box<dyn IdleStore>)
    }

    fn find(&self, query: &RecordQuery) -> Result<Vec<StoredEvent>, StoreError> {
        self.list(|connection| records::find(connection, query))
    }
}

/// The writer, kept from its thread.
struct Unoccupied<'a> {
    store: &'a Sqlite,
    writer: MutexGuard<'a, Writer>,
}

impl IdleStore for Unoccupied<'_> {
    fn write(mut self: Box<Self>, records: Vec<EventRecord>) -> Result<Result<(), StoreError>, Vec<EventRecord>> {
        let Some(kept) = self.writer.write_here(&records) else { return Err(records) };
        if self.writer.is_needed_earlier() {
            // An empty batch is how the thread hears of it.
            self.store.hand_over(Batch::records(Vec::new(), Box::new(|_| {})));
        }
        Ok(kept)
    }
}

impl SessionStore for Sqlite {
    fn append(&self, append: JournalAppend, done: OnKept) {
        self.hand_over(Batch::append(append, done));
    }

    fn hold(&self, key: &SessionKey) -> Result<Box<dyn SessionHold>, StoreError> {
        Ok(Box::new(self.write(|transaction| holds::hold(transaction, &self.locks, key))?))
    }

    fn journal(&self, key: &SessionKey) -> Result<Vec<JournalEntry>, StoreError> {
        self.read(|connection| journal::read(connection, key))
    }

    fn sessions(&self, tenant: &TenantId) -> Result<Vec<SessionRow>, StoreError> {
        self.read(|db| sessions::list(db, tenant, &|key| holds::held_by(db, &self.locks, key)))
    }

    fn delete(&self, key: &SessionKey) -> Result<bool, StoreError> {
        self.write(|db| sessions::delete(db, key, &|member| holds::held_by(db, &self.locks, member)))
    }
}

impl ApprovalStore for Sqlite {
    fn ask(&self, question: Approval, now: jiff::Timestamp) -> Result<ApprovalStanding, StoreError> {
        self.write(|transaction| approvals::ask(transaction, question, now))
    }

    fn answer(&self, id: &str, said: PersonAnswer, now: jiff::Timestamp) -> Result<Approval, StoreError> {
        self.write(|transaction| approvals::answer(transaction, id, said, now))
    }

    fn use_up(&self, id: &str, now: jiff::Timestamp) -> Result<(), StoreError> {
        self.write(|transaction| approvals::use_up(transaction, id, now))
    }

    fn approval(&self, id: &str) -> Result<Option<Approval>, StoreError> {
        self.read(|connection| approvals::by_id(connection, id))
    }

    fn approvals(&self, query: &ApprovalQuery) -> Result<Vec<Approval>, StoreError> {
        self.read(|connection| approvals::newest(connection, query))
    }
}

/// Writes what still waits, then ends the writer.
impl Drop for Sqlite {
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

impl fmt::Debug for Sqlite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sqlite").field("path", &self.path).finish_non_exhaustive()
    }
}
