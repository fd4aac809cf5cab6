//! One tool of a server, as the engine runs it.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use pintle_domain::llm::ToolDef;
use pintle_domain::tool::{Annotations, ToolOutput};
use pintle_engine::{Permit, Tool};
use tokio_util::sync::CancellationToken;

use super::shared::Shared;

/// A tool of a server.
pub(super) struct McpTool {
    pub(super) definition: ToolDef,
    pub(super) annotations: Annotations,
    /// The server's own name of it.
    pub(super) name: String,
    pub(super) server: Arc<Shared>,
}

impl Tool for McpTool {
    fn definition(&self) -> &ToolDef {
        &self.definition
    }

    /// Never: what a server says of itself is no reason to let calls overlap.
    fn read_only(&self) -> bool {
        false
    }

    fn annotations(&self) -> Annotations {
        self.annotations
    }

    fn run<'a>(&'a self, permit: Permit, cancel: &'a CancellationToken) -> BoxFuture<'a, ToolOutput> {
        Box::pin(async move { self.server.call(&self.name, permit.call().arguments.clone(), cancel).await })
    }
}
