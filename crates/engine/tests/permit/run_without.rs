//! A tool takes nothing but a permit.

use domain::tool::{ToolCall, ToolOutput};
use pintle_engine::Tool;
use tokio_util::sync::CancellationToken;

async fn run(tool: &dyn Tool, call: ToolCall, cancel: &CancellationToken) -> ToolOutput {
    tool.run(call, cancel).await
}

fn main() {}
