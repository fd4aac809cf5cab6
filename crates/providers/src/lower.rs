//! Where the texts of hooks stand on a wire.
//!
//! A note of a hook is a system message in the middle of a conversation, which is a place that many wires do not have.
//! So it becomes *user text* at its place: `<system-reminder>`, newline, text, newline, `</system-reminder>`.
//!
//! * Inside these marks a `</system-reminder` of the text is written `&lt;/system-reminder`. In a request that uses
//!   them, both marks are escaped likewise in what users, tools and models said, and in what models put into calls: so
//!   nobody else can speak in a hook's name. Thoughts that a provider signed are the only exception; they are the
//!   model's own, and a change would break their signature.
//! * A note is never between a call and its results; one that is goes behind the last of these results.
//! * Nothing empty is sent.
//! * Neighbours of one role become one message, on the wire only ([`Thread`]): a note never makes two out of one.
//!
//! A request without such texts leaves as it stands. Nothing here names who put a text in: `origin` stays at home.

use std::borrow::Cow;

use domain::json::{Object, Rendered};
use domain::message::{FROM_HOOK, Message, Role};
use serde_json::{Value, json};

/// What stands around a hook's text, up to the `>`.
const OPEN: &str = "<system-reminder";
const CLOSE: &str = "</system-reminder";
/// The same where nobody is to take it for a mark.
const SAFE_OPEN: &str = "&lt;system-reminder";
const SAFE_CLOSE: &str = "&lt;/system-reminder";

/// A message as it is about to be sent.
pub(crate) struct Spoken<'a> {
    /// Whatever stood in the middle of the conversation as system text is a user's message now.
    pub(crate) message: Cow<'a, Message>,
    /// How it stands to the messages around it.
    pub(crate) join: Join,
}

/// Whether `message` is what a hook wants the model to read.
pub(crate) fn is_note(message: &Message) -> bool {
    message.role == Role::System && message.origin == FROM_HOOK
}

/// `messages` with everything for which `wrapped` holds as user text between marks, and the marks safe from others.
pub(crate) fn lowered<'a>(messages: &'a [Rendered<Message>], wrapped: fn(&Message) -> bool) -> Vec<Spoken<'a>> {
    let as_it_stands = |message| Spoken { message: Cow::Borrowed(message), join: Join::Never };
    let mut messages = messages.iter().map(Rendered::get);
    if !messages.clone().any(wrapped) {
        return messages.map(as_it_stands).collect();
    }
    let (mut sent, mut held) = (Vec::with_capacity(messages.len()), Vec::new());
    messages.by_ref().for_each(|message| match wrapped(message) {
        true => held.extend(reminder(message)),
        false => {
            if message.role != Role::Tool {
                sent.append(&mut held);
            }
            sent.push(Spoken { message: guarded(message), join: Join::Never });
        }
    });
    sent.append(&mut held);
    sent
}

/// A text between the marks. A note without text is not sent.
fn reminder(message: &Message) -> Option<Spoken<'static>> {
    let text = system_text(message);
    let content = match text.trim().is_empty() {
        true if is_note(message) => return None,
        true => String::new(),
        false => format!("{OPEN}>\n{}\n{CLOSE}>", text.replace(CLOSE, SAFE_CLOSE)),
    };
    Some(Spoken { message: Cow::Owned(Message::text(Role::User, content)), join: Join::Always })
}

/// The text of a system message, also of one that only has parts.
pub(crate) fn system_text(message: &Message) -> Cow<'_, str> {
    if !message.content.is_empty() || message.system_parts.is_empty() {
        return Cow::Borrowed(&message.content);
    }
    let parts: Vec<&str> = message.system_parts.iter().map(|part| part.text.as_str()).collect();
    Cow::Owned(parts.join("\n\n"))
}

/// `message`, in which nobody but the operator can write the marks.
fn guarded(message: &Message) -> Cow<'_, Message> {
    let mut safe = Cow::Borrowed(message);
    if message.role == Role::System {
        return safe;
    }
    if let Some(text) = escaped(&message.content) {
        safe.to_mut().content = text;
    }
    for (at, entry) in message.media.iter().enumerate() {
        if let Some(entry) = escaped(entry) {
            safe.to_mut().media[at] = entry;
        }
    }
    for (at, call) in message.tool_calls.iter().enumerate() {
        if let Some(name) = escaped(&call.function.name) {
            safe.to_mut().tool_calls[at].function.name = name;
        }
        if let Some(arguments) = escaped_arguments(&call.function.arguments) {
            safe.to_mut().tool_calls[at].function.arguments = arguments;
        }
    }
    for (at, block) in message.private.blocks.iter().enumerate() {
        let text = block["text"].as_str().filter(|_| block["type"] == "text");
        if let Some(text) = text.and_then(escaped) {
            safe.to_mut().private.blocks[at]["text"] = text.into();
        }
    }
    safe
}

/// `text` without the marks, if it has any.
fn escaped(text: &str) -> Option<String> {
    (text.contains(OPEN) || text.contains(CLOSE)).then(|| text.replace(OPEN, SAFE_OPEN).replace(CLOSE, SAFE_CLOSE))
}

/// The same for JSON text, which can spell a character in several ways.
fn escaped_arguments(text: &str) -> Option<String> {
    if text.contains('\\')
        && let Ok(mut arguments) = domain::json::parse(text)
    {
        return escape_within(&mut arguments).then(|| arguments.to_string());
    }
    escaped(text)
}

/// Escapes the marks in every string and every name of `value`; whether there were any.
fn escape_within(value: &mut Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
        Value::String(text) => match escaped(text) {
            Some(safe) => {
                *text = safe;
                true
            }
            None => false,
        },
        Value::Array(items) => items.iter_mut().fold(false, |any, item| escape_within(item) | any),
        Value::Object(members) => {
            let named = members.keys().any(|name| escaped(name).is_some());
            if named {
                let safe = |(name, value): (String, Value)| (escaped(&name).unwrap_or(name), value);
                *members = std::mem::take(members).into_iter().map(safe).collect::<Object>();
            }
            members.values_mut().fold(named, |any, member| escape_within(member) | any)
        }
    }
}

/// Whether a message becomes one with its neighbour of the same role.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Join {
    /// It stays apart.
    #[default]
    Never,
    /// With the one behind it, if both are mere text.
    Texts,
    /// With those on both sides.
    Always,
}

/// The messages of chat completions, as they are sent.
#[derive(Default)]
pub(crate) struct Thread {
    messages: Vec<Value>,
    /// What holds for the last of them.
    last: Join,
}

impl Thread {
    /// Adds `message`, or adds what it says to the last one.
    pub(crate) fn push(&mut self, message: Value, join: Join) {
        let last = std::mem::replace(&mut self.last, join);
        let of_user = |message: &Value| message["role"] == "user";
        match self.messages.last_mut().filter(|before| of_user(before) && of_user(&message)) {
            Some(before) if joined(before, last, &message, join) => append(before, message),
            Some(_) | None => self.messages.push(message),
        }
    }

    /// All of them.
    pub(crate) fn into_messages(self) -> Vec<Value> {
        self.messages
    }
}

fn joined(before: &Value, last: Join, message: &Value, join: Join) -> bool {
    match last {
        Join::Always => true,
        Join::Texts if before["content"].is_string() && message["content"].is_string() => true,
        Join::Texts | Join::Never => join == Join::Always,
    }
}

/// The content of `more` behind that of `before`, after a blank line where two texts meet.
fn append(before: &mut Value, mut more: Value) {
    let (content, more) = (&mut before["content"], more["content"].take());
    if let (Value::String(text), Value::String(more)) = (&mut *content, &more) {
        return below(text, more);
    }
    let mut all = parts(content.take());
    for part in parts(more) {
        let last = all.last_mut().and_then(|last| last.get_mut("text"));
        match (last, part["text"].as_str()) {
            (Some(Value::String(text)), Some(more)) => below(text, more),
            _ => all.push(part),
        }
    }
    *content = all.into();
}

fn below(text: &mut String, more: &str) {
    if !text.is_empty() {
        text.push_str("\n\n");
    }
    text.push_str(more);
}

fn parts(content: Value) -> Vec<Value> {
    match content {
        Value::Array(parts) => parts,
        Value::String(text) if !text.is_empty() => vec![text_part(&text)],
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
    }
}

/// A text as one part of a content.
pub(crate) fn text_part(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

#[cfg(test)]
mod tests;
