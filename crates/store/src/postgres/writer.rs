//! The thread that writes what nobody waits for in place.

use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use pintle_domain::store::StoreError;

use super::base::{Base, TRIES};
use super::leases::Leases;
use super::link::Link;
use super::target::{is_collision, passes};
use crate::db::Dialect;
use crate::rows::audit::{Sealer, Signer, seal_all, unsealed};
use crate::rows::backlog::{Backlog, BatchResult, UnwrittenBatch};
use crate::rows::batch::{Batch, Rows, insert_all};
use crate::rows::group::{Ready, next_group};
use crate::sealing::StoreKeys;

/// How often it is looked whether chains are to be signed although nothing came.
const TEND: Duration = Duration::from_secs(1);

/// Writes what others hand over.
pub(super) struct Writer {
    base: Arc<Base>,
    leases: Arc<Leases>,
    link: Option<Link>,
    sealing: StoreKeys,
    sealer: Sealer,
}

impl Writer {
    pub(super) fn new(base: Arc<Base>, leases: Arc<Leases>, link: Link, sealing: StoreKeys) -> Self {
        let sealer = Sealer::new(Signer::of(&sealing));
        Self { base, leases, link: Some(link), sealing, sealer }
    }

    /// Writes until the store is dropped and nothing waits.
    pub(super) fn run(mut self, batches: &Receiver<Batch>) {
        let mut tended = Instant::now();
        let (mut ready, mut backlog) = (None, Backlog::default());
        loop {
            let patience = TEND.min(backlog.due_in(Instant::now()).unwrap_or(TEND));
            let group = match ready.take() {
                Some(group) => group,
                None => match next_group(batches, patience) {
                    Some(group) => Ready::of(group, &self.sealing, Dialect::Postgres),
                    None => break,
                },
            };
            if !group.is_empty() {
                let sealing = self.sealing.clone();
                ready = group.write(batches, (&sealing, Dialect::Postgres), &mut backlog, |rows| self.commit(rows));
            }
            let now = Instant::now();
            if backlog.is_due(now) {
                backlog.try_again(now, |rows| self.commit(rows));
            }
            if tended.elapsed() >= TEND {
                self.tend();
                tended = Instant::now();
            }
        }
        backlog.end(Instant::now(), |rows| self.commit(rows));
        self.seal();
    }

    /// Signs the chains that are due although nothing came. If that fails, they are signed when something comes.
    fn tend(&mut self) {
        let now = Instant::now();
        if self.sealer.due_in(now) != Some(Duration::ZERO) {
            return;
        }
        let sealer = &mut self.sealer;
        let link = self.link.as_ref().filter(|link| !link.is_broken());
        if link.is_none_or(|link| link.transact(|db| sealer.tend(db, now)).is_err()) {
            self.sealer.forget();
        }
        self.anchor();
    }

    /// The anchor knows what was signed.
    fn anchor(&mut self) {
        let signed = self.sealer.take_signed();
        if let Some(anchor) = &self.sealing.anchor {
            anchor.signed(&signed);
        }
    }

    /// Signs whatever is not signed, as the store is dropped. One try, on the connection that is there: what stays
    /// unsigned is signed with what comes next.
    fn seal(&mut self) {
        let Some(signing) = &Signer::of(&self.sealing) else { return };
        let Some(link) = self.link.as_ref().filter(|link| !link.is_broken()) else { return };
        let seal = || match unsealed(link)?.as_slice() {
            [] => Ok(Vec::new()),
            chains => link.transact(|db| seal_all(db, signing, chains)),
        };
        match seal() {
            Ok(signed) => self.sealing.anchor.iter().for_each(|anchor| anchor.signed(&signed)),
            Err(failure) => tracing::warn!("security.audit.not_sealed: {}", self.base.target.error(failure)),
        }
    }

    /// One transaction for the whole group; says how it went for each batch.
    fn commit(&mut self, rows: &[&Rows]) -> Vec<BatchResult> {
        match self.try_commit(rows) {
            Ok(hows) => hows.into_iter().map(|how| how.map_err(UnwrittenBatch::from)).collect(),
            // What the server refused in one of them is no reason to refuse the others.
            Err(_) if rows.len() > 1 && self.link.is_some() => {
                rows.iter().flat_map(|rows| self.commit(&[rows])).collect()
            }
            Err(UnwrittenBatch { why, passes }) => {
                rows.iter().map(|_| Err(UnwrittenBatch { why: why.clone(), passes })).collect()
            }
        }
    }

    /// Afterwards there is a connection exactly if it can be used.
    fn try_commit(&mut self, rows: &[&Rows]) -> Result<Vec<Result<(), StoreError>>, UnwrittenBatch> {
        let mut tried = 0;
        loop {
            tried += 1;
            let link = match self.link.take().filter(|link| !link.is_broken()) {
                Some(link) => link,
                // Whatever is the matter there, somebody may mend it.
                None => self.base.connect().map_err(|why| UnwrittenBatch { why, passes: true })?,
            };
            let (leases, sealer) = (&self.leases, &mut self.sealer);
            let done =
                link.transact(|db| insert_all(db, rows, &|key, fence| leases.may_append(db, key, fence), sealer));
            if done.is_err() {
                self.sealer.forget();
            }
            self.link = Some(link).filter(|link| !link.is_broken());
            match done {
                Err(failure) if tried < TRIES && self.link.is_some() && is_collision(&failure) => {}
                Err(failure) => {
                    let passes = passes(&failure);
                    return Err(UnwrittenBatch { why: self.base.target.error(failure), passes });
                }
                Ok(hows) => {
                    self.anchor();
                    return Ok(hows);
                }
            }
        }
    }
}
