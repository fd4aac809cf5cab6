//! What somebody probably meant by a name that nobody reads.

use crate::process::frame::{excerpt, skim};
use pintle_domain::nearest::nearest;

/// The members of one object of a reply.
pub(super) struct Shape<const N: usize> {
    /// Those that are read here.
    pub(super) names: [&'static str; N],
    /// Those that are read, but at another place.
    pub(super) elsewhere: &'static [MisplacedMembers],
}

/// Members that were written one level too high.
pub(super) struct MisplacedMembers {
    /// The members.
    pub(super) names: &'static [&'static str],
    /// Where they belong, up to the name.
    pub(super) at: &'static str,
    /// What else it takes.
    pub(super) with: &'static str,
}

/// Words that other hook systems use, and ours. A word counts only where ours is allowed.
const MEANT: [(&str, &str); 30] = [
    ("decision", "action"),
    ("verdict", "action"),
    ("args", "arguments"),
    ("input", "arguments"),
    ("params", "arguments"),
    ("tool_name", "tool"),
    ("name", "tool"),
    ("message", "reason"),
    ("why", "reason"),
    ("allow", "approved"),
    ("allowed", "approved"),
    ("approve", "approved"),
    ("ok", "approved"),
    ("output", "for_llm"),
    ("text", "for_llm"),
    ("content", "for_llm"),
    ("text", "content"),
    ("error", "is_error"),
    ("deny", "deny_tool"),
    ("block", "deny_tool"),
    ("reject", "deny_tool"),
    ("refuse", "deny_tool"),
    ("abort", "abort_turn"),
    ("stop", "abort_turn"),
    ("allow", "continue"),
    ("approve", "continue"),
    ("pass", "continue"),
    ("replace", "modify"),
    ("rewrite", "modify"),
    ("answer", "respond"),
];

/// The one of `among` that `name` probably means.
fn meant<'a>(name: &str, among: &[&'a str]) -> Option<&'a str> {
    let word = MEANT.iter().filter(|(other, _)| other.eq_ignore_ascii_case(name)).map(|(_, ours)| *ours);
    let same = word.filter_map(|ours| among.iter().find(|known| **known == ours)).next();
    same.copied().or_else(|| nearest(name, among.iter().copied()))
}

/// The warning for the member `name` of the object at `path`, which is not read.
pub(super) fn not_read(
    path: &dyn std::fmt::Display,
    name: &str,
    names: &[&str],
    elsewhere: &[MisplacedMembers],
) -> String {
    let name = excerpt(name);
    let place = elsewhere.iter().find_map(|there| {
        let known = there.names.iter().find(|known| known.eq_ignore_ascii_case(&name))?;
        Some(format!("; use {}{known}{}", there.at, there.with))
    });
    let hint = place.or_else(|| meant(&name, names).map(|ours| format!("; the member is \"{ours}\"")));
    format!("{path}.{name} is not read{}", hint.unwrap_or_default())
}

/// What is wrong with an action that is none of `allowed` at `stage`.
pub(super) fn unknown_action(action: &str, allowed: &[&str], stage: &str) -> String {
    let action = excerpt(action);
    if matches!(action.as_str(), "respond" | "deny_tool") {
        return format!("action \"{action}\" is not allowed in {stage}; use {}", listed(allowed));
    }
    match meant(&action, allowed) {
        Some(ours) => format!("unknown action \"{action}\"; did you mean \"{ours}\"?"),
        None => format!("unknown action \"{action}\"; use {}", listed(allowed)),
    }
}

/// The members in which other hook systems say whether a call may run. Beside no `action` of ours, whoever wrote one of
/// them believes to guard something.
const OTHER_DECISIONS: [&str; 6] =
    ["decision", "permissionDecision", "hookSpecificOutput", "continue", "block", "approved"];

/// The member of the object `json` in which a hook decides in the words of another system.
pub(super) fn other_decision(json: &str) -> Option<&'static str> {
    let mut members = skim::members(json, &skim::NOTHING)?;
    members.find_map(|(name, _)| OTHER_DECISIONS.into_iter().find(|other| other.eq_ignore_ascii_case(&name)))
}

/// What is wrong with an answer that decides by the member `other` and has no action.
pub(super) fn no_action(other: &str) -> String {
    format!(
        "result.{other} decides nothing in before_tool, which reads \"action\"; \
         \"action\": \"deny_tool\" refuses, \"action\": \"continue\" allows"
    )
}

/// `"a", "b" or "c"`.
fn listed(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => String::new(),
    }
}
