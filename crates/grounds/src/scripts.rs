//! Scripts of hooks, run in processes of their own.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use rules::handler::{ScriptCall, ScriptFailure, ScriptRan, Scripts};
use sandbox::{CompileError, Launcher, Sandbox, ScriptFault};

/// What is said of a script where nothing can run it.
const NO_WORKER: &str = "there is no program here that runs scripts";

/// Runs scripts in processes of `worker`, or refuses each where there is none.
pub(super) fn scripts(worker: Option<Launcher>) -> Arc<dyn Scripts> {
    match worker {
        Some(worker) => Arc::new(InSandbox(Sandbox::new(worker))),
        None => Arc::new(Nowhere),
    }
}

/// Runs no script, and lets none be kept.
struct Nowhere;

impl Scripts for Nowhere {
    fn run<'a>(&'a self, _call: ScriptCall<'a>) -> BoxFuture<'a, ScriptRan> {
        Box::pin(async { ScriptRan { returned: Err(ScriptFailure::Failed(NO_WORKER.to_owned())), log: String::new() } })
    }

    fn check<'a>(&'a self, _source: &'a str) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async { Err(NO_WORKER.to_owned()) })
    }
}

/// Runs the scripts of hooks in processes of their own.
struct InSandbox(Sandbox);

impl Scripts for InSandbox {
    fn run<'a>(&'a self, call: ScriptCall<'a>) -> BoxFuture<'a, ScriptRan> {
        Box::pin(async move {
            let ScriptCall { tenant, source, event, timeout, budget } = call;
            let ran = self.0.run(sandbox::Call { tenant, source, event, timeout, budget }).await;
            ScriptRan { returned: ran.returned.map_err(failure), log: ran.log }
        })
    }

    fn check<'a>(&'a self, source: &'a str) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move { self.0.compile(source).await.map_err(|error| bare(&error)) })
    }
}

/// What is wrong with a script; whoever validates a record says that it is one.
fn bare(error: &CompileError) -> String {
    let text = error.to_string();
    text.strip_prefix("script compile error: ").map_or(text.clone(), str::to_owned)
}

fn failure(fault: ScriptFault) -> ScriptFailure {
    match fault {
        ScriptFault::Timeout { after_ms } => {
            ScriptFailure::TimedOut { after: std::time::Duration::from_millis(after_ms) }
        }
        ScriptFault::NoSlot { waited_ms } => {
            ScriptFailure::NoSlot { waited: std::time::Duration::from_millis(waited_ms) }
        }
        other @ (ScriptFault::Syntax(_)
        | ScriptFault::NoHandle
        | ScriptFault::NotObject
        | ScriptFault::Threw(_)
        | ScriptFault::OutOfMemory
        | ScriptFault::TooDeep
        | ScriptFault::ReturnTooLarge { .. }
        | ScriptFault::Unreadable(_)
        | ScriptFault::EventTooLarge { .. }
        | ScriptFault::SourceTooLarge { .. }
        | ScriptFault::Ended(_)
        | ScriptFault::Engine(_)) => ScriptFailure::Failed(other.to_string()),
    }
}

/// Says whether `worker` can use a script, for whoever cannot wait in a runtime: in a sandbox of its own.
///
/// # Errors
/// The published message.
pub fn check_script(worker: Launcher, source: &str) -> Result<(), String> {
    let check = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| format!("scripts cannot be checked: {error}"))?;
        runtime.block_on(Sandbox::new(worker).compile(source)).map_err(|error| bare(&error))
    };
    std::thread::scope(|scope| {
        let checked = scope.spawn(check).join();
        checked.unwrap_or_else(|_| Err("scripts cannot be checked: the check panicked".into()))
    })
}
