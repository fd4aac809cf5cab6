//! What a turn came to, counted while it happens.

use std::collections::BTreeSet;
use std::time::Duration;

use domain::id::{CallId, HookName, TurnId};
use domain::llm::Usage;
use domain::record::EventRecord;
use domain::verdict::VerdictKind;

use crate::text::{counted, short_id, time};

/// The counts of one turn.
#[derive(Default)]
pub(crate) struct TurnCounts {
    calls: BTreeSet<CallId>,
    refused: BTreeSet<CallId>,
    /// Calls that wait for a person.
    waiting: BTreeSet<CallId>,
    /// Refusals that are about no call.
    others: usize,
    hooks: BTreeSet<HookName>,
    took: Duration,
    usage: Usage,
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
        match &event.who.tool_call_id {
            _ if !event.ruling.stops() => false,
            Some(call) if event.ruling.word == VerdictKind::Ask => self.waiting.insert(call.clone()),
            Some(call) => self.refused.insert(call.clone()),
            None => {
                self.others += 1;
                true
            }
        }
    }

    /// The tokens that the turn's models took.
    pub(crate) fn used(&mut self, usage: Usage) {
        self.usage = usage;
    }

    /// The counts in a line; nothing where no hook was asked, nothing refused and no token told of.
    /// `why` is what stands behind the id where a refusal leads to `pintle why`; without it, it leads nowhere.
    pub(crate) fn line(&self, turn: &TurnId, why: Option<&str>) -> Option<String> {
        let refused = self.refused.len() + self.others;
        let stopped = [(refused, "blocked"), (self.waiting.len(), "waiting")];
        let stopped: Vec<String> =
            stopped.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!(", {count} {word}")).collect();
        if self.hooks.is_empty() && stopped.is_empty() && self.usage.total_tokens == 0 {
            return None;
        }
        let why = why.filter(|_| !stopped.is_empty());
        let why = why.map(|flags| format!(" (why: pintle why {}{flags})", short_id(turn.as_str())));
        let stopped = stopped.concat() + &why.unwrap_or_default();
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
    use domain::record::EventRuling;
    use testkit::conformance::store::{event, hook};

    use super::*;

    #[test]
    fn a_turn_is_counted_by_its_calls_refusals_hooks_and_tokens() {
        let turn = TurnId::from("0193a5b0-7000-7000-8000-00000000beef");
        let about = |call: &str, word| EventRecord {
            who: event(&turn).who.for_call(&call.into()),
            ruling: EventRuling::word(word),
            hooks: vec![hook(
                "guard",
                domain::record::HookOutcome::Said { word, reason: None, took: Duration::from_millis(6) },
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
        counts.used(Usage { total_tokens: 5249, ..Usage::default() });
        assert!(line(&counts, None).ends_with(", 5.2k tokens"));
        let said = [1, 999, 1000, 999_999, 1_000_000].map(tokens_of);
        assert_eq!(said, ["1 token", "999 tokens", "1.0k tokens", "999.9k tokens", "1.0M tokens"]);
    }
}
