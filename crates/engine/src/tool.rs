//! What a tool is to the engine: something that runs only with a permit.

use futures_util::future::BoxFuture;
use pintle_domain::json::Object;
use pintle_domain::llm::ToolDef;
use pintle_domain::shell::ShellText;
use pintle_domain::tool::{Annotations, CallPlace, ToolOutput};
use tokio_util::sync::CancellationToken;

use crate::permit::Permit;

/// Something a model can ask for. It cannot be run without a [`Permit`], and only the dispatcher makes those.
pub trait Tool: Send + Sync {
    /// Name, description and JSON Schema of the arguments, as the model is offered them.
    fn definition(&self) -> &ToolDef;

    /// Whether running it changes nothing; such calls of one batch may overlap.
    fn read_only(&self) -> bool;

    /// The annotations that the tool has about itself, for hooks.
    fn annotations(&self) -> Annotations {
        Annotations { read_only: self.read_only().then_some(true), destructive: None }
    }

    /// The text that a shell would run for a call with these arguments, if the tool hands one to a shell: hooks may judge
    /// what it would do.
    fn shell_text<'a>(&'a self, _arguments: &'a Object) -> Option<ShellText<'a>> {
        None
    }

    /// Where its calls run, as far as the configuration says: an approval of a call holds there only.
    fn place(&self) -> CallPlace {
        CallPlace::default()
    }

    /// Runs the permitted call. Failures are results for the model, not errors of the host.
    fn run<'a>(&'a self, permit: Permit, cancel: &'a CancellationToken) -> BoxFuture<'a, ToolOutput>;
}
