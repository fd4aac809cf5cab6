//! Streamable HTTP on either side.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::json;

use super::clients::{python, typescript};
use super::stage::{by_hand, everything, guarded, reached, tools};
use crate::env::{PINTLE, TestEnv};
use crate::mcp::installed;

/// A program that listens; it ends when this is dropped.
pub(super) struct Listening {
    child: Child,
    pub(super) address: String,
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Listening {
    /// Starts `command`, and waits until `found` says where it is in a line of its standard error.
    fn start(mut command: Command, found: impl Fn(&str) -> Option<String> + Send + 'static) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let (said, heard) = mpsc::channel();
        std::thread::spawn(move || {
            for line in stderr.lines().map_while(Result::ok) {
                println!("listening: {line}");
                if let Some(address) = found(&line) {
                    said.send(address).ok();
                }
            }
        });
        let address = heard.recv_timeout(Duration::from_secs(60)).expect("it listens");
        Self { child, address }
    }

    /// The door with `args`.
    pub(super) fn door(env: &TestEnv, args: &[String]) -> Self {
        let mut command = env.command(PINTLE);
        command.args(["mcp", "proxy", "--listen", "127.0.0.1:0"]).args(args);
        Self::start(command, |line| Some(line.split_once("tool door at ")?.1.to_owned()))
    }

    /// The server with everything, at a port of its own.
    fn everything() -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = Command::new("node");
        command.arg(everything()).arg("streamableHttp").env("PORT", port.to_string());
        Self::start(command, move |line| line.contains("listening").then(|| format!("http://127.0.0.1:{port}/mcp")))
    }
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[test]
fn a_client_over_pipes_reaches_a_server_over_http() {
    let (env, server) = (guarded(""), Listening::everything());
    let bare = typescript(&env, &words(&["--url", &server.address]));
    let through = typescript(&env, &words(&[PINTLE, "mcp", "proxy", "--name", "all", "--url", &server.address]));
    assert_eq!(through, bare);
    let refused = words(&[PINTLE, "mcp", "proxy", "--name", "all", "--url", &server.address]);
    let refused = python(&env, &json!([["echo", {"message": "forbidden"}], ["echo", {"message": "hi"}]]), &refused);
    assert!(refused["calls"][0].to_string().contains("not in this house"), "{refused}");
    assert!(refused["calls"][1].to_string().contains("Echo: hi"), "{refused}");
}

#[test]
fn a_client_over_http_reaches_a_child_and_a_server_over_http() {
    let (env, server) = (guarded(""), Listening::everything());
    let child = words(&["--name", "all", "--", "node", everything().to_str().unwrap(), "stdio"]);
    let over_http = words(&["--name", "all", "--url", &server.address]);
    for args in [child, over_http] {
        let door = Listening::door(&env, &args);
        let bare = typescript(&env, &words(&["--url", &server.address]));
        let through = typescript(&env, &words(&["--url", &door.address]));
        assert_eq!(through, bare, "{args:?}");
        let calls = json!([["echo", {"message": "forbidden"}], ["echo", {"message": "hi"}]]);
        let got = python(&env, &calls, &words(&["--url", &door.address]));
        assert!(got["calls"][0].to_string().contains("not in this house"), "{got}");
        assert!(got["calls"][1].to_string().contains("Echo: hi"), "{got}");
    }
}

#[test]
fn clients_of_the_newest_protocol_share_a_child() {
    let env = guarded("");
    let server = words(&[installed("venv/bin/mcp-server-time").to_str().unwrap(), "--local-timezone", "UTC"]);
    let args: Vec<String> = words(&["--name", "time", "--"]).into_iter().chain(server.iter().cloned()).collect();
    let door = Listening::door(&env, &args);
    let times = json!({"source_timezone": "Europe/Berlin", "time": "12:00", "target_timezone": "Asia/Tokyo"});
    let calls = json!([["convert_time", times], ["convert_time", {"time": "x"}]]);
    let bare = python(&env, &calls, &server);
    // Two at once, whose requests have the same ids.
    let through = || python(&env, &calls, &words(&["--url", &door.address]));
    let (one, other) = std::thread::scope(|scope| {
        let other = scope.spawn(through);
        (through(), other.join().unwrap())
    });
    assert_eq!((&one, &other), (&bare, &bare));
    assert_eq!(one["protocol"], "2026-07-28");
    let refused = python(&env, &json!([["convert_time", {"forbidden": 1}]]), &words(&["--url", &door.address]));
    assert!(refused["calls"][0].to_string().contains("not in this house"), "{refused}");
}

#[test]
fn pages_and_foreign_names_have_no_door() {
    let env = guarded("");
    tools(&env, &[("echo", "says it again")]);
    let args: Vec<String> = words(&["--name", "by_hand", "--"]).into_iter().chain(by_hand(&env)).collect();
    let door = Listening::door(&env, &args);
    let address = door.address.trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
    let send = |headers: &str, method: &str, body: &str| {
        let mut stream = TcpStream::connect(&address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let length = body.len();
        let head = format!("{method} HTTP/1.1\n{headers}Connection: close\nContent-Length: {length}\n\n");
        stream.write_all((head.replace('\n', "\r\n") + body).as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let host = format!("Host: {address}\n");
    let greeting = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}"#;
    for (headers, method, status) in [
        (format!("{host}Origin: http://localhost:1\n"), "POST /mcp", "403"),
        ("Host: rebound.example\n".to_owned(), "POST /mcp", "403"),
        (format!("{host}Sec-Fetch-Site: cross-site\n"), "GET /mcp", "403"),
        (format!("{host}Mcp-Session-Id: none\n"), "POST /mcp", "404"),
        (host.clone(), "POST /other", "404"),
        (host.clone(), "GET /mcp", "405"),
    ] {
        let answer = send(&headers, method, greeting);
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{method} {headers}: {answer}");
    }
    let bare = send(&host, "POST /mcp", r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
    assert!(bare.starts_with("HTTP/1.1 400") && bare.contains("begin with `initialize`"), "{bare}");
    assert!(reached(&env).is_empty());
    // A body that nobody can read in two ways.
    let twice = send(&host, "POST /mcp", r#"{"jsonrpc":"2.0","id":1,"method":"initialize","method":"x"}"#);
    assert!(twice.starts_with("HTTP/1.1 400") && twice.contains("stands twice"), "{twice}");
    // What has one message is a document: clients bound the length of an event.
    let begun = send(&host, "POST /mcp", greeting).to_lowercase();
    assert!(begun.starts_with("http/1.1 200") && begun.contains("content-type: application/json"), "{begun}");
    assert!(begun.contains("mcp-session-id: ") && begun.contains("\"serverinfo\""), "{begun}");
}

#[test]
fn an_address_where_nobody_listens_is_an_error_of_the_request() {
    let env = guarded("");
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut command = env.command(PINTLE);
    command.args(["mcp", "proxy", "--name", "away", "--url", &format!("http://127.0.0.1:{port}/mcp")]);
    let seen = env.run(&mut command, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{}}\n");
    assert!(seen.code == Some(0) && seen.out.contains("the server does not answer"), "{seen}");
}
