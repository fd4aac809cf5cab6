//! Nothing runs without a permit.

use pintle::prelude::*;

async fn run(tool: &impl Executor, call: Call, cancel: &Cancel) {
    drop(tool.execute(call, cancel).await);
}

fn main() {}
