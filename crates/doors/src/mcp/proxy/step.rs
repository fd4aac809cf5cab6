//! What the machine wants done, and what it is told of that.

use pintle_domain::json::Object;
use pintle_domain::llm::LlmRequest;
use pintle_domain::tool::ToolOutput;
use pintle_engine::Permit;

use crate::mcp::message::RequestKey;
use crate::mcp::tools::ToolDefinition;

/// Names one thing that is held.
pub type Ticket = u64;

/// Tools of a list, each with the reason for which it is withheld, if it is.
pub type PinnedTools = Vec<(String, Option<String>)>;

/// A call of a client.
#[derive(Clone, Debug, PartialEq)]
pub struct ProxiedCall {
    /// Its request.
    pub key: RequestKey,
    /// The server's own name of the tool.
    pub own: String,
    /// Our name of it.
    pub tool: String,
    /// The arguments.
    pub arguments: Object,
    /// The token with which the client wants to hear of progress, as it is written.
    pub progress: Option<String>,
}

/// A message for the server.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerBound {
    /// The message.
    pub text: String,
    /// The request that it is.
    pub key: Option<RequestKey>,
    /// Its method, if it has one.
    pub method: Option<String>,
    /// What it is about: the tool, the prompt, the resource, the task.
    pub name: Option<String>,
    /// What of its arguments a server over HTTP wants in headers, too, by their names.
    pub mirrored: Vec<(String, String)>,
}

/// A message for the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientBound {
    /// The message.
    pub text: String,
    /// The request of the client that it belongs to.
    pub about: Option<RequestKey>,
    /// Whether it answers that.
    pub is_answer: bool,
    /// What the server wants before it answers that; it says so over HTTP alone.
    pub wants: Option<SignInWanted>,
}

/// A server over HTTP wants to know who asks, or that they may do more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignInWanted {
    /// The status of its answer: 401 or 403.
    pub status: u16,
    /// Its `WWW-Authenticate`.
    pub says: String,
}

/// What is to be done next.
#[derive(Clone, Debug, PartialEq)]
pub enum ProxyStep {
    /// This goes to the server.
    ToServer(ServerBound),
    /// This goes to the client.
    ToClient(ClientBound),
    /// These definitions want to be compared with what is pinned; [`McpProxy::pinned`] takes what came of it.
    Pin(Ticket, Vec<ToolDefinition>),
    /// This call wants to be cleared; [`McpProxy::ruled`] takes what came of it.
    Clear(Ticket, ProxiedCall),
    /// The door itself refused this call, for this reason.
    Refused(ProxiedCall, String),
    /// This is the result of a call that was cleared under the ticket, or of one that nobody knows;
    /// [`McpProxy::reviewed`] takes what hooks left of it.
    Review(Ticket, Option<ProxiedCall>, ToolOutput),
    /// The server asks the client's model these; [`McpProxy::sampled`] takes what hooks left of it.
    Sample(Ticket, Vec<LlmRequest>),
    /// Nobody waits any more for what has this ticket.
    Withdrawn(Ticket),
    /// The client's person said this to the question of the door that has this id; none where they did not want to.
    Said(RequestKey, Option<bool>),
    /// This was not handed on, for this reason.
    Dropped(String),
    /// What the server answered is lost, for this reason: a person is to know.
    Lost(String),
}

/// What became of a call.
#[derive(Debug)]
#[must_use = "a ruling nobody reads is a gate nobody closes"]
pub enum ProxyRuling {
    /// It goes to the server as its permit has it; with a note that stands behind its result.
    Run(Permit, Option<String>),
    /// A hook answered it.
    Answered(ToolOutput),
    /// It goes no further, for this reason.
    Denied(String),
}
