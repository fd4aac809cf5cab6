//! Chat completions. Source: the published API of OpenAI.

use pintle_domain::json::{Object, Value, from_value, json};
use pintle_domain::llm::Usage;
use pintle_domain::message::Role;

use super::content::{Part, attached, content, object_of, of_url, only_text, text_of};
use super::{Asked, Member, Said, WireMessage, check_members, error_type, flag, kept, needed, said, skills};
use crate::error::ApiError;

/// The members of a request.
pub(crate) const MEMBERS: &[(&str, Member)] = &[
    ("audio", Member::OnlyDefault),
    ("frequency_penalty", Member::Ignored),
    ("function_call", Member::OnlyDefault),
    ("functions", Member::OnlyDefault),
    ("logit_bias", Member::OnlyDefault),
    ("logprobs", Member::OnlyDefault),
    ("max_completion_tokens", Member::Ignored),
    ("max_tokens", Member::Ignored),
    ("messages", Member::Read),
    ("metadata", Member::Ignored),
    ("modalities", Member::OnlyDefault),
    ("model", Member::Read),
    ("n", Member::OnlyDefault),
    ("parallel_tool_calls", Member::Ignored),
    ("prediction", Member::OnlyDefault),
    ("presence_penalty", Member::Ignored),
    ("prompt_cache_key", Member::Ignored),
    ("prompt_cache_retention", Member::Ignored),
    ("reasoning_effort", Member::Ignored),
    ("response_format", Member::OnlyDefault),
    ("safety_identifier", Member::Ignored),
    ("seed", Member::Ignored),
    ("service_tier", Member::Ignored),
    ("skills", Member::Read),
    ("stop", Member::OnlyDefault),
    ("store", Member::Ignored),
    ("stream", Member::Read),
    ("stream_options", Member::Read),
    ("temperature", Member::Ignored),
    ("tool_choice", Member::OnlyDefault),
    ("tools", Member::OnlyDefault),
    ("top_logprobs", Member::OnlyDefault),
    ("top_p", Member::Ignored),
    ("user", Member::Ignored),
    ("verbosity", Member::Ignored),
    ("web_search_options", Member::OnlyDefault),
];

/// Reads a request.
pub(crate) fn read(body: &Value) -> Result<Asked, ApiError> {
    let body = body.as_object().ok_or_else(|| ApiError::invalid("the body must be a JSON object"))?;
    check_members(body, MEMBERS)?;
    let agent = needed(body, "model")?.to_owned();
    let list = body.get("messages").and_then(Value::as_array);
    let list = list.ok_or_else(|| ApiError::invalid("`messages` must be a list"))?;
    let messages: Result<Vec<_>, _> = list.iter().enumerate().map(|(i, one)| message(one, i)).collect();
    let Said { history, prompt, files } = said(messages?)?;
    let options = body.get("stream_options").and_then(Value::as_object);
    let usage_in_stream = options.map(|options| flag(options, "include_usage")).transpose()?.unwrap_or(false);
    let (stream, skills) = (flag(body, "stream")?, skills(body)?);
    Ok(Asked { agent, history, prompt, files, stream, usage_in_stream, skills })
}

fn message(value: &Value, i: usize) -> Result<WireMessage, ApiError> {
    let at = format!("messages[{i}]");
    let message = value.as_object().ok_or_else(|| ApiError::invalid(format!("`{at}` must be an object")))?;
    let role = match message.get("role").and_then(Value::as_str) {
        Some("system" | "developer") => Role::System,
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("tool" | "function") => Role::Tool,
        Some(other) => return Err(ApiError::invalid(format!("`{at}.role`: there is no role \"{other}\""))),
        None => return Err(ApiError::invalid(format!("`{at}.role` must be a string"))),
    };
    let parts = match role {
        Role::User => file,
        Role::Assistant => refusal,
        Role::System | Role::Tool => only_text,
    };
    let mut read = kept(message, role, content(message.get("content"), &at, parts)?);
    let kept = &mut read.kept;
    if let Some(calls) = message.get("tool_calls").filter(|calls| !calls.is_null()) {
        kept.tool_calls =
            from_value(calls.clone()).map_err(|error| ApiError::invalid(format!("`{at}.tool_calls`: {error}")))?;
    }
    if let Some(id) = message.get("tool_call_id").and_then(Value::as_str) {
        id.clone_into(&mut kept.tool_call_id);
    }
    Ok(read)
}

/// What a model said why it would not go on.
fn refusal(part: &Object, at: &str) -> Result<Option<Part>, ApiError> {
    match part.get("type").and_then(Value::as_str) {
        Some("refusal") => Ok(Some(Part::Text(text_of(part, "refusal", at)?.to_owned()))),
        Some(_) | None => Ok(None),
    }
}

/// An image or a file that stands among the parts of a message.
fn file(part: &Object, at: &str) -> Result<Option<Part>, ApiError> {
    match part.get("type").and_then(Value::as_str) {
        Some("image_url") => {
            let (image, at) = (object_of(part, "image_url", at)?, format!("{at}.image_url"));
            of_url(text_of(image, "url", &at)?, "", &format!("{at}.url")).map(Part::File).map(Some)
        }
        Some("file") => {
            let (file, at) = (object_of(part, "file", at)?, format!("{at}.file"));
            let name = file.get("filename").and_then(Value::as_str).unwrap_or_default();
            match file.get("file_id").and_then(Value::as_str) {
                Some(id) => Ok(Some(Part::File(attached(id)))),
                None => {
                    let read = of_url(text_of(file, "file_data", &at)?, name, &format!("{at}.file_data"));
                    read.map(Part::File).map(Some)
                }
            }
        }
        Some(_) | None => Ok(None),
    }
}

/// The head that every answer to one request has.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    pub(crate) id: String,
    pub(crate) created: i64,
    pub(crate) model: String,
}

impl Head {
    fn of(&self, object: &str) -> Object {
        let mut head = Object::new();
        head.insert("id".to_owned(), json!(self.id));
        head.insert("object".to_owned(), json!(object));
        head.insert("created".to_owned(), json!(self.created));
        head.insert("model".to_owned(), json!(self.model));
        head
    }

    /// The whole answer.
    pub(crate) fn answer(&self, content: &str, ended: &str, usage: Usage, pintle: Value) -> Value {
        let mut answer = self.of("chat.completion");
        let message = json!({ "role": "assistant", "content": content, "refusal": null });
        let choice = json!({ "index": 0, "message": message, "logprobs": null, "finish_reason": ended });
        answer.insert("choices".to_owned(), json!([choice]));
        answer.insert("usage".to_owned(), json!(usage));
        answer.insert("pintle".to_owned(), pintle);
        Value::Object(answer)
    }

    /// A piece of an answer that is told as it comes.
    pub(crate) fn piece(&self, delta: Value, ended: Option<&str>) -> Value {
        let mut piece = self.of("chat.completion.chunk");
        let choice = json!({ "index": 0, "delta": delta, "logprobs": null, "finish_reason": ended });
        piece.insert("choices".to_owned(), json!([choice]));
        Value::Object(piece)
    }

    /// What only Pintle's clients read, in its place among the pieces.
    pub(crate) fn aside(&self, pintle: Value) -> Value {
        // Simple clients look at the first choice of every piece.
        let mut piece = self.piece(json!({}), None);
        piece["pintle"] = pintle;
        piece
    }

    /// The last piece, with what it cost.
    pub(crate) fn cost(&self, usage: Usage) -> Value {
        let mut piece = self.of("chat.completion.chunk");
        piece.insert("choices".to_owned(), json!([]));
        piece.insert("usage".to_owned(), json!(usage));
        Value::Object(piece)
    }
}

/// A refusal; `code` says it in one word for programs.
pub(crate) fn error(error: &ApiError, code: &str) -> Value {
    json!({ "error": { "message": error.message, "type": error_type(error.code), "param": null, "code": code } })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::content::Attachment;

    fn refused(body: Value) -> String {
        read(&body).unwrap_err().message
    }

    #[test]
    fn a_request_is_a_conversation_and_a_prompt() {
        let body = json!({
            "model": "main", "temperature": 0.7, "n": 1, "stream": true, "stream_options": { "include_usage": true },
            "messages": [
                { "role": "developer", "content": "be kind" },
                { "role": "system", "content": "tone", "_hook": "tone", "_skill": "voice", "_sig": "s" },
                { "role": "user", "content": [{ "type": "text", "text": "hel" }, { "type": "text", "text": "lo" }] },
                { "role": "assistant", "content": null },
                { "role": "user", "content": "and now?" }
            ]
        });
        let asked = read(&body).unwrap();
        assert_eq!((asked.agent.as_str(), asked.prompt.as_str()), ("main", "and now?"));
        assert!(asked.stream && asked.usage_in_stream);
        let roles: Vec<Role> = asked.history.iter().map(|message| message.role).collect();
        assert_eq!(roles, [Role::System, Role::System, Role::User, Role::Assistant]);
        assert_eq!(asked.history[1].hook.as_deref(), Some("tone"));
        assert_eq!(asked.history[2].content, "hello");
    }

    #[test]
    fn images_and_files_come_with_their_messages() {
        let image = |url: &str| json!({ "type": "image_url", "image_url": { "url": url, "detail": "low" } });
        let body = json!({ "model": "m", "messages": [
            { "role": "user", "content": [{ "type": "text", "text": "see" }, image("data:image/png;base64,AAE=")] },
            { "role": "assistant", "content": "yes" },
            { "role": "user", "content": [
                image("media://0123"),
                { "type": "file", "file": { "file_data": "data:application/pdf;base64,AA==", "filename": "a.pdf" } },
                { "type": "file", "file": { "file_id": "4567" } },
                { "type": "file", "file": { "file_id": "media://89ab" } },
            ] },
        ] });
        let asked = read(&body).unwrap();
        let inline = |content_type: &str, bytes: &[u8], file_name: &str| Attachment::Inline {
            content_type: content_type.into(),
            bytes: bytes.to_vec(),
            file_name: file_name.into(),
        };
        assert_eq!(
            asked.files,
            [
                (Some(0), inline("image/png", &[0, 1], "")),
                (None, Attachment::Kept("0123".into())),
                (None, inline("application/pdf", &[0], "a.pdf")),
                (None, Attachment::Kept("4567".into())),
                (None, Attachment::Kept("89ab".into())),
            ]
        );
        assert_eq!((asked.history.len(), asked.prompt.as_str()), (2, ""));
    }

    #[test]
    fn a_refusal_of_the_model_and_base64_as_programs_write_it_are_read() {
        let image = |data: &str| json!({ "type": "image_url", "image_url": { "url": format!("data:image/png;base64,{data}") } });
        let body = json!({ "model": "m", "prompt_cache_retention": "24h", "messages": [
            { "role": "assistant", "content": [{ "type": "refusal", "refusal": "no" }] },
            { "role": "user", "content": [image("AAE"), image("AA\nE=\r\n")] },
        ] });
        let asked = read(&body).unwrap();
        assert_eq!(asked.history[0].content, "no");
        let bytes = |place: usize| match &asked.files[place].1 {
            Attachment::Inline { bytes, .. } => bytes.clone(),
            Attachment::Kept(id) => panic!("{id}"),
        };
        assert_eq!([bytes(0), bytes(1)], [vec![0, 1], vec![0, 1]]);
    }

    #[test]
    fn what_an_agent_does_not_do_is_refused_by_name() {
        let user = || json!([{ "role": "user", "content": "x" }]);
        assert_eq!(refused(json!([])), "the body must be a JSON object");
        assert_eq!(refused(json!({ "messages": user() })), "`model` must be a string that is not empty");
        assert_eq!(
            refused(json!({ "model": "m", "messages": user(), "n": 2 })),
            "`n` is not supported: the agent decides it"
        );
        assert_eq!(
            refused(json!({ "model": "m", "messages": user(), "tools": [{}] })),
            "`tools` is not supported: the agent decides it"
        );
        assert_eq!(refused(json!({ "model": "m", "messages": user(), "tempratur": 1 })), "`tempratur` is not known");
        let says = |text: &str| json!([{ "role": "user", "content": "x" }, { "role": "user", "content": text }]);
        for messages in [json!([]), says(""), says(" \n\u{3000}")] {
            assert_eq!(
                refused(json!({ "model": "m", "messages": messages })),
                "the last message must be the user's, and must not be empty"
            );
        }
        let said = |part: Value| refused(json!({ "model": "m", "messages": [{ "role": "user", "content": [part] }] }));
        let at = "`messages[0].content[0]";
        assert_eq!(
            said(json!({ "type": "input_audio" })),
            format!("{at}`: parts of the type \"input_audio\" are not taken")
        );
        assert_eq!(said(json!({ "type": "image_url" })), format!("{at}.image_url` must be an object"));
        let of = |url: &str| said(json!({ "type": "image_url", "image_url": { "url": url } }));
        for url in ["https://h/x.png", "file:///etc/passwd", "data:image/png", ""] {
            assert!(
                of(url).starts_with(&format!("{at}.image_url.url`: expected a `data:` URL or `media://ID`")),
                "{url}"
            );
        }
        assert!(of("data:image/png;base64,?").contains("no base64"));
        for nothing in [json!(null), json!([]), json!(1), json!("auto"), json!(false), json!({ "type": "text" })] {
            for (name, member) in MEMBERS.iter().filter(|(_, member)| *member == Member::OnlyDefault) {
                let mut body = json!({ "model": "m", "messages": user() });
                body[*name] = nothing.clone();
                assert!(read(&body).is_ok(), "{name} {member:?} {nothing}");
            }
        }
    }
}
