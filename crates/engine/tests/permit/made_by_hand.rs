//! A permit cannot be made outside the engine.

use domain::tool::{Digest, ToolCall};
use pintle_engine::Permit;

fn forge(call: ToolCall, digest: Digest) -> Permit {
    Permit { call, digest }
}

fn main() {}
