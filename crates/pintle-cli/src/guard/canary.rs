//! A model on loopback that wants one harmless call, to prove that a host's calls come past the guard.
//!
//! The host is run with its user's own configuration, and only its model is ours. The call is `: pintle-canary-NONCE`,
//! which does nothing; the daemon refuses it, and the proof is that the model's next request carries that refusal.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use domain::json::{self, Object, Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// What the shell text of a canary begins with.
const CALL: &str = ": pintle-canary-";

/// Longest request that is read, in bytes: a coding agent sends its tools and instructions, some 100 kB.
const MAX_REQUEST_BYTES: usize = 16 << 20;

/// Longest head of a request, in bytes.
const MAX_HEAD_BYTES: u64 = 64 << 10;

/// The shell text of the canary `nonce`.
pub(crate) fn call(nonce: &str) -> String {
    format!("{CALL}{nonce}")
}

/// The refusal of a canary, if `text` is one.
pub(crate) fn refusal(text: &str) -> Option<String> {
    let nonce = text.strip_prefix(CALL).filter(|nonce| nonce.chars().all(|c| c.is_ascii_alphanumeric()))?;
    Some(heard(nonce))
}

/// What only the guard says of the canary `nonce`.
fn heard(nonce: &str) -> String {
    format!("the guard heard canary {nonce} and refused it")
}

/// What came of a canary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CanaryResult {
    /// Whether the host asked the model at all.
    pub(crate) asked: bool,
    /// What the host said became of the call, once it did.
    pub(crate) result: Option<String>,
}

impl CanaryResult {
    /// Whether the call was refused by the guard.
    pub(crate) fn is_proof(&self, nonce: &str) -> bool {
        self.result.as_ref().is_some_and(|text| text.contains(&heard(nonce)))
    }
}

/// A model that wants the canary.
pub(crate) struct CanaryModel {
    /// Where it is.
    pub(crate) url: String,
    seen: Arc<Mutex<CanaryResult>>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl CanaryModel {
    /// Listens at a port that is free, and wants the canary `nonce`.
    ///
    /// # Errors
    /// Nobody can listen on loopback.
    pub(crate) async fn open(nonce: &str) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let (seen, stop, tasks) = (Arc::default(), CancellationToken::new(), TaskTracker::new());
        let model = Self { url, seen, stop, tasks };
        let (seen, stop, nonce, tasks) =
            (model.seen.clone(), model.stop.clone(), nonce.to_owned(), model.tasks.clone());
        model.tasks.spawn(async move {
            loop {
                let accepted = tokio::select! {
                    () = stop.cancelled() => return,
                    accepted = listener.accept() => accepted,
                };
                let Ok((stream, _)) = accepted else { continue };
                let (seen, stop, nonce) = (seen.clone(), stop.clone(), nonce.clone());
                tasks.spawn(async move {
                    tokio::select! {
                        () = stop.cancelled() => {}
                        // A host that goes away is none of the proof.
                        _ = serve(stream, &nonce, &seen) => {}
                    }
                });
            }
        });
        Ok(model)
    }

    /// What came of it so far.
    pub(crate) fn result(&self) -> CanaryResult {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends it.
    pub(crate) async fn close(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// Answers one request of the host.
async fn serve(stream: TcpStream, nonce: &str, seen: &Mutex<CanaryResult>) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    let (line, length) = head(&mut stream).await?;
    let mut body = vec![0; length.min(MAX_REQUEST_BYTES)];
    stream.read_exact(&mut body).await?;
    let path = line.split(' ').nth(1).unwrap_or_default();
    let path = path.split('?').next().unwrap_or_default();
    let request = String::from_utf8(body).ok().and_then(|text| json::parse(&text).ok()).unwrap_or(Value::Null);
    let (kind, body) = match path {
        path if path.ends_with("/count_tokens") => ("application/json", json!({"input_tokens": 1}).to_string()),
        path if path.ends_with("/messages") => messages(&request, nonce, seen),
        _ => ("application/json", "{}".to_owned()),
    };
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(&[head.as_bytes(), body.as_bytes()].concat()).await?;
    stream.shutdown().await
}

/// The first line of a request, and how long its body is.
async fn head(stream: &mut BufReader<TcpStream>) -> io::Result<(String, usize)> {
    let mut limited = stream.take(MAX_HEAD_BYTES);
    let (mut first, mut length) = (String::new(), 0);
    limited.read_line(&mut first).await?;
    loop {
        let mut line = String::new();
        if limited.read_line(&mut line).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let line = line.trim_end();
        if line.is_empty() {
            return Ok((first, length));
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
    }
}

/// An answer in the words of Anthropic's messages: the canary where tools are offered and nothing came of it yet.
fn messages(request: &Value, nonce: &str, seen: &Mutex<CanaryResult>) -> (&'static str, String) {
    let result = tool_result(request);
    let offers = |tool: &Value| tool.get("name").and_then(Value::as_str) == Some("Bash");
    let has_shell = request.get("tools").and_then(Value::as_array).is_some_and(|tools| tools.iter().any(offers));
    {
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.asked = true;
        seen.result = result.clone().or_else(|| seen.result.take());
    }
    let (block, reason) = match has_shell && result.is_none() {
        true => {
            let input = json!({"command": call(nonce), "description": "does nothing"});
            (json!({"type": "tool_use", "id": format!("toolu_{nonce}"), "name": "Bash", "input": input}), "tool_use")
        }
        false => (json!({"type": "text", "text": "done"}), "end_turn"),
    };
    let usage = json!({"input_tokens": 1, "output_tokens": 1});
    let model = request.get("model").cloned().unwrap_or(Value::Null);
    let message = |content: Value, reason: Value| {
        json!({
            "id": format!("msg_{nonce}"), "type": "message", "role": "assistant", "model": model, "content": content,
            "stop_reason": reason, "stop_sequence": null, "usage": usage,
        })
    };
    if request.get("stream").and_then(Value::as_bool) != Some(true) {
        return ("application/json", message(Value::from(vec![block]), reason.into()).to_string());
    }
    let events = [
        json!({"type": "message_start", "message": message(Value::from(Vec::<Value>::new()), Value::Null)}),
        json!({"type": "content_block_start", "index": 0, "content_block": begun(&block)}),
        json!({"type": "content_block_delta", "index": 0, "delta": delta(&block)}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": null}, "usage": {"output_tokens": 1}}),
        json!({"type": "message_stop"}),
    ];
    let event = |event: &Value| {
        let kind = event.get("type").and_then(Value::as_str).unwrap_or_default();
        format!("event: {kind}\ndata: {event}\n\n")
    };
    ("text/event-stream", events.iter().map(event).collect())
}

/// A block as a stream begins it, without what comes in pieces.
fn begun(block: &Value) -> Value {
    let mut members: Object = block.as_object().cloned().unwrap_or_default();
    for (name, empty) in [("text", json!("")), ("input", json!({}))] {
        if members.contains_key(name) {
            members.insert(name.to_owned(), empty);
        }
    }
    Value::Object(members)
}

fn delta(block: &Value) -> Value {
    match (block.get("text"), block.get("input")) {
        (Some(text), _) => json!({"type": "text_delta", "text": text}),
        (None, input) => {
            let input = input.map(Value::to_string).unwrap_or_default();
            json!({"type": "input_json_delta", "partial_json": input})
        }
    }
}

/// The newest result of a tool in a conversation.
fn tool_result(request: &Value) -> Option<String> {
    let messages = request.get("messages")?.as_array()?;
    let blocks = messages.iter().filter_map(|message| message.get("content")?.as_array()).flatten();
    let mut results = blocks.filter(|block| block.get("type").and_then(Value::as_str) == Some("tool_result"));
    results.next_back().map(|result| match result.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_canary_is_refused_as_one() {
        assert_eq!(refusal(&call("a1b2")), Some("the guard heard canary a1b2 and refused it".into()));
        for other in ["ls", ": pintle-canary-a1; rm -rf x", "echo : pintle-canary-a1"] {
            assert_eq!(refusal(other), None, "{other}");
        }
    }

    #[test]
    fn the_model_wants_the_canary_once_and_hears_what_came_of_it() {
        let seen = Mutex::default();
        let tools = json!([{"name": "Bash"}]);
        let (kind, body) = messages(&json!({"stream": true, "tools": tools, "messages": []}), "a1", &seen);
        assert_eq!(kind, "text/event-stream");
        assert!(body.contains("tool_use") && body.contains("pintle-canary-a1"), "{body}");
        let result = json!([{"type": "tool_result", "content": heard("a1")}]);
        let request = json!({"tools": tools, "messages": [{"role": "user", "content": result}]});
        let (_, body) = messages(&request, "a1", &seen);
        assert!(body.contains("end_turn"), "{body}");
        let seen = seen.into_inner().unwrap();
        assert!(seen.asked && seen.is_proof("a1") && !seen.is_proof("a2"), "{seen:?}");
    }

    #[test]
    fn a_request_without_a_shell_gets_no_canary() {
        let (_, body) = messages(&json!({"messages": []}), "a1", &Mutex::default());
        assert!(body.contains("done") && !body.contains("canary"), "{body}");
    }
}
