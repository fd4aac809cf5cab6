//! What hooks cost: how often each ran of late, and how long it took.

use std::collections::BTreeMap;

use pintle_domain::fault::FaultKind;
use pintle_domain::store::StoredRecord;
use serde::Serialize;

/// The time that one hook took at one checkpoint, over the newest events.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HookTiming {
    /// Which hook.
    pub hook: String,
    /// The checkpoint's name.
    pub checkpoint: String,
    /// How often it ran there.
    pub runs: usize,
    /// Half of its runs took at most this long; absent where it is only told and nobody waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p50_ms: Option<f64>,
    /// Nineteen of twenty runs took at most this long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p95_ms: Option<f64>,
    /// When it ran last: RFC 3339, UTC.
    pub last_run: String,
}

/// Gathers the runs of hooks.
#[derive(Default)]
pub(crate) struct Timings(BTreeMap<(String, String), Runs>);

#[derive(Default)]
struct Runs {
    count: usize,
    took_ms: Vec<f64>,
    last: String,
}

impl Timings {
    /// Takes in the hooks of one event. One that could not start cost nothing: it never ran. RFC 3339 in UTC sorts as
    /// text up to the second, which is enough for "last".
    pub(crate) fn add(&mut self, at: &str, hooks: Vec<StoredRecord>) {
        let never_started = FaultKind::CannotStart.word();
        let ran = |hook: &StoredRecord| hook.ran && hook.fault.as_deref() != Some(never_started);
        for hook in hooks.into_iter().filter(ran) {
            let runs = self.0.entry((hook.hook, hook.checkpoint)).or_default();
            runs.count += 1;
            runs.took_ms.extend(hook.duration_ms);
            if runs.last.as_str() < at {
                at.clone_into(&mut runs.last);
            }
        }
    }

    /// One line for each hook and checkpoint, by name.
    pub(crate) fn finish(self) -> Vec<HookTiming> {
        self.0.into_iter().map(|((hook, checkpoint), runs)| runs.line(hook, checkpoint)).collect()
    }
}

impl Runs {
    fn line(mut self, hook: String, checkpoint: String) -> HookTiming {
        self.took_ms.sort_by(f64::total_cmp);
        HookTiming {
            hook,
            checkpoint,
            runs: self.count,
            p50_ms: percentile(&self.took_ms, 50),
            p95_ms: percentile(&self.took_ms, 95),
            last_run: self.last,
        }
    }
}

/// The nearest-rank percentile of `sorted`.
fn percentile(sorted: &[f64], percent: usize) -> Option<f64> {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.checked_sub(1)?).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(hook: &str, took: Option<f64>) -> StoredRecord {
        StoredRecord {
            hook: hook.into(),
            checkpoint: "pre_tool_use".into(),
            ran: true,
            duration_ms: took,
            ..StoredRecord::default()
        }
    }

    #[test]
    fn percentiles_are_values_that_occurred() {
        let hundred: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!(percentile(&hundred, 50), Some(50.0));
        assert_eq!(percentile(&hundred, 95), Some(95.0));
        assert_eq!(percentile(&[7.5], 95), Some(7.5));
        assert_eq!(percentile(&[], 50), None);
    }

    #[test]
    fn only_runs_count_and_told_hooks_have_no_percentile() {
        let mut timings = Timings::default();
        timings.add("2026-01-02T00:00:00Z", vec![ran("a", Some(3.0)), StoredRecord { ran: false, ..ran("b", None) }]);
        timings.add("2026-01-01T00:00:00Z", vec![ran("a", Some(1.0)), ran("told", None)]);
        let failed = |fault: &str| StoredRecord { fault: Some(fault.into()), ..ran("failed", Some(9.0)) };
        timings.add("2026-01-03T00:00:00Z", vec![failed("cannot_start"), failed("timed_out")]);
        let line = |hook: &str, runs, p50_ms, p95_ms, last: &str| HookTiming {
            hook: hook.into(),
            checkpoint: "pre_tool_use".into(),
            runs,
            p50_ms,
            p95_ms,
            last_run: last.into(),
        };
        assert_eq!(
            timings.finish(),
            [
                line("a", 2, Some(1.0), Some(3.0), "2026-01-02T00:00:00Z"),
                line("failed", 1, Some(9.0), Some(9.0), "2026-01-03T00:00:00Z"),
                line("told", 1, None, None, "2026-01-01T00:00:00Z"),
            ]
        );
    }
}
