//! Takes what happened to the store and to whoever watches.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use domain::checkpoint::Notice;
use domain::id::EventId;
use domain::record::{EventRecord, Ruled};
use domain::store::{Done, RecordQuery, RecordStore, Room, StoreError, StoredEvent};
use domain::verdict::Word;
use futures_util::FutureExt as _;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::oneshot;
use tokio::task::block_in_place;

use crate::deadlines::{Deadlines, Elapsed};
use crate::telemetry::Tracer;

/// How long a tool call waits for its clearing to be on disk: far above a slow disk, far below a person's patience.
const COMMIT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long whoever asked hooks waits for room in a store that lags behind: longer than a burst lasts, and as long as a
/// tool call waits. A store that has written nothing by then is broken, and agents go on without it.
const ROOM_TIMEOUT: Duration = COMMIT_TIMEOUT;

/// Sees what happens while it happens: a timeline, a stream of events. Must not block.
pub trait Watcher: Send + Sync {
    /// Observers were told of something.
    fn noticed(&self, _notice: &Notice) {}
    /// A chain or a clearing has concluded.
    fn recorded(&self, _record: &EventRecord) {}
}

/// The record of what hooks did.
pub struct Evidence {
    store: Arc<dyn RecordStore>,
    watchers: Vec<Arc<dyn Watcher>>,
    lost: Lost,
    deadlines: Deadlines,
    in_place: bool,
    tracer: Option<Arc<Tracer>>,
}

impl Evidence {
    /// Evidence that goes to `store`, and to `watchers` as it happens. Whoever waits for the store does so by
    /// `deadlines`.
    pub fn new(store: Arc<dyn RecordStore>, watchers: Vec<Arc<dyn Watcher>>, deadlines: Deadlines) -> Self {
        Self { store, watchers, lost: Lost::default(), deadlines, in_place: false, tracer: None }
    }

    /// The same, and a tool call that waits for its record writes it in its own thread where the store is idle, which
    /// saves two changes of thread. For hosts whose agents run on a runtime of many threads, and not in a
    /// [`LocalSet`](tokio::task::LocalSet): the other tasks of the thread go on in another one.
    #[must_use]
    pub fn writing_in_place(self) -> Self {
        Self { in_place: true, ..self }
    }

    /// The same, and `tracer` hears of what happens, too.
    #[must_use]
    pub fn traced_by(self, tracer: Arc<Tracer>) -> Self {
        Self { tracer: Some(tracer), ..self }
    }

    /// Who makes spans of what happens, if anybody does.
    pub fn tracer(&self) -> Option<&Arc<Tracer>> {
        self.tracer.as_ref()
    }

    /// When the hooks are asked that are asked now, where somebody wants to know.
    pub(crate) fn moment(&self) -> Option<jiff::Timestamp> {
        self.tracer.as_ref().map(|_| jiff::Timestamp::now())
    }

    /// The hooks of `events` were asked from [`Self::moment`] on.
    pub(crate) fn concluded(&self, began: Option<jiff::Timestamp>, events: &[EventRecord]) {
        if let (Some(tracer), Some(began)) = (&self.tracer, began) {
            tracer.concluded(began, events);
        }
    }

    /// Observers of `events` were told, or not.
    pub(crate) fn told(&self, events: &[EventRecord]) {
        if let Some(tracer) = &self.tracer {
            events.iter().for_each(|event| tracer.told(event));
        }
    }

    pub(crate) fn deadlines(&self) -> &Deadlines {
        &self.deadlines
    }

    /// How many records the store could not take.
    pub fn lost(&self) -> u64 {
        self.lost.so_far()
    }

    /// Whether anybody watches events that no hook observes.
    pub(crate) fn is_watched(&self) -> bool {
        !self.watchers.is_empty() || self.tracer.is_some()
    }

    pub(crate) fn noticed(&self, notice: &Notice) {
        self.watchers.iter().for_each(|watcher| watcher.noticed(notice));
        if let Some(tracer) = &self.tracer {
            tracer.noticed(notice);
        }
    }

    /// Hands records over as soon as the store has room for them, which is at once unless it lags behind. They are
    /// written in batches, later if a fault keeps them away that passes, and counted if they cannot be.
    pub(crate) async fn keep(&self, records: Vec<EventRecord>) {
        self.show(&records);
        match self.deadlines.within(ROOM_TIMEOUT, self.store.room(&records)).await {
            Ok(room) => self.hand_over(records, room),
            Err(Elapsed) => {
                let limit = ROOM_TIMEOUT.as_secs();
                self.lost.count(
                    records.len(),
                    &StoreError::Unavailable(format!("it had no room for more within {limit} s")),
                );
            }
        }
    }

    /// The same for whoever cannot wait: what the store cannot take is lost. It takes its room all the same, so that
    /// those who can wait do; what comes without room is bounded by what the store lets wait in all.
    pub(crate) fn keep_now(&self, records: Vec<EventRecord>) {
        self.show(&records);
        let room = self.store.room(&records).now_or_never().unwrap_or_else(|| Box::new(()));
        self.hand_over(records, room);
    }

    /// Waits until the store has room for another record, but not for long. Before [`Self::keep_now`], where somebody
    /// can wait.
    pub(crate) async fn room(&self) {
        // Whoever waits in vain hears so when the record is handed over.
        drop(self.deadlines.within(ROOM_TIMEOUT, self.store.room(&[])).await);
    }

    fn hand_over(&self, records: Vec<EventRecord>, room: Room) {
        let (lost, number) = (self.lost.clone(), records.len());
        let done = move |kept| {
            if let Err(error) = kept {
                lost.count(number, &error);
            }
        };
        self.store.keep_patiently(records, room, Box::new(done));
    }

    /// Writes the records of a call that may run, the decision last, and waits until they are as durable as the
    /// store promises. Watchers see them then.
    ///
    /// If they cannot be written, the call does not run: the decision is kept once more as a refusal with the text
    /// `refusal`, as far as the store can take it, and that is what watchers see.
    ///
    /// # Errors
    /// They are not written, or not in time.
    pub async fn commit(&self, records: Vec<EventRecord>, refusal: &str) -> Result<(), StoreError> {
        // Without watchers only the decision is needed again, and only if the others are lost.
        let from = if !self.watchers.is_empty() { 0 } else { records.len().saturating_sub(1) };
        let (mut written, others) = (records[from..].to_vec(), records.len().saturating_sub(1));
        let kept = self.write(records).await;
        let decision = match &kept {
            Ok(()) => None,
            Err(why) => {
                self.lost.count(others, why);
                written.pop()
            }
        };
        self.show(&written);
        if let Some(decision) = decision {
            let ruling = Ruled { text: Some(refusal.to_owned()), ..Ruled::word(Word::Deny) };
            // A record of its own: the store may have taken the first one, and only not said so in time.
            let (event_id, at) = (EventId::fresh(), jiff::Timestamp::now());
            self.keep_now(vec![EventRecord { event_id, at, ruling, ..decision }]);
        }
        kept
    }

    async fn write(&self, records: Vec<EventRecord>) -> Result<(), StoreError> {
        let records = match self.write_here(records) {
            Ok(kept) => return kept,
            Err(records) => records,
        };
        let (sender, kept) = oneshot::channel();
        self.store.keep(
            records,
            Box::new(move |result| {
                // The waiting call may have given up; then nobody needs to know.
                drop(sender.send(result));
            }),
        );
        match self.deadlines.within(COMMIT_TIMEOUT, kept).await {
            Ok(Ok(result)) => result,
            Ok(Err(_gone)) => Err(StoreError::Unavailable("its writer is gone".into())),
            Err(Elapsed) => {
                let limit = COMMIT_TIMEOUT.as_secs();
                Err(StoreError::Unavailable(format!("nothing was written within {limit} s")))
            }
        }
    }

    /// Writes them in this thread if the store is idle, and gives them back otherwise. Of several that come at once one
    /// does that; the others share a transaction.
    fn write_here(&self, records: Vec<EventRecord>) -> Result<Result<(), StoreError>, Vec<EventRecord>> {
        // A runtime of one thread has nothing else to go on with.
        let many = || Handle::try_current().is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread);
        let idle = if self.in_place && many() { self.store.idle() } else { None };
        match idle {
            Some(idle) => Ok(block_in_place(|| idle.write(records))),
            None => Err(records),
        }
    }

    pub(crate) fn show(&self, records: &[EventRecord]) {
        for watcher in &self.watchers {
            records.iter().for_each(|record| watcher.recorded(record));
        }
    }
}

/// Counts the evidence that a store could not take.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lost(Arc<AtomicU64>);

impl Lost {
    /// How much it is by now.
    pub(crate) fn so_far(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// So much more could not be kept, since `why`.
    pub(crate) fn count(&self, number: usize, why: &StoreError) {
        if number == 0 {
            return;
        }
        self.0.fetch_add(number as u64, Ordering::Relaxed);
        tracing::warn!(lost = number, "security.hook.audit_write_failed: records were lost: {why}");
    }
}

/// A store that keeps nothing: for hosts that keep their own evidence through a [`Watcher`].
pub struct Forgetful;

impl RecordStore for Forgetful {
    fn keep(&self, _records: Vec<EventRecord>, done: Done) {
        done(Ok(()));
    }

    fn find(&self, _query: &RecordQuery) -> Result<Vec<StoredEvent>, StoreError> {
        Ok(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::sync::{Mutex, PoisonError};

    use domain::id::TurnId;
    use domain::store::{Idle, RoomSoon};
    use futures_util::future::{join, join_all};
    use testkit::conformance::store::event;
    use tokio::sync::Semaphore;
    use tokio::task::yield_now;

    use super::*;

    /// Batches that the store below has room for.
    const ROOM: usize = 4;

    /// Writes a batch when it is told to.
    struct Slow {
        room: Arc<Semaphore>,
        queue: Mutex<VecDeque<(usize, Done)>>,
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
        fn keep(&self, records: Vec<EventRecord>, done: Done) {
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
        fn keep(&self, _records: Vec<EventRecord>, done: Done) {
            done(Err(StoreError::Unavailable("this was to be written in place".into())));
        }

        fn idle(&self) -> Option<Box<dyn Idle + '_>> {
            Some(Box::new(Self))
        }

        fn find(&self, _query: &RecordQuery) -> Result<Vec<StoredEvent>, StoreError> {
            Ok(Vec::new())
        }
    }

    impl Idle for Unoccupied {
        fn write(self: Box<Self>, _records: Vec<EventRecord>) -> Result<(), StoreError> {
            Ok(())
        }
    }

    fn unoccupied() -> Evidence {
        Evidence::new(Arc::new(Unoccupied), Vec::new(), Deadlines::default())
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn an_idle_store_is_written_in_place_if_the_host_says_so() {
        assert!(unoccupied().writing_in_place().commit(records(), "no").await.is_ok());
        assert!(unoccupied().commit(records(), "no").await.is_err());
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
        // The decision, as a refusal, is on its way.
        assert_eq!((written, evidence.lost(), store.waiting()), (3, 5, 1));
        assert_eq!(store.write(Ok(())), 1);
        assert_eq!(evidence.lost(), 5);
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
}
