//! What the tests have in common: a sandbox with the test's own child, and the calls to it.

use std::time::Duration;

use pintle_domain::checkpoint::Duty;
use pintle_domain::json::{Value, json};
use pintle_sandbox::{Launcher, Sandbox, ScriptOutput, ScriptRun};

/// Longer than any run takes that is meant to end by itself, on any machine.
pub(crate) const PATIENT: Duration = Duration::from_secs(60);

pub(crate) fn launcher() -> Launcher {
    let program = env!("CARGO_BIN_EXE_pintle-script-worker").into();
    Launcher { program, args: Vec::new(), vars: Vec::new() }
}

pub(crate) fn sandbox() -> Sandbox {
    Sandbox::new(launcher())
}

pub(crate) fn call<'a>(source: &'a str, event: &'a str) -> ScriptRun<'a> {
    ScriptRun { tenant: "acme", duty: Duty::Gate, source, event, timeout: PATIENT, budget: PATIENT }
}

/// Runs `source` on an event of a tool call.
pub(crate) async fn run(sandbox: &Sandbox, source: &str) -> ScriptOutput {
    sandbox.run(call(source, &event().to_string())).await
}

/// What a run of `source` returns.
pub(crate) async fn value(source: &str) -> Value {
    let ran = run(&sandbox(), source).await;
    Value::Object(ran.returned.unwrap_or_else(|fault| panic!("{fault}\n{source}")))
}

pub(crate) fn event() -> Value {
    json!({
        "hookEvent": "pre_tool_use",
        "toolName": "exec",
        "toolInput": {"cmd": "rm -rf /", "list": [1, 2.5, {"deep": true}]},
        "rawInput": null,
        "depth": 0,
    })
}

#[track_caller]
pub(crate) fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime")
}
