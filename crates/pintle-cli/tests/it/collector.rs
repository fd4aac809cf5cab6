//! What a collector is told of whole turns of the real program.

use std::collections::{BTreeMap, BTreeSet};

use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::metrics::v1::{metric, number_data_point};
use opentelemetry_proto::tonic::trace::v1::Span;
use pintle_domain::json::json;
use pintle_testkit::http::{HttpStub, ReceivedRequest as Request, StubAnswer};
use prost::Message as _;
use tokio::runtime::Runtime;

use crate::env::{PINTLE, Seen, TestEnv};
use crate::rules_in_turns::stage::{Model, calls, command, says};

/// More answers than a test needs.
const ANSWERS: usize = 20;

/// A collector on loopback that says the same to everything.
struct Collector {
    stub: HttpStub,
    /// What it runs on.
    _runtime: Runtime,
}

impl Collector {
    fn saying(answer: &StubAnswer) -> Self {
        let runtime = Runtime::new().unwrap();
        Self { stub: runtime.block_on(HttpStub::start(vec![answer.clone(); ANSWERS])), _runtime: runtime }
    }

    fn requests(&self, line: &str) -> Vec<Request> {
        self.stub.seen().into_iter().filter(|request| request.line == line).collect()
    }

    fn spans(&self) -> Vec<Span> {
        let requests = self.requests("POST /v1/traces");
        let decoded = requests.iter().map(|one| ExportTraceServiceRequest::decode(&*one.bytes).unwrap());
        decoded.flat_map(|all| all.resource_spans).flat_map(|one| one.scope_spans).flat_map(|one| one.spans).collect()
    }

    /// The last number of each metric, with its labels but the tenant's.
    fn numbers(&self) -> BTreeMap<String, i64> {
        let requests = self.requests("POST /v1/metrics");
        let last = ExportMetricsServiceRequest::decode(&*requests.last().unwrap().bytes).unwrap();
        let metrics = last.resource_metrics.into_iter().flat_map(|one| one.scope_metrics).flat_map(|one| one.metrics);
        let mut numbers = BTreeMap::new();
        for one in metrics {
            let mut put = |labels: &[KeyValue], number: i64| {
                let labels = texts(labels).into_iter().filter(|(name, _)| name != "tenant_id");
                let labels: Vec<String> = labels.map(|(_, value)| value).collect();
                numbers.insert(format!("{} {}", one.name, labels.join(" ")).trim_end().to_owned(), number);
            };
            match one.data.unwrap() {
                metric::Data::Sum(metric) => {
                    assert!(metric.is_monotonic);
                    metric.data_points.iter().for_each(|point| put(&point.attributes, int(point.value)));
                }
                metric::Data::Gauge(metric) => {
                    metric.data_points.iter().for_each(|point| put(&point.attributes, int(point.value)));
                }
                metric::Data::Histogram(metric) => {
                    for point in metric.data_points {
                        assert_eq!(point.bucket_counts.len(), point.explicit_bounds.len() + 1);
                        assert_eq!(point.bucket_counts.iter().sum::<u64>(), point.count);
                        put(&point.attributes, i64::try_from(point.count).unwrap());
                    }
                }
                metric::Data::ExponentialHistogram(_) | metric::Data::Summary(_) => panic!("nobody sends those"),
            }
        }
        numbers
    }
}

fn int(value: Option<number_data_point::Value>) -> i64 {
    let Some(number_data_point::Value::AsInt(number)) = value else { panic!("{value:?} is not a whole number") };
    number
}

fn texts(attributes: &[KeyValue]) -> BTreeMap<String, String> {
    let text = |one: &KeyValue| {
        let value = one.value.clone().unwrap().value.unwrap();
        if let any_value::Value::IntValue(number) = value {
            return number.to_string();
        }
        let any_value::Value::StringValue(text) = value else { panic!("{value:?} is not a value of ours") };
        text
    };
    attributes.iter().map(|one| (one.key.clone(), text(one))).collect()
}

/// An agent with a guard that lets `exec` pass unless its command is wrong, and an observer that fails.
fn guarded(model: &Model, collector: &str) -> TestEnv {
    let guard = "if grep -q wrong; then echo 'ask ann@example.org first' >&2; exit 2; fi; env >>env.txt";
    let rules = [
        command("guard", "pre_tool_use", "", guard),
        command("watcher", "post_tool_use", "", "cat >/dev/null; echo 'no key sk-12345678' >&2; exit 1"),
    ];
    model.env(
        &format!("default = true\ntools = ['exec']\n[telemetry]\notlp_endpoint = '{collector}'\n"),
        &rules.concat(),
    )
}

fn two_calls() -> Model {
    let calls =
        calls(&[("c1", "exec", json!({"command": "echo hi"})), ("c2", "exec", json!({"command": "echo wrong"}))]);
    Model::giving(vec![calls, says("All done.")])
}

fn turn(env: &TestEnv, vars: &[(&str, &str)]) -> Seen {
    let mut program = env.command(PINTLE);
    program.args(["run", "--quiet", "--session", "s", "go"]).envs(vars.iter().copied());
    env.run(&mut program, "")
}

/// Its name, those of what it stands below, and what its attributes `names` say.
fn shown(span: &Span, all: &[Span], names: &[&str]) -> String {
    let above = |span: &Span| all.iter().find(|one| one.span_id == span.parent_span_id);
    let mut path = vec![span.name.as_str()];
    let mut at = span;
    while let Some(parent) = above(at) {
        path.push(&parent.name);
        at = parent;
    }
    assert!(at.parent_span_id.is_empty(), "the parent of `{}` was never told", at.name);
    let attributes = texts(&span.attributes);
    let said: Vec<&str> = names.iter().filter_map(|name| attributes.get(*name)).map(String::as_str).collect();
    format!("{}: {}", path.join(" < "), said.join(", "))
}

#[test]
fn a_turn_is_told_as_one_trace_of_turn_calls_and_hooks() {
    let (collector, model) = (Collector::saying(&StubAnswer::new(200, "")), two_calls());
    let env = guarded(&model, &format!("{}/", collector.stub.url()));
    let seen = turn(&env, &[("OTEL_EXPORTER_OTLP_HEADERS", "x-key=s3cret%20word"), ("OTEL_SERVICE_NAME", "bot")]);
    assert_eq!((seen.code, seen.out.as_str()), (Some(0), "All done.\n"), "{seen}");

    let spans = collector.spans();
    let names = ["status", "tool_call_id", "metadata.decision", "reason", "error"];
    let mut all: Vec<String> = spans.iter().map(|span| shown(span, &spans, &names)).collect();
    all.sort();
    let expected = [
        "hook.command.post_tool_use < tool_call < turn: error, c1, error, exited with status 1",
        "hook.command.pre_tool_use < tool_call < turn: completed, c1, allow",
        "hook.command.pre_tool_use < tool_call < turn: completed, c2, block, ask [REDACTED] first",
        "tool_call < turn: completed, c1",
        "tool_call < turn: skipped, c2, Hook blocked: pre_tool_use: guard: ask [REDACTED] first",
        "turn: completed",
    ];
    assert_eq!(all, expected);
    let traces: BTreeSet<_> = spans.iter().map(|span| span.trace_id.clone()).collect();
    assert_eq!((traces.len(), traces.first().map(Vec::len)), (1, Some(16)));
    for span in &spans {
        assert!(span.start_time_unix_nano <= span.end_time_unix_nano, "{}", span.name);
        // 2 is an error, 0 is nothing of the kind. Source: OTLP, status codes.
        let code = if span.name.contains("post_tool_use") { 2 } else { 0 };
        assert_eq!(span.status.as_ref().unwrap().code, code, "{}", span.name);
        let said = texts(&span.attributes);
        assert!(said["duration_ms"].parse::<u64>().is_ok() && !said["tenant_id"].is_empty());
        assert_eq!((said["session_id"].as_str(), said["agent_id"].as_str()), ("s", "main"));
        assert_eq!(said.contains_key("hook_id"), span.name.starts_with("hook."), "{}", span.name);
    }
    let numbers = collector.numbers();
    let expected = [
        ("hooks_async_dropped_total", 0),
        ("hooks_breakers_open others", 0),
        ("hooks_duration_ms post_tool_use command", 1),
        ("hooks_duration_ms pre_tool_use command", 2),
        ("hooks_evidence_lost_total", 0),
        ("hooks_executions_total allow pre_tool_use command", 1),
        ("hooks_executions_total block pre_tool_use command", 1),
        ("hooks_executions_total error post_tool_use command", 1),
        ("telemetry_spans_lost_total", 0),
    ];
    for (name, number) in expected {
        let found = numbers.get(name).or_else(|| numbers.get(name.trim_end_matches(" others")));
        assert_eq!(found, Some(&number), "{name} in {numbers:?}");
    }
    assert!(numbers["hooks_budget_left_tokens"] > 0, "{numbers:?}");

    // The header is for the collector, and for nobody else.
    for request in collector.stub.seen() {
        assert_eq!(request.header("x-key"), Some("s3cret word"));
        let text = String::from_utf8_lossy(&request.bytes).into_owned();
        assert!(text.contains("bot") && !text.contains("s3cret") && !text.contains("12345678"), "{text}");
    }
    let of_the_hook = std::fs::read_to_string(env.path("here/env.txt")).unwrap();
    assert!(of_the_hook.contains("PATH=") && !of_the_hook.contains("OTEL_EXPORTER_OTLP_HEADERS"), "{of_the_hook}");
}

#[test]
fn a_collector_that_never_answers_or_is_gone_costs_no_turn_and_the_loss_is_told() {
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let silent = Collector::saying(&StubAnswer::silence());
    let refusing = Collector::saying(&StubAnswer::new(401, "who are you"));
    for (address, why) in [
        (silent.stub.url(), "it did not answer before the end"),
        (format!("http://{gone}"), "Connection refused (os error 111)"),
        (refusing.stub.url(), "it answered 401"),
    ] {
        let model = two_calls();
        let env = guarded(&model, "http://localhost:1");
        // The variable goes before the configuration.
        let seen = turn(&env, &[("OTEL_EXPORTER_OTLP_ENDPOINT", &address), ("OTEL_EXPORTER_OTLP_HEADERS", "k=s3cret")]);
        assert_eq!((seen.code, seen.out.as_str()), (Some(0), "All done.\n"), "{seen}");
        let host = address.trim_start_matches("http://");
        let told = format!("telemetry: the collector at {host} does not take spans, which are lost: {why} lost=");
        assert!(seen.err.contains(&told) && !seen.err.contains("s3cret"), "{told} in {seen}");
        // A slow machine sends them in several batches; then the end says how many they were.
        let lines: Vec<&str> = seen.err.lines().filter(|line| line.contains("telemetry:")).collect();
        assert!(lines.len() <= 2 && lines.last().unwrap().ends_with("lost=6"), "{seen}");
    }
}

#[test]
fn nothing_is_sent_unless_somebody_names_a_collector() {
    let (collector, model) = (Collector::saying(&StubAnswer::new(200, "")), two_calls());
    let env = guarded(&model, &collector.stub.url());
    let seen = turn(&env, &[("OTEL_SDK_DISABLED", "true")]);
    assert_eq!((seen.code, seen.out.as_str()), (Some(0), "All done.\n"), "{seen}");
    assert_eq!(collector.stub.seen().len(), 0);
    // A mistake in the address is said with its place, and the agent works.
    let model = two_calls();
    let env = guarded(&model, "localhost:4318");
    let seen = turn(&env, &[]);
    assert_eq!((seen.code, seen.out.as_str()), (Some(0), "All done.\n"), "{seen}");
    let told = "[root]/config/pintle/pintle.toml:11:17";
    assert!(seen.err.contains(told) && seen.err.contains("expected something like `http://localhost:4318`"), "{seen}");
    // A file that was merely found sends nothing to anybody.
    let (env, collector) = (TestEnv::new(), Collector::saying(&StubAnswer::new(200, "")));
    env.found_config(&format!("[telemetry]\notlp_endpoint = '{}'\n", collector.stub.url()));
    let seen = turn(&env, &[]);
    assert!(seen.err.contains("is not trusted; left out: telemetry"), "{seen}");
    assert_eq!(collector.stub.seen().len(), 0);
}
