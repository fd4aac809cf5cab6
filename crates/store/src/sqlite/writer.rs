//! The thread that writes: what waits is joined into one transaction, then everybody is told.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use domain::record::EventRecord;
use domain::store::{Append, Done, StoreError, StoredEvent};
use rusqlite::{Connection, TransactionBehavior, named_params};

use super::file::{Place, failed};
use super::journal::Lines;
use crate::row::stored;

/// Most batches that share a commit. Enough to make the cost of a commit vanish, few enough that the first of them
/// does not wait for long.
pub const MAX_GROUP_BATCHES: usize = 256;

/// What is on its way to the file. Whatever becomes of it, `done` is called once.
pub(super) struct Batch {
    append: Option<Append>,
    records: Vec<EventRecord>,
    done: Option<Done>,
}

impl Batch {
    /// Only records.
    pub(super) fn records(records: Vec<EventRecord>, done: Done) -> Self {
        Self { append: None, records, done: Some(done) }
    }

    /// Entries of a journal, and the records that belong to them.
    pub(super) fn append(mut append: Append, done: Done) -> Self {
        Self { records: std::mem::take(&mut append.records), append: Some(append), done: Some(done) }
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

/// A batch as it is written. Rows are made before the lock is taken, since other processes wait for it.
struct Rows<'a> {
    lines: Option<Lines<'a>>,
    events: Vec<StoredEvent>,
}

impl<'a> Rows<'a> {
    fn of(batch: &'a Batch) -> Result<Self, StoreError> {
        let lines = batch.append.as_ref().map(Lines::of).transpose()?;
        Ok(Self { lines, events: batch.records.iter().map(stored).collect() })
    }

    fn insert(&self, transaction: &Connection) -> rusqlite::Result<()> {
        if let Some(lines) = &self.lines {
            lines.insert(transaction)?;
        }
        insert_events(transaction, &self.events)
    }
}

/// The writing end of the file.
pub(super) struct Writer {
    place: Arc<Place>,
    connection: Connection,
}

impl Writer {
    pub(super) fn new(place: Arc<Place>, connection: Connection) -> Self {
        Self { place, connection }
    }

    /// Writes until the store is dropped and nothing waits.
    pub(super) fn run(mut self, batches: &Receiver<Batch>) {
        while let Ok(first) = batches.recv() {
            let group: Vec<Batch> =
                std::iter::once(first).chain(batches.try_iter().take(MAX_GROUP_BATCHES - 1)).collect();
            let hows = self.write(&group);
            for (batch, how) in group.into_iter().zip(hows) {
                // A caller's panic is its own; the others still want to know.
                drop(catch_unwind(AssertUnwindSafe(|| batch.finish(how))));
            }
        }
    }

    /// One transaction for the whole group; says how it went for each batch. A batch that cannot be put into words
    /// fails alone; from there on no row can be refused for what is in it, only the file can fail.
    fn write(&mut self, group: &[Batch]) -> Vec<Result<(), StoreError>> {
        let rows: Vec<Result<Rows<'_>, StoreError>> = group.iter().map(Rows::of).collect();
        let turn = self.place.turn();
        let committed = self.place.check().and_then(|()| {
            commit(&mut self.connection, rows.iter().flatten()).map_err(|e| failed(self.place.path(), &e))
        });
        drop(turn);
        rows.into_iter().map(|rows| rows.and_then(|_| committed.clone())).collect()
    }
}

fn commit<'a>(connection: &mut Connection, rows: impl Iterator<Item = &'a Rows<'a>>) -> rusqlite::Result<()> {
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for rows in rows {
        rows.insert(&transaction)?;
    }
    transaction.commit()
}

fn insert_events(transaction: &Connection, events: &[StoredEvent]) -> rusqlite::Result<()> {
    if events.is_empty() {
        return Ok(());
    }
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
    Ok(())
}
