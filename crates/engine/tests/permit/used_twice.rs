//! A permit is used once.

use domain::tool::ToolOutput;
use pintle_engine::{Permit, Tool};
use tokio_util::sync::CancellationToken;

async fn twice(tool: &dyn Tool, permit: Permit, cancel: &CancellationToken) -> ToolOutput {
    tool.run(permit, cancel).await;
    tool.run(permit, cancel).await
}

fn main() {}
