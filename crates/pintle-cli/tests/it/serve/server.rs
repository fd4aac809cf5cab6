//! A server that runs for a test, and a client of it.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, ErrorKind, Lines, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use tungstenite::client::IntoClientRequest as _;
use tungstenite::stream::MaybeTlsStream;
use tungstenite::{Message, WebSocket};

use super::protocol::check_frame;
use crate::env::{PINTLE, TestEnv};

/// How long a test waits for a frame: what does not come by then does not come.
const PATIENCE: Duration = Duration::from_secs(30);

/// The gateway token of tests.
pub(super) const TOKEN: &str = "a-token-of-this-test";

/// The section of a gateway with that token.
pub(super) const WITH_TOKEN: &str = "[gateway]\ntoken_env = 'PINTLE_TEST_TOKEN'\ndrain_delay_s = 0\n";

/// A server that runs until it is dropped.
pub(super) struct Server {
    child: Child,
    shown: Lines<BufReader<ChildStderr>>,
    /// `127.0.0.1:PORT`.
    pub(super) address: String,
    /// Where it lives.
    pub(super) env: TestEnv,
}

impl Server {
    /// Serves the configuration of `env` at a port that is free.
    #[track_caller]
    pub(super) fn start(env: TestEnv) -> Self {
        Self::start_with(env, &[])
    }

    /// The same with further variables.
    #[track_caller]
    pub(super) fn start_with(env: TestEnv, vars: &[(&str, &str)]) -> Self {
        let mut command = env.command(PINTLE);
        command.envs(vars.iter().copied());
        command.args(["serve", "--listen", "127.0.0.1:0"]).env("PINTLE_TEST_TOKEN", TOKEN);
        Self::launch(env, command, "listening at http").0
    }

    /// Starts a program that serves, and waits for a line with `wanted` in it: what it showed up to there.
    #[track_caller]
    pub(super) fn launch(env: TestEnv, mut command: Command, wanted: &str) -> (Self, String) {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let shown = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut server = Self { child, shown, address: String::new(), env };
        let seen = server.until(wanted);
        let line = seen.lines().find(|line| line.contains("listening at http")).expect("an address");
        server.address = line.rsplit('/').next().unwrap().to_owned();
        (server, seen)
    }

    /// Kills it, and starts another one with the same home.
    #[track_caller]
    pub(super) fn again(mut self) -> Self {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        let env = std::mem::replace(&mut self.env, TestEnv::new());
        Self::start(env)
    }

    /// What it shows up to a line with `wanted` in it.
    #[track_caller]
    pub(super) fn until(&mut self, wanted: &str) -> String {
        let mut seen = Vec::new();
        for line in self.shown.by_ref().map(Result::unwrap) {
            seen.push(line);
            if seen.last().is_some_and(|line| line.contains(wanted)) {
                return seen.join("\n");
            }
        }
        panic!("`{wanted}` was never shown: {seen:#?}");
    }

    /// Where it lived, once it has ended.
    pub(super) fn into_env(mut self) -> TestEnv {
        std::mem::replace(&mut self.env, TestEnv::new())
    }

    /// Its number among processes.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn signal(&self, signal: nix::sys::signal::Signal) {
        let pid = nix::unistd::Pid::from_raw(i32::try_from(self.child.id()).unwrap());
        nix::sys::signal::kill(pid, signal).unwrap();
    }

    /// Waits for its end, which somebody asked for: the exit code, and what it showed last.
    pub(super) fn ended(&mut self) -> (Option<i32>, String) {
        let last: Vec<String> = self.shown.by_ref().map(Result::unwrap).collect();
        let code = self.child.wait().unwrap().code();
        (code, last.join("\n"))
    }

    /// The status line, head and body of what it answers to a request that is written as it is.
    pub(super) fn http(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(request.replace('\n', "\r\n").as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// The status and body of a plain `GET`.
    pub(super) fn get(&self, path: &str) -> (u16, Value) {
        let answer = self.http(&format!("GET {path} HTTP/1.1\nHost: localhost\nConnection: close\n\n"));
        let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(answer.split("\r\n\r\n").nth(1).unwrap()).unwrap())
    }

    /// A client that has said nothing.
    pub(super) fn client(&self) -> Client {
        self.client_with(&[]).unwrap()
    }

    /// The same with further headers, if it is let in.
    pub(super) fn client_with(&self, headers: &[(&'static str, &str)]) -> Result<Client, u16> {
        let mut request = format!("ws://{}/ws", self.address).into_client_request().unwrap();
        for (name, value) in headers {
            request.headers_mut().insert(*name, value.parse().unwrap());
        }
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        match tungstenite::client(request, MaybeTlsStream::Plain(stream)) {
            Ok((socket, _)) => Ok(Client { socket, last: 0, asked: HashMap::new(), heard: Vec::new() }),
            Err(tungstenite::HandshakeError::Failure(tungstenite::Error::Http(answer))) => {
                Err(answer.status().as_u16())
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// A client who is let in.
    #[track_caller]
    pub(super) fn connected(&self, params: Value) -> Client {
        let mut client = self.client();
        let welcome = client.call("connect", params);
        assert_eq!(welcome["ok"], true, "{welcome}");
        client
    }

    /// A client with the gateway token, as `user`.
    #[track_caller]
    pub(super) fn admin(&self, user: &str) -> Client {
        self.connected(json!({ "token": TOKEN, "user_id": user }))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A client of the socket.
pub(super) struct Client {
    socket: WebSocket<MaybeTlsStream<TcpStream>>,
    last: u64,
    /// The methods and params of what was asked and is not answered yet, by the ids of the requests.
    asked: HashMap<String, (String, Value)>,
    /// The frames that came in while something else was waited for.
    pub(super) heard: Vec<Value>,
}

impl Client {
    /// Sends a text as it is.
    pub(super) fn send(&mut self, text: &str) {
        self.socket.send(Message::text(text)).unwrap();
    }

    /// The next text as it is; none where the server closed.
    pub(super) fn text(&mut self) -> Option<String> {
        loop {
            match self.socket.read() {
                Ok(Message::Text(text)) => {
                    self.check(&text);
                    return Some(text.to_string());
                }
                Ok(Message::Ping(_) | Message::Pong(_)) => {}
                // What a client still had to say is not read by then.
                Err(tungstenite::Error::Io(error)) if error.kind() == ErrorKind::ConnectionReset => return None,
                Ok(Message::Close(_)) | Err(tungstenite::Error::ConnectionClosed | tungstenite::Error::Protocol(_)) => {
                    return None;
                }
                Ok(other) => panic!("{other:?}"),
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// Nothing comes in that is not as it is described.
    #[track_caller]
    fn check(&mut self, text: &str) {
        let frame: Value = serde_json::from_str(text).unwrap();
        let asked = frame["id"].as_str().filter(|_| frame["type"] == "res").and_then(|id| self.asked.remove(id));
        check_frame(&frame, asked.as_ref());
    }

    /// The next frame.
    #[track_caller]
    pub(super) fn frame(&mut self) -> Value {
        let text = self.text().expect("the server closed the connection");
        serde_json::from_str(&text).unwrap()
    }

    /// Asks for something; the id of the request.
    pub(super) fn ask(&mut self, method: &str, params: Value) -> String {
        self.last += 1;
        let id = self.last.to_string();
        self.asked.insert(id.clone(), (method.to_owned(), params.clone()));
        self.send(&json!({ "type": "req", "id": id, "method": method, "params": params }).to_string());
        id
    }

    /// The answer to the request `id`. What else comes in is heard.
    #[track_caller]
    pub(super) fn answer(&mut self, id: &str) -> Value {
        loop {
            let frame = self.frame();
            if frame["type"] == "res" && frame["id"] == id {
                return frame;
            }
            self.heard.push(frame);
        }
    }

    /// The same, where it may have come in already.
    #[track_caller]
    pub(super) fn answer_of(&mut self, id: &str) -> Value {
        let heard = |frame: &Value| frame["type"] == "res" && frame["id"] == id;
        match self.heard.iter().position(heard) {
            Some(at) => self.heard.remove(at),
            None => self.answer(id),
        }
    }

    /// Asks for something, and waits for the answer.
    #[track_caller]
    pub(super) fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params);
        self.answer(&id)
    }

    /// The payload of something that is done.
    #[track_caller]
    pub(super) fn done(&mut self, method: &str, params: Value) -> Value {
        let answer = self.call(method, params);
        assert_eq!(answer["ok"], true, "{method}: {answer}");
        answer["payload"].clone()
    }

    /// The code and message of something that is refused.
    #[track_caller]
    pub(super) fn refused(&mut self, method: &str, params: Value) -> (String, String) {
        let answer = self.call(method, params);
        assert_eq!(answer["ok"], false, "{method}: {answer}");
        let text = |name: &str| answer["error"][name].as_str().unwrap().to_owned();
        (text("code"), text("message"))
    }

    /// Waits for an event `name` that `wanted` picks; what came before it is heard.
    #[track_caller]
    pub(super) fn event(&mut self, name: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let is_it = |frame: &Value| frame["type"] == "event" && frame["event"] == name && wanted(&frame["payload"]);
        if let Some(at) = self.heard.iter().position(is_it) {
            return self.heard.remove(at)["payload"].clone();
        }
        loop {
            let frame = self.frame();
            if is_it(&frame) {
                return frame["payload"].clone();
            }
            self.heard.push(frame);
        }
    }

    /// The kinds of the events of agents that were heard, in order.
    pub(super) fn kinds(&self) -> Vec<&str> {
        let agents = self.heard.iter().filter(|frame| frame["event"] == "agent");
        agents.map(|frame| frame["payload"]["type"].as_str().unwrap()).collect()
    }
}
