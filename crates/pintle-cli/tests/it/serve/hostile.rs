//! Input that nobody means well: fuzzed, oversized, deep, half and in the wrong order. `PINTLE_SOAK_S` says for how long.

use std::collections::BTreeSet;
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

/// The codes of a close. Source: RFC 6455.
const PROTOCOL: u16 = 1002;
const NO_UTF8: u16 = 1007;
const NOBODY: u16 = 1008;
const TOO_LONG: u16 = 1009;

/// How long a head may take to come, a body may stand still, and what a busy machine adds.
const HEAD: Duration = Duration::from_secs(10);
const BODY: Duration = Duration::from_secs(30);
const MORE: Duration = Duration::from_secs(20);

/// Bytes that are no frames, and the code that the server closes with; none where it waits for the rest.
const BYTES: &[(&[u8], Option<u16>)] = &[
    // Not masked.
    (b"\x81\x02{}", Some(PROTOCOL)),
    // A kind that there is not.
    (b"\x83\x80\0\0\0\0", Some(PROTOCOL)),
    // Of reserved bits.
    (b"\xf1\x80\0\0\0\0", Some(PROTOCOL)),
    // No UTF-8.
    (b"\x81\x82\0\0\0\0\xff\xfe", Some(NO_UTF8)),
    // Eight exabytes follow.
    (b"\x81\xff\x7f\xff\xff\xff\xff\xff\xff\xff\0\0\0\0", Some(TOO_LONG)),
    // Goes on with what was never begun.
    (b"\x80\x80\0\0\0\0", Some(PROTOCOL)),
    // A ping that is too long and in pieces, of which nothing comes: nobody signed in.
    (b"\x09\xfe\x01\x00\0\0\0\0", Some(NOBODY)),
    // A close with half a code.
    (b"\x88\x81\0\0\0\0\x03", Some(PROTOCOL)),
    // Half a head.
    (b"\x81", None),
];

/// Half of something.
struct HalfOpen {
    stream: TcpStream,
    since: Instant,
    sent: String,
}

impl HalfOpen {
    /// The server ends it, in the time that it says.
    fn ends(self) {
        let Self { stream, since, sent } = self;
        let longest = if sent.contains("\r\n\r\n") { BODY + HEAD } else { HEAD } + MORE;
        stream.set_read_timeout(Some(longest)).unwrap();
        Attack::rest(stream, &sent);
        assert!(since.elapsed() < longest, "{sent:?} was cut after {:?}", since.elapsed());
    }
}

/// The code of the close frame that ends `all`, which begins with the answer to an upgrade.
fn close_code(all: &[u8]) -> Option<u16> {
    let begin = all.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let mut rest = &all[begin..];
    // The server's frames are short, and not masked.
    while let [kind, length, ..] = rest {
        let payload = rest.get(2..2 + usize::from(*length))?;
        if *kind == 0x88 {
            return Some(u16::from_be_bytes(payload.get(..2)?.try_into().ok()?));
        }
        rest = &rest[2 + payload.len()..];
    }
    None
}

struct Attack<'a> {
    server: &'a Server,
    chance: fastrand::Rng,
    /// The statuses that the reference has for refusals, each with its codes; without one of what is no request.
    table: BTreeSet<(u16, String)>,
}

/// The table of statuses, as the reference has it.
fn table() -> BTreeSet<(u16, String)> {
    let page = pintle_gateway::openapi::page();
    let rows = page.split("## Statuses").nth(1).unwrap().split("\n## ").next().unwrap().to_owned();
    let mut table = BTreeSet::new();
    for row in rows.lines() {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let Some(status) = cells.get(1).and_then(|status| status.parse::<u16>().ok()).filter(|it| *it >= 400) else {
            continue;
        };
        let codes = cells[2].split(", ").map(|code| code.trim_matches('`').to_owned());
        table.extend(codes.map(|code| (status, code)));
    }
    assert!(table.len() > 15, "{table:?}");
    // Those of what is no request stand in a sentence of their own.
    table.extend([400, 414, 431].map(|status| (status, String::new())));
    table
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
    fn rest(stream: TcpStream, what: &str) -> Vec<u8> {
        Self::until_closed(stream, what).0
    }

    /// The same, and whether the connection was reset.
    fn until_closed(mut stream: TcpStream, what: &str) -> (Vec<u8>, bool) {
        let mut answer = Vec::new();
        match stream.read_to_end(&mut answer) {
            Ok(_) => (answer, false),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => (answer, true),
            Err(error) => panic!("{what:?} is neither answered nor closed: {error}"),
        }
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
        let shown = &request[..request.len().min(200)];
        let end = answer.windows(4).position(|end| end == b"\r\n\r\n").expect("a head") + 4;
        let head = String::from_utf8_lossy(&answer[..end]).to_lowercase();
        let length =
            head.lines().find_map(|line| line.strip_prefix("content-length: ")).map_or(0, |it| it.parse().unwrap());
        while answer.len() < end + length {
            match stream.read(&mut piece) {
                Ok(read) if read > 0 => answer.extend_from_slice(&piece[..read]),
                ended => panic!("{shown:?} is answered in part: {ended:?}"),
            }
        }
        let status: u16 = head.split(' ').nth(1).unwrap().parse().unwrap();
        let body = &answer[end..end + length];
        if body.is_empty() {
            // What is no request at all is refused by its status alone, and nothing after it is read.
            assert!(self.table.contains(&(status, String::new())), "{shown:?}: {head}");
            assert!(head.contains("connection: close"), "{shown:?}: {head}");
            return;
        }
        let body: Value = serde_json::from_slice(body).unwrap_or_else(|error| panic!("{shown:?}: {error}: {head}"));
        let code =
            body["error"]["code"].as_str().unwrap_or_else(|| panic!("{shown:?} is refused without a code: {body}"));
        assert!(self.table.contains(&(status, code.to_owned())), "{shown:?}: {status} {code} is not described");
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
        let (bytes, code) = match self.chance.u8(..4) {
            0 => {
                let head = b"\x81\xff\0\0\0\0\0\x10\0\0\0\0\0\0".as_slice();
                ([head, &[b'x'; 1 << 20]].concat(), Some(TOO_LONG))
            }
            1 => (b"\x01\x81\0\0\0\0x".repeat(2000), Some(PROTOCOL)),
            2 => (b"\x89\x84\0\0\0\0ping".repeat(2000), None),
            _ => {
                let (bytes, code) = BYTES[self.chance.usize(..BYTES.len())];
                (bytes.to_vec(), code)
            }
        };
        stream.write_all(&bytes).ok();
        if code.is_none() {
            stream.shutdown(Shutdown::Write).ok();
        }
        let (all, reset) = Self::until_closed(stream, "bytes");
        let shown = &bytes[..bytes.len().min(20)];
        let told = close_code(&all);
        // Whoever still sends when the server closes may not get to read why.
        assert!(told == code || (reset && told.is_none()), "{shown:x?}: closed with {told:?}, expected {code:?}");
    }

    /// Half of something, and then nothing more: it costs nothing while it stays, and the server ends it.
    fn half_open(&mut self) -> HalfOpen {
        let mut stream = self.stream();
        let all: Vec<&str> = REQUESTS.iter().chain(BEGINNINGS).copied().collect();
        let request = self.pick(&all);
        let end = self.chance.usize(..request.len());
        stream.write_all(&request.as_bytes()[..end]).ok();
        HalfOpen { stream, since: Instant::now(), sent: request[..end].to_owned() }
    }
}

fn memory_kib(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn what_two_could_read_in_two_ways_is_answered_once() {
    let server = Server::start(scripted(r#"{"text": "still here", "repeat": true}"#, WITH_TOKEN));
    let second = "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
    for lengths in [
        "Content-Length: 4\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: chunked\r\nContent-Length: 4",
        "Content-Length: 0\r\nContent-Length: 40",
        "Transfer-Encoding: xchunked",
        "Transfer-Encoding : chunked",
        "Content-Length: 0x0",
    ] {
        let mut stream = TcpStream::connect(&server.address).unwrap();
        stream.set_read_timeout(Some(BODY + MORE)).unwrap();
        let first = format!("POST /v1/messages HTTP/1.1\r\nHost: localhost\r\n{lengths}\r\n\r\n0\r\n\r\n");
        stream.write_all(format!("{first}{second}").as_bytes()).unwrap();
        let answer = String::from_utf8_lossy(&Attack::rest(stream, lengths)).into_owned();
        assert!(answer.starts_with("HTTP/1.1 4"), "{lengths}: {answer}");
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{lengths}: {answer}");
    }
}

#[test]
fn nothing_that_is_sent_ends_it_or_makes_it_grow() {
    let length = std::env::var("PINTLE_SOAK_S").ok().map_or(LENGTH, |text| Duration::from_secs(text.parse().unwrap()));
    let mut server = Server::start(scripted(r#"{"text": "still here", "repeat": true}"#, WITH_TOKEN));
    let seed = fastrand::u64(..);
    eprintln!("seed {seed}");
    let mut attack = Attack { server: &server, chance: fastrand::Rng::with_seed(seed), table: table() };
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
        // Those that stood longest were cut by now, or a client that is patient finds it out here.
        let over = |it: &mut HalfOpen| it.since.elapsed() > BODY + HEAD + MORE;
        half_open.extract_if(.., over).for_each(HalfOpen::ends);
        let newest = half_open.len().saturating_sub(50);
        half_open.drain(..newest);
        rounds += 1;
        if rounds == WARM {
            at_first = memory_kib(&server);
        }
    }
    // Nobody but the server ends what stands half open.
    half_open.into_iter().for_each(HalfOpen::ends);
    let at_last = memory_kib(&server);
    eprintln!("{rounds} rounds, {at_first} KiB after the first {WARM}, {at_last} KiB at the end");
    assert!(at_last < at_first + MAX_GROWTH_KIB, "it grew from {at_first} KiB to {at_last} KiB in {rounds} rounds");
    // Nobody is looked at for a while after so many failed tries; it still says so itself.
    let said = server.client().call("connect", json!({ "token": super::server::TOKEN, "user_id": "anna" }));
    assert!(said["ok"] == true || said["error"]["code"] == "RESOURCE_EXHAUSTED", "{said}");
    server.signal(Signal::SIGINT);
    server.signal(Signal::SIGINT);
    let (code, last) = server.ended();
    assert!(code.is_some() && !last.contains("panicked"), "{code:?}: {last}");
}
