//! Gemini's `generateContent` and `streamGenerateContent`.

use pintle_domain::json::{Value, json};

use super::{TrialReply, TrialRequest, TrialSaid, content, data, list, text};

pub(super) fn read(request: &Value) -> TrialRequest {
    let declared = list(request, "tools").flat_map(|tool| list(tool, "functionDeclarations"));
    let parts = list(request, "contents").flat_map(|turn| list(turn, "parts"));
    let answered = parts.filter_map(|part| part.get("functionResponse"));
    TrialRequest {
        tools: declared.map(|tool| text(tool, "name").to_owned()).collect(),
        results: answered.map(|answer| content(answer.get("response"))).collect(),
    }
}

pub(super) fn reply(path: &str, request: &Value, said: &TrialSaid, id: &str) -> TrialReply {
    let part = match said {
        TrialSaid::Text(text) => json!({"text": shaped(request, text)}),
        TrialSaid::Call(call) => {
            json!({"functionCall": {"name": call.tool, "args": Value::Object(call.arguments.clone())}})
        }
    };
    let answer = json!({
        "candidates": [{"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
        "modelVersion": "canary", "responseId": id,
    });
    if path.contains("streamGenerate") { TrialReply::stream([data(&answer)]) } else { TrialReply::json(&answer) }
}

/// The text, in the shape that the request wants: the host asks some questions of its own in that way.
fn shaped(request: &Value, text: &str) -> String {
    let config = request.get("generationConfig");
    let schema = config.and_then(|config| config.get("responseJsonSchema").or_else(|| config.get("responseSchema")));
    let Some(properties) = schema.and_then(|schema| schema.get("properties")).and_then(Value::as_object) else {
        return text.to_owned();
    };
    let members = properties.iter().map(|(name, _)| (name.clone(), Value::from(text))).collect();
    Value::Object(members).to_string()
}
