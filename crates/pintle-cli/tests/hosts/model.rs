//! A model that follows a plan, in the words of whichever agent asks it.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use pintle_domain::json::{self, Value};
use pintle_guard::trial::{TrialCall, TrialReply, TrialSaid, TrialWire};

/// What a model does before it says what comes first in its plan.
type Before = Box<dyn FnOnce() + Send>;

/// A server that runs to the end of the test.
pub(crate) struct Model {
    pub(crate) url: String,
    told: Arc<Mutex<Told>>,
}

#[derive(Default)]
struct Told {
    /// What it was asked, with tools that it could call.
    asked: Vec<(TrialWire, Value)>,
    /// Everything that it was sent.
    heard: String,
    before: Option<Before>,
    /// What the model of a sub-agent calls.
    child: Option<TrialCall>,
}

/// What a sub-agent is told, by which its model knows that it is one.
pub(crate) const CHILD: &str = "work of the child";

impl Model {
    /// A model that makes the calls of `plan`, one after another, and then says that it is done.
    pub(crate) fn start(plan: Vec<TrialCall>) -> Self {
        Self::start_after(plan, Box::new(|| {}))
    }

    /// The same; `before` comes before its first call.
    pub(crate) fn start_after(plan: Vec<TrialCall>, before: Before) -> Self {
        Self::with(plan, Told { before: Some(before), ..Told::default() })
    }

    /// The same; whoever is told [`CHILD`] makes the call `child` instead.
    pub(crate) fn start_with_child(plan: Vec<TrialCall>, child: TrialCall) -> Self {
        Self::with(plan, Told { child: Some(child), ..Told::default() })
    }

    fn with(plan: Vec<TrialCall>, told: Told) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let model =
            Self { url: format!("http://{}", listener.local_addr().unwrap()), told: Arc::new(Mutex::new(told)) };
        let (told, plan) = (model.told.clone(), Arc::new(plan));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (told, plan) = (told.clone(), plan.clone());
                thread::spawn(move || serve(stream, &plan, &told));
            }
        });
        model
    }

    /// The results of tools that the newest request has, in their order.
    pub(crate) fn results(&self) -> Vec<String> {
        let told = self.told.lock().unwrap();
        let results = told.asked.iter().map(|(wire, request)| wire.read(request).results);
        results.max_by_key(Vec::len).unwrap_or_default()
    }

    /// Whether anybody asked it to go on with a conversation that has tools.
    pub(crate) fn was_asked(&self) -> bool {
        !self.told.lock().unwrap().asked.is_empty()
    }

    /// Everything that it was sent.
    pub(crate) fn heard(&self) -> String {
        self.told.lock().unwrap().heard.clone()
    }
}

fn serve(stream: TcpStream, plan: &[TrialCall], told: &Mutex<Told>) -> Option<()> {
    let mut stream = BufReader::new(stream);
    let (mut first, mut length) = (String::new(), 0);
    stream.read_line(&mut first).ok()?;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).ok()?;
        let line = line.trim().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        assert!(!line.starts_with("transfer-encoding"), "a body without a length is not read here: {first}");
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    let path = first.split(' ').nth(1)?.split('?').next()?.to_owned();
    let body = String::from_utf8(body).ok()?;
    told.lock().unwrap().heard.push_str(&body);
    let reply = match TrialWire::of_path(&path) {
        Some(wire) => answer(wire, &path, &json::parse(&body).ok()?, (plan, told)),
        None => TrialReply::json(&json::json!({"input_tokens": 1, "totalTokens": 1, "data": []})),
    };
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        reply.content_type,
        reply.body.len()
    );
    stream.get_mut().write_all(&[head.as_bytes(), reply.body.as_bytes()].concat()).ok()
}

fn answer(wire: TrialWire, path: &str, request: &Value, (plan, told): (&[TrialCall], &Mutex<Told>)) -> TrialReply {
    let read = wire.read(request);
    let step = read.results.len();
    let mut said = TrialSaid::Text("done".to_owned());
    let offered = |call: &&TrialCall| read.tools.iter().any(|tool| tool == call.tool);
    // Its first request: the one who sent it has had a result by the time that this text is in its own.
    if step == 0 && request.to_string().contains(CHILD) {
        let child = told.lock().unwrap().child.take();
        let said = child.map_or(said, TrialSaid::Call);
        return wire.reply((path, request), &said, "child");
    }
    if plan.first().is_some_and(|call| offered(&call)) {
        let mut told = told.lock().unwrap();
        told.asked.push((wire, request.clone()));
        // Some agents list the tools of servers only when they are asked for.
        if let Some(call) = plan.get(step).filter(|call| step > 0 || offered(call)) {
            said = TrialSaid::Call(call.clone());
            if let Some(before) = told.before.take() {
                before();
            }
        }
    }
    wire.reply((path, request), &said, &format!("step{step}"))
}
