//! Events that are kept, and how they are found again.

use std::sync::mpsc::channel;

use pintle_domain::checkpoint::CheckpointKind;
use pintle_domain::hook::Family;
use pintle_domain::id::{EventId, HookName, TurnId};
use pintle_domain::identity::Identity;
use pintle_domain::record::{EventRecord, EventRuling, HookOutcome, Record, RecordLines};
use pintle_domain::store::{RecordQuery, RecordStore, StoreError, StoredEvent, TenantScope};
use pintle_domain::verdict::VerdictKind;

/// An event of a tool call in `turn`, without hooks.
pub fn event(turn: &TurnId) -> EventRecord {
    let at = "2026-01-02T03:04:05.678901234Z".parse().expect("RFC 3339");
    EventRecord {
        event_id: EventId::fresh(),
        at,
        checkpoint: CheckpointKind::PreToolUse,
        kind: None,
        who: Identity::top("main", "cli:1", turn.clone()),
        tool: None,
        input: None,
        ruling: EventRuling::word(VerdictKind::Continue),
        hooks: RecordLines::default(),
    }
}

/// A record of a hook that ended as `outcome`.
pub fn hook(name: &str, outcome: HookOutcome) -> Record {
    Record {
        hook: HookName::from(name),
        family: Family::Process,
        checkpoint: CheckpointKind::PreToolUse,
        outcome,
        warnings: Vec::new(),
        change: None,
        again: false,
        account: None,
        stored: None,
    }
}

/// Keeps `records` and waits until they are kept.
///
/// # Errors
/// What the store said.
///
/// # Panics
/// The store forgot to say.
pub fn keep(store: &dyn RecordStore, records: Vec<EventRecord>) -> Result<(), StoreError> {
    let (said, heard) = channel();
    store.keep(records, Box::new(move |how| said.send(how).expect("the test waits for it")));
    heard.recv().expect("`done` is called")
}

pub(super) fn find(store: &dyn RecordStore, query: &RecordQuery) -> Vec<StoredEvent> {
    store.find(query).expect("the store can be read")
}

pub(super) fn everything() -> RecordQuery {
    RecordQuery { limit: usize::MAX, ..RecordQuery::of(TenantScope::All) }
}

pub(super) fn by_id(id: &EventId) -> RecordQuery {
    RecordQuery { event_id: Some(id.to_string()), ..everything() }
}

pub(super) fn ids(events: &[StoredEvent]) -> Vec<&str> {
    events.iter().map(|event| event.event_id.as_str()).collect()
}

pub(super) fn kept(store: &dyn RecordStore, records: &[EventRecord]) {
    keep(store, records.to_vec()).expect("the records are kept");
}
