//! Settings that are allowed and probably not meant.

use pintle_domain::breaker::BreakerPolicy;
use pintle_domain::checkpoint::{CheckpointKind, Duty, Facts};
use pintle_domain::matcher::Matcher;
use pintle_domain::rule::{Fallback, HandlerType, Rule};

/// The doubts about `hook`, one sentence each.
pub(super) fn of(hook: &Rule, matcher: Option<&Matcher>) -> Vec<String> {
    let event = hook.event.name();
    let mut warnings = Vec::new();
    if !hook.event.is_about_a_call() && matcher.is_some_and(|matcher| !matcher.matches(&Facts::default())) {
        warnings.push(format!(
            "matcher {} never matches: {event} has no tool, so the name that it is compared with is empty",
            super::quoted(&hook.matcher)
        ));
    }
    if hook.handler_type == HandlerType::Prompt && hook.event == CheckpointKind::UserPromptSubmit {
        warnings.push(format!("a prompt hook on {event} judges {{}}: only tool input reaches the evaluator"));
    }
    if hook.breaker == BreakerPolicy::All && hook.on_trip == Fallback::Allow && hook.event.duty() == Duty::Gate {
        warnings.push(format!(
            "breaker \"all\" with on_trip \"allow\" lets five blocks in a row open this gate at {event}; use breaker \
             \"faults\" or on_trip \"block\""
        ));
    }
    warnings
}
