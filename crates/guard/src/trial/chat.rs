//! OpenAI's chat completions.

use pintle_domain::json::{Value, json};

use super::{TrialReply, TrialRequest, TrialSaid, content, data, list, streams, text};

/// What ends a stream.
const DONE: &str = "data: [DONE]\n\n";

pub(super) fn read(request: &Value) -> TrialRequest {
    let named = |tool: &Value| text(tool.get("function").unwrap_or(tool), "name").to_owned();
    let results = list(request, "messages").filter(|message| text(message, "role") == "tool");
    TrialRequest {
        tools: list(request, "tools").map(named).collect(),
        results: results.map(|message| content(message.get("content"))).collect(),
    }
}

pub(super) fn reply(request: &Value, said: &TrialSaid, id: &str) -> TrialReply {
    let (message, delta, reason) = match said {
        TrialSaid::Text(text) => {
            let message = json!({"role": "assistant", "content": text});
            (message.clone(), message, "stop")
        }
        TrialSaid::Call(call) => {
            let arguments = Value::Object(call.arguments.clone()).to_string();
            let function = json!({"name": call.tool, "arguments": arguments});
            let id = format!("call_{id}");
            let message = |calls: Value| json!({"role": "assistant", "content": null, "tool_calls": calls});
            (
                message(json!([{"id": id, "type": "function", "function": function}])),
                message(json!([{"index": 0, "id": id, "type": "function", "function": function}])),
                "tool_calls",
            )
        }
    };
    let usage = json!({"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2});
    let model = request.get("model").cloned().unwrap_or(Value::Null);
    let whole = |kind: &str, choices: Value, usage: &Value| {
        json!({
            "id": format!("chatcmpl-{id}"), "object": kind, "created": 1, "model": model, "choices": choices,
            "usage": usage,
        })
    };
    if !streams(request) {
        let choices = json!([{"index": 0, "message": message, "finish_reason": reason}]);
        return TrialReply::json(&whole("chat.completion", choices, &usage));
    }
    let chunk = |choices: Value, usage: &Value| data(&whole("chat.completion.chunk", choices, usage));
    TrialReply::stream([
        chunk(json!([{"index": 0, "delta": delta, "finish_reason": null}]), &Value::Null),
        chunk(json!([{"index": 0, "delta": {}, "finish_reason": reason}]), &Value::Null),
        chunk(json!([]), &usage),
        DONE.to_owned(),
    ])
}
