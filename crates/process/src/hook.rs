//! Process hooks: one supervised child each, JSON lines over its pipes.
//!
//! A [`ProcessHook`] is a handle. Behind it a supervisor (`supervisor.rs`, `supervision.rs`) starts a child (`spawn.rs`,
//! `platform.rs`), shakes hands (`hello.rs`), and starts another when it ends (`restart.rs`). What is said to one child is its session
//! (`session.rs`), written by `writer.rs`, read by `reader.rs`; `child.rs` sees to it that nothing outlives it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use pintle_dialects::process::config::EventForm;
use pintle_dialects::process::{frame, wire};
use pintle_domain::account::HandlerAnswer;
use pintle_domain::checkpoint::{CheckpointKind, Notice, ObservedEvent, Reply, RuntimeKind};
use pintle_domain::fault::Fault;
use pintle_domain::hook::Family;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

use pintle_engine::deadlines::Deadlines;
use pintle_engine::handler::{Handler, HookCall, NoticeViews};

mod events;
mod frame_reader;
mod frame_writer;
mod hello;
mod inner;
mod lines;
mod reader;
mod session;
mod spec;
mod supervisor;
mod tally;
mod writer;

pub use spec::{ProcessSpec, SpawnCheck, StillSame, unchecked};

use events::Event;
use inner::Inner;
use session::{Request, Unanswered};
use supervisor::HookSupervisor;

use crate::supervision::supervise;

/// Longest deadline that is kept to; longer ones mean "for ever", and clocks cannot count to them.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(100 * 365 * 86_400);

/// A hook that is a child process. Dropping it closes it in the background; [`Handler::close`] waits.
#[derive(Debug)]
pub struct ProcessHook {
    inner: Arc<Inner>,
}

/// How a process hook is doing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HookStatus {
    /// Whether a child answers calls.
    pub up: bool,
    /// What the last child ended in; absent while one is up.
    pub fault: Option<Fault>,
    /// How long ago it was asked what it answered well last, if it ever did.
    pub answered_ago: Option<Duration>,
    /// How often a child was started again.
    pub restarts: u64,
    /// Notifications that were dropped, by kind.
    pub dropped_events: BTreeMap<RuntimeKind, u64>,
    /// Replies that came after their call was given up or answered.
    pub late_replies: u64,
    /// Replies to calls that were never made.
    pub unknown_replies: u64,
    /// Lines that answered nothing.
    pub stray_lines: u64,
    /// Calls above the limit, which were not sent.
    pub oversized_calls: u64,
}

impl ProcessHook {
    /// Starts the hook and returns at once; its tasks run on `tracker`, and its calls end by `deadlines`. Needs a
    /// runtime with time and IO.
    pub fn start(spec: ProcessSpec, tracker: TaskTracker, deadlines: Deadlines) -> Arc<Self> {
        let inner = Arc::new(Inner::new(spec, tracker.clone(), deadlines));
        tracker.spawn(supervise(inner.child.clone(), HookSupervisor::new(inner.clone())));
        Arc::new(Self { inner })
    }

    /// What it was started with.
    pub fn spec(&self) -> &ProcessSpec {
        &self.inner.spec
    }

    /// Waits for the outcome of the first handshake.
    ///
    /// # Errors
    /// Why the hook could not start. It goes on trying.
    pub async fn ready(&self) -> Result<(), Fault> {
        self.inner.child.first().await
    }

    /// Whether its first start has not ended yet.
    pub fn is_starting(&self) -> bool {
        !self.inner.child.has_begun()
    }

    /// How it is doing.
    pub fn status(&self) -> HookStatus {
        let child = &self.inner.child;
        let (up, fault) = (child.up().is_some(), child.cause());
        let mut events = self.inner.events();
        let now = Instant::now();
        // While no child is there to write to, nobody else looks at the clock.
        events.expire(now);
        let tally = &self.inner.tally;
        HookStatus {
            up,
            fault,
            answered_ago: tally.answered.ago(now),
            restarts: child.restarts(),
            dropped_events: events.dropped().clone(),
            late_replies: tally.late_replies.get(),
            unknown_replies: tally.unknown_replies.get(),
            stray_lines: tally.stray_lines.get(),
            oversized_calls: tally.oversized_calls.get(),
        }
    }

    /// The end of what its children wrote to standard error.
    pub fn stderr_tail(&self) -> String {
        self.inner.tail.text()
    }

    async fn exchange(&self, call: &HookCall<'_>) -> Result<Reply, Fault> {
        let kind = call.subject.kind();
        let method = wire::method(kind).ok_or_else(|| Fault::Unavailable {
            cause: format!("process hooks do not act at `{}`", kind.name()).into(),
        })?;
        let asked_at = Instant::now();
        let deadline = asked_at + call.timeout.min(LONGEST_TIMEOUT);
        let params = call
            .wire
            .rendering(Family::Process, || wire::params(call.event_id, jiff::Timestamp::now(), call.who, call.subject));
        let spec = &self.inner.spec;
        loop {
            let session = self.inner.session(deadline).await;
            let session = session.map_err(|last| last.unwrap_or(Fault::TimedOut { after: call.timeout }))?;
            let request = Request {
                method,
                params: params.clone(),
                timeout: call.timeout,
                deadline,
                prompt: kind != CheckpointKind::ApproveTool,
            };
            let reply = match session.call(request).await {
                Ok(reply) => reply,
                // It was never begun, so the next child may take it.
                Err(Unanswered::Gone) if Instant::now() < deadline => {
                    self.inner.leaves(&session, deadline).await;
                    continue;
                }
                Err(Unanswered::Gone) => return Err(Fault::TimedOut { after: call.timeout }),
                Err(Unanswered::Fault(fault)) => return Err(fault),
            };
            call.wire.keep_answer(|| reply.body.text());
            let heard = wire::hear(call.subject, &params, &reply, spec.strict);
            if let Ok(reply) = &heard {
                self.inner.tally.answered.is(asked_at);
                session.warn_once(reply.warnings());
            }
            return heard;
        }
    }

    /// Queues what it is to be told; `false` if it was dropped.
    fn queue(&self, (notice, views): (&Notice, &NoticeViews), kind: RuntimeKind) -> bool {
        let inner = &self.inner;
        let spec = &inner.spec;
        let now = Instant::now();
        // Numbered, rendered and queued under one lock, so that numbers go out in order.
        let mut events = inner.events();
        let seq = events.number();
        events.expire(now);
        if inner.child.closing().is_cancelled() || !events.has_place(kind) {
            events.count_dropped(kind);
            return false;
        }
        let form = spec.event_form;
        let render = || wire::event_view(form, notice).unwrap_or_default();
        let view = views.view(Family::Process, form as usize, render);
        let line = frame::notification(event_method(form), &wire::numbered(form, view, seq));
        if line.len() > spec.max_frame_bytes.saturating_add(1) {
            events.count_dropped(kind);
            return false;
        }
        events.push(Event { kind, frame: line }, now)
    }
}

impl Handler for ProcessHook {
    fn ask<'a>(&'a self, call: HookCall<'a>) -> BoxFuture<'a, HandlerAnswer> {
        Box::pin(async move {
            if call.cancel.is_cancelled() {
                return Err(Fault::Cancelled).into();
            }
            // The call leaves first: what is set up to wait is set up while the child works.
            let heard = tokio::select! {
                biased;
                heard = self.exchange(&call) => heard,
                () = call.cancel.cancelled() => Err(Fault::Cancelled),
            };
            heard.into()
        })
    }

    fn tell(&self, notice: &Arc<Notice>, views: &NoticeViews) -> bool {
        let spec = &self.inner.spec;
        let ObservedEvent::Runtime(event) = &notice.what else { return true };
        let wanted = spec.events.as_ref().is_none_or(|kinds| kinds.contains(&event.kind()));
        if !wanted || !spec.modes.contains(&"observe") {
            return true;
        }
        let queued = self.queue((notice, views), event.kind());
        if queued && let Some(session) = self.inner.child.up() {
            session.wake.notify_one();
        }
        queued
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.inner.child.closing().cancel();
        Box::pin(self.inner.child.done())
    }
}

impl Drop for ProcessHook {
    fn drop(&mut self) {
        self.inner.child.closing().cancel();
    }
}

/// The method that tells of an event in `form`.
fn event_method(form: EventForm) -> &'static str {
    match form {
        EventForm::Hook => "hook.event",
        EventForm::Runtime => "hook.runtime_event",
    }
}
