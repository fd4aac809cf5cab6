//! The line that every run of a rule leaves in the log.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use pintle_domain::checkpoint::{CheckpointKind, PreToolUse};
use pintle_domain::id::{DEFAULT_TENANT, TurnId};
use pintle_domain::identity::Identity;
use pintle_domain::json::Object;
use pintle_domain::rule::{Fallback, Rule};
use pintle_domain::ruling::Ruling;
use pintle_domain::store::RuleChange;
use pintle_domain::tool::ToolCall;
use tokio::time::sleep;
use tracing::field::{Field, Visit};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt as _};

use super::stage::{Host, Plan, World, secs};

type Line = BTreeMap<&'static str, String>;

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<Line>>>);

struct Fields(Line);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }
}

impl<S: tracing::Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &tracing::Event<'_>, _cx: Context<'_, S>) {
        if event.metadata().target() == "pintle::hook" {
            let mut fields = Fields(Line::new());
            event.record(&mut fields);
            self.0.lock().unwrap().push(fields.0);
        }
    }
}

impl Lines {
    /// The next line that `work` leaves. Another test may be the first to come by this place of the code, while nobody
    /// listens there: then it is done once more.
    async fn next(&self, work: impl AsyncFn()) -> Line {
        loop {
            tracing::callsite::rebuild_interest_cache();
            work().await;
            let line = self.0.lock().unwrap().pop();
            self.0.lock().unwrap().clear();
            if let Some(line) = line {
                return line;
            }
        }
    }
}

fn seen(line: &Line, names: &[&str]) -> Vec<String> {
    names.iter().map(|name| line.get(name).cloned().unwrap_or_else(|| "none".into())).collect()
}

const NAMES: [&str; 5] = ["span", "status", "decision", "error", "tenant"];

async fn gate(host: &Host, who: &Identity) {
    let call = ToolCall { id: "c1".into(), tool: "exec".into(), raw_tool: "exec".into(), arguments: Object::new() };
    let (_, ruling) = host.engine.dispatcher(who.clone()).check(PreToolUse { call }).await;
    assert!(matches!(ruling, Ruling::Deny(_)));
}

#[tokio::test(start_paused = true)]
async fn every_run_leaves_a_line_with_its_place_in_the_trace() {
    let lines = Lines::default();
    let _guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(lines.clone()));
    let world = World::new();
    let observer = world.hook(DEFAULT_TENANT, "ok");
    let host = world.host(Plan { durable: false, ..Plan::default() });
    let line = lines
        .next(async || {
            host.stop(DEFAULT_TENANT);
            sleep(secs(1)).await;
        })
        .await;
    let expected = ["hook.script.stop", "completed", "allow", "none", DEFAULT_TENANT];
    assert_eq!(seen(&line, &NAMES), expected);
    assert_eq!(seen(&line, &["hook_id", "agent", "duration_ms"]), [observer.id.as_str(), "main", "0"]);
    let turns: Vec<_> = world.rows().iter().map(|row| row.turn_id.clone().unwrap()).collect();
    assert!(turns.contains(&line["parent_span_id"]) && line["trace_id"] == line["parent_span_id"]);

    for (source, decision, error) in [
        ("panic", "error", "panicked"),
        ("stuck", "timeout", "timed out after 10000 ms"),
        ("sleep 60", "timeout", "timed out after 10000 ms"),
        ("fail", "error", "broke the protocol"),
    ] {
        let world = World::new();
        let gate_hook = Rule {
            event: CheckpointKind::PreToolUse,
            on_timeout: Fallback::Block,
            ..world.hook(DEFAULT_TENANT, source)
        };
        let change = RuleChange::Update { hook: Box::new(gate_hook), if_version: None, action: "updated" };
        world.change(change);
        let host = world.host(Plan { durable: false, ..Plan::default() });
        let who = Identity::top("main", "s", TurnId::fresh()).for_call(&"c1".into());
        let line = lines.next(async || gate(&host, &who).await).await;
        assert_eq!(seen(&line, &NAMES), ["hook.script.pre_tool_use", "error", decision, error, DEFAULT_TENANT]);
        assert_eq!(seen(&line, &["parent_span_id", "trace_id"]), ["c1", who.turn_id.as_str()]);
    }
}
