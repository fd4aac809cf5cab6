//! The port that every way of running a hook implements.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use domain::account::Answered;
use domain::checkpoint::{Known, Notice, Subject};
use domain::id::{EventId, TenantId};
use domain::identity::Identity;
use futures_util::future::BoxFuture;
use tokio_util::sync::CancellationToken;

use crate::handlers::agent::Kept;

/// Runs a hook: carries the question out and the answer back, decides nothing.
pub trait Handler: Send + Sync {
    /// Asks and waits, at most until the deadline of `call`.
    fn ask<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, Answered>;

    /// Tells, never waits. `false` when there was no room and the notice was dropped and counted.
    fn tell(&self, notice: &Arc<Notice>) -> bool;

    /// Tells what a store kept of it, as [`Handler::tell`] would have told it; `false` for handlers of which nothing is
    /// kept.
    fn resume(&self, _kept: Kept) -> bool {
        false
    }

    /// Waits until there is room for something to be told in a turn of `tenant`, but not for long.
    fn room<'a>(&'a self, _tenant: &'a TenantId) -> BoxFuture<'a, ()> {
        Box::pin(async {})
    }

    /// No new calls; ends what runs for this handler, within its own bounds.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// One question to one hook.
#[derive(Clone, Copy)]
pub struct Call<'a> {
    /// Which occurrence.
    pub event_id: &'a EventId,
    /// Whose.
    pub who: &'a Identity,
    /// What is asked.
    pub subject: Subject<'a>,
    /// How long the answer may take.
    pub timeout: Duration,
    /// How long everyone who is still to be asked may take, where they share a time; else the same as `timeout`.
    pub budget: Duration,
    /// Whether this is the second question of the event.
    pub again: bool,
    /// Set when the turn is ending.
    pub cancel: &'a CancellationToken,
    /// What is known of the agent.
    pub known: &'a dyn Known,
    /// The rendering of `subject` that hooks of one chain share.
    pub wire: &'a WireCache,
}

/// Where a family keeps its rendering of the subject, so that five hooks on one checkpoint cost one
/// serialisation. The dispatcher empties it whenever a hook changed the subject.
#[derive(Default)]
pub struct WireCache {
    process: OnceLock<Bytes>,
    agent: OnceLock<Bytes>,
    tap: Option<OnceLock<String>>,
}

impl WireCache {
    /// A cache that also keeps the answer as it came, for a rehearsal.
    pub fn tapped() -> Self {
        Self { tap: Some(OnceLock::new()), ..Self::default() }
    }

    /// The rendering that was sent, if the question crossed a wire.
    pub fn sent(&self) -> Option<&Bytes> {
        self.process.get().or_else(|| self.agent.get())
    }

    /// The answer as it came, if this cache keeps it and one came.
    pub fn came(&self) -> Option<&str> {
        self.tap.as_ref()?.get().map(String::as_str)
    }

    /// Keeps the answer that `text` writes, if this cache keeps answers; the first one stays.
    pub(crate) fn keep_answer(&self, text: impl FnOnce() -> String) {
        if let Some(tap) = &self.tap {
            tap.get_or_init(text);
        }
    }

    /// The rendering for stored hooks, made by `render` on first use.
    pub fn agent(&self, render: impl FnOnce() -> Vec<u8>) -> Bytes {
        self.agent.get_or_init(|| Bytes::from(render())).clone()
    }

    /// The rendering for process hooks, made by `render` on first use.
    pub fn process(&self, render: impl FnOnce() -> Vec<u8>) -> Bytes {
        self.process.get_or_init(|| Bytes::from(render())).clone()
    }
}
