//! Without an outbox: one attempt, and a row for each that had no room.

use std::time::Duration;

use pintle_domain::checkpoint::{CheckpointKind, ObservedEvent};
use pintle_domain::execution::input_hash;
use pintle_domain::id::{DEFAULT_TENANT, TurnId};
use pintle_domain::identity::Identity;
use pintle_domain::json::Object;
use pintle_domain::rule::{Decision, Rule};
use pintle_domain::store::{Actor, RuleChange, RuleStore as _};
use pintle_domain::tool::{ToolCall, ToolOutput};
use pintle_rules::handler::PoolLimits;
use tokio::time::sleep;

use super::stage::{Plan, World, secs};

#[tokio::test(start_paused = true)]
async fn nothing_is_tried_again() {
    for source in ["fail", "panic", "sleep 60", "stuck"] {
        let world = World::new();
        world.hook(DEFAULT_TENANT, source);
        let host = world.host(Plan { durable: false, ..Plan::default() });
        host.stop(DEFAULT_TENANT);
        sleep(secs(1000)).await;
        assert_eq!((world.runs().len(), world.rows().len()), (1, 1), "{source}");
        assert_ne!(world.rows()[0].decision, Decision::Allow, "{source}");
        // Whatever happened to the worker, there is another one.
        world.hook(DEFAULT_TENANT, "ok");
        host.rule_cache.refresh().unwrap();
        host.stop(DEFAULT_TENANT);
        sleep(secs(1000)).await;
        assert_eq!(world.runs().len(), 3, "{source}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_row_that_the_store_does_not_take_is_counted() {
    let world = World::new();
    world.hook(DEFAULT_TENANT, "ok");
    let host = world.host(Plan { durable: false, ..Plan::default() });
    world.store.break_down("the disk is gone");
    (0..2).for_each(|_| host.stop(DEFAULT_TENANT));
    sleep(secs(1)).await;
    world.store.mend();
    host.stop(DEFAULT_TENANT);
    sleep(secs(1)).await;
    assert_eq!((host.pool.lost(), world.runs().len(), world.rows().len()), (2, 3, 1));
}

#[tokio::test(start_paused = true)]
async fn a_job_without_room_leaves_a_row_and_is_counted() {
    let world = World::new();
    world.hook(DEFAULT_TENANT, "sleep 5");
    let limits = PoolLimits { workers: 2, queue: 4 };
    let host = world.host(Plan { durable: false, limits, ..Plan::default() });
    (0..5).for_each(|_| host.stop(DEFAULT_TENANT));
    assert_eq!(host.pool.dropped(), 3, "half of the queue is one tenant's");
    let full = (Decision::Error, 0, Some("queue full".to_owned()));
    assert_eq!(world.decisions(), vec![full.clone(); 3]);
    sleep(secs(100)).await;
    let rows = world.decisions();
    let ran = rows.iter().filter(|row| **row == (Decision::Allow, 0, None)).count();
    assert_eq!((ran, rows.iter().filter(|row| **row == full).count()), (2, 3));
}

#[tokio::test(start_paused = true)]
async fn an_observer_that_is_broken_is_recorded_and_skipped() {
    let world = World::new();
    for (name, matcher) in [("torn", "("), ("others", "^exec$"), ("empty", "")] {
        let hook = world.hook(DEFAULT_TENANT, name);
        // Of the last two nobody can read what they run.
        let config = if name == "torn" { hook.config.clone() } else { Object::new() };
        let hook = Rule { matcher: matcher.into(), config, ..hook };
        world.change(RuleChange::Update { hook: Box::new(hook), if_version: None, action: "updated" });
    }
    let host = world.host(Plan { durable: false, ..Plan::default() });
    host.stop(DEFAULT_TENANT);
    sleep(secs(100)).await;
    let mut rows: Vec<_> = world.rows().into_iter().map(|row| (row.hook_name, row.error.unwrap_or_default())).collect();
    rows.sort();
    let [(empty, no_source), (torn, no_matcher)] = rows.as_slice() else { panic!("{rows:?}") };
    assert_eq!((empty.as_str(), torn.as_str()), ("empty", "torn"), "the event is not what the other one is about");
    assert!(no_source.contains("config.source") && no_matcher.contains("compile matcher"), "{rows:?}");
    assert_eq!(world.runs().len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_row_says_what_it_was_about_whether_its_hook_was_told_or_not() {
    let world = World::new();
    for (source, if_expr) in [("ok", ""), ("no room", ""), ("never", "tool_input.gone == 1")] {
        let hook = world.hook(DEFAULT_TENANT, source);
        let hook = Rule { event: CheckpointKind::PostToolUse, if_expr: if_expr.into(), ..hook };
        world.change(RuleChange::Update { hook: Box::new(hook), if_version: None, action: "updated" });
    }
    // Half of the queue is one tenant's: there is room for one.
    let host = world.host(Plan { durable: false, limits: PoolLimits { workers: 1, queue: 2 }, ..Plan::default() });
    let arguments = Object::from_iter([("cmd".to_owned(), "ls".into())]);
    let call = ToolCall { id: "c".into(), tool: "exec".into(), raw_tool: "bash".into(), arguments: arguments.clone() };
    let output = ToolOutput::ok("done");
    let who = Identity::top("main", "s", TurnId::fresh());
    let what = ObservedEvent::PostToolUse { call, output, duration: Duration::ZERO, substituted: false };
    host.engine.dispatcher(who.clone()).tell(what);
    sleep(secs(100)).await;
    let mut rows: Vec<_> = world.rows().into_iter().map(|row| (row.hook_name, row.decision, row.input_hash)).collect();
    rows.sort_by(|a, b| a.0.cmp(&b.0));
    let hash = Some(input_hash("exec", Some(&arguments)));
    let expected = [("never", Decision::Error), ("no room", Decision::Error), ("ok", Decision::Allow)];
    assert_eq!(rows, expected.map(|(name, decision)| (name.to_owned(), decision, hash.clone())));
}

#[tokio::test(start_paused = true)]
async fn what_an_observer_says_changes_nothing_and_is_recorded_as_what_it_is() {
    for durable in [false, true] {
        let world = World::new();
        for word in ["allow", "ask", "block", "defer"] {
            world.hook(DEFAULT_TENANT, &format!("says {word}"));
        }
        let host = world.host(Plan { durable, ..Plan::default() });
        host.stop(DEFAULT_TENANT);
        sleep(secs(100)).await;
        let rows = world.rows();
        for row in &rows {
            let dropped = (&row.metadata["rewrite"], &row.metadata["context"]);
            assert_eq!(dropped, (&"dropped: nothing is rewritten at stop".into(), &"dropped".into()));
        }
        let mut rows: Vec<_> = rows.into_iter().map(|row| (row.hook_name, row.decision)).collect();
        rows.sort();
        let block = Decision::Block;
        let expected = [("allow", Decision::Allow), ("ask", block), ("block", block), ("defer", block)];
        assert_eq!(rows, expected.map(|(word, decision)| (format!("says {word}"), decision)), "{durable}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_observer_whose_breaker_is_open_is_skipped() {
    for durable in [false, true] {
        let world = World::new();
        let off = world.hook(DEFAULT_TENANT, "says allow");
        world.hook(DEFAULT_TENANT, "ok");
        let by =
            Actor { name: "system:breaker".into(), at: "2026-11-22T08:30:00Z".parse().unwrap(), reason: String::new() };
        world.store.trip(&off.id, &off.tenant_id, &by).unwrap();
        let host = world.host(Plan { durable, ..Plan::default() });
        host.stop(DEFAULT_TENANT);
        sleep(secs(100)).await;
        let ran: Vec<String> = world.runs().into_iter().map(|run| run.source).collect();
        assert_eq!((ran, world.rows().len()), (vec!["ok".to_owned()], 1), "{durable}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_waits_no_longer_for_room_for_many_than_for_one() {
    let world = World::new();
    let hooks: Vec<Rule> = (0..20).map(|number| world.hook(DEFAULT_TENANT, &format!("sleep 9{number}"))).collect();
    let limits = PoolLimits { workers: 1, queue: 2 };
    let host = world.host(Plan { durable: false, limits, ..Plan::default() });
    let who = Identity::top("main", "s", TurnId::fresh());
    let waited = async || {
        let began = tokio::time::Instant::now();
        host.engine.dispatcher(who.clone()).room(CheckpointKind::Stop).await;
        began.elapsed()
    };
    assert_eq!(waited().await, Duration::ZERO);
    // One runs, and one waits.
    host.stop(DEFAULT_TENANT);
    sleep(secs(1)).await;
    host.stop(DEFAULT_TENANT);
    // The clock of a runtime goes in whole milliseconds.
    let at_most = Duration::from_millis(51);
    assert!((Duration::from_millis(50)..=at_most).contains(&waited().await));
    for hook in hooks {
        let off = Rule { enabled: false, ..hook };
        world.change(RuleChange::Update { hook: Box::new(off), if_version: None, action: "updated" });
    }
    host.rule_cache.refresh().unwrap();
    assert_eq!(waited().await, Duration::ZERO, "nobody waits for those who are not told");
}
