//! Stores that are slow, fail, or have time.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use futures_util::future::{join, join_all};
use pintle_domain::chain::GATE_BUDGET;
use pintle_domain::checkpoint::CheckpointKind;
use pintle_domain::id::TurnId;
use pintle_domain::record::HookOutcome;
use pintle_domain::store::{IdleStore, RoomSoon};
use pintle_testkit::conformance::store::{event, hook as hook_record};
use pintle_testkit::log::Log;
use tokio::sync::Semaphore;
use tokio::task::yield_now;

use super::*;

/// Batches that the store below has room for.
const ROOM: usize = 4;

/// Writes a batch when it is told to.
struct Slow {
    room: Arc<Semaphore>,
    queue: Mutex<VecDeque<(usize, OnKept)>>,
}

impl Slow {
    fn new() -> Arc<Self> {
        Arc::new(Self { room: Arc::new(Semaphore::new(ROOM)), queue: Mutex::default() })
    }

    fn waiting(&self) -> usize {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Writes the oldest batch, or fails to; says how many records it had.
    fn write(&self, how: Result<(), StoreError>) -> usize {
        let oldest = self.queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        oldest.map_or(0, |(records, done)| {
            done(how);
            records
        })
    }
}

impl RecordStore for Slow {
    fn keep(&self, records: Vec<EventRecord>, done: OnKept) {
        self.queue.lock().unwrap().push_back((records.len(), done));
    }

    fn room(&self, _records: &[EventRecord]) -> RoomSoon {
        let room = self.room.clone();
        Box::pin(async move { Box::new(room.acquire_owned().await.unwrap()) as Room })
    }

    fn find(&self, _query: &RecordQuery) -> Result<Vec<StoredEvent>, StoreError> {
        Ok(Vec::new())
    }
}

/// Fails in its own thread, and writes in the caller's.
struct Unoccupied;

impl RecordStore for Unoccupied {
    fn keep(&self, _records: Vec<EventRecord>, done: OnKept) {
        done(Err(StoreError::Unavailable("this was to be written in place".into())));
    }

    fn idle(&self) -> Option<Box<dyn IdleStore + '_>> {
        Some(Box::new(Self))
    }

    fn find(&self, _query: &RecordQuery) -> Result<Vec<StoredEvent>, StoreError> {
        Ok(Vec::new())
    }
}

impl IdleStore for Unoccupied {
    fn write(self: Box<Self>, records: Vec<EventRecord>) -> Result<Result<(), StoreError>, Vec<EventRecord>> {
        // Somebody else has the file where there is more than one record.
        if records.len() == 1 { Ok(Ok(())) } else { Err(records) }
    }
}

fn unoccupied() -> Evidence {
    Evidence::new(Arc::new(Unoccupied), Vec::new(), Deadlines::default())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn an_idle_store_is_written_in_place_if_the_host_says_so() {
    assert!(unoccupied().writing_in_place().commit(records(), "no").await.is_ok());
    assert!(unoccupied().commit(records(), "no").await.is_err());
    let two = [records(), records()].concat();
    let handed_over = unoccupied().writing_in_place().commit(two, "no").await.unwrap_err();
    assert!(handed_over.to_string().ends_with("this was to be written in place"), "{handed_over}");
}

#[tokio::test]
async fn a_runtime_of_one_thread_is_never_blocked() {
    assert!(unoccupied().writing_in_place().commit(records(), "no").await.is_err());
}

fn evidence(store: &Arc<Slow>) -> Evidence {
    Evidence::new(store.clone(), Vec::new(), Deadlines::default())
}

fn records() -> Vec<EventRecord> {
    vec![event(&TurnId::from("t"))]
}

/// Floods a store that does what `how` says with each batch: what it was handed, and the most that waited in it.
async fn flood(how: Result<(), StoreError>) -> (usize, usize, u64) {
    const FLOOD: usize = 200;
    let store = Slow::new();
    let evidence = evidence(&store);
    let (mut seen, mut most) = (0, 0);
    let writing = async {
        while seen < FLOOD {
            most = most.max(store.waiting());
            seen += store.write(how.clone());
            yield_now().await;
        }
    };
    join(join_all((0..FLOOD).map(|_| evidence.keep(records()))), writing).await;
    (seen, most, evidence.lost())
}

#[tokio::test]
async fn a_flood_waits_for_a_slow_store_and_nothing_is_lost() {
    assert_eq!(flood(Ok(())).await, (200, ROOM, 0));
}

#[tokio::test]
async fn who_cannot_wait_takes_room_from_those_who_can() {
    let store = Slow::new();
    let evidence = evidence(&store);
    // More than there is room for: it waits for nobody.
    (0..ROOM + 2).for_each(|_| evidence.keep_now(records()));
    assert_eq!((store.waiting(), evidence.lost()), (ROOM + 2, 0));
    let mut kept = Box::pin(evidence.keep(records()));
    assert!(kept.as_mut().now_or_never().is_none(), "there is no room");
    assert_eq!(store.write(Ok(())), 1);
    kept.await;
    assert_eq!((store.waiting(), evidence.lost()), (ROOM + 2, 0));
}

#[tokio::test]
async fn every_record_that_is_lost_is_counted() {
    let store = Slow::new();
    let evidence = evidence(&store);
    let three = || [records(), records(), records()].concat();
    evidence.keep(three()).await;
    store.write(Err(StoreError::Unavailable("its disk is full".into())));
    assert_eq!(evidence.lost(), 3);
    let failing = async {
        yield_now().await;
        store.write(Err(StoreError::Unavailable("its disk is full".into())))
    };
    let (kept, written) = join(evidence.commit(three(), "no"), failing).await;
    assert!(kept.is_err());
    // All of it is on its way, the decision as a refusal.
    assert_eq!((written, evidence.lost(), store.waiting()), (3, 3, 1));
    assert_eq!(store.write(Ok(())), 3);
    assert_eq!(evidence.lost(), 3);
}

/// A record of the gates of a call, which took `seconds` and let it pass.
fn cleared_in(seconds: u64) -> EventRecord {
    let took = Duration::from_secs(seconds);
    let said = HookOutcome::Said { word: VerdictKind::Continue, reason: None, took };
    EventRecord { hooks: [hook_record("gate", said)].into_iter().collect(), ..event(&TurnId::from("t")) }
}

/// Has a clearing of two records committed by a store that says nothing: how long that is waited for.
async fn waited(gates: EventRecord, store: &Arc<Slow>) -> Duration {
    let began = tokio::time::Instant::now();
    let kept = evidence(store).commit([vec![gates], records()].concat(), "no").await;
    let why = kept.unwrap_err().to_string();
    assert!(why.ends_with(&format!("nothing was written within {} ms", began.elapsed().as_millis())), "{why}");
    began.elapsed()
}

#[tokio::test(start_paused = true)]
async fn a_call_waits_for_its_record_as_long_as_its_gates_left_time() {
    for (spent, left) in [(0, 10), (4, 6), (9, 1), (10, 1), (12, 1)] {
        assert_eq!(waited(cleared_in(spent), &Slow::new()).await, Duration::from_secs(left), "{spent} s were spent");
    }
    let elsewhere = EventRecord { checkpoint: CheckpointKind::BeforeTool, ..cleared_in(9) };
    assert_eq!(waited(elsewhere, &Slow::new()).await, GATE_BUDGET, "only gates have that budget");
}

#[tokio::test(start_paused = true)]
async fn what_hooks_did_is_kept_once_whenever_the_store_speaks() {
    let failed = || Err(StoreError::Unavailable("its disk is full".into()));
    // Too late, and written after all: the refusal is all that comes behind it.
    let store = Slow::new();
    waited(cleared_in(0), &store).await;
    assert_eq!([store.write(Ok(())), store.write(Ok(())), store.write(Ok(()))], [2, 1, 0]);
    // Too late, and not written: what hooks did is handed over then.
    let store = Slow::new();
    waited(cleared_in(0), &store).await;
    assert_eq!([store.write(failed()), store.write(Ok(())), store.write(Ok(())), store.write(Ok(()))], [2, 1, 1, 0]);
}

#[tokio::test]
async fn the_log_says_how_much_was_lost_and_why() {
    let (log, _listening) = Log::begin();
    let store = Slow::new();
    evidence(&store).keep([records(), records()].concat()).await;
    store.write(Err(StoreError::Unavailable("its disk is full".into())));
    let line =
        "WARN security.hook.audit_write_failed: records were lost: the store is unavailable: its disk is full lost=2";
    assert_eq!(log.lines(), [line]);
}

#[tokio::test]
async fn room_comes_back_from_a_store_that_fails() {
    assert_eq!(flood(Err(StoreError::Unavailable("its disk is full".into()))).await, (200, ROOM, 200));
}

#[tokio::test(start_paused = true)]
async fn a_store_that_does_nothing_is_not_waited_for_for_ever() {
    let store = Slow::new();
    let evidence = evidence(&store);
    let began = tokio::time::Instant::now();
    join_all((0..ROOM + 3).map(|_| evidence.keep(records()))).await;
    assert_eq!((store.waiting(), evidence.lost()), (ROOM, 3));
    assert!(began.elapsed() >= ROOM_TIMEOUT);
    evidence.room().await;
    assert!(began.elapsed() >= 2 * ROOM_TIMEOUT);
    // The store comes back, and so does its room.
    assert_eq!((0..ROOM).map(|_| store.write(Ok(()))).sum::<usize>(), ROOM);
    let woken = tokio::time::Instant::now();
    evidence.keep(records()).await;
    assert_eq!((store.waiting(), evidence.lost(), woken.elapsed()), (1, 3, Duration::ZERO));
}
