//! When a hook that keeps saying no, or keeps failing, is taken out of the chain: arithmetic, without a clock.

use std::collections::VecDeque;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// How many counted outcomes in a row open a breaker. Source: agent hooks, circuit breaker.
pub const THRESHOLD: usize = 5;

/// The window within which they must come, in seconds. Source: the published format of rules.
pub const WINDOW_SECONDS: i64 = 60;

/// The kind of outcome that a breaker counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BreakerPolicy {
    /// Blocks and timeouts; an allow or an ask ends a run.
    #[default]
    All,
    /// Timeouts and faults; every answer ends a run.
    Faults,
    /// Nothing.
    Off,
}

impl BreakerPolicy {
    /// Every value, in the order of the published list.
    pub const ALL: [Self; 3] = [Self::All, Self::Faults, Self::Off];

    /// The word on the wire.
    pub fn word(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Faults => "faults",
            Self::Off => "off",
        }
    }

    /// The value that `word` names.
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.word() == word)
    }

    /// The weight that `outcome` has in a run.
    fn weighs(self, outcome: BreakerOutcome) -> Weight {
        match (self, outcome) {
            (Self::All, BreakerOutcome::Block | BreakerOutcome::Timeout)
            | (Self::Faults, BreakerOutcome::Timeout | BreakerOutcome::Error) => Weight::Counts,
            (Self::All, BreakerOutcome::Allow | BreakerOutcome::Ask)
            | (Self::Faults, BreakerOutcome::Allow | BreakerOutcome::Block | BreakerOutcome::Ask) => Weight::Ends,
            (Self::All, BreakerOutcome::Error) | (Self::Off, _) => Weight::Ignored,
        }
    }

    /// The outcomes that the policy counts, in the words of a message.
    pub fn counts(self) -> &'static str {
        match self {
            Self::All | Self::Off => "blocks/timeouts",
            Self::Faults => "faults",
        }
    }
}

enum Weight {
    Counts,
    Ends,
    Ignored,
}

/// The worth of a handler's outcome to a breaker, the worst last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BreakerOutcome {
    /// It let pass.
    Allow,
    /// It wanted a person to say.
    Ask,
    /// It refused.
    Block,
    /// It failed.
    Error,
    /// Its own time was over.
    Timeout,
}

/// The counted outcomes of one hook for one tenant that came in a row. Its JSON is the column `run`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct BreakerRun(VecDeque<Timestamp>);

/// The step that a run took at an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BreakerStep {
    /// Nothing.
    Same,
    /// It is longer, or over.
    Changed,
    /// The breaker opens.
    Trips,
}

impl BreakerRun {
    /// Takes an outcome in.
    pub fn take(&mut self, policy: BreakerPolicy, outcome: BreakerOutcome, now: Timestamp) -> BreakerStep {
        match policy.weighs(outcome) {
            Weight::Ignored => BreakerStep::Same,
            Weight::Ends if self.0.is_empty() => BreakerStep::Same,
            Weight::Ends => {
                self.0.clear();
                BreakerStep::Changed
            }
            Weight::Counts => {
                let from = now - jiff::SignedDuration::from_secs(WINDOW_SECONDS);
                // Of a longer window only the newest matter: a run ends by an answer, not by time alone.
                self.0.retain(|at| *at > from);
                self.0.push_back(now);
                if self.0.len() < THRESHOLD {
                    return BreakerStep::Changed;
                }
                self.0.clear();
                BreakerStep::Trips
            }
        }
    }

    /// Whether nothing counts at present.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of outcomes that count at `now`: those within the window.
    pub fn counted(&self, now: Timestamp) -> usize {
        let from = now - jiff::SignedDuration::from_secs(WINDOW_SECONDS);
        self.0.iter().filter(|at| **at > from).count()
    }

    /// The number of outcomes that count at present.
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

/// Why a call is refused whose hook's breaker is open since `since`.
pub fn refusal(label: &str, id: &str, since: &str, policy: BreakerPolicy) -> String {
    format!(
        "hook \"{label}\" ({id}) is off since {since}: circuit breaker, {THRESHOLD} {} in {WINDOW_SECONDS} s; matching \
         calls are refused until an administrator re-enables it (pintle hooks reset {id})",
        policy.counts()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds `outcomes`, each with its second, and gives a letter for each step.
    fn check(policy: BreakerPolicy, outcomes: &[(i64, BreakerOutcome)]) -> String {
        let mut run = BreakerRun::default();
        let step = |(second, outcome): &(i64, BreakerOutcome)| match run.take(
            policy,
            *outcome,
            Timestamp::from_second(*second).unwrap(),
        ) {
            BreakerStep::Same => '=',
            BreakerStep::Changed => '~',
            BreakerStep::Trips => '!',
        };
        outcomes.iter().map(step).collect()
    }

    #[test]
    fn only_what_is_less_than_a_minute_old_counts() {
        let mut run = BreakerRun::default();
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        for second in [0, 10, 30] {
            run.take(BreakerPolicy::All, BreakerOutcome::Block, at(second));
        }
        assert_eq!([30, 59, 60, 75, 90].map(|second| run.counted(at(second))), [3, 3, 2, 1, 0]);
    }

    #[test]
    fn five_in_a_row_within_a_minute_trip() {
        use BreakerOutcome::{Allow, Ask, Block, Error, Timeout};
        let every = |seconds: i64, outcome| (0..6).map(|n| (n * seconds, outcome)).collect::<Vec<_>>();
        assert_eq!(check(BreakerPolicy::All, &every(1, Block)), "~~~~!~");
        assert_eq!(check(BreakerPolicy::All, &every(14, Timeout)), "~~~~!~");
        assert_eq!(
            check(BreakerPolicy::All, &every(15, Block)),
            "~~~~~~",
            "the first is a minute old when the fifth comes"
        );
        assert_eq!(check(BreakerPolicy::Off, &every(1, Timeout)), "======");
        assert_eq!(check(BreakerPolicy::All, &every(1, Error)), "======");
        assert_eq!(check(BreakerPolicy::Faults, &every(1, Error)), "~~~~!~");
        assert_eq!(check(BreakerPolicy::Faults, &every(1, Block)), "======");
        let broken =
            |by| [(0, Block), (1, Block), (2, by), (3, Timeout), (4, Block), (5, Block), (6, Block), (7, Block)];
        assert_eq!(check(BreakerPolicy::All, &broken(Allow)), "~~~~~~~!");
        assert_eq!(check(BreakerPolicy::All, &broken(Ask)), "~~~~~~~!");
        assert_eq!(check(BreakerPolicy::All, &broken(Error)), "~~=~~!~~");
    }
}
