//! Takes what happened to the store and to whoever watches.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use domain::checkpoint::Notice;
use domain::id::EventId;
use domain::record::{EventRecord, Ruled};
use domain::store::{Done, RecordQuery, RecordStore, StoreError, StoredEvent};
use domain::verdict::Word;
use tokio::sync::oneshot;

use crate::deadlines::{Deadlines, Elapsed};

/// How long a tool call waits for its clearing to be on disk: far above a slow disk, far below a person's patience.
const COMMIT_TIMEOUT: Duration = Duration::from_secs(5);

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
    lost: Arc<AtomicU64>,
    deadlines: Deadlines,
}

impl Evidence {
    /// Evidence that goes to `store`, and to `watchers` as it happens. Whoever waits for the store does so by
    /// `deadlines`.
    pub fn new(store: Arc<dyn RecordStore>, watchers: Vec<Arc<dyn Watcher>>, deadlines: Deadlines) -> Self {
        Self { store, watchers, lost: Arc::default(), deadlines }
    }

    /// How many records the store could not take.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Whether anybody watches events that no hook observes.
    pub(crate) fn is_watched(&self) -> bool {
        !self.watchers.is_empty()
    }

    pub(crate) fn noticed(&self, notice: &Notice) {
        self.watchers.iter().for_each(|watcher| watcher.noticed(notice));
    }

    /// Hands records over; they are written in batches, and counted if they cannot be.
    pub(crate) fn keep(&self, records: Vec<EventRecord>) {
        self.show(&records);
        let lost = self.lost.clone();
        self.store.keep(
            records,
            Box::new(move |kept| {
                if let Err(error) = kept {
                    lost.fetch_add(1, Ordering::Relaxed);
                    tracing::warn!("records were lost: {error}");
                }
            }),
        );
    }

    /// Writes the records of a call that may run, the decision last, and waits until they are as durable as the
    /// store promises. Watchers see them then.
    ///
    /// If they cannot be written, the call does not run: the decision is kept once more as a refusal with the text
    /// `refusal`, as far as the store can take it, and that is what watchers see.
    pub(crate) async fn commit(&self, records: Vec<EventRecord>, refusal: &str) -> Result<(), StoreError> {
        // Without watchers only the decision is needed again, and only if the others are lost.
        let from = if self.is_watched() { 0 } else { records.len().saturating_sub(1) };
        let mut written = records[from..].to_vec();
        let kept = self.write(records).await;
        let decision = if kept.is_err() { written.pop() } else { None };
        self.show(&written);
        if let Some(decision) = decision {
            let ruling = Ruled { text: Some(refusal.to_owned()), ..Ruled::word(Word::Deny) };
            // A record of its own: the store may have taken the first one, and only not said so in time.
            let (event_id, at) = (EventId::fresh(), jiff::Timestamp::now());
            self.keep(vec![EventRecord { event_id, at, ruling, ..decision }]);
        }
        kept
    }

    async fn write(&self, records: Vec<EventRecord>) -> Result<(), StoreError> {
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

    pub(crate) fn show(&self, records: &[EventRecord]) {
        for watcher in &self.watchers {
            records.iter().for_each(|record| watcher.recorded(record));
        }
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
