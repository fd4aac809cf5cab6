//! A plain client of HTTP for tests: bytes out, bytes in, nothing done by itself.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use super::server::Server;

/// How long a test waits for bytes: what does not come by then does not come.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) const CHAT: &str = "/v1/chat/completions";
pub(super) const MESSAGES: &str = "/v1/messages";

/// The status, the head in small letters, and the body of an answer.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) bytes: Vec<u8>,
}

impl Answer {
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    #[track_caller]
    pub(super) fn json(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    /// The word for programs of a refusal, and its message.
    #[track_caller]
    pub(super) fn refused(&self) -> (u16, String, String) {
        let error = self.json()["error"].clone();
        let text = |name: &str| error[name].as_str().unwrap_or_default().to_owned();
        (self.status, text("code"), text("message"))
    }

    /// The data of the events of a stream.
    pub(super) fn events(&self) -> Vec<Value> {
        let text = self.text();
        let data = text.lines().filter_map(|line| line.strip_prefix("data: "));
        data.filter(|data| *data != "[DONE]").map(|data| serde_json::from_str(data).unwrap()).collect()
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(&format!("{name}: ")))
    }
}

/// Sends a request and takes the whole answer.
pub(super) fn send(server: &Server, line: &str, headers: &str, body: &[u8]) -> Answer {
    let mut stream = sent(server, line, headers, body);
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    read(&answer)
}

/// Sends a request; the answer comes over what is returned.
pub(super) fn sent(server: &Server, line: &str, headers: &str, body: &[u8]) -> TcpStream {
    let mut stream = TcpStream::connect(&server.address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let head =
        format!("{line} HTTP/1.1\nHost: localhost\nConnection: close\n{headers}Content-Length: {}\n\n", body.len());
    stream.write_all(head.replace('\n', "\r\n").as_bytes()).unwrap();
    stream.write_all(body).unwrap();
    stream
}

fn read(answer: &[u8]) -> Answer {
    let end = answer.windows(4).position(|four| four == b"\r\n\r\n").expect("a head");
    let head = String::from_utf8_lossy(&answer[..end]).replace("\r\n", "\n");
    let (status, head) = (head.split(' ').nth(1).unwrap().parse().unwrap(), head.to_lowercase());
    let mut bytes = answer[end + 4..].to_vec();
    if head.contains("transfer-encoding: chunked") {
        bytes = unchunked(&bytes);
    }
    Answer { status, head, bytes }
}

fn unchunked(mut rest: &[u8]) -> Vec<u8> {
    let mut all = Vec::new();
    while let Some(end) = rest.windows(2).position(|two| two == b"\r\n") {
        let length = usize::from_str_radix(std::str::from_utf8(&rest[..end]).unwrap(), 16).unwrap();
        all.extend_from_slice(&rest[end + 2..end + 2 + length]);
        rest = rest.get(end + 4 + length..).unwrap_or_default();
    }
    all
}

pub(super) fn post(server: &Server, path: &str, headers: &str, body: &Value) -> Answer {
    let headers = format!("Content-Type: application/json\n{headers}");
    send(server, &format!("POST {path}"), &headers, body.to_string().as_bytes())
}

pub(super) fn get(server: &Server, path: &str, headers: &str) -> Answer {
    send(server, &format!("GET {path}"), headers, b"")
}

/// A request that says `text`.
pub(super) fn says(text: &str) -> Value {
    json!({ "model": "main", "max_tokens": 100, "messages": [{ "role": "user", "content": text }] })
}

/// The answer of a chat completion.
#[track_caller]
pub(super) fn content(answer: &Answer) -> String {
    assert_eq!(answer.status, 200, "{}", answer.text());
    answer.json()["choices"][0]["message"]["content"].as_str().unwrap().to_owned()
}
