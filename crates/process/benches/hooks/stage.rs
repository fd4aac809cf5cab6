//! Where everything runs: a runtime of two workers, engines with hooks, a turn.

use std::path::Path;
use std::sync::Arc;

use anyhow::ensure;
use pintle_domain::checkpoint::BeforeTool;
use pintle_domain::id::{CallId, TurnId};
use pintle_domain::identity::Identity;
use pintle_domain::json::json;
use pintle_domain::tool::ToolCall;
use pintle_engine::{Dispatcher, Engine, Mount, NullStore};
use tokio::runtime::Runtime;
use tokio_util::task::TaskTracker;

use crate::child::{Answers, VARIABLE};
use crate::conversation::arguments;

/// Workers of the runtime, as many as the machines have on which an agent is run at the least.
const WORKERS: usize = 2;

pub(crate) struct Stage {
    pub(crate) runtime: Runtime,
    pub(crate) tracker: TaskTracker,
}

impl Stage {
    pub(crate) fn new() -> anyhow::Result<Self> {
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

    /// An engine with what `mount` makes of it.
    pub(crate) fn engine(&self, mount: impl FnOnce(&Engine) -> anyhow::Result<Vec<Mount>>) -> anyhow::Result<Engine> {
        let _inside = self.runtime.enter();
        let engine = Engine::new(Arc::new(NullStore), Vec::new());
        engine.replace(mount(&engine)?)?;
        Ok(engine)
    }

    /// An engine with one process hook for `stage`, which answers like `answers`.
    pub(crate) fn process(&self, stage: &str, answers: Answers) -> anyhow::Result<Engine> {
        self.engine(|engine| Ok(vec![process_hook(engine, "hook", stage, answers)?]))
    }

    /// Ends the hooks of `engine`.
    pub(crate) fn end(&self, engine: &Engine) {
        self.runtime.block_on(engine.close());
    }

    /// Waits for every task.
    pub(crate) fn close(self) -> anyhow::Result<()> {
        self.tracker.close();
        self.runtime.block_on(self.tracker.wait());
        ensure!(self.tracker.is_empty(), "a task is left");
        Ok(())
    }
}

/// A process hook for `stage` whose child is this program.
pub(crate) fn process_hook(engine: &Engine, name: &str, stage: &str, answers: Answers) -> anyhow::Result<Mount> {
    let entry = json!({
        "enabled": true,
        "command": [std::env::current_exe()?],
        "env": { VARIABLE: answers.word() },
        "intercept": [stage],
        "strict": true,
    });
    Ok(pintle_process::mount_entry(engine, name, &entry, Path::new("."))?)
}

/// The turn that all questions belong to.
pub(crate) fn turn() -> Identity {
    Identity { iteration: 3, ..Identity::top("main", "cli:direct", TurnId::fresh()) }
}

/// A call of a tool with arguments of `bytes` bytes.
pub(crate) fn call(bytes: usize) -> anyhow::Result<ToolCall> {
    let (tool, raw_tool) = ("write".to_owned(), "write".to_owned());
    Ok(ToolCall { id: CallId::from("call_00000017"), tool, raw_tool, arguments: arguments(bytes)? })
}

/// Asks about `subject`, which must pass, and hands it back.
pub(crate) async fn pass(hooks: &Dispatcher, subject: BeforeTool) -> anyhow::Result<BeforeTool> {
    let (subject, ruling) = hooks.check(subject).await;
    ensure!(matches!(ruling, pintle_domain::ruling::Ruling::Proceed), "the call did not pass: {ruling:?}");
    Ok(subject)
}
