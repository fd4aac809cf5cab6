//! There is no door to show hooks the result of a call that did not run.

use pintle::prelude::*;

async fn show(turn: &Turn, call: Call) {
    turn.after_tool(call, Output::ok("it ran, honestly")).await; //~ no method named `after_tool` found
}

fn main() {}
