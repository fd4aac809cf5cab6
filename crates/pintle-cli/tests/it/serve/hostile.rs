//! Input that nobody means well: fuzzed, oversized, deep, half and in the wrong order. `PINTLE_SOAK_S` says for how long.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use super::protocol::check_frame;
use super::server::{Server, WITH_TOKEN};
use crate::run::scripted;

/// How long it goes on unless it is said.
const LENGTH: Duration = Duration::from_secs(10);

/// How much more memory the server may have at the end than after the first rounds, in KiB.
const MAX_GROWTH_KIB: u64 = 32 << 10;

/// Rounds after which its memory is what it needs.
const WARM: usize = 40;

/// Requests of which none is a good one.
const REQUESTS: &[&str] = &[
    "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\nContent-Length: 40\r\n\r\nabcd",
    "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: +4\r\n\r\nabcd",
    "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
    "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999999999999999\r\n\r\nabcd",
    "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nabc",
    "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\nabc",
    "GET /v1/models HTTP/1.1\r\nHost : localhost\r\n\r\n",
    "GET /v1/models HTTP/1.1\r\nHost: localhost\r\nX: a\r\n b\r\n\r\n",
    "GET /v1/models HTTP/1.1\r\nHost: localhost\r\nX: a\0b\r\n\r\n",
    "GET /v1/models HTTP/1.1\r\n\r\n",
    "GET /v1/models HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    "GET /v1/models HTTP/9.9\r\nHost: localhost\r\n\r\n",
    "GET /v1/models\r\n\r\n",
    "GET http://[::1 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "GET /ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: upgrade\r\nSec-WebSocket-Version: 1\r\nSec-WebSocket-Key: x\r\n\r\n",
];

/// What begins like a request; it is closed sooner or later.
const BEGINNINGS: &[&str] = &[
    "\r\n\r\n\r\n\r\n",
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\u{4}\u{9}\0\0\0\0\0nonsense",
    "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{",
    "POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
    "GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n",
];

/// Texts of frames, of which none is a good request.
const FRAMES: &[&str] = &[
    "",
    "{",
    "null",
    "[]",
    "{}",
    r#"{"type":"res","id":"1","ok":true}"#,
    r#"{"type":"req","id":1,"method":"agents.list"}"#,
    r#"{"type":"req","id":"1","method":"connect","params":{"token":"again"}}"#,
    r#"{"type":"req","id":"1","method":"no.such"}"#,
    r#"{"type":"req","id":"1","method":"chat.send","params":[]}"#,
    r#"{"type":"req","id":"1","method":"chat.send","params":{"message":{"a":1}}}"#,
    r#"{"type":"req","id":"1","method":"sessions.list","params":{"limit":-1,"offset":1e400}}"#,
    r#"{"type":"req","id":"1","method":"hooks.history","params":{"cursor":"AAAA","limit":99999999999999999999}}"#,
    r#"{"type":"req","id":"1","method":"chat.history","params":{"sessionKey":"agent:../..:ws:direct:\u0000"}}"#,
    r#"{"type":"req","id":"1","method":"approvals.get","params":{"id":"'; DROP TABLE approvals; --"}}"#,
];

/// Bytes that are no frames.
const BYTES: &[&[u8]] = &[
    // Not masked.
    b"\x81\x02{}",
    // A kind that there is not.
    b"\x83\x80\0\0\0\0",
    // Of reserved bits.
    b"\xf1\x80\0\0\0\0",
    // No UTF-8.
    b"\x81\x82\0\0\0\0\xff\xfe",
    // Eight exabytes follow.
    b"\x81\xff\x7f\xff\xff\xff\xff\xff\xff\xff\0\0\0\0",
    // Goes on with what was never begun.
    b"\x80\x80\0\0\0\0",
    // A ping that is too long, and in pieces.
    b"\x09\xfe\x01\x00\0\0\0\0",
    // A close with half a code.
    b"\x88\x81\0\0\0\0\x03",
    // Half a head.
    b"\x81",
];

struct Attack<'a> {
    server: &'a Server,
    chance: fastrand::Rng,
}

impl Attack<'_> {
    fn pick<'b, T: ?Sized>(&mut self, all: &[&'b T]) -> &'b T {
        all[self.chance.usize(..all.len())]
    }

    fn stream(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.server.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream
    }

    /// Everything that comes until the server closes; that it does not is a failure.
    fn rest(mut stream: TcpStream, what: &str) -> Vec<u8> {
        let mut answer = Vec::new();
        match stream.read_to_end(&mut answer) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
            Err(error) => panic!("{what:?} is neither answered nor closed: {error}"),
        }
        answer
    }

    /// Some bytes of `text` are others, or missing.
    fn mutated(&mut self, text: &str) -> Vec<u8> {
        let mut bytes = text.as_bytes().to_vec();
        for _ in 0..self.chance.usize(1..6) {
            let at = self.chance.usize(..=bytes.len());
            match self.chance.u8(..3) {
                0 if at < bytes.len() => bytes[at] = self.chance.u8(..),
                1 => bytes.truncate(at),
                _ => bytes.insert(at, self.chance.u8(..)),
            }
        }
        bytes
    }

    /// A bad request: it is refused with a status.
    fn bad_http(&mut self) {
        let request = self.pick(REQUESTS);
        self.refused(request);
    }

    fn refused(&mut self, request: &str) {
        let mut stream = self.stream();
        // The server may have refused before it was told all.
        stream.write_all(request.as_bytes()).ok();
        let (mut answer, mut piece) = (Vec::new(), [0; 4096]);
        while !answer.windows(4).any(|end| end == b"\r\n\r\n") {
            match stream.read(&mut piece) {
                Ok(0) => break,
                Ok(read) => answer.extend_from_slice(&piece[..read]),
                // It was still being told when it had refused.
                Err(error) if error.kind() == ErrorKind::ConnectionReset && request.len() > 4096 => return,
                Err(error) => panic!("{:?} is not answered: {error}", &request[..request.len().min(200)]),
            }
        }
        let answer = String::from_utf8_lossy(&answer);
        let shown = &request[..request.len().min(200)];
        assert!(answer.starts_with("HTTP/1.1 4"), "{shown:?} is answered with {answer:?}");
        assert!(!answer.contains("text/plain"), "{shown:?} is refused without a code: {answer:?}");
    }

    /// Something that is close to a request, and ends.
    fn no_http(&mut self) {
        let all: Vec<&str> = REQUESTS.iter().chain(BEGINNINGS).copied().collect();
        let request = self.pick(&all);
        let bytes = self.mutated(request);
        let mut stream = self.stream();
        stream.write_all(&bytes).ok();
        stream.shutdown(Shutdown::Write).ok();
        drop(Self::rest(stream, &String::from_utf8_lossy(&bytes)));
    }

    /// A request that is larger than any may be.
    fn large_http(&mut self) {
        let long = "x".repeat(1 << 20);
        let deep = format!("{{\"model\":\"main\",\"messages\":{}", "[".repeat(200_000));
        let request = match self.chance.u8(..4) {
            0 => format!("GET /{long} HTTP/1.1\r\nHost: localhost\r\n\r\n"),
            1 => format!("GET /v1/models HTTP/1.1\r\nHost: localhost\r\nX: {long}\r\n\r\n"),
            2 => format!("GET /v1/models HTTP/1.1\r\nHost: localhost\r\n{}\r\n", "a: b\r\n".repeat(5000)),
            _ => {
                format!("POST /v1/messages HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\r\n{deep}", deep.len())
            }
        };
        self.refused(&request);
    }

    /// Frames before `connect`, and after it; each is refused with a code.
    fn frames(&mut self) {
        let mut client = self.server.client();
        if self.chance.bool() {
            let said = client.call("connect", json!({ "token": super::server::TOKEN, "user_id": "eve" }));
            // After many failed tries from one address nobody is looked at for a while.
            assert!(said["ok"] == true || said["error"]["code"] == "RESOURCE_EXHAUSTED", "{said}");
        }
        for _ in 0..4 {
            let text = self.pick(FRAMES);
            let deep =
                || format!("{{\"type\":\"req\",\"id\":\"1\",\"method\":\"x\",\"params\":{}", "[".repeat(100_000));
            let text = if self.chance.u8(..8) == 0 { deep() } else { text.to_owned() };
            client.send(&text);
            let Some(answer) = client.text() else { panic!("{:?} is not answered", &text[..text.len().min(80)]) };
            let answer: Value = serde_json::from_str(&answer).unwrap();
            check_frame(&answer, None);
            assert_eq!(answer["ok"], false, "{text}: {answer}");
        }
    }

    /// Frames that are none, and those that are too large: the server closes.
    fn bytes(&mut self) {
        let mut stream = self.stream();
        let upgrade = "GET /ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\
                       Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
        stream.write_all(upgrade.as_bytes()).unwrap();
        let bytes = match self.chance.u8(..4) {
            0 => [b"\x81\xff\0\0\0\0\0\x10\0\0\0\0\0\0".as_slice(), &[b'x'; 1 << 20]].concat(),
            1 => b"\x01\x81\0\0\0\0x".repeat(2000),
            2 => b"\x89\x84\0\0\0\0ping".repeat(2000),
            _ => self.pick(BYTES).to_vec(),
        };
        stream.write_all(&bytes).ok();
        stream.shutdown(Shutdown::Write).ok();
        drop(Self::rest(stream, "bytes"));
    }

    /// Half of something, and then nothing more: it costs nothing while it stays, nor after it went.
    fn half_open(&mut self) -> TcpStream {
        let mut stream = self.stream();
        let request = self.pick(REQUESTS);
        let end = self.chance.usize(..request.len() / 2);
        stream.write_all(&request.as_bytes()[..end]).ok();
        stream
    }
}

fn memory_kib(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn nothing_that_is_sent_ends_it_or_makes_it_grow() {
    let length = std::env::var("PINTLE_SOAK_S").ok().map_or(LENGTH, |text| Duration::from_secs(text.parse().unwrap()));
    let mut server = Server::start(scripted(r#"{"text": "still here", "repeat": true}"#, WITH_TOKEN));
    let seed = fastrand::u64(..);
    eprintln!("seed {seed}");
    let mut attack = Attack { server: &server, chance: fastrand::Rng::with_seed(seed) };
    let (begin, mut half_open, mut at_first, mut rounds) = (Instant::now(), Vec::new(), 0, 0_usize);
    while begin.elapsed() < length || rounds <= WARM {
        match rounds % 6 {
            0 => attack.bad_http(),
            1 => attack.no_http(),
            2 => attack.large_http(),
            3 => attack.frames(),
            4 => attack.bytes(),
            _ => half_open.push(attack.half_open()),
        }
        half_open.drain(..half_open.len().saturating_sub(50));
        rounds += 1;
        if rounds == WARM {
            at_first = memory_kib(&server);
        }
    }
    let at_last = memory_kib(&server);
    eprintln!("{rounds} rounds, {at_first} KiB after the first {WARM}, {at_last} KiB at the end");
    assert!(at_last < at_first + MAX_GROWTH_KIB, "it grew from {at_first} KiB to {at_last} KiB in {rounds} rounds");
    // Nobody is looked at for a while after so many failed tries; it still says so itself.
    let said = server.client().call("connect", json!({ "token": super::server::TOKEN, "user_id": "anna" }));
    assert!(said["ok"] == true || said["error"]["code"] == "RESOURCE_EXHAUSTED", "{said}");
    server.signal(Signal::SIGINT);
    server.signal(Signal::SIGINT);
    drop(half_open);
    let (code, last) = server.ended();
    assert!(code.is_some() && !last.contains("panicked"), "{code:?}: {last}");
}
