//! The starter guards, as they are shipped, in the sandbox in which they run.

mod corpus;
mod tools;

use pintle_domain::checkpoint::Duty;
use pintle_domain::json::{Value, json};
use std::time::Duration;

use pintle_domain::rule::HookScope;
use pintle_rules::builtin::starter;
use pintle_sandbox::{Launcher, Sandbox, ScriptRun};

/// Longer than any run takes that is meant to end by itself, on any machine.
const PATIENT: Duration = Duration::from_secs(120);

/// What a guard says: its word and its reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Said {
    pub(crate) decision: String,
    pub(crate) reason: String,
}

impl Said {
    fn of(answer: &Value) -> Self {
        let text = |name: &str| answer[name].as_str().unwrap_or_default().to_owned();
        Self { decision: text("decision"), reason: text("reason") }
    }
}

/// A sandbox whose children are the product's own.
pub(crate) fn sandbox() -> Sandbox {
    let program = env!("CARGO_BIN_EXE_pintle").into();
    Sandbox::new(Launcher { program, args: vec!["__script".into()], vars: Vec::new() })
}

/// What `source` returns for `event`.
#[track_caller]
pub(crate) fn run(source: &str, event: &Value) -> Value {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(run_in(&sandbox(), source, event))
}

pub(crate) async fn run_in(sandbox: &Sandbox, source: &str, event: &Value) -> Value {
    let event = event.to_string();
    let ran = sandbox
        .run(ScriptRun { tenant: "t", duty: Duty::Gate, source, event: &event, timeout: PATIENT, budget: PATIENT })
        .await;
    Value::Object(ran.returned.unwrap_or_else(|fault| panic!("{fault}")))
}

/// The shipped guards: name, matcher, script.
fn guards() -> Vec<(String, String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let guard = |record: &Value| (text(&record["name"]), text(&record["matcher"]), text(&record["config"]["source"]));
    starter(HookScope::Tenant).iter().map(guard).collect()
}

/// What `source` says to each of `events`. One run for all of them: a script keeps nothing from one to the next.
async fn said(sandbox: &Sandbox, source: &str, events: &[Value]) -> Vec<Said> {
    let renamed = source.replace("function handle(event)", "function one(event)");
    let batch = format!("{renamed}\nfunction handle(event) {{ return {{ all: event.events.map(one) }}; }}");
    let answer = run_in(sandbox, &batch, &json!({ "events": events })).await;
    answer["all"].as_array().unwrap().iter().map(Said::of).collect()
}
