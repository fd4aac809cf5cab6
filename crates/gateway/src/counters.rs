//! What a gateway counts, for whoever scrapes: hooks, requests, turns.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use pintle_domain::id::TenantId;
use pintle_domain::measure::{Histogram, Labels, Measures, Metric, MetricRows};
use pintle_domain::record::{EventRecord, HookOutcome, NotRun};
use pintle_domain::span::of_hook;

use crate::outcome::RunOutcome;

/// The paths that are told apart; what else is asked for is one more.
const PATHS: [&str; 12] = [
    "/healthz",
    "/readyz",
    "/metrics",
    "/openapi.json",
    "/ws",
    "/v1/models",
    "/v1/chat/completions",
    "/v1/messages",
    "/v1/media",
    "/guard/v1",
    "/auth",
    "/door",
];

/// What is counted.
#[derive(Debug, Default)]
pub(crate) struct Counters(Mutex<Counted>);

#[derive(Debug, Default)]
struct Counted {
    hooks: Measures,
    /// By path and status.
    requests: BTreeMap<(&'static str, u16), u64>,
    durations: BTreeMap<&'static str, Histogram>,
    turns: BTreeMap<&'static str, u64>,
}

impl Counters {
    /// Hooks were asked, or told.
    pub(crate) fn hooks(&self, event: &EventRecord) {
        let mut counted = self.counted();
        for record in event.hooks.iter() {
            if record.outcome == HookOutcome::NotRun(NotRun::Dropped) {
                counted.hooks.drop_one(&event.who.tenant_id, record.family.word());
            }
            if let Some(span) = of_hook(event, &record, event.at) {
                counted.hooks.count(&span);
            }
        }
    }

    /// A request was answered.
    pub(crate) fn request(&self, path: &str, status: u16, took: Duration) {
        let path = known(path);
        let mut counted = self.counted();
        *counted.requests.entry((path, status)).or_default() += 1;
        counted.durations.entry(path).or_default().take(took);
    }

    /// A run came to an end.
    pub(crate) fn turn(&self, outcome: &RunOutcome) {
        let word = match outcome {
            RunOutcome::Completed(_) => "completed",
            RunOutcome::Failed(error) => match error.kind() {
                Some("hook_blocked") => "blocked",
                Some("hook_stopped") => "stopped",
                Some(_) | None => "failed",
            },
            RunOutcome::Cancelled => "cancelled",
            RunOutcome::Parked(_) => "parked",
            RunOutcome::Elsewhere(_) => "elsewhere",
        };
        *self.counted().turns.entry(word).or_default() += 1;
    }

    /// The numbers so far, and the tenants that had events.
    pub(crate) fn metrics(&self) -> (Vec<Metric>, Vec<TenantId>) {
        let counted = self.counted();
        let mut metrics = counted.hooks.metrics();
        let requests = counted.requests.iter().map(|((path, status), number)| {
            (vec![("path", (*path).to_owned()), ("status", status.to_string())], *number)
        });
        let durations =
            counted.durations.iter().map(|(path, spread)| (vec![("path", (*path).to_owned())], spread.clone()));
        let turns = counted.turns.iter().map(|(word, number)| (vec![("outcome", (*word).to_owned())], *number));
        metrics.extend([
            counter("gateway_requests_total", "How many requests were answered.", requests.collect()),
            Metric {
                name: "gateway_request_duration_ms",
                help: "How long it took until an answer began.",
                unit: "ms",
                rows: MetricRows::Histograms(durations.collect()),
            },
            counter("gateway_turns_total", "How many runs came to an end.", turns.collect()),
        ]);
        (metrics, counted.hooks.tenants().cloned().collect())
    }

    fn counted(&self) -> MutexGuard<'_, Counted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn counter(name: &'static str, help: &'static str, rows: Vec<(Labels, u64)>) -> Metric {
    Metric { name, help, unit: "1", rows: MetricRows::Counters(rows) }
}

/// A number as it is now.
pub(crate) fn gauge(name: &'static str, help: &'static str, number: usize) -> Metric {
    let number = i64::try_from(number).unwrap_or(i64::MAX);
    Metric { name, help, unit: "1", rows: MetricRows::Gauges(vec![(Labels::new(), number)]) }
}

/// The path under which a request is counted.
fn known(path: &str) -> &'static str {
    let fits = |known: &&&str| path == **known || path.strip_prefix(**known).is_some_and(|rest| rest.starts_with('/'));
    PATHS.iter().find(fits).copied().unwrap_or("other")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_nobody_knows_are_one() {
        assert_eq!(known("/v1/media/0123"), "/v1/media");
        assert_eq!(known("/v1/mediaX"), "other");
        assert_eq!(known("/"), "other");
        let counters = Counters::default();
        counters.request("/v1/models", 200, Duration::from_millis(3));
        counters.request("/x", 404, Duration::ZERO);
        counters.request("/y", 404, Duration::ZERO);
        let text = pintle_domain::measure::text(&counters.metrics().0);
        assert!(text.contains("gateway_requests_total{path=\"other\",status=\"404\"} 2"), "{text}");
        assert!(text.contains("gateway_request_duration_ms_bucket{path=\"/v1/models\",le=\"5\"} 1"), "{text}");
    }
}
