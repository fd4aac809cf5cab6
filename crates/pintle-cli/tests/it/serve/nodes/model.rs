//! A model behind HTTP that does for each prompt what the prompt says, so that many turns can be told apart.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

/// How long a call of it takes.
const THINKS: Duration = Duration::from_millis(40);

/// A model that goes on as long as the test does.
pub(super) struct Model {
    port: u16,
    answered: Arc<Mutex<Vec<Answered>>>,
}

/// What it answered, but for calls.
#[derive(Clone, Debug)]
pub(super) struct Answered {
    pub(super) text: String,
    /// All that users said in the request.
    pub(super) asked: Vec<String>,
}

impl Model {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let answered = Arc::<Mutex<Vec<Answered>>>::default();
        let keeps = answered.clone();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let keeps = keeps.clone();
                thread::spawn(move || answer_all(stream, &keeps));
            }
        });
        Self { port, answered }
    }

    /// All that it answered, but for calls.
    pub(super) fn answered(&self) -> Vec<Answered> {
        self.answered.lock().unwrap().clone()
    }

    /// The provider `model` of a configuration.
    pub(super) fn provider(&self) -> String {
        format!("[providers.model]\nkind = 'openai'\nbase_url = 'http://127.0.0.1:{}/v1'\n", self.port)
    }
}

fn answer_all(stream: TcpStream, answered: &Mutex<Vec<Answered>>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut stream = stream;
    loop {
        let mut length = 0;
        let mut line = String::new();
        while reader.read_line(&mut line).ok()? > 0 && line != "\r\n" {
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().ok()?;
            }
            line.clear();
        }
        if length == 0 {
            return None;
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        thread::sleep(THINKS);
        let (body, said) = reply(&serde_json::from_slice(&body).ok()?);
        answered.lock().unwrap().extend(said);
        let head =
            format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n", body.len());
        stream.write_all(head.as_bytes()).ok()?;
        stream.write_all(body.as_bytes()).ok()?;
    }
}

/// `run: COMMAND` is run first, then `answer PROMPT` follows. `slow: N` answers after N milliseconds.
fn reply(request: &Value) -> (String, Option<Answered>) {
    let messages = request["messages"].as_array().unwrap();
    let text = |message: &Value| {
        let content = &message["content"];
        content.as_str().or_else(|| content[0]["text"].as_str()).unwrap().to_owned()
    };
    let asked: Vec<String> = messages.iter().filter(|it| it["role"] == "user").map(text).collect();
    let prompt = asked.last().unwrap().clone();
    let mut said = None;
    let last = messages.last().unwrap();
    let (delta, finish) = match prompt.split_once("run: ") {
        Some((_, command)) if last["role"] != "tool" => {
            let arguments = json!({ "command": command }).to_string();
            let call = json!({
                "index": 0, "id": format!("call_{}", messages.len()), "type": "function",
                "function": { "name": "exec", "arguments": arguments }
            });
            (json!({ "role": "assistant", "tool_calls": [call] }), "tool_calls")
        }
        Some(_) | None => {
            if let Some((_, millis)) = prompt.split_once("slow: ") {
                thread::sleep(Duration::from_millis(millis.trim().parse().unwrap()));
            }
            let text = format!("answer {prompt}");
            said = Some(Answered { text: text.clone(), asked });
            (json!({ "role": "assistant", "content": text }), "stop")
        }
    };
    let chunk = |delta: Value, finish: Value| {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
        let chunk =
            json!({ "id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice] });
        format!("data: {chunk}\n\n")
    };
    let usage = json!({ "prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13 });
    let usage = format!("data: {}\n\n", json!({ "id": "c", "choices": [], "usage": usage }));
    (format!("{}{}{usage}data: [DONE]\n\n", chunk(delta, Value::Null), chunk(json!({}), json!(finish))), said)
}
