//! Whoever drops a result drops what hooks left of it.
#![deny(unused_must_use)]

use pintle::prelude::*;

async fn run<X: Executor>(turn: &Turn, call: Call, tool: &X) -> Result<(), Stop<X::Error>> {
    turn.call(call, tool).await?; //~ unused `pintle::Done` that must be used
    Ok(())
}

fn main() {}
