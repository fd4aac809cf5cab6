//! Moves what was written from the log of SQLite into the file, on a thread of its own: it takes as long as writing
//! does, and nobody who writes has to wait for it.
//!
//! Where writers never rest, something is always left, and the log grows: a long one is moved to its end while nobody
//! writes, so that whoever writes next begins it anew. Where the thread falls behind, or fails, a writer moves everything
//! itself once the log is [`MAX_LOG_PAGES`](file::MAX_LOG_PAGES) long.
//!
//! Only where commits are not synced. Where each is, a log that stays short and is written over is cheaper than a
//! thread that syncs at the same time: growing a file is part of what is synced.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use rusqlite::Connection;

use super::file::{self, Place};
use crate::Durability;
use crate::db::Failure;

/// Rows between two rounds. So many take a few thousand pages of the log at most, a few MiB: many rows share a page
/// that is then moved once, and the log stays short.
const ROUND_ROWS: u64 = 1000;

/// At so many pages of the log, nobody writes for the end of a round: late, since each writer waits for two syncs, and
/// before one of them would have to move it all.
const LONG_LOG_PAGES: i64 = file::MAX_LOG_PAGES / 4 * 3;

/// The thread, from the point of view of the writer.
#[derive(Debug, Default)]
pub(super) struct Checkpoints {
    /// Rows since the last round.
    rows: u64,
    /// Started when the first round is due, since many programs write little.
    worker: Option<Worker>,
}

#[derive(Debug)]
struct Worker {
    /// Taken out by `drop`, which ends the thread. Holds one: a round that is asked for twice is one round.
    rounds: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Checkpoints {
    /// Takes note of `rows` more in the file at `place`.
    pub(super) fn written(&mut self, rows: u64, place: &Arc<Place>) {
        self.rows += rows;
        if self.rows < ROUND_ROWS {
            return;
        }
        self.rows = 0;
        if self.worker.is_none() {
            self.worker = Worker::start(place.clone());
        }
        let rounds = self.worker.as_ref().and_then(|worker| worker.rounds.as_ref());
        // If one waits already, it will see these rows too.
        if let Some(rounds) = rounds {
            rounds.try_send(()).unwrap_or_default();
        }
    }
}

impl Worker {
    /// `None` if there are no more threads; the writer does it then.
    fn start(place: Arc<Place>) -> Option<Self> {
        let (rounds, asked) = sync_channel(1);
        let thread = thread::Builder::new().name("pintle-log".into()).spawn(move || run(&place, &asked)).ok()?;
        Some(Self { rounds: Some(rounds), thread: Some(thread) })
    }
}

/// Ends the thread, after the round that it is in.
impl Drop for Worker {
    fn drop(&mut self) {
        drop(self.rounds.take());
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

fn run(place: &Place, asked: &Receiver<()>) {
    let mut connection = None;
    while asked.recv().is_ok() {
        if let Err(failure) = round(place, &mut connection, LONG_LOG_PAGES) {
            // The next round opens the file anew; until one succeeds, writers do it.
            connection = None;
            tracing::debug!("store.log_not_moved: {}", file::into_error(failure, place.path()));
        }
    }
}

/// Moves what is there; a log of `long` pages to its end.
fn round(place: &Place, connection: &mut Option<Connection>, long: i64) -> Result<(), Failure> {
    let connection = match connection {
        Some(connection) => connection,
        none => none.insert(file::another(place, Durability::Commit)?),
    };
    if pages_moved(connection)? < long {
        return Ok(());
    }
    // What came meanwhile is moved before anybody has to wait, and what comes meanwhile is little.
    pages_moved(connection)?;
    let _turn = place.turn();
    pages_moved(connection).map(drop)
}

/// Moves what nobody reads in its older form, and waits for nobody; how many pages the log has.
fn pages_moved(connection: &Connection) -> Result<i64, Failure> {
    Ok(connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |row| row.get(1))?)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn the_log_is_moved_once_enough_was_written_and_the_thread_ends() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pintle.db");
        let (writing, _reading) = file::open(&path, Durability::Commit, None).unwrap();
        let place = Arc::new(Place::of(&path).unwrap());
        let mut checkpoints = Checkpoints::default();
        writing.execute_batch("CREATE TABLE many (text TEXT) STRICT; INSERT INTO many VALUES ('x')").unwrap();
        checkpoints.written(ROUND_ROWS - 1, &place);
        assert!(checkpoints.worker.is_none(), "little was written");
        let before = std::fs::metadata(&path).unwrap().len();
        checkpoints.written(1, &place);
        // Joins the thread, after its round.
        drop(checkpoints);
        assert!(std::fs::metadata(&path).unwrap().len() > before, "the table stands in the file now");
    }

    #[test]
    fn a_long_log_is_begun_anew_although_somebody_always_writes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pintle.db");
        let (writing, _reading) = file::open(&path, Durability::Commit, None).unwrap();
        let (place, over) = (&Place::of(&path).unwrap(), &AtomicBool::new(false));
        writing.execute_batch("CREATE TABLE many (text TEXT) STRICT").unwrap();
        // How often it was begun anew.
        let begun = || std::fs::read(folder.path().join("pintle.db-wal")).unwrap()[12..16].to_vec();
        let before = begun();
        let writing = thread::scope(|scope| {
            let writer = scope.spawn(move || {
                while !over.load(Ordering::Acquire) {
                    let turn = place.turn();
                    writing.execute_batch("INSERT INTO many VALUES ('x')").unwrap();
                    drop(turn);
                    thread::yield_now();
                }
                writing
            });
            let moved = round(place, &mut None, 1);
            over.store(true, Ordering::Release);
            moved.unwrap();
            writer.join().unwrap()
        });
        writing.execute_batch("INSERT INTO many VALUES ('the next')").unwrap();
        assert_ne!(begun(), before);
    }
}
