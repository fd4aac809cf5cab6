//! The records in one SQLite file, which several processes may share.
//!
//! One thread writes, joining what waits into one transaction; listings read through a connection of their own.

mod file;
mod records;
mod writer;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use domain::record::EventRecord;
use domain::store::{Done, RecordQuery, RecordStore, StoreError, StoredEvent};
use rusqlite::Connection;

pub use crate::row::MAX_PATCH_BYTES;
pub use writer::MAX_GROUP_BATCHES;

use crate::Durability;
use crate::timing::HookTiming;
use writer::{Batch, Writer};

/// Most batches that wait for the writer. At one batch a tool call this is far more than the writer can lag behind
/// by while the disk works at all; beyond it, waiting longer would not help.
pub const QUEUE_BATCHES: usize = 1024;

/// Keeps records in a file.
pub struct Sqlite {
    path: PathBuf,
    /// Taken out by `drop`, which ends the writer.
    queue: Option<SyncSender<Batch>>,
    writer: Option<JoinHandle<()>>,
    reader: Mutex<Connection>,
}

impl Sqlite {
    /// Opens the file at `path`, making it (0600) and its folder (0700) where they are missing, and brings its schema
    /// up to date.
    ///
    /// # Errors
    /// `Unavailable`: it cannot be made, opened or written, or a newer Pintle made it. `Corrupt`: it is not a
    /// database, or a damaged one. Both name the file and what to do.
    pub fn open(path: &Path, durability: Durability) -> Result<Self, StoreError> {
        let (writing, reading) = file::open(path, durability)?;
        let (queue, batches) = sync_channel(QUEUE_BATCHES);
        let writer = Writer::new(path, writing)?;
        let writer = thread::Builder::new()
            .name("pintle-store".into())
            .spawn(move || writer.run(&batches))
            .map_err(|e| StoreError::Unavailable(format!("the writer of `{}` did not start: {e}", path.display())))?;
        Ok(Self { path: path.to_owned(), queue: Some(queue), writer: Some(writer), reader: Mutex::new(reading) })
    }

    /// Where the records are.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How long hooks took, over the newest `limit` events that are no tests. Blocks.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn hook_timings(&self, limit: usize) -> Result<Vec<HookTiming>, StoreError> {
        records::hook_timings(&self.reader(), &self.path, limit)
    }

    fn reader(&self) -> MutexGuard<'_, Connection> {
        // A panic while reading leaves a connection that can read again.
        self.reader.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RecordStore for Sqlite {
    fn keep(&self, records: Vec<EventRecord>, done: Done) {
        let queue = self.queue.as_ref().expect("only `drop` takes the queue");
        match queue.try_send(Batch::new(records, done)) {
            Ok(()) => {}
            Err(TrySendError::Full(batch)) => batch.finish(Err(StoreError::Unavailable(format!(
                "`{}` cannot be written fast enough: {QUEUE_BATCHES} batches wait already",
                self.path.display()
            )))),
            // A dropped batch answers for itself.
            Err(TrySendError::Disconnected(batch)) => drop(batch),
        }
    }

    fn find(&self, query: &RecordQuery) -> Result<Vec<StoredEvent>, StoreError> {
        records::find(&self.reader(), &self.path, query)
    }
}

/// Writes what still waits, then ends the writer.
impl Drop for Sqlite {
    fn drop(&mut self) {
        drop(self.queue.take());
        let Some(writer) = self.writer.take() else { return };
        // A `done` may own the last handle of the store; the writer cannot wait for itself.
        if writer.thread().id() != thread::current().id() {
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
