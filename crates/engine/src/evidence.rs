//! Takes what happened to the store and to whoever watches.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use futures_util::{FutureExt as _, poll};
use pintle_domain::checkpoint::Notice;
use pintle_domain::clearing::time_to_commit;
use pintle_domain::id::EventId;
use pintle_domain::identity::Identity;
use pintle_domain::llm::Usage;
use pintle_domain::record::{EventRecord, EventRuling};
use pintle_domain::store::{OnKept, RecordQuery, RecordStore, Room, StoreError, StoredEvent};
use pintle_domain::verdict::VerdictKind;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::oneshot;
use tokio::task::block_in_place;

use crate::deadlines::{Deadlines, Elapsed};
use crate::telemetry::Tracer;

mod late;

use late::AcknowledgementRace;

/// How long whoever asked hooks waits for room in a store that lags behind: longer than a burst lasts, and about as long
/// as a tool call waits. A store that has written nothing by then is broken, and agents go on without it.
const ROOM_TIMEOUT: Duration = Duration::from_secs(5);

/// Sees what happens while it happens: a timeline, a stream of events. Must not block.
pub trait Watcher: Send + Sync {
    /// Observers were told of something.
    fn noticed(&self, _notice: &Notice) {}
    /// A chain or a clearing has concluded.
    fn recorded(&self, _record: &EventRecord) {}
    /// A model gave no answer, and the next one is asked. Only watchers are told: the events that hooks hear of are a
    /// closed list, and this is none of them.
    fn switched(&self, _who: &Identity, _switch: &ModelSwitch<'_>) {}
    /// A model gave no answer, and is not asked again. Only watchers are told, for the same reason.
    fn model_failed(&self, _who: &Identity, _failure: &ModelFailure<'_>) {}
    /// A call of a model cost this, as its provider tells. Only watchers are told, right then: what hooks hear at the end
    /// of a turn is the sum, and only of a turn that completed.
    fn used(&self, _who: &Identity, _usage: Usage) {}
}

/// Another model in the place of one that gave no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelSwitch<'a> {
    /// The model that the request names.
    pub from: &'a str,
    /// The one that is asked now.
    pub to: &'a str,
    /// Why there was no answer so far.
    pub why: &'a str,
}

/// A model that gave no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelFailure<'a> {
    /// The model, as the configuration names it.
    pub model: &'a str,
    /// The class of what went wrong: a reason why trying again may help, `final`, or `unknown_model`.
    pub class: &'a str,
    /// In words, without the provider's key.
    pub why: &'a str,
    /// How long the provider asks to wait.
    pub retry_after: Option<Duration>,
}

/// The record of what hooks did.
pub struct Evidence {
    out: Out,
    watchers: Vec<Arc<dyn Watcher>>,
    deadlines: Deadlines,
    in_place: bool,
    tracer: Option<Arc<Tracer>>,
}

impl Evidence {
    /// Evidence that goes to `store`, and to `watchers` as it happens. Whoever waits for the store does so by
    /// `deadlines`.
    pub fn new(store: Arc<dyn RecordStore>, watchers: Vec<Arc<dyn Watcher>>, deadlines: Deadlines) -> Self {
        Self { out: Out { store, lost: LostCounter::default() }, watchers, deadlines, in_place: false, tracer: None }
    }

    /// This evidence, where a tool call that waits for its record writes it in its own thread where the store is idle,
    /// which saves two changes of thread. For hosts whose agents run on a runtime of many threads, and not in a
    /// [`LocalSet`](tokio::task::LocalSet): the other tasks of the thread go on in another one.
    #[must_use]
    pub fn writing_in_place(self) -> Self {
        Self { in_place: true, ..self }
    }

    /// This evidence, of which `tracer` hears, too.
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
        self.out.lost.so_far()
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

    pub(crate) fn switched(&self, who: &Identity, switch: &ModelSwitch<'_>) {
        self.watchers.iter().for_each(|watcher| watcher.switched(who, switch));
    }

    pub(crate) fn model_failed(&self, who: &Identity, failure: &ModelFailure<'_>) {
        self.watchers.iter().for_each(|watcher| watcher.model_failed(who, failure));
    }

    pub(crate) fn used(&self, who: &Identity, usage: Usage) {
        self.watchers.iter().for_each(|watcher| watcher.used(who, usage));
    }

    /// Hands records over as soon as the store has room for them, which is at once unless it lags behind. They are
    /// written in batches, later if a fault keeps them away that passes, and counted if they cannot be.
    pub(crate) async fn keep(&self, records: Vec<EventRecord>) {
        self.show(&records);
        let mut room = self.out.store.room(&records);
        // As a rule there is room, and then nobody looks at the clock.
        let room = match poll!(room.as_mut()) {
            Poll::Ready(room) => Ok(room),
            Poll::Pending => self.deadlines.within(ROOM_TIMEOUT, room).await,
        };
        match room {
            Ok(room) => self.out.hand_over(records, room),
            Err(Elapsed) => {
                let limit = ROOM_TIMEOUT.as_secs();
                self.out.lost.count(
                    records.len(),
                    &StoreError::Unavailable(format!("it had no room for more within {limit} s")),
                );
            }
        }
    }

    /// Keeps `records` for whoever cannot wait: what the store cannot take is lost. It takes its room all the same, so
    /// that those who can wait do; what comes without room is bounded by what the store lets wait in all.
    pub(crate) fn keep_now(&self, records: Vec<EventRecord>) {
        self.show(&records);
        self.out.keep_now(records);
    }

    /// Waits until the store has room for another record, but not for long. Before [`Self::keep_now`], where somebody
    /// can wait.
    pub(crate) async fn room(&self) {
        // Whoever waits in vain hears so when the record is handed over.
        drop(self.deadlines.within(ROOM_TIMEOUT, self.out.store.room(&[])).await);
    }

    /// Writes the records of a call that may run, the decision last, and waits until they are as durable as the
    /// store promises. Watchers see them then.
    ///
    /// The time for that is what the gates left of their budget. If they cannot be written, the call does not run: the
    /// decision is kept once more as a refusal with the text `refusal`, and that is what watchers see. What hooks did is
    /// true all the same, so their records are kept as those are that nobody waits for.
    ///
    /// # Errors
    /// They are not written, or not in time.
    pub async fn commit(&self, records: Vec<EventRecord>, refusal: &str) -> Result<(), StoreError> {
        let (mut left, late) = (records.clone(), Arc::default());
        let kept = self.write(records, &late).await;
        let decision = if kept.is_err() { left.pop() } else { None };
        self.show(&left);
        if let Some(decision) = decision {
            let ruling = EventRuling { text: Some(refusal.to_owned()), ..EventRuling::word(VerdictKind::Deny) };
            // A record of its own: the store may have taken the first one, and only not said so in time.
            let (event_id, at) = (EventId::fresh(), jiff::Timestamp::now());
            let refused = EventRecord { event_id, at, ruling, ..decision };
            self.show(std::slice::from_ref(&refused));
            let mut again = late.give_up(left);
            again.push(refused);
            self.out.keep_now(again);
        }
        kept
    }

    async fn write(&self, records: Vec<EventRecord>, late: &Arc<AcknowledgementRace>) -> Result<(), StoreError> {
        let limit = time_to_commit(&records);
        let records = match self.write_here(records) {
            Ok(kept) => {
                drop(late.hear(&kept));
                return kept;
            }
            Err(records) => records,
        };
        let (sender, kept) = oneshot::channel();
        let (hearing, out) = (late.clone(), self.out.clone());
        self.out.store.keep(
            records,
            Box::new(move |result| {
                let left = hearing.hear(&result);
                if !left.is_empty() {
                    out.keep_now(left);
                }
                // The waiting call may have given up; then nobody needs to know.
                drop(sender.send(result));
            }),
        );
        match self.deadlines.within(limit, kept).await {
            Ok(Ok(result)) => result,
            Ok(Err(_gone)) => {
                let gone = Err(StoreError::Unavailable("its writer is gone".into()));
                drop(late.hear(&gone));
                gone
            }
            Err(Elapsed) => {
                Err(StoreError::Unavailable(format!("nothing was written within {} ms", limit.as_millis())))
            }
        }
    }

    /// Writes them in this thread if the store is idle, and gives them back otherwise. Of several that come at once one
    /// does that; the others share a transaction.
    fn write_here(&self, records: Vec<EventRecord>) -> Result<Result<(), StoreError>, Vec<EventRecord>> {
        // A runtime of one thread has nothing else to go on with.
        let many = || Handle::try_current().is_ok_and(|runtime| runtime.runtime_flavor() == RuntimeFlavor::MultiThread);
        let idle = if self.in_place && many() { self.out.store.idle() } else { None };
        match idle {
            Some(idle) => block_in_place(|| idle.write(records)),
            None => Err(records),
        }
    }

    pub(crate) fn show(&self, records: &[EventRecord]) {
        for watcher in &self.watchers {
            records.iter().for_each(|record| watcher.recorded(record));
        }
    }
}

/// Where records go.
#[derive(Clone)]
struct Out {
    store: Arc<dyn RecordStore>,
    lost: LostCounter,
}

impl Out {
    fn keep_now(&self, records: Vec<EventRecord>) {
        let room = self.store.room(&records).now_or_never().unwrap_or_else(|| Box::new(()));
        self.hand_over(records, room);
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
}

/// Counts the evidence that a store could not take.
#[derive(Clone, Debug, Default)]
pub struct LostCounter(Arc<AtomicU64>);

impl LostCounter {
    /// How much it is by now.
    pub fn so_far(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// So much more could not be kept, since `why`.
    pub fn count(&self, number: usize, why: &StoreError) {
        if number == 0 {
            return;
        }
        self.0.fetch_add(number as u64, Ordering::Relaxed);
        tracing::warn!(lost = number, "security.hook.audit_write_failed: records were lost: {why}");
    }
}

/// A store that keeps nothing: for hosts that keep their own evidence through a [`Watcher`].
pub struct NullStore;

impl RecordStore for NullStore {
    fn keep(&self, _records: Vec<EventRecord>, done: OnKept) {
        done(Ok(()));
    }

    fn find(&self, _query: &RecordQuery) -> Result<Vec<StoredEvent>, StoreError> {
        Ok(Vec::new())
    }
}

#[cfg(test)]
mod tests;
