//! What is handed over to the thread that writes: what waits is joined into one transaction, then everybody is told.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread::{self, Thread, ThreadId};
use std::time::{Duration, Instant};

use domain::execution::Execution;
use domain::record::EventRecord;
use domain::store::{Append, Done, OutboxJob, Room, SessionKey, StoreError};

use super::audit::{self, Sealer};
use super::backlog::{Backlog, How, Unwritten};
use super::journal::Lines;
use super::{executions, outbox, records};
use crate::db::{Db, Dialect, Failure, Statement};
use crate::evidence::{Executed, Note, executed, traces};
use crate::sealing::Sealing;

/// Most batches that wait for the writer. At one batch a tool call this is far more than the writer can lag behind
/// by while the disk works at all; beyond it, waiting longer would not help.
pub const QUEUE_BATCHES: usize = 2048;

/// Most batches that share a commit. Enough to make the cost of a commit vanish, few enough that the first of them
/// does not wait for long.
pub const MAX_GROUP_BATCHES: usize = 256;

/// Fewest batches that are worth a thread of their own to be put into words while others are written.
const WORTH_A_THREAD: usize = 16;

/// How long the writer looks for the next batch before it sleeps: about as long as it takes to wake it, which whoever
/// waits for a batch would wait for too. Of the calls of one turn, the next one often comes within it.
const LINGER: Duration = Duration::from_micros(100);

/// What is on its way to the database. Whatever becomes of it, `done` is called once.
pub(crate) struct Batch {
    append: Option<Append>,
    records: Vec<EventRecord>,
    /// Those that belong to no event.
    executions: Vec<Execution>,
    jobs: Vec<OutboxJob>,
    done: Option<Done>,
    /// Gone before anybody is told.
    on_the_way: Option<OnTheWay>,
    /// Whether a fault that may pass is waited out.
    is_patient: bool,
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

    fn of(done: Done) -> Self {
        Self {
            append: None,
            records: Vec::new(),
            executions: Vec::new(),
            jobs: Vec::new(),
            done: Some(done),
            on_the_way: None,
            is_patient: false,
            room: None,
        }
    }

    /// Only records.
    pub(crate) fn records(records: Vec<EventRecord>, done: Done) -> Self {
        let mut batch = Self::of(done);
        batch.records = records;
        batch
    }

    /// Only executions.
    pub(crate) fn executions(executions: Vec<Execution>, done: Done) -> Self {
        let mut batch = Self::of(done);
        batch.executions = executions;
        batch
    }

    /// Only jobs of the outbox.
    pub(crate) fn jobs(jobs: Vec<OutboxJob>, done: Done) -> Self {
        let mut batch = Self::of(done);
        batch.jobs = jobs;
        batch
    }

    /// Entries of a journal, and the records that belong to them.
    pub(crate) fn append(mut append: Append, done: Done) -> Self {
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

/// The next batches, in their order; `None` once the store is dropped and nothing waits, an empty group if nothing
/// came within `patience`.
pub(crate) fn next_group(batches: &Receiver<Batch>, patience: Duration) -> Option<Vec<Batch>> {
    match soon(batches).map_or_else(|| batches.recv_timeout(patience), Ok) {
        Ok(first) => Some(std::iter::once(first).chain(batches.try_iter().take(MAX_GROUP_BATCHES - 1)).collect()),
        Err(RecvTimeoutError::Timeout) => Some(Vec::new()),
        Err(RecvTimeoutError::Disconnected) => None,
    }
}

/// A batch that comes within [`LINGER`].
fn soon(batches: &Receiver<Batch>) -> Option<Batch> {
    let since = Instant::now();
    while since.elapsed() < LINGER {
        if let Ok(batch) = batches.try_recv() {
            return Some(batch);
        }
        // Whoever has something to do comes first.
        thread::yield_now();
    }
    None
}

thread_local! {
    /// The writer that this thread helps.
    static HELPED: Cell<Option<ThreadId>> = const { Cell::new(None) };
}

/// Whether `writer` waits for what this thread does, or is this thread: then this thread cannot wait for it.
pub(crate) fn is_awaited_by(writer: &Thread) -> bool {
    HELPED.get().unwrap_or_else(|| thread::current().id()) == writer.id()
}

/// A group that was written, or could not be.
struct Written {
    batches: Vec<Batch>,
    /// For each of them.
    hows: Vec<Result<(), StoreError>>,
    /// What is left of it. Throwing away so many small texts takes longer than telling everybody.
    spent: Vec<Rows>,
}

impl Written {
    fn add(&mut self, batch: Batch, spent: Option<Rows>, how: Result<(), StoreError>) {
        self.batches.push(batch);
        self.hows.push(how);
        self.spent.extend(spent);
    }

    /// Tells everybody how it went.
    fn tell(self) {
        let Self { batches, hows, spent } = self;
        for (batch, how) in batches.into_iter().zip(hows) {
            // A caller's panic is its own; the others still want to know.
            drop(catch_unwind(AssertUnwindSafe(|| batch.finish(how))));
        }
        drop(spent);
    }
}

/// A group as it is written.
pub(crate) struct Ready {
    batches: Vec<Batch>,
    rows: Vec<Result<Rows, StoreError>>,
    /// The group before this one, if nobody of it was told yet.
    before: Option<Written>,
}

impl Ready {
    /// Puts a group into words; a batch that cannot be fails alone.
    pub(crate) fn of(mut batches: Vec<Batch>, sealing: &Sealing, dialect: Dialect) -> Self {
        let rows = batches.iter_mut().map(|batch| Rows::of(batch, sealing, dialect)).collect();
        Self { batches, rows, before: None }
    }

    /// Whether nothing came.
    pub(crate) fn is_empty(&self) -> bool {
        self.batches.is_empty()
    }

    /// Writes it by way of `write`, which says how it went for each of the rows, and tells everybody but those who wait
    /// in `backlog` for a fault to pass. What is returned comes next.
    ///
    /// In a flood, another thread does what is no writing: while this group is written, it tells those of the group
    /// before and puts what waits into words.
    pub(crate) fn write(
        self,
        batches: &Receiver<Batch>,
        (sealing, dialect): (&Sealing, Dialect),
        backlog: &mut Backlog,
        write: impl FnOnce(&[&Rows]) -> Vec<How>,
    ) -> Option<Self> {
        let Self { batches: group, rows, before } = self;
        let good: Vec<&Rows> = rows.iter().flatten().collect();
        let waiting: Vec<Batch> = batches.try_iter().take(MAX_GROUP_BATCHES).collect();
        let (hows, next) = if before.is_some() || waiting.len() >= WORTH_A_THREAD {
            let writer = thread::current().id();
            thread::scope(|scope| {
                let next = scope.spawn(move || {
                    HELPED.set(Some(writer));
                    before.into_iter().for_each(Written::tell);
                    Self::of(waiting, sealing, dialect)
                });
                let hows = write(&good);
                (hows, next.join().unwrap_or_else(|panic| resume_unwind(panic)))
            })
        } else {
            let hows = write(&good);
            (hows, Self::of(waiting, sealing, dialect))
        };
        let written = Self::written(group, rows, hows, backlog);
        if next.batches.len() >= WORTH_A_THREAD {
            return Some(Self { before: Some(written), ..next });
        }
        written.tell();
        (!next.is_empty()).then_some(next)
    }

    /// `hows` is for those of `rows` that are good.
    fn written(
        batches: Vec<Batch>,
        rows: Vec<Result<Rows, StoreError>>,
        hows: Vec<How>,
        backlog: &mut Backlog,
    ) -> Written {
        let mut written = Written { batches: Vec::with_capacity(rows.len()), hows: Vec::new(), spent: Vec::new() };
        let (mut hows, now) = (hows.into_iter(), Instant::now());
        for (batch, rows) in batches.into_iter().zip(rows) {
            let how = match rows {
                Ok(rows) => match hows.next().expect("one for each that is good") {
                    Err(Unwritten { why, passes: true }) if batch.is_patient => {
                        let Err(back) = backlog.put(batch, rows, &why, now) else { continue };
                        let (batch, rows) = *back;
                        written.add(batch, Some(rows), Err(why));
                        continue;
                    }
                    how => (Some(rows), how.map_err(|unwritten| unwritten.why)),
                },
                Err(why) => (None, Err(why)),
            };
            written.add(batch, how.0, how.1);
        }
        written
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
pub(crate) type MayAppend<'a> = dyn Fn(&SessionKey) -> Result<(), Failure> + 'a;

impl Rows {
    /// Puts records into words.
    pub(crate) fn of_records(records: &[EventRecord], sealing: &Sealing, dialect: Dialect) -> Result<Self, StoreError> {
        let mut rows = Self { lines: None, statements: Vec::new(), notes: Vec::new(), tried: false };
        for (event, traces) in records.iter().zip(traces(records, sealing)?) {
            rows.statements.push(records::insert(event.into()));
            traces.executions.into_iter().for_each(|executed| rows.state(executed, dialect));
            rows.notes.extend(traces.decision.map(|note| Pending { note, statement: None }));
        }
        Ok(rows)
    }

    /// Puts a batch into words. What is left of it is whom to tell.
    fn of(batch: &mut Batch, sealing: &Sealing, dialect: Dialect) -> Result<Self, StoreError> {
        let lines = batch.append.take().map(Lines::of).transpose()?;
        let mut rows = Self { lines, ..Self::of_records(&std::mem::take(&mut batch.records), sealing, dialect)? };
        for execution in std::mem::take(&mut batch.executions) {
            rows.state(executed(execution, sealing)?, dialect);
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
        match self.statements.first() {
            Some(first) if self.tried => records::is_there(db, first),
            Some(_) | None => Ok(false),
        }
    }

    fn state(&mut self, executed: Executed, dialect: Dialect) {
        let Executed { execution, detail, note } = executed;
        self.notes.push(Pending { note, statement: Some(self.statements.len()) });
        self.statements.push(executions::insert(execution, detail, dialect));
    }

    /// Writes what stands in the journals.
    fn insert(&self, db: &dyn Db, may_append: &MayAppend<'_>) -> Result<(), Failure> {
        let Some(lines) = &self.lines else { return Ok(()) };
        may_append(lines.key())?;
        lines.insert(db)
    }

    /// The notes whose rows are new, `touched` being what its statements touched.
    fn new_notes<'r>(&'r self, touched: &'r [u64]) -> impl Iterator<Item = &'r Note> {
        let is_new = |pending: &&Pending| pending.statement.is_none_or(|statement| touched[statement] > 0);
        self.notes.iter().filter(is_new).map(|pending| &pending.note)
    }
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
    let statements: Vec<_> = taken.iter().flat_map(|rows| &rows.statements).collect();
    let touched = db.run_each(&statements)?;
    let mut touched = touched.as_slice();
    let mut notes = Vec::with_capacity(taken.len());
    for rows in taken {
        let (own, others) = touched.split_at(rows.statements.len());
        notes.extend(rows.new_notes(own));
        touched = others;
    }
    if !notes.is_empty() {
        let grown = audit::append_all(db, &notes)?;
        sealer.grown(db, &grown, Instant::now())?;
    }
    Ok(hows)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{channel, sync_channel};

    use super::*;

    /// Far longer than a thread takes to begin; only a failure waits so long.
    const PATIENCE: Duration = Duration::from_secs(30);

    #[test]
    fn in_a_flood_those_before_are_told_while_the_next_are_written() {
        let (queue, batches) = sync_channel(QUEUE_BATCHES);
        let (say, hear) = channel();
        for number in 0..2 * WORTH_A_THREAD {
            let (say, writer) = (say.clone(), thread::current());
            let done = move |how: Result<(), StoreError>| {
                say.send((number, how.is_ok(), is_awaited_by(&writer))).expect("the test waits for it");
            };
            queue.send(Batch::records(Vec::new(), Box::new(done))).unwrap();
        }
        let (sealing, here) = (Sealing::default(), thread::current());
        let with = (&sealing, Dialect::Sqlite);
        assert!(is_awaited_by(&here) && !thread::spawn(move || is_awaited_by(&here)).join().unwrap());

        let first = Ready::of(batches.try_iter().take(WORTH_A_THREAD).collect(), &sealing, Dialect::Sqlite);
        let mut backlog = Backlog::default();
        let next = first.write(&batches, with, &mut backlog, |rows| rows.iter().map(|_| Ok(())).collect());
        assert!(hear.try_recv().is_err(), "the others are written at once, and nobody is told before");
        let last = next.expect("they wait").write(&batches, with, &mut backlog, |rows| {
            for number in 0..WORTH_A_THREAD {
                assert_eq!(hear.recv_timeout(PATIENCE), Ok((number, true, true)));
            }
            // Who waits for it is told of any fault, whether it passes or not.
            let unwritten = || Unwritten { why: StoreError::Unavailable("no".into()), passes: true };
            rows.iter().map(|_| Err(unwritten())).collect()
        });
        assert!(last.is_none());
        let told: Vec<_> = hear.try_iter().collect();
        assert_eq!(told, (WORTH_A_THREAD..2 * WORTH_A_THREAD).map(|n| (n, false, true)).collect::<Vec<_>>());
    }
}
