//! Everything in a PostgreSQL database, which several processes on several machines may share.
//!
//! One thread drives the connections, another writes what nobody waits for in place, joining what is there into one
//! transaction. Whoever waits for their answer has one of a few connections meanwhile. When the server goes away, calls
//! fail at once and say so; when it is back, they work again. A pooler in between has to pool sessions, not
//! transactions: what is settled for a connection, and what it listens for, belongs to the server's session.
//!
//! What [`Durability`] means here: with `commit` a commit is as durable as the server has it, which is on its disk
//! unless somebody chose otherwise for the server, the database or the user (`synchronous_commit`); with
//! `before_effect` it is on its disk whatever they chose.

mod base;
mod boottime;
mod cells;
mod foreign;
mod holder;
mod leases;
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

use pintle_domain::store::{OnRulesChanged, RuleSubscription, SessionHold, SessionKey, StoreError};

use crate::database::{Database, SqlStore};
use crate::db::{Db, Failure};
use crate::migration::NEWEST;
use crate::place::place;
use crate::room::{QUEUE_BATCHES, Rooms};
use crate::rows::batch::Batch;
use crate::rows::group::is_awaited_by;
use crate::rows::sessions::HeldBy;
use crate::rows::{epoch, nodes};
use crate::sealing::StoreKeys;
use crate::{Durability, StoreOpenError};
use base::Base;
use leases::Leases;
use target::Target;
use writer::Writer;

/// Keeps everything in a database of a server.
pub type Postgres = SqlStore<PostgresDatabase>;

/// A database of a server that everything is in.
pub struct PostgresDatabase {
    base: Arc<Base>,
    leases: Arc<Leases>,
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
        base.settle_schema(&link)?;
        schema::migrate(&link, &base.target, (NEWEST, sealing.approval_key().as_ref()))
            .map_err(|failure| base.target.error(failure))?;
        let leases = Arc::new(Leases::new(base.clone()));
        let (queue, batches) = sync_channel(QUEUE_BATCHES);
        leases.behind(queue.clone());
        let writer = Writer::new(base.clone(), leases.clone(), link, sealing.clone());
        let writer =
            thread::Builder::new().name("pintle-store".into()).spawn(move || writer.run(&batches)).map_err(|e| {
                StoreError::Unavailable(format!("the writer of `{}` did not start: {e}", base.target.name()))
            })?;
        let (queue, writer, rooms) = (Some(queue), Some(writer), Rooms::default());
        Ok(SqlStore(PostgresDatabase { base, leases, queue, writer, sealing, rooms }))
    }

    /// Takes the database at `url` to the schema `to`, which is known.
    pub(crate) fn migrate(url: &str, to: u32) -> Result<(), StoreOpenError> {
        let base = Base::new(target(url)?, Durability::BeforeEffect)?;
        let link = base.connect()?;
        base.settle_schema(&link)?;
        Ok(schema::migrate(&link, &base.target, (to, None)).map_err(|failure| base.target.error(failure))?)
    }

    /// Host, port and database, without user and password.
    pub fn name(&self) -> &str {
        self.0.base.target.name()
    }
}

impl Database for PostgresDatabase {
    fn read<T>(&self, work: impl FnOnce(&dyn Db) -> Result<T, Failure>) -> Result<T, StoreError> {
        self.base.read(work)
    }

    fn read_at_once<T>(&self, mut work: impl FnMut(&dyn Db) -> Result<T, Failure>) -> Result<T, StoreError> {
        self.base.write(|db| {
            db.script("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")?;
            work(db)
        })
    }

    fn write<T>(&self, work: impl FnMut(&dyn Db) -> Result<T, Failure>) -> Result<T, StoreError> {
        self.base.write(work)
    }

    fn hand_over(&self, batch: Batch) {
        let queue = self.queue.as_ref().expect("only `drop` takes the queue");
        match queue.try_send(batch) {
            Ok(()) => {}
            Err(TrySendError::Full(batch)) => batch.finish(Err(StoreError::Unavailable(format!(
                "`{}` cannot be written fast enough: {QUEUE_BATCHES} batches wait already",
                self.base.target.name()
            )))),
            // A dropped batch answers for itself.
            Err(TrySendError::Disconnected(batch)) => drop(batch),
        }
    }

    fn rooms(&self) -> &Rooms {
        &self.rooms
    }

    fn shown(&self) -> String {
        format!("`{}`", self.base.target.name())
    }

    fn sealing(&self) -> &StoreKeys {
        &self.sealing
    }

    fn hold(&self, key: &SessionKey) -> Result<Box<dyn SessionHold>, StoreError> {
        self.leases.take(key)
    }

    fn held_by(&self, db: &dyn Db, key: &SessionKey) -> Result<Option<String>, Failure> {
        self.leases.holder(db, key)
    }

    fn holders<'a>(&'a self, db: &'a dyn Db) -> Result<Box<HeldBy<'a>>, Failure> {
        let taken = self.leases.holders(db)?;
        Ok(Box::new(move |key| Ok(taken.get(&place(key)).cloned())))
    }

    fn listen(&self, heard: OnRulesChanged) -> Box<dyn RuleSubscription> {
        self.base.listen(&[epoch::CHANNEL], heard)
    }

    fn node_id(&self) -> &str {
        &self.leases.me.token
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn join(&self, name: &str) {
        self.leases.join(name);
    }

    fn last_node(&self, db: &dyn Db, key: &SessionKey) -> Result<Option<String>, Failure> {
        let sql = "SELECT node FROM leases WHERE place = ?1 AND node <> ''";
        db.one(sql, &[place(key).into()], |row| row.string("node"))
    }

    fn listen_nodes(&self, heard: OnRulesChanged) -> Box<dyn RuleSubscription> {
        self.base.listen(&[nodes::CHANNEL], heard)
    }
}

fn target(url: &str) -> Result<Target, StoreOpenError> {
    Target::of(url).map_err(|why| StoreOpenError::Url(format!("of PostgreSQL: {why}")))
}

/// Writes what still waits, then ends the writer.
impl Drop for PostgresDatabase {
    fn drop(&mut self) {
        self.leases.close();
        drop(self.queue.take());
        let Some(writer) = self.writer.take() else { return };
        // A `done` may own the last handle of the store; the writer cannot wait for itself.
        if !is_awaited_by(writer.thread()) {
            // If it panicked, each batch that it had taken was answered with an error as it unwound.
            drop(writer.join());
        }
    }
}

impl fmt::Debug for PostgresDatabase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Postgres").field("name", &self.base.target.name()).finish_non_exhaustive()
    }
}
