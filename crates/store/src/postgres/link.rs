//! One connection, used from one thread at a time.

use std::cell::{Cell as Slot, RefCell};
use std::collections::HashMap;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use futures_util::TryStreamExt;
use futures_util::future::maybe_done;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Statement as Prepared};

use super::net::wait;
use crate::db::{Cell, Db, Dialect, Exclusive, Failure, Statement, Take};

/// How long a statement may go without an answer. The server itself gives up on a lock long before; so this is a
/// server that hangs, or one that is out of reach without a word.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// How long a statement waits for somebody else's lock. Transactions take milliseconds; one that takes longer than
/// this belongs to a process that hangs.
pub(super) const LOCK_TIMEOUT: Duration = Duration::from_secs(5);

/// Most prepared statements of a connection: the program has some dozens of its own.
const MAX_PREPARED: usize = 256;

/// The first half of the keys of our own locks: the letters `pntl`. Sessions' locks have keys of another kind.
const LOCK_SPACE: i32 = 0x706e_746c;

/// The space of the locks of audit chains.
const CHAIN_SPACE: i32 = LOCK_SPACE + 1;
/// The same for what is counted.
const USES_SPACE: i32 = LOCK_SPACE + 2;

/// A connection and what it has prepared.
pub(super) struct Link {
    client: Client,
    prepared: RefCell<HashMap<String, Prepared>>,
    /// Set when an answer did not come: what comes next would be the answer to something else.
    broken: Slot<bool>,
}

impl Link {
    /// Uses `client`.
    pub(super) fn new(client: Client) -> Self {
        Self { client, prepared: RefCell::default(), broken: Slot::new(false) }
    }

    /// Whether it can be used no more.
    pub(super) fn is_broken(&self) -> bool {
        self.broken.get() || self.client.is_closed()
    }

    /// Waits for an answer of the server.
    fn answer<T>(&self, asked: impl Future<Output = Result<T, Error>>) -> Result<T, Failure> {
        let answer = wait(asked, PATIENCE).ok_or_else(|| {
            self.broken.set(true);
            Failure::Silence
        })?;
        Ok(answer?)
    }

    fn prepare(&self, sql: &str) -> Result<Prepared, Failure> {
        if let Some(known) = self.prepared.borrow().get(sql) {
            return Ok(known.clone());
        }
        // The only question marks are those of parameters.
        let prepared = self.answer(self.client.prepare(&sql.replace('?', "$")))?;
        let mut known = self.prepared.borrow_mut();
        if known.len() >= MAX_PREPARED {
            known.clear();
        }
        known.insert(sql.to_owned(), prepared.clone());
        Ok(prepared)
    }

    /// Does `work` in one transaction; what it wrote stays only if it comes to something.
    pub(super) fn transact<T>(&self, work: impl FnOnce(&Self) -> Result<T, Failure>) -> Result<T, Failure> {
        self.script("BEGIN")?;
        let done = work(self).and_then(|done| self.script("COMMIT").map(|()| done));
        if done.is_err() && !self.is_broken() {
            // It cannot be said what a connection does that does not even forget.
            self.broken.set(self.script("ROLLBACK").is_err());
        }
        done
    }
}

fn params<'a>(cells: &'a [Cell<'a>]) -> impl ExactSizeIterator<Item = &'a (dyn ToSql + Sync)> + 'a {
    cells.iter().map(|cell| cell as &(dyn ToSql + Sync))
}

impl Db for Link {
    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    fn run(&self, sql: &str, cells: &[Cell<'_>]) -> Result<u64, Failure> {
        let statement = self.prepare(sql)?;
        self.answer(self.client.execute_raw(&statement, params(cells)))
    }

    fn run_each(&self, statements: &[&Statement<'_>]) -> Result<Vec<u64>, Failure> {
        let prepared: Vec<Prepared> =
            statements.iter().map(|statement| self.prepare(statement.sql)).collect::<Result<_, _>>()?;
        let mut sent = Vec::with_capacity(statements.len());
        for (statement, prepared) in statements.iter().zip(&prepared) {
            let mut asked = Box::pin(maybe_done(self.client.execute_raw(prepared, params(&statement.cells))));
            // Each is sent when it is polled first, and all are, in their order, before any answer is waited for.
            let polled = wait(poll_fn(|context| Poll::Ready(asked.as_mut().poll(context).is_ready())), PATIENCE);
            debug_assert!(polled.is_some(), "one poll does not wait");
            sent.push(asked);
        }
        let answers = sent.into_iter().map(|mut asked| {
            self.answer(async {
                asked.as_mut().await;
                asked.as_mut().take_output().expect("it is done, and nobody took it")
            })
        });
        answers.collect()
    }

    fn each(&self, sql: &str, cells: &[Cell<'_>], take: &mut Take<'_>) -> Result<(), Failure> {
        let statement = self.prepare(sql)?;
        let rows = self.answer(self.client.query_raw(&statement, params(cells)))?;
        let mut rows = pin!(rows);
        while let Some(row) = self.answer(rows.try_next())? {
            take(&row)?;
        }
        Ok(())
    }

    fn script(&self, sql: &str) -> Result<(), Failure> {
        self.answer(self.client.batch_execute(sql))
    }

    fn exclude(&self, what: Exclusive) -> Result<(), Failure> {
        let (space, what) = match what {
            Exclusive::Schema => (LOCK_SPACE, 1),
            Exclusive::Sessions => (LOCK_SPACE, 2),
            Exclusive::Approvals => (LOCK_SPACE, 3),
            Exclusive::Uploads => (LOCK_SPACE, 60),
            Exclusive::Chain(chain) => (CHAIN_SPACE, chain),
            Exclusive::Uses(place) => (USES_SPACE, place),
        };
        self.script(&format!("SELECT pg_advisory_xact_lock({space}, {what})"))
    }
}
