//! A tool takes nothing but a permit.

use pintle_engine::Tool;
use pintle_engine::pintle_domain::tool::{ToolCall, ToolOutput};

async fn run(tool: &dyn Tool, call: ToolCall, cancel: &pintle::Cancel) -> ToolOutput {
    tool.run(call, cancel).await //~ mismatched types
}

fn main() {}
