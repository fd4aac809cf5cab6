//! Moves what was written from the log of SQLite into the file, on a thread of its own: it takes as long as writing
//! does, and nobody who writes has to wait for it.
//!
//! Where it falls behind, or fails, a writer moves everything itself once the log is [`MAX_LOG_PAGES`] long.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use rusqlite::Connection;

use super::file::{self, Place};
use crate::Durability;
use crate::db::Failure;

/// Rows between two rounds. So many take about 1000 pages of the log, which is when SQLite does it by itself: until
/// then, rows that are only committed can be lost to a power cut.
const ROUND_ROWS: u64 = 2000;

/// At so many pages, 64 MiB, a writer moves them itself: far more than gathers while a disk works at all, and little
/// beside the file of a machine that writes so much.
pub(super) const MAX_LOG_PAGES: i64 = 16_384;

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
        if let Err(failure) = round(place, &mut connection) {
            // The next round opens the file anew; until one succeeds, writers do it.
            connection = None;
            tracing::debug!("store.log_not_moved: {}", file::into_error(failure, place.path()));
        }
    }
}

/// Moves what nobody reads in its older form; waits for nobody.
fn round(place: &Place, connection: &mut Option<Connection>) -> Result<(), Failure> {
    let connection = match connection {
        Some(connection) => connection,
        none => none.insert(file::another(place, Durability::Commit)?),
    };
    Ok(connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?)
}
