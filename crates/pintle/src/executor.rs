//! The trait of the host's tools.

use pintle_domain::tool::ToolOutput;
use pintle_engine::Permit;
use tokio_util::sync::CancellationToken;

/// Runs tools of the host.
///
/// It takes nothing but a [`Permit`], so no call site can pass the hooks by.
pub trait Executor: Sync {
    /// An error of the host. The model reads only that the tool failed; to tell it more, return `Output::error`.
    type Error: Send;

    /// Whether it runs `tool`. A permit for another tool never reaches [`Executor::execute`], not even if a hook made
    /// the call one of that tool.
    fn runs(&self, tool: &str) -> bool;

    /// Runs the call that `permit` holds: hooks may have changed it. Ends early once `cancel` is set.
    ///
    /// # Errors
    /// What went wrong on the host's side; the model reads that the tool failed, not why.
    fn execute(
        &self,
        permit: Permit,
        cancel: &CancellationToken,
    ) -> impl Future<Output = Result<ToolOutput, Self::Error>> + Send;
}
