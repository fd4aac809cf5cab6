//! The batches that are handed over to the thread that writes, and their rows.

pub(crate) mod tail;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use pintle_domain::execution::Execution;
use pintle_domain::lease::Fence;
use pintle_domain::record::EventRecord;
use pintle_domain::session::JournalEntry;
use pintle_domain::store::{JournalAppend, OnKept, OutboxJob, Room, SessionKey, StoreError};
use pintle_domain::turn::Fact;

use super::audit::{self, Sealer};
use super::journal::Lines;
use super::nodes::{RELEASE, as_int};
use super::records::{self, TurnOwner};
use super::{executions, outbox};
use crate::db::{Db, Dialect, Failure, Statement};
use crate::evidence::{ExecutionRow, Note, executed, traces};
use crate::progress;
use crate::sealing::StoreKeys;

/// Most batches that share a commit. Enough to make the cost of a commit vanish, few enough that the first of them
/// does not wait for long.
pub const MAX_GROUP_BATCHES: usize = 256;

/// What is on its way to the database. Whatever becomes of it, `done` is called once.
pub(crate) struct Batch {
    append: Option<JournalAppend>,
    records: Vec<EventRecord>,
    /// Those that belong to no event.
    executions: Vec<Execution>,
    jobs: Vec<OutboxJob>,
    /// The lease that is given back behind it all: its place, its fence, and who has it.
    release: Option<(i64, Fence, String)>,
    done: Option<OnKept>,
    /// Gone before anybody is told.
    on_the_way: Option<OnTheWay>,
    /// Whether a fault that may pass is waited out.
    pub(super) is_patient: bool,
    /// What it takes of what may wait to be written.
    room: Option<Room>,
}

/// How many batches were handed over and are not finished.
#[derive(Clone, Debug, Default)]
pub(crate) struct Traffic(Arc<AtomicUsize>);

/// One of them.
struct OnTheWay(Traffic);

impl Traffic {
    /// Whether all that were handed over are finished.
    pub(crate) fn is_none(&self) -> bool {
        self.0.load(Ordering::Acquire) == 0
    }
}

impl Drop for OnTheWay {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Release);
    }
}

impl Batch {
    /// The same, and `traffic` counts it until it is finished.
    pub(crate) fn counted(mut self, traffic: &Traffic) -> Self {
        traffic.0.fetch_add(1, Ordering::AcqRel);
        self.on_the_way = Some(OnTheWay(traffic.clone()));
        self
    }

    fn of(done: OnKept) -> Self {
        Self {
            append: None,
            records: Vec::new(),
            executions: Vec::new(),
            jobs: Vec::new(),
            release: None,
            done: Some(done),
            on_the_way: None,
            is_patient: false,
            room: None,
        }
    }

    /// Only records.
    pub(crate) fn records(records: Vec<EventRecord>, done: OnKept) -> Self {
        let mut batch = Self::of(done);
        batch.records = records;
        batch
    }

    /// Only executions.
    pub(crate) fn executions(executions: Vec<Execution>, done: OnKept) -> Self {
        let mut batch = Self::of(done);
        batch.executions = executions;
        batch
    }

    /// Only jobs of the outbox.
    pub(crate) fn jobs(jobs: Vec<OutboxJob>, done: OnKept) -> Self {
        let mut batch = Self::of(done);
        batch.jobs = jobs;
        batch
    }

    /// Only the end of a lease.
    pub(crate) fn release(lease: (i64, Fence, String), done: OnKept) -> Self {
        let mut batch = Self::of(done);
        batch.release = Some(lease);
        batch
    }

    /// Entries of a journal, and the records that belong to them.
    pub(crate) fn append(mut append: JournalAppend, done: OnKept) -> Self {
        let mut batch = Self::records(std::mem::take(&mut append.records), done);
        batch.append = Some(append);
        batch
    }

    /// The same, and a fault that may pass is waited out. `room` is given back meanwhile.
    pub(crate) fn patient(mut self, room: Option<Room>) -> Self {
        (self.is_patient, self.room) = (true, room);
        self
    }

    /// Lets those who hand over more pay no regard to it any more.
    pub(super) fn step_aside(&mut self) {
        drop((self.on_the_way.take(), self.room.take()));
    }

    /// Says how it went.
    pub(crate) fn finish(mut self, how: Result<(), StoreError>) {
        self.step_aside();
        if let Some(done) = self.done.take() {
            done(how);
        }
    }
}

/// A batch that nobody finished was on a writer that is gone.
impl Drop for Batch {
    fn drop(&mut self) {
        self.step_aside();
        if let Some(done) = self.done.take() {
            done(Err(StoreError::Unavailable("the writer of the store has ended; restart the program".into())));
        }
    }
}

/// A batch as it is written. All of it is made before the transaction begins, since others wait for that.
pub(crate) struct Rows {
    lines: Option<Lines>,
    /// For everything that does not stand in a journal.
    statements: Vec<Statement<'static>>,
    /// For the audit chains.
    notes: Vec<Pending>,
    /// Whether they may have been written before, by a transaction of which nobody knows how it ended.
    tried: bool,
}

/// A note, which is left out if the statement of its row touches nothing: the row was there already, and so was the
/// note.
struct Pending {
    note: Note,
    statement: Option<usize>,
}

/// Whether this store may append to a session.
pub(crate) type MayAppend<'a> = dyn Fn(&SessionKey, Option<Fence>) -> Result<(), Failure> + 'a;

impl Rows {
    /// Puts records into words.
    pub(crate) fn of_records(
        records: &[EventRecord],
        sealing: &StoreKeys,
        dialect: Dialect,
    ) -> Result<Self, StoreError> {
        let mut rows = Self { lines: None, statements: Vec::new(), notes: Vec::new(), tried: false };
        let inserts = records::inserts(records.iter().map(Into::into));
        for (inserts, traces) in inserts.into_iter().zip(traces(records, sealing)?) {
            rows.statements.extend(inserts);
            traces.executions.into_iter().for_each(|executed| rows.state(executed, dialect));
            rows.notes.extend(traces.decision.map(|note| Pending { note, statement: None }));
        }
        Ok(rows)
    }

    /// Puts a batch into words. What is left of it is whom to tell.
    pub(super) fn of(batch: &mut Batch, sealing: &StoreKeys, dialect: Dialect) -> Result<Self, StoreError> {
        let prompts = batch.append.as_ref().map(prompts).unwrap_or_default();
        let lines = batch.append.take().map(Lines::of).transpose()?;
        let mut rows = Self { lines, ..Self::of_records(&std::mem::take(&mut batch.records), sealing, dialect)? };
        rows.statements.extend(prompts);
        for execution in std::mem::take(&mut batch.executions) {
            rows.state(executed(execution, sealing)?, dialect);
        }
        if let Some((place, fence, owner)) = batch.release.take() {
            let cells = vec![place.into(), as_int(fence).into(), owner.into()];
            rows.statements.push(Statement::new(RELEASE, cells));
        }
        for job in std::mem::take(&mut batch.jobs) {
            rows.statements.push(outbox::Job::of(&job, sealing)?.insert());
        }
        Ok(rows)
    }

    /// From here on it is looked first whether they are there already.
    pub(crate) fn tried(&mut self) {
        self.tried = true;
    }

    /// About how many bytes of memory they hold.
    pub(super) fn bytes(&self) -> usize {
        self.statements.iter().map(Statement::bytes).sum()
    }

    /// Whether an earlier transaction wrote them, all at once: then the first of them is there. An execution that is
    /// there already is passed over anyway.
    fn are_there(&self, db: &dyn Db) -> Result<bool, Failure> {
        if self.tried { records::is_there(db, &self.statements) } else { Ok(false) }
    }

    fn state(&mut self, executed: ExecutionRow, dialect: Dialect) {
        let ExecutionRow { execution, sealed, note } = executed;
        self.notes.push(Pending { note, statement: Some(self.statements.len()) });
        self.statements.push(executions::insert(execution, sealed, dialect));
    }

    /// Writes what stands in the journals.
    fn insert(&self, db: &dyn Db, may_append: &MayAppend<'_>) -> Result<(), Failure> {
        let Some(lines) = &self.lines else { return Ok(()) };
        may_append(lines.key(), lines.fence())?;
        lines.insert(db)
    }

    /// The notes whose rows are new, `touched` being what its statements touched.
    fn new_notes<'r>(&'r self, touched: &'r [u64]) -> impl Iterator<Item = &'r Note> {
        let is_new = |pending: &&Pending| pending.statement.is_none_or(|statement| touched[statement] > 0);
        self.notes.iter().filter(is_new).map(|pending| &pending.note)
    }
}

/// The statements that keep how the prompts of the turns begin that begin in `append`.
fn prompts(append: &JournalAppend) -> Vec<Statement<'static>> {
    let begun = |entry: &JournalEntry| match entry {
        JournalEntry::Turn(Fact::Begun { turn_id, prompts, .. }) => {
            let owner = TurnOwner {
                tenant: append.key.tenant.as_str(),
                agent: append.agent.as_str(),
                session: append.key.session.as_str(),
                turn: turn_id.as_str(),
                is_test: false,
            };
            Some(owner.prompted(append.at, progress::title(prompts)))
        }
        JournalEntry::Turn(_) | JournalEntry::Opened { .. } | JournalEntry::Closed { .. } | JournalEntry::Kept(_) => {
            None
        }
    };
    append.entries.iter().filter_map(begun).collect()
}

/// Writes batches within one transaction; says for each whether it was refused by a rule, which leaves the others
/// alone.
///
/// # Errors
/// The database failed, and nothing counts; `sealer` has to be told.
pub(crate) fn insert_all(
    db: &dyn Db,
    rows: &[&Rows],
    may_append: &MayAppend<'_>,
    sealer: &mut Sealer,
) -> Result<Vec<Result<(), StoreError>>, Failure> {
    let (mut hows, mut taken) = (Vec::with_capacity(rows.len()), Vec::with_capacity(rows.len()));
    for rows in rows {
        if rows.are_there(db)? {
            hows.push(Ok(()));
            continue;
        }
        hows.push(match rows.insert(db, may_append) {
            Ok(()) => {
                taken.push(*rows);
                Ok(())
            }
            Err(Failure::Said(why)) => Err(why),
            Err(failure) => return Err(failure),
        });
    }
    let mut known = std::mem::take(&mut sealer.known);
    put(db, &taken, sealer, &mut |statement| known.is_new(statement))?;
    sealer.known = known;
    Ok(hows)
}

/// Writes everything but journals, those statements only that `is_new` names.
fn put(
    db: &dyn Db,
    taken: &[&Rows],
    sealer: &mut Sealer,
    is_new: &mut dyn FnMut(&Statement<'_>) -> bool,
) -> Result<(), Failure> {
    let statements: Vec<_> = taken.iter().flat_map(|rows| &rows.statements).collect();
    let is_new: Vec<bool> = statements.iter().map(|statement| is_new(statement)).collect();
    let new: Vec<_> = statements.iter().zip(&is_new).filter(|(_, is_new)| **is_new).map(|(it, _)| *it).collect();
    let mut ran = db.run_each(&new)?.into_iter();
    let touched: Vec<u64> = is_new.iter().map(|is_new| if *is_new { ran.next().unwrap_or(0) } else { 0 }).collect();
    let mut touched = touched.as_slice();
    let mut notes = Vec::with_capacity(taken.len());
    for rows in taken {
        let (own, others) = touched.split_at(rows.statements.len());
        records::all_written(&rows.statements, own)?;
        executions::all_written(db, &rows.statements, own)?;
        outbox::all_written(db, &rows.statements, own)?;
        notes.extend(rows.new_notes(own));
        touched = others;
    }
    if !notes.is_empty() {
        let grown = audit::append_all(db, &notes)?;
        sealer.grown(db, &grown, Instant::now())?;
    }
    Ok(())
}
