//! What an agent waits for more because its model is asked through the door: requests and answers of 100 KiB, beside a
//! bare pass-through of hyper's between the same client and the same vendor.
//!
//! `cargo bench -p pintle-cli --bench door` measures, anything else runs each case once.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, ExitCode, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, header};
use hyper_util::rt::TokioIo;
use pintle_domain::json::{Value, json};
use report::{Report, shown};
use tempfile::TempDir;

#[expect(dead_code, reason = "it is shared, and notes are for others")]
#[path = "../../../process/benches/hooks/report.rs"]
mod report;

/// The median may be so much longer than that of the pass-through.
const MORE_LIMIT: Duration = Duration::from_micros(500);
/// The size of a request and of an answer.
const LARGE: usize = 100 << 10;
/// Requests of a round.
const REQUESTS: usize = 40;
/// What is asked for.
const PATH: &str = "/door/openai/v1/chat/completions";

fn main() -> ExitCode {
    match measure() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("door: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn measure() -> anyhow::Result<()> {
    let Some(mut report) = Report::from_args() else { return Ok(()) };
    if report.wants("door") {
        for (what, body, answer) in [
            ("a request of 100 KiB, a short answer", request(LARGE, false), whole(500)),
            ("a short request, an answer of 100 KiB", request(500, false), whole(LARGE)),
            ("a short request, 100 KiB of events", request(500, true), events(LARGE)),
        ] {
            through(&mut report, what, (&body, answer))?;
        }
    }
    report.print()
}

/// The door against the pass-through.
fn through(report: &mut Report, what: &str, (body, answer): (&str, Answer)) -> anyhow::Result<()> {
    let length = answer.1.len();
    let vendor = vendor(answer)?;
    let (daemon, bare) = (Daemon::open(vendor)?, pass_through(vendor)?);
    let (mut ours, mut least) = (Client::new(daemon.address)?, Client::new(bare)?);
    let [door, floor] = report
        .medians(REQUESTS, [&mut |times| ours.ask(times, body, length), &mut |times| least.ask(times, body, length)])?;
    let (more, ratio) = (door.saturating_sub(floor), door.as_secs_f64() / floor.as_secs_f64());
    report.row(what, [shown(door), shown(floor), format!("{ratio:.2}"), String::new()], None);
    report.limited("  beyond the pass-through", more, MORE_LIMIT, shown);
    Ok(())
}

/// Text of about so many bytes, as a document of JSON holds it.
fn text(bytes: usize) -> String {
    "The umlauts of \"Größe\" arrive wrong.\n".repeat(bytes / 40 + 1)
}

fn request(bytes: usize, streams: bool) -> String {
    let message = |place: usize| {
        let role = if place.is_multiple_of(2) { "user" } else { "assistant" };
        json!({"role": role, "content": text(400)})
    };
    // The model is asked by a person, so the last message is one of theirs.
    let messages: Vec<Value> = (0..(bytes / 500) | 1).map(message).collect();
    json!({"model": "m", "stream": streams, "messages": messages}).to_string()
}

/// A content type, and a body.
type Answer = (&'static str, String);

fn whole(bytes: usize) -> Answer {
    let message = json!({"role": "assistant", "content": text(bytes)});
    let answer = json!({
        "id": "c", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    });
    ("application/json", answer.to_string())
}

fn events(bytes: usize) -> Answer {
    let chunk = |delta: Value, finish: Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        json!({"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]})
    };
    let one = format!("data: {}\n\n", chunk(json!({"content": "of \"Größe\" "}), Value::Null));
    let last = format!("data: {}\n\ndata: [DONE]\n\n", chunk(json!({}), "stop".into()));
    ("text/event-stream", one.repeat(bytes / one.len()) + &last)
}

/// A vendor that answers every request at once with `answer`; it ends with the benchmark.
fn vendor((kind, body): Answer) -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n", body.len());
    let answer = [head, body].concat();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = answer.clone();
            thread::spawn(move || {
                stream.set_nodelay(true).ok();
                let mut reader = BufReader::new(stream);
                while read(&mut reader).is_ok() && reader.get_mut().write_all(answer.as_bytes()).is_ok() {}
            });
        }
    });
    Ok(address)
}

/// Reads a request or an answer: how long its body is.
fn read(from: &mut BufReader<TcpStream>) -> anyhow::Result<usize> {
    let (mut line, mut length, mut is_chunked) = (String::new(), 0, false);
    loop {
        line.clear();
        ensure!(from.read_line(&mut line)? > 0, "the other end is gone");
        let low = line.to_ascii_lowercase();
        if low.trim().is_empty() {
            break;
        }
        if let Some(said) = low.strip_prefix("content-length:") {
            length = said.trim().parse()?;
        }
        is_chunked |= low.starts_with("transfer-encoding:");
    }
    if !is_chunked {
        let mut body = vec![0; length];
        from.read_exact(&mut body)?;
        return Ok(length);
    }
    let mut all = 0;
    loop {
        line.clear();
        from.read_line(&mut line)?;
        let size = usize::from_str_radix(line.trim(), 16)?;
        let mut chunk = vec![0; size + 2];
        from.read_exact(&mut chunk)?;
        all += size;
        if size == 0 {
            return Ok(all);
        }
    }
}

/// An agent with one connection.
struct Client(BufReader<TcpStream>, SocketAddr);

impl Client {
    fn new(address: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Self(BufReader::with_capacity(LARGE, stream), address))
    }

    /// Asks so many times, each once the whole answer to the one before is there.
    fn ask(&mut self, times: usize, body: &str, length: usize) -> anyhow::Result<Duration> {
        let head = format!(
            "POST {PATH} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\nauthorization: Bearer k\r\n\
             content-length: {}\r\n\r\n",
            self.1,
            body.len()
        );
        let request = [head.as_str(), body].concat();
        let start = Instant::now();
        for _ in 0..times {
            self.0.get_mut().write_all(request.as_bytes())?;
            let came = read(&mut self.0)?;
            ensure!(came == length, "an answer of {came} bytes came, expected {length}");
        }
        Ok(start.elapsed())
    }
}

/// What hyper does with nothing between: one connection to the vendor for each that comes in; it ends with the benchmark.
fn pass_through(vendor: SocketAddr) -> anyhow::Result<SocketAddr> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    listener.set_nonblocking(true)?;
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async move {
            let listener = tokio::net::TcpListener::from_std(listener).expect("it listens");
            while let Ok((stream, _)) = listener.accept().await {
                if let Err(error) = passed(stream, vendor).await {
                    eprintln!("pass-through: {error:#}");
                }
            }
        });
    });
    Ok(address)
}

async fn passed(stream: tokio::net::TcpStream, vendor: SocketAddr) -> anyhow::Result<()> {
    stream.set_nodelay(true)?;
    let out = tokio::net::TcpStream::connect(vendor).await?;
    out.set_nodelay(true)?;
    let (sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(out)).await?;
    let sender = std::sync::Arc::new(tokio::sync::Mutex::new(sender));
    let service = service_fn(move |mut request: Request<Incoming>| {
        let sender = sender.clone();
        async move {
            request.headers_mut().remove(header::CONNECTION);
            let mut sender = sender.lock().await;
            sender.ready().await?;
            let sent = sender.send_request(request);
            drop(sender);
            sent.await
        }
    });
    let served = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    tokio::select! {
        served = served => served?,
        ended = connection => ended?,
    }
    Ok(())
}

/// `pintle guard serve --http`, with nothing to ask, ended when it is dropped.
struct Daemon {
    child: Child,
    address: SocketAddr,
    _home: TempDir,
}

impl Daemon {
    fn open(vendor: SocketAddr) -> anyhow::Result<Self> {
        let home = tempfile::tempdir()?;
        fs::create_dir_all(home.path().join("config/pintle"))?;
        let config = format!("[doors.model.openai]\nbase_url = 'http://{vendor}/door/openai/v1'\n");
        fs::write(home.path().join("config/pintle/pintle.toml"), config)?;
        let mut command = Command::new(env!("CARGO_BIN_EXE_pintle"));
        command.env_clear().env("PATH", "/usr/bin:/bin").current_dir(home.path());
        for (name, folder) in [("HOME", ""), ("XDG_CONFIG_HOME", "config"), ("XDG_DATA_HOME", "data")] {
            command.env(name, home.path().join(folder));
        }
        command.args(["guard", "serve", "--http", "127.0.0.1:0"]);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let mut lines = BufReader::new(child.stderr.take().context("it has an error output")?).lines();
        let said = lines
            .by_ref()
            .map_while(Result::ok)
            .find_map(|line| line.split_once("model door at http://")?.1.strip_suffix("/door")?.parse().ok());
        let address = said.context("the door does not listen")?;
        // What it says later is read, so that it never waits to say it.
        thread::spawn(move || lines.map_while(Result::ok).for_each(|line| eprintln!("daemon: {line}")));
        Ok(Self { child, address, _home: home })
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
