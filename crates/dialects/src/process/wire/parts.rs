//! The things that a reply is made of: messages, calls, tool definitions, answers, results.

use pintle_domain::fault::Fault;
use pintle_domain::json::{Value, json};
use pintle_domain::llm::{FunctionDef, LlmReply, ToolDef, Usage};
use pintle_domain::message::{CallPart, FunctionPart, Message, ProviderData, Role, SystemPart};
use pintle_domain::tool::ToolOutput;

use super::hint::Shape;
use super::reader::{Path, Reader, flag, list, object, string, strings, text, value};
use crate::process::frame::{excerpt, skim};

/// The members of an LLM response.
pub(super) const RESPONSE_NAMES: [&str; 8] =
    ["role", "content", "reasoning_content", "tool_calls", "finish_reason", "usage", "reasoning", "reasoning_details"];

/// The members of a tool result.
pub(super) const OUTPUT_NAMES: [&str; 8] =
    ["for_llm", "for_user", "silent", "is_error", "async", "media", "artifact_tags", "response_handled"];

const RESPONSE: Shape<8> = Shape { names: RESPONSE_NAMES, elsewhere: &[] };
const OUTPUT: Shape<8> = Shape { names: OUTPUT_NAMES, elsewhere: &[] };
const MESSAGE: Shape<11> = Shape {
    names: [
        "role",
        "content",
        "reasoning_content",
        "media",
        "attachments",
        "system_parts",
        "tool_calls",
        "tool_call_id",
        "model_name",
        "created_at",
        "origin",
    ],
    elsewhere: &[],
};
const PART: Shape<3> = Shape { names: ["type", "text", "cache_control"], elsewhere: &[] };
const CALL: Shape<4> = Shape { names: ["id", "type", "function", "extra_content"], elsewhere: &[] };
const FUNCTION: Shape<3> = Shape { names: ["name", "arguments", "thought_signature"], elsewhere: &[] };
const TOOL: Shape<2> = Shape { names: ["type", "function"], elsewhere: &[] };
const DEFINITION: Shape<3> = Shape { names: ["name", "description", "parameters"], elsewhere: &[] };

impl Reader<'_> {
    /// A message of a request.
    pub(super) fn message(&mut self, path: &Path<'_>, json: &str) -> Result<Message, Fault> {
        let [role_text, content, reasoning, media, attachments, parts, calls, call_id, model, created, origin] =
            self.fields(path, json, &MESSAGE)?;
        let role = role(&path.name("role"), role_text)?
            .ok_or_else(|| Fault::broke(format!("{path} has no \"role\"; use system, user, assistant or tool")))?;
        Ok(Message {
            role,
            content: text(&path.name("content"), content)?,
            reasoning_content: text(&path.name("reasoning_content"), reasoning)?,
            media: strings(&path.name("media"), media)?,
            attachments: values(&path.name("attachments"), attachments)?,
            system_parts: self.parts(&path.name("system_parts"), parts)?,
            tool_calls: self.calls(&path.name("tool_calls"), calls)?,
            tool_call_id: text(&path.name("tool_call_id"), call_id)?,
            model_name: text(&path.name("model_name"), model)?,
            created_at: string(&path.name("created_at"), created)?,
            origin: text(&path.name("origin"), origin)?,
            private: ProviderData::default(),
        })
    }

    fn parts(&mut self, path: &Path<'_>, json: Option<&str>) -> Result<Vec<SystemPart>, Fault> {
        let elements = list(path, json, &skim::NOTHING)?.unwrap_or_default();
        let parts = elements.into_iter().enumerate().map(|(i, element)| {
            let path = path.index(i);
            let [kind, body, cache] = self.fields(&path, element, &PART)?;
            Ok(SystemPart {
                kind: text(&path.name("type"), kind)?,
                text: text(&path.name("text"), body)?,
                cache_control: value(&path.name("cache_control"), cache)?,
            })
        });
        parts.collect()
    }

    fn calls(&mut self, path: &Path<'_>, json: Option<&str>) -> Result<Vec<CallPart>, Fault> {
        let elements = list(path, json, &skim::NOTHING)?.unwrap_or_default();
        elements.into_iter().enumerate().map(|(i, element)| self.call_part(&path.index(i), element)).collect()
    }

    fn call_part(&mut self, path: &Path<'_>, json: &str) -> Result<CallPart, Fault> {
        let [id, kind, function, extra] = self.fields(path, json, &CALL)?;
        let at = path.name("function");
        let [name, arguments, signature] = self.fields(&at, function.unwrap_or("{}"), &FUNCTION)?;
        let id = text(&path.name("id"), id)?;
        Ok(CallPart {
            // A call that the hook made up has no name yet; it must differ from those of every other turn.
            id: if id.is_empty() { format!("call_{}", uuid::Uuid::new_v4().simple()) } else { id },
            kind: string(&path.name("type"), kind)?.unwrap_or_else(|| "function".into()),
            function: FunctionPart {
                name: required_name(&at, name)?,
                arguments: self.arguments(&at.name("arguments"), arguments)?,
                thought_signature: text(&at.name("thought_signature"), signature)?,
            },
            extra_content: value(&path.name("extra_content"), extra)?,
        })
    }

    /// The arguments of a call in a message: JSON text. An object counts as its own text.
    fn arguments(&mut self, path: &Path<'_>, json: Option<&str>) -> Result<String, Fault> {
        match json {
            Some(json) if json.starts_with('{') => {
                self.warn(format!("{path} should be a string of JSON, not an object"));
                Ok(json.to_owned())
            }
            Some(_) | None => text(path, json),
        }
    }

    /// A tool that is offered to the model.
    pub(super) fn tool(&mut self, path: &Path<'_>, json: &str) -> Result<ToolDef, Fault> {
        let [kind, function] = self.fields(path, json, &TOOL)?;
        let at = path.name("function");
        let [name, description, parameters] = self.fields(&at, function.unwrap_or("{}"), &DEFINITION)?;
        Ok(ToolDef {
            kind: string(&path.name("type"), kind)?.unwrap_or_else(|| "function".into()),
            function: FunctionDef {
                name: required_name(&at, name)?,
                description: text(&at.name("description"), description)?,
                parameters: object(&at.name("parameters"), parameters)?
                    .map_or_else(|| json!({"type": "object"}), Value::Object),
            },
        })
    }

    /// The answer that replaces a model's whole answer; its usage stays the provider's.
    pub(super) fn response(&mut self, path: &Path<'_>, json: &str, was: Option<Usage>) -> Result<LlmReply, Fault> {
        let [role_text, content, reasoning_content, calls, finish, usage, reasoning, details] =
            self.fields(path, json, &RESPONSE)?;
        match role(&path.name("role"), role_text)? {
            None | Some(Role::Assistant) => {}
            Some(Role::System | Role::User | Role::Tool) => {
                return Err(Fault::broke(format!("{path}.role must be \"assistant\"")));
            }
        }
        if let Some(usage) = usage.filter(|usage| skim::members(usage, &skim::NOTHING).is_none()) {
            return Err(path.name("usage").wrong("an object", usage));
        }
        self.read_only(&path.name("usage"), usage, || serde_json::to_string(&was).ok());
        Ok(LlmReply {
            role: Role::Assistant,
            content: text(&path.name("content"), content)?,
            reasoning_content: text(&path.name("reasoning_content"), reasoning_content)?,
            tool_calls: self.calls(&path.name("tool_calls"), calls)?,
            finish_reason: text(&path.name("finish_reason"), finish)?,
            usage: None,
            reasoning: text(&path.name("reasoning"), reasoning)?,
            reasoning_details: value(&path.name("reasoning_details"), details)?.unwrap_or_default(),
            private: ProviderData::default(),
        })
    }

    /// A tool result, and whether it has a `for_llm`.
    pub(super) fn output(&mut self, path: &Path<'_>, json: &str) -> Result<(ToolOutput, bool), Fault> {
        let [for_llm, for_user, silent, is_error, is_async, media, tags, handled] = self.fields(path, json, &OUTPUT)?;
        let output = ToolOutput {
            for_llm: text(&path.name("for_llm"), for_llm)?,
            for_user: text(&path.name("for_user"), for_user)?,
            silent: flag(&path.name("silent"), silent)?,
            is_error: flag(&path.name("is_error"), is_error)?,
            is_async: flag(&path.name("async"), is_async)?,
            media: strings(&path.name("media"), media)?,
            artifact_tags: strings(&path.name("artifact_tags"), tags)?,
            response_handled: flag(&path.name("response_handled"), handled)?,
        };
        Ok((output, for_llm.is_some()))
    }
}

fn values(path: &Path<'_>, json: Option<&str>) -> Result<Vec<Value>, Fault> {
    let elements = list(path, json, &skim::NOTHING)?.unwrap_or_default();
    let values = elements.into_iter().enumerate().map(|(i, element)| {
        let value = value(&path.index(i), Some(element))?;
        Ok(value.unwrap_or_default())
    });
    values.collect()
}

fn role(path: &Path<'_>, json: Option<&str>) -> Result<Option<Role>, Fault> {
    match string(path, json)?.as_deref() {
        None => Ok(None),
        Some("system") => Ok(Some(Role::System)),
        Some("user") => Ok(Some(Role::User)),
        Some("assistant") => Ok(Some(Role::Assistant)),
        Some("tool") => Ok(Some(Role::Tool)),
        Some(other) => {
            let other = excerpt(other);
            Err(Fault::broke(format!("{path} is \"{other}\"; use system, user, assistant or tool")))
        }
    }
}

fn required_name(path: &Path<'_>, json: Option<&str>) -> Result<String, Fault> {
    let name = text(&path.name("name"), json)?;
    if name.is_empty() {
        return Err(Fault::broke(format!("{path}.name is missing; a tool must be named")));
    }
    Ok(name)
}
