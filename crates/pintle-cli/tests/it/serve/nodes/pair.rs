//! Real servers on one PostgreSQL, and clients that outlive them.

use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use pintle_testkit::postgres::Server as Database;
use serde_json::{Value, json};
use tungstenite::stream::MaybeTlsStream;
use tungstenite::{Message, WebSocket};

use super::model::Model;
use crate::env::{PINTLE, TestEnv};
use crate::serve::server::TOKEN;

/// How long something may take that nodes do by themselves.
pub(super) const SOON: Duration = Duration::from_secs(60);

/// How long an answer may take: longer than a node stands still, and than it takes to find out.
const ANSWERED_IN: Duration = Duration::from_secs(150);

/// Several nodes, their database and their model.
pub(super) struct Nodes {
    pub(super) env: TestEnv,
    pub(super) database: Database,
    pub(super) url: String,
    pub(super) model: Model,
}

/// One server.
pub(super) struct Node {
    child: Child,
    shown: Mutex<Receiver<String>>,
    /// What it showed so far.
    pub(super) seen: Vec<String>,
    pub(super) address: String,
}

impl Nodes {
    pub(super) fn new() -> Self {
        let database = Database::start();
        let url = database.fresh_database();
        Self { env: TestEnv::new(), database, url, model: Model::start() }
    }

    /// A server called `name` with `more` in the table of its agent, at the database `url`.
    pub(super) fn start_at(&self, name: &str, more: &str, url: &str) -> Node {
        self.start_by(name, (more, url), &[])
    }

    /// A server called `name` with a home folder of its own and the key `key` to sign with.
    pub(super) fn start_with_key(&self, name: &str, key: &str) -> Node {
        let home = self.env.path(name).display().to_string();
        self.start_by(name, ("", &self.url), &[("PINTLE_HOME", &home), ("PINTLE_AUDIT_SIGNING_KEY", key)])
    }

    /// The same at the usual database, by `program`, which may be another build.
    pub(super) fn start_build(&self, program: &Path, name: &str, more: &str) -> Node {
        self.run(program, &self.config(name, (more, &self.url)), &[])
    }

    fn start_by(&self, name: &str, (more, url): (&str, &str), vars: &[(&str, &str)]) -> Node {
        self.run(Path::new(PINTLE), &self.config(name, (more, url)), vars)
    }

    /// The file that a server called `name` starts with.
    fn config(&self, name: &str, (more, url): (&str, &str)) -> PathBuf {
        let config = format!(
            "[store]\nurl = '{url}'\n[tools.exec]\nunconfined = true\n[gateway]\nnode = '{name}'\n\
             token_env = 'PINTLE_TEST_TOKEN'\nedition = 'standard'\nrequests_per_minute = 100000\n\
             drain_delay_s = 1\ndrain_s = 5\n{}\
             [agents.main]\nmodel = 'model/m'\ntools = ['exec']\nworkspace_shared = true\n{more}\n",
            self.model.provider(),
        );
        self.env.write(&format!("config/pintle/{name}.toml"), &config)
    }

    fn run(&self, program: &Path, file: &Path, vars: &[(&str, &str)]) -> Node {
        let mut command = self.env.command(program);
        command.arg("serve").arg("-c").arg(file).args(["--listen", "127.0.0.1:0"]).env("PINTLE_TEST_TOKEN", TOKEN);
        command.envs(vars.iter().copied());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let (say, shown) = channel();
        thread::spawn(move || lines.map_while(Result::ok).for_each(|line| drop(say.send(line))));
        let mut node = Node { child, shown: Mutex::new(shown), seen: Vec::new(), address: String::new() };
        let line = node.until("listening at http://");
        node.address = line.rsplit('/').next().unwrap().to_owned();
        node.until("  hooks ");
        node
    }

    pub(super) fn start(&self, name: &str) -> Node {
        self.start_at(name, "", &self.url)
    }

    pub(super) fn ask(&self, sql: &str) -> String {
        self.database.execute(&self.url, sql)
    }
}

impl Node {
    /// Waits for a line with `wanted` in it.
    #[track_caller]
    pub(super) fn until(&mut self, wanted: &str) -> String {
        while let Ok(line) = self.shown.get_mut().unwrap().recv_timeout(SOON) {
            self.seen.push(line.clone());
            if line.contains(wanted) {
                return line;
            }
        }
        panic!("`{wanted}` was never shown: {:#?}", self.seen);
    }

    pub(super) fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap());
        kill(pid, signal).unwrap();
    }

    pub(super) fn ended(&mut self) -> (Option<i32>, String) {
        let code = self.child.wait().unwrap().code();
        let last: Vec<String> = self.shown.get_mut().unwrap().iter().collect();
        (code, last.join("\n"))
    }

    pub(super) fn client(&self, user: &str) -> Client {
        Client::connect(&self.address, user).expect("it answers")
    }

    /// The same in `tenant`.
    pub(super) fn client_in(&self, tenant: &str, user: &str) -> Client {
        Client::connect_as(&self.address, json!({ "token": TOKEN, "user_id": user, "tenant_hint": tenant }))
            .expect("it answers")
    }

    /// A tenant with these members.
    pub(super) fn tenant(&self, slug: &str, members: impl Iterator<Item = String>) {
        self.client("system").done("tenants.create", json!({ "slug": slug, "name": slug }));
        let mut owner = self.client_in(slug, "system");
        for user in members {
            owner.done("members.add", json!({ "userId": user, "role": "operator" }));
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Nobody answers, or not any more.
#[derive(Debug)]
pub(super) struct Gone;

/// A client that survives its server.
pub(super) struct Client {
    socket: WebSocket<MaybeTlsStream<TcpStream>>,
    last: u64,
    pub(super) heard: Vec<Value>,
}

impl Client {
    pub(super) fn connect(address: &str, user: &str) -> Result<Self, Gone> {
        Self::connect_as(address, json!({ "token": TOKEN, "user_id": user }))
    }

    pub(super) fn connect_as(address: &str, who: Value) -> Result<Self, Gone> {
        let address = address.parse().map_err(|_| Gone)?;
        let stream = TcpStream::connect_timeout(&address, Duration::from_secs(2)).map_err(|_| Gone)?;
        stream.set_read_timeout(Some(Duration::from_secs(3))).map_err(|_| Gone)?;
        let (mut socket, _) =
            tungstenite::client(format!("ws://{address}/ws"), MaybeTlsStream::Plain(stream)).map_err(|_| Gone)?;
        if let MaybeTlsStream::Plain(stream) = socket.get_mut() {
            stream.set_read_timeout(Some(SOON)).map_err(|_| Gone)?;
        }
        let mut client = Self { socket, last: 0, heard: Vec::new() };
        let welcome = client.call("connect", who)?;
        // One that stood still in the middle of this has lost its connection to the database.
        if welcome["error"]["code"] == "UNAVAILABLE" {
            return Err(Gone);
        }
        assert_eq!(welcome["ok"], true, "{welcome}");
        Ok(client)
    }

    /// Waits no longer than `time` for a frame from now on.
    pub(super) fn patience(&mut self, time: Duration) {
        if let MaybeTlsStream::Plain(stream) = self.socket.get_mut() {
            stream.set_read_timeout(Some(time)).unwrap();
        }
    }

    fn frame(&mut self) -> Result<Value, Gone> {
        loop {
            match self.socket.read() {
                Ok(Message::Text(text)) => return Ok(serde_json::from_str(&text).unwrap()),
                Ok(Message::Ping(_) | Message::Pong(_)) => {}
                Ok(_) | Err(_) => return Err(Gone),
            }
        }
    }

    pub(super) fn ask(&mut self, method: &str, params: Value) -> Result<String, Gone> {
        self.last += 1;
        let id = self.last.to_string();
        let request = json!({ "type": "req", "id": id, "method": method, "params": params }).to_string();
        self.socket.send(Message::text(request)).map_err(|_| Gone)?;
        Ok(id)
    }

    pub(super) fn answer(&mut self, id: &str) -> Result<Value, Gone> {
        let end = Instant::now() + ANSWERED_IN;
        loop {
            let frame = self.frame()?;
            // Signs of life go on for good.
            assert!(
                Instant::now() < end,
                "nothing is answered to {id} within {ANSWERED_IN:?}: {:?}",
                self.heard.last()
            );
            if frame["type"] == "res" && frame["id"] == id {
                return Ok(frame);
            }
            self.heard.push(frame);
        }
    }

    pub(super) fn call(&mut self, method: &str, params: Value) -> Result<Value, Gone> {
        let id = self.ask(method, params)?;
        self.answer(&id)
    }

    /// The payload of something that is done.
    #[track_caller]
    pub(super) fn done(&mut self, method: &str, params: Value) -> Value {
        let answer = self.call(method, params).expect("it is there");
        assert_eq!(answer["ok"], true, "{method}: {answer}");
        answer["payload"].clone()
    }

    /// Waits for an event of an agent that `wanted` picks.
    #[track_caller]
    pub(super) fn event(&mut self, name: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        let is_it = |frame: &Value| frame["event"] == name && wanted(&frame["payload"]);
        if let Some(at) = self.heard.iter().position(is_it) {
            return self.heard.remove(at)["payload"].clone();
        }
        loop {
            let frame = self.frame().unwrap_or_else(|Gone| panic!("no such event: {:#?}", self.heard));
            if is_it(&frame) {
                return frame["payload"].clone();
            }
            self.heard.push(frame);
        }
    }
}

/// Waits until `it` is there.
#[track_caller]
pub(super) fn until<T>(what: &str, mut it: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + SOON;
    loop {
        if let Some(found) = it() {
            return found;
        }
        assert!(Instant::now() < end, "{what}: not within {SOON:?}");
        thread::sleep(Duration::from_millis(20));
    }
}
