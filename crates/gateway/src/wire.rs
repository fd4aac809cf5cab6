//! Two published ways to talk to a model over HTTP, spoken by agents. Pure: requests in, answers out.

use pintle_domain::history::HistoryMessage;
use pintle_domain::json::{Object, Value};
use pintle_domain::message::Role;

use crate::error::{ApiError, ErrorCode};

use content::{Attachment, Content};

pub(crate) mod anthropic;
pub(crate) mod content;
pub(crate) mod openai;

/// Most messages of a request. Source: the page of the gateway.
const MAX_MESSAGES: usize = 200;

/// Most files of a request: more than any model looks at.
const MAX_FILES: usize = 64;

/// What a request asks for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Asked {
    /// The agent.
    pub(crate) agent: String,
    /// The conversation before the prompt.
    pub(crate) history: Vec<HistoryMessage>,
    pub(crate) prompt: String,
    /// The files that come with messages, each with the place of its message in the history; without one it is the
    /// prompt's.
    pub(crate) files: Vec<(Option<usize>, Attachment)>,
    /// Whether the answer is wanted in pieces.
    pub(crate) stream: bool,
    /// Whether the usage is wanted at the end of a stream.
    pub(crate) usage_in_stream: bool,
    /// The skills whose texts go in.
    pub(crate) skills: Option<Vec<String>>,
}

/// How a member of a request is treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Member {
    /// It is read.
    Read,
    /// The operator's settings count in its place.
    Ignored,
    /// Only the value that means nothing is taken.
    OnlyDefault,
}

/// Refuses what is neither known nor means nothing.
pub(crate) fn check_members(body: &Object, table: &[(&str, Member)]) -> Result<(), ApiError> {
    for (name, value) in body {
        match table.iter().find(|(known, _)| known == name) {
            Some((_, Member::Read | Member::Ignored)) => {}
            Some((_, Member::OnlyDefault)) if means_nothing(value) => {}
            Some((_, Member::OnlyDefault)) => {
                return Err(ApiError::invalid(format!("`{name}` is not supported: the agent decides it")));
            }
            // Clients send what they leave out as nothing.
            None if value.is_null() => {}
            None => return Err(ApiError::invalid(format!("`{name}` is not known"))),
        }
    }
    Ok(())
}

/// Whether a value is one that clients send who want nothing by it.
fn means_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(on) => !on,
        Value::Number(_) => value.as_f64().is_some_and(|number| number == 0.0 || number == 1.0),
        Value::String(word) => ["", "auto", "none", "default", "text"].contains(&word.as_str()),
        Value::Array(all) => all.is_empty() || all.iter().all(|one| one.as_str() == Some("text")),
        Value::Object(members) => {
            members.is_empty()
                || (members.len() == 1
                    && members
                        .get("type")
                        .and_then(Value::as_str)
                        .is_some_and(|kind| ["text", "auto", "none"].contains(&kind)))
        }
    }
}

/// The text of a member that must be there.
pub(crate) fn needed<'a>(body: &'a Object, name: &str) -> Result<&'a str, ApiError> {
    let text = body.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    text.ok_or_else(|| ApiError::invalid(format!("`{name}` must be a string that is not empty")))
}

pub(crate) fn flag(body: &Object, name: &str) -> Result<bool, ApiError> {
    match body.get(name) {
        None | Some(Value::Null) => Ok(false),
        Some(Value::Bool(on)) => Ok(*on),
        Some(_) => Err(ApiError::invalid(format!("`{name}` must be true or false"))),
    }
}

/// The members that only Pintle reads.
pub(crate) fn skills(body: &Object) -> Result<Option<Vec<String>>, ApiError> {
    let Some(value) = body.get("skills").filter(|value| !value.is_null()) else { return Ok(None) };
    let names = value.as_array().and_then(|all| all.iter().map(|one| one.as_str().map(str::to_owned)).collect());
    names.map(Some).ok_or_else(|| ApiError::invalid("`skills` must be a list of strings"))
}

/// A message with the files that come with it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct WireMessage {
    pub(crate) kept: HistoryMessage,
    pub(crate) files: Vec<Attachment>,
}

/// A message of a history, with what front ends keep of it.
pub(crate) fn kept(message: &Object, role: Role, content: Content) -> WireMessage {
    let text = |name: &str| message.get(name).and_then(Value::as_str).map(str::to_owned);
    let kept = HistoryMessage {
        hook: text("_hook"),
        skill: text("_skill"),
        sig: text("_sig"),
        ..HistoryMessage::text(role, content.text)
    };
    WireMessage { kept, files: content.files }
}

/// What the messages of a request are.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Said {
    pub(crate) history: Vec<HistoryMessage>,
    pub(crate) prompt: String,
    pub(crate) files: Vec<(Option<usize>, Attachment)>,
}

/// Takes the last message of the user's as the prompt; what stands before it is the conversation.
pub(crate) fn said(mut messages: Vec<WireMessage>) -> Result<Said, ApiError> {
    if messages.len() > MAX_MESSAGES {
        return Err(ApiError::invalid(format!("`messages` has more than {MAX_MESSAGES} messages")));
    }
    let is_prompt = |last: &WireMessage| {
        // White space alone says nothing: no model gets it.
        let says = !last.kept.content.trim().is_empty() || !last.files.is_empty();
        last.kept.role == Role::User && last.kept.hook.is_none() && says
    };
    let Some(last) = messages.pop().filter(is_prompt) else {
        return Err(ApiError::invalid("the last message must be the user's, and must not be empty"));
    };
    let mut files = Vec::new();
    let mut history = Vec::with_capacity(messages.len());
    for (place, message) in messages.into_iter().enumerate() {
        files.extend(message.files.into_iter().map(|file| (Some(place), file)));
        history.push(message.kept);
    }
    files.extend(last.files.into_iter().map(|file| (None, file)));
    if files.len() > MAX_FILES {
        return Err(ApiError::invalid(format!("`messages` has more than {MAX_FILES} files")));
    }
    Ok(Said { history, prompt: last.kept.content, files })
}

/// The words of an error for those who speak one of these ways.
pub(crate) fn error_type(code: ErrorCode) -> &'static str {
    match code {
        ErrorCode::InvalidRequest | ErrorCode::NotLinked | ErrorCode::NotPaired | ErrorCode::NotImplemented => {
            "invalid_request_error"
        }
        ErrorCode::Unauthorized => "authentication_error",
        ErrorCode::TenantAccessRevoked => "permission_error",
        ErrorCode::NotFound => "not_found_error",
        ErrorCode::AlreadyExists | ErrorCode::FailedPrecondition => "invalid_request_error",
        ErrorCode::ResourceExhausted => "rate_limit_error",
        ErrorCode::Unavailable | ErrorCode::AgentTimeout | ErrorCode::Internal => "api_error",
    }
}
