//! What everything is compared with: the same frames, written and read by hand.

use std::collections::HashMap;
use std::io::{BufRead as _, Read as _, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context as _, ensure};
use pintle_domain::json::{Object, Value};
use pintle_domain::llm::ToolDef;
use pintle_domain::message::Message;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout};
use tokio::sync::oneshot;
use tokio_util::task::TaskTracker;

use crate::child::{Answers, farewell};

/// What a read may bring at once, on both sides of the comparison.
const READ_BYTES: usize = 64 << 10;

/// The params of a `before_llm`, typed.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Request {
    meta: Value,
    context: Value,
    channel: String,
    chat_id: String,
    model: String,
    messages: Vec<Message>,
    tools: Vec<ToolDef>,
    options: Object,
    graceful_terminal: bool,
}

impl Request {
    /// Reads the params that a hook was sent.
    pub(crate) fn of(params: &[u8]) -> anyhow::Result<Self> {
        serde_json::from_slice(params).context("params are what the floor knows")
    }
}

#[derive(Serialize)]
struct Frame<'a, T> {
    jsonrpc: &'static str,
    id: u64,
    method: &'static str,
    params: &'a T,
}

/// The line that asks about `params`.
pub(crate) fn line(id: u64, method: &'static str, params: &impl Serialize) -> anyhow::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(&Frame { jsonrpc: "2.0", id, method, params })?;
    line.push(b'\n');
    Ok(line)
}

/// A reply, typed.
#[derive(Deserialize)]
pub(crate) struct Reply {
    id: u64,
    result: Answer,
}

#[derive(Deserialize)]
struct Answer {
    action: String,
    #[serde(default)]
    request: Option<Request>,
}

impl Reply {
    fn read(line: &[u8]) -> anyhow::Result<Self> {
        let reply: Self = serde_json::from_slice(line)?;
        let carries = reply.result.request.as_ref().map(|request| request.messages.len());
        let fits = matches!((reply.result.action.as_str(), carries), ("continue", None) | ("modify", Some(1..)));
        ensure!(fits, "`{}` is not what was asked for", reply.result.action);
        Ok(reply)
    }
}

/// A child behind blocking pipes.
pub(crate) struct Blocking {
    child: std::process::Child,
    stdin: std::process::ChildStdin,
    stdout: std::io::BufReader<std::process::ChildStdout>,
    read: String,
}

impl Blocking {
    pub(crate) fn start(answers: Answers) -> anyhow::Result<Self> {
        let mut child = answers.command()?.spawn()?;
        let stdin = child.stdin.take().context("its input is piped")?;
        let stdout = std::io::BufReader::new(child.stdout.take().context("its output is piped")?);
        Ok(Self { child, stdin, stdout, read: String::new() })
    }

    /// Writes `line` and waits for a line.
    pub(crate) fn exchange(&mut self, line: &[u8]) -> anyhow::Result<()> {
        self.stdin.write_all(line)?;
        self.read.clear();
        let read = self.stdout.read_line(&mut self.read)?;
        ensure!(read > 0, "the child of the floor left");
        Ok(())
    }

    /// Writes `line` and takes what comes until a line ends, without a look at anything else of it.
    pub(crate) fn move_bytes(&mut self, line: &[u8], room: &mut [u8]) -> anyhow::Result<()> {
        self.stdin.write_all(line)?;
        loop {
            let read = self.stdout.get_mut().read(room)?;
            ensure!(read > 0, "the child of the floor left");
            if room[read - 1] == b'\n' {
                return Ok(());
            }
        }
    }

    pub(crate) fn end(self) -> anyhow::Result<()> {
        drop(self.stdin);
        farewell(self.child)
    }
}

/// A child behind pipes of tokio.
pub(crate) struct Straight {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    read: Vec<u8>,
}

impl Straight {
    /// Needs a runtime.
    pub(crate) fn start(answers: Answers) -> anyhow::Result<Self> {
        let mut child = tokio::process::Command::from(answers.command()?).spawn()?;
        let stdin = child.stdin.take().context("its input is piped")?;
        let stdout = BufReader::with_capacity(READ_BYTES, child.stdout.take().context("its output is piped")?);
        Ok(Self { child, stdin, stdout, read: Vec::new() })
    }

    /// Writes `line`, reads a line and what it says.
    pub(crate) async fn exchange(&mut self, line: &[u8]) -> anyhow::Result<Reply> {
        self.stdin.write_all(line).await?;
        self.read.clear();
        self.stdout.read_until(b'\n', &mut self.read).await?;
        Reply::read(&self.read)
    }

    pub(crate) async fn end(mut self) -> anyhow::Result<()> {
        drop(self.stdin);
        self.child.wait().await.map(drop).context("a child of a floor does not end")
    }
}

type Pending = Mutex<HashMap<u64, oneshot::Sender<Reply>>>;

/// A child that many callers share.
pub(crate) struct Shared {
    stdin: tokio::sync::Mutex<ChildStdin>,
    pending: Arc<Pending>,
    next: AtomicU64,
}

impl Shared {
    /// Starts the child; the task that reads runs on `tracker` until the child is gone.
    pub(crate) fn start(answers: Answers, tracker: &TaskTracker) -> anyhow::Result<Arc<Self>> {
        let Straight { child, stdin, mut stdout, mut read } = Straight::start(answers)?;
        let pending: Arc<Pending> = Arc::default();
        let heard = pending.clone();
        tracker.spawn(async move {
            // Held, so that the child lives as long as somebody reads from it.
            let _child = child;
            loop {
                read.clear();
                if !matches!(stdout.read_until(b'\n', &mut read).await, Ok(1..)) {
                    return;
                }
                let Ok(reply) = Reply::read(&read) else { return };
                let waiting = heard.lock().unwrap_or_else(PoisonError::into_inner).remove(&reply.id);
                if let Some(waiting) = waiting {
                    // A caller that is gone needs no reply.
                    waiting.send(reply).unwrap_or_else(drop);
                }
            }
        });
        Ok(Arc::new(Self { stdin: tokio::sync::Mutex::new(stdin), pending, next: AtomicU64::new(10_000_000) }))
    }

    /// Asks with a number of its own before the rest of the line.
    pub(crate) async fn exchange(&self, rest: &str) -> anyhow::Result<()> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (tell, told) = oneshot::channel();
        self.pending.lock().unwrap_or_else(PoisonError::into_inner).insert(id, tell);
        let line = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},{rest}");
        self.stdin.lock().await.write_all(line.as_bytes()).await?;
        told.await.map(drop).context("the child of the floor left")
    }
}
