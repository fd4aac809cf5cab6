//! What a row of hooks concludes, as tables.

use std::sync::Arc;
use std::time::Duration;

use super::*;
use crate::checkpoint::CheckpointKind::{AfterLlm as AtAfterLlm, AfterTool as AtAfterTool, ApproveTool as AtApprove};
use crate::checkpoint::CheckpointKind::{BeforeLlm as AtBeforeLlm, BeforeTool as AtBeforeTool};
use crate::checkpoint::CheckpointKind::{PreToolUse as AtPreToolUse, UserPromptSubmit as AtPrompt};
use crate::checkpoint::{
    AfterLlm, AfterTool, ApproveTool, BeforeLlm, BeforeTool, CallPatch, LlmPatch, PreToolUse, Substitute,
    UserPromptSubmit,
};
use crate::fault::Direction;
use crate::hook::Family;
use crate::json::{Object, Rendered};
use crate::llm::{LlmReply, LlmRequest, ToolDef, Usage};
use crate::message::{CallPart, Message, ProviderData, Role};
use crate::ruling::KEPT_REWRITING;
use crate::testing::{Agent, Says, Script, args, call, hook, lines};
use crate::tool::ToolOutput;
use crate::verdict::{Abort, AbortScope, VerdictKind};

mod budget;
mod faults;
mod llm;
mod order;
mod output;
mod scopes;
mod verdicts;

/// Plays `script` over `hooks` and tells what it came to.
fn conclude<C: Says>(hooks: Vec<Hook>, known: EventContext<'static>, subject: C, script: Script) -> Conclusion<C> {
    let roster = Arc::new(Roster::new(hooks));
    let mut chain = Chain::new(roster.clone(), known, subject);
    script.play(&mut chain, &roster);
    chain.conclude()
}

fn ruled<C: Checkpoint>(ruling: &Ruling<C>) -> String {
    match ruling {
        Ruling::Proceed => "proceed".into(),
        Ruling::Respond { by, .. } => format!("{by} responds"),
        Ruling::Ask { by, .. } => format!("{by} asks"),
        Ruling::Deny(denied) => denied.text(),
        Ruling::Abort(aborted) => format!("{:?}: {}", aborted.abort.abort_scope, aborted.text()),
    }
}

/// The ruling and every record, one a line.
fn check<C: Says>(hooks: Vec<Hook>, subject: C, script: Script, expected: &str) {
    let conclusion = conclude(hooks, Agent::with(&[]), subject, script);
    let told = format!("{}\n{}", ruled(&conclusion.ruling), lines(&conclusion.records));
    let expected: Vec<&str> = expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    assert_eq!(told.lines().collect::<Vec<_>>(), expected);
}

fn before_tool() -> BeforeTool {
    BeforeTool { call: call("exec", "ls"), owner: None }
}

fn pre_tool_use() -> PreToolUse {
    PreToolUse { call: call("exec", "ls") }
}

fn approve_tool() -> ApproveTool {
    ApproveTool { call: call("exec", "ls") }
}

fn after_tool() -> AfterTool {
    AfterTool { call: call("exec", "ls"), result: ToolOutput::ok("done"), duration: Duration::ZERO }
}

fn before_llm(tools: &[&str]) -> BeforeLlm {
    BeforeLlm::new(LlmRequest {
        model: "m".into(),
        messages: vec![Rendered::new(Message::text(Role::User, "hi"))],
        tools: definitions(tools),
        options: Object::new(),
        graceful_terminal: false,
    })
}

fn definitions(tools: &[&str]) -> Vec<Rendered<ToolDef>> {
    tools.iter().map(|name| Rendered::new(ToolDef::new(name, "", crate::json::json!({})))).collect()
}

fn after_llm() -> AfterLlm {
    AfterLlm { model: "m".into(), response: LlmReply::text("hello") }
}

fn patch(cmd: &str) -> CallPatch {
    CallPatch { tool: None, arguments: Some(args(cmd)) }
}

fn abort(abort_scope: AbortScope, reason: &str) -> Abort {
    Abort { abort_scope, reason: reason.into() }
}
