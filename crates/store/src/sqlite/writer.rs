//! The writing end of the file.

use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

use pintle_domain::record::EventRecord;
use pintle_domain::store::StoreError;
use rusqlite::Connection;

use super::checkpoints::Checkpoints;
use super::file::{self, Place};
use super::pending::Tail;
use crate::Durability;
use crate::db::Dialect;
use crate::lock_order::{RankedGuard, RankedMutex};
use crate::rows::audit::{Sealer, Signer, seal_all, unsealed};
use crate::rows::backlog::{Backlog, BatchResult, UnwrittenBatch};
use crate::rows::batch::tail::{self, TailRow};
use crate::rows::batch::{Batch, Rows, insert_all};
use crate::rows::group::{Ready, next_group};
use crate::sealing::StoreKeys;

/// Nothing is to be done while nothing comes; the length only keeps the wait a number.
const PATIENCE: Duration = Duration::from_secs(3600);

/// A transaction that took longer was on a disk that is slow or hangs. Whoever waits for such a one is to be able to
/// give up, which nobody can who writes in its own place.
const QUICK: Duration = Duration::from_millis(20);

/// How long a batch that is tried again waits for another process: longer than a commit of somebody who lives, and too
/// short to keep back who comes meanwhile.
const RETRY_WAIT: Duration = Duration::from_millis(100);

/// Writes: what others hand over, on a thread of its own, or what somebody waits for who finds it idle.
pub(super) struct Writer {
    place: Arc<Place>,
    connection: Connection,
    sealing: StoreKeys,
    sealer: Sealer,
    /// Where commits are not synced.
    checkpoints: Option<Checkpoints>,
    /// Whether the last transaction was.
    quick: bool,
    /// When the thread looks again although nothing came.
    looks: Option<Instant>,
    tail: Tail,
}

impl Writer {
    pub(super) fn new(place: Arc<Place>, connection: Connection, sealing: StoreKeys, durability: Durability) -> Self {
        let sealer = Sealer::new(Signer::of(&sealing));
        let checkpoints = match durability {
            Durability::Commit => Some(Checkpoints::default()),
            Durability::BeforeEffect => None,
        };
        Self { place, connection, sealing, sealer, checkpoints, quick: true, looks: None, tail: Tail::default() }
    }

    /// Writes what is handed over until the store is dropped and nothing waits.
    pub(super) fn run(writer: &RankedMutex<Self>, batches: &Receiver<Batch>) {
        let sealing = locked(writer).sealing.clone();
        let (mut ready, mut backlog) = (None, Backlog::default());
        loop {
            let group = match ready.take() {
                Some(group) => group,
                None => {
                    let now = Instant::now();
                    let patience = locked(writer).patience(now).min(backlog.due_in(now).unwrap_or(PATIENCE));
                    match next_group(batches, patience) {
                        Some(group) => Ready::of(group, &sealing, Dialect::Sqlite),
                        None => break,
                    }
                }
            };
            if group.is_empty() {
                locked(writer).tend();
            } else {
                let write = |rows: &[&Rows]| locked(writer).write(rows);
                ready = group.write(batches, (&sealing, Dialect::Sqlite), &mut backlog, write);
            }
            let now = Instant::now();
            if backlog.is_due(now) {
                backlog.try_again(now, |rows| locked(writer).write_again(rows));
            }
        }
        backlog.end(Instant::now(), |rows| locked(writer).write_again(rows));
        let mut last = locked(writer);
        last.fold();
        last.seal();
    }

    /// How long nothing is to be done if nothing comes.
    pub(super) fn patience(&mut self, now: Instant) -> Duration {
        let patience = self.due_in(now).unwrap_or(PATIENCE);
        self.looks = Some(now + patience);
        patience
    }

    /// How long until something is to be done if nothing comes.
    fn due_in(&self, now: Instant) -> Option<Duration> {
        self.sealer.due_in(now).into_iter().chain(self.tail.due_in(now)).min()
    }

    /// The writer, if whoever waits may write in its place: it does nothing now, and its disk is quick.
    pub(super) fn idle(writer: &RankedMutex<Self>) -> Option<RankedGuard<'_, Self>> {
        writer.try_lock().filter(|writer| writer.quick)
    }

    /// Writes `records` in the thread of the caller, unless somebody else has the file: nothing is written then.
    pub(super) fn write_here(&mut self, records: &[EventRecord]) -> Option<Result<(), StoreError>> {
        let rows = match Rows::of_records(records, &self.sealing, Dialect::Sqlite) {
            Ok(rows) => rows,
            Err(why) => return Some(Err(why)),
        };
        let place = self.place.clone();
        let turn = place.turn_if_free()?;
        self.wait_for_others(QUICK);
        let how = match self.tail_row(&rows) {
            Some(row) => self.append(turn, row),
            None => self.write_during(turn, &[&rows]).pop().unwrap_or(Ok(())),
        };
        self.wait_for_others(file::BUSY_TIMEOUT);
        match how {
            Err(UnwrittenBatch { passes: true, .. }) => None,
            how => Some(how.map_err(|unwritten| unwritten.why)),
        }
    }

    /// Whether the thread is to look again earlier than it means to.
    pub(super) fn is_needed_earlier(&self) -> bool {
        let now = Instant::now();
        self.due_in(now).is_some_and(|due| self.looks.is_none_or(|looks| now + due < looks))
    }

    /// Signs the chains that are due although nothing came. If that fails, they are signed when something comes.
    fn tend(&mut self) {
        let now = Instant::now();
        if self.tail.due_in(now) == Some(Duration::ZERO) {
            self.fold();
        }
        if self.sealer.due_in(now) != Some(Duration::ZERO) {
            return;
        }
        let place = self.place.clone();
        let turn = place.turn();
        let tended = self.place.check().is_ok()
            && file::transact(&mut self.connection, |db| self.sealer.tend(db, Instant::now())).is_ok();
        if !tended {
            self.sealer.forget();
        }
        drop(turn);
        self.anchor();
    }

    /// `rows` as a row of the tail, if that is where they are to go now.
    fn tail_row(&mut self, rows: &Rows) -> Option<TailRow> {
        // Where each commit is synced, a second one costs more than the first saves.
        let may = self.checkpoints.is_some() && self.place.check().is_ok() && self.tail.has_room(&self.connection);
        let known = &mut self.sealer.known;
        may.then(|| rows.as_tail(&mut |statement| known.is_new(statement))).flatten()
    }

    /// Commits a row of the tail.
    fn append(&mut self, turn: RankedGuard<'_, ()>, row: TailRow) -> BatchResult {
        let began = Instant::now();
        let appended = self.tail.append(&self.connection, row, began);
        drop(turn);
        self.quick = began.elapsed() <= QUICK;
        if !matches!(appended, Ok(true)) {
            self.sealer.forget();
        }
        match appended {
            Ok(true) => Ok(()),
            Ok(false) => Err(UnwrittenBatch { why: file::overtaken(self.place.path()), passes: true }),
            Err(failure) => Err(file::into_unwritten(failure, self.place.path())),
        }
    }

    /// Puts the tail where it belongs, also one that another process left, and leaves nothing of it behind. If that
    /// fails, it is tried again with whatever is written next, which fails with it.
    pub(super) fn fold(&mut self) {
        let place = self.place.clone();
        let turn = place.turn();
        let before = self.connection.total_changes();
        let folded = self.place.check().and_then(|()| {
            // A file of which nothing is to be moved is not locked for it.
            if let Ok(Some(folded)) = self.tail.settled(&self.connection) {
                return Ok(folded);
            }
            let fold = |db: &Connection| {
                let folded = self.tail.fold_all(db, &mut self.sealer)?;
                tail::wipe(db)?;
                Ok(folded)
            };
            file::transact(&mut self.connection, fold).map_err(|failure| file::into_error(failure, self.place.path()))
        });
        drop(turn);
        self.tail.folded(folded.as_ref().ok().copied());
        self.tail.is_wiped();
        match folded {
            Ok(_) => {
                self.written_since(before);
                self.anchor();
            }
            Err(why) => {
                self.sealer.forget();
                tracing::warn!("security.audit.tail_not_folded: {why}");
            }
        }
    }

    /// Takes note of what was written since there were `before` changes.
    fn written_since(&mut self, before: u64) {
        if let Some(checkpoints) = &mut self.checkpoints {
            checkpoints.written(self.connection.total_changes().saturating_sub(before), &self.place);
        }
    }

    /// The anchor knows what was signed, once it survives a loss of power.
    fn anchor(&mut self) {
        let signed = self.sealer.take_signed();
        if let Some(anchor) = self.sealing.anchor.as_ref().filter(|_| !signed.is_empty())
            && self.place.settle().is_ok()
        {
            anchor.signed(&signed);
        }
    }

    /// Signs whatever is not signed, as the store is dropped. One try: what stays unsigned is signed with what comes
    /// next.
    fn seal(&mut self) {
        let Some(signing) = Signer::of(&self.sealing) else { return };
        let _turn = self.place.turn();
        if self.place.check().is_err() {
            return;
        }
        let seal = |connection: &mut Connection| match unsealed(connection)?.as_slice() {
            [] => Ok(Vec::new()),
            chains => file::transact(connection, |db| seal_all(db, &signing, chains)),
        };
        match seal(&mut self.connection) {
            Ok(signed) => {
                if let Some(anchor) = self.sealing.anchor.as_ref().filter(|_| self.place.settle().is_ok()) {
                    anchor.signed(&signed);
                }
            }
            Err(failure) => {
                let why: StoreError = file::into_error(failure, self.place.path());
                tracing::warn!("security.audit.not_sealed: {why}");
            }
        }
    }

    /// One transaction for the whole group; says how it went for each batch. From here on no row can be refused for what
    /// is in it, only the file can fail.
    fn write(&mut self, rows: &[&Rows]) -> Vec<BatchResult> {
        let place = self.place.clone();
        self.write_during(place.turn(), rows)
    }

    /// The same for whoever has the turn to write.
    fn write_during(&mut self, turn: RankedGuard<'_, ()>, rows: &[&Rows]) -> Vec<BatchResult> {
        let began = Instant::now();
        let before = self.connection.total_changes();
        let committed = self.place.check().map_err(UnwrittenBatch::from).and_then(|()| {
            let write = |db: &Connection| {
                let folded = self.tail.fold(db, &mut self.sealer)?;
                Ok((folded, insert_all(db, rows, &|_, _| Ok(()), &mut self.sealer)?))
            };
            file::transact(&mut self.connection, write)
                .map_err(|failure| file::into_unwritten(failure, self.place.path()))
        });
        drop(turn);
        self.quick = began.elapsed() <= QUICK;
        self.written_since(before);
        self.tail.folded(committed.as_ref().ok().map(|(folded, _)| *folded));
        match committed {
            Ok((_, hows)) => {
                self.anchor();
                hows.into_iter().map(|how| how.map_err(UnwrittenBatch::from)).collect()
            }
            Err(UnwrittenBatch { why, passes }) => {
                self.sealer.forget();
                rows.iter().map(|_| Err(UnwrittenBatch { why: why.clone(), passes })).collect()
            }
        }
    }

    /// The same for batches that were tried before: they wait for nobody, as others may wait for them.
    fn write_again(&mut self, rows: &[&Rows]) -> Vec<BatchResult> {
        self.wait_for_others(RETRY_WAIT);
        let hows = self.write(rows);
        self.wait_for_others(file::BUSY_TIMEOUT);
        hows
    }

    /// How long another process is waited for that writes.
    fn wait_for_others(&self, time: Duration) {
        if let Err(error) = self.connection.busy_timeout(time) {
            // It waits as long as before, which is right, too.
            tracing::debug!("the file is waited for as before: {error}");
        }
    }
}

pub(super) fn locked(writer: &RankedMutex<Writer>) -> RankedGuard<'_, Writer> {
    // A panic has rolled its transaction back as it unwound, and with it what the sealer took note of.
    writer.lock_or(|panicked| panicked.sealer.forget())
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::mpsc::{Sender, channel, sync_channel};
    use std::thread;

    use pintle_testkit::conformance::audit::cleared;

    use super::*;
    use crate::keyring::signing::SigningKey;
    use crate::lock_order::LockRank;

    fn writer(folder: &Path, signed: bool) -> RankedMutex<Writer> {
        let path = folder.join("pintle.db");
        let (writing, _reading) = file::open(&path, Durability::BeforeEffect, None).unwrap();
        let signing = signed.then(|| Arc::new(SigningKey::open_or_create(folder).unwrap()));
        let sealing = StoreKeys { signing, ..StoreKeys::default() };
        let writer = Writer::new(Arc::new(Place::of(&path).unwrap()), writing, sealing, Durability::BeforeEffect);
        RankedMutex::new(LockRank::Writer, writer)
    }

    #[test]
    fn a_disk_that_was_slow_is_waited_for_elsewhere() {
        let folder = tempfile::tempdir().unwrap();
        let writer = writer(folder.path(), false);
        assert!(Writer::idle(&writer).is_some());
        locked(&writer).quick = false;
        assert!(Writer::idle(&writer).is_none());
        // Each transaction says it anew.
        assert!(locked(&writer).write(&[]).is_empty());
        let quick = locked(&writer).quick;
        assert_eq!(Writer::idle(&writer).is_some(), quick);
    }

    #[test]
    fn a_panic_leaves_a_writer_that_can_write_and_has_forgotten_what_it_knew() {
        let folder = tempfile::tempdir().unwrap();
        let writer = writer(folder.path(), true);
        locked(&writer).write_here(&cleared()).unwrap().unwrap();
        let panics = thread::scope(|scope| {
            let held = scope.spawn(|| {
                let _held = locked(&writer);
                panic!("in the middle of a transaction");
            });
            held.join()
        });
        assert!(panics.is_err() && Writer::idle(&writer).is_none(), "nobody writes in its place after a panic");
        assert_eq!(locked(&writer).sealer.due_in(Instant::now()), None, "the chains are looked up anew");
        locked(&writer).write_here(&cleared()).unwrap().unwrap();
        assert!(!writer.is_poisoned());
    }

    #[test]
    fn whoever_writes_in_place_waits_for_nobody_else() {
        let folder = tempfile::tempdir().unwrap();
        let writer = writer(folder.path(), false);
        let mut writer = locked(&writer);
        let place = writer.place.clone();
        let turn = place.turn();
        assert_eq!(writer.write_here(&cleared()), None, "another thread of this process writes");
        drop(turn);
        let other = Connection::open(folder.path().join("pintle.db")).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        assert_eq!(writer.write_here(&cleared()), None, "another process writes");
        other.execute_batch("COMMIT").unwrap();
        assert_eq!(writer.write_here(&cleared()), Some(Ok(())));
        let timeout: i64 = writer.connection.query_row("PRAGMA busy_timeout", [], |row| row.get(0)).unwrap();
        assert_eq!(timeout, file::BUSY_TIMEOUT.as_millis() as i64, "the thread itself can wait");
    }

    #[test]
    fn the_thread_is_told_of_what_is_to_be_signed_before_it_would_look() {
        let folder = tempfile::tempdir().unwrap();
        let writer = writer(folder.path(), true);
        let mut writer = locked(&writer);
        writer.patience(Instant::now());
        assert!(!writer.is_needed_earlier(), "nothing is to be signed");
        writer.write_here(&cleared()).unwrap().unwrap();
        assert!(writer.is_needed_earlier(), "a chain has grown");
        writer.patience(Instant::now());
        assert!(!writer.is_needed_earlier(), "it knows");
    }

    /// What somebody hears of a batch, or of its room.
    #[derive(Debug, PartialEq)]
    enum Heard {
        Room,
        Patient(bool),
        Awaited(bool),
    }

    /// Says so when it is given back.
    struct Space(Sender<Heard>);

    impl Drop for Space {
        fn drop(&mut self) {
            self.0.send(Heard::Room).expect("the test listens");
        }
    }

    /// A batch that can wait and one that cannot, handed over while another process has the file; then `work` is done
    /// with that process. What was heard, and how many events are there in the end.
    fn locked_out(work: impl FnOnce(&Connection, &Receiver<Heard>)) -> (Vec<Heard>, i64) {
        let folder = tempfile::tempdir().unwrap();
        let writer = writer(folder.path(), false);
        locked(&writer).wait_for_others(Duration::ZERO);
        let other = Connection::open(folder.path().join("pintle.db")).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let ((queue, batches), (say, hear)) = (sync_channel(2), channel());
        let rest = thread::scope(|scope| {
            let (patient, awaited) = (say.clone(), say.clone());
            let done = Box::new(move |how: Result<_, _>| patient.send(Heard::Patient(how.is_ok())).unwrap());
            queue.send(Batch::records(cleared(), done).patient(Some(Box::new(Space(say))))).unwrap();
            let done = Box::new(move |how: Result<_, _>| awaited.send(Heard::Awaited(how.is_ok())).unwrap());
            queue.send(Batch::records(cleared(), done)).unwrap();
            let writer = &writer;
            scope.spawn(move || Writer::run(writer, &batches));
            assert_eq!([hear.recv(), hear.recv()], [Ok(Heard::Room), Ok(Heard::Awaited(false))]);
            work(&other, &hear);
            drop(queue);
            hear.iter().collect()
        });
        let events = other.query_row("SELECT count(*) FROM events", [], |row| row.get(0)).unwrap();
        (rest, events)
    }

    #[test]
    fn who_waits_is_told_at_once_of_a_locked_file_and_who_does_not_is_written_later() {
        let all = cleared().len() as i64;
        let unlocked = locked_out(|other, hear| {
            other.execute_batch("COMMIT").unwrap();
            assert_eq!(hear.recv(), Ok(Heard::Patient(true)));
        });
        assert_eq!(unlocked, (vec![], all));
    }

    #[test]
    fn the_end_of_the_store_tries_once_more_and_then_says_no() {
        assert_eq!(locked_out(|_, _| {}), (vec![Heard::Patient(false)], 0));
        let unlocked = locked_out(|other, _| other.execute_batch("COMMIT").unwrap());
        assert_eq!(unlocked, (vec![Heard::Patient(true)], cleared().len() as i64));
    }

    #[test]
    fn what_was_written_after_all_is_not_written_again() {
        let folder = tempfile::tempdir().unwrap();
        let writer = writer(folder.path(), false);
        let mut writer = locked(&writer);
        let mut rows = Rows::of_records(&cleared(), &StoreKeys::default(), Dialect::Sqlite).unwrap();
        let count = |writer: &Writer| {
            let sql = "SELECT (SELECT count(*) FROM events) + 1000 * (SELECT count(*) FROM audit_log)";
            writer.connection.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap()
        };
        assert!(writer.write(&[&rows]).iter().all(Result::is_ok));
        let once = count(&writer);
        assert!(once > 1000, "{once}");
        rows.tried();
        assert!(writer.write_again(&[&rows]).iter().all(Result::is_ok));
        assert_eq!(count(&writer), once);
    }
}
