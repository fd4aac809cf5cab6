//! What stands in a conversation.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::json::{Object, Value};
use crate::ledger::provenance::{MessageSource, Provenance};

/// Who speaks in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Instructions of the operator.
    System,
    /// A person, or whoever stands in for one.
    User,
    /// The model.
    Assistant,
    /// The result of one call of the model.
    Tool,
}

/// One message. Empty optional members are left out of its JSON.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Message {
    /// Who speaks.
    pub role: Role,
    /// The text; may be empty.
    #[serde(default)]
    pub content: String,
    /// The thoughts of the model, where its provider tells.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reasoning_content: String,
    /// `media://` references.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub media: Vec<String>,
    /// Foreign attachments, passed on as they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Value>,
    /// System text in parts, where parts are cached apart.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub system_parts: Vec<SystemPart>,
    /// The calls that an assistant message asks for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<CallPart>,
    /// Which call a tool message answers.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tool_call_id: String,
    /// The model that wrote an assistant message.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub model_name: String,
    /// RFC 3339, UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<String>,
    /// [`FROM_HOOK`] for what a hook put in; empty for everybody else's.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub origin: String,
    /// The data that only the host and the provider know; never sent to a hook.
    #[serde(skip)]
    pub private: ProviderData,
}

/// The origin of a message that a hook put into the conversation.
pub const FROM_HOOK: &str = "hook";

/// Data of the provider that must come back to it untouched: signatures of thoughts, cache marks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProviderData {
    /// The provider's own content blocks for this message, if it needs them again.
    pub blocks: Vec<Value>,
    /// The lifetime of the message in the conversation.
    pub lifetime: Lifetime,
    /// Where it comes from, if somebody noted it.
    pub from: Option<Arc<Provenance>>,
}

impl ProviderData {
    /// The data that a provider keeps of a message, and nothing else.
    pub fn of(blocks: Vec<Value>) -> Self {
        Self { blocks, ..Self::default() }
    }
}

/// The lifetime of a message in the conversation of its turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Lifetime {
    /// The turn's next call sees it too.
    #[default]
    Stays,
    /// It leaves before the turn's next call.
    Passing,
}

impl Lifetime {
    /// The number of a list's messages that the turn's next call begins with, as these say how long each stays.
    pub fn shared(list: impl IntoIterator<Item = Self>) -> usize {
        list.into_iter().take_while(|lifetime| *lifetime == Self::Stays).count()
    }
}

impl Message {
    /// A message with only a role and a text.
    pub fn text(role: Role, content: impl Into<String>) -> Self {
        Self {
            role,
            content: content.into(),
            reasoning_content: String::new(),
            media: Vec::new(),
            attachments: Vec::new(),
            system_parts: Vec::new(),
            tool_calls: Vec::new(),
            tool_call_id: String::new(),
            model_name: String::new(),
            created_at: None,
            origin: String::new(),
            private: ProviderData::default(),
        }
    }

    /// The message that the hook `name` wants the model to read.
    pub fn note(name: &str, text: &str) -> Self {
        Self { origin: FROM_HOOK.into(), ..Self::text(Role::System, format!("[hook \"{name}\"] {text}")) }
    }

    /// Puts `arguments` in the place of those of the call at `place`, and takes out what else may hold the old ones.
    /// Says whether there is such a call.
    pub fn rewrite_call(&mut self, place: usize, arguments: &str) -> bool {
        let Some(part) = self.tool_calls.get_mut(place) else { return false };
        arguments.clone_into(&mut part.function.arguments);
        part.function.thought_signature.clear();
        // What the provider keeps of its answer holds the arguments as they were.
        self.private = ProviderData::default();
        true
    }

    /// The result of the call `id`.
    pub fn tool(id: &str, content: impl Into<String>) -> Self {
        Self { tool_call_id: id.into(), ..Self::text(Role::Tool, content) }
    }

    /// Where it comes from, read off its role where nobody noted it.
    pub fn provenance(&self) -> Provenance {
        if let Some(from) = &self.private.from {
            return (**from).clone();
        }
        let hook = self.origin == FROM_HOOK;
        let origin = match self.role {
            Role::System | Role::User if hook => MessageSource::Hook,
            Role::System => MessageSource::Builtin,
            Role::User => MessageSource::User,
            Role::Assistant => MessageSource::Model,
            Role::Tool => MessageSource::Tool,
        };
        let call = Some(&self.tool_call_id).filter(|id| !id.is_empty());
        Provenance { tool_call_id: call.cloned(), ..Provenance::new(origin, 0) }
    }
}

/// A part of a system text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SystemPart {
    /// Always `text` so far.
    #[serde(rename = "type", default)]
    pub kind: String,
    /// The text.
    #[serde(default)]
    pub text: String,
    /// The provider's cache mark, passed on as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_control: Option<Value>,
}

/// A call as it stands in an assistant message: the arguments are JSON *text*, as the model wrote it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallPart {
    /// Pairs the call with its tool message.
    #[serde(default)]
    pub id: String,
    /// Always `function`.
    #[serde(rename = "type", default = "function")]
    pub kind: String,
    /// Name and arguments.
    pub function: FunctionPart,
    /// Foreign content of the provider, passed on as it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra_content: Option<Value>,
}

fn function() -> String {
    "function".into()
}

/// The name and the arguments of a [`CallPart`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FunctionPart {
    /// The tool, as the model named it.
    pub name: String,
    /// A JSON object, as text.
    #[serde(default)]
    pub arguments: String,
    /// The provider's signature of the thought behind the call.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub thought_signature: String,
}

impl CallPart {
    /// A call of `name` with `arguments` as JSON text.
    pub fn new(id: &str, name: &str, arguments: &str) -> Self {
        Self {
            id: id.into(),
            kind: function(),
            function: FunctionPart { name: name.into(), arguments: arguments.into(), thought_signature: String::new() },
            extra_content: None,
        }
    }

    /// The arguments as an object. Empty text counts as `{}`.
    ///
    /// # Errors
    /// What is wrong with the text, in words for the model.
    pub fn arguments(&self) -> Result<Object, String> {
        let text = self.function.arguments.trim();
        if text.is_empty() {
            return Ok(Object::new());
        }
        match crate::json::parse(text) {
            Ok(Value::Object(members)) => Ok(members),
            // Models write it for a tool that takes nothing.
            Ok(Value::Null) => Ok(Object::new()),
            Ok(Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_)) => {
                Err("the arguments are not a JSON object".into())
            }
            Err(e) => Err(format!("the arguments are not valid JSON: {e}")),
        }
    }
}
