//! Times against floors.

use std::time::Duration;

use crate::report::{Report, shown};

/// What a figure has to keep to.
#[derive(Clone, Copy)]
pub(crate) enum Target {
    /// The time against the floor's time.
    RatioAtMost(f64),
    /// The throughput against the floor's throughput.
    ThroughputAtLeast(f64),
}

impl Report {
    /// A time that is compared with a floor's.
    pub(crate) fn against(&mut self, what: &str, [ours, floor]: [Duration; 2], target: Target) {
        let slower = ours.as_secs_f64() / floor.as_secs_f64();
        let (ratio, wanted, holds) = match target {
            Target::RatioAtMost(limit) => (slower, format!("<= {limit}"), slower <= limit),
            Target::ThroughputAtLeast(limit) => (slower.recip(), format!(">= {limit}"), slower.recip() >= limit),
        };
        self.row(what, [shown(ours), shown(floor), format!("{ratio:.2}"), wanted], Some(holds));
    }
}
