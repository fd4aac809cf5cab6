//! Whoever drops what a call came to drops a gate.
#![deny(unused_must_use)]

use pintle::prelude::*;

async fn run<X: Executor>(turn: &Turn, call: Call, tool: &X) {
    turn.call(call, tool).await; //~ unused `Result` that must be used
}

fn main() {}
