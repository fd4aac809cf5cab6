//! The messages of chat completions, as they are sent: neighbours that become one.

use pintle_domain::json::{Value, json};

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
    /// It stays apart, whatever its neighbours say.
    Alone,
}

/// The messages of chat completions, as they are sent.
#[derive(Default)]
pub(crate) struct Thread {
    messages: Vec<Value>,
    /// The join that holds for the last of them.
    last: Join,
}

impl Thread {
    /// Adds `message`, or adds what it says to the last one.
    pub(crate) fn push(&mut self, message: Value, join: Join) {
        let last = std::mem::replace(&mut self.last, join);
        let alike = |before: &Value| before["role"] == message["role"] && before["role"] != "tool";
        match self.messages.last_mut().filter(|before| alike(before)) {
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
        Join::Alone => false,
        Join::Always | Join::Never | Join::Texts if join == Join::Alone => false,
        Join::Always => true,
        Join::Texts if before["content"].is_string() && message["content"].is_string() => true,
        Join::Texts | Join::Never => join == Join::Always,
    }
}

/// The content of `more` behind that of `before`, after a blank line where two texts meet.
fn append(before: &mut Value, mut more: Value) {
    if let Value::Array(calls) = more["tool_calls"].take() {
        match before["tool_calls"].as_array_mut() {
            Some(all) => all.extend(calls),
            None => before["tool_calls"] = calls.into(),
        }
    }
    let (content, more) = (&mut before["content"], more["content"].take());
    if content.is_null() || more.is_null() {
        if content.is_null() {
            *content = more;
        }
        return;
    }
    if let (Value::String(text), Value::String(more)) = (&mut *content, &more) {
        return below(text, more);
    }
    let mut all = parts(content.take());
    for part in parts(more) {
        // A part that carries more than its text stays what it is.
        let last = all.last_mut().filter(|last| is_bare(last)).and_then(|last| last.get_mut("text"));
        match (last, part["text"].as_str().filter(|_| is_bare(&part))) {
            (Some(Value::String(text)), Some(more)) => below(text, more),
            _ => all.push(part),
        }
    }
    *content = all.into();
}

/// Adds `more` to `text` after a blank line.
pub(super) fn below(text: &mut String, more: &str) {
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

fn is_bare(part: &Value) -> bool {
    part.as_object().is_some_and(|part| part.len() == 2)
}

/// Makes a content of one text carry the member `marker`.
pub(crate) fn mark(content: &mut Value, marker: &str) {
    let mut all = parts(content.take());
    for part in &mut all {
        part[marker] = true.into();
    }
    *content = all.into();
}

/// A text as one part of a content.
pub(crate) fn text_part(text: &str) -> Value {
    json!({"type": "text", "text": text})
}
