//! Bounds of connections: how much one may ask at once, how slowly one may read, how long one may be silent, and who
//! reaches a socket of the file system.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tungstenite::stream::MaybeTlsStream;
use tungstenite::{Message, WebSocket};

use super::http_client::get;
use super::server::{Server, TOKEN, WITH_TOKEN};
use crate::env::{PINTLE, TestEnv};
use crate::run::{DONE, scripted};

/// What a busy machine adds to a time.
const MORE: Duration = Duration::from_secs(20);

/// How long one frame may take to be written, how often it is asked whether a client is there, and how long one may say
/// nothing. Source: the published protocol.
const WRITE: Duration = Duration::from_secs(10);
const PING: Duration = Duration::from_secs(30);
const SILENCE: Duration = Duration::from_secs(60);

/// How many requests of one connection are worked at once. Source: the published protocol.
const IN_FLIGHT: usize = 16;

#[test]
fn more_than_may_be_asked_at_once_is_refused_and_what_was_asked_is_answered() {
    let server = Server::start(scripted(DONE, WITH_TOKEN));
    let mut anna = server.admin("anna");
    // Each takes as long as its command, which waits for a file.
    let go = server.env.path("go");
    let command = format!("until [ -e '{}' ]; do sleep 0.05; done", go.display());
    let config = json!({
        "event": "pre_tool_use", "handler_type": "command", "scope": "tenant", "name": "waits",
        "config": { "command": command }, "timeout_ms": 10_000,
    });
    let asked: Vec<String> = (0..=IN_FLIGHT)
        .map(|_| anna.ask("hooks.test", json!({ "config": config, "sampleEvent": { "toolName": "exec" } })))
        .collect();
    let (last, first) = asked.split_last().unwrap();
    let refused = anna.answer(last)["error"].clone();
    assert_eq!(refused["code"], "RESOURCE_EXHAUSTED", "{refused}");
    assert_eq!(refused["message"], "too many requests in flight: at most 16");
    assert!(refused["retryAfterMs"].as_u64().is_some_and(|wait| wait > 0), "{refused}");
    std::fs::write(go, "").unwrap();
    for id in first {
        let answer = anna.answer_of(id);
        assert_eq!(answer["ok"], true, "{answer}");
    }
    anna.done("agents.list", json!({}));
}

/// A client that does nothing by itself, not even answer pings.
fn quiet(server: &Server) -> WebSocket<MaybeTlsStream<TcpStream>> {
    let stream = TcpStream::connect(&server.address).unwrap();
    let url = format!("ws://{}/ws", server.address);
    let (mut socket, _) = tungstenite::client(url, MaybeTlsStream::Plain(stream)).unwrap();
    ask(&mut socket, "connect", json!({ "token": TOKEN, "user_id": "anna" })).unwrap();
    assert!(socket.read().unwrap().to_text().unwrap().contains("\"ok\":true"));
    socket
}

fn ask(
    socket: &mut WebSocket<MaybeTlsStream<TcpStream>>,
    method: &str,
    params: Value,
) -> Result<(), tungstenite::Error> {
    let request = json!({ "type": "req", "id": "1", "method": method, "params": params });
    socket.send(Message::text(request.to_string()))
}

#[test]
fn whoever_reads_nothing_of_much_is_let_go() {
    let server = Server::start(scripted(DONE, WITH_TOKEN));
    let key = "agent:main:ws:direct:long";
    server.admin("anna").done("chat.send", json!({ "sessionKey": key, "message": "x".repeat(31_000) }));
    let mut slow = quiet(&server);
    if let MaybeTlsStream::Plain(stream) = slow.get_mut() {
        stream.set_write_timeout(Some(WRITE + MORE)).unwrap();
    }
    // The server takes no further request while its answers are not read, and then it ends the connection.
    let since = Instant::now();
    let ended = loop {
        if let Err(error) = ask(&mut slow, "chat.history", json!({ "sessionKey": key })) {
            break error;
        }
        assert!(since.elapsed() < WRITE + MORE, "everything is taken");
    };
    println!("a client that reads nothing was let go after {:?}", since.elapsed());
    let tungstenite::Error::Io(error) = &ended else { panic!("{ended:?}") };
    assert!([ErrorKind::ConnectionReset, ErrorKind::BrokenPipe].contains(&error.kind()), "{error:?}");
    assert_eq!(get(&server, "/healthz", "").status, 200);
}

#[test]
fn whoever_is_silent_for_a_minute_is_let_go() {
    let server = Server::start(scripted(DONE, WITH_TOKEN));
    let since = Instant::now();
    let mut silent = quiet(&server);
    let MaybeTlsStream::Plain(stream) = silent.get_mut() else { panic!("it is plain") };
    // Read as bytes, no ping is answered. They come every 30 s, and it is looked with them.
    stream.set_read_timeout(Some(SILENCE + PING + MORE)).unwrap();
    let mut all = Vec::new();
    stream.read_to_end(&mut all).unwrap();
    assert!(since.elapsed() >= SILENCE - Duration::from_secs(1), "{:?}", since.elapsed());
    assert_eq!(all[..2], [0x89, 0], "it is asked whether it is there");
    let why = b"\x03\xf0nothing was said for 60 seconds";
    assert!(all.ends_with(why), "{:?}", String::from_utf8_lossy(&all));
}

/// What is answered to a request over the socket at `path`.
fn over(path: &Path, request: &str) -> String {
    let mut stream = UnixStream::connect(path).unwrap();
    stream.write_all(request.replace('\n', "\r\n").as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

#[test]
fn a_socket_of_the_file_system_is_for_its_owner() {
    let env = scripted(DONE, "");
    let path = env.path("pintle.sock");
    let mut command = env.command(PINTLE);
    command.args(["serve", "--listen", &format!("unix:{}", path.display()), "127.0.0.1:0"]);
    let (mut server, seen) = Server::launch(env, command, "listening at http");
    assert!(seen.contains(&format!("listening at unix:{}", path.display())), "{seen}");
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    // Whoever runs it need not say who they are, and no name of a host is asked for; nor do origins of others get in.
    let models = "GET /v1/models HTTP/1.1\nHost: pintle\nConnection: close\n";
    assert!(over(&path, &format!("{models}\n")).starts_with("HTTP/1.1 200 "));
    assert!(over(&path, &format!("{models}Via: 1.1 proxy\n\n")).starts_with("HTTP/1.1 401 "));
    assert!(over(&path, &format!("{models}Origin: http://evil.example\n\n")).starts_with("HTTP/1.1 403 "));
    if nix::unistd::getuid().is_root() {
        // Somebody else of this machine.
        let script = "import os, socket, sys
os.setgid(65534); os.setuid(65534)
try: socket.socket(socket.AF_UNIX).connect(sys.argv[1])
except PermissionError: print('refused')";
        let seen = TestEnv::output(server.env.command("python3").args(["-c", script, path.to_str().unwrap()]), "");
        assert_eq!(String::from_utf8_lossy(&seen.stdout), "refused\n", "{seen:?}");
    }
    server.signal(Signal::SIGTERM);
    assert_eq!(server.ended().0, Some(0));
    assert!(!path.exists(), "it is taken away");
}
