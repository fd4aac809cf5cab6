//! Where everything runs: a runtime of two workers, and turns that are tasks on it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::ensure;
use pintle_domain::checkpoint::PreToolUse;
use pintle_domain::id::{CallId, TurnId};
use pintle_domain::identity::Identity;
use pintle_domain::json::json;
use pintle_domain::ruling::Ruling;
use pintle_domain::tool::ToolCall;
use pintle_engine::{Clearance, Dispatcher};
use tokio::runtime::Runtime;
use tokio_util::task::TaskTracker;

use crate::host::Host;

/// Workers of the runtime, as many as the machines have on which an agent is run at the least.
const WORKERS: usize = 2;
/// The size of the tool's input beside its command: no call is empty.
const NOTE_BYTES: usize = 1024;

pub(crate) struct Stage {
    pub(crate) runtime: Runtime,
    tracker: TaskTracker,
}

impl Stage {
    pub(crate) fn new() -> anyhow::Result<Self> {
        // Any provider will do: nothing here is encrypted on its way.
        drop(rustls::crypto::ring::default_provider().install_default());
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(WORKERS).enable_all().build()?;
        Ok(Self { runtime, tracker: TaskTracker::new() })
    }

    /// Runs `work` as a turn runs: as a task on a worker.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = anyhow::Result<T>> + Send + 'static,
    ) -> anyhow::Result<T> {
        self.runtime.block_on(self.tracker.spawn_on(work, self.runtime.handle()))?
    }

    /// Asks the gates of `host` so many times; the time it took. Nothing may be asked of the store, and what waits to be
    /// written is, before this returns.
    pub(crate) fn check(&self, host: &Host, times: usize) -> anyhow::Result<Duration> {
        let (hooks, before) = (host.dispatcher(), host.store.questions());
        let took = self.run(async move {
            let mut subject = PreToolUse { call: call() };
            let start = Instant::now();
            for _ in 0..times {
                subject = pass(&hooks, subject).await?;
            }
            Ok(start.elapsed())
        })?;
        ensure!(host.store.questions() == before, "the store was asked on the way of a call");
        host.store.written()?;
        Ok(took)
    }

    /// The same for whole clearings, whose record is committed before they end.
    pub(crate) fn clear(&self, host: &Host, times: usize) -> anyhow::Result<Duration> {
        let (hooks, before) = (host.dispatcher(), host.store.questions());
        let took = self.run(async move {
            let calls = vec![call(); times];
            let start = Instant::now();
            for call in calls {
                let cleared = hooks.clear(call).await;
                ensure!(matches!(cleared, Clearance::Run(..)), "the call was not cleared: {cleared:?}");
            }
            Ok(start.elapsed())
        })?;
        ensure!(host.store.questions() == before, "the store was asked on the way of a call");
        Ok(took)
    }

    /// Waits for every task.
    pub(crate) fn close(self) -> anyhow::Result<()> {
        self.tracker.close();
        self.runtime.block_on(self.tracker.wait());
        ensure!(self.tracker.is_empty(), "a task is left");
        Ok(())
    }
}

/// The turn that all questions belong to.
pub(crate) fn turn() -> Identity {
    Identity { iteration: 3, ..Identity::top("main", "cli:direct", TurnId::fresh()) }
}

/// A call of a shell.
pub(crate) fn call() -> ToolCall {
    let arguments = json!({ "cmd": "cargo test --workspace", "note": "n".repeat(NOTE_BYTES), "timeout": 30 });
    ToolCall {
        id: CallId::from("call_00000017"),
        tool: "exec".into(),
        raw_tool: "exec".into(),
        arguments: arguments.as_object().cloned().unwrap_or_default(),
    }
}

/// Asks about `subject`, which must pass, and hands it back.
pub(crate) async fn pass(hooks: &Arc<Dispatcher>, subject: PreToolUse) -> anyhow::Result<PreToolUse> {
    let (subject, ruling) = hooks.check(subject).await;
    ensure!(matches!(ruling, Ruling::Proceed), "the call did not pass: {ruling:?}");
    Ok(subject)
}
