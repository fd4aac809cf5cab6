//! Scripts of hooks, run in processes of their own.

use futures_util::future::BoxFuture;
use rules::handler::{ScriptCall, ScriptFailure, ScriptResult, Scripts};
use sandbox::{CompileError, Launcher, Sandbox, ScriptFault};

use crate::SCRIPT_COMMAND;

/// This program as a worker for scripts.
pub(crate) fn launcher() -> Launcher {
    Launcher { program: "/proc/self/exe".into(), args: vec![SCRIPT_COMMAND.into()], vars: Vec::new() }
}

/// Runs the scripts of hooks in processes of their own.
pub(crate) struct SandboxScripts(pub(crate) Sandbox);

impl Scripts for SandboxScripts {
    fn run<'a>(&'a self, call: ScriptCall<'a>) -> BoxFuture<'a, ScriptResult> {
        Box::pin(async move {
            let ScriptCall { tenant, source, event, timeout, budget } = call;
            let ran = self.0.run(sandbox::ScriptRun { tenant, source, event, timeout, budget }).await;
            ScriptResult { returned: ran.returned.map_err(failure), log: ran.log }
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

/// Says whether a script can be used, for whoever cannot wait in a runtime: in a sandbox of its own.
///
/// # Errors
/// The published message.
pub fn check_script(source: &str) -> Result<(), String> {
    let check = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| format!("scripts cannot be checked: {error}"))?;
        runtime.block_on(Sandbox::new(launcher()).compile(source)).map_err(|error| bare(&error))
    };
    std::thread::scope(|scope| {
        let checked = scope.spawn(check).join();
        checked.unwrap_or_else(|_| Err("scripts cannot be checked: the check panicked".into()))
    })
}
