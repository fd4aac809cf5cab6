//! Where a cache may end: a request that belongs to a turn is marked, since the next one begins like it.
//!
//! Caches hold beginnings of requests, in the order tools, system prompt, messages. Marks go, as far as the model takes
//! so many, to the end of what the next call begins with, to the end of the system prompt, to the last tool, and to the end
//! of what stood before the last answer: what the call before left there is found also behind a round of many calls. What
//! the operator marked counts, and there the system prompt and the tools are left alone.

use pintle_domain::json::{Value, json};

use crate::anthropic::conversation::Conversation;

/// The member that marks where a cache ends.
pub(super) const CACHE: &str = "cache_control";

/// Marks a request with at most `left` breakpoints.
pub(super) fn mark(
    mut left: usize,
    messages: &mut Conversation<'_>,
    system: &mut [Value],
    last_tool: Option<&mut Option<Value>>,
) {
    let own = system.iter().filter(|block| block.get(CACHE).is_some()).count();
    left = left.saturating_sub(own);
    let mut spend = || {
        let some = left > 0;
        left = left.saturating_sub(1);
        some
    };
    let boundary = messages.boundary;
    if let Some(block) = boundary.and_then(|place| messages.block(place)).filter(|_| spend()) {
        block[CACHE] = ends();
    }
    if own == 0 {
        if let Some(last) = system.last_mut().filter(|_| spend()) {
            last[CACHE] = ends();
        }
        if let Some(tool) = last_tool.filter(|_| spend()) {
            *tool = Some(ends());
        }
    }
    let before = boundary.and_then(|place| messages.boundary_before(place));
    if let Some(block) = before.and_then(|place| messages.block(place)).filter(|_| spend()) {
        block[CACHE] = ends();
    }
}

fn ends() -> Value {
    json!({"type": "ephemeral"})
}
