//! Fetching, against servers on loopback.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::thread::JoinHandle;

use pintle_egress::{Allow, Egress};

use crate::tools::fetch::WebFetch;

/// A server that gives one answer per connection, and how it is reached through the guard.
struct Site {
    at: SocketAddr,
    server: JoinHandle<Vec<String>>,
    fetch: WebFetch,
}

impl Site {
    fn new(answers: Vec<Vec<u8>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || answers.iter().map(|answer| reply(&listener, answer)).collect());
        let egress = Egress::new(vec![Allow::cidr("127.0.0.1", vec![at.port()]).unwrap()]);
        Self { at, server, fetch: WebFetch::new(&egress).unwrap() }
    }

    async fn get(&self) -> String {
        match self.fetch.fetch(&format!("http://{}/start", self.at)).await {
            Ok(output) => output.for_llm,
            Err(reason) => format!("error: {reason}"),
        }
    }
}

/// Answers one request; returns its first line.
fn reply(listener: &TcpListener, answer: &[u8]) -> String {
    let (mut stream, _) = listener.accept().unwrap();
    let mut request = Vec::new();
    let mut byte = [0];
    while !request.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() == 1 {
        request.extend(byte);
    }
    // A reader that has had enough hangs up.
    drop(stream.write_all(answer));
    String::from_utf8(request).unwrap().lines().next().unwrap_or_default().into()
}

fn answer(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let mut all = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n{headers}\r\n", body.len()).into_bytes();
    all.extend(body);
    all
}

fn ok(content_type: &str, body: &[u8]) -> Vec<u8> {
    answer("200 OK", &format!("content-type: {content_type}\r\n"), body)
}

fn to(location: &str) -> Vec<u8> {
    answer("302 Found", &format!("location: {location}\r\n"), b"")
}

#[tokio::test]
async fn pages_become_text_by_their_type() {
    for (reply, text) in [
        (ok("text/plain", b"a <b> c"), "a <b> c"),
        (ok("text/html; charset=utf-8", b"<p>a &lt; <b>b</b>"), "a < b"),
        (ok("application/ld+json", b"{}"), "{}"),
        (ok("text/plain; charset=ISO-8859-1", b"caf\xe9"), "caf\u{e9}"),
        (ok("text/plain", b"\xef\xbb\xbfa\xff"), "a\u{fffd}"),
        (answer("200 OK", "", b"plain"), "plain"),
        (answer("204 No Content", "", b""), "[no text]"),
        (answer("200 OK", "", b"\0\x01"), "error: the body is binary data, not text"),
        (ok("image/png", b"x"), "error: the page is `image/png`; only text can be fetched"),
        (
            answer("200 OK", "content-type: text/plain\r\ncontent-encoding: gzip\r\n", b"x"),
            "error: the body is encoded as `gzip`, which was not asked for",
        ),
        (answer("404 Not Found", "content-type: text/html\r\n", b"<h1>Gone</h1>"), "error: status 404\n# Gone"),
        (answer("302 Found", "", b""), "error: status 302 without a location"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nshort".to_vec(), "error: the request failed: "),
        (b"garbage\r\n\r\n".to_vec(), "error: the request failed: "),
    ] {
        let shown = String::from_utf8_lossy(&reply).into_owned();
        let got = Site::new(vec![reply]).get().await;
        let matches = if text.ends_with(": ") { got.starts_with(text) } else { got == text };
        assert!(matches, "{shown}\n-> {got}");
    }
}

#[tokio::test]
async fn a_long_page_is_cut() {
    let site = Site::new(vec![ok("text/plain", &vec![b'x'; 3 * 1024 * 1024])]);
    let text = site.get().await;
    assert_eq!(text.len(), 1024 * 1024 + "\n[cut: the page is longer than 1048576 bytes]".len());
    assert!(text.ends_with("x\n[cut: the page is longer than 1048576 bytes]"));
}

#[tokio::test]
async fn redirects_are_followed_hop_by_hop() {
    let site = Site::new(vec![to("/a"), to("b?x=1"), ok("text/plain", b"there")]);
    assert_eq!(site.get().await, "there");
    assert_eq!(site.server.join().unwrap(), ["GET /start HTTP/1.1", "GET /a HTTP/1.1", "GET /b?x=1 HTTP/1.1"]);
}

#[tokio::test]
async fn a_redirect_passes_the_whole_guard() {
    for (location, text) in [
        ("http://169.254.169.254/latest/meta-data/", "error: ssrf: IP 169.254.169.254 is in a blocked range"),
        ("http://0x7f.1:8080/", "error: ssrf: IP 127.0.0.1 is in a blocked range"),
        ("//[::1]/", "error: ssrf: IP ::1 is in a blocked range"),
        ("http://localhost:8080/", "error: ssrf: \"localhost\" resolved to blocked IP "),
        ("file:///etc/passwd", "error: ssrf: scheme \"file\" not allowed (only http/https)"),
        ("http://user:pw@example.org/", "error: ssrf: credentials in url"),
        ("http://example.org:25/", "error: ssrf: port 25 not allowed"),
        ("http://[", "error: a redirect to `http://[`, which is not a URL: invalid IPv6 address"),
    ] {
        let got = Site::new(vec![to(location)]).get().await;
        assert!(got.starts_with(text), "{location}: {got}");
    }
}

#[tokio::test]
async fn the_sixth_redirect_is_not_followed() {
    let site = Site::new((0..6).map(|_| to("/again")).collect());
    let text = site.get().await;
    assert_eq!(text, format!("error: more than 5 redirects; the last one led to http://{}/again", site.at));
    assert_eq!(site.server.join().unwrap().len(), 6);
}
