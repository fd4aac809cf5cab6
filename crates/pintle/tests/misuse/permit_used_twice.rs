//! A permit is used once.

use pintle::prelude::*;

async fn twice(tool: &impl Executor, permit: Permit, cancel: &Cancel) {
    drop(tool.execute(permit, cancel).await);
    drop(tool.execute(permit, cancel).await); //~ use of moved value: `permit`
}

fn main() {}
