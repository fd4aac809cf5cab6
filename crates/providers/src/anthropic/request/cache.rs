//! Where a cache may end: a request that belongs to a turn is marked, since the next one begins like it.
//!
//! Caches hold beginnings of requests, in the order tools, system prompt, messages. Marks go, as far as the model takes
//! so many, to the end of what the next call begins with, to the end of the system prompt, to the last tool, and to the end
//! of what stood before the last answer: what the call before left there is found also behind a round of many calls. What
//! the operator marked counts, and there the system prompt and the tools are left alone.

use domain::json::{Value, json};

use super::{Conversation, Wire, is_thought};

/// The member that marks where a cache ends.
const CACHE: &str = "cache_control";

/// Marks `wire` with at most so many breakpoints.
pub(super) fn mark(wire: &mut Wire<'_>, breakpoints: usize) {
    let own = wire.system.iter().filter(|block| block.get(CACHE).is_some()).count();
    let mut left = breakpoints.saturating_sub(own + usize::from(wire.options.contains_key(CACHE)));
    let mut spend = || {
        let some = left > 0;
        left = left.saturating_sub(1);
        some
    };
    let before = wire.messages.boundary.and_then(|boundary| wire.messages.boundary_before(boundary));
    if let Some((message, block)) = wire.messages.boundary.filter(|_| spend()) {
        wire.messages.merged[message].1[block][CACHE] = ends();
    }
    if own == 0 {
        if let Some(last) = wire.system.last_mut().filter(|_| spend()) {
            last[CACHE] = ends();
        }
        if let Some(last) = wire.tools.last_mut().filter(|_| spend()) {
            last.cache_control = Some(ends());
        }
    }
    if let Some((message, block)) = before.filter(|_| spend()) {
        wire.messages.merged[message].1[block][CACHE] = ends();
    }
}

fn ends() -> Value {
    json!({"type": "ephemeral"})
}

impl Conversation<'_> {
    /// The last block that may carry a mark; thoughts are not touched.
    pub(super) fn last(&self) -> Option<(usize, usize)> {
        self.last_of(self.merged.len())
    }

    /// The same in the first `count` messages.
    fn last_of(&self, count: usize) -> Option<(usize, usize)> {
        let messages = self.merged[..count].iter().enumerate().rev();
        let mut places =
            messages.filter_map(|(at, (_, blocks))| Some((at, blocks.iter().rposition(|b| !is_thought(b))?)));
        places.next()
    }

    /// The end of what stands before the last answer in front of the boundary.
    fn boundary_before(&self, (message, _): (usize, usize)) -> Option<(usize, usize)> {
        let answer = self.merged[..message].iter().rposition(|(role, _)| *role == "assistant")?;
        self.last_of(answer)
    }
}
