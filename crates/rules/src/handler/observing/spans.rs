//! What the pool tells of its runs: circuit breakers, and whoever measures the host.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use pintle_domain::id::TenantId;
use pintle_domain::record::{Record, counted};

use super::ObserverPool;
use super::telling::Telling;
use crate::handler::BoundRule;
use pintle_engine::telemetry::Tracer;

impl ObserverPool {
    /// Lets `tracer` hear of every run. The first one stays.
    pub fn trace_by(&self, tracer: Arc<Tracer>) {
        // A second one would tell each run twice.
        drop(self.tracer.set(tracer));
    }

    /// Lets the circuit breaker hear of one run, and whoever measures the host.
    pub(super) fn count(&self, about: &BoundRule, telling: &Telling, record: &Record) {
        self.trace(telling, record);
        let what = counted(&about.hook, std::iter::once(record));
        let outcomes = self.outcomes.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let (Some(what), Some(outcomes)) = (what, outcomes) {
            outcomes.took(&telling.who, &about.hook, what);
        }
    }

    /// A run came to its end just now.
    pub(super) fn trace(&self, telling: &Telling, record: &Record) {
        let Some(tracer) = self.tracer.get() else { return };
        let (now, took) = (Timestamp::now(), pintle_domain::span::time_of(record).unwrap_or(Duration::ZERO));
        let took = SignedDuration::try_from(took).unwrap_or_default();
        tracer.ran(&telling.record(), record, now.checked_sub(took).unwrap_or(now));
    }

    /// A job of `tenant` was given up.
    pub(super) fn trace_dropped(&self, about: &BoundRule, tenant: &TenantId) {
        if let Some(tracer) = self.tracer.get() {
            tracer.dropped(tenant, about.handler().word());
        }
    }
}
