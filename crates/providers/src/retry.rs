//! When to try again, as arithmetic: whoever calls it waits.

use std::time::Duration;

use pintle_domain::checkpoint::runtime::RetryReason;

use crate::ProviderError;

/// Tries after the first one: together they span about a quarter of a minute, the length of a usual hiccup.
pub const MAX_RETRIES: u32 = 5;
/// First wait: long enough for a dropped connection to heal, too short to be noticed.
pub const FIRST_WAIT: Duration = Duration::from_millis(500);
/// Longest wait of our own choice: a person is waiting for the answer.
pub const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// Longest wait a provider may ask for: a person is waiting for the answer. One that asks for more is left alone, for
/// another model or for another time.
pub const LONGEST_ASKED_WAIT: Duration = Duration::from_secs(10);
/// Share of a wait that jitter may take away, so that many waiters do not come back at once.
pub const JITTER_SHARE: f64 = 0.5;

/// How often and after which waits a call is made again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryPolicy {
    /// Tries after the first one.
    pub max_retries: u32,
    /// Wait before the first retry; it doubles from there.
    pub first_wait: Duration,
    /// Longest wait of our own choice.
    pub longest_wait: Duration,
    /// Longest wait that a provider's `retry-after` is honoured for.
    pub longest_asked_wait: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            max_retries: MAX_RETRIES,
            first_wait: FIRST_WAIT,
            longest_wait: LONGEST_WAIT,
            longest_asked_wait: LONGEST_ASKED_WAIT,
        }
    }
}

impl RetryPolicy {
    /// How long to wait before retry number `attempt` (the first is 1). `jitter` is random in `0.0..1.0`.
    ///
    /// A provider's wish is followed and never undercut, and where it is longer than
    /// [`RetryPolicy::longest_asked_wait`] there is no retry. Without one the wait doubles up to [`RetryPolicy::longest_wait`], less a random share of up to [`JITTER_SHARE`].
    fn backoff(&self, attempt: u32, retry_after: Option<Duration>, jitter: f64) -> Duration {
        if let Some(asked) = retry_after {
            return asked;
        }
        let doubled = 2_u32.checked_pow(attempt.saturating_sub(1)).and_then(|n| self.first_wait.checked_mul(n));
        let wait = doubled.map_or(self.longest_wait, |wait| wait.min(self.longest_wait));
        let jitter = if jitter.is_finite() { jitter.clamp(0.0, 1.0) } else { 0.0 };
        wait.mul_f64(1.0 - JITTER_SHARE * jitter)
    }

    /// The wait before retry number `attempt` after `error`, or none if the call is not to be made again as it is.
    ///
    /// A request that is too long stays too long, so `context_limit` is not retried here: its caller shortens it first.
    pub fn wait(&self, attempt: u32, error: &ProviderError, jitter: f64) -> Option<Duration> {
        match error {
            ProviderError::Transient { reason, retry_after, .. } => match reason {
                RetryReason::ContextLimit => None,
                RetryReason::Timeout | RetryReason::Network | RetryReason::RateLimit | RetryReason::ServerError => {
                    let goes_on = attempt <= self.max_retries && self.asks_too_much(error).is_none();
                    goes_on.then(|| self.backoff(attempt, *retry_after, jitter))
                }
            },
            ProviderError::Final { .. } => None,
        }
    }

    /// The wait that the provider asks for, if it is longer than anybody waits.
    pub fn asks_too_much(&self, error: &ProviderError) -> Option<Duration> {
        match error {
            ProviderError::Transient { retry_after, .. } => {
                retry_after.filter(|asked| *asked > self.longest_asked_wait)
            }
            ProviderError::Final { .. } => None,
        }
    }
}

/// A wait for people: `45 s`, `3 min`, `1 h 5 min`.
pub fn in_words(wait: Duration) -> String {
    // Rounded up: whoever comes back at that time finds it over.
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    let minutes = seconds.div_ceil(60);
    match (seconds, minutes / 60, minutes % 60) {
        (0..=119, _, _) => format!("{seconds} s"),
        (_, 0, minutes) => format!("{minutes} min"),
        (_, hours, 0) => format!("{hours} h"),
        (_, hours, minutes) => format!("{hours} h {minutes} min"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_bound_and_lose_at_most_their_share() {
        let policy = RetryPolicy::default();
        let table = [
            (0, None, 0.0, 500),
            (1, None, 0.0, 500),
            (2, None, 0.0, 1000),
            (3, None, 0.5, 1500),
            (6, None, 0.0, 16_000),
            (7, None, 0.0, 30_000),
            (7, None, 1.0, 15_000),
            (u32::MAX, None, 0.0, 30_000),
            (1, None, f64::NAN, 500),
            (1, None, 9.0, 250),
            (1, Some(0), 1.0, 0),
            (1, Some(45_000), 1.0, 45_000),
            (1, Some(9_999), 0.0, 9_999),
        ];
        for (attempt, asked_ms, jitter, expected_ms) in table {
            let wait = policy.backoff(attempt, asked_ms.map(Duration::from_millis), jitter);
            assert_eq!(
                wait,
                Duration::from_millis(expected_ms),
                "attempt {attempt}, asked {asked_ms:?}, jitter {jitter}"
            );
        }
    }

    #[test]
    fn a_wait_is_told_in_the_words_of_a_clock() {
        let told = |millis| in_words(Duration::from_millis(millis));
        assert_eq!([told(0), told(11_001), told(119_000)], ["0 s", "12 s", "119 s"]);
        assert_eq!([told(120_000), told(121_000), told(3_600_000)], ["2 min", "3 min", "1 h"]);
        assert_eq!([told(3_900_000), told(86_400_000)], ["1 h 5 min", "24 h"]);
    }

    #[test]
    fn only_what_may_pass_is_tried_again() {
        let policy = RetryPolicy { max_retries: 2, ..RetryPolicy::default() };
        let wait = |attempt, reason| policy.wait(attempt, &ProviderError::transient(reason, "m"), 0.0);
        for reason in [RetryReason::Timeout, RetryReason::Network, RetryReason::RateLimit, RetryReason::ServerError] {
            assert_eq!(wait(1, reason), Some(Duration::from_millis(500)), "{reason:?}");
            assert_eq!(wait(3, reason), None, "{reason:?}");
        }
        assert_eq!(wait(1, RetryReason::ContextLimit), None);
        let asked = |seconds| {
            let retry_after = Some(Duration::from_secs(seconds));
            let error = ProviderError::Transient { reason: RetryReason::RateLimit, message: "m".into(), retry_after };
            (policy.wait(1, &error, 0.0), policy.asks_too_much(&error))
        };
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        assert_eq!(asked(10), (seconds(10), None));
        assert_eq!(asked(11), (None, seconds(11)));
        assert_eq!(asked(3600), (None, seconds(3600)));
        assert_eq!(policy.wait(1, &ProviderError::fatal("m"), 0.0), None);
    }
}
