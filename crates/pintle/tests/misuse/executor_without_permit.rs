//! Nothing runs without a permit.

use pintle::prelude::*;

async fn run(tool: &impl Executor, call: Call, cancel: &Cancel) {
    drop(tool.execute(call, cancel).await); //~ mismatched types
}

fn main() {}
