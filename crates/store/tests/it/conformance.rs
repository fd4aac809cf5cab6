//! Every backend against the suites.

use std::path::Path;

use pintle_domain::id::TurnId;
use pintle_domain::record::HookOutcome;
use pintle_domain::store::{RecordQuery, RecordStore as _, TenantScope};
use pintle_domain::verdict::VerdictKind;
use pintle_store::{Durability, HookTiming, Memory, Sqlite, Store, memory};
use pintle_testkit::conformance::approvals::approvals;
use pintle_testkit::conformance::exchange::exchange;
use pintle_testkit::conformance::identity::identity;
use pintle_testkit::conformance::sessions::sessions;
use pintle_testkit::conformance::store::{event, hook, keep, records};
use pintle_testkit::conformance::webhooks::webhooks;
use std::time::Duration;

fn sqlite(folder: &Path, durability: Durability) -> Sqlite {
    Sqlite::open(&folder.join("pintle.db"), durability).unwrap()
}

#[test]
fn sqlite_keeps_records() {
    let folder = tempfile::tempdir().unwrap();
    records(&sqlite(folder.path(), Durability::Commit));
}

#[test]
fn sqlite_keeps_sessions() {
    let folder = tempfile::tempdir().unwrap();
    sessions(&sqlite(folder.path(), Durability::Commit));
}

#[test]
fn sqlite_keeps_approvals() {
    let folder = tempfile::tempdir().unwrap();
    approvals(&sqlite(folder.path(), Durability::Commit));
}

#[test]
fn sqlite_keeps_identities() {
    let folder = tempfile::tempdir().unwrap();
    identity(&sqlite(folder.path(), Durability::Commit));
}

#[test]
fn sqlite_that_syncs_passes_the_suites() {
    let folder = tempfile::tempdir().unwrap();
    let store = sqlite(folder.path(), Durability::BeforeEffect);
    records(&store);
    approvals(&store);
    sessions(&store);
}

#[test]
fn sqlite_keeps_what_a_gateway_exchanges() {
    let folder = tempfile::tempdir().unwrap();
    exchange(&sqlite(folder.path(), Durability::Commit));
}

#[test]
fn memory_passes_the_suites() {
    let store = Memory::new();
    webhooks(&store);
    records(&store);
    approvals(&store);
    sessions(&store);
    identity(&store);
    exchange(&Memory::new());
}

#[test]
fn a_store_by_url_passes_the_suites() {
    let folder = tempfile::tempdir().unwrap();
    for url in ["sqlite://pintle.db", "memory:"] {
        let store = pintle_store::open(url, folder.path(), Durability::Commit).unwrap();
        webhooks(&*store);
        records(&*store);
        approvals(&*store);
        sessions(&*store);
        identity(&*store);
    }
}

#[test]
fn memory_holds_the_newest() {
    let store = Memory::new();
    let turn = TurnId::fresh();
    let events: Vec<_> = (0..memory::MAX_EVENTS + 3).map(|_| event(&turn)).collect();
    let oldest_held = events[3].event_id.to_string();
    keep(&store, events).unwrap();
    let found = store.find(&RecordQuery { limit: usize::MAX, ..RecordQuery::of(TenantScope::All) }).unwrap();
    assert_eq!((found.len(), found[0].event_id.as_str()), (memory::MAX_EVENTS, oldest_held.as_str()));
}

#[test]
fn timings_are_the_same_from_every_backend() {
    let folder = tempfile::tempdir().unwrap();
    timings(&sqlite(folder.path(), Durability::Commit));
    timings(&Memory::new());
}

/// Whether an empty store counts as it should.
pub(crate) fn timings(store: &dyn Store) {
    let ran = |name: &str, ms| {
        hook(name, HookOutcome::Said { word: VerdictKind::Continue, reason: None, took: Duration::from_millis(ms) })
    };
    let turn = TurnId::fresh();
    let mut events = vec![event(&turn), event(&turn), event(&turn), event(&turn)];
    events[0].hooks = vec![ran("old", 99)].into();
    events[1].hooks = vec![ran("guard", 5), hook("log", HookOutcome::Told)].into();
    events[2].hooks = vec![ran("guard", 2)].into();
    events[3].hooks = vec![ran("guard", 1000)].into();
    events[3].who.is_test = true;
    keep(store, events).unwrap();
    let line = |hook: &str, runs, p50_ms, p95_ms| HookTiming {
        hook: hook.into(),
        checkpoint: "pre_tool_use".into(),
        runs,
        p50_ms,
        p95_ms,
        last_run: "2026-01-02T03:04:05.678901234Z".into(),
    };
    assert_eq!(
        store.hook_timings(2).unwrap(),
        [line("guard", 2, Some(2.0), Some(5.0)), line("log", 1, None, None)],
        "{store:?}"
    );
}
