//! What a hook's handle and its supervisor share.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use domain::fault::Fault;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use engine::deadlines::Deadlines;

use super::events::EventQueue;
use super::session::{LastingState, Session};
use super::spec::ProcessSpec;
use super::tally::Tally;
use crate::restart::worth_waiting;
use crate::stderr::Tail;

/// Whether there is a child to talk to.
#[derive(Clone, Debug)]
pub(super) enum Phase {
    /// A child is being started; the fault is what the last one ended in, if there was one.
    Starting(Option<Fault>),
    /// There is.
    Up(Arc<Session>),
    /// The last one ended in this fault; the next is due at that time.
    Down(Fault, Instant),
    /// There never will be again.
    Closed,
}

/// The state that a hook's handle and its supervisor share.
#[derive(Debug)]
pub(super) struct Inner {
    pub(super) spec: Arc<ProcessSpec>,
    pub(super) events: Arc<Mutex<EventQueue>>,
    pub(super) tally: Arc<Tally>,
    pub(super) tail: Arc<Tail>,
    pub(super) phase: watch::Sender<Phase>,
    /// The outcome of the first handshake.
    pub(super) first: watch::Sender<Option<Result<(), Fault>>>,
    /// Set when the hook is to be closed.
    pub(super) closing: CancellationToken,
    /// Set when nothing of it runs any more.
    pub(super) done: CancellationToken,
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
            phase: watch::Sender::new(Phase::Starting(None)),
            first: watch::Sender::new(None),
            closing: CancellationToken::new(),
            done: CancellationToken::new(),
            tracker,
            deadlines,
        }
    }

    pub(super) fn publish(&self, phase: Phase) {
        self.phase.send_replace(phase);
        if self.closing.is_cancelled() {
            self.tell_first(Err(closed()));
        }
    }

    /// A child passed its handshake.
    pub(super) fn rise(&self, session: Arc<Session>) {
        self.publish(Phase::Up(session));
        self.tell_first(Ok(()));
    }

    /// There is no child until `due`.
    pub(super) fn fall(&self, fault: &Fault, due: Instant) {
        self.publish(Phase::Down(fault.clone(), due));
        self.tell_first(Err(fault.clone()));
    }

    /// The next child is being started.
    pub(super) fn restarting(&self) {
        self.phase.send_modify(|phase| {
            if let Phase::Down(fault, _) = phase {
                *phase = Phase::Starting(Some(fault.clone()));
            }
        });
    }

    fn tell_first(&self, outcome: Result<(), Fault>) {
        self.first.send_if_modified(|first| {
            let fresh = first.is_none();
            first.get_or_insert(outcome);
            fresh
        });
    }

    pub(super) fn events(&self) -> MutexGuard<'_, EventQueue> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `session` is no longer the one to talk to, at most until `deadline`.
    pub(super) async fn leaves(&self, session: &Arc<Session>, deadline: Instant) {
        let mut phases = self.phase.subscribe();
        let left = phases.wait_for(|phase| !matches!(phase, Phase::Up(now) if Arc::ptr_eq(now, session)));
        if timeout_at(deadline, left).await.is_err() {
            tracing::debug!(hook = %self.spec.name, "a call's time is up before its child is gone");
        }
    }

    /// The child to talk to. Waits for one that is being started, or due before `deadline`.
    pub(super) async fn session(&self, deadline: Instant) -> Result<Arc<Session>, Option<Fault>> {
        if let Phase::Up(session) = &*self.phase.borrow() {
            return Ok(session.clone());
        }
        let mut phases = self.phase.subscribe();
        loop {
            let last = match &*phases.borrow_and_update() {
                Phase::Up(session) => return Ok(session.clone()),
                Phase::Closed => return Err(Some(closed())),
                Phase::Down(fault, due) if !worth_waiting(*due, deadline) => return Err(Some(fault.clone())),
                Phase::Down(fault, _) => Some(fault.clone()),
                Phase::Starting(last) => last.clone(),
            };
            match timeout_at(deadline, phases.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_gone)) => return Err(Some(closed())),
                Err(_elapsed) => return Err(last),
            }
        }
    }
}

/// The fault of a call to a hook that was closed.
fn closed() -> Fault {
    Fault::Unavailable { detail: "the hook is closed".into() }
}
