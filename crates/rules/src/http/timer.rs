//! Time that passes while a hook is asked.

use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::time::Instant;

use pintle_engine::deadlines::Deadlines;

/// Waits. Tests bring one that need not.
pub trait Timer: Send + Sync {
    /// Now, for measuring.
    fn now(&self) -> std::time::Instant;

    /// Comes back after `duration`.
    fn wait(&self, duration: Duration) -> BoxFuture<'_, ()>;
}

impl Timer for Deadlines {
    fn now(&self) -> std::time::Instant {
        Instant::now().into_std()
    }

    fn wait(&self, duration: Duration) -> BoxFuture<'_, ()> {
        Box::pin(self.at(Instant::now() + duration))
    }
}
