//! The numbers that are counted of hooks: how often they ran, how long they took, how many observers were not told.
//!
//! A set of numbers, told as [`Metric`]s: for a collector, or as text for whoever scrapes. Source: the published
//! list of metrics.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use crate::id::TenantId;
use crate::span::{Span, SpanSubject};

/// The upper bounds of the classes of durations, in milliseconds: from what a native hook takes to the longest deadline
/// that a hook can have.
pub const BOUNDS_MS: [f64; 13] =
    [1.0, 2.0, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1000.0, 2500.0, 10_000.0, 60_000.0];

/// The number of tenants that are told apart: each brings a row for every kind of handler, event and decision that it
/// has, and collectors give up at some thousands of rows. What comes after goes to the tenant [`OTHERS`].
pub const MAX_TENANTS: usize = 200;

/// The tenant of those that are not told apart.
pub const OTHERS: &str = "others";

/// The metric of the number of runs of hooks.
pub const EXECUTIONS: &str = "hooks_executions_total";
/// The metric of the time that the runs took.
pub const DURATION: &str = "hooks_duration_ms";
/// The metric of observers that were not told, for want of room.
pub const ASYNC_DROPPED: &str = "hooks_async_dropped_total";
/// The metric of records and rows that the store did not take.
pub const EVIDENCE_LOST: &str = "hooks_evidence_lost_total";
/// The metric of circuit breakers that are open.
pub const BREAKERS_OPEN: &str = "hooks_breakers_open";
/// The metric of the tokens that are left for judges.
pub const BUDGET_LEFT: &str = "hooks_budget_left_tokens";

/// The labels of one row, each name with its value.
pub type Labels = Vec<(&'static str, String)>;

/// Several rows of numbers of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// Its name.
    pub name: &'static str,
    /// The meaning of the metric, in a sentence.
    pub help: &'static str,
    /// The unit; `1` for plain numbers.
    pub unit: &'static str,
    /// The rows.
    pub rows: MetricRows,
}

impl Metric {
    /// Without the rows about other tenants than `tenant`.
    #[must_use]
    pub fn seen_by(mut self, tenant: &str) -> Self {
        fn keep<T>(rows: &mut Vec<(Labels, T)>, tenant: &str) {
            let is_others = |(name, value): &(&str, String)| *name == "tenant_id" && value != tenant;
            rows.retain(|(labels, _)| !labels.iter().any(is_others));
        }
        match &mut self.rows {
            MetricRows::Counters(rows) => keep(rows, tenant),
            MetricRows::Gauges(rows) => keep(rows, tenant),
            MetricRows::Histograms(rows) => keep(rows, tenant),
        }
        self
    }
}

/// The rows of a metric.
#[derive(Clone, Debug, PartialEq)]
pub enum MetricRows {
    /// They only grow while the process lives.
    Counters(Vec<(Labels, u64)>),
    /// As it is now.
    Gauges(Vec<(Labels, i64)>),
    /// The spread of values.
    Histograms(Vec<(Labels, Histogram)>),
}

/// The spread of durations over the classes of [`BOUNDS_MS`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Histogram {
    /// The number of durations in each class; the last one has no upper bound.
    pub classes: [u64; BOUNDS_MS.len() + 1],
    /// All of them together, in milliseconds.
    pub sum_ms: f64,
}

impl Histogram {
    /// One more.
    pub fn take(&mut self, took: Duration) {
        let took_ms = took.as_secs_f64() * 1000.0;
        let class = BOUNDS_MS.iter().position(|bound| took_ms <= *bound).unwrap_or(BOUNDS_MS.len());
        self.classes[class] += 1;
        self.sum_ms += took_ms;
    }

    /// The number of durations.
    pub fn count(&self) -> u64 {
        self.classes.iter().sum()
    }
}

/// The numbers of one process.
#[derive(Clone, Debug, Default)]
pub struct Measures {
    tenants: BTreeMap<TenantId, ()>,
    executions: BTreeMap<Ran, u64>,
    durations: BTreeMap<Kind, Histogram>,
    dropped: BTreeMap<Dropped, u64>,
}

/// The tenant, how the hook is run, at which event.
type Kind = (String, &'static str, &'static str);
/// The labels of a run, and its decision.
type Ran = (String, &'static str, &'static str, &'static str);
/// The tenant, and how the hook is run.
type Dropped = (String, &'static str);

impl Measures {
    /// Counts what `span` tells of; turns and calls are not counted.
    pub fn count(&mut self, span: &Span) {
        let SpanSubject::Hook { handler_type, event, decision, tenant, took } = &span.about else { return };
        let tenant = self.tenant(tenant);
        *self.executions.entry((tenant.clone(), *handler_type, *event, *decision)).or_default() += 1;
        self.durations.entry((tenant, *handler_type, *event)).or_default().take(*took);
    }

    /// An observer of `tenant` was not told.
    pub fn drop_one(&mut self, tenant: &TenantId, handler_type: &'static str) {
        let tenant = self.tenant(tenant);
        *self.dropped.entry((tenant, handler_type)).or_default() += 1;
    }

    fn tenant(&mut self, tenant: &TenantId) -> String {
        if !self.tenants.contains_key(tenant) {
            if self.tenants.len() >= MAX_TENANTS {
                return OTHERS.to_owned();
            }
            self.tenants.insert(tenant.clone(), ());
        }
        tenant.to_string()
    }

    /// The tenants that are told apart.
    pub fn tenants(&self) -> impl Iterator<Item = &TenantId> {
        self.tenants.keys()
    }

    /// The numbers as they are. Drops are told from the first look on, though there be none.
    pub fn metrics(&self) -> Vec<Metric> {
        let kind = |tenant: &str, handler_type: &str, event: &str| -> Labels {
            vec![
                ("tenant_id", tenant.to_owned()),
                ("handler_type", handler_type.to_owned()),
                ("event", event.to_owned()),
            ]
        };
        let executions = self.executions.iter().map(|((tenant, handler_type, event, decision), number)| {
            let mut labels = kind(tenant, handler_type, event);
            labels.push(("decision", (*decision).to_owned()));
            (labels, *number)
        });
        let durations = self
            .durations
            .iter()
            .map(|((tenant, handler_type, event), spread)| (kind(tenant, handler_type, event), spread.clone()));
        let mut dropped: Vec<(Labels, u64)> = self
            .dropped
            .iter()
            .map(|((tenant, handler_type), number)| {
                (vec![("tenant_id", tenant.clone()), ("handler_type", (*handler_type).to_owned())], *number)
            })
            .collect();
        if dropped.is_empty() {
            dropped.push((Labels::new(), 0));
        }
        vec![
            Metric {
                name: EXECUTIONS,
                help: "How often hooks ran.",
                unit: "1",
                rows: MetricRows::Counters(executions.collect()),
            },
            Metric {
                name: DURATION,
                help: "How long hooks took.",
                unit: "ms",
                rows: MetricRows::Histograms(durations.collect()),
            },
            Metric {
                name: ASYNC_DROPPED,
                help: "How many observers were not told, for want of room.",
                unit: "1",
                rows: MetricRows::Counters(dropped),
            },
        ]
    }
}

/// `metrics` in the text format that Prometheus scrapes, version 0.0.4.
pub fn text(metrics: &[Metric]) -> String {
    let mut out = String::new();
    for Metric { name, help, rows, .. } in metrics {
        let kind = match rows {
            MetricRows::Counters(_) => "counter",
            MetricRows::Gauges(_) => "gauge",
            MetricRows::Histograms(_) => "histogram",
        };
        line(&mut out, format_args!("# HELP {name} {help}"));
        line(&mut out, format_args!("# TYPE {name} {kind}"));
        match rows {
            MetricRows::Counters(rows) => {
                rows.iter()
                    .for_each(|(labels, number)| line(&mut out, format_args!("{name}{} {number}", braced(labels))));
            }
            MetricRows::Gauges(rows) => {
                rows.iter()
                    .for_each(|(labels, number)| line(&mut out, format_args!("{name}{} {number}", braced(labels))));
            }
            MetricRows::Histograms(rows) => {
                rows.iter().for_each(|(labels, spread)| spread_out(&mut out, (name, labels), spread))
            }
        }
    }
    out
}

fn spread_out(out: &mut String, (name, labels): (&str, &Labels), spread: &Histogram) {
    let bounds = BOUNDS_MS.iter().map(ToString::to_string).chain(["+Inf".to_owned()]);
    let mut so_far = 0;
    for (bound, number) in bounds.zip(spread.classes) {
        so_far += number;
        let mut labels = labels.clone();
        labels.push(("le", bound));
        line(out, format_args!("{name}_bucket{} {so_far}", braced(&labels)));
    }
    line(out, format_args!("{name}_sum{} {}", braced(labels), spread.sum_ms));
    line(out, format_args!("{name}_count{} {so_far}", braced(labels)));
}

fn line(out: &mut String, text: std::fmt::Arguments<'_>) {
    writeln!(out, "{text}").expect("a text in memory takes every line");
}

fn braced(labels: &Labels) -> String {
    let escaped = |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let pairs: Vec<String> = labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
    if pairs.is_empty() { String::new() } else { format!("{{{}}}", pairs.join(",")) }
}

#[cfg(test)]
mod tests;
