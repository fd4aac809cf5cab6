//! What is told of runs to whoever measures the host.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use pintle_domain::checkpoint::{CheckpointKind, PreToolUse, RuntimeEvent};
use pintle_domain::id::{DEFAULT_TENANT, TenantId, TurnId};
use pintle_domain::identity::Identity;
use pintle_domain::json::Object;
use pintle_domain::rule::Rule;
use pintle_domain::span::{AttributeValue, Span, SpanKey};
use pintle_domain::store::RuleChange;
use pintle_domain::tool::ToolCall;
use pintle_engine::{Clearance, Telemetry};
use pintle_rules::handler::{ATTEMPTS, PoolLimits};
use tokio::time::sleep;

use super::stage::{ACME, Host, Plan, World, process, secs};

/// Keeps what it is told.
#[derive(Default)]
pub(crate) struct Told {
    pub(crate) spans: Mutex<Vec<Span>>,
    dropped: Mutex<Vec<(TenantId, &'static str)>>,
}

impl Telemetry for Told {
    fn spans(&self, spans: Vec<Span>) {
        self.spans.lock().unwrap().extend(spans);
    }

    fn dropped(&self, tenant: &TenantId, handler_type: &'static str) {
        self.dropped.lock().unwrap().push((tenant.clone(), handler_type));
    }
}

/// The runs of hooks so far: name, status, and what the attributes `names` say.
fn runs(told: &Arc<Told>, names: &[&str]) -> Vec<String> {
    let text = |value: &AttributeValue| match value {
        AttributeValue::Text(text) => text.clone(),
        AttributeValue::Number(number) => number.to_string(),
    };
    let one = |span: &Span| {
        let said = names.iter().filter_map(|name| span.attributes.iter().find(|(own, _)| own == name));
        let said: Vec<String> = said.map(|(_, value)| text(value)).collect();
        format!("{} {} {}", span.name, span.status.word(), said.join(" "))
    };
    told.spans.lock().unwrap().iter().filter(|span| span.name.starts_with("hook.")).map(one).collect()
}

#[test]
fn each_attempt_is_told_below_the_same_turn_also_by_another_process() {
    let world = World::new();
    world.hook(ACME, "fail");
    let first = process(async {
        let host = world.host(Plan::default());
        host.stop(ACME);
        sleep(secs(30)).await;
        host.told.clone()
    });
    let before = runs(&first, &["retry"]);
    assert!((2..ATTEMPTS as usize).contains(&before.len()), "{before:?}");
    let second = process(async {
        let host = world.host(Plan { after: 30, ..Plan::default() });
        sleep(secs(1000)).await;
        host.told.clone()
    });
    let all: Vec<String> = [before, runs(&second, &["retry"])].concat();
    let expected = (0..ATTEMPTS).map(|retry| match retry {
        0 => "hook.script.stop error ".to_owned(),
        _ => format!("hook.script.stop error {retry}"),
    });
    assert_eq!(all, expected.collect::<Vec<_>>());
    let spans = [first.spans.lock().unwrap().clone(), second.spans.lock().unwrap().clone()].concat();
    let hooks: Vec<&Span> = spans.iter().filter(|span| span.name.starts_with("hook.")).collect();
    let of = |key: &dyn Fn(&Span) -> u64| hooks.iter().map(|span| key(span)).collect::<BTreeSet<u64>>().len();
    assert_eq!(of(&|span| span.key.0), ATTEMPTS as usize);
    assert_eq!(of(&|span| span.parent.unwrap().0), 1);
    assert_eq!(hooks.iter().map(|span| span.trace).collect::<BTreeSet<_>>().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_had_no_room_is_counted_and_told() {
    let world = World::new();
    world.hook(DEFAULT_TENANT, "sleep 5");
    let limits = PoolLimits { workers: 2, queue: 4 };
    let host = world.host(Plan { durable: false, limits, ..Plan::default() });
    (0..5).for_each(|_| host.stop(DEFAULT_TENANT));
    assert_eq!(host.pool.dropped(), 3);
    assert_eq!(*host.told.dropped.lock().unwrap(), vec![(TenantId::default_tenant(), "script"); 3]);
    assert_eq!(runs(&host.told, &["error"]), vec!["hook.script.stop error queue full"; 3]);
    sleep(secs(100)).await;
    let ran = runs(&host.told, &["metadata.decision"]);
    assert_eq!(ran[3..], ["hook.script.stop completed allow"; 2]);
}

#[tokio::test(start_paused = true)]
async fn what_the_end_of_the_host_stops_is_counted_and_told() {
    let world = World::new();
    world.hook(DEFAULT_TENANT, "sleep 60");
    let limits = PoolLimits { workers: 1, queue: 8 };
    let host = world.host(Plan { durable: false, limits, ..Plan::default() });
    (0..3).for_each(|_| host.stop(DEFAULT_TENANT));
    host.close().await;
    let dropped = host.told.dropped.lock().unwrap().len();
    // Those that ran were stopped, the last one never began; each is told once.
    assert!(dropped > 0);
    assert_eq!((dropped as u64, runs(&host.told, &[]).len()), (host.pool.dropped(), 3));
}

async fn cleared(host: &Host, who: &Identity) {
    let call = ToolCall { id: "c1".into(), tool: "exec".into(), raw_tool: "exec".into(), arguments: Object::new() };
    let clearance = host.engine.dispatcher(who.clone()).clear(call).await;
    assert!(matches!(clearance, Clearance::Run(..)), "{clearance:?}");
}

#[tokio::test(start_paused = true)]
async fn a_gate_is_told_below_its_call_and_a_test_is_not() {
    let world = World::new();
    let gate = Rule { event: CheckpointKind::PreToolUse, ..world.hook(DEFAULT_TENANT, "ok") };
    world.change(RuleChange::Update { hook: Box::new(gate), if_version: None, action: "updated" });
    let host = world.host(Plan { durable: false, ..Plan::default() });
    let who = Identity::top("main", "s", TurnId::fresh()).for_call(&"c1".into());
    let test = Identity { is_test: true, ..who.clone() };
    cleared(&host, &test).await;
    host.engine.evidence().tracer().unwrap().finish();
    assert_eq!(*host.told.spans.lock().unwrap(), []);
    cleared(&host, &who).await;
    let call = PreToolUse {
        call: ToolCall { id: "c1".into(), tool: "exec".into(), raw_tool: "exec".into(), arguments: Object::new() },
    };
    drop(host.engine.dispatcher(who.clone()).check(call).await);
    let skipped = RuntimeEvent::ToolExecSkipped {
        tool: "exec".into(),
        reason: "no".into(),
        tool_call_id: "c1".into(),
        hook: None,
    };
    host.engine.dispatcher(who.clone()).tell(skipped);
    host.engine.evidence().tracer().unwrap().finish();
    let spans = host.told.spans.lock().unwrap().clone();
    let names: Vec<&str> = spans.iter().map(|span| span.name.as_str()).collect();
    assert_eq!(names, ["hook.script.pre_tool_use", "hook.script.pre_tool_use", "tool_call", "turn"]);
    let (call, turn) = (&spans[2], &spans[3]);
    assert_eq!([spans[0].parent, spans[1].parent], [Some(call.key); 2]);
    assert_eq!((call.parent, turn.parent), (Some(turn.key), None));
    assert_eq!(turn.key, SpanKey::of_turn(&who.tenant_id, &who.turn_id));
    assert!(call.start <= spans[0].start && turn.start <= call.start);
}
