//! The port that every way of running a hook implements.

use std::any::Any;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use pintle_domain::account::HandlerAnswer;
use pintle_domain::checkpoint::{AgentInfo, Notice, Subject};
use pintle_domain::hook::Family;
use pintle_domain::id::{EventId, TenantId};
use pintle_domain::identity::Identity;
use tokio_util::sync::CancellationToken;

/// Runs a hook: carries the question out and the answer back, decides nothing.
///
/// It is [`Any`], so that whoever mounted a handler of its own kind finds it again among those in force.
pub trait Handler: Any + Send + Sync {
    /// Asks and waits, at most until the deadline of `call`.
    fn ask<'a>(&'a self, call: HookCall<'a>) -> BoxFuture<'a, HandlerAnswer>;

    /// Tells, never waits. `false` when there was no room and the notice was dropped and counted.
    fn tell(&self, notice: &Arc<Notice>, views: &NoticeViews) -> bool;

    /// Waits until there is room for something to be told in a turn of `tenant`, but not for long.
    fn room<'a>(&'a self, _tenant: &'a TenantId) -> BoxFuture<'a, ()> {
        Box::pin(async {})
    }

    /// No new calls; ends what runs for this handler, within its own bounds.
    fn close(&self) -> BoxFuture<'_, ()>;
}

/// One question to one hook.
#[derive(Clone, Copy)]
pub struct HookCall<'a> {
    /// Which occurrence.
    pub event_id: &'a EventId,
    /// The identity of the turn that the event belongs to.
    pub who: &'a Identity,
    /// The subject that is asked about.
    pub subject: Subject<'a>,
    /// How long the answer may take.
    pub timeout: Duration,
    /// How long everyone who is still to be asked may take, where they share a time; else the same as `timeout`.
    pub budget: Duration,
    /// Whether this is the second question of the event.
    pub again: bool,
    /// Set when the turn is ending.
    pub cancel: &'a CancellationToken,
    /// The knowledge about the agent.
    pub known: &'a dyn AgentInfo,
    /// The rendering of `subject` that hooks of one chain share.
    pub wire: &'a WireCache,
}

/// Where families keep what they send of one notice, so that ten observers cost one rendering. The dispatcher has one for
/// each notice.
#[derive(Default)]
pub struct NoticeViews([[OnceLock<Bytes>; NoticeViews::FORMS]; Family::ALL.len()]);

impl NoticeViews {
    /// How many forms a family may have.
    pub const FORMS: usize = 2;

    /// What the hooks of `family` are sent in its form number `form`, made by `render` on first use.
    pub fn view(&self, family: Family, form: usize, render: impl FnOnce() -> Vec<u8>) -> &Bytes {
        self.0[family as usize][form].get_or_init(|| Bytes::from(render()))
    }
}

/// Where a family keeps its rendering of the subject, so that five hooks on one checkpoint cost one
/// serialisation. The dispatcher empties it whenever a hook changed the subject.
#[derive(Default)]
pub struct WireCache {
    /// One slot a family, in the order of [`Family`].
    renderings: [OnceLock<Bytes>; Family::ALL.len()],
    tap: Option<OnceLock<String>>,
}

impl WireCache {
    /// A cache that also keeps the answer as it came, for a rehearsal.
    pub fn tapped() -> Self {
        Self { tap: Some(OnceLock::new()), ..Self::default() }
    }

    /// The rendering that was sent, if the question crossed a wire.
    pub fn sent(&self) -> Option<&Bytes> {
        self.renderings.iter().find_map(OnceLock::get)
    }

    /// The answer as it came, if this cache keeps it and one came.
    pub fn came(&self) -> Option<&str> {
        self.tap.as_ref()?.get().map(String::as_str)
    }

    /// Keeps the answer that `text` writes, if this cache keeps answers; the first one stays.
    pub fn keep_answer(&self, text: impl FnOnce() -> String) {
        if let Some(tap) = &self.tap {
            tap.get_or_init(text);
        }
    }

    /// The rendering that the hooks of `family` share, made by `render` on first use.
    pub fn rendering(&self, family: Family, render: impl FnOnce() -> Vec<u8>) -> Bytes {
        self.renderings[family as usize].get_or_init(|| Bytes::from(render())).clone()
    }
}
