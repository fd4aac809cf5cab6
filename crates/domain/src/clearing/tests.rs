//! What one tool call comes to, as tables.

use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::checkpoint::CallPatch;
use crate::checkpoint::CheckpointKind::{
    ApproveTool as AtApprove, BeforeTool as AtBeforeTool, PreToolUse as AtPreToolUse,
};
use crate::hook::{Hook, HookState, OnFailure};
use crate::json::Object;
use crate::testing::{Agent, Script, args, call, hook, lines, said};
use crate::verdict::{Abort, AbortScope, Verdict};

mod order;
mod owners;
mod persons;
mod rewriting;

/// Clears `exec {"cmd":"ls"}`, or the tool of the first owned pair, and compares who was asked on what,
/// the outcome and every record.
struct Case {
    hooks: Vec<Hook>,
    owned: Vec<(&'static str, &'static str)>,
    script: Script,
}

impl Case {
    fn new(hooks: Vec<Hook>) -> Self {
        Self { hooks, owned: Vec::new(), script: Script::default() }
    }

    fn owned(self, owned: &[(&'static str, &'static str)]) -> Self {
        Self { owned: owned.to_vec(), ..self }
    }

    fn script(self, script: Script) -> Self {
        Self { script, ..self }
    }

    fn clear(self, call: ToolCall) -> (Vec<String>, ClearingOutcome, RecordLines) {
        let roster = Arc::new(Roster::new(self.hooks));
        let mut clearing = Clearing::new(roster.clone(), Agent::with(&self.owned), call);
        let asked = self.script.play(&mut clearing, &roster);
        let (outcome, records) = clearing.conclude();
        (asked, outcome, records)
    }

    fn check(self, tool: &str, expected: &str) {
        let (asked, outcome, records) = self.clear(call(tool, "ls"));
        let told = format!("{}\n=> {}\n{}", asked.join("\n"), came_to(&outcome), lines(&records));
        let told: Vec<&str> = told.lines().filter(|line| !line.is_empty()).collect();
        let expected: Vec<&str> = expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        assert_eq!(told, expected);
    }
}

fn came_to(outcome: &ClearingOutcome) -> String {
    let shown = |call: &ToolCall| format!("{} {}", call.tool, crate::json::json!(call.arguments));
    match outcome {
        ClearingOutcome::Run(call) => format!("run {}", shown(call)),
        ClearingOutcome::Substituted { call, by, result } => {
            format!("{by} answers {}: {}", shown(call), result.for_llm)
        }
        ClearingOutcome::Ask { call, by, why } => format!("{by} asks about {}: {why}", shown(call)),
        ClearingOutcome::Refused { denied, .. } => denied.text(),
        ClearingOutcome::Abort { aborted, .. } => aborted.text(),
    }
}

fn before(name: &str) -> Hook {
    hook(name, &[AtBeforeTool])
}

fn gate(name: &str) -> Hook {
    hook(name, &[AtPreToolUse])
}

fn approver(name: &str) -> Hook {
    hook(name, &[AtApprove])
}

fn patch(tool: Option<&str>, cmd: Option<&str>) -> CallPatch {
    CallPatch { tool: tool.map(Into::into), arguments: cmd.map(args) }
}

fn modify(cmd: &str) -> Verdict<BeforeTool> {
    Verdict::Modify(patch(None, Some(cmd)))
}

fn respond(call: Option<CallPatch>) -> Verdict<BeforeTool> {
    Verdict::respond(Substitute { call, result: ToolOutput::ok("answer") })
}

fn rewrite(cmd: &str) -> Verdict<PreToolUse> {
    Verdict::Modify(args(cmd))
}

fn deny_before() -> Verdict<BeforeTool> {
    Verdict::Deny("no".into())
}

fn block() -> Verdict<PreToolUse> {
    Verdict::Deny("no".into())
}

fn ask() -> Verdict<PreToolUse> {
    Verdict::Ask("risky".into())
}
