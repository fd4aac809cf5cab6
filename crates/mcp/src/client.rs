//! A server whose tools our agents use: started, supervised, restarted.
//!
//! An [`McpServer`] is a handle. Behind it a supervisor (`supervisor.rs`) opens a link (`link.rs`), shakes hands, lists
//! the tools (`listing.rs`), and begins anew when the server is gone. `shared.rs` is what calls meet.

mod http;
mod link;
mod listing;
mod output;
mod shared;
mod supervisor;
mod tool;
mod visitor;

use std::sync::Arc;

use pintle_engine::Tool;
use pintle_process::supervision::supervise;
use tokio_util::task::TaskTracker;

use self::shared::Shared;
use self::supervisor::ServerSupervisor;
use crate::spec::ServerSpec;

/// A server of tools. Dropping it closes it in the background; [`McpServer::close`] waits.
#[derive(Debug)]
pub struct McpServer {
    shared: Arc<Shared>,
}

/// How a server is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerStatus {
    /// Whether it answers calls.
    pub up: bool,
    /// Why it is down, or was when it was seen last.
    pub cause: Option<String>,
    /// How often it was started again.
    pub restarts: u64,
}

impl McpServer {
    /// Starts the server and returns at once; its tasks run on `tasks`. Needs a runtime with time and IO.
    pub fn start(spec: ServerSpec, tasks: TaskTracker) -> Arc<Self> {
        let shared = Arc::new(Shared::new(spec));
        let supervisor = ServerSupervisor::new(shared.clone(), tasks.clone());
        tasks.spawn(supervise(shared.server.clone(), supervisor));
        Arc::new(Self { shared })
    }

    /// What it was started with.
    pub fn spec(&self) -> &ServerSpec {
        &self.shared.spec
    }

    /// Waits for the outcome of the first start.
    ///
    /// # Errors
    /// Why the server could not be used. It goes on trying.
    pub async fn ready(&self) -> Result<(), String> {
        self.shared.server.first().await
    }

    /// The tools that it had when it was asked last; none before [`McpServer::ready`]. They can be called while it is
    /// down: a call waits for a restart that is due, or says why there is none.
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        self.shared.tools()
    }

    /// The end of what its child wrote on standard error, for people; empty behind a URL.
    pub fn stderr_tail(&self) -> String {
        self.shared.stderr.text()
    }

    /// How it is doing.
    pub fn status(&self) -> ServerStatus {
        let server = &self.shared.server;
        ServerStatus { up: server.up().is_some(), cause: server.cause(), restarts: server.restarts() }
    }

    /// Ends the server: its input is closed, then its whole group gets TERM, then KILL, each after a while. Returns when
    /// nothing of it runs any more.
    pub async fn close(&self) {
        self.shared.server.closing().cancel();
        self.shared.server.done().await;
    }
}

impl Drop for McpServer {
    fn drop(&mut self) {
        self.shared.server.closing().cancel();
    }
}
