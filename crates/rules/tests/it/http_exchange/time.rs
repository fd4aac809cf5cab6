//! Time that stands still until it is told to move.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use pintle_engine::Clock;
use pintle_rules::http::{RETRY_AFTER, Timer};
use tokio::sync::watch;

/// The wait before a second attempt is over at once, and moves the clock by as much. Every other wait, which is a
/// deadline, lasts until the clock was moved beyond it by hand.
pub(crate) struct StillTime {
    start: Instant,
    passed: watch::Sender<Duration>,
    retries: Mutex<usize>,
}

/// 2026-11-22T12:00:00Z.
pub(crate) const WALL_S: i64 = 1_795_348_800;

impl StillTime {
    pub(crate) fn new() -> Arc<Self> {
        let passed = watch::Sender::new(Duration::ZERO);
        Arc::new(Self { start: Instant::now(), passed, retries: Mutex::default() })
    }

    pub(crate) fn pass(&self, by: Duration) {
        self.passed.send_modify(|passed| *passed += by);
    }

    /// How often a second attempt was waited for.
    pub(crate) fn retries(&self) -> usize {
        *self.retries.lock().unwrap()
    }
}

impl Timer for StillTime {
    fn now(&self) -> Instant {
        self.start + *self.passed.borrow()
    }

    fn wait(&self, duration: Duration) -> BoxFuture<'_, ()> {
        if duration == RETRY_AFTER {
            *self.retries.lock().unwrap() += 1;
            self.pass(duration);
            return Box::pin(std::future::ready(()));
        }
        let mut passed = self.passed.subscribe();
        let until = *passed.borrow() + duration;
        Box::pin(async move {
            passed.wait_for(|passed| *passed >= until).await.unwrap();
        })
    }
}

impl Clock for StillTime {
    fn now(&self) -> jiff::Timestamp {
        let wall = jiff::Timestamp::from_second(WALL_S).unwrap();
        wall + *self.passed.borrow()
    }
}
