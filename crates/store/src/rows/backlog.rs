//! Batches that nobody waits for and that a fault keeps from the database: tried again until it passes, though not for
//! ever.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use pintle_domain::store::StoreError;

use super::batch::{Batch, MAX_GROUP_BATCHES, Rows};

/// How long a batch is tried again: longer than a server takes to start anew, or another process to end a long
/// transaction. Whatever lasts longer needs a person.
const RETRY_TIME: Duration = Duration::from_secs(60);

/// Between two tries: a server that is back is found soon, and one that is not is troubled little.
const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Most batches that wait for a fault to pass: what a busy host leaves in half a minute.
const BACKLOG_BATCHES: usize = 4096;

/// Most bytes of text that they hold: as much again as may wait to be written in the first place.
const BACKLOG_BYTES: usize = crate::room::ROOM_BYTES;

/// A batch that was not written.
#[derive(Debug)]
pub(crate) struct UnwrittenBatch {
    pub(crate) why: StoreError,
    /// Whether it may be written later, as it is.
    pub(crate) passes: bool,
}

/// How it went with one batch.
pub(crate) type BatchResult = Result<(), UnwrittenBatch>;

impl From<StoreError> for UnwrittenBatch {
    /// What a rule refuses, it refuses for ever.
    fn from(why: StoreError) -> Self {
        Self { why, passes: false }
    }
}

/// The batches that wait for a fault to pass, oldest first.
#[derive(Default)]
pub(crate) struct Backlog {
    waiting: VecDeque<Waiting>,
    bytes: usize,
    /// When it is tried next.
    due: Option<Instant>,
}

struct Waiting {
    batch: Batch,
    rows: Rows,
    bytes: usize,
    /// When the last try is over.
    until: Instant,
}

impl Waiting {
    fn finish(self, how: Result<(), StoreError>) {
        // A caller's panic is its own; the others still want to know.
        drop(catch_unwind(AssertUnwindSafe(|| self.batch.finish(how))));
    }
}

impl Backlog {
    /// Takes a batch up, whose `rows` were not written since `why`; gives it back if too much waits.
    pub(crate) fn put(
        &mut self,
        mut batch: Batch,
        mut rows: Rows,
        why: &StoreError,
        now: Instant,
    ) -> Result<(), Box<(Batch, Rows)>> {
        let bytes = rows.bytes();
        if self.waiting.len() >= BACKLOG_BATCHES || self.bytes + bytes > BACKLOG_BYTES {
            return Err(Box::new((batch, rows)));
        }
        if self.waiting.is_empty() {
            let limit = RETRY_TIME.as_secs();
            tracing::warn!("security.hook.audit_write_failed: {why}; what comes is tried again for {limit} s");
        }
        batch.step_aside();
        rows.tried();
        self.bytes += bytes;
        self.due.get_or_insert(now + RETRY_PAUSE);
        self.waiting.push_back(Waiting { batch, rows, bytes, until: now + RETRY_TIME });
        Ok(())
    }

    /// How long nothing is to be tried again; `None` if nothing waits.
    pub(crate) fn due_in(&self, now: Instant) -> Option<Duration> {
        self.due.map(|due| due.saturating_duration_since(now))
    }

    /// Whether something is to be tried again.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.due.is_some_and(|due| due <= now)
    }

    /// Writes what waits by way of `write`, as far as that is possible now. Who waited for too long, or cannot be written
    /// at all, is told so; says how many these are.
    pub(crate) fn try_again(&mut self, now: Instant, mut write: impl FnMut(&[&Rows]) -> Vec<BatchResult>) -> usize {
        let mut given_up = 0;
        self.due = None;
        while !self.waiting.is_empty() {
            let group: Vec<_> = self.waiting.drain(..self.waiting.len().min(MAX_GROUP_BATCHES)).collect();
            let hows = write(&group.iter().map(|waiting| &waiting.rows).collect::<Vec<_>>());
            let mut left = Vec::new();
            for (waiting, how) in group.into_iter().zip(hows) {
                match how {
                    Err(UnwrittenBatch { passes: true, .. }) if now < waiting.until => {
                        left.push(waiting);
                        continue;
                    }
                    Err(UnwrittenBatch { why, .. }) => {
                        given_up += 1;
                        self.bytes -= waiting.bytes;
                        waiting.finish(Err(why));
                    }
                    Ok(()) => {
                        self.bytes -= waiting.bytes;
                        waiting.finish(Ok(()));
                    }
                }
            }
            if !left.is_empty() {
                left.into_iter().rev().for_each(|waiting| self.waiting.push_front(waiting));
                // The fault lasts; the others would meet it, too.
                self.due = Some(now + RETRY_PAUSE);
                return given_up;
            }
        }
        given_up
    }

    /// The last try, as the store is dropped.
    pub(crate) fn end(mut self, now: Instant, write: impl FnMut(&[&Rows]) -> Vec<BatchResult>) {
        self.waiting.iter_mut().for_each(|waiting| waiting.until = now);
        let given_up = self.try_again(now, write);
        if given_up > 0 {
            // Whoever counts what is lost may be gone by now.
            tracing::error!(
                "security.hook.audit_write_failed: {given_up} batches of records were lost as the store was closed"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use pintle_domain::id::TurnId;
    use pintle_domain::record::EventRecord;
    use pintle_testkit::conformance::store::event;

    use super::*;
    use crate::db::Dialect;
    use crate::sealing::StoreKeys;

    /// The outcomes of batches, by their number.
    type Told = Arc<Mutex<Vec<(usize, Result<(), StoreError>)>>>;

    struct Stage {
        backlog: Backlog,
        told: Told,
        now: Instant,
    }

    fn passing() -> UnwrittenBatch {
        UnwrittenBatch { why: StoreError::Unavailable("it is locked".into()), passes: true }
    }

    fn rows(records: &[EventRecord]) -> Rows {
        Rows::of_records(records, &StoreKeys::default(), Dialect::Sqlite).unwrap()
    }

    impl Stage {
        fn new() -> Self {
            Self { backlog: Backlog::default(), told: Told::default(), now: Instant::now() }
        }

        fn put(&mut self, number: usize, records: &[EventRecord]) -> bool {
            let told = self.told.clone();
            let done = Box::new(move |how| told.lock().unwrap().push((number, how)));
            let batch = Batch::records(Vec::new(), done).patient(None);
            self.backlog.put(batch, rows(records), &passing().why, self.now).is_ok()
        }

        fn told(&self) -> Vec<(usize, Result<(), StoreError>)> {
            std::mem::take(&mut self.told.lock().unwrap())
        }
    }

    #[test]
    fn what_a_fault_kept_away_is_written_in_its_order_once_that_has_passed() {
        let mut stage = Stage::new();
        assert_eq!(stage.backlog.due_in(stage.now), None);
        let all = MAX_GROUP_BATCHES + 3;
        assert!((0..all).all(|number| stage.put(number, &[])));
        assert_eq!(stage.backlog.due_in(stage.now), Some(RETRY_PAUSE));
        assert!(!stage.backlog.is_due(stage.now));

        stage.now += RETRY_PAUSE;
        assert!(stage.backlog.is_due(stage.now));
        let mut tries = Vec::new();
        stage.backlog.try_again(stage.now, |rows| {
            tries.push(rows.len());
            rows.iter().map(|_| Err(passing())).collect()
        });
        assert_eq!(tries, [MAX_GROUP_BATCHES], "one group finds out for all");
        assert_eq!((stage.told(), stage.backlog.due_in(stage.now)), (vec![], Some(RETRY_PAUSE)));

        stage.now += RETRY_PAUSE;
        assert_eq!(stage.backlog.try_again(stage.now, |rows| rows.iter().map(|_| Ok(())).collect()), 0);
        assert_eq!(stage.told(), (0..all).map(|number| (number, Ok(()))).collect::<Vec<_>>());
        assert_eq!((stage.backlog.due_in(stage.now), stage.backlog.bytes), (None, 0));
    }

    #[test]
    fn what_lasts_too_long_or_cannot_pass_is_given_up() {
        let mut stage = Stage::new();
        let lasting = || UnwrittenBatch::from(StoreError::Conflict("no".into()));
        stage.put(0, &[]);
        stage.put(1, &[]);
        stage.now += RETRY_TIME / 2;
        stage.put(2, &[]);
        let given_up = stage.backlog.try_again(stage.now, |_| vec![Err(passing()), Err(lasting()), Err(passing())]);
        assert_eq!((given_up, stage.told()), (1, vec![(1, Err(lasting().why))]));
        stage.now += RETRY_TIME / 2;
        assert_eq!(stage.backlog.try_again(stage.now, |rows| rows.iter().map(|_| Err(passing())).collect()), 1);
        assert_eq!(stage.told(), vec![(0, Err(passing().why))]);
        let Stage { backlog, told, now } = stage;
        backlog.end(now, |rows| rows.iter().map(|_| Err(passing())).collect());
        assert_eq!(*told.lock().unwrap(), vec![(2, Err(passing().why))], "the end of the store waits for nothing");
    }

    #[test]
    fn what_waits_is_bounded_by_its_number_and_by_its_bytes() {
        let mut stage = Stage::new();
        assert!((0..BACKLOG_BATCHES).all(|number| stage.put(number, &[])));
        assert!(!stage.put(BACKLOG_BATCHES, &[]));

        let mut stage = Stage::new();
        let mut large = event(&TurnId::fresh());
        large.ruling.text = Some("x".repeat(BACKLOG_BYTES / 2));
        assert!(stage.put(0, std::slice::from_ref(&large)));
        assert!(!stage.put(1, &[large]), "two of them and their names are more");
        assert!(stage.put(2, &[]));
        stage.backlog.try_again(stage.now, |rows| rows.iter().map(|_| Ok(())).collect());
        assert_eq!(stage.backlog.bytes, 0);
    }
}
