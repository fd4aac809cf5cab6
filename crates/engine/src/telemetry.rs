//! Tells whoever measures the host what hooks did: spans as they end, and observers that were not told.
//!
//! A host that nobody measures has no [`Tracer`], and then nothing here is done.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use pintle_domain::checkpoint::Notice;
use pintle_domain::hook::Family;
use pintle_domain::id::TenantId;
use pintle_domain::record::{EventRecord, HookOutcome, NotRun, Record};
use pintle_domain::span::{OpenSpans, Span, of_hook};

/// Takes what is measured. Must not block: it is told in the middle of turns.
pub trait Telemetry: Send + Sync {
    /// These are over.
    fn spans(&self, spans: Vec<Span>);
    /// An observer of `tenant`, run as `handler_type` says, was not told for want of room.
    fn dropped(&self, tenant: &TenantId, handler_type: &'static str);
}

/// Makes spans of what happens in one host.
pub struct Tracer {
    traces: Mutex<OpenSpans>,
    to: Arc<dyn Telemetry>,
}

impl Tracer {
    /// One that tells `to`.
    pub fn new(to: Arc<dyn Telemetry>) -> Self {
        Self { traces: Mutex::default(), to }
    }

    /// Tells what is still open, once nothing happens any more.
    pub fn finish(&self) {
        let left = self.traces().finish(Timestamp::now());
        self.tell(left);
    }

    /// Observers were told of something.
    pub(crate) fn noticed(&self, notice: &Notice) {
        let over = self.traces().noticed(notice);
        self.tell(over);
    }

    /// The hooks of `events` were asked, one after the other from `began`.
    pub(crate) fn concluded(&self, began: Timestamp, events: &[EventRecord]) {
        let over = self.traces().concluded(began, events);
        self.tell(over);
    }

    /// Observers of `event` were told, or not.
    pub(crate) fn told(&self, event: &EventRecord) {
        let dropped = |record: &&Record| record.outcome == HookOutcome::NotRun(NotRun::Dropped);
        for record in event.hooks.whole().filter(dropped) {
            self.ran(event, record, event.at);
            match record.family {
                // Whoever had no room for it counts it.
                Family::Rule => {}
                Family::Native | Family::Process | Family::Command | Family::Skill => {
                    self.dropped(&event.who.tenant_id, record.family.word());
                }
            }
        }
    }

    /// A hook that nobody waits for ran from `began` on.
    pub fn ran(&self, event: &EventRecord, record: &Record, began: Timestamp) {
        self.tell(of_hook(event, record, began).into_iter().collect());
    }

    /// An observer was not told.
    pub fn dropped(&self, tenant: &TenantId, handler_type: &'static str) {
        self.to.dropped(tenant, handler_type);
    }

    fn tell(&self, spans: Vec<Span>) {
        if !spans.is_empty() {
            self.to.spans(spans);
        }
    }

    fn traces(&self) -> MutexGuard<'_, OpenSpans> {
        // A machine that panicked has lost a span at most.
        self.traces.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
