//! The line that every run of a rule leaves in the log of the host: one for each, gates and observers alike.

use std::time::Duration;

use crate::reply::Decision;
use pintle_domain::fault::FaultKind;

use super::answer::Failure;
use super::running::RuleQuestion;

impl RuleQuestion<'_> {
    /// Says what came of a run: `decision` is what the handler said, `failure` why that does not count.
    pub(super) fn trace(&self, took: Duration, decision: Option<Decision>, failure: Option<&Failure>) {
        if !tracing::enabled!(target: "pintle::hook", tracing::Level::DEBUG) {
            return;
        }
        let who = self.who;
        // The call of the model that it is about, else the turn.
        let parent = who.tool_call_id.as_ref().map_or(who.turn_id.as_str(), |call| call.as_str());
        tracing::debug!(
            target: "pintle::hook",
            span = format!("hook.{}.{}", self.about.handler().word(), self.event.name()),
            status = if failure.is_some() { "error" } else { "completed" },
            duration_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            decision = word(decision, failure),
            error = failure.map(|failure| failure.fault.phrase().to_string()),
            parent_span_id = parent,
            trace_id = who.trace_id.as_str(),
            tenant = who.tenant_id.as_str(),
            agent = who.agent_id.as_str(),
            hook_id = self.about.id().as_str(),
        );
    }
}

/// The decision as it is recorded.
fn word(decision: Option<Decision>, failure: Option<&Failure>) -> &'static str {
    match (failure, decision) {
        (Some(failure), _) if failure.fault.kind() == FaultKind::TimedOut => "timeout",
        (Some(_), _) | (None, None) => "error",
        (None, Some(Decision::Allow)) => "allow",
        (None, Some(Decision::Ask)) => "ask",
        (None, Some(Decision::Block | Decision::Defer)) => "block",
    }
}
