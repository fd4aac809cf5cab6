//! Scripts of hooks, run in processes of their own.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use pintle_rules::handler::{ScriptCall, ScriptFailure, ScriptResult, Scripts};
use pintle_sandbox::{CompileError, Launcher, Sandbox, ScriptFault};

/// The message about a script where nothing can run it.
const NO_WORKER: &str = "there is no program here that runs scripts";

/// Runs scripts in processes of `worker`, or refuses each where there is none.
pub(super) fn scripts(worker: Option<Launcher>) -> Arc<dyn Scripts> {
    match worker {
        Some(worker) => Arc::new(SandboxScripts(Sandbox::new(worker))),
        None => Arc::new(NoScripts),
    }
}

/// Runs no script, and lets none be kept.
struct NoScripts;

impl Scripts for NoScripts {
    fn run<'a>(&'a self, _call: ScriptCall<'a>) -> BoxFuture<'a, ScriptResult> {
        let failed = ScriptFailure::Failed(NO_WORKER.to_owned());
        Box::pin(async { ScriptResult { returned: Err(failed), log: String::new(), waited: Duration::ZERO } })
    }

    fn check<'a>(&'a self, _source: &'a str) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async { Err(NO_WORKER.to_owned()) })
    }
}

/// Runs the scripts of hooks in processes of their own.
struct SandboxScripts(Sandbox);

impl Scripts for SandboxScripts {
    fn run<'a>(&'a self, call: ScriptCall<'a>) -> BoxFuture<'a, ScriptResult> {
        Box::pin(async move {
            let ScriptCall { tenant, duty, source, event, timeout, budget } = call;
            let ran = self.0.run(pintle_sandbox::ScriptRun { tenant, duty, source, event, timeout, budget }).await;
            ScriptResult { returned: ran.returned.map_err(failure), log: ran.log, waited: ran.waited }
        })
    }

    fn check<'a>(&'a self, source: &'a str) -> BoxFuture<'a, Result<(), String>> {
        Box::pin(async move { self.0.compile(source).await.map_err(|error| bare(&error)) })
    }
}

/// The error of a script; whoever validates a record says that it is one.
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
        ScriptFault::Threw(what) => ScriptFailure::Threw(what),
        other @ (ScriptFault::Syntax(_)
        | ScriptFault::NoHandle
        | ScriptFault::NotObject
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

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "function handle() { return {}; }";

    #[test]
    fn a_worker_that_is_none_is_an_error_and_so_is_a_script_where_there_is_none() {
        let worker = Launcher { program: "/nothing/here".into(), args: Vec::new(), vars: Vec::new() };
        assert!(check_script(worker, SOURCE).is_err());
        let checked = futures_util::FutureExt::now_or_never(scripts(None).check(SOURCE));
        assert_eq!(checked, Some(Err("there is no program here that runs scripts".to_owned())));
    }
}
