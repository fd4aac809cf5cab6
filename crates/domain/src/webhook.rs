//! Events for others: what they are called, and when a delivery that failed is tried again. Pure.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::id::{NAMESPACE, TenantId};

/// How long a delivery waits after each failed attempt, in seconds: at first a hiccup, then a restart, then a night. All of
/// them together are 24 hours less some minutes.
pub const PAUSES_SECONDS: [u32; 11] = [5, 30, 120, 600, 1800, 3600, 7200, 14_400, 18_000, 18_000, 21_600];

/// How long a receiver may put a delivery off with `Retry-After`: the longest pause.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(21_600);

/// An event that others are told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum WebhookEvent {
    /// A hook refused something.
    #[serde(rename = "execution.blocked")]
    ExecutionBlocked,
    /// A call waits for a person.
    #[serde(rename = "approval.created")]
    ApprovalCreated,
    /// Somebody answered, or nobody did in time.
    #[serde(rename = "approval.decided")]
    ApprovalDecided,
    /// A circuit breaker opened.
    #[serde(rename = "breaker.tripped")]
    BreakerTripped,
    /// A tenant has less than a fifth of its budget.
    #[serde(rename = "budget.low")]
    BudgetLow,
    /// Somebody changed a rule.
    #[serde(rename = "hook.changed")]
    HookChanged,
    /// A turn ended in an error.
    #[serde(rename = "turn.failed")]
    TurnFailed,
}

impl WebhookEvent {
    /// All of them, in the order of the published list.
    pub const ALL: [Self; 7] = [
        Self::ExecutionBlocked,
        Self::ApprovalCreated,
        Self::ApprovalDecided,
        Self::BreakerTripped,
        Self::BudgetLow,
        Self::HookChanged,
        Self::TurnFailed,
    ];

    /// Its name on the wire.
    pub fn word(self) -> &'static str {
        match self {
            Self::ExecutionBlocked => "execution.blocked",
            Self::ApprovalCreated => "approval.created",
            Self::ApprovalDecided => "approval.decided",
            Self::BreakerTripped => "breaker.tripped",
            Self::BudgetLow => "budget.low",
            Self::HookChanged => "hook.changed",
            Self::TurnFailed => "turn.failed",
        }
    }

    /// The event that is called so.
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|event| event.word() == word)
    }
}

/// The id by which a receiver is known in the store: its address may hold a secret.
pub fn endpoint_id(url: &str) -> String {
    uuid::Uuid::new_v5(&NAMESPACE, format!("webhook/{url}").as_bytes()).to_string()
}

/// The id of the delivery of one event to one receiver: the same whoever notices the event, so that it is kept once.
pub fn delivery_id(endpoint: &str, event: WebhookEvent, of: &str) -> String {
    uuid::Uuid::new_v5(&NAMESPACE, format!("webhook/{endpoint}/{}/{of}", event.word()).as_bytes()).to_string()
}

/// An event on its way to one receiver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookDelivery {
    /// A UUID; the receiver knows it as `webhook-id`.
    pub id: String,
    /// The receiver, see [`endpoint_id`].
    pub endpoint: String,
    /// The tenant that owns the event; the sentinel for what is about all of them.
    pub tenant: TenantId,
    /// Which event.
    pub event: WebhookEvent,
    /// The number among those of the receiver; it only grows. 0 until it is kept.
    pub seq: u64,
    /// JSON: the ids and words of the event.
    pub data: String,
    /// When it happened.
    pub at: Timestamp,
    /// How often it was tried.
    pub attempts: u32,
    /// When it is due.
    pub next_at: Timestamp,
    /// When it was given up, if it was.
    pub failed_at: Option<Timestamp>,
    /// Why the last attempt failed.
    pub error: Option<String>,
}

/// What came of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attempt {
    /// A status from 200 to 299.
    Accepted,
    /// 410: the receiver wants nothing any more.
    Gone,
    /// Another status, with the wait that the receiver asks for.
    Refused {
        /// The status.
        status: u16,
        /// `Retry-After`.
        retry_after: Option<Duration>,
    },
    /// There was no answer.
    Unanswered(String),
}

/// What is to be done after an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AfterAttempt {
    /// It is over.
    Delivered,
    /// It is tried again.
    Again {
        /// When.
        at: Timestamp,
        /// Why it failed.
        error: String,
    },
    /// It was tried for a day.
    GivenUp {
        /// Why it failed last.
        error: String,
    },
    /// Nothing is sent to this receiver any more, until somebody says so.
    Stop,
}

impl Attempt {
    /// What is to be done after this attempt, the one after `attempts` others, at `now`. `spread` is a random number up to
    /// 255: it puts a pause off by up to a tenth, so that those who failed together do not come back together.
    pub fn then(self, attempts: u32, now: Timestamp, spread: u8) -> AfterAttempt {
        let (error, wanted) = match self {
            Self::Accepted => return AfterAttempt::Delivered,
            Self::Gone => return AfterAttempt::Stop,
            Self::Refused { status, retry_after } => (format!("it answered {status}"), retry_after),
            Self::Unanswered(why) => (why, None),
        };
        let pause = usize::try_from(attempts).ok().and_then(|attempts| PAUSES_SECONDS.get(attempts));
        let Some(pause) = pause else { return AfterAttempt::GivenUp { error } };
        let pause = Duration::from_secs((*pause).into());
        let pause = pause + pause * spread.into() / 2560;
        let pause = pause.max(wanted.unwrap_or_default().min(MAX_RETRY_AFTER));
        let pause = SignedDuration::try_from(pause).unwrap_or(SignedDuration::from_hours(6));
        AfterAttempt::Again { at: now.saturating_add(pause).unwrap_or(now), error }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn what_fails_is_tried_for_a_day() {
        let all: u32 = PAUSES_SECONDS.iter().sum();
        assert!((23 * 3600..=24 * 3600).contains(&all), "{all}");
        let failed = || Attempt::Unanswered("nobody".into());
        for (attempts, pause) in (0..).zip(PAUSES_SECONDS) {
            let again = AfterAttempt::Again { at: at(pause.into()), error: "nobody".into() };
            assert_eq!(failed().then(attempts, at(0), 0), again);
        }
        let last = u32::try_from(PAUSES_SECONDS.len()).unwrap();
        assert_eq!(failed().then(last, at(0), 0), AfterAttempt::GivenUp { error: "nobody".into() });
        assert_eq!(failed().then(u32::MAX, at(0), 0), AfterAttempt::GivenUp { error: "nobody".into() });
    }

    #[test]
    fn each_answer_has_its_end() {
        let refused = |status, retry_after: Option<u64>| Attempt::Refused {
            status,
            retry_after: retry_after.map(Duration::from_secs),
        };
        let again = |second, error: &str| AfterAttempt::Again { at: at(second), error: error.into() };
        for (attempt, attempts, expected) in [
            (Attempt::Accepted, 0, AfterAttempt::Delivered),
            (Attempt::Gone, 3, AfterAttempt::Stop),
            (refused(500, None), 0, again(5, "it answered 500")),
            (refused(302, None), 1, again(30, "it answered 302")),
            (refused(404, None), 2, again(120, "it answered 404")),
            // The receiver may ask for more time, never for less, and not for ever.
            (refused(429, Some(60)), 0, again(60, "it answered 429")),
            (refused(503, Some(1)), 1, again(30, "it answered 503")),
            (refused(503, Some(u64::MAX)), 0, again(21_600, "it answered 503")),
        ] {
            assert_eq!(attempt.then(attempts, at(0), 0), expected);
        }
    }

    #[test]
    fn those_that_failed_together_come_back_apart() {
        let due = |spread| Attempt::Unanswered(String::new()).then(5, at(0), spread);
        let again = |second| AfterAttempt::Again { at: at(second), error: String::new() };
        assert_eq!((due(0), due(128)), (again(3600), again(3780)));
    }

    #[test]
    fn each_event_has_its_word() {
        for event in WebhookEvent::ALL {
            assert_eq!(WebhookEvent::named(event.word()), Some(event));
            assert_eq!(serde_json::to_value(event).unwrap(), event.word());
        }
        assert_eq!(WebhookEvent::named("turn.done"), None);
    }
}
