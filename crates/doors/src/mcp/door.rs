//! What a tool door needs of its host.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use pintle_domain::tool::{ServerEntry, ToolCall};
use pintle_engine::Dispatcher;
use tokio::sync::{mpsc, oneshot};

use super::pins::PinFinding;
use super::proxy::ProxyRules;
use super::tools::ToolDefinition;

/// A person is asked about a call.
#[derive(Debug)]
pub struct PersonAsked {
    /// The number of the approval.
    pub approval: String,
    /// What they are asked; none where it is too long for a dialogue.
    pub question: Option<String>,
    /// Where the answer goes, if the client asks its person.
    pub answer: oneshot::Sender<bool>,
}

/// What is put to the hooks: one call, or one request to the client's model.
#[derive(Clone, Debug)]
pub struct ToolVisit {
    /// The name of the server here.
    pub server: String,
    /// The session: one connection of a client.
    pub session: String,
    /// The turn.
    pub turn: String,
    /// Told when a person is asked.
    pub asked: mpsc::Sender<PersonAsked>,
}

/// Whose hooks are asked, and who keeps what is pinned.
#[async_trait]
pub trait ToolDoorHost: Send + Sync {
    /// The hooks for a visit, with where persons are asked.
    ///
    /// # Errors
    /// There are none, in words for the client.
    async fn hooks(&self, visit: &ToolVisit) -> Result<Dispatcher, String>;

    /// Why a call must not run, whatever hooks say.
    async fn protects(&self, call: &ToolCall) -> Option<String>;

    /// Compares what a server says of its tools with what is pinned, and keeps what is new.
    ///
    /// # Errors
    /// What is pinned cannot be read or written, in words for the client.
    async fn pin(&self, server: &str, definitions: Vec<ToolDefinition>) -> Result<Vec<PinFinding>, String>;
}

/// A door before one server.
#[derive(Clone)]
pub struct ToolDoor {
    /// Whose hooks are asked.
    pub host: Arc<dyn ToolDoorHost>,
    /// What is set of it.
    pub rules: ProxyRules,
    /// Where its calls run.
    pub entry: ServerEntry,
    /// How long a call waits for a person.
    pub hold: Duration,
    /// Whether the client asks its person, too, where it can.
    pub asks_client: bool,
}

impl fmt::Debug for ToolDoor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToolDoor").field("rules", &self.rules).field("entry", &self.entry).finish_non_exhaustive()
    }
}
