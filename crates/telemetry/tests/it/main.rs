//! The exporter and a collector on loopback.

#![cfg(test)]

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTracePartialSuccess, ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use pintle_domain::id::TenantId;
use pintle_domain::measure::{EVIDENCE_LOST, Labels, Metric, MetricRows, text};
use pintle_domain::span::{AttributeValue, Span, SpanKey, SpanStatus, SpanSubject, TraceKey};
use pintle_engine::Telemetry as _;
use pintle_telemetry::{CollectorSettings, Exporter, QUEUE_SPANS};
use pintle_testkit::http::{HttpStub, StubAnswer};
use prost::Message as _;
use tokio::task::yield_now;

fn span(number: usize) -> Span {
    let took = Duration::from_millis(3);
    Span {
        trace: TraceKey(7),
        key: SpanKey(number as u64 + 1),
        parent: Some(SpanKey(9)),
        name: "hook.native.stop".into(),
        start: Timestamp::from_second(1).unwrap(),
        end: Timestamp::from_second(2).unwrap(),
        status: SpanStatus::Error(Some("no".into())),
        about: SpanSubject::Hook {
            handler_type: "native",
            event: "stop",
            decision: "error",
            tenant: TenantId::default_tenant(),
            took,
        },
        attributes: vec![("retry", AttributeValue::Number(-1)), ("error", "no".into())],
    }
}

fn to(stub: &HttpStub) -> Arc<Exporter> {
    let settings = CollectorSettings::read(Some(&stub.url()), |_| None).unwrap().unwrap();
    Exporter::start(settings).unwrap()
}

/// The keys of the spans that arrived, request by request.
fn arrived(stub: &HttpStub) -> Vec<Vec<Span_>> {
    let requests = stub.seen().into_iter().filter(|request| request.line == "POST /v1/traces");
    let spans = requests.map(|request| {
        assert_eq!(request.header("content-type"), Some("application/x-protobuf"));
        let all = ExportTraceServiceRequest::decode(&*request.bytes).unwrap();
        all.resource_spans.into_iter().flat_map(|one| one.scope_spans).flat_map(|one| one.spans).collect()
    });
    spans.collect()
}

type Span_ = opentelemetry_proto::tonic::trace::v1::Span;

#[tokio::test]
async fn what_is_told_arrives_whole_at_the_end() {
    let stub = HttpStub::start(vec![StubAnswer::new(200, ""); 9]).await;
    let exporter = to(&stub);
    exporter.spans((0..600).map(span).collect());
    exporter.close().await;
    let batches = arrived(&stub);
    let keys: Vec<u64> =
        batches.iter().flatten().map(|span| u64::from_be_bytes(span.span_id.clone().try_into().unwrap())).collect();
    assert_eq!(keys, (1..=600).collect::<Vec<u64>>());
    assert!(batches.len() > 1 && batches.iter().all(|batch| batch.len() <= 512));
    let one = &batches[0][0];
    assert_eq!(
        (one.trace_id.clone(), one.parent_span_id.clone()),
        (7u128.to_be_bytes().to_vec(), 9u64.to_be_bytes().to_vec())
    );
    assert_eq!((one.start_time_unix_nano, one.end_time_unix_nano), (1_000_000_000, 2_000_000_000));
    assert_eq!((one.status.clone().unwrap().message.as_str(), one.attributes.len()), ("no", 2));
    assert_eq!(exporter.lost(), 0);
    // Whoever tells too late is not waited for, and counted.
    exporter.spans(vec![span(0)]);
    assert_eq!(exporter.lost(), 1);
}

#[tokio::test]
async fn more_than_there_is_room_for_is_lost_and_counted() {
    let stub = HttpStub::start(vec![StubAnswer::new(200, ""); 9]).await;
    let exporter = to(&stub);
    // Nothing is sent meanwhile: this task does not rest.
    exporter.spans((0..QUEUE_SPANS + 5).map(span).collect());
    assert_eq!(exporter.lost(), 5);
    exporter.close().await;
    assert_eq!((arrived(&stub).concat().len(), exporter.lost()), (QUEUE_SPANS, 5));
    let counted = format!("\nhooks_executions_total{{tenant_id=\"{}\",", TenantId::default_tenant());
    let text = text(&exporter.metrics());
    assert!(text.contains(&counted) && text.contains(&format!("}} {}\n", QUEUE_SPANS + 5)), "{text}");
    assert!(text.ends_with("\ntelemetry_spans_lost_total 5\n"), "{text}");
}

#[tokio::test]
async fn what_a_collector_refuses_is_lost_and_what_it_cannot_take_now_is_tried_again() {
    let partial = ExportTraceServiceResponse {
        partial_success: Some(ExportTracePartialSuccess { rejected_spans: 2, error_message: "too old".into() }),
    };
    let table = [
        // It takes some of them.
        (vec![StubAnswer::new(200, partial.encode_to_vec())], 1, 2),
        // It takes none, and never will.
        (vec![StubAnswer::new(400, "")], 1, 3),
        // It will.
        (vec![StubAnswer::new(503, ""), StubAnswer::new(200, "")], 2, 0),
        // What it says is nothing that anybody can read: it took the request.
        (vec![StubAnswer::new(200, "\u{ff}\u{0}not protobuf")], 1, 0),
    ];
    for (answers, requests, lost) in table {
        let stub = HttpStub::start([answers, vec![StubAnswer::new(200, "")]].concat()).await;
        let exporter = to(&stub);
        exporter.spans((0..3).map(span).collect());
        while stub.seen().len() < requests {
            yield_now().await;
        }
        exporter.close().await;
        assert_eq!((arrived(&stub).len(), exporter.lost()), (requests, lost));
    }
}

#[tokio::test]
async fn a_collector_that_says_nothing_holds_nobody_up() {
    let stub = HttpStub::start(vec![StubAnswer::silence(); 9]).await;
    let exporter = to(&stub);
    exporter.spans((0..3).map(span).collect());
    while stub.seen().is_empty() {
        yield_now().await;
    }
    // One batch is on its way, one waits.
    exporter.spans((3..5).map(span).collect());
    exporter.close().await;
    assert_eq!((exporter.lost(), arrived(&stub).len()), (5, 1));
}

#[tokio::test]
async fn a_host_in_which_nothing_happened_tells_nothing() {
    let stub = HttpStub::start(vec![StubAnswer::silence(); 9]).await;
    let exporter = to(&stub);
    exporter.close().await;
    assert_eq!((stub.seen().len(), exporter.lost()), (0, 0));
}

#[tokio::test]
async fn what_others_measure_is_told_too() {
    let stub = HttpStub::start(vec![StubAnswer::new(200, ""); 9]).await;
    let exporter = to(&stub);
    exporter.read_gauges(Arc::new(|tenants| {
        let rows = MetricRows::Counters(vec![(Labels::new(), tenants.len() as u64)]);
        vec![Metric { name: EVIDENCE_LOST, help: "Tenants.", unit: "1", rows }]
    }));
    exporter.spans(vec![span(0)]);
    exporter.dropped(&TenantId::from("b"), "http");
    let text = text(&exporter.metrics());
    assert!(text.ends_with("\nhooks_evidence_lost_total 2\n"), "{text}");
    exporter.close().await;
    let numbers = stub.seen().into_iter().filter(|request| request.line == "POST /v1/metrics").count();
    assert_eq!(numbers, 1);
}
