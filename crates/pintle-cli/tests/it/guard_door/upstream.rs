//! A vendor of models for tests: what it answers is said by the newest prompt, and what it was sent is kept.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

/// A request as it came.
#[derive(Clone, Debug)]
pub(crate) struct Came {
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Came {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// A vendor of all wires.
pub(crate) struct Vendor {
    pub(crate) address: SocketAddr,
    came: Arc<Mutex<Vec<Came>>>,
}

impl Vendor {
    pub(crate) fn open() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let came: Arc<Mutex<Vec<Came>>> = Arc::default();
        let kept = came.clone();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let kept = kept.clone();
                thread::spawn(move || answer(stream, &kept));
            }
        });
        Self { address, came }
    }

    /// All requests, in order.
    pub(crate) fn came(&self) -> Vec<Came> {
        self.came.lock().unwrap().clone()
    }
}

fn answer(mut stream: TcpStream, kept: &Mutex<Vec<Came>>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let path = line.split(' ').nth(1)?.to_owned();
    let mut headers = Vec::new();
    loop {
        line.clear();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(": ") else { break };
        headers.push((name.to_lowercase(), value.to_owned()));
    }
    let mut came = Came { path, headers, body: String::new() };
    let length = came.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    came.body = String::from_utf8(body).ok()?;
    kept.lock().unwrap().push(came.clone());
    let (status, kind, body) = said(&came);
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nset-cookie: a=b\r\nrequest-id: r\r\nconnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).ok()?;
    // In small pieces, so that events are cut anywhere.
    for piece in body.as_bytes().chunks(37) {
        stream.write_all(piece).ok()?;
        stream.flush().ok()?;
    }
    Some(())
}

/// The answer to a request.
pub(crate) fn said(came: &Came) -> (&'static str, &'static str, String) {
    if came.path == "/models?packed=1" {
        return ("200 OK\r\ncontent-encoding: gzip", "application/json", "{}".into());
    }
    if matches!(came.path.as_str(), "/models" | "/models/m:1" | "/v1/models?limit=1" | "/v1/models/m") {
        return ("200 OK", "application/json", r#"{"object":"list","data":[{"id":"m","object":"model"}]}"#.into());
    }
    if matches!(came.path.as_str(), "/v1beta/models/m-1.5" | "/v1/models/m-1.5") {
        return ("200 OK", "application/json", r#"{"name":"models/m-1.5"}"#.into());
    }
    if came.path == "/v1beta/models" {
        return ("200 OK", "application/json", r#"{"models":[{"name":"models/m"}]}"#.into());
    }
    let body: Value = serde_json::from_str(&came.body).unwrap();
    if came.path.ends_with("/count_tokens") || came.path.ends_with("/input_tokens") {
        return ("200 OK", "application/json", r#"{"input_tokens": 7}"#.into());
    }
    let input = match body["input"].as_str() {
        Some(text) => json!([{"role": "user", "content": text}]),
        None => body["input"].clone(),
    };
    let wire = came.path.split('?').next().unwrap();
    if wire.ends_with(":countTokens") {
        return ("200 OK", "application/json", r#"{"totalTokens": 7}"#.into());
    }
    let contents = json!([gemini::said(&body)]);
    let messages = body["messages"].as_array().or(input.as_array()).or(contents.as_array()).unwrap();
    let last = messages.last().unwrap();
    let prompt = text_of(last);
    if prompt.contains("go elsewhere") {
        return ("302 Found\r\nlocation: http://127.0.0.1:1/", "text/plain", String::new());
    }
    if prompt.contains("too much") {
        let error = r#"{"type":"error","error":{"type":"rate_limit_error","code":429,"message":"slow down"}}"#;
        return ("429 Too Many Requests", "application/json", error.into());
    }
    if prompt == "packed" {
        return ("200 OK\r\ncontent-encoding: gzip", "application/json", "{}".into());
    }
    if prompt.contains("in another form") {
        let call = r#"{"id":"c","type":"function","function":{"name":"lookup","arguments":{"amount":1}}}"#;
        let answer = format!(r#"{{"choices":[{{"index":0,"message":{{"tool_calls":[{call}]}}}}]}}"#);
        return ("200 OK", "application/json", answer);
    }
    let names: Vec<&str> = prompt.strip_prefix("call ").map(|names| names.split(' ').collect()).unwrap_or_default();
    let id = |place: usize| format!("call_{}_{place}", messages.len());
    let calls: Vec<(String, &str)> = names.iter().enumerate().map(|(place, name)| (id(place), *name)).collect();
    let text = if calls.is_empty() { format!("I read: {prompt}") } else { "Let me see.".to_owned() };
    let streams = body["stream"] == true || wire.ends_with(":streamGenerateContent");
    let made = match (wire, streams) {
        ("/v1/messages", false) => anthropic(&text, &calls),
        ("/v1/messages", true) => anthropic_events(&text, &calls),
        ("/responses", false) => responses::whole(&text, &calls),
        ("/responses", true) => responses::events(&text, &calls),
        (wire, false) if wire.contains("/models/") => gemini::whole(&text, &calls),
        (wire, true) if wire.contains("/models/") => gemini::events(&text, &calls),
        (_, false) => openai(&text, &calls),
        (_, true) => openai_events(&text, &calls),
    };
    ("200 OK", if streams { "text/event-stream; charset=utf-8" } else { "application/json" }, made)
}

fn text_of(message: &Value) -> String {
    let content = if message["output"].is_null() { &message["content"] } else { &message["output"] };
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let text = |part: &Value| part["text"].as_str().or(part["content"].as_str()).unwrap_or_default().to_owned();
            parts.iter().map(text).collect::<Vec<_>>().join("|")
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    }
}

mod gemini;
mod responses;

/// Written with blanks, as no library of ours would.
const ARGUMENTS: &str = r#"{ "amount": 1.50 }"#;

/// The arguments of a call, as the text that they are on some wires.
fn written(name: &str) -> &'static str {
    match name {
        "unreadable" => "[1, 2, 3, 4]",
        "Write" => r#"{ "file_path": "/code/app/src/main.rs", "content": "x" }"#,
        "Edit" => r#"{ "file_path": "/etc/passwd", "old_string": "x", "new_string": "y" }"#,
        _ => ARGUMENTS,
    }
}

fn anthropic(text: &str, calls: &[(String, &str)]) -> String {
    let calls = calls
        .iter()
        .map(|(id, name)| format!(r#", {{"type": "tool_use", "id": "{id}", "name": "{name}", "input": {ARGUMENTS}}}"#));
    let calls: String = calls.collect();
    let stop = if calls.is_empty() { "end_turn" } else { "tool_use" };
    format!(
        r#"{{"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [{{"type": "text", "text": {}}}{calls}], "stop_reason": "{stop}", "stop_sequence": null, "usage": {{"input_tokens": 10, "output_tokens": 5}}}}"#,
        json!(text)
    )
}

fn anthropic_events(text: &str, calls: &[(String, &str)]) -> String {
    let mut all = String::new();
    let mut event = |name: &str, data: String| all += &format!("event: {name}\ndata: {data}\n\n");
    event("message_start", r#"{"type": "message_start", "message": {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 10, "output_tokens": 1}}}"#.into());
    event(
        "content_block_start",
        r#"{"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}"#.into(),
    );
    event("ping", r#"{"type": "ping"}"#.into());
    event(
        "content_block_delta",
        json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}).to_string(),
    );
    event("content_block_stop", r#"{"type": "content_block_stop", "index": 0}"#.into());
    for (place, (id, name)) in calls.iter().enumerate() {
        let index = place + 1;
        event(
            "content_block_start",
            format!(
                r#"{{"type": "content_block_start", "index": {index}, "content_block": {{"type": "tool_use", "id": "{id}", "name": "{name}", "input": {{}}}}}}"#
            ),
        );
        for part in ["", &ARGUMENTS[..7], &ARGUMENTS[7..]] {
            event("content_block_delta", json!({"type": "content_block_delta", "index": index, "delta": {"type": "input_json_delta", "partial_json": part}}).to_string());
        }
        event("content_block_stop", format!(r#"{{"type": "content_block_stop", "index": {index}}}"#));
    }
    let stop = if calls.is_empty() { "end_turn" } else { "tool_use" };
    event(
        "message_delta",
        format!(
            r#"{{"type": "message_delta", "delta": {{"stop_reason": "{stop}", "stop_sequence": null}}, "usage": {{"output_tokens": 5}}}}"#
        ),
    );
    event("message_stop", r#"{"type": "message_stop"}"#.into());
    all
}

fn openai(text: &str, calls: &[(String, &str)]) -> String {
    let made: Vec<Value> = calls
        .iter()
        .map(|(id, name)| json!({"id": id, "type": "function", "function": {"name": name, "arguments": written(name)}}))
        .collect();
    let mut message = json!({"role": "assistant", "content": text});
    if !made.is_empty() {
        message["tool_calls"] = made.into();
    }
    let finish = if calls.is_empty() { "stop" } else { "tool_calls" };
    format!(
        r#"{{"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m", "choices": [{{"index": 0, "message": {message}, "finish_reason": "{finish}"}}], "usage": {{"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}}}}"#
    )
}

fn openai_events(text: &str, calls: &[(String, &str)]) -> String {
    let mut all = String::new();
    let mut chunk = |delta: Value, finish: Value| {
        let chunk = json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]});
        all += &format!("data: {chunk}\n\n");
    };
    chunk(json!({"role": "assistant", "content": ""}), Value::Null);
    chunk(json!({"content": text}), Value::Null);
    for (index, (id, name)) in calls.iter().enumerate() {
        chunk(
            json!({"tool_calls": [{"index": index, "id": id, "type": "function", "function": {"name": name, "arguments": ""}}]}),
            Value::Null,
        );
        for part in [&written(name)[..7], &written(name)[7..]] {
            chunk(json!({"tool_calls": [{"index": index, "function": {"arguments": part}}]}), Value::Null);
        }
    }
    chunk(json!({}), if calls.is_empty() { "stop" } else { "tool_calls" }.into());
    let usage = json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}});
    let usage = if text.ends_with("uncounted") { String::new() } else { format!("data: {usage}\n\n") };
    all + &usage + "data: [DONE]\n\n"
}
