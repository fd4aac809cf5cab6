//! How much is forgotten at a time, and how long the store is left to others in between.

use std::time::Duration;

/// How long the store is taken at a time while nobody else writes: long enough that beginning and ending a transaction
/// is a small part of it, and nothing that the first call after a silence would be felt to wait for.
const QUIET_HOLD: Duration = Duration::from_millis(8);
/// The same while others write: little beside what one of them waits for anyway.
const BUSY_HOLD: Duration = Duration::from_millis(1);
/// How long the store is left to others, in times of how long it was taken: while nobody writes, long enough that
/// another process, which only looks now and then whether it may, soon finds that it may.
const QUIET_SHARE: f64 = 0.5;
/// The same while others write: so most of them come at a moment at which nothing is forgotten.
const BUSY_SHARE: f64 = 4.0;
/// Whoever was seen to write comes again within so many times, a second or so.
const BUSY_TIMES: u32 = 200;
/// A timer knows no shorter time.
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);
/// How much is forgotten the first time, in rows: a few milliseconds on a slow disk.
const FIRST_ROWS: usize = 200;
/// The least: below that, a transaction costs more than what is forgotten in it.
const LEAST_ROWS: usize = 50;
/// The most: however fast the store is, its log does not grow by more than some megabytes.
const MOST_ROWS: usize = 10_000;

/// How fast one kind of rows is forgotten.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    rows: usize,
    /// How many more times somebody is expected who writes.
    busy: u32,
}

impl Default for Pace {
    fn default() -> Self {
        Self { rows: FIRST_ROWS, busy: 0 }
    }
}

impl Pace {
    /// How many rows are to be forgotten next.
    pub(super) fn rows(self) -> usize {
        self.rows
    }

    /// Takes note that they took so long. Says how long to leave the store to others.
    pub(super) fn pause_after(&mut self, took: Duration) -> Duration {
        let is_busy = self.is_busy();
        self.busy = self.busy.saturating_sub(1);
        let hold = if is_busy { BUSY_HOLD } else { QUIET_HOLD };
        let fitting = self.rows as f64 * hold.as_secs_f64() / took.as_secs_f64().max(f64::MIN_POSITIVE);
        // A time that was short by chance does not make the next one long.
        self.rows = (fitting as usize).min(self.rows * 2).clamp(LEAST_ROWS, MOST_ROWS);
        if is_busy { pause_for_others(took) } else { took.mul_f64(QUIET_SHARE).max(SHORTEST_PAUSE) }
    }

    /// Somebody else was seen to write.
    pub(super) fn make_way(&mut self) {
        if !self.is_busy() {
            let share = BUSY_HOLD.div_duration_f64(QUIET_HOLD);
            self.rows = ((self.rows as f64 * share) as usize).max(LEAST_ROWS);
        }
        self.busy = BUSY_TIMES;
    }

    /// Whether somebody is expected who writes.
    pub(super) fn is_busy(self) -> bool {
        self.busy > 0
    }
}

/// How long the store is left to somebody who writes, after it was taken for so long.
pub(super) fn pause_for_others(took: Duration) -> Duration {
    took.mul_f64(BUSY_SHARE).max(SHORTEST_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A store that takes so long for a transaction and so many rows a second.
    struct Disk {
        transaction: Duration,
        rows_a_second: f64,
    }

    impl Disk {
        fn takes(&self, rows: usize) -> Duration {
            self.transaction + Duration::from_secs_f64(rows as f64 / self.rows_a_second)
        }
    }

    /// What came of so many times on `disk`: rows a second, the longest that the store was taken once the pace is found,
    /// and the share of the time for which it was.
    fn forgotten(disk: &Disk, others_write: bool) -> (f64, Duration, f64) {
        let mut pace = Pace::default();
        let mut once = || {
            let (rows, took) = (pace.rows(), disk.takes(pace.rows()));
            let pause = pace.pause_after(took);
            if others_write {
                pace.make_way();
            }
            (rows, took, pause)
        };
        for _ in 0..50 {
            once();
        }
        let (mut rows, mut held, mut longest, mut whole) = (0, Duration::ZERO, Duration::ZERO, Duration::ZERO);
        for _ in 0..500 {
            let (gone, took, pause) = once();
            rows += gone;
            (held, longest, whole) = (held + took, longest.max(took), whole + took + pause);
        }
        (rows as f64 / whole.as_secs_f64(), longest, held.div_duration_f64(whole))
    }

    #[test]
    fn what_is_old_goes_fast_while_nobody_writes_and_makes_way_where_somebody_does() {
        // As `cargo bench -p pintle-store --bench evidence` finds a disk, and one of half the speed.
        for rows_a_second in [200_000.0, 100_000.0] {
            let disk = Disk { transaction: Duration::from_micros(200), rows_a_second };
            let (quiet, longest, _) = forgotten(&disk, false);
            assert!(quiet >= 50_000.0, "{quiet} rows a second on a disk of {rows_a_second}");
            assert!(longest <= QUIET_HOLD.mul_f64(1.2), "{longest:?}");
            let (busy, longest, share) = forgotten(&disk, true);
            assert!(longest <= BUSY_HOLD.mul_f64(1.5), "{longest:?} while others wait");
            assert!(share <= 0.25, "the store is taken for {share} of the time");
            assert!(busy >= 10_000.0, "{busy} rows a second: nothing piles up");
        }
    }

    #[test]
    fn a_slow_disk_and_an_endless_fast_one_stay_within_bounds() {
        for (rows_a_second, rows) in [(100.0, LEAST_ROWS), (f64::MAX, MOST_ROWS)] {
            let disk = Disk { transaction: Duration::ZERO, rows_a_second };
            let mut pace = Pace::default();
            for _ in 0..50 {
                pace.pause_after(disk.takes(pace.rows()));
            }
            assert_eq!(pace.rows(), rows);
        }
    }

    #[test]
    fn whoever_wrote_is_expected_again_for_a_while() {
        let mut pace = Pace::default();
        let took = Duration::from_millis(2);
        assert_eq!(pace.pause_after(took), took / 2);
        let rows = pace.rows();
        pace.make_way();
        assert!(pace.rows() <= rows / 4, "the next time is short already");
        let expected = (0..).take_while(|_| pace.pause_after(took) == took * 4).count();
        assert_eq!(expected, BUSY_TIMES as usize);
        assert_eq!(pace.pause_after(Duration::ZERO), SHORTEST_PAUSE);
    }
}
