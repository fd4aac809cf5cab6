//! The writing end of the file.

use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use domain::store::StoreError;
use rusqlite::Connection;

use super::checkpoints::Checkpoints;
use super::file::{self, Place};
use crate::Durability;
use crate::db::Dialect;
use crate::rows::audit::{Sealer, seal_all, unsealed};
use crate::rows::batch::{Batch, Ready, Rows, insert_all, next_group};
use crate::sealing::Sealing;

/// Nothing is to be done while nothing comes; the length only keeps the wait a number.
const PATIENCE: Duration = Duration::from_secs(3600);

/// Writes what others hand over.
pub(super) struct Writer {
    place: Arc<Place>,
    connection: Connection,
    sealing: Sealing,
    sealer: Sealer,
    /// Where commits are not synced.
    checkpoints: Option<Checkpoints>,
}

impl Writer {
    pub(super) fn new(place: Arc<Place>, connection: Connection, sealing: Sealing, durability: Durability) -> Self {
        let sealer = Sealer::new(sealing.signing.clone());
        let checkpoints = match durability {
            Durability::Commit => Some(Checkpoints::default()),
            Durability::BeforeEffect => None,
        };
        Self { place, connection, sealing, sealer, checkpoints }
    }

    /// Writes until the store is dropped and nothing waits.
    pub(super) fn run(mut self, batches: &Receiver<Batch>) {
        let mut ready = None;
        loop {
            let group = match ready.take() {
                Some(group) => group,
                None => match next_group(batches, self.sealer.due_in(Instant::now()).unwrap_or(PATIENCE)) {
                    Some(group) => Ready::of(group, &self.sealing, Dialect::Sqlite),
                    None => break,
                },
            };
            if group.is_empty() {
                self.tend();
            } else {
                let sealing = self.sealing.clone();
                ready = group.write(batches, (&sealing, Dialect::Sqlite), |rows| self.write(rows));
            }
        }
        self.seal();
    }

    /// Signs the chains that are due although nothing came. If that fails, they are signed when something comes.
    fn tend(&mut self) {
        let _turn = self.place.turn();
        let tended = self.place.check().is_ok()
            && file::transact(&mut self.connection, |db| self.sealer.tend(db, Instant::now())).is_ok();
        if !tended {
            self.sealer.forget();
        }
    }

    /// Signs whatever is not signed, as the store is dropped. One try: what stays unsigned is signed with what comes
    /// next.
    fn seal(&mut self) {
        let Some(signing) = self.sealing.signing.clone() else { return };
        let _turn = self.place.turn();
        if self.place.check().is_err() {
            return;
        }
        let seal = |connection: &mut Connection| match unsealed(connection)?.as_slice() {
            [] => Ok(()),
            chains => file::transact(connection, |db| seal_all(db, &signing, chains)),
        };
        if let Err(failure) = seal(&mut self.connection) {
            let why: StoreError = file::into_error(failure, self.place.path());
            tracing::warn!("security.audit.not_sealed: {why}");
        }
    }

    /// One transaction for the whole group; says how it went for each batch. From here on no row can be refused for what
    /// is in it, only the file can fail.
    fn write(&mut self, rows: &[&Rows]) -> Vec<Result<(), StoreError>> {
        let turn = self.place.turn();
        let before = self.connection.total_changes();
        let committed = self.place.check().and_then(|()| {
            file::transact(&mut self.connection, |db| insert_all(db, rows, &|_| Ok(()), &mut self.sealer))
                .map_err(|failure| file::into_error(failure, self.place.path()))
        });
        drop(turn);
        if let Some(checkpoints) = &mut self.checkpoints {
            checkpoints.written(self.connection.total_changes().saturating_sub(before), &self.place);
        }
        committed.unwrap_or_else(|why| {
            self.sealer.forget();
            vec![Err(why); rows.len()]
        })
    }
}
