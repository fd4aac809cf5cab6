//! OpenAI's responses.

use pintle_domain::json::{Value, json};

use super::{TrialReply, TrialRequest, TrialSaid, content, list, named, streams, text};

pub(super) fn read(request: &Value) -> TrialRequest {
    let tools = list(request, "tools").map(|tool| text(tool, "name").to_owned()).collect();
    let results = list(request, "input").filter(|item| text(item, "type").ends_with("_call_output"));
    TrialRequest { tools, results: results.map(|item| content(item.get("output"))).collect() }
}

pub(super) fn reply(request: &Value, said: &TrialSaid, id: &str) -> TrialReply {
    let (item, deltas) = match said {
        TrialSaid::Text(text) => {
            let part = json!({"type": "output_text", "text": text, "annotations": []});
            let item = format!("msg_{id}");
            let place = json!({"output_index": 0, "item_id": item});
            (
                json!({
                    "type": "message", "id": item, "status": "completed", "role": "assistant", "content": [part],
                }),
                vec![with(json!({"type": "response.output_text.delta", "content_index": 0, "delta": text}), &place)],
            )
        }
        TrialSaid::Call(call) => {
            let arguments = Value::Object(call.arguments.clone()).to_string();
            let item = format!("fc_{id}");
            let place = json!({"output_index": 0, "item_id": item});
            let group = call.namespace.map_or(json!({}), |group| json!({"namespace": group}));
            let whole = json!({
                "type": "function_call", "id": item, "call_id": format!("call_{id}"), "name": call.tool,
                "arguments": arguments, "status": "completed",
            });
            (
                with(whole, &group),
                vec![
                    with(json!({"type": "response.function_call_arguments.delta", "delta": arguments}), &place),
                    with(json!({"type": "response.function_call_arguments.done", "arguments": arguments}), &place),
                ],
            )
        }
    };
    let usage = json!({
        "input_tokens": 1, "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": 1, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 2,
    });
    let model = request.get("model").cloned().unwrap_or(Value::Null);
    let response = |status: &str, output: Vec<Value>, usage: &Value| {
        json!({
            "id": format!("resp_{id}"), "object": "response", "created_at": 1, "status": status, "model": model,
            "output": output, "parallel_tool_calls": true, "usage": usage,
        })
    };
    let whole = response("completed", vec![item.clone()], &usage);
    if !streams(request) {
        return TrialReply::json(&whole);
    }
    let begun = response("in_progress", Vec::new(), &Value::Null);
    // As the vendor does: what grows is empty when it begins.
    let empty = match said {
        TrialSaid::Text(_) => json!({"status": "in_progress", "content": []}),
        TrialSaid::Call(_) => json!({"status": "in_progress", "arguments": ""}),
    };
    let mut events = vec![
        json!({"type": "response.created", "response": begun}),
        json!({"type": "response.output_item.added", "output_index": 0, "item": with(item.clone(), &empty)}),
    ];
    events.extend(deltas);
    events.push(json!({"type": "response.output_item.done", "output_index": 0, "item": item}));
    events.push(json!({"type": "response.completed", "response": whole}));
    let numbered =
        events.into_iter().zip(0_u64..).map(|(event, number)| with(event, &json!({"sequence_number": number})));
    TrialReply::stream(numbered.map(|event| named(&event)))
}

/// `event` with the members of `more`.
fn with(mut event: Value, more: &Value) -> Value {
    if let (Some(members), Some(more)) = (event.as_object_mut(), more.as_object()) {
        for (name, value) in more {
            members.insert(name.clone(), value.clone());
        }
    }
    event
}
