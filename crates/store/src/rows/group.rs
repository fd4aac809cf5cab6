//! The group of batches that share a transaction: what waits is joined, written, then everybody is told.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread::{self, Thread, ThreadId};
use std::time::{Duration, Instant};

use pintle_domain::store::StoreError;

use super::backlog::{Backlog, BatchResult, UnwrittenBatch};
use super::batch::{Batch, MAX_GROUP_BATCHES, Rows};
use crate::db::Dialect;
use crate::sealing::StoreKeys;

/// Fewest batches that are worth a thread of their own to be put into words while others are written.
const WORTH_A_THREAD: usize = 16;

/// How long the writer looks for the next batch before it sleeps: about as long as it takes to wake it, which whoever
/// waits for a batch would wait for too. Of the calls of one turn, the next one often comes within it.
const LINGER: Duration = Duration::from_micros(100);

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
    pub(crate) fn of(mut batches: Vec<Batch>, sealing: &StoreKeys, dialect: Dialect) -> Self {
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
        (sealing, dialect): (&StoreKeys, Dialect),
        backlog: &mut Backlog,
        write: impl FnOnce(&[&Rows]) -> Vec<BatchResult>,
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
        hows: Vec<BatchResult>,
        backlog: &mut Backlog,
    ) -> Written {
        let mut written = Written { batches: Vec::with_capacity(rows.len()), hows: Vec::new(), spent: Vec::new() };
        let (mut hows, now) = (hows.into_iter(), Instant::now());
        for (batch, rows) in batches.into_iter().zip(rows) {
            let how = match rows {
                Ok(rows) => match hows.next().expect("one for each that is good") {
                    Err(UnwrittenBatch { why, passes: true }) if batch.is_patient => {
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

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{channel, sync_channel};

    use super::*;
    use crate::room::QUEUE_BATCHES;

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
        let (sealing, here) = (StoreKeys::default(), thread::current());
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
            let unwritten = || UnwrittenBatch { why: StoreError::Unavailable("no".into()), passes: true };
            rows.iter().map(|_| Err(unwritten())).collect()
        });
        assert!(last.is_none());
        let told: Vec<_> = hear.try_iter().collect();
        assert_eq!(told, (WORTH_A_THREAD..2 * WORTH_A_THREAD).map(|n| (n, false, true)).collect::<Vec<_>>());
    }
}
