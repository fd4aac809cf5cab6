//! Lines of the log whose number others decide, such as whoever tries to come in: the first is told at once, then one a
//! minute with a count.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often a line is told: seen by whoever looks, and no flood.
const TOLD_EVERY: Duration = Duration::from_secs(60);

/// A line that is told rarely.
#[derive(Debug)]
pub(crate) struct RareLine(Mutex<Option<Told>>);

#[derive(Debug)]
struct Told {
    at: Instant,
    /// How often it was kept back since.
    kept: u64,
}

impl RareLine {
    pub(crate) const fn new() -> Self {
        Self(Mutex::new(None))
    }

    /// How often the line was kept back since it was told, if it is told at `now`.
    pub(crate) fn due(&self, now: Instant) -> Option<u64> {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = told.as_mut().filter(|last| now.saturating_duration_since(last.at) < TOLD_EVERY) {
            last.kept += 1;
            return None;
        }
        Some(told.replace(Told { at: now, kept: 0 }).map_or(0, |last| last.kept))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_told_once_a_minute_with_how_often_it_was_not() {
        let (line, began) = (RareLine::new(), Instant::now());
        let at = |ms: u64| began + Duration::from_millis(ms);
        let told: Vec<u64> = (0..=480).filter_map(|number| line.due(at(number * 250))).collect();
        assert_eq!(told, [0, 239, 239]);
        assert_eq!(line.due(at(600_000)), Some(0));
    }
}
