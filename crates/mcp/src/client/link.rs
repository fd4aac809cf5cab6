//! The way to one life of a server: a child with its pipes, or a connection.

use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

use pintle_domain::execution::masked;
use pintle_process::child::{Child, Launch};
use pintle_process::hook::StillSame;
use rmcp::RoleClient;
use rmcp::service::{ClientInitializeError, RunningService, serve_client};
use rmcp::transport::StreamableHttpClientTransport;
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::http::{self, exact::Exact};
use super::shared::{StderrTail, unsent};
use super::visitor::Visitor;
use crate::spec::{ServerSpec, Transport};
use crate::wire::Wire;

/// How long a child whose input was closed may take to leave by itself.
const LEAVE: Duration = Duration::from_secs(2);
/// How long the last words on standard error are waited for once the child is gone.
const LAST_WORDS: Duration = Duration::from_millis(100);
/// Longest piece of standard error that is read and logged at once: what a pipe holds by default.
const PIECE_BYTES: usize = 64 << 10;

/// The way to one life of a server, open at most once.
pub(super) struct Link {
    pub(super) door: LinkTransport,
    /// None behind a URL.
    pub(super) process: Option<Process>,
}

/// What messages go through.
pub(super) enum LinkTransport {
    Pipes(Box<Wire<RoleClient, pipe::Receiver>>),
    Http(Box<StreamableHttpClientTransport<Exact>>),
}

/// Why a server is of no use.
pub(super) enum Trouble {
    /// By what it said.
    Refused(String),
    /// Because messages do not come through; if its child is ending, that is the better reason.
    Cut(String),
}

/// A server's child, and the tasks that serve it.
pub(super) struct Process {
    child: Child,
    writer: JoinHandle<()>,
    stderr: JoinHandle<()>,
    stop: CancellationToken,
    /// Looks once more at what it was started from.
    still_same: Option<StillSame>,
}

impl Link {
    /// Starts the child, or prepares the connection.
    pub(super) async fn open(spec: &ServerSpec, tail: &Arc<StderrTail>, tasks: &TaskTracker) -> Result<Self, String> {
        let check = spec.before_start.clone();
        // The check reads files.
        let checked = tasks.spawn_blocking(move || check()).await;
        let still_same = checked.map_err(|_| "the check before its start panicked".to_owned())??;
        match &spec.transport {
            Transport::Http { url } => {
                Ok(Self { door: LinkTransport::Http(Box::new(http::open(url)?)), process: None })
            }
            Transport::Stdio { command, dir, vars } => {
                let launch =
                    Launch { argv: command.iter().map(OsString::from).collect(), dir: dir.clone(), vars: vars.clone() };
                let (child, pipes) = Child::start(&launch).await?;
                tracing::debug!(mcp = %spec.name, pid = child.id(), "a server runs");
                let stop = CancellationToken::new();
                tail.clear();
                let (wire, writer) = Wire::new(&spec.name, pipes.stdout, pipes.stdin);
                let writer = tasks.spawn(writer.write_on(stop.clone()));
                let stderr = tasks.spawn(listen(pipes.stderr, (spec.name.clone(), tail.clone()), stop.clone()));
                let process = Process { child, writer, stderr, stop, still_same: Some(still_same) };
                Ok(Self { door: LinkTransport::Pipes(Box::new(wire)), process: Some(process) })
            }
        }
    }
}

impl LinkTransport {
    /// Shakes hands.
    pub(super) async fn greet(self, visitor: Visitor) -> Result<RunningService<RoleClient, Visitor>, Trouble> {
        let greeted = match self {
            Self::Pipes(wire) => serve_client(visitor, *wire).await,
            Self::Http(connection) => serve_client(visitor, *connection).await,
        };
        greeted.map_err(|error| {
            if let ClientInitializeError::JsonRpcError(error) = &error {
                Trouble::Refused(format!("it refused the handshake: {}", error.message))
            } else if let ClientInitializeError::TransportError { error, .. } = &error {
                Trouble::Cut(format!("the handshake failed: {}", unsent(error)))
            } else if matches!(error, ClientInitializeError::ConnectionClosed(_)) {
                Trouble::Cut("it closed its output during the handshake".into())
            } else {
                Trouble::Refused(format!("the handshake failed: {error}"))
            }
        })
    }
}

impl Process {
    /// Whether it is what was looked at before its start: it has read its files now.
    pub(super) async fn is_same(&mut self) -> Result<(), String> {
        match self.still_same.take() {
            Some(still_same) => tokio::task::spawn_blocking(still_same).await.map_err(|error| error.to_string())?,
            None => Ok(()),
        }
    }

    /// Waits until the child has ended by itself.
    pub(super) async fn ended(&mut self) {
        self.child.ended().await;
    }

    /// Waits until the child, whose input is closed, has left; says whether it did.
    pub(super) async fn leaves(&mut self) -> bool {
        timeout(LEAVE, self.child.ended()).await.is_ok()
    }

    /// Ends what is left of it and everything that served it. Says how the child ended.
    pub(super) async fn reap(mut self) -> String {
        let end = self.child.end_all().await;
        let words = Instant::now() + LAST_WORDS;
        if tokio::time::timeout_at(words, finished(&mut self.stderr)).await.is_err() {
            tracing::debug!("somebody else holds a server's standard error open");
        }
        self.stop.cancel();
        finished(&mut self.stderr).await;
        finished(&mut self.writer).await;
        end
    }
}

/// Waits for a task. One that panicked has finished, too: the panic was reported where it happened.
async fn finished(task: &mut JoinHandle<()>) {
    if !task.is_finished() && task.await.is_err() {
        tracing::error!("a task that served an MCP server panicked");
    }
}

/// Reads to the end, so that the server never blocks on what it has to say.
async fn listen(mut stderr: pipe::Receiver, (name, tail): (String, Arc<StderrTail>), stop: CancellationToken) {
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let read = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            read = stderr.read(&mut piece) => read,
        };
        match read {
            Ok(0) | Err(_) => return,
            Ok(len) => {
                let text = String::from_utf8_lossy(&piece[..len]);
                tail.add(&text);
                // Debug form, so that control characters reach no terminal.
                tracing::info!(target: "mcp.stderr", mcp = %name, text = ?masked(text.trim_end()));
            }
        }
    }
}
