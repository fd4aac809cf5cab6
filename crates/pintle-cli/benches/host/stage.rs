//! Where everything runs: a runtime of two workers, and turns that are tasks on it.

use std::any::Any;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, anyhow, ensure};
use pintle_domain::id::{CallId, TurnId};
use pintle_domain::identity::Identity;
use pintle_domain::json::{Value, json};
use pintle_domain::tool::ToolCall;
use pintle_engine::{Engine, Mount};
use pintle_process::hook::ProcessHook;
use tokio::runtime::Runtime;
use tokio_util::task::TaskTracker;

use crate::child::{Answers, VARIABLE};

/// Workers of the runtime, as many as the program has.
const WORKERS: usize = 2;
/// The size of what a call carries beside its mark.
pub(crate) const NOTE_BYTES: usize = 1 << 10;
/// What the calls ask for.
pub(crate) const TOOL: &str = "look_up";

pub(crate) struct Stage {
    pub(crate) runtime: Runtime,
    pub(crate) tracker: TaskTracker,
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

    /// Puts so many process hooks at `stages` in force, and waits until all have shaken hands.
    pub(crate) fn mount_children(&self, engine: &Engine, number: usize, entry: &Value) -> anyhow::Result<()> {
        let _inside = self.runtime.enter();
        let mount = |number| Ok(pintle_process::mount_entry(engine, &format!("hook-{number}"), entry, Path::new("."))?);
        let mounts = (0..number).map(mount).collect::<anyhow::Result<Vec<Mount>>>()?;
        let handlers: Vec<_> = mounts.iter().map(|mount| mount.handler.clone()).collect();
        engine.replace(mounts)?;
        for handler in handlers {
            let any: &dyn Any = &*handler;
            let hook = any.downcast_ref::<ProcessHook>().context("it is a process hook")?;
            self.runtime.block_on(hook.ready()).map_err(|fault| anyhow!("the hook {}", fault.phrase()))?;
        }
        Ok(())
    }

    /// Waits for every task.
    pub(crate) fn close(self) -> anyhow::Result<()> {
        self.tracker.close();
        self.runtime.block_on(self.tracker.wait());
        ensure!(self.tracker.is_empty(), "a task is left");
        Ok(())
    }
}

/// `full` where figures count, and `once` where each case only has to run.
pub(crate) fn sized<T>(full: T, once: T) -> T {
    let has = |word: &str| std::env::args().any(|argument| argument == word);
    if has("--bench") && !has("--test") { full } else { once }
}

/// The entry of a process hook at `before_tool` whose child is this program.
pub(crate) fn interceptor(answers: Answers) -> anyhow::Result<Value> {
    let command = std::env::current_exe()?;
    Ok(json!({
        "enabled": true,
        "command": [command],
        "env": { VARIABLE: answers.word() },
        "intercept": ["before_tool"],
        "strict": true,
    }))
}

/// The turn that a question belongs to.
pub(crate) fn who() -> Identity {
    Identity { iteration: 3, ..Identity::top("main", "cli:direct", TurnId::fresh()) }
}

/// A call of the tool, with 1 KiB of arguments and a mark.
pub(crate) fn call(mark: &str) -> ToolCall {
    let arguments = json!({ "mark": mark, "note": "n".repeat(NOTE_BYTES) });
    ToolCall {
        id: CallId::from("call_00000017"),
        tool: TOOL.into(),
        raw_tool: TOOL.into(),
        arguments: arguments.as_object().cloned().unwrap_or_default(),
    }
}

/// An engine that keeps nothing.
pub(crate) fn forgetful() -> Arc<Engine> {
    Arc::new(Engine::new(Arc::new(pintle_engine::NullStore), Vec::new()))
}
