//! What stands between a gateway and its machines in tests: it passes everything, or does what a bad network or somebody
//! hostile does.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// What becomes of answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answers {
    /// They pass.
    Pass,
    /// One byte of what is signed is another one.
    Changed,
    /// Half of the document, as if that was all.
    Cut,
    /// What was answered to an earlier question.
    Old,
    /// A page in their place.
    Page,
    /// More than anybody reads.
    Long,
    /// They send elsewhere.
    Elsewhere,
    /// A failure of a server.
    Failed,
    /// Those about records never arrive; the others pass.
    Lost,
}

struct State {
    upstream: Option<String>,
    answers: Answers,
    first: Option<Vec<u8>>,
    open: Vec<TcpStream>,
    /// How many answers about records were lost.
    lost: usize,
}

/// It, at an address that stays.
#[derive(Clone)]
pub(super) struct Between {
    pub(super) address: String,
    state: Arc<Mutex<State>>,
}

impl Between {
    pub(super) fn open(upstream: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let state = State {
            upstream: Some(upstream.to_owned()),
            answers: Answers::Pass,
            first: None,
            open: Vec::new(),
            lost: 0,
        };
        let between = Self { address, state: Arc::new(Mutex::new(state)) };
        let served = between.clone();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let served = served.clone();
                // Whoever is gone is gone.
                thread::spawn(move || served.serve(stream).ok());
            }
        });
        between
    }

    /// From now on answers go this way, those that are waited for included.
    pub(super) fn set(&self, answers: Answers) {
        let mut state = self.state.lock().unwrap();
        state.answers = answers;
        state.cut();
    }

    /// From now on this is the gateway, or none is there.
    pub(super) fn lead_to(&self, upstream: Option<&str>) {
        let mut state = self.state.lock().unwrap();
        state.upstream = upstream.map(str::to_owned);
        state.cut();
    }

    pub(super) fn lost(&self) -> usize {
        self.state.lock().unwrap().lost
    }

    fn serve(&self, mut client: TcpStream) -> std::io::Result<()> {
        let request = read_request(&mut client)?;
        let (upstream, answers) = {
            let mut state = self.state.lock().unwrap();
            state.open.push(client.try_clone()?);
            (state.upstream.clone(), state.answers)
        };
        // What is spoilt need not be waited for.
        let is_spoilt = ![Answers::Pass, Answers::Lost].contains(&answers);
        let request = if is_spoilt { without(request, b"&wait=20") } else { request };
        let Some(upstream) = upstream else { return client.shutdown(Shutdown::Both) };
        let mut server = TcpStream::connect(upstream)?;
        server.write_all(&request)?;
        let mut answer = Vec::new();
        server.read_to_end(&mut answer)?;
        let is_records = request.starts_with(b"POST");
        let mut state = self.state.lock().unwrap();
        if is_records {
            if answers == Answers::Lost {
                state.lost += 1;
                return client.shutdown(Shutdown::Both);
            }
        } else if state.first.is_none() && has_rules(&answer) {
            state.first = Some(answer.clone());
        }
        let old = state.first.clone();
        drop(state);
        let answer = match answers {
            _ if is_records => answer,
            Answers::Pass | Answers::Lost => answer,
            Answers::Changed => with_body(&answer, |body| {
                let at = find(body, b"issued_at").expect("it is signed when it was said");
                let mut body = body.to_vec();
                body[at] ^= 1;
                body
            }),
            Answers::Cut => with_body(&answer, |body| body[..body.len() / 2].to_vec()),
            Answers::Old => old.expect("rules went by"),
            Answers::Page => answer_of("200 OK", "text/html", b"<html>please sign in</html>"),
            Answers::Long => answer_of("200 OK", "application/json", &vec![b' '; 9 << 20]),
            Answers::Elsewhere => {
                b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
                    .to_vec()
            }
            Answers::Failed => answer_of("500 Internal Server Error", "application/json", b"{}"),
        };
        client.write_all(&answer)?;
        client.shutdown(Shutdown::Both)
    }
}

impl State {
    /// Ends what is under way: whoever waits asks again.
    fn cut(&mut self) {
        for open in self.open.drain(..) {
            open.shutdown(Shutdown::Both).ok();
        }
    }
}

/// The whole request, which asks for an answer of its own connection.
fn read_request(client: &mut TcpStream) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let read = client.read(&mut piece)?;
        bytes.extend_from_slice(&piece[..read]);
        let Some(end) = find(&bytes, b"\r\n\r\n") else {
            if read == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            continue;
        };
        let head = String::from_utf8_lossy(&bytes[..end]).to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
        let whole = end + 4 + length.unwrap_or(0_usize);
        if bytes.len() >= whole {
            let line = find(&bytes, b"\r\n").expect("a request line") + 2;
            return Ok([&bytes[..line], b"Connection: close\r\n", &bytes[line..]].concat());
        }
    }
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    bytes.windows(wanted.len()).position(|part| part == wanted)
}

fn without(bytes: Vec<u8>, part: &[u8]) -> Vec<u8> {
    match find(&bytes, part) {
        Some(at) => [&bytes[..at], &bytes[at + part.len()..]].concat(),
        None => bytes,
    }
}

fn has_rules(answer: &[u8]) -> bool {
    find(answer, b"\\\"rules\\\":").is_some()
}

fn with_body(answer: &[u8], change: impl FnOnce(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let head = find(answer, b"\r\n\r\n").expect("a head") + 4;
    answer_of("200 OK", "application/json", &change(&answer[head..]))
}

fn answer_of(status: &str, kind: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}
