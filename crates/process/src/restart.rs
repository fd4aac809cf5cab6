//! When a child that ended is started again, and whether a waiting call holds out for it. Pure: `now` is an argument.

use std::time::Duration;

use tokio::time::Instant;

/// Delay before the first restart: a child that fell over once is back before anybody waits for long.
const FIRST_DELAY: Duration = Duration::from_millis(250);
/// Longest delay: a child that can never work costs two spawns a minute.
const LONGEST_DELAY: Duration = Duration::from_secs(30);
/// A child that stayed up this long was healthy, so the next crash starts from [`FIRST_DELAY`] again.
const HEALTHY_AFTER: Duration = Duration::from_secs(60);
/// Share of the delay that chance adds or takes away, so that children which fell together do not rise together.
const JITTER: f64 = 0.2;
/// After this many timeouts in a row without a line, a child counts as hung.
const HUNG_AFTER: u32 = 3;

/// How often a child fell in a row, and since when it is up.
#[derive(Debug, Default)]
pub struct Restarts {
    falls: u32,
    up_since: Option<Instant>,
}

impl Restarts {
    /// The handshake passed.
    pub fn came_up(&mut self, now: Instant) {
        self.up_since = Some(now);
    }

    /// The child is down; answers how long to wait before the next one. `chance` lies in `0.0..=1.0`.
    pub fn went_down(&mut self, now: Instant, chance: f64) -> Duration {
        let was_healthy = self.up_since.take().is_some_and(|since| now.duration_since(since) >= HEALTHY_AFTER);
        if was_healthy {
            self.falls = 0;
        }
        // Beyond 31 doublings the delay is at its longest anyway.
        let delay = FIRST_DELAY.saturating_mul(1 << self.falls.min(31)).min(LONGEST_DELAY);
        self.falls = self.falls.saturating_add(1);
        delay.mul_f64(1.0 + JITTER * (2.0 * chance - 1.0))
    }
}

/// Timeouts in a row without a line from the child.
#[derive(Debug, Default)]
pub(super) struct Silence {
    timeouts: u32,
}

impl Silence {
    /// The child sent a line.
    pub(super) fn broken(&mut self) {
        self.timeouts = 0;
    }

    /// An interceptor timed out; answers whether the child now counts as hung.
    pub(super) fn goes_on(&mut self) -> bool {
        self.timeouts = self.timeouts.saturating_add(1);
        self.timeouts >= HUNG_AFTER
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Delays in milliseconds for children that live `lives_ms` each, with `chance` at every fall.
    fn delays(chance: f64, lives_ms: &[u64]) -> Vec<u128> {
        let mut restarts = Restarts::default();
        let mut now = Instant::now();
        lives_ms
            .iter()
            .map(|life| {
                restarts.came_up(now);
                now += Duration::from_millis(*life);
                let delay = restarts.went_down(now, chance);
                now += delay;
                delay.as_millis()
            })
            .collect()
    }

    #[test]
    fn delays_double_to_thirty_seconds_and_start_again_after_a_healthy_minute() {
        let short = 10;
        assert_eq!(delays(0.5, &[short; 9]), [250, 500, 1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]);
        assert_eq!(delays(0.5, &[short, short, 59_999, 60_000, short]), [250, 500, 1000, 250, 500]);
        assert_eq!(delays(0.0, &[short; 3]), [200, 400, 800]);
        assert_eq!(delays(1.0, &[short; 3]), [300, 600, 1200]);
        assert_eq!(delays(1.0, &[short; 80]).last(), Some(&36_000));
    }

    #[test]
    fn a_child_that_never_came_up_does_not_count_as_healthy() {
        let mut restarts = Restarts::default();
        let now = Instant::now();
        restarts.went_down(now, 0.5);
        let later = now + Duration::from_secs(600);
        assert_eq!(restarts.went_down(later, 0.5), Duration::from_millis(500));
    }

    #[test]
    fn three_timeouts_in_a_row_without_a_line_mean_hung() {
        let mut silence = Silence::default();
        assert_eq!([silence.goes_on(), silence.goes_on()], [false, false]);
        silence.broken();
        assert_eq!([silence.goes_on(), silence.goes_on(), silence.goes_on()], [false, false, true]);
    }
}
