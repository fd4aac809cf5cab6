//! Those that work off what waits, and how many of them work for one tenant.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use pintle_domain::id::TenantId;

use super::{Job, ObserverPool};

impl ObserverPool {
    /// The next job for `worker`; where there is none, it is no longer counted.
    fn take(self: &Arc<Self>, worker: &mut Worker) -> Option<(Job, PoolSlot)> {
        let mut waiting = self.waiting();
        let Some((tenant, job)) = waiting.queue.take() else {
            waiting.workers -= 1;
            worker.left = true;
            drop(waiting);
            self.idle.notify_waiters();
            return None;
        };
        drop(waiting);
        self.left.notify_waiters();
        Some((job, PoolSlot { pool: self.clone(), tenant }))
    }
}

/// One that works off what waits.
pub(super) struct Worker {
    pool: Arc<ObserverPool>,
    /// Whether it is no longer counted.
    left: bool,
}

/// The place of one job among those that run.
struct PoolSlot {
    pool: Arc<ObserverPool>,
    tenant: TenantId,
}

impl Worker {
    /// One more, which is counted already.
    pub(super) fn new(pool: Arc<ObserverPool>) -> Self {
        Self { pool, left: false }
    }

    /// Works until nothing waits that it may do.
    pub(super) async fn work(mut self) {
        let pool = self.pool.clone();
        while let Some((job, seat)) = pool.take(&mut self) {
            // A worker that ended here would leave what waits behind.
            if AssertUnwindSafe(pool.tell(job)).catch_unwind().await.is_err() {
                tracing::error!("an observer's job panicked");
            }
            drop(seat);
        }
    }
}

/// However a job ends, its tenant may have another.
impl Drop for PoolSlot {
    fn drop(&mut self) {
        self.pool.waiting().queue.ended(&self.tenant);
    }
}

/// However a worker ends, another may take its place.
impl Drop for Worker {
    fn drop(&mut self) {
        if !self.left {
            self.pool.waiting().workers -= 1;
            self.pool.idle.notify_waiters();
        }
    }
}
