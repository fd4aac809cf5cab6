//! Spans in, numbers out.

use jiff::Timestamp;

use super::*;
use crate::span::{SpanKey, SpanStatus, TraceKey};

fn span(tenant: &str, decision: &'static str, took_ms: u64) -> Span {
    let (handler_type, event, took) = ("command", "pre_tool_use", Duration::from_millis(took_ms));
    Span {
        trace: TraceKey(1),
        key: SpanKey(1),
        parent: None,
        name: String::new(),
        start: Timestamp::UNIX_EPOCH,
        end: Timestamp::UNIX_EPOCH,
        status: SpanStatus::Completed,
        about: SpanSubject::Hook { handler_type, event, decision, tenant: TenantId::from(tenant), took },
        attributes: Vec::new(),
    }
}

#[test]
fn numbers_are_told_as_prometheus_reads_them() {
    let mut measures = Measures::default();
    measures.count(&span("a", "allow", 1));
    measures.count(&span("a", "allow", 3));
    measures.count(&span("a", "block", 70_000));
    measures.count(&Span { about: SpanSubject::Turn, ..span("a", "allow", 1) });
    measures.drop_one(&TenantId::from("b\"\\\n"), "http");
    let expected = "\
# HELP hooks_executions_total How often hooks ran.
# TYPE hooks_executions_total counter
hooks_executions_total{tenant_id=\"a\",handler_type=\"command\",event=\"pre_tool_use\",decision=\"allow\"} 2
hooks_executions_total{tenant_id=\"a\",handler_type=\"command\",event=\"pre_tool_use\",decision=\"block\"} 1
# HELP hooks_duration_ms How long hooks took.
# TYPE hooks_duration_ms histogram
";
    let text = text(&measures.metrics());
    assert!(text.starts_with(expected), "{text}");
    for line in [
        "_bucket{tenant_id=\"a\",handler_type=\"command\",event=\"pre_tool_use\",le=\"1\"} 1",
        "_bucket{tenant_id=\"a\",handler_type=\"command\",event=\"pre_tool_use\",le=\"2\"} 1",
        "_bucket{tenant_id=\"a\",handler_type=\"command\",event=\"pre_tool_use\",le=\"60000\"} 2",
        "_bucket{tenant_id=\"a\",handler_type=\"command\",event=\"pre_tool_use\",le=\"+Inf\"} 3",
        "_sum{tenant_id=\"a\",handler_type=\"command\",event=\"pre_tool_use\"} 70004",
        "_count{tenant_id=\"a\",handler_type=\"command\",event=\"pre_tool_use\"} 3",
    ] {
        assert!(text.contains(&format!("\nhooks_duration_ms{line}\n")), "{line} in {text}");
    }
    assert!(
        text.ends_with("hooks_async_dropped_total{tenant_id=\"b\\\"\\\\\\n\",handler_type=\"http\"} 1\n"),
        "{text}"
    );
}

#[test]
fn that_nothing_was_dropped_is_told_too() {
    let text = text(&Measures::default().metrics());
    assert!(text.ends_with("# TYPE hooks_async_dropped_total counter\nhooks_async_dropped_total 0\n"), "{text}");
    let gauge =
        Metric { name: BREAKERS_OPEN, help: "Open.", unit: "1", rows: MetricRows::Gauges(vec![(Labels::new(), -1)]) };
    let expected = "# HELP hooks_breakers_open Open.\n# TYPE hooks_breakers_open gauge\nhooks_breakers_open -1\n";
    assert_eq!(super::text(&[gauge]), expected);
}

#[test]
fn a_tenant_sees_its_own_rows_and_those_of_nobody() {
    let of = |tenant: &str| -> Labels { vec![("tenant_id", tenant.to_owned())] };
    let rows = MetricRows::Gauges(vec![(of("a"), 1), (of("b"), 2), (of(OTHERS), 3), (Labels::new(), 4)]);
    let seen = Metric { name: BREAKERS_OPEN, help: "Open.", unit: "1", rows }.seen_by("a");
    assert_eq!(seen.rows, MetricRows::Gauges(vec![(of("a"), 1), (Labels::new(), 4)]));
}

#[test]
fn a_flood_of_tenants_makes_no_flood_of_rows() {
    let mut measures = Measures::default();
    for number in 0..MAX_TENANTS + 5 {
        measures.count(&span(&format!("t{number}"), "allow", 1));
    }
    assert_eq!(measures.tenants().count(), MAX_TENANTS);
    let metrics = measures.metrics();
    let MetricRows::Counters(rows) = &metrics[0].rows else { panic!("executions are counted") };
    assert_eq!(rows.len(), MAX_TENANTS + 1);
    let others = rows.iter().find(|(labels, _)| labels[0].1 == OTHERS);
    assert_eq!(others.map(|(_, number)| *number), Some(5));
}
