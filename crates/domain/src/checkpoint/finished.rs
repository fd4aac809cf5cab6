//! What happened in a turn, as it is told: the events of a call, of a model call and of the turn's end.

use std::time::Duration;

use super::notice::ObservedEvent;
use super::runtime::{RuntimeEvent, ToolExecution, TurnStatus};
use crate::id::HookName;
use crate::identity::Identity;
use crate::json::Value;
use crate::llm::{LlmReply, LlmRequest, OddEnd, Usage};
use crate::tool::{ToolCall, ToolOutput};

impl RuntimeEvent {
    /// The turn of `who` begins with `prompt`.
    pub fn turn_start(who: &Identity, prompt: &str) -> Self {
        Self::TurnStart {
            channel: who.channel.clone(),
            chat_id: who.chat_id.clone(),
            user_message: prompt.to_owned(),
            media_count: 0,
        }
    }

    /// `request` leaves for a provider.
    pub fn llm_request(request: &LlmRequest) -> Self {
        let number = |name: &str| request.options.get(name);
        Self::LlmRequest {
            model: request.model.clone(),
            messages_count: request.messages.len(),
            tools_count: request.tools.len(),
            max_tokens: number("max_tokens").and_then(Value::as_u64).unwrap_or_default(),
            temperature: number("temperature").and_then(Value::as_f64).unwrap_or_default(),
        }
    }

    /// `reply` is there; `odd_end` says how it ended before hooks saw it.
    pub fn llm_response(reply: &LlmReply, odd_end: Option<OddEnd>) -> Self {
        Self::LlmResponse {
            content_len: reply.content.len(),
            tool_calls: reply.tool_calls.len(),
            has_reasoning: !(reply.reasoning_content.is_empty() && reply.reasoning.is_empty()),
            odd_end,
        }
    }

    /// `call` begins to run, or the hook `by` answered it.
    pub fn tool_exec_start(call: &ToolCall, by: Option<&HookName>) -> Self {
        Self::ToolExecStart {
            tool: call.tool.clone(),
            arguments: call.arguments.clone(),
            tool_call_id: call.id.to_string(),
            hook: by.map(ToString::to_string),
        }
    }

    /// The result of a call is settled.
    pub fn tool_exec_end(finished: &FinishedCall) -> Self {
        let FinishedCall { call, output, by, took } = finished;
        Self::ToolExecEnd {
            tool: call.tool.clone(),
            duration: *took,
            for_llm_len: output.for_llm.len(),
            for_user_len: output.for_user.len(),
            is_error: output.is_error,
            r#async: output.is_async,
            tool_call_id: call.id.to_string(),
            hook: by.as_ref().map(ToString::to_string),
            error: output.is_error.then(|| output.for_llm.lines().next().unwrap_or_default().to_owned()),
        }
    }

    /// `call` does not run, for `reason`; the hook `by` refused it, if one did.
    pub fn tool_exec_skipped(call: &ToolCall, reason: &str, by: Option<&HookName>) -> Self {
        Self::ToolExecSkipped {
            tool: call.tool.clone(),
            reason: reason.to_owned(),
            tool_call_id: call.id.to_string(),
            hook: by.map(ToString::to_string),
        }
    }
}

/// A call with its final result.
#[derive(Clone, Debug, PartialEq)]
pub struct FinishedCall {
    /// The call.
    pub call: ToolCall,
    /// Its result.
    pub output: ToolOutput,
    /// The hook that answered in the tool's place, if one did.
    pub by: Option<HookName>,
    /// How long the tool ran, or the hook took to answer.
    pub took: Duration,
}

impl FinishedCall {
    /// Its line in `turn_end`.
    pub fn execution(&self) -> ToolExecution {
        let error = self.output.is_error.then_some(self.output.for_llm.as_str());
        ToolExecution::new(&self.call.tool, error)
    }
}

/// A turn that is over, as its end is told.
#[derive(Clone, Debug)]
pub struct FinishedTurn {
    /// The status in which it ended.
    pub status: TurnStatus,
    /// The number of rounds.
    pub iterations: u32,
    /// The time since it began here.
    pub duration: Duration,
    /// The message that it began with, as the gates left it.
    pub prompt: String,
    /// What the user was left with.
    pub reply: String,
    /// The calls that have a result.
    pub executions: Vec<ToolExecution>,
    /// What its model calls cost.
    pub usage: Usage,
}

impl FinishedTurn {
    /// Its `turn_end`.
    pub fn turn_end(&self) -> RuntimeEvent {
        let mut tool_kinds: Vec<String> = self.executions.iter().map(|execution| execution.name.clone()).collect();
        tool_kinds.sort();
        tool_kinds.dedup();
        RuntimeEvent::TurnEnd {
            status: self.status,
            iterations: self.iterations,
            duration: self.duration,
            final_content_len: self.reply.len(),
            user_message: self.prompt.clone(),
            final_content: self.reply.clone(),
            tool_kinds,
            tool_executions: self.executions.clone(),
        }
    }

    /// Its `stop`, if it completed: a turn that was stopped or failed has none.
    pub fn stop(self) -> Option<ObservedEvent> {
        let Self { status, iterations, duration, reply, usage, .. } = self;
        (status == TurnStatus::Completed).then_some(ObservedEvent::Stop { reply, iterations, usage, duration })
    }
}
