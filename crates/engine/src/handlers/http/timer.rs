//! Time that passes while a hook is asked.

use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;

/// Waits. Tests bring one that need not.
pub trait Timer: Send + Sync {
    /// Now, for measuring.
    fn now(&self) -> Instant;

    /// Comes back after `duration`.
    fn wait(&self, duration: Duration) -> BoxFuture<'_, ()>;
}

/// The runtime's timer.
#[derive(Clone, Copy, Debug, Default)]
pub struct TokioTimer;

impl Timer for TokioTimer {
    fn now(&self) -> Instant {
        tokio::time::Instant::now().into_std()
    }

    fn wait(&self, duration: Duration) -> BoxFuture<'_, ()> {
        Box::pin(tokio::time::sleep(duration))
    }
}
