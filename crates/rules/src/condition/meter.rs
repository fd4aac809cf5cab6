//! What an evaluation has cost.

use std::time::{Duration, Instant};

use super::fault::{Bound, Fault};

/// The most that one evaluation may cost. One unit is a step of the evaluation, or 64 bytes that an operation looks at
/// or copies.
pub(super) const MAX_COST: u64 = 100_000;

/// How long one evaluation may take. The cost stops an expression earlier but on a starved machine.
pub(super) const MAX_TIME: Duration = Duration::from_millis(100);

/// How much may be spent between two looks at the clock: a look costs about as much as ten steps.
const LOOK_EVERY: u64 = 1_024;

/// How many bytes an operation that only looks or copies handles for one unit.
const BYTES_PER_UNIT: usize = 64;

/// How many items of a list or map are copied or looked at for one unit.
const ITEMS_PER_UNIT: usize = 4;

/// The most that an evaluation may spend.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) cost: u64,
    pub(super) time: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { cost: MAX_COST, time: MAX_TIME }
    }
}

/// Counts what an evaluation spends.
#[derive(Debug)]
pub(super) struct Meter {
    bounds: Bounds,
    left: u64,
    /// At how much left the clock is looked at next.
    look_at: u64,
    /// When the clock was first looked at. Most evaluations are over before.
    began: Option<Instant>,
}

impl Meter {
    pub(super) fn new(bounds: Bounds) -> Self {
        Self { bounds, left: bounds.cost, look_at: bounds.cost.saturating_sub(LOOK_EVERY), began: None }
    }

    /// Spends `units`, before the work is done.
    #[inline]
    pub(super) fn spend<'a>(&mut self, units: u64) -> Result<(), Fault<'a>> {
        let Some(left) = self.left.checked_sub(units) else {
            // What comes after an overrun must not find something left.
            self.left = 0;
            return Err(Fault::Bound(Bound::Cost(self.bounds.cost)));
        };
        self.left = left;
        if left < self.look_at { self.look() } else { Ok(()) }
    }

    /// Spends what it takes to look at or to copy so many bytes.
    pub(super) fn bytes<'a>(&mut self, bytes: usize) -> Result<(), Fault<'a>> {
        self.spend(1 + (bytes / BYTES_PER_UNIT) as u64)
    }

    /// Spends what it takes to look at or to copy so many items.
    pub(super) fn items<'a>(&mut self, items: usize) -> Result<(), Fault<'a>> {
        self.spend(1 + (items / ITEMS_PER_UNIT) as u64)
    }

    /// Looks at the clock after a long piece of work, if it has been looked at before.
    pub(super) fn look_again<'a>(&mut self) -> Result<(), Fault<'a>> {
        if self.began.is_some() { self.look() } else { Ok(()) }
    }

    #[cold]
    fn look<'a>(&mut self) -> Result<(), Fault<'a>> {
        self.look_at = self.left.saturating_sub(LOOK_EVERY);
        let began = *self.began.get_or_insert_with(Instant::now);
        if began.elapsed() < self.bounds.time {
            return Ok(());
        }
        Err(Fault::Bound(Bound::Time(self.bounds.time.as_millis())))
    }
}
