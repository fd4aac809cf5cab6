//! Anthropic's messages.

use pintle_domain::json::{Value, json};

use super::{TrialReply, TrialRequest, TrialSaid, content, list, named, streams, text};

pub(super) fn read(request: &Value) -> TrialRequest {
    let tools = list(request, "tools").map(|tool| text(tool, "name").to_owned()).collect();
    let blocks = list(request, "messages").flat_map(|message| list(message, "content"));
    let results = blocks.filter(|block| text(block, "type") == "tool_result");
    TrialRequest { tools, results: results.map(|result| content(result.get("content"))).collect() }
}

pub(super) fn reply(request: &Value, said: &TrialSaid, id: &str) -> TrialReply {
    let (block, begun, delta, reason) = match said {
        TrialSaid::Text(text) => (
            json!({"type": "text", "text": text}),
            json!({"type": "text", "text": ""}),
            json!({"type": "text_delta", "text": text}),
            "end_turn",
        ),
        TrialSaid::Call(call) => {
            let (tool, id) = (call.tool, format!("toolu_{id}"));
            let arguments = Value::Object(call.arguments.clone());
            (
                json!({"type": "tool_use", "id": id, "name": tool, "input": arguments}),
                json!({"type": "tool_use", "id": id, "name": tool, "input": {}}),
                json!({"type": "input_json_delta", "partial_json": arguments.to_string()}),
                "tool_use",
            )
        }
    };
    let model = request.get("model").cloned().unwrap_or(Value::Null);
    let message = |content: Value, reason: Value| {
        json!({
            "id": format!("msg_{id}"), "type": "message", "role": "assistant", "model": model, "content": content,
            "stop_reason": reason, "stop_sequence": null, "usage": {"input_tokens": 1, "output_tokens": 1},
        })
    };
    if !streams(request) {
        return TrialReply::json(&message(Value::from(vec![block]), reason.into()));
    }
    let events = [
        json!({"type": "message_start", "message": message(Value::from(Vec::<Value>::new()), Value::Null)}),
        json!({"type": "content_block_start", "index": 0, "content_block": begun}),
        json!({"type": "content_block_delta", "index": 0, "delta": delta}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({
            "type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null},
            "usage": {"output_tokens": 1},
        }),
        json!({"type": "message_stop"}),
    ];
    TrialReply::stream(events.iter().map(named))
}
