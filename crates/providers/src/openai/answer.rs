//! An answer of chat completions, from its chunks or in one piece.

use pintle_domain::json::Value;
use pintle_domain::llm::{LlmReply, Usage};
use pintle_domain::message::ProviderData;

use crate::inline_thought::InlineThought;
use crate::openai::call::Calls;
use crate::{Delta, OnDelta, ProviderError, failure};

/// The part of an answer that has arrived so far.
#[derive(Default)]
pub(super) struct Assembly {
    content: String,
    inline_thought: InlineThought,
    reasoning_content: String,
    reasoning: String,
    reasoning_details: Vec<Value>,
    calls: Calls,
    finish_reason: String,
    usage: Option<Usage>,
    heard: bool,
    /// Whether any of the text is a refusal.
    refused: bool,
}

impl Assembly {
    /// Takes a chunk, or a whole answer.
    pub(super) fn feed(&mut self, chunk: &Value, on_delta: OnDelta<'_>) -> Result<(), ProviderError> {
        if let Some(error) = chunk.get("error").filter(|error| !error.is_null()) {
            return Err(failure::in_answer(error));
        }
        if let Some(usage) = chunk.get("usage").filter(|usage| usage.is_object()) {
            self.usage = Some(usage_of(usage));
        }
        // Further choices (`n` above 1) are other answers to the same question; a turn has one.
        let Some(choice) = chunk.get("choices").and_then(Value::as_array).and_then(|choices| choices.first()) else {
            return Ok(());
        };
        if choice.get("index").and_then(Value::as_u64).unwrap_or(0) != 0 {
            return Ok(());
        }
        self.heard = true;
        if let Some(reason) = choice.get("finish_reason").and_then(Value::as_str).filter(|reason| !reason.is_empty()) {
            self.finish_reason = reason.into();
        }
        match choice.get("delta").or_else(|| choice.get("message")) {
            Some(piece) => self.piece(piece, on_delta),
            None => Ok(()),
        }
    }

    fn piece(&mut self, piece: &Value, on_delta: OnDelta<'_>) -> Result<(), ProviderError> {
        let text = |member| piece.get(member).and_then(Value::as_str).unwrap_or_default();
        let (content, reasoning) = (text("reasoning_content"), text("reasoning"));
        self.reasoning_content.push_str(content);
        self.reasoning.push_str(reasoning);
        // Servers that spell it both ways send the same text twice.
        let thought = if content.is_empty() { reasoning } else { content };
        if !thought.is_empty() {
            on_delta(Delta::Reasoning(thought));
        }
        if let Some(details) = piece.get("reasoning_details").and_then(Value::as_array) {
            self.reasoning_details.extend(details.iter().cloned());
        }
        self.text(piece.get("content").unwrap_or(&Value::Null), on_delta);
        let refusal = piece.get("refusal").unwrap_or(&Value::Null);
        self.refused |= refusal.as_str().is_some_and(|text| !text.is_empty());
        self.text(refusal, on_delta);
        let calls = piece.get("tool_calls").and_then(Value::as_array);
        calls.into_iter().flatten().try_for_each(|call| self.calls.feed(call))
    }

    /// Takes text: a string, or parts of which those with a text count.
    fn text(&mut self, content: &Value, on_delta: OnDelta<'_>) {
        match content {
            Value::String(text) if !text.is_empty() => {
                self.inline_thought.feed(text, &mut self.content, on_delta);
            }
            Value::Array(parts) => {
                for text in parts.iter().filter_map(|part| part.get("text").filter(|text| text.is_string())) {
                    self.text(text, on_delta);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {}
        }
    }

    /// Whether the server has named a reason for the end.
    pub(super) fn has_ended(&self) -> bool {
        !self.finish_reason.is_empty()
    }

    /// The answer.
    pub(super) fn finish(mut self, on_delta: OnDelta<'_>) -> Result<LlmReply, ProviderError> {
        if !self.heard {
            return Err(ProviderError::fatal("the answer holds no choice; check `base_url`"));
        }
        if self.finish_reason.is_empty() {
            self.finish_reason = if self.calls.is_empty() { "stop" } else { "tool_calls" }.into();
        }
        if self.refused && self.finish_reason == "stop" {
            self.finish_reason = "refusal".into();
        }
        let details = self.reasoning_details;
        let (thought, as_it_came) = self.inline_thought.finish(&mut self.content, on_delta);
        self.reasoning_content.push_str(&thought);
        Ok(LlmReply {
            private: ProviderData::of(as_it_came.into_iter().collect()),
            reasoning_content: self.reasoning_content,
            tool_calls: self.calls.finish(),
            finish_reason: self.finish_reason,
            usage: self.usage,
            reasoning: self.reasoning,
            reasoning_details: if details.is_empty() { Value::Null } else { Value::Array(details) },
            ..LlmReply::text(self.content)
        })
    }
}

/// Whether a chunk brings a part of the answer: anything but the role, and a reason for the end.
pub(super) fn has_content(chunk: &Value) -> bool {
    let choices = chunk.get("choices").and_then(Value::as_array);
    choices.into_iter().flatten().any(|choice| {
        let piece = choice.get("delta").or_else(|| choice.get("message")).and_then(Value::as_object);
        let mut members = piece.into_iter().flatten().filter(|(name, _)| *name != "role");
        members.any(|(_, value)| !is_empty(value))
            || choice.get("finish_reason").is_some_and(|reason| !is_empty(reason))
    })
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

fn usage_of(usage: &Value) -> Usage {
    let tokens = |member| usage.get(member).and_then(Value::as_u64).unwrap_or(0);
    let total = Some(tokens("total_tokens")).filter(|total| *total > 0);
    Usage::told(tokens("prompt_tokens"), tokens("completion_tokens"), total)
}
