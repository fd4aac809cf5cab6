//! Words for what records say in theirs.

use pintle_domain::hook::Family;
use pintle_domain::nearest::nearest;
use pintle_domain::store::{StoredEvent, StoredRecord};

use crate::timeline::mismatch;

/// Why hooks were skipped, in a word or two behind their number.
pub(super) fn in_short(reason: &str) -> &str {
    match reason {
        "matcher said no" => "no match",
        "condition said no" => "condition not met",
        "decided already" => "chain stopped",
        "chain time spent" => "chain out of time",
        other => other,
    }
}

/// Why a hook was skipped, with both sides of a comparison and the name that was probably meant.
pub(super) fn skipped(event: &StoredEvent, hook: &StoredRecord) -> String {
    let reason = hook.reason.as_deref().unwrap_or("unknown");
    if let Some(by) = &hook.by {
        return format!("`{by}` stopped the chain");
    }
    if let Some(value) = &hook.value {
        return match reason {
            "condition said no" => format!("its condition `{value}` does not hold"),
            reason => format!("{}: {value}", in_short(reason)),
        };
    }
    let Some(compared) = &hook.compared else { return in_short(reason).to_owned() };
    let mismatch = mismatch(is_text(hook), &compared.pattern, &compared.value);
    let near = event.tool.as_deref().filter(|_| !is_text(hook)).and_then(|tool| nearest(&compared.pattern, [tool]));
    let near = near.map(|tool| format!("; did you mean \"{tool}\"?")).unwrap_or_default();
    format!("{mismatch}{near}")
}

/// Whether it is a text of a skill: it runs nothing, so it takes no time and says no word.
pub(super) fn is_text(hook: &StoredRecord) -> bool {
    hook.family == Family::Skill.word()
}
