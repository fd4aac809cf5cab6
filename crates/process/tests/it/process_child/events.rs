//! Notifications: never in the way of a call, counted when they are lost.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use pintle_domain::checkpoint::{Notice, ObservedEvent, RuntimeEvent, RuntimeKind};
use pintle_domain::hook::Family;
use pintle_domain::id::{EventId, TurnId};
use pintle_domain::identity::Identity;
use pintle_domain::json::Value;
use pintle_engine::handler::{Handler as _, NoticeViews};
use pintle_process::hook::ProcessHook;

use super::stage::{HELLO, Stage, ask, ask_about, continues, within};

fn notice(what: impl Into<ObservedEvent>) -> Arc<Notice> {
    let who = Identity::top("main", "cli:direct", TurnId::from("t1"));
    let at = "2026-01-01T00:00:00Z".parse().unwrap();
    Arc::new(Notice { event_id: EventId::from("e1"), at, who, what: what.into() })
}

fn delta() -> RuntimeEvent {
    RuntimeEvent::LlmDelta { content_delta_len: 1, reasoning_delta_len: 0 }
}

fn error(message: &str) -> RuntimeEvent {
    RuntimeEvent::Error { stage: "llm".into(), message: message.into(), hook: None }
}

fn told(hook: &ProcessHook, event: &RuntimeEvent, times: usize) -> usize {
    (0..times).filter(|_| hook.tell(&notice(event.clone()), &NoticeViews::default())).count()
}

/// The methods and `Seq` numbers of what a child was sent.
fn sent(stage: &Stage) -> Vec<(String, u64)> {
    let line = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        (line["method"].as_str().unwrap().to_owned(), line["params"]["Seq"].as_u64().unwrap_or_default())
    };
    stage.text("sent").lines().map(line).collect()
}

#[tokio::test]
async fn a_full_queue_drops_and_counts_and_keeps_room_for_the_end() {
    let stage = Stage::new();
    let hook = stage.hook("exec cat >sent").await;
    // Nothing is written meanwhile: this thread is the only one.
    assert_eq!(told(&hook, &delta(), 2000), 960);
    assert_eq!(told(&hook, &error("e"), 100), 64);
    let dropped = BTreeMap::from([(RuntimeKind::LlmDelta, 1040), (RuntimeKind::Error, 36)]);
    assert_eq!(hook.status().dropped_events, dropped);
    stage.close(&hook).await;
    let expected = (1..=960).chain(2001..=2064).map(|seq| ("hook.event".to_owned(), seq));
    assert_eq!(sent(&stage), expected.collect::<Vec<_>>());
}

#[tokio::test]
async fn only_what_passes_the_filter_is_told_and_numbered() {
    let stage = Stage::new();
    let mut spec = stage.spec(&["sh", "-c", &format!("{HELLO} exec cat >sent")]);
    spec.events = Some(BTreeSet::from([RuntimeKind::Error]));
    let hook = stage.start(spec);
    within(hook.ready()).await.unwrap();
    assert!(hook.tell(&notice(ObservedEvent::SessionStart), &NoticeViews::default()));
    assert_eq!(told(&hook, &delta(), 5), 5);
    assert_eq!(told(&hook, &error("e"), 2), 2);
    stage.close(&hook).await;
    assert_eq!(sent(&stage), [("hook.event".to_owned(), 1), ("hook.event".to_owned(), 2)]);
    assert!(!hook.tell(&notice(error("after the close")), &NoticeViews::default()));
}

#[tokio::test]
async fn hooks_that_are_told_alike_share_what_they_are_sent_but_for_their_numbers() {
    let stages = [Stage::new(), Stage::new()];
    let hooks = [stages[0].hook("exec cat >sent").await, stages[1].hook("exec cat >sent").await];
    assert_eq!(told(&hooks[1], &delta(), 1), 1, "the second one counts from 2");
    let (notice, views) = (notice(error("e")), NoticeViews::default());
    assert!(hooks.iter().all(|hook| hook.tell(&notice, &views)));
    let shared = views.view(Family::Process, 0, || panic!("it was rendered already"));
    for (number, (stage, hook)) in (1..).zip(stages.iter().zip(&hooks)) {
        stage.close(hook).await;
        let sent = stage.text("sent");
        let last = format!(
            r#"{{"jsonrpc":"2.0","method":"hook.event","params":{},"Seq":{number}}}}}"#,
            String::from_utf8_lossy(shared)
        );
        assert_eq!(sent.lines().last(), Some(last.as_str()));
    }
}

#[tokio::test]
async fn an_event_above_the_limit_is_dropped_and_counted() {
    let stage = Stage::new();
    let hook = stage.hook("exec cat >sent").await;
    assert_eq!(told(&hook, &error(&"x".repeat(1 << 20)), 1), 0);
    assert_eq!(told(&hook, &error("e"), 1), 1);
    stage.close(&hook).await;
    assert_eq!(sent(&stage), [("hook.event".to_owned(), 2)]);
    assert_eq!(hook.status().dropped_events, BTreeMap::from([(RuntimeKind::Error, 1)]));
}

#[tokio::test]
async fn calls_overtake_events_that_wait() {
    let stage = Stage::new();
    let script = r#"while read -r line; do echo "$line" >>sent
        case $line in *before_tool*) echo '{"id":2}' ;; esac; done"#;
    let hook = stage.hook(script).await;
    assert_eq!(told(&hook, &delta(), 20), 20);
    assert!(continues(&ask(&hook).await));
    stage.close(&hook).await;
    let sent = sent(&stage);
    assert_eq!((sent.len(), sent[0].0.as_str()), (21, "hook.before_tool"));
}

#[tokio::test]
async fn a_withdrawal_overtakes_events_that_wait() {
    let stage = Stage::new();
    stage.fifo("go");
    let hook = stage.hook(r#"read -r go <go; exec cat >sent"#).await;
    // The call fills the pipe, so that everything after it waits.
    let short = Duration::from_millis(100);
    let call = ask_about(&hook, (1 << 20) - 8192, short);
    let telling = async {
        tokio::task::yield_now().await;
        told(&hook, &error(&"x".repeat(100 << 10)), 5)
    };
    let (reply, told) = within(futures_util::future::join(call, telling)).await;
    assert_eq!((reply.is_err(), told), (true, 5));
    let path = stage.path("go");
    within(tokio::task::spawn_blocking(move || std::fs::write(path, "go\n"))).await.unwrap().unwrap();
    stage.close(&hook).await;
    let methods: Vec<String> = sent(&stage).into_iter().map(|(method, _)| method).collect();
    let cancel = methods.iter().position(|method| method == "hook.cancel").unwrap();
    assert_eq!(methods[0], "hook.before_tool");
    // One event at most had begun before the call was given up.
    assert!(cancel <= 2, "{methods:?}");
}

#[tokio::test]
async fn an_event_that_waits_too_long_at_the_head_is_dropped() {
    let stage = Stage::new();
    let mut spec = stage.spec(&["sh", "-c", &format!("{HELLO} exec sleep 1000")]);
    spec.observer_timeout = Duration::from_millis(20);
    let hook = stage.start(spec);
    within(hook.ready()).await.unwrap();
    // The child reads nothing: some of these fill its pipe, the others wait in vain.
    let big = error(&"x".repeat(200 << 10));
    assert_eq!(told(&hook, &big, 20), 20);
    let all_dropped = async {
        while hook.status().dropped_events.get(&RuntimeKind::Error).copied().unwrap_or_default() < 10 {
            tokio::task::yield_now().await;
        }
    };
    within(all_dropped).await;
    stage.close(&hook).await;
}
