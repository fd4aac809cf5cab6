//! Everything in one SQLite file, which several processes may share.
//!
//! One thread writes what nobody waits for in place, joining what is there into one transaction; listings read through
//! a connection of their own, and so do those write who want their answer at once.

mod cells;
mod checkpoints;
mod file;
mod holder;
mod holds;
mod listening;
mod locks;
mod pending;
mod writer;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, LazyLock};
use std::thread::{self, JoinHandle};

use pintle_domain::record::EventRecord;
use pintle_domain::store::{
    IdleStore, NullSubscription, OnRulesChanged, RuleSubscription, SessionHold, SessionKey, StoreError,
};
use rusqlite::Connection;

pub use pintle_domain::store::MAX_PATCH_BYTES;

pub use crate::room::QUEUE_BATCHES;
pub use crate::rows::batch::MAX_GROUP_BATCHES;

use crate::Durability;
use crate::database::{Database, SqlStore};
use crate::db::{Db, Failure};
use crate::lock_order::{LockRank, RankedGuard, RankedMutex};
use crate::room::Rooms;
use crate::rows::audit::Sealer;
use crate::rows::batch::{Batch, Traffic, tail};
use crate::rows::group::is_awaited_by;
use crate::rows::sessions::HeldBy;
use crate::rows::strangers;
use crate::sealing::StoreKeys;
use file::Place;
use listening::LogListener;
use locks::Locks;
use writer::{Writer, locked};

/// Keeps everything in a file.
pub type Sqlite = SqlStore<SqliteFile>;

/// A file that everything is in.
pub struct SqliteFile {
    path: PathBuf,
    place: Arc<Place>,
    durability: Durability,
    /// Taken out by `drop`, which ends the writer.
    queue: Option<SyncSender<Batch>>,
    writer: Option<JoinHandle<()>>,
    reader: RankedMutex<Connection>,
    /// For those who wait for what they write; opened when the first of them comes, since many programs have none.
    desk: RankedMutex<Option<Box<Connection>>>,
    locks: Arc<Locks>,
    sealing: StoreKeys,
    rooms: Rooms,
    pen: Arc<RankedMutex<Writer>>,
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
        let (writing, reading) = file::open(path, durability, sealing.approval_key().as_ref())?;
        let (queue, batches) = sync_channel(QUEUE_BATCHES);
        let place = Arc::new(Place::of(path)?);
        let locks = Arc::new(Locks::beside(&place.real_path()?));
        let mut writer = Writer::new(place.clone(), writing, sealing.clone(), durability);
        // What a program left that was killed.
        writer.fold();
        let pen = Arc::new(RankedMutex::new(LockRank::Writer, writer));
        let writer = thread::Builder::new()
            .name("pintle-store".into())
            .spawn({
                let pen = pen.clone();
                move || Writer::run(&pen, &batches)
            })
            .map_err(|e| StoreError::Unavailable(format!("the writer of `{}` did not start: {e}", path.display())))?;
        Ok(SqlStore(SqliteFile {
            path: path.to_owned(),
            durability,
            queue: Some(queue),
            writer: Some(writer),
            reader: RankedMutex::new(LockRank::Reader, reading),
            desk: RankedMutex::new(LockRank::Desk, None),
            locks,
            place,
            sealing,
            rooms: Rooms::default(),
            pen,
            traffic: Traffic::default(),
        }))
    }

    /// Takes the file at `path` to the schema `to`, which is known.
    pub(crate) fn migrate(path: &Path, to: u32) -> Result<(), StoreError> {
        file::open_at(path, Durability::BeforeEffect, (to, None)).map(drop)
    }

    /// Where the file is.
    pub fn path(&self) -> &Path {
        &self.0.path
    }
}

impl SqliteFile {
    fn reader(&self) -> RankedGuard<'_, Connection> {
        // A panic while reading leaves a connection that can read again.
        self.reader.lock()
    }

    /// Has what calls left where evidence is read. What cannot be moved is left out, and `verify` says so.
    fn fold(&self) {
        if matches!(tail::is_there(&*self.reader()), Ok(true)) {
            locked(&self.pen).fold();
        }
    }

    fn look<T>(&self, work: impl FnOnce(&Connection) -> Result<T, Failure>) -> Result<T, StoreError> {
        work(&self.reader()).map_err(|failure| file::into_error(failure, &self.path))
    }

    fn transact<T>(&self, work: impl FnOnce(&Connection) -> Result<T, Failure>) -> Result<T, StoreError> {
        // A panic rolls its transaction back as it unwinds.
        let mut desk = self.desk.lock();
        let _turn = self.place.turn();
        self.place.check()?;
        let write = || {
            let connection = match &mut *desk {
                Some(connection) => connection,
                none => none.insert(Box::new(file::another(&self.place, self.durability)?)),
            };
            file::transact(connection, |db| {
                // The writer signs what it finds behind what it knows.
                strangers::refuse(db)?;
                if tail::is_there(db)? {
                    tail::fold(db, &mut Sealer::new(None))?;
                }
                work(db)
            })
        };
        write().map_err(|failure| file::into_error(failure, &self.path))
    }
}

impl Database for SqliteFile {
    fn read<T>(&self, work: impl FnOnce(&dyn Db) -> Result<T, Failure>) -> Result<T, StoreError> {
        self.place.check()?;
        self.list(work)
    }

    fn read_beside<T>(&self, work: impl FnOnce(&dyn Db) -> Result<T, Failure>) -> Result<T, StoreError> {
        self.place.check()?;
        self.look(|connection| work(connection))
    }

    fn list<T>(&self, work: impl FnOnce(&dyn Db) -> Result<T, Failure>) -> Result<T, StoreError> {
        self.fold();
        self.look(|connection| work(connection))
    }

    fn read_at_once<T>(&self, mut work: impl FnMut(&dyn Db) -> Result<T, Failure>) -> Result<T, StoreError> {
        self.place.check()?;
        self.fold();
        self.look(|connection| {
            // One transaction, or a writer could come between the statements. It ends, unchanged, when it is dropped.
            let transaction = connection.unchecked_transaction()?;
            work(&*transaction)
        })
    }

    fn write<T>(&self, mut work: impl FnMut(&dyn Db) -> Result<T, Failure>) -> Result<T, StoreError> {
        self.transact(|connection| work(connection))
    }

    fn settle(&self) -> Result<(), StoreError> {
        self.place.settle()
    }

    fn check_pages(&self) -> Result<(), StoreError> {
        file::check_pages(&self.path)
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

    fn rooms(&self) -> &Rooms {
        &self.rooms
    }

    fn shown(&self) -> String {
        format!("`{}`", self.path.display())
    }

    fn sealing(&self) -> &StoreKeys {
        &self.sealing
    }

    fn idle(&self) -> Option<Box<dyn IdleStore + '_>> {
        // What was handed over earlier is written earlier.
        let writer = if self.traffic.is_none() { Writer::idle(&self.pen) } else { None };
        writer.map(|writer| Box::new(Unoccupied { store: self, writer }) as Box<dyn IdleStore>)
    }

    fn hold(&self, key: &SessionKey) -> Result<Box<dyn SessionHold>, StoreError> {
        Ok(Box::new(self.transact(|transaction| holds::hold(transaction, &self.locks, key))?))
    }

    fn held_by(&self, db: &dyn Db, key: &SessionKey) -> Result<Option<String>, Failure> {
        holds::held_by(db, &self.locks, key)
    }

    fn holders<'a>(&'a self, db: &'a dyn Db) -> Result<Box<HeldBy<'a>>, Failure> {
        Ok(Box::new(move |key| self.held_by(db, key)))
    }

    fn node_id(&self) -> &str {
        static ID: LazyLock<String> = LazyLock::new(|| uuid::Uuid::new_v4().to_string());
        &ID
    }

    fn listen(&self, heard: OnRulesChanged) -> Box<dyn RuleSubscription> {
        match self.place.real_path() {
            Ok(path) => Box::new(LogListener::of(path, heard)),
            Err(_) => Box::new(NullSubscription),
        }
    }
}

/// The writer, kept from its thread.
struct Unoccupied<'a> {
    store: &'a SqliteFile,
    writer: RankedGuard<'a, Writer>,
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

/// Writes what still waits, then ends the writer.
impl Drop for SqliteFile {
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

impl fmt::Debug for SqliteFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sqlite").field("path", &self.path).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use pintle_domain::id::{DEFAULT_TENANT, TenantId};
    use pintle_domain::store::{IdentityStore as _, RuleStore as _, SessionStore as _};
    use pintle_testkit::conformance::audit::cleared;
    use pintle_testkit::conformance::sessions::key;

    use super::*;

    /// Far longer than reading takes; only a failure waits so long.
    const PATIENCE: Duration = Duration::from_secs(30);

    #[test]
    fn what_a_turn_begins_with_is_read_while_the_writer_is_busy() {
        let folder = tempfile::tempdir().unwrap();
        let store = Sqlite::open(&folder.path().join("pintle.db"), Durability::Commit).unwrap();
        let mut writer = locked(&store.0.pen);
        writer.write_here(&cleared()).unwrap().unwrap();
        assert!(tail::is_there(&*store.0.reader()).unwrap(), "a call left what is to be folded");
        let (say, hear) = channel();
        let store = &store;
        thread::scope(|scope| {
            scope.spawn(move || {
                let (tenant, key) = (TenantId::default_tenant(), key(DEFAULT_TENANT, "s"));
                assert_eq!(store.session_settings(&key), Ok(None));
                assert_eq!(store.last_node(&key), Ok(None));
                assert_eq!(store.journal(&key), Ok(vec![]));
                assert_eq!(store.disabled_tenants(), Ok(vec![]));
                assert!(!store.tenants().unwrap().is_empty());
                assert_eq!(store.member(&tenant, "anna"), Ok(None));
                assert_eq!(store.was_removed(&tenant, "anna"), Ok(false));
                say.send(()).unwrap();
            });
            let read = hear.recv_timeout(PATIENCE);
            // Whoever waits for it goes on, and the test ends.
            drop(writer);
            assert!(read.is_ok(), "it waited for the writer");
        });
    }
}
