//! An HTTP server on loopback that answers as it is told, byte for byte, and remembers what it was asked.

use std::sync::{Arc, Mutex, PoisonError};

use pintle_domain::json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Largest request that is read, in bytes: a test that sends more is wrong.
const MAX_REQUEST_BYTES: usize = 16 << 20;

/// How an answer ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// As HTTP says.
    Complete,
    /// The connection is closed in the middle of the body.
    Cut,
    /// Nothing more comes, and the connection stays open.
    Hang,
}

/// One answer.
#[derive(Clone, Debug)]
pub struct StubAnswer {
    status: u16,
    headers: Vec<(String, String)>,
    chunks: Vec<Vec<u8>>,
    end: End,
    silent: bool,
}

impl StubAnswer {
    /// `status` with `body`, sent in one chunk.
    pub fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: Vec::new(), chunks: vec![body.into()], end: End::Complete, silent: false }
    }

    /// 200 with a JSON document.
    pub fn json(body: &str) -> Self {
        Self::new(200, body).header("content-type", "application/json")
    }

    /// 200 with an event stream.
    pub fn events(body: &str) -> Self {
        Self::new(200, body).header("content-type", "text/event-stream")
    }

    /// Takes the request and never says a word.
    pub fn silence() -> Self {
        Self { silent: true, ..Self::new(200, "").hang() }
    }

    /// With another header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// The body in pieces of `size` bytes, each sent on its own.
    #[must_use]
    pub fn drip(self, size: usize) -> Self {
        let whole = self.chunks.concat();
        Self { chunks: whole.chunks(size.max(1)).map(<[u8]>::to_vec).collect(), ..self }
    }

    /// The body cut into pieces at exactly these places.
    #[must_use]
    pub fn split_at(self, places: &[usize]) -> Self {
        let whole = self.chunks.concat();
        let mut from = 0;
        let mut chunks = Vec::new();
        for &place in places.iter().chain([&whole.len()]) {
            chunks.extend(whole.get(from..place).map(<[u8]>::to_vec));
            from = place;
        }
        Self { chunks, ..self }
    }

    /// Closes the connection after the body without ending it.
    #[must_use]
    pub fn cut(self) -> Self {
        Self { end: End::Cut, ..self }
    }

    /// Leaves the connection open after the body without ending it.
    #[must_use]
    pub fn hang(self) -> Self {
        Self { end: End::Hang, ..self }
    }
}

/// A request that arrived.
#[derive(Clone, Debug)]
pub struct ReceivedRequest {
    /// Method, path and query: `POST /v1/x`.
    pub line: String,
    /// All before the body, as it came: names as they were written, lines as they were ended.
    pub head: String,
    /// Headers as they came, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: String,
    /// The same as it came, for a body that is not text.
    pub bytes: Vec<u8>,
}

impl ReceivedRequest {
    /// The value of the header `name`.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(have, _)| have == name).map(|(_, value)| value.as_str())
    }

    /// The body as JSON; null if it is none.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }
}

/// The server. Dropping it closes every connection.
pub struct HttpStub {
    address: String,
    seen: Arc<Mutex<Vec<ReceivedRequest>>>,
    /// Holds the server's one task; never joined, since it ends when it is dropped.
    _tasks: JoinSet<()>,
}

impl HttpStub {
    /// Starts a server that gives `answers` in turn, and 500 to every request after the last.
    ///
    /// # Panics
    /// When there is no free port on loopback.
    pub async fn start(answers: Vec<StubAnswer>) -> Self {
        Self::start_at("127.0.0.1:0", answers).await
    }

    /// Starts such a server at `address`, for a client whose URL was written long before.
    ///
    /// # Panics
    /// When the address is taken.
    pub async fn start_at(address: &str, answers: Vec<StubAnswer>) -> Self {
        let listener = TcpListener::bind(address).await.expect("the address on loopback is free");
        let address = listener.local_addr().expect("a bound socket has an address").to_string();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = JoinSet::new();
        tasks.spawn(serve(listener, answers, seen.clone()));
        Self { address, seen, _tasks: tasks }
    }

    /// `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What has arrived so far.
    pub fn seen(&self) -> Vec<ReceivedRequest> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn serve(listener: TcpListener, answers: Vec<StubAnswer>, seen: Arc<Mutex<Vec<ReceivedRequest>>>) {
    let mut answers = answers.into_iter();
    let mut connections = JoinSet::new();
    while let Ok((mut stream, _)) = listener.accept().await {
        let Some(request) = read(&mut stream).await else { continue };
        seen.lock().unwrap_or_else(PoisonError::into_inner).push(request);
        let answer = answers.next().unwrap_or_else(|| StubAnswer::new(500, "the stub has no further answer"));
        connections.spawn(async move {
            // A client that goes away in the middle is what many tests are about.
            drop(reply(&mut stream, &answer).await);
        });
    }
}

async fn read(stream: &mut TcpStream) -> Option<ReceivedRequest> {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at;
        }
        more(stream, &mut bytes).await?;
    };
    let head = String::from_utf8_lossy(bytes.get(..head_end)?).into_owned();
    let mut lines = head.split("\r\n");
    let line = lines.next()?.trim_end_matches(" HTTP/1.1").to_owned();
    let pairs = lines.filter_map(|line| line.split_once(':'));
    let headers: Vec<(String, String)> =
        pairs.map(|(name, value)| (name.to_lowercase(), value.trim().to_owned())).collect();
    let mut seen = ReceivedRequest { line, head, headers, body: String::new(), bytes: Vec::new() };
    let length: usize = seen.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    while bytes.len() < head_end + 4 + length {
        more(stream, &mut bytes).await?;
    }
    seen.bytes = bytes.get(head_end + 4..)?.to_vec();
    seen.body = String::from_utf8_lossy(&seen.bytes).into_owned();
    Some(seen)
}

async fn more(stream: &mut TcpStream, bytes: &mut Vec<u8>) -> Option<()> {
    let read = stream.read_buf(bytes).await.ok()?;
    (read > 0 && bytes.len() <= MAX_REQUEST_BYTES).then_some(())
}

async fn reply(stream: &mut TcpStream, answer: &StubAnswer) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    if !answer.silent {
        let mut head = format!("HTTP/1.1 {} x\r\ntransfer-encoding: chunked\r\nconnection: close\r\n", answer.status);
        for (name, value) in &answer.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        stream.write_all(format!("{head}\r\n").as_bytes()).await?;
    }
    for chunk in answer.chunks.iter().filter(|chunk| !chunk.is_empty()) {
        stream.write_all(format!("{:x}\r\n", chunk.len()).as_bytes()).await?;
        stream.write_all(chunk).await?;
        stream.write_all(b"\r\n").await?;
        stream.flush().await?;
        tokio::task::yield_now().await;
    }
    match answer.end {
        End::Complete => {
            stream.write_all(b"0\r\n\r\n").await?;
            stream.shutdown().await
        }
        End::Cut => stream.shutdown().await,
        End::Hang => std::future::pending().await,
    }
}
