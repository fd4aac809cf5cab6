//! The thread that writes: what waits is joined into one transaction, then everybody is told.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::mpsc::Receiver;

use domain::record::EventRecord;
use domain::store::{Done, StoreError, StoredEvent};
use rusqlite::{Connection, TransactionBehavior, named_params};

use super::file::failed;
use crate::row::stored;

/// Most batches that share a commit. Enough to make the cost of a commit vanish, few enough that the first of them
/// does not wait for long.
pub const MAX_GROUP_BATCHES: usize = 256;

/// Records on their way to the file. Whatever becomes of it, `done` is called once.
pub(super) struct Batch {
    records: Vec<EventRecord>,
    done: Option<Done>,
}

impl Batch {
    pub(super) fn new(records: Vec<EventRecord>, done: Done) -> Self {
        Self { records, done: Some(done) }
    }

    /// Says how it went.
    pub(super) fn finish(mut self, how: Result<(), StoreError>) {
        if let Some(done) = self.done.take() {
            done(how);
        }
    }
}

/// A batch that nobody finished was on a writer that is gone.
impl Drop for Batch {
    fn drop(&mut self) {
        if let Some(done) = self.done.take() {
            done(Err(StoreError::Unavailable("the writer of the store has ended; restart the program".into())));
        }
    }
}

/// The writing end of the file.
pub(super) struct Writer {
    path: PathBuf,
    /// Device and number of the file that was opened.
    inode: (u64, u64),
    connection: Connection,
}

impl Writer {
    pub(super) fn new(path: &Path, connection: Connection) -> Result<Self, StoreError> {
        let inode = inode(path).ok_or_else(|| gone(path))?;
        Ok(Self { path: path.to_owned(), inode, connection })
    }

    /// Writes until the store is dropped and nothing waits.
    pub(super) fn run(mut self, batches: &Receiver<Batch>) {
        while let Ok(first) = batches.recv() {
            let group: Vec<Batch> =
                std::iter::once(first).chain(batches.try_iter().take(MAX_GROUP_BATCHES - 1)).collect();
            let how = self.write(&group);
            for batch in group {
                // A caller's panic is its own; the others still want to know.
                drop(catch_unwind(AssertUnwindSafe(|| batch.finish(how.clone()))));
            }
        }
    }

    /// One transaction. It fails as a whole: no row can be refused for what is in it, only the file can fail.
    fn write(&mut self, group: &[Batch]) -> Result<(), StoreError> {
        // Rows are made before the lock is taken, since other processes wait for it.
        let events: Vec<StoredEvent> = group.iter().flat_map(|batch| &batch.records).map(stored).collect();
        // A file that was deleted takes rows without a word, and they are gone with the process.
        if inode(&self.path) != Some(self.inode) {
            return Err(gone(&self.path));
        }
        insert(&mut self.connection, &events).map_err(|e| failed(&self.path, &e))
    }
}

fn inode(path: &Path) -> Option<(u64, u64)> {
    fs::metadata(path).ok().map(|file| (file.dev(), file.ino()))
}

fn gone(path: &Path) -> StoreError {
    StoreError::Unavailable(format!("`{}` was moved or deleted while in use; restart the program", path.display()))
}

fn insert(connection: &mut Connection, events: &[StoredEvent]) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let mut row = transaction.prepare_cached(
        "INSERT INTO events (event_id, at, event, checkpoint, tenant_id, agent_id, session_id, turn_id, iteration, \
         tool_call_id, tool, is_test, ruling, text, permit, substituted, hooks) \
         VALUES (:event_id, :at, :event, :checkpoint, :tenant_id, :agent_id, :session_id, :turn_id, :iteration, \
         :tool_call_id, :tool, :is_test, :ruling, :text, :permit, :substituted, :hooks)",
    )?;
    for event in events {
        let hooks = serde_json::to_string(&event.hooks).expect("strings, numbers and JSON values are plain JSON");
        row.execute(named_params! {
            ":event_id": event.event_id,
            ":at": event.at,
            ":event": event.event,
            ":checkpoint": event.checkpoint,
            ":tenant_id": event.tenant_id,
            ":agent_id": event.agent_id,
            ":session_id": event.session_id,
            ":turn_id": event.turn_id,
            ":iteration": event.iteration,
            ":tool_call_id": event.tool_call_id,
            ":tool": event.tool,
            ":is_test": event.is_test,
            ":ruling": event.ruling,
            ":text": event.text,
            ":permit": event.permit,
            ":substituted": event.substituted,
            ":hooks": hooks,
        })?;
    }
    drop(row);
    transaction.commit()
}
