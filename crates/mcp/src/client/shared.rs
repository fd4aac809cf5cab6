//! What a server's handle, its tools and its supervisor share; the way of one call.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pintle_domain::json::{Object, Value};
use pintle_domain::tool::ToolOutput;
use pintle_engine::Tool;
use pintle_process::supervision::{Patience, Phase, Supervised};
use rmcp::RoleClient;
use rmcp::model::{CallToolRequestParams, ClientRequest, Request, RequestMetaObject, ServerResult};
use rmcp::service::{Peer, PeerRequestOptions, RequestHandle, ServiceError};
use rmcp::transport::DynamicTransportError;
use rmcp::transport::streamable_http_client::StreamableHttpError;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;

use super::output;
use crate::spec::{ServerSpec, Transport};
use crate::wire::exact;

/// How long a call may take, waiting for a restart included. Longer work belongs into a job that is asked about.
pub(super) const CALL_TIMEOUT: Duration = Duration::from_secs(60);
/// How long the server is told that a call is withdrawn; one that reads nothing is not told.
const WITHDRAW_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a call that broke off waits to learn why: the supervisor reads the last output first.
const CAUSE_TIMEOUT: Duration = Duration::from_secs(3);

/// Why nothing is answered any more.
pub(super) const CLOSED: &str = "it is closed";

/// The way to one life of a server.
#[derive(Clone, Debug)]
pub(super) struct ServerLine {
    pub(super) peer: Peer<RoleClient>,
    /// Counts the lives.
    pub(super) life: u64,
    /// Cancelled when a message could not be delivered.
    pub(super) trouble: CancellationToken,
}

/// What a server's handle, its tools and its supervisor share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) spec: ServerSpec,
    /// Whether there is a server to talk to.
    pub(super) server: Arc<Supervised<ServerLine, String>>,
    tools: Mutex<Tools>,
    /// The end of what its child wrote on standard error.
    pub(super) stderr: Arc<StderrTail>,
}

/// The most that is kept of standard error, in bytes: a screen of it.
const TAIL_BYTES: usize = 4 << 10;

/// The end of what children of a server wrote on standard error.
#[derive(Debug, Default)]
pub(super) struct StderrTail(Mutex<String>);

impl StderrTail {
    /// A child begins: what the one before it wrote is of no interest.
    pub(super) fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    pub(super) fn add(&self, text: &str) {
        let mut tail = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tail.push_str(text);
        let cut = tail.ceil_char_boundary(tail.len().saturating_sub(TAIL_BYTES));
        tail.drain(..cut);
    }

    pub(super) fn text(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[derive(Default)]
struct Tools(Vec<Arc<dyn Tool>>);

impl std::fmt::Debug for Tools {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|tool| &tool.definition().function.name)).finish()
    }
}

/// Why a call has no result.
enum Unanswered {
    Cancelled,
    TimedOut,
    /// The server answered with an error.
    Refused(String),
    /// There is no server, or it went while it had the call.
    Lost(String),
}

impl Shared {
    pub(super) fn new(spec: ServerSpec) -> Self {
        Self {
            spec,
            server: Arc::new(Supervised::new(CLOSED.to_owned())),
            tools: Mutex::default(),
            stderr: Arc::default(),
        }
    }

    pub(super) fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.tools.lock().unwrap_or_else(PoisonError::into_inner).0.clone()
    }

    pub(super) fn set_tools(&self, tools: Vec<Arc<dyn Tool>>) {
        self.tools.lock().unwrap_or_else(PoisonError::into_inner).0 = tools;
    }

    /// Calls `tool`, by the server's own name of it.
    pub(super) async fn call(&self, tool: &str, arguments: Object, cancel: &CancellationToken) -> ToolOutput {
        let deadline = Instant::now() + CALL_TIMEOUT;
        let name = &self.spec.name;
        match self.exchange(tool, arguments, deadline, cancel).await {
            Ok(result) => output::read(result),
            Err(Unanswered::Cancelled) => ToolOutput::error("cancelled"),
            Err(Unanswered::TimedOut) => ToolOutput::error(format!(
                "MCP server `{name}` did not answer `{tool}` within {} s; the call was withdrawn",
                CALL_TIMEOUT.as_secs()
            )),
            Err(Unanswered::Refused(why)) => ToolOutput::error(format!("MCP server `{name}` refused `{tool}`: {why}")),
            Err(Unanswered::Lost(cause)) => {
                ToolOutput::error(format!("MCP server `{name}` cannot answer `{tool}`: {cause}"))
            }
        }
    }

    async fn exchange(
        &self,
        tool: &str,
        arguments: Object,
        deadline: Instant,
        cancel: &CancellationToken,
    ) -> Result<Value, Unanswered> {
        loop {
            let begun = tokio::select! {
                biased;
                () = cancel.cancelled() => return Err(Unanswered::Cancelled),
                begun = timeout_at(deadline, self.begin(tool, &arguments, deadline)) => {
                    begun.map_err(|_| Unanswered::TimedOut)??
                }
            };
            // It was never begun, so the next server may take it.
            let Some((line, mut handle)) = begun else { continue };
            let answer = tokio::select! {
                biased;
                answer = &mut handle.rx => answer,
                () = cancel.cancelled() => {
                    withdraw(handle, "cancelled").await;
                    return Err(Unanswered::Cancelled);
                }
                () = tokio::time::sleep_until(deadline) => {
                    withdraw(handle, "timed out").await;
                    return Err(Unanswered::TimedOut);
                }
            };
            match answer {
                Ok(Ok(result)) => return value_of(result).map_err(Unanswered::Lost),
                Ok(Err(ServiceError::McpError(error))) => return Err(Unanswered::Refused(error.message.into_owned())),
                Ok(Err(error @ ServiceError::TransportSend(_))) => {
                    line.trouble.cancel();
                    self.leaves(line.life, deadline).await;
                    // Half a line is not a call. What an HTTP server has read of one is not known.
                    if matches!(self.spec.transport, Transport::Http { .. }) {
                        return Err(Unanswered::Lost(undelivered(&error)));
                    }
                }
                Ok(Err(_)) | Err(_) => return Err(Unanswered::Lost(self.cause(line.life).await)),
            }
        }
    }

    /// Hands a call to the server that is there; nothing if that one is gone.
    async fn begin(
        &self,
        tool: &str,
        arguments: &Object,
        deadline: Instant,
    ) -> Result<Option<(ServerLine, RequestHandle<RoleClient>)>, Unanswered> {
        let line = self.line(deadline).await?;
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(exact::theirs(arguments.clone()));
        let options = PeerRequestOptions::no_options().with_meta(RequestMetaObject(exact::meta(arguments)));
        let request = ClientRequest::CallToolRequest(Request::new(params));
        match line.peer.send_cancellable_request(request, options).await {
            Ok(handle) => Ok(Some((line, handle))),
            Err(error) => {
                tracing::debug!(mcp = %self.spec.name, %error, "a call was not begun");
                self.leaves(line.life, deadline).await;
                Ok(None)
            }
        }
    }

    /// The way to the server. Waits for one that is being started, or due before `deadline`; not for another one if
    /// that fails as well.
    async fn line(&self, deadline: Instant) -> Result<ServerLine, Unanswered> {
        let reached = self.server.reach(deadline, Patience::OneStart).await;
        reached.map_err(|cause| cause.map_or(Unanswered::TimedOut, Unanswered::Lost))
    }

    /// Waits until the server of `life` is known to be gone, at most until `deadline`.
    async fn leaves(&self, life: u64, deadline: Instant) {
        if !self.server.gone(|line| line.life == life, deadline).await {
            tracing::debug!(mcp = %self.spec.name, "a call's time is up before its server is gone");
        }
    }

    /// Why the server of `life` went while it had a call.
    async fn cause(&self, life: u64) -> String {
        let mut phases = self.server.phases();
        let told = phases.wait_for(|phase| match phase {
            Phase::Up(line) => line.life != life,
            Phase::Down(..) | Phase::Closed | Phase::Starting(Some(_)) => true,
            Phase::Starting(None) => false,
        });
        let told = timeout(CAUSE_TIMEOUT, told).await.ok().and_then(Result::ok);
        let cause = told.and_then(|phase| match &*phase {
            Phase::Starting(cause) => cause.clone(),
            Phase::Down(cause, _) => Some(cause.clone()),
            Phase::Closed => Some(CLOSED.into()),
            Phase::Up(_) => None,
        });
        let cause = cause.unwrap_or_else(|| "it went away".into());
        format!("{cause}; whether the call had an effect is not known")
    }
}

/// Tells the server that nobody waits for the answer any more.
async fn withdraw(handle: RequestHandle<RoleClient>, reason: &str) {
    let told = timeout(WITHDRAW_TIMEOUT, handle.cancel(Some(reason.to_owned()))).await;
    if !matches!(told, Ok(Ok(()))) {
        tracing::debug!(?told, "a server was not told that a call is withdrawn");
    }
}

/// A result as JSON, whether rmcp has read it or not.
pub(super) fn value_of(result: ServerResult) -> Result<Value, String> {
    exact::result(result).map_err(|error| format!("its result could not be read: {error}"))
}

/// Why a message did not get through, without the names of rmcp's types.
pub(super) fn undelivered(error: &ServiceError) -> String {
    if let ServiceError::TransportSend(error) = error { unsent(error) } else { error.to_string() }
}

/// The same, of a transport.
pub(super) fn unsent(error: &DynamicTransportError) -> String {
    let error: &(dyn std::error::Error + 'static) = error.error.as_ref();
    match error.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
        // Its own text is the URL, which may hold a secret; the reason is behind it.
        Some(StreamableHttpError::Client(error)) => match std::error::Error::source(error) {
            Some(cause) => describe(cause),
            None => error.status().map_or_else(|| "the request failed".into(), |status| format!("HTTP {status}")),
        },
        Some(_) | None => describe(error),
    }
}

/// An error with its causes.
pub(super) fn describe(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        next = cause.source();
    }
    text
}
