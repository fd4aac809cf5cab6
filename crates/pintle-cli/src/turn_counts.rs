//! What a turn came to, counted while it happens.

use std::collections::BTreeSet;
use std::time::Duration;

use pintle_domain::id::{CallId, HookName, TurnId};
use pintle_domain::llm::Usage;
use pintle_domain::record::EventRecord;
use pintle_domain::verdict::VerdictKind;

use crate::text::{counted, short_id, time};

/// The counts of one turn.
#[derive(Default)]
pub(crate) struct TurnCounts {
    calls: BTreeSet<CallId>,
    refused: BTreeSet<CallId>,
    /// Calls that a person was asked about, and that neither ran nor were refused since.
    waiting: BTreeSet<CallId>,
    /// Refusals that are about no call.
    others: usize,
    /// Calls that the model made in the last answer of the turn, which nobody was asked about.
    late: usize,
    hooks: BTreeSet<HookName>,
    took: Duration,
    usage: Usage,
    /// Why a request was last sent once more.
    failure: Option<String>,
}

impl TurnCounts {
    /// Counts `event`. Says whether it is the first that refuses what it is about, or leaves it to a person.
    pub(crate) fn add(&mut self, event: &EventRecord) -> bool {
        self.calls.extend(event.who.tool_call_id.clone());
        for record in event.hooks.whole() {
            if let Some(took) = record.took() {
                self.hooks.insert(record.hook.clone());
                self.took = self.took.saturating_add(took);
            }
        }
        let ruling = &event.ruling;
        match &event.who.tool_call_id {
            Some(call) if ruling.permit.is_some() || ruling.substituted => {
                self.waiting.remove(call);
                false
            }
            _ if !ruling.stops() => false,
            Some(call) if ruling.word == VerdictKind::Ask => self.waiting.insert(call.clone()),
            Some(call) => {
                self.waiting.remove(call);
                self.refused.insert(call.clone())
            }
            None => {
                self.others += 1;
                true
            }
        }
    }

    /// Keeps why a request is sent once more. Says whether the one before it failed for the same reason.
    pub(crate) fn failed_alike(&mut self, why: &str) -> bool {
        self.failure.replace(why.to_owned()).is_some_and(|before| before == why)
    }

    /// Counts a call that came in the last answer of the turn.
    pub(crate) fn came_late(&mut self) {
        self.late += 1;
    }

    /// Adds the tokens of one call of a model.
    pub(crate) fn used(&mut self, usage: Usage) {
        self.usage.add(Some(usage));
    }

    /// The counts in a line of a turn that is over, so that no question waits any more; nothing where no hook was asked,
    /// nothing refused and no token told of. `why` is what stands behind the id where a refusal leads to `pintle why`;
    /// without it, it leads nowhere.
    pub(crate) fn line(&self, turn: &TurnId, why: Option<&str>) -> Option<String> {
        let refused = self.refused.len() + self.others;
        let counts = |all: &[(usize, &str)]| -> String {
            let some = all.iter().filter(|(count, _)| *count > 0);
            some.map(|(count, word)| format!(", {count} {word}")).collect()
        };
        let late = counts(&[(self.late, "not run: iteration limit")]);
        let stopped = counts(&[(refused, "blocked"), (self.waiting.len(), "no longer waiting")]);
        if self.hooks.is_empty() && stopped.is_empty() && late.is_empty() && self.usage.total_tokens == 0 {
            return None;
        }
        let why = why.filter(|_| !stopped.is_empty());
        let why = why.map(|flags| format!(" (why: pintle why {}{flags})", short_id(turn.as_str())));
        let stopped = late + &stopped + &why.unwrap_or_default();
        let hooks = match self.hooks.len() {
            0 => String::new(),
            hooks => format!(", {} {}", counted(hooks, "hook"), time(self.took)),
        };
        let tokens = match self.usage.total_tokens {
            0 => String::new(),
            tokens => format!(", {}", tokens_of(tokens)),
        };
        Some(format!("{}{stopped}{hooks}{tokens}", counted(self.calls.len(), "call")))
    }
}

/// A number of tokens as people say it: whole below a thousand, with one digit behind the point above.
fn tokens_of(tokens: u64) -> String {
    match tokens {
        0..1000 => counted(usize::try_from(tokens).unwrap_or(usize::MAX), "token"),
        1000..1_000_000 => format!("{}.{}k tokens", tokens / 1000, tokens % 1000 / 100),
        _ => format!("{}.{}M tokens", tokens / 1_000_000, tokens % 1_000_000 / 100_000),
    }
}

#[cfg(test)]
mod tests {
    use pintle_domain::record::EventRuling;
    use pintle_domain::tool::{Digest, ToolCall};
    use pintle_testkit::conformance::store::{event, hook};

    use super::*;

    #[test]
    fn a_turn_is_counted_by_its_calls_refusals_hooks_and_tokens() {
        let turn = TurnId::from("0193a5b0-7000-7000-8000-00000000beef");
        let about = |call: &str, word| EventRecord {
            who: event(&turn).who.for_call(&call.into()),
            ruling: EventRuling::word(word),
            hooks: vec![hook(
                "guard",
                pintle_domain::record::HookOutcome::Said { word, reason: None, took: Duration::from_millis(6) },
            )]
            .into(),
            ..event(&turn)
        };
        let mut counts = TurnCounts::default();
        assert_eq!(counts.line(&turn, None), None);
        assert!(!counts.add(&about("a", VerdictKind::Continue)));
        assert!(counts.add(&about("b", VerdictKind::Deny)));
        assert!(!counts.add(&about("b", VerdictKind::Deny)), "the same refusal at a later checkpoint");
        let line = |counts: &TurnCounts, why| counts.line(&turn, why).unwrap();
        assert_eq!(line(&counts, Some("")), "2 calls, 1 blocked (why: pintle why 00000000beef), 1 hook 18 ms");
        assert!(line(&counts, Some(" -c p.toml")).contains("pintle why 00000000beef -c p.toml)"));
        assert_eq!(line(&counts, None), "2 calls, 1 blocked, 1 hook 18 ms", "nothing could be asked");
        counts.came_late();
        let late = "2 calls, 1 not run: iteration limit, 1 blocked, 1 hook 18 ms";
        assert_eq!(line(&counts, None), late, "nobody blocked it");
        for call in ["ran", "answered", "refused", "left"] {
            assert!(counts.add(&about(call, VerdictKind::Ask)), "{call}");
        }
        let passed = |call, permit, substituted| {
            let ruling = EventRuling { permit, substituted, ..EventRuling::word(VerdictKind::Continue) };
            EventRecord { ruling, ..about(call, VerdictKind::Continue) }
        };
        counts.add(&about("left", VerdictKind::Continue));
        let digest = Digest::of(
            &event(&turn).who,
            &ToolCall { id: "ran".into(), tool: "exec".into(), raw_tool: "exec".into(), arguments: Default::default() },
        );
        counts.add(&passed("ran", Some(digest), false));
        counts.add(&passed("answered", None, true));
        assert!(counts.add(&about("refused", VerdictKind::Deny)), "a refusal by a person is one");
        let asked = line(&counts, None);
        assert!(asked.starts_with("6 calls, 1 not run: iteration limit, 2 blocked, 1 no longer waiting, "), "{asked}");
        counts.used(Usage { total_tokens: 5249, ..Usage::default() });
        assert!(line(&counts, None).ends_with(", 5.2k tokens"));
        let said = [1, 999, 1000, 999_999, 1_000_000].map(tokens_of);
        assert_eq!(said, ["1 token", "999 tokens", "1.0k tokens", "999.9k tokens", "1.0M tokens"]);
    }
}
