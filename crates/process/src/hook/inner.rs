//! What a hook's handle and its supervisor share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pintle_domain::fault::Fault;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use pintle_engine::deadlines::Deadlines;

use super::events::EventQueue;
use super::session::{LastingState, Session};
use super::spec::ProcessSpec;
use super::tally::Tally;
use crate::stderr::Tail;
use crate::supervision::{Patience, Supervised};

/// The state that a hook's handle and its supervisor share.
#[derive(Debug)]
pub(super) struct Inner {
    pub(super) spec: Arc<ProcessSpec>,
    pub(super) events: Arc<Mutex<EventQueue>>,
    pub(super) tally: Arc<Tally>,
    pub(super) tail: Arc<Tail>,
    /// Whether there is a child to talk to.
    pub(super) child: Arc<Supervised<Arc<Session>, Fault>>,
    pub(super) tracker: TaskTracker,
    pub(super) deadlines: Deadlines,
}

impl Inner {
    /// The state that each of its children begins with.
    pub(super) fn lasting(&self) -> LastingState {
        LastingState {
            spec: self.spec.clone(),
            events: self.events.clone(),
            tally: self.tally.clone(),
            deadlines: self.deadlines.clone(),
        }
    }

    /// A hook whose first child is about to be started.
    pub(super) fn new(spec: ProcessSpec, tracker: TaskTracker, deadlines: Deadlines) -> Self {
        Self {
            events: Arc::new(Mutex::new(EventQueue::new(spec.observer_timeout))),
            spec: Arc::new(spec),
            tally: Arc::default(),
            tail: Arc::default(),
            child: Arc::new(Supervised::new(Fault::Unavailable { cause: "the hook is closed".into() })),
            tracker,
            deadlines,
        }
    }

    pub(super) fn events(&self) -> MutexGuard<'_, EventQueue> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `session` is no longer the one to talk to, at most until `deadline`.
    pub(super) async fn leaves(&self, session: &Arc<Session>, deadline: Instant) {
        if !self.child.gone(|now| Arc::ptr_eq(now, session), deadline).await {
            tracing::debug!(hook = %self.spec.name, "a call's time is up before its child is gone");
        }
    }

    /// The child to talk to. Waits for the first one to shake hands; where one did, for the next that is due before
    /// `deadline`.
    pub(super) async fn session(&self, deadline: Instant) -> Result<Arc<Session>, Option<Fault>> {
        self.child.reach(deadline, Patience::OnceUp).await
    }
}
