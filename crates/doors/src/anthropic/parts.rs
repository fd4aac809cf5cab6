//! The parts of a message, as they go back to the model.

use pintle_domain::json::Value;

use super::text_part;

/// A part that the model wrote.
#[derive(Debug, PartialEq)]
pub(super) enum WrittenPart {
    /// A text.
    Text(String),
    /// A call.
    Call(String),
}

/// The part, if there is anything in it.
pub(super) fn written_part(part: &WrittenPart) -> Option<String> {
    match part {
        WrittenPart::Text(text) if text.is_empty() => None,
        WrittenPart::Text(text) => Some(text_part(text)),
        WrittenPart::Call(call) => Some(call.clone()),
    }
}

/// Whether it is the call `id`.
pub(super) fn is_call(part: &WrittenPart, id: &str) -> bool {
    match part {
        WrittenPart::Call(call) => call.starts_with(&format!(r#"{{"type":"tool_use","id":{},"#, Value::from(id))),
        WrittenPart::Text(_) => false,
    }
}
