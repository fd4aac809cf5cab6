//! Requests that stop in the middle: they are cut, wherever they were going and whoever sends them.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::server::{Server, WITH_TOKEN};
use crate::run::{DONE, scripted};

/// How long a body may stand still, and a head may take to come, with what a busy machine adds.
const BODY: Duration = Duration::from_secs(30);
const HEAD: Duration = Duration::from_secs(10);
const MORE: Duration = Duration::from_secs(15);

/// A connection on which `text` was sent, and nothing after it.
fn stopped(server: &Server, text: &str) -> TcpStream {
    let mut stream = TcpStream::connect(&server.address).unwrap();
    stream.set_read_timeout(Some(BODY + MORE)).unwrap();
    stream.write_all(text.as_bytes()).unwrap();
    stream
}

/// Everything that comes until the server closes.
#[track_caller]
fn rest(mut stream: TcpStream, what: &str) -> String {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap_or_else(|error| panic!("{what} is not cut: {error}"));
    answer
}

#[test]
fn a_body_that_stands_still_is_cut_wherever_it_goes() {
    // Nobody has to say who they are, so that as many routes as can be read what is sent.
    let doors = ["anthropic", "gemini", "openai"]
        .map(|vendor| format!("[doors.model.{vendor}]\nbase_url = 'http://127.0.0.1:9'\ntenant = 'default'\n"));
    let server = Server::start(scripted(DONE, &doors.concat()));
    let taking: Vec<_> = pintle_gateway::openapi::rows().into_iter().filter(|route| route.takes).collect();
    assert!(taking.len() >= 7, "{taking:?}");
    let began = Instant::now();
    let streams = taking.iter().map(|route| {
        let path = route.path.replace("{id}", "m:countTokens");
        let head = format!("{} {path} HTTP/1.1\r\nHost: localhost\r\n", route.verb);
        let length = "Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{";
        let pieces = "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{";
        [length, pieces].map(|body| (route, stopped(&server, &format!("{head}{body}"))))
    });
    for (route, stream) in streams.collect::<Vec<_>>().into_iter().flatten() {
        let answer = rest(stream, route.path);
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let body: Value = serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}"));
        if route.only_header.is_some() {
            // In the words of each vendor.
            let why = body["error"]["message"].as_str().unwrap_or_default();
            let is_cut = head.starts_with("HTTP/1.1 408") && why.contains("no data of the body arrived for 30 s");
            assert!(is_cut, "{}: {answer}", route.path);
            continue;
        }
        // Whoever may not at all is told so, and what they send is not read.
        let expected = if route.open || route.least == "nobody" || route.least == "session" {
            ("HTTP/1.1 408", "body_timeout")
        } else {
            ("HTTP/1.1 401", "unauthorized")
        };
        assert!(head.starts_with(expected.0) && body["error"]["code"] == expected.1, "{}: {answer}", route.path);
    }
    let took = began.elapsed();
    assert!((BODY..BODY + MORE).contains(&took), "{took:?}");
}

#[test]
fn a_head_that_does_not_end_is_cut() {
    let server = Server::start(scripted(DONE, WITH_TOKEN));
    let began = Instant::now();
    let beginnings = ["P", "GET / HTTP/1.1\r\n", "POST /auth/sign-in HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1"];
    let streams = beginnings.map(|text| (text, stopped(&server, text)));
    for (text, stream) in streams {
        rest(stream, text);
    }
    let took = began.elapsed();
    assert!(took < HEAD + MORE, "{took:?}");
    // What comes after the answer to one request is a head as well.
    let mut kept = stopped(&server, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    kept.read_exact(&mut [0; 12]).unwrap();
    kept.write_all(b"GET /").unwrap();
    rest(kept, "a second head");
}

#[test]
fn whoever_is_nobody_yet_sends_no_long_body() {
    let server = Server::start(scripted(DONE, WITH_TOKEN));
    let long = format!("{{\"token\":\"{}\"}}", "x".repeat(64 << 10));
    for path in ["/auth/exchange", "/auth/sign-in", "/auth/sign-out"] {
        let answer = super::http_client::send(
            &server,
            &format!("POST {path}"),
            "Content-Type: application/json\n",
            long.as_bytes(),
        );
        let (status, code, message) = answer.refused();
        assert_eq!((status, code.as_str()), (413, "body_too_large"), "{path}");
        assert_eq!(message, "the body has more than 65536 bytes; nothing that is expected here is that long");
    }
}
