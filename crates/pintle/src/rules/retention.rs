//! What is kept of hooks, and for how long.

use std::sync::Arc;
use std::time::Duration;

use domain::store::ExecutionStore as _;
use jiff::SignedDuration;
use store::Store;
use tokio_util::sync::CancellationToken;

use crate::config::Config;

/// How long what is kept of hooks is kept.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    rows: SignedDuration,
    details: SignedDuration,
}

impl Terms {
    pub(super) fn of(config: &Config) -> Self {
        let days = |days: u32| SignedDuration::from_hours(i64::from(days) * 24);
        let hooks = &config.agent_hooks;
        Self {
            rows: days(hooks.retention_days.unwrap_or(RETENTION_DAYS)),
            details: days(hooks.error_detail_days.unwrap_or(DETAIL_DAYS)),
        }
    }
}

/// How long executions are kept. Source: agent hooks, retention.
const RETENTION_DAYS: u32 = 90;
/// How long the details of faults are kept. Source: the same.
const DETAIL_DAYS: u32 = 30;
/// How often it is looked for what is too old: what is kept an hour longer harms nobody.
const FORGET_EVERY: Duration = Duration::from_secs(3600);
/// How much is forgotten at a time, in rows: a pause of milliseconds for those who write.
const FORGET_ROWS: usize = 500;

/// Forgets what is too old, some at a time, until it is cancelled.
pub(super) async fn forget_old(store: Arc<Store>, terms: Terms, cancel: CancellationToken) {
    loop {
        let forgetful = store.clone();
        let forgotten = tokio::task::spawn_blocking(move || {
            let now = jiff::Timestamp::now();
            forgetful.forget(now - terms.rows, now - terms.details, FORGET_ROWS)
        });
        let more = match forgotten.await {
            Ok(Ok(rows)) => rows >= FORGET_ROWS,
            Ok(Err(error)) => {
                tracing::warn!("old executions could not be forgotten: {error}");
                false
            }
            Err(_) => return,
        };
        let pause = if more { Duration::from_millis(10) } else { FORGET_EVERY };
        tokio::select! {
            () = cancel.cancelled() => return,
            () = tokio::time::sleep(pause) => {}
        }
    }
}
