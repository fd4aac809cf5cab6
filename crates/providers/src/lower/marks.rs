//! The marks around a hook's text, which nobody else can write.

use std::borrow::Cow;

use domain::json::{Object, Value};
use domain::message::{Message, Role};

use crate::inline_thought;

/// The mark that stands around a hook's text, up to the `>`.
pub(super) const OPEN: &str = "<system-reminder";
pub(super) const CLOSE: &str = "</system-reminder";
/// The opening mark, written so that nobody takes it for one.
const SAFE_OPEN: &str = "&lt;system-reminder";
const SAFE_CLOSE: &str = "&lt;/system-reminder";

/// `text` between the marks.
pub(super) fn wrapped(text: &str) -> String {
    format!("{OPEN}>\n{}\n{CLOSE}>", text.replace(CLOSE, SAFE_CLOSE))
}

/// `message`, in which nobody but the operator can write the marks.
pub(super) fn guarded(message: &Message) -> Cow<'_, Message> {
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
        let text = block["text"].as_str().filter(|_| block["type"] == "text" || block["type"] == inline_thought::BLOCK);
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
