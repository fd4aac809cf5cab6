//! Native hooks: Rust trait objects in this process.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Poll;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, poll};
use pintle_domain::account::HandlerAnswer;
use pintle_domain::checkpoint::{
    AfterLlm, AfterTool, AgentInfo, ApproveTool, BeforeLlm, BeforeTool, CheckpointKind, Notice, PreToolUse, Reply,
    SubagentStart, Subject, UserPromptSubmit,
};
use pintle_domain::fault::{Fault, ProtocolBreach};
use pintle_domain::id::EventId;
use pintle_domain::identity::Identity;
use pintle_domain::verdict::Verdict;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::handler::{Handler, HookCall, NoticeViews};

/// How many notices wait for a native observer: a burst of a long turn, and a bound for one that hangs.
const MAX_WAITING_NOTICES: usize = 1024;

/// A hook written in Rust. Only the methods that [`NativeHook::stages`] names are called.
///
/// A panic or an overrun deadline is a fault of that call; the hook stays mounted.
#[async_trait]
pub trait NativeHook: Send + Sync {
    /// The checkpoints it acts at. Observers name `session_start`, `post_tool_use`, `subagent_stop`,
    /// `stop` or `runtime`.
    fn stages(&self) -> Vec<CheckpointKind>;

    /// Something happened.
    async fn on_event(&self, _notice: &Notice) {}

    /// A message may reach the model.
    async fn user_prompt_submit(&self, _cx: &HookCx<'_>, _at: &UserPromptSubmit) -> NativeAnswer<UserPromptSubmit> {
        Ok(Verdict::Continue)
    }

    /// A request is about to leave for a model.
    async fn before_llm(&self, _cx: &HookCx<'_>, _at: &BeforeLlm) -> NativeAnswer<BeforeLlm> {
        Ok(Verdict::Continue)
    }

    /// A model has answered.
    async fn after_llm(&self, _cx: &HookCx<'_>, _at: &AfterLlm) -> NativeAnswer<AfterLlm> {
        Ok(Verdict::Continue)
    }

    /// A model asks for a tool.
    async fn before_tool(&self, _cx: &HookCx<'_>, _at: &BeforeTool) -> NativeAnswer<BeforeTool> {
        Ok(Verdict::Continue)
    }

    /// A tool call has its final input.
    async fn pre_tool_use(&self, _cx: &HookCx<'_>, _at: &PreToolUse) -> NativeAnswer<PreToolUse> {
        Ok(Verdict::Continue)
    }

    /// An agent is about to delegate to another.
    async fn subagent_start(&self, _cx: &HookCx<'_>, _at: &SubagentStart) -> NativeAnswer<SubagentStart> {
        Ok(Verdict::Continue)
    }

    /// A tool call passed the gates. [`Verdict::Continue`] approves it.
    async fn approve_tool(&self, _cx: &HookCx<'_>, _at: &ApproveTool) -> NativeAnswer<ApproveTool> {
        Ok(Verdict::Continue)
    }

    /// A tool has run.
    async fn after_tool(&self, _cx: &HookCx<'_>, _at: &AfterTool) -> NativeAnswer<AfterTool> {
        Ok(Verdict::Continue)
    }
}

/// The answer of a native hook at the checkpoint `C`.
pub type NativeAnswer<C> = Result<Verdict<C>, HookError>;

/// The context that a native hook may know of the event besides its subject.
#[derive(Clone, Copy)]
pub struct HookCx<'a> {
    /// Which occurrence.
    pub event_id: &'a EventId,
    /// The identity of the turn that the event belongs to.
    pub identity: &'a Identity,
    /// How long the answer may take.
    pub timeout: Duration,
    /// Set when the turn is ending.
    pub cancel: &'a CancellationToken,
    /// The knowledge about the agent: its tools, what they say of themselves, and whom it works for.
    pub known: &'a dyn AgentInfo,
}

/// Why a native hook cannot answer; a fault of that call.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct HookError(pub String);

/// Runs a [`NativeHook`].
pub struct NativeHandler {
    hook: Arc<dyn NativeHook>,
    notices: mpsc::Sender<Arc<Notice>>,
    dropped: AtomicU64,
    closing: CancellationToken,
}

impl NativeHandler {
    /// Mounts `hook`. Its notices are delivered by a task of `tasks`, each within `observer_timeout`.
    pub fn new(hook: Arc<dyn NativeHook>, observer_timeout: Duration, tasks: &TaskTracker) -> Arc<Self> {
        let (notices, queue) = mpsc::channel(MAX_WAITING_NOTICES);
        let closing = CancellationToken::new();
        tasks.spawn(deliver(hook.clone(), queue, observer_timeout, closing.clone()));
        Arc::new(Self { hook, notices, dropped: AtomicU64::new(0), closing })
    }

    /// How many notices found the queue full.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    async fn answer(&self, cx: &HookCx<'_>, subject: Subject<'_>) -> Result<Reply, HookError> {
        let hook = &self.hook;
        Ok(match subject {
            Subject::UserPromptSubmit(at) => Reply::UserPromptSubmit(hook.user_prompt_submit(cx, at).await?.into()),
            Subject::BeforeLlm(at) => Reply::BeforeLlm(hook.before_llm(cx, at).await?.into()),
            Subject::AfterLlm(at) => Reply::AfterLlm(hook.after_llm(cx, at).await?.into()),
            Subject::BeforeTool(at) => Reply::BeforeTool(hook.before_tool(cx, at).await?.into()),
            Subject::PreToolUse(at) => Reply::PreToolUse(hook.pre_tool_use(cx, at).await?.into()),
            Subject::ApproveTool(at) => Reply::ApproveTool(hook.approve_tool(cx, at).await?.into()),
            Subject::AfterTool(at) => Reply::AfterTool(hook.after_tool(cx, at).await?.into()),
            Subject::SubagentStart(at) => Reply::SubagentStart(hook.subagent_start(cx, at).await?.into()),
        })
    }
}

/// The reply of a hook, or the fault that its panic or its error is.
fn heard_of(heard: std::thread::Result<Result<Reply, HookError>>) -> Result<Reply, Fault> {
    match heard {
        Err(_panic) => Err(Fault::Panicked),
        Ok(Err(error)) => Err(Fault::Protocol(ProtocolBreach::Returned(error.0.into()))),
        Ok(Ok(reply)) => Ok(reply),
    }
}

impl Handler for NativeHandler {
    fn ask<'a>(&'a self, call: HookCall<'a>) -> BoxFuture<'a, HandlerAnswer> {
        Box::pin(async move {
            let HookCall { event_id, who: identity, timeout, cancel, known, .. } = call;
            let cx = HookCx { event_id, identity, timeout, cancel, known };
            let mut answer = pin!(AssertUnwindSafe(self.answer(&cx, call.subject)).catch_unwind());
            // Most hooks answer at once; only those that do not need a clock.
            if let Poll::Ready(heard) = poll!(&mut answer) {
                return heard_of(heard).into();
            }
            let heard = tokio::select! {
                biased;
                heard = tokio::time::timeout(call.timeout, answer) => match heard {
                    Err(_elapsed) => Err(Fault::TimedOut { after: call.timeout }),
                    Ok(heard) => heard_of(heard),
                },
                () = call.cancel.cancelled() => Err(Fault::Cancelled),
            };
            heard.into()
        })
    }

    fn tell(&self, notice: &Arc<Notice>, _views: &NoticeViews) -> bool {
        let room = self.notices.try_send(notice.clone()).is_ok();
        if !room {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
        room
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.closing.cancel();
        Box::pin(async {})
    }
}

impl Drop for NativeHandler {
    fn drop(&mut self) {
        self.closing.cancel();
    }
}

/// Delivers what is queued, in order. What is there when the hook closes is delivered still, all of it within
/// `timeout`.
async fn deliver(
    hook: Arc<dyn NativeHook>,
    mut queue: mpsc::Receiver<Arc<Notice>>,
    timeout: Duration,
    closing: CancellationToken,
) {
    let out_of_time = async {
        closing.cancelled().await;
        tokio::time::sleep(timeout).await;
    };
    tokio::select! {
        biased;
        () = deliver_each(&*hook, &mut queue, timeout, &closing) => {}
        () = out_of_time => {
            tracing::warn!(waiting = queue.len(), "a native observer took too long to hear what was left at its end");
        }
    }
}

async fn deliver_each(
    hook: &dyn NativeHook,
    queue: &mut mpsc::Receiver<Arc<Notice>>,
    timeout: Duration,
    closing: &CancellationToken,
) {
    loop {
        let notice = tokio::select! {
            biased;
            notice = queue.recv() => notice,
            () = closing.cancelled() => return,
        };
        let Some(notice) = notice else { return };
        let told = AssertUnwindSafe(hook.on_event(&notice)).catch_unwind();
        match tokio::time::timeout(timeout, told).await {
            Ok(Ok(())) => {}
            Ok(Err(_panic)) => tracing::warn!("a native observer panicked at `{}`", notice.what.name()),
            Err(_elapsed) => tracing::warn!("a native observer took too long at `{}`", notice.what.name()),
        }
    }
}

#[cfg(test)]
mod tests {
    use pintle_domain::checkpoint::ObservedEvent;
    use pintle_domain::id::TurnId;
    use tokio::time::Instant;

    use super::*;

    /// Never comes to an end with anything.
    struct Stuck;

    #[async_trait]
    impl NativeHook for Stuck {
        fn stages(&self) -> Vec<CheckpointKind> {
            vec![CheckpointKind::Stop]
        }

        async fn on_event(&self, _notice: &Notice) {
            std::future::pending().await
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_left_at_the_end_has_one_deadline_in_all() {
        const TIMEOUT: Duration = Duration::from_secs(5);
        let tasks = TaskTracker::new();
        let hook = NativeHandler::new(Arc::new(Stuck), TIMEOUT, &tasks);
        let notice = Arc::new(Notice {
            event_id: EventId::from("e1"),
            at: jiff::Timestamp::UNIX_EPOCH,
            who: Identity::top("main", "cli:direct", TurnId::from("t1")),
            what: ObservedEvent::SessionStart,
        });
        assert!((0..10).all(|_| hook.tell(&notice, &NoticeViews::default())));
        let closed = Instant::now();
        hook.close().await;
        tasks.close();
        tasks.wait().await;
        assert_eq!(closed.elapsed(), TIMEOUT);
    }
}
