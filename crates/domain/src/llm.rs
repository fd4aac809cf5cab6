//! One call of a language model: what is asked and what comes back.

use serde::{Deserialize, Serialize};

use crate::json::{Object, Rendered, Value};
use crate::message::{CallPart, Message, ProviderData, Role};

mod odd_end;

pub use odd_end::OddEnd;

/// A request to a model, as hooks see and change it.
#[derive(Clone, Debug, PartialEq)]
pub struct LlmRequest {
    /// `provider/model`.
    pub model: String,
    /// The conversation, system text first.
    pub messages: Vec<Rendered<Message>>,
    /// The tools that are offered.
    pub tools: Vec<Rendered<ToolDef>>,
    /// Sampling options such as `temperature`, `max_tokens`; unknown ones reach the provider too.
    pub options: Object,
    /// True for the last call of a turn that comes to an end before its work is done: after a graceful interrupt, or with
    /// all rounds spent.
    pub graceful_terminal: bool,
}

impl LlmRequest {
    /// A request to `model` with this conversation, no tools and no options.
    pub fn new(model: &str, messages: impl IntoIterator<Item = Message>) -> Self {
        Self {
            model: model.to_owned(),
            messages: messages.into_iter().map(Into::into).collect(),
            tools: Vec::new(),
            options: Object::new(),
            graceful_terminal: false,
        }
    }
}

/// A tool as it is offered to a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolDef {
    /// Always `function`.
    #[serde(rename = "type", default = "function")]
    pub kind: String,
    /// Name, description and parameters.
    pub function: FunctionDef,
}

fn function() -> String {
    "function".into()
}

/// The inner part of a [`ToolDef`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FunctionDef {
    /// The name under which the model calls it.
    pub name: String,
    /// The purpose of the function, for the model.
    #[serde(default)]
    pub description: String,
    /// JSON Schema of the arguments.
    #[serde(default = "any_object")]
    pub parameters: Value,
}

fn any_object() -> Value {
    crate::json::json!({"type": "object"})
}

impl ToolDef {
    /// A definition of `name`.
    pub fn new(name: &str, description: &str, parameters: Value) -> Self {
        Self {
            kind: function(),
            function: FunctionDef { name: name.into(), description: description.into(), parameters },
        }
    }
}

/// A model's answer, as hooks see and change it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LlmReply {
    /// Always `assistant`.
    #[serde(default = "assistant")]
    pub role: Role,
    /// The text.
    #[serde(default)]
    pub content: String,
    /// The thoughts of the model, where its provider tells.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reasoning_content: String,
    /// The calls that the model asks for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<CallPart>,
    /// `stop`, `tool_calls`, `length` or the provider's own word.
    #[serde(default)]
    pub finish_reason: String,
    /// The usage of the call, where the provider tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// A reasoning text of providers that name it so.
    #[serde(default)]
    pub reasoning: String,
    /// Foreign reasoning blocks, passed on as they are; `null` when there are none.
    #[serde(default)]
    pub reasoning_details: Value,
    /// The data that only the host and the provider know; never sent to a hook.
    #[serde(skip)]
    pub private: ProviderData,
}

fn assistant() -> Role {
    Role::Assistant
}

impl LlmReply {
    /// A finished answer of text only.
    pub fn text(content: impl Into<String>) -> Self {
        Self {
            role: Role::Assistant,
            content: content.into(),
            reasoning_content: String::new(),
            tool_calls: Vec::new(),
            finish_reason: "stop".into(),
            usage: None,
            reasoning: String::new(),
            reasoning_details: Value::Null,
            private: ProviderData::default(),
        }
    }

    /// An answer that asks for `calls`.
    pub fn calls(calls: Vec<CallPart>) -> Self {
        Self { tool_calls: calls, finish_reason: "tool_calls".into(), ..Self::text("") }
    }

    /// Whether there is a text or a call in it.
    pub fn says_something(&self) -> bool {
        !self.content.trim().is_empty() || !self.tool_calls.is_empty()
    }

    /// The assistant message that this answer leaves in the conversation.
    pub fn into_message(self, model: &str) -> Message {
        Message {
            reasoning_content: self.reasoning_content,
            tool_calls: self.tool_calls,
            model_name: model.into(),
            private: self.private,
            ..Message::text(Role::Assistant, self.content)
        }
    }
}

/// Tokens of one model call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens that were read.
    #[serde(default)]
    pub prompt_tokens: u64,
    /// Tokens that were written.
    #[serde(default)]
    pub completion_tokens: u64,
    /// Both.
    #[serde(default)]
    pub total_tokens: u64,
}

/// Most tokens that one call of a model costs: a thousand times the largest window. What an endpoint claims beyond it
/// is no count.
pub const MAX_CALL_TOKENS: u64 = 1 << 32;

impl Usage {
    /// The usage that a provider tells of one call, none of it beyond [`MAX_CALL_TOKENS`]. Where it tells no total, that
    /// is the sum.
    pub fn told(prompt_tokens: u64, completion_tokens: u64, total_tokens: Option<u64>) -> Self {
        let total_tokens = total_tokens.unwrap_or(prompt_tokens.saturating_add(completion_tokens));
        Self {
            prompt_tokens: prompt_tokens.min(MAX_CALL_TOKENS),
            completion_tokens: completion_tokens.min(MAX_CALL_TOKENS),
            total_tokens: total_tokens.min(MAX_CALL_TOKENS),
        }
    }

    /// Adds what one more model call cost, as far as its provider tells. No sum goes beyond what can be written.
    pub fn add(&mut self, call: Option<Self>) {
        let Some(Self { prompt_tokens, completion_tokens, total_tokens }) = call else { return };
        self.prompt_tokens = self.prompt_tokens.saturating_add(prompt_tokens);
        self.completion_tokens = self.completion_tokens.saturating_add(completion_tokens);
        self.total_tokens = self.total_tokens.saturating_add(total_tokens);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_claim_of_a_provider_overflows() {
        let most = Usage { prompt_tokens: 7, completion_tokens: MAX_CALL_TOKENS, total_tokens: MAX_CALL_TOKENS };
        assert_eq!(Usage::told(7, u64::MAX, None), most);
        assert_eq!(Usage::told(7, 2, Some(0)).total_tokens, 0);
        assert_eq!(Usage::told(7, 2, None).total_tokens, 9);
        let all = Usage { prompt_tokens: u64::MAX, completion_tokens: u64::MAX, total_tokens: u64::MAX };
        let mut sum = Usage { prompt_tokens: 1, ..all };
        sum.add(Some(all));
        sum.add(None);
        assert_eq!(sum, all);
    }
}
