//! What is told of a store that does not answer: that it begins, a line a minute as long as it lasts, and that it is over.
//! Everything that asks the store meets it, some of it many times a second.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use pintle_domain::store::StoreError;

/// How often a line is told while it lasts: seen by whoever looks, and no flood.
const TOLD_EVERY: Duration = Duration::from_secs(60);

/// How long nothing may fail until it is over: where only some calls fail, others do not say that it is.
const QUIET: Duration = Duration::from_secs(5);

/// Of the store of this process.
static STORE: Mutex<Outage> = Mutex::new(Outage { at: None });

/// Whether the store answers.
#[derive(Debug)]
struct Outage {
    at: Option<Failing>,
}

#[derive(Debug)]
struct Failing {
    since: Instant,
    /// When a call failed last.
    last: Instant,
    /// When a line was told last.
    told: Instant,
    /// How many calls failed since.
    quiet: u64,
}

/// What is to be told.
#[derive(Debug, PartialEq, Eq)]
enum Told {
    Began,
    Lasts { failed: u64, for_s: u64 },
    Over { for_s: u64 },
}

impl Outage {
    fn failed(&mut self, now: Instant) -> Option<Told> {
        let Some(at) = &mut self.at else {
            self.at = Some(Failing { since: now, last: now, told: now, quiet: 0 });
            return Some(Told::Began);
        };
        (at.last, at.quiet) = (now, at.quiet + 1);
        if now.duration_since(at.told) < TOLD_EVERY {
            return None;
        }
        at.told = now;
        let failed = std::mem::take(&mut at.quiet);
        Some(Told::Lasts { failed, for_s: now.duration_since(at.since).as_secs() })
    }

    fn answered(&mut self, now: Instant) -> Option<Told> {
        let at = self.at.take_if(|at| now.duration_since(at.last) >= QUIET)?;
        Some(Told::Over { for_s: now.duration_since(at.since).as_secs() })
    }
}

/// A call of the store failed because it does not answer, for the reason `why`.
pub(crate) fn failed(why: &impl std::fmt::Display) {
    let told = STORE.lock().unwrap_or_else(PoisonError::into_inner).failed(Instant::now());
    match told {
        Some(Told::Began) => tracing::error!("gateway.store_unavailable: {why}"),
        Some(Told::Lasts { failed, for_s }) => {
            tracing::error!(failed, for_s, "gateway.store_unavailable: it still does not answer: {why}");
        }
        Some(Told::Over { .. }) | None => tracing::debug!("the store does not answer: {why}"),
    }
}

/// The store could not do something, which `what` says.
pub(crate) fn told(error: &StoreError, what: &str) {
    match error {
        StoreError::Unavailable(_) => failed(error),
        StoreError::Corrupt(_) | StoreError::NotFound(_) | StoreError::Conflict(_) => {
            tracing::warn!("{what}: {error}");
        }
    }
}

/// The store answered.
pub(crate) fn answered() {
    let told = STORE.lock().unwrap_or_else(PoisonError::into_inner).answered(Instant::now());
    if let Some(Told::Over { for_s }) = told {
        tracing::warn!(for_s, "gateway.store_available: the store answers again");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_is_told_at_its_ends_and_once_a_minute() {
        let (began, mut outage) = (Instant::now(), Outage { at: None });
        let at = |ms: u64| began + Duration::from_millis(ms);
        assert_eq!(outage.answered(at(0)), None);
        assert_eq!(outage.failed(at(0)), Some(Told::Began));
        let told: Vec<Told> = (1..=480).filter_map(|number| outage.failed(at(number * 250))).collect();
        let lasts = |for_s| Told::Lasts { failed: 240, for_s };
        assert_eq!(told, [lasts(60), lasts(120)]);
        assert_eq!(outage.answered(at(121_000)), None, "others may still fail");
        assert_eq!(outage.answered(at(126_000)), Some(Told::Over { for_s: 126 }));
        assert_eq!((outage.answered(at(127_000)), outage.failed(at(128_000))), (None, Some(Told::Began)));
    }
}
