//! Messages. Source: the published API of Anthropic.

use pintle_domain::history::HistoryMessage;
use pintle_domain::json::{Object, Value, json};
use pintle_domain::llm::Usage;
use pintle_domain::message::Role;

use super::content::{Attachment, Content, Part, attached, content, inline, object_of, of_url, only_text, text_of};
use super::{Asked, Member, Said, WireMessage, check_members, error_type, flag, kept, needed, said, skills};
use crate::error::ApiError;

/// The members of a request.
pub(crate) const MEMBERS: &[(&str, Member)] = &[
    ("cache_control", Member::Ignored),
    ("container", Member::OnlyDefault),
    ("context_management", Member::OnlyDefault),
    ("inference_geo", Member::Ignored),
    ("max_tokens", Member::Ignored),
    ("mcp_servers", Member::OnlyDefault),
    ("messages", Member::Read),
    ("metadata", Member::Ignored),
    ("model", Member::Read),
    ("output_config", Member::Read),
    ("output_format", Member::OnlyDefault),
    ("service_tier", Member::Ignored),
    ("skills", Member::Read),
    ("speed", Member::Ignored),
    ("stop_sequences", Member::OnlyDefault),
    ("stream", Member::Read),
    ("system", Member::Read),
    ("temperature", Member::Ignored),
    ("thinking", Member::Ignored),
    ("tool_choice", Member::OnlyDefault),
    ("tools", Member::OnlyDefault),
    ("top_k", Member::Ignored),
    ("top_p", Member::Ignored),
];

/// Reads a request.
pub(crate) fn read(body: &Value) -> Result<Asked, ApiError> {
    let body = body.as_object().ok_or_else(|| ApiError::invalid("the body must be a JSON object"))?;
    check_members(body, MEMBERS)?;
    // How much effort a model makes is the agent's; a form of answers is one that agents do not keep.
    if body.get("output_config").and_then(|config| config.get("format")).is_some_and(|format| !format.is_null()) {
        return Err(ApiError::invalid("`output_config.format` is not supported: the agent decides it"));
    }
    let agent = needed(body, "model")?.to_owned();
    let list = body.get("messages").and_then(Value::as_array);
    let list = list.ok_or_else(|| ApiError::invalid("`messages` must be a list"))?;
    let Content { text: system, .. } = content(body.get("system"), "system", only_text)?;
    let system = (!system.is_empty())
        .then(|| WireMessage { kept: HistoryMessage::text(Role::System, system), files: Vec::new() });
    let messages: Result<Vec<_>, _> = list.iter().enumerate().map(|(i, one)| message(one, i)).collect();
    let messages = messages?.into_iter().flatten();
    let Said { history, prompt, files } = said(system.into_iter().chain(messages).collect())?;
    let (stream, skills) = (flag(body, "stream")?, skills(body)?);
    Ok(Asked { agent, history, prompt, files, stream, usage_in_stream: true, skills })
}

/// A message; nothing where all of it was left out.
fn message(value: &Value, i: usize) -> Result<Option<WireMessage>, ApiError> {
    let at = format!("messages[{i}]");
    let message = value.as_object().ok_or_else(|| ApiError::invalid(format!("`{at}` must be an object")))?;
    let role = match (message.get("role").and_then(Value::as_str), message.contains_key("_hook")) {
        (Some("user"), _) => Role::User,
        (Some("assistant"), _) => Role::Assistant,
        // The dialect has no such role; a text of a hook that comes back has.
        (Some("system"), true) => Role::System,
        (Some(other), _) => return Err(ApiError::invalid(format!("`{at}.role`: there is no role \"{other}\""))),
        (None, _) => return Err(ApiError::invalid(format!("`{at}.role` must be a string"))),
    };
    let parts = match role {
        Role::User => asked,
        Role::Assistant => spoken,
        Role::System | Role::Tool => only_text,
    };
    let content = content(message.get("content"), &at, parts)?;
    let is_empty = content.left_out && content.text.is_empty() && content.files.is_empty();
    Ok((!is_empty).then(|| kept(message, role, content)))
}

/// What stands in a user's message beside text: files, and results of calls, which an agent has of its own.
fn asked(part: &Object, at: &str) -> Result<Option<Part>, ApiError> {
    match part.get("type").and_then(Value::as_str) {
        Some("tool_result") => Ok(Some(Part::LeftOut)),
        Some(_) | None => Ok(file(part, at)?.map(Part::File)),
    }
}

/// What stands in a model's message beside text: its thoughts and calls.
fn spoken(part: &Object, _at: &str) -> Result<Option<Part>, ApiError> {
    let kind = part.get("type").and_then(Value::as_str).unwrap_or_default();
    let is_call = kind.ends_with("tool_use") || kind.ends_with("_tool_result");
    Ok((is_call || ["thinking", "redacted_thinking"].contains(&kind)).then_some(Part::LeftOut))
}

/// An image or a document that stands among the parts of a message.
fn file(part: &Object, at: &str) -> Result<Option<Attachment>, ApiError> {
    let Some("image" | "document") = part.get("type").and_then(Value::as_str) else { return Ok(None) };
    let name = part.get("title").and_then(Value::as_str).unwrap_or_default();
    let (source, at) = (object_of(part, "source", at)?, format!("{at}.source"));
    let file = match source.get("type").and_then(Value::as_str) {
        Some("base64") => inline(text_of(source, "media_type", &at)?, text_of(source, "data", &at)?, name, &at)?,
        Some("url") => of_url(text_of(source, "url", &at)?, name, &format!("{at}.url"))?,
        Some("file") => attached(text_of(source, "file_id", &at)?),
        Some("text") => Attachment::Inline {
            content_type: "text/plain".to_owned(),
            bytes: text_of(source, "data", &at)?.as_bytes().to_vec(),
            file_name: name.to_owned(),
        },
        Some(other) => return Err(ApiError::invalid(format!("`{at}.type`: \"{other}\" is not taken"))),
        None => return Err(ApiError::invalid(format!("`{at}.type` must be a string"))),
    };
    Ok(Some(file))
}

fn cost(usage: Usage) -> Value {
    json!({ "input_tokens": usage.prompt_tokens, "output_tokens": usage.completion_tokens })
}

/// How an answer ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ended<'a> {
    pub(crate) reason: &'a str,
    pub(crate) usage: Usage,
}

/// The whole answer.
pub(crate) fn answer(id: &str, model: &str, content: &str, ended: Ended<'_>, pintle: Value) -> Value {
    json!({
        "id": id,
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [{ "type": "text", "text": content }],
        "stop_reason": ended.reason,
        "stop_sequence": null,
        "usage": cost(ended.usage),
        "pintle": pintle,
    })
}

/// The events before the first piece.
pub(crate) fn begin(id: &str, model: &str) -> [Value; 2] {
    let message = json!({
        "id": id, "type": "message", "role": "assistant", "model": model, "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": cost(Usage::default()),
    });
    [
        json!({ "type": "message_start", "message": message }),
        json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "" } }),
    ]
}

/// A piece.
pub(crate) fn piece(text: &str) -> Value {
    json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": text } })
}

/// What only Pintle's clients read, in its place among the pieces: a piece without text.
pub(crate) fn aside(pintle: Value) -> Value {
    let mut piece = piece("");
    piece["pintle"] = pintle;
    piece
}

/// The events after the last piece.
pub(crate) fn end(ended: &str, usage: Usage) -> [Value; 3] {
    [
        json!({ "type": "content_block_stop", "index": 0 }),
        json!({
            "type": "message_delta", "delta": { "stop_reason": ended, "stop_sequence": null }, "usage": cost(usage),
        }),
        json!({ "type": "message_stop" }),
    ]
}

/// A refusal.
pub(crate) fn error(error: &ApiError, code: &str) -> Value {
    json!({ "type": "error", "error": { "type": error_type(error.code), "message": error.message, "code": code } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_a_conversation_and_a_prompt() {
        let body = json!({
            "model": "main", "max_tokens": 1024, "system": [{ "type": "text", "text": "be kind" }],
            "messages": [
                { "role": "user", "content": "hello" },
                { "role": "assistant", "content": [{ "type": "text", "text": "hi" }] },
                { "role": "system", "content": "tone", "_hook": "tone" },
                { "role": "user", "content": "and now?" }
            ]
        });
        let asked = read(&body).unwrap();
        assert_eq!(asked.prompt, "and now?");
        let roles: Vec<Role> = asked.history.iter().map(|message| message.role).collect();
        assert_eq!(roles, [Role::System, Role::User, Role::Assistant, Role::System]);
        let nobody = json!({ "model": "m", "messages": [{ "role": "system", "content": "x" }] });
        assert_eq!(read(&nobody).unwrap_err().message, "`messages[0].role`: there is no role \"system\"");
    }

    #[test]
    fn what_a_model_and_its_vendor_said_to_one_another_is_left_out() {
        let body = json!({ "model": "m", "max_tokens": 1, "output_config": { "effort": "low" }, "later": null, "messages": [
            { "role": "user", "content": "a" },
            { "role": "assistant", "content": [
                { "type": "thinking", "thinking": "x", "signature": "s" },
                { "type": "text", "text": "b" },
                { "type": "tool_use", "id": "t", "name": "n", "input": {} },
            ] },
            { "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "t", "content": "r" }] },
            { "role": "assistant", "content": [{ "type": "redacted_thinking", "data": "x" }] },
            { "role": "user", "content": "c" },
        ] });
        let asked = read(&body).unwrap();
        let said: Vec<&str> = asked.history.iter().map(|message| message.content.as_str()).collect();
        assert_eq!((said, asked.prompt.as_str()), (vec!["a", "b"], "c"));
        let mut last = body.clone();
        last["messages"].as_array_mut().unwrap().truncate(3);
        assert_eq!(read(&last).unwrap_err().message, "the last message must be the user's, and must not be empty");
        for (id, kept) in [("0a", "0a"), ("media://0a", "0a")] {
            let source = json!({ "type": "file", "file_id": id });
            let parts = json!([{ "type": "text", "text": " " }, { "type": "document", "source": source }]);
            last["messages"] = json!([{ "role": "user", "content": parts }]);
            assert_eq!(read(&last).unwrap().files, [(None, Attachment::Kept(kept.into()))]);
        }
        let mut other = body;
        other["output_config"] = json!({ "format": { "type": "json_schema" } });
        assert!(read(&other).unwrap_err().message.starts_with("`output_config.format` is not supported"));
    }
}
