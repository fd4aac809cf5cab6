//! A model on loopback that wants one harmless call, to prove that a host's calls reach the guard.
//!
//! The host is run with its user's own configuration, and only its model is ours. The call is `: pintle-canary-NONCE`,
//! which does nothing; the daemon refuses it, and the proof is that the model's next request carries that refusal. Where
//! a refusal ends the turn, the proof is that the daemon heard the call and that the model never hears what came of it.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use pintle_domain::json::{self, Value, json};
use pintle_guard::trial::{HostTrial, TrialReply, TrialRequest, TrialSaid, TrialWire};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// What the shell text of a canary begins with.
const CALL: &str = ": pintle-canary-";

/// Longest request that is read, in bytes: a coding agent sends its tools and instructions, some 100 kB.
const MAX_REQUEST_BYTES: usize = 16 << 20;

/// Longest head of a request, in bytes.
const MAX_HEAD_BYTES: u64 = 64 << 10;

/// The shell text of the canary `nonce`.
pub(crate) fn call(nonce: &str) -> String {
    format!("{CALL}{nonce}")
}

/// The nonce of a canary, if `text` is one.
pub(crate) fn nonce(text: &str) -> Option<&str> {
    text.strip_prefix(CALL).filter(|nonce| !nonce.is_empty() && nonce.chars().all(|c| c.is_ascii_alphanumeric()))
}

/// What only the guard says of the canary `nonce`.
pub(crate) fn refusal(nonce: &str) -> String {
    format!("the guard heard canary {nonce} and refused it")
}

/// What came of a canary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CanaryResult {
    /// Whether the host asked the model at all.
    pub(crate) asked: bool,
    /// Whether the model made its call: the host offered it a shell.
    pub(crate) called: bool,
    /// What the host said became of the call, once it did.
    pub(crate) result: Option<String>,
}

impl CanaryResult {
    /// Whether the call `nonce` was refused by the guard, which `heard` it or not.
    pub(crate) fn is_proof(&self, nonce: &str, trial: &HostTrial, heard: bool) -> bool {
        match (&self.result, trial.hears_refusals) {
            (Some(text), true) => text.contains(&refusal(nonce)),
            (None, false) => self.called && heard,
            (Some(_), false) | (None, true) => false,
        }
    }
}

/// What the model of a trial does.
struct CanaryPlan {
    nonce: String,
    trial: HostTrial,
    seen: Mutex<CanaryResult>,
}

/// A model that wants the canary.
pub(crate) struct CanaryModel {
    /// Where it is.
    pub(crate) url: String,
    plan: Arc<CanaryPlan>,
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl CanaryModel {
    /// Listens at a port that is free, and wants the canary `nonce` of a host that is tried as `trial` says.
    ///
    /// # Errors
    /// Nobody can listen on loopback.
    pub(crate) async fn open(nonce: &str, trial: HostTrial) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let plan = Arc::new(CanaryPlan { nonce: nonce.to_owned(), trial, seen: Mutex::default() });
        let model = Self { url, plan, stop: CancellationToken::new(), tasks: TaskTracker::new() };
        let (plan, stop, tasks) = (model.plan.clone(), model.stop.clone(), model.tasks.clone());
        model.tasks.spawn(async move {
            loop {
                let accepted = tokio::select! {
                    () = stop.cancelled() => return,
                    accepted = listener.accept() => accepted,
                };
                let Ok((stream, _)) = accepted else { continue };
                let (plan, stop) = (plan.clone(), stop.clone());
                tasks.spawn(async move {
                    tokio::select! {
                        () = stop.cancelled() => {}
                        // A host that goes away is none of the proof.
                        _ = serve(stream, &plan) => {}
                    }
                });
            }
        });
        Ok(model)
    }

    /// What came of it so far.
    pub(crate) fn result(&self) -> CanaryResult {
        self.plan.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Ends it.
    pub(crate) async fn close(&self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// Answers one request of the host.
async fn serve(stream: TcpStream, plan: &CanaryPlan) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    let (line, length) = head(&mut stream).await?;
    let mut body = vec![0; length.min(MAX_REQUEST_BYTES)];
    stream.read_exact(&mut body).await?;
    let path = line.split(' ').nth(1).unwrap_or_default();
    let path = path.split('?').next().unwrap_or_default();
    let request = String::from_utf8(body).ok().and_then(|text| json::parse(&text).ok()).unwrap_or(Value::Null);
    let reply = match TrialWire::of_path(path) {
        Some(wire) => plan.reply(wire, path, &request),
        None => TrialReply::json(&json!({"input_tokens": 1, "totalTokens": 1})),
    };
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        reply.content_type,
        reply.body.len()
    );
    stream.write_all(&[head.as_bytes(), reply.body.as_bytes()].concat()).await?;
    stream.shutdown().await
}

/// The first line of a request, and how long its body is.
async fn head(stream: &mut BufReader<TcpStream>) -> io::Result<(String, usize)> {
    let mut limited = stream.take(MAX_HEAD_BYTES);
    let (mut first, mut length) = (String::new(), 0);
    limited.read_line(&mut first).await?;
    loop {
        let mut line = String::new();
        if limited.read_line(&mut line).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let line = line.trim_end();
        if line.is_empty() {
            return Ok((first, length));
        }
        if let Some((name, value)) = line.split_once(':')
            && name.eq_ignore_ascii_case("content-length")
        {
            length = value.trim().parse().map_err(io::Error::other)?;
        }
    }
}

impl CanaryPlan {
    /// The canary where a shell is offered and nothing came of it yet; else the end.
    fn reply(&self, wire: TrialWire, path: &str, request: &Value) -> TrialReply {
        let TrialRequest { tools, mut results } = wire.read(request);
        let call = (self.trial.shell)(&call(&self.nonce));
        let calls = results.is_empty() && tools.iter().any(|tool| tool == call.tool);
        {
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.asked = true;
            seen.called |= calls;
            seen.result = results.pop().or_else(|| seen.result.take());
        }
        let said = if calls { TrialSaid::Call(call) } else { TrialSaid::Text("done".to_owned()) };
        wire.reply((path, request), &said, &self.nonce)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(host: &str) -> CanaryPlan {
        CanaryPlan { nonce: "a1".into(), trial: pintle_guard::host(host).unwrap().trial, seen: Mutex::default() }
    }

    #[test]
    fn only_a_canary_is_refused_as_one() {
        assert_eq!(nonce(&call("a1b2")), Some("a1b2"));
        for other in ["ls", ": pintle-canary-", ": pintle-canary-a1; rm -rf x", "echo : pintle-canary-a1"] {
            assert_eq!(nonce(other), None, "{other}");
        }
    }

    #[test]
    fn the_model_wants_the_canary_once_and_hears_what_came_of_it() {
        let plan = plan("claude");
        let tools = json!([{"name": "Bash"}]);
        let ask = |request: &Value| plan.reply(TrialWire::Messages, "/v1/messages", request);
        let reply = ask(&json!({"stream": true, "tools": tools, "messages": []}));
        assert_eq!(reply.content_type, "text/event-stream");
        assert!(reply.body.contains("tool_use") && reply.body.contains("pintle-canary-a1"), "{reply:?}");
        let result = json!([{"type": "tool_result", "content": refusal("a1")}]);
        let reply = ask(&json!({"tools": tools, "messages": [{"role": "user", "content": result}]}));
        assert!(reply.body.contains("end_turn"), "{reply:?}");
        let seen = plan.seen.into_inner().unwrap();
        assert!(seen.asked && seen.is_proof("a1", &plan.trial, true), "{seen:?}");
        assert!(!seen.is_proof("a2", &plan.trial, true), "{seen:?}");
    }

    #[test]
    fn a_request_without_a_shell_gets_no_canary() {
        let plan = plan("claude");
        let reply = plan.reply(TrialWire::Messages, "/v1/messages", &json!({"messages": []}));
        assert!(reply.body.contains("done") && !reply.body.contains("canary-a1"), "{reply:?}");
        assert!(!plan.seen.into_inner().unwrap().called);
    }

    #[test]
    fn where_a_refusal_ends_the_turn_the_daemon_has_to_have_heard_the_call() {
        let trial = pintle_guard::host("cline").unwrap().trial;
        let check = |called: bool, result: Option<&str>, heard: bool| {
            let result = result.map(str::to_owned);
            CanaryResult { asked: true, called, result }.is_proof("a1", &trial, heard)
        };
        assert!(check(true, None, true));
        assert!(!check(true, None, false) && !check(false, None, true) && !check(true, Some("ok"), true));
    }
}
