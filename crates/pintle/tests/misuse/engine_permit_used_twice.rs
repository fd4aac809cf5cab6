//! A permit is used once.

use pintle_engine::pintle_domain::tool::ToolOutput;
use pintle_engine::{Permit, Tool};

async fn twice(tool: &dyn Tool, permit: Permit, cancel: &pintle::Cancel) -> ToolOutput {
    tool.run(permit, cancel).await;
    tool.run(permit, cancel).await //~ use of moved value: `permit`
}

fn main() {}
