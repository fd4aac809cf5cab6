//! When to try again, as arithmetic: whoever calls it waits.

use std::time::Duration;

use domain::checkpoint::runtime::RetryReason;

use crate::ProviderError;

/// Tries after the first one: together they span about a quarter of a minute, the length of a usual hiccup.
pub const MAX_RETRIES: u32 = 5;
/// First wait: long enough for a dropped connection to heal, too short to be noticed.
pub const FIRST_WAIT: Duration = Duration::from_millis(500);
/// Longest wait of our own choice: a person is waiting for the answer.
pub const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// Longest wait a provider may ask for. One that asks for more has a quota that is used up, not a busy minute.
pub const LONGEST_ASKED_WAIT: Duration = Duration::from_secs(120);
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
    /// A provider's wish is followed up to [`RetryPolicy::longest_asked_wait`] and never undercut; without one the wait
    /// doubles up to [`RetryPolicy::longest_wait`], less a random share of up to [`JITTER_SHARE`].
    pub fn backoff(&self, attempt: u32, retry_after: Option<Duration>, jitter: f64) -> Duration {
        if let Some(asked) = retry_after {
            return asked.min(self.longest_asked_wait);
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
                    (attempt <= self.max_retries).then(|| self.backoff(attempt, *retry_after, jitter))
                }
            },
            ProviderError::Final { .. } => None,
        }
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
            (1, Some(3_600_000), 0.0, 120_000),
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
    fn only_what_may_pass_is_tried_again() {
        let policy = RetryPolicy { max_retries: 2, ..RetryPolicy::default() };
        let wait = |attempt, reason| policy.wait(attempt, &ProviderError::transient(reason, "m"), 0.0);
        for reason in [RetryReason::Timeout, RetryReason::Network, RetryReason::RateLimit, RetryReason::ServerError] {
            assert_eq!(wait(1, reason), Some(Duration::from_millis(500)), "{reason:?}");
            assert_eq!(wait(3, reason), None, "{reason:?}");
        }
        assert_eq!(wait(1, RetryReason::ContextLimit), None);
        assert_eq!(policy.wait(1, &ProviderError::fatal("m"), 0.0), None);
    }
}
