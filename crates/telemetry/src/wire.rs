//! Spans and numbers in the words of OTLP.

use jiff::Timestamp;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1 as metrics;
use opentelemetry_proto::tonic::resource::v1::Resource;
use opentelemetry_proto::tonic::trace::v1 as trace;
use pintle_domain::measure::{BOUNDS_MS, Histogram, Labels, Metric, MetricRows};
use pintle_domain::span::{AttributeValue, Span, SpanStatus, SpanSubject};

/// Who measured, in the words of OTLP.
const SCOPE: &str = "pintle.hooks";

/// The request that brings `spans` of the program `service`.
pub(crate) fn traces(service: &str, spans: &[Span]) -> ExportTraceServiceRequest {
    ExportTraceServiceRequest {
        resource_spans: vec![trace::ResourceSpans {
            resource: Some(resource(service)),
            scope_spans: vec![trace::ScopeSpans {
                scope: Some(scope()),
                spans: spans.iter().map(span).collect(),
                schema_url: String::new(),
            }],
            schema_url: String::new(),
        }],
    }
}

/// The request that brings `numbers` of the program `service`, which counts since `start`.
pub(crate) fn numbers(
    service: &str,
    numbers: &[Metric],
    (start, now): (Timestamp, Timestamp),
) -> ExportMetricsServiceRequest {
    let between = (nanos(start), nanos(now));
    ExportMetricsServiceRequest {
        resource_metrics: vec![metrics::ResourceMetrics {
            resource: Some(resource(service)),
            scope_metrics: vec![metrics::ScopeMetrics {
                scope: Some(scope()),
                metrics: numbers.iter().map(|one| metric(one, between)).collect(),
                schema_url: String::new(),
            }],
            schema_url: String::new(),
        }],
    }
}

fn resource(service: &str) -> Resource {
    let attributes = vec![
        attribute("service.name", &AttributeValue::Text(service.to_owned())),
        attribute("service.version", &AttributeValue::Text(env!("CARGO_PKG_VERSION").to_owned())),
    ];
    Resource { attributes, ..Resource::default() }
}

fn scope() -> InstrumentationScope {
    InstrumentationScope {
        name: SCOPE.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        ..InstrumentationScope::default()
    }
}

fn span(span: &Span) -> trace::Span {
    let kind = match span.about {
        SpanSubject::Turn | SpanSubject::Call | SpanSubject::Hook { .. } => trace::span::SpanKind::Internal,
    };
    trace::Span {
        trace_id: span.trace.0.to_be_bytes().to_vec(),
        span_id: span.key.0.to_be_bytes().to_vec(),
        parent_span_id: span.parent.map(|parent| parent.0.to_be_bytes().to_vec()).unwrap_or_default(),
        name: span.name.clone(),
        kind: kind.into(),
        start_time_unix_nano: nanos(span.start),
        end_time_unix_nano: nanos(span.end),
        attributes: span.attributes.iter().map(|(name, value)| attribute(name, value)).collect(),
        status: Some(status(&span.status)),
        ..trace::Span::default()
    }
}

fn status(status: &SpanStatus) -> trace::Status {
    let (code, message) = match status {
        // Only a person may say that something is well; what went as it should is left unset. Source: OpenTelemetry,
        // set status.
        SpanStatus::Completed | SpanStatus::Open(_) => (trace::status::StatusCode::Unset, String::new()),
        SpanStatus::Error(why) => (trace::status::StatusCode::Error, why.clone().unwrap_or_default()),
    };
    trace::Status { code: code.into(), message }
}

fn metric(metric: &Metric, between: (u64, u64)) -> metrics::Metric {
    let data = match &metric.rows {
        MetricRows::Counters(rows) => metrics::metric::Data::Sum(metrics::Sum {
            data_points: rows.iter().map(|(labels, number)| point(labels, whole(*number), between)).collect(),
            aggregation_temporality: metrics::AggregationTemporality::Cumulative.into(),
            is_monotonic: true,
        }),
        MetricRows::Gauges(rows) => metrics::metric::Data::Gauge(metrics::Gauge {
            data_points: rows.iter().map(|(labels, number)| point(labels, *number, (0, between.1))).collect(),
        }),
        MetricRows::Histograms(rows) => metrics::metric::Data::Histogram(metrics::Histogram {
            data_points: rows.iter().map(|(labels, spread)| spread_out(labels, spread, between)).collect(),
            aggregation_temporality: metrics::AggregationTemporality::Cumulative.into(),
        }),
    };
    metrics::Metric {
        name: metric.name.to_owned(),
        description: metric.help.to_owned(),
        unit: metric.unit.to_owned(),
        data: Some(data),
        ..metrics::Metric::default()
    }
}

fn point(labels: &Labels, number: i64, (start, now): (u64, u64)) -> metrics::NumberDataPoint {
    metrics::NumberDataPoint {
        attributes: labelled(labels),
        start_time_unix_nano: start,
        time_unix_nano: now,
        value: Some(metrics::number_data_point::Value::AsInt(number)),
        ..metrics::NumberDataPoint::default()
    }
}

fn spread_out(labels: &Labels, spread: &Histogram, (start, now): (u64, u64)) -> metrics::HistogramDataPoint {
    metrics::HistogramDataPoint {
        attributes: labelled(labels),
        start_time_unix_nano: start,
        time_unix_nano: now,
        count: spread.count(),
        sum: Some(spread.sum_ms),
        bucket_counts: spread.classes.to_vec(),
        explicit_bounds: BOUNDS_MS.to_vec(),
        ..metrics::HistogramDataPoint::default()
    }
}

fn labelled(labels: &Labels) -> Vec<KeyValue> {
    labels.iter().map(|(name, value)| attribute(name, &AttributeValue::Text(value.clone()))).collect()
}

fn attribute(name: &str, value: &AttributeValue) -> KeyValue {
    let value = match value {
        AttributeValue::Text(text) => any_value::Value::StringValue(text.clone()),
        AttributeValue::Number(number) => any_value::Value::IntValue(*number),
    };
    KeyValue { key: name.to_owned(), value: Some(AnyValue { value: Some(value) }), ..KeyValue::default() }
}

fn whole(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Nanoseconds since 1970; none before.
fn nanos(moment: Timestamp) -> u64 {
    u64::try_from(moment.as_nanosecond()).unwrap_or_default()
}
