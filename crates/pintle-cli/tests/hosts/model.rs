//! A model that follows a plan, in the words of Anthropic's messages.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

/// A server that runs to the end of the test.
pub(crate) struct Model {
    pub(crate) url: String,
    asked: Arc<Mutex<Vec<Value>>>,
}

impl Model {
    /// A model that makes the calls of `plan`, one after another, and then says that it is done.
    pub(crate) fn start(plan: Vec<(&'static str, Value)>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let model = Self { url: format!("http://{}", listener.local_addr().unwrap()), asked: Arc::default() };
        let asked = model.asked.clone();
        let plan = Arc::new(plan);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (asked, plan) = (asked.clone(), plan.clone());
                thread::spawn(move || serve(stream, &plan, &asked));
            }
        });
        model
    }

    /// The results of tools that the newest request has, in their order.
    pub(crate) fn results(&self) -> Vec<String> {
        let asked = self.asked.lock().unwrap();
        asked.iter().map(results).max_by_key(Vec::len).unwrap_or_default()
    }

    /// Whether anybody asked it to go on with a conversation that has tools.
    pub(crate) fn was_asked(&self) -> bool {
        self.asked.lock().unwrap().iter().any(has_tools)
    }

    /// Everything that it was sent.
    pub(crate) fn heard(&self) -> String {
        self.asked.lock().unwrap().iter().map(Value::to_string).collect()
    }
}

fn has_tools(request: &Value) -> bool {
    request["tools"].as_array().is_some_and(|tools| !tools.is_empty())
}

fn results(request: &Value) -> Vec<String> {
    let messages = request["messages"].as_array().cloned().unwrap_or_default();
    let blocks = messages.iter().filter_map(|message| message["content"].as_array()).flatten();
    let results = blocks.filter(|block| block["type"] == "tool_result");
    results
        .map(|result| result["content"].as_str().map_or_else(|| result["content"].to_string(), str::to_owned))
        .collect()
}

fn serve(stream: TcpStream, plan: &[(&str, Value)], asked: &Mutex<Vec<Value>>) -> Option<()> {
    let mut stream = BufReader::new(stream);
    let (mut first, mut length) = (String::new(), 0);
    stream.read_line(&mut first).ok()?;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).ok()?;
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    let path = first.split(' ').nth(1)?.split('?').next()?.to_owned();
    let (kind, text) = if path.ends_with("/messages") {
        let request: Value = serde_json::from_slice(&body).ok()?;
        let step = results(&request).len();
        let call = plan.get(step).filter(|_| has_tools(&request));
        asked.lock().unwrap().push(request.clone());
        ("text/event-stream", answer(&request, call, step))
    } else {
        ("application/json", json!({"input_tokens": 1}).to_string())
    };
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        text.len()
    );
    stream.get_mut().write_all(&[head.as_bytes(), text.as_bytes()].concat()).ok()
}

fn answer(request: &Value, call: Option<&(&str, Value)>, step: usize) -> String {
    let (begun, delta, reason) = match call {
        Some((name, input)) => (
            json!({"type": "tool_use", "id": format!("toolu_{step}"), "name": name, "input": {}}),
            json!({"type": "input_json_delta", "partial_json": input.to_string()}),
            "tool_use",
        ),
        None => (json!({"type": "text", "text": ""}), json!({"type": "text_delta", "text": "done"}), "end_turn"),
    };
    let usage = json!({"input_tokens": 1, "output_tokens": 1});
    let message = json!({
        "id": format!("msg_{step}"), "type": "message", "role": "assistant", "model": request["model"], "content": [],
        "stop_reason": null, "stop_sequence": null, "usage": usage,
    });
    let events = [
        json!({"type": "message_start", "message": message}),
        json!({"type": "content_block_start", "index": 0, "content_block": begun}),
        json!({"type": "content_block_delta", "index": 0, "delta": delta}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null}, "usage": {"output_tokens": 1}}),
        json!({"type": "message_stop"}),
    ];
    events.iter().map(|event| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap())).collect()
}
