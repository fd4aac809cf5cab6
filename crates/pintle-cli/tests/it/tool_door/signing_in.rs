//! Clients that sign in to a server over HTTP, through the door: what it says of where is said of the door.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};

use super::http::Listening;
use super::stage::guarded;

/// A request or an answer.
struct Heard {
    /// The first line.
    line: String,
    /// The other lines of the head, in lower case but for their values.
    head: Vec<(String, String)>,
    body: String,
}

impl Heard {
    fn of(stream: &TcpStream) -> Self {
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let mut from = BufReader::new(stream);
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            from.read_line(&mut line).unwrap();
            match line.trim_end() {
                "" => break,
                line => lines.push(line.to_owned()),
            }
        }
        let first = if lines.is_empty() { String::new() } else { lines.remove(0) };
        let pair = |line: &String| line.split_once(": ").map(|(name, value)| (name.to_lowercase(), value.to_owned()));
        let mut heard = Self { line: first, head: lines.iter().filter_map(pair).collect(), body: String::new() };
        let length = heard.header("content-length").and_then(|length| length.parse().ok());
        match length {
            Some(length) => from.take(length).read_to_string(&mut heard.body).map(drop).unwrap(),
            None if heard.line.starts_with("HTTP/") => from.read_to_string(&mut heard.body).map(drop).unwrap(),
            None => {}
        }
        heard
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.head.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

/// What a server answers that wants to know who asks: status, further lines of the head, body.
fn answer(asked: &Heard, origin: &str) -> (&'static str, String, String) {
    let (method, path) = asked.line.split_once(' ').unwrap();
    let path = path.split(' ').next().unwrap();
    let is_let_in = asked.header("authorization") == Some("Bearer good");
    let json = |value: Value| ("200 OK", "Content-Type: application/json\r\n".to_owned(), value.to_string());
    match (method, path) {
        ("POST", "/a/mcp") if !is_let_in => {
            let says = format!("WWW-Authenticate: Bearer resource_metadata=\"{origin}/meta\"\r\n");
            ("401 Unauthorized", says, String::new())
        }
        ("POST", "/a/mcp") => {
            let message = asked.json();
            let result = match message["method"].as_str().unwrap() {
                "initialize" => {
                    json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}})
                }
                "tools/list" => json!({"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}),
                "tools/call" => json!({"content": [{"type": "text", "text": "it ran"}]}),
                _ => return ("202 Accepted", String::new(), String::new()),
            };
            json(json!({"jsonrpc": "2.0", "id": message["id"], "result": result}))
        }
        ("GET", "/meta") => {
            json(json!({"resource": format!("{origin}/a/mcp"), "authorization_servers": [format!("{origin}/i")]}))
        }
        ("GET", "/.well-known/oauth-authorization-server/i") => json(json!({
            "issuer": format!("{origin}/i"), "authorization_endpoint": format!("{origin}/sign-in?x=1"),
            "token_endpoint": format!("{origin}/token"), "registration_endpoint": format!("{origin}/register"),
        })),
        ("POST", "/token") if asked.body == format!("code=c&resource={}", coded(&format!("{origin}/a/mcp"))) => {
            json(json!({"access_token": "good", "token_type": "Bearer"}))
        }
        ("POST", "/token") => ("400 Bad Request", String::new(), json!({"error": "invalid_target"}).to_string()),
        _ => ("404 Not Found", String::new(), String::new()),
    }
}

fn coded(address: &str) -> String {
    address.replace(':', "%3A").replace('/', "%2F")
}

/// The address of such a server, which goes on until the test ends.
fn server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let origin = format!("http://{}", listener.local_addr().unwrap());
    let own = origin.clone();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let asked = Heard::of(&stream);
            if asked.line.is_empty() {
                continue;
            }
            let (status, head, body) = answer(&asked, &own);
            let length = body.len();
            let text =
                format!("HTTP/1.1 {status}\r\n{head}Connection: close\r\nContent-Length: {length}\r\n\r\n{body}");
            stream.write_all(text.as_bytes()).ok();
        }
    });
    origin
}

/// Asks the door.
fn ask(door: &str, (line, head): (&str, &str), body: &str) -> Heard {
    let address = door.trim_start_matches("http://");
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    let text =
        format!("{line} HTTP/1.1\r\nHost: {address}\r\n{head}Connection: close\r\nContent-Length: {length}\r\n\r\n");
    stream.write_all((text + body).as_bytes()).unwrap();
    Heard::of(&stream)
}

const GREETING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}"#;
const CALL: &str = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"echo","arguments":{}}}"#;

#[test]
fn a_client_signs_in_where_the_door_says_and_the_server_knows_it() {
    let (env, there) = (guarded(""), server());
    let url = format!("{there}/a/mcp");
    let args = ["--name", "by_hand", "--url", &url].map(str::to_owned);
    let listening = Listening::door(&env, &args);
    let door = listening.address.trim_end_matches("/mcp").to_owned();

    let refused = ask(&door, ("POST /mcp", ""), GREETING);
    assert!(refused.line.starts_with("HTTP/1.1 401"), "{}", refused.line);
    let named = format!("{door}/.well-known/oauth-protected-resource/mcp");
    let says = format!("Bearer resource_metadata=\"{named}\"");
    assert_eq!(refused.header("www-authenticate"), Some(says.as_str()));
    assert_eq!(refused.header("mcp-session-id"), None);

    let resource = ask(&door, ("GET /.well-known/oauth-protected-resource/mcp", ""), "").json();
    assert_eq!(resource, json!({"resource": format!("{door}/mcp"), "authorization_servers": [door]}));
    let issuer = ask(&door, ("GET /.well-known/oauth-authorization-server", ""), "").json();
    let expected = json!({
        "issuer": door, "authorization_endpoint": format!("{door}/oauth/authorize"),
        "token_endpoint": format!("{door}/oauth/token"), "registration_endpoint": format!("{there}/register"),
    });
    assert_eq!(issuer, expected);

    let own = coded(&format!("{door}/mcp"));
    let sent_on = ask(&door, (&format!("GET /oauth/authorize?state=s&resource={own}"), ""), "");
    let place = format!("{there}/sign-in?x=1&state=s&resource={}", coded(&url));
    assert_eq!((sent_on.line.split(' ').nth(1), sent_on.header("location")), (Some("302"), Some(place.as_str())));
    let form = "Content-Type: application/x-www-form-urlencoded\r\n";
    let token = ask(&door, ("POST /oauth/token", form), &format!("code=c&resource={own}"));
    assert_eq!(token.json()["access_token"], "good", "{}", token.body);
    // A page has no business here either.
    let page = ask(&door, ("POST /oauth/token", &format!("{form}Origin: http://localhost\r\n")), "");
    assert!(page.line.starts_with("HTTP/1.1 403"), "{}", page.line);

    let good = "Authorization: Bearer good\r\n";
    let greeted = ask(&door, ("POST /mcp", good), GREETING);
    let session = format!("Mcp-Session-Id: {}\r\n", greeted.header("mcp-session-id").expect("a session"));
    // What was good once may be so no longer: a call whose list is refused never reached the server.
    let late = ask(&door, ("POST /mcp", &session), CALL);
    assert!(late.line.starts_with("HTTP/1.1 401") && late.header("www-authenticate").is_some(), "{}", late.line);
    let called = ask(&door, ("POST /mcp", &format!("{session}{good}")), CALL);
    assert!(called.line.starts_with("HTTP/1.1 200") && called.body.contains("it ran"), "{}", called.body);
}

#[test]
fn nobody_signs_in_to_a_server_that_says_nothing_of_it() {
    let env = guarded("");
    let there = server();
    let url = format!("{there}/b/mcp");
    let args = ["--name", "by_hand", "--url", &url].map(str::to_owned);
    let listening = Listening::door(&env, &args);
    let door = listening.address.trim_end_matches("/mcp").to_owned();
    for line in
        ["GET /.well-known/oauth-protected-resource", "GET /.well-known/openid-configuration", "POST /oauth/token"]
    {
        let nothing = ask(&door, (line, ""), "");
        assert!(nothing.line.starts_with("HTTP/1.1 404"), "{line}: {}", nothing.line);
    }
}
