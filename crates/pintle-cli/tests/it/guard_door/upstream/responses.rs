//! Answers of OpenAI's responses.

use serde_json::{Value, json};

use super::ARGUMENTS;

fn items(text: &str, calls: &[(String, &str)]) -> Vec<Value> {
    let id = calls.first().map_or("0", |(id, _)| id);
    let part = json!({"type": "output_text", "text": text, "annotations": []});
    let said = json!({"id": format!("msg_{id}"), "type": "message", "status": "completed", "role": "assistant", "content": [part]});
    let call = |(id, name): &(String, &str)| {
        json!({
            "id": format!("fc_{id}"), "type": "function_call", "status": "completed", "call_id": id, "name": name,
            "arguments": ARGUMENTS
        })
    };
    std::iter::once(said).chain(calls.iter().map(call)).collect()
}

/// The id of an answer: of those in a test, each has its own.
fn id_of(text: &str, calls: &[(String, &str)]) -> String {
    // What a call is called does not stand in an id: tests look for such names.
    let sum = |name: &str| name.bytes().map(u32::from).sum::<u32>();
    let calls: String = calls.iter().map(|(id, name)| format!("_{id}_{}", sum(name))).collect();
    format!("resp_{}{calls}", text.len())
}

fn response((id, status): (&str, &str), items: &[Value]) -> Value {
    let usage = json!({
        "input_tokens": 10, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 5,
        "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 15
    });
    json!({
        "id": id, "object": "response", "created_at": 1, "status": status, "error": null,
        "incomplete_details": null, "instructions": null, "metadata": {}, "model": "m", "output": items,
        "parallel_tool_calls": true, "temperature": 1.0, "tool_choice": "auto", "tools": [], "top_p": 1.0,
        "usage": if status == "completed" { usage } else { Value::Null }
    })
}

pub(super) fn whole(text: &str, calls: &[(String, &str)]) -> String {
    response((&id_of(text, calls), "completed"), &items(text, calls)).to_string()
}

pub(super) fn events(text: &str, calls: &[(String, &str)]) -> String {
    let (mut all, mut number) = (String::new(), 0);
    let mut event = |name: &str, more: Value| {
        let mut data = json!({"type": format!("response.{name}"), "sequence_number": number});
        data.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        number += 1;
        all += &format!("event: response.{name}\ndata: {data}\n\n");
    };
    let own = id_of(text, calls);
    let begun = response((&own, "in_progress"), &[]);
    event("created", json!({"response": begun}));
    event("in_progress", json!({"response": begun}));
    let items = items(text, calls);
    for (index, item) in items.iter().enumerate() {
        let id = &item["id"];
        let mut begun = item.clone();
        begun["status"] = "in_progress".into();
        if item["type"] == "message" {
            begun["content"] = json!([]);
            event("output_item.added", json!({"output_index": index, "item": begun}));
            let empty = json!({"type": "output_text", "text": "", "annotations": []});
            for (name, member, value) in [
                ("content_part.added", "part", empty),
                ("output_text.delta", "delta", json!(text)),
                ("output_text.done", "text", json!(text)),
                ("content_part.done", "part", item["content"][0].clone()),
            ] {
                event(
                    name,
                    json!({"item_id": id, "output_index": index, "content_index": 0, "logprobs": [], member: value}),
                );
            }
        } else {
            begun["arguments"] = "".into();
            event("output_item.added", json!({"output_index": index, "item": begun}));
            for part in [&ARGUMENTS[..7], &ARGUMENTS[7..]] {
                event("function_call_arguments.delta", json!({"item_id": id, "output_index": index, "delta": part}));
            }
            event(
                "function_call_arguments.done",
                json!({"item_id": id, "output_index": index, "name": item["name"], "arguments": ARGUMENTS}),
            );
        }
        event("output_item.done", json!({"output_index": index, "item": item}));
    }
    event("completed", json!({"response": response((&own, "completed"), &items)}));
    all
}
