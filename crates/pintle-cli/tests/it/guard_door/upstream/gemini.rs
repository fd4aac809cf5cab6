//! Answers of Gemini.

use serde_json::{Value, json};

use super::ARGUMENTS;

fn chunk(parts: &str, ends: bool) -> String {
    let finish = if ends { r#", "finishReason": "STOP""# } else { "" };
    format!(
        r#"{{"candidates": [{{"content": {{"parts": [{parts}], "role": "model"}}{finish}, "index": 0}}], "usageMetadata": {{"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}}, "modelVersion": "m", "responseId": "r1"}}"#
    )
}

/// Calls without ids, as this vendor has many.
fn call(name: &str) -> String {
    format!(r#"{{"functionCall": {{"name": "{name}", "args": {ARGUMENTS}}}, "thoughtSignature": "c2ln"}}"#)
}

pub(super) fn whole(text: &str, calls: &[(String, &str)]) -> String {
    let said = json!({"text": text}).to_string();
    let parts: Vec<String> = std::iter::once(said).chain(calls.iter().map(|(_, name)| call(name))).collect();
    chunk(&parts.join(", "), true)
}

pub(super) fn events(text: &str, calls: &[(String, &str)]) -> String {
    let mut all = format!("data: {}\r\n\r\n", chunk(&json!({"text": text}).to_string(), calls.is_empty()));
    for (place, (_, name)) in calls.iter().enumerate() {
        all += &format!("data: {}\r\n\r\n", chunk(&call(name), place + 1 == calls.len()));
    }
    all
}

/// The text of what was said last, in the form that other wires have.
pub(super) fn said(body: &Value) -> Value {
    let last = body["contents"].as_array().and_then(|contents| contents.last()).cloned().unwrap_or_default();
    let text = |part: &Value| {
        let result = &part["functionResponse"]["response"];
        let said = part["text"].as_str().or(result["error"].as_str()).unwrap_or_default();
        json!({"text": said})
    };
    let parts: Vec<Value> = last["parts"].as_array().map(|parts| parts.iter().map(text).collect()).unwrap_or_default();
    json!({"content": parts})
}
