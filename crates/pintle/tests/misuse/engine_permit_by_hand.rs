//! A permit cannot be made outside the engine.

use pintle_engine::Permit;
use pintle_engine::pintle_domain::tool::{Digest, ToolCall};

fn forge(call: ToolCall, digest: Digest) -> Permit {
    Permit { call, digest } //~ cannot construct `Permit` with struct literal syntax due to private fields
}

fn main() {}
