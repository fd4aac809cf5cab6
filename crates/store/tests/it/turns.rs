//! Turns page by page, and the journal of one, from every backend alike.

use std::sync::Arc;
use std::time::Duration;

use pintle_domain::fault::Fault;
use pintle_domain::id::{SessionId, TenantId, TurnId};
use pintle_domain::record::{EventRecord, EventRuling, HookOutcome};
use pintle_domain::session::JournalEntry;
use pintle_domain::store::{JournalAppend, SessionKey, TenantScope, TurnOutcome, TurnQuery, WhichTurns};
use pintle_domain::verdict::VerdictKind;
use pintle_store::{Durability, Memory, Sqlite, Store};
use pintle_testkit::conformance::approvals::moment;
use pintle_testkit::conformance::sessions::{append_of, appended, begun, ended};
use pintle_testkit::conformance::store::{event, hook, keep};

#[test]
fn pages_of_turns_are_the_same_from_every_backend() {
    let folder = tempfile::tempdir().unwrap();
    pages(&Sqlite::open(&folder.path().join("pintle.db"), Durability::Commit).unwrap());
    pages(&Memory::new());
}

fn records(number: i64, session: &str, word: VerdictKind, reason: &str) -> Vec<EventRecord> {
    let turn = TurnId::fresh();
    let base = event(&turn);
    let said = HookOutcome::Said { word, reason: Some(reason.into()), took: Duration::from_millis(3) };
    let mut who = base.who.for_call(&"call".into());
    who.session_id = SessionId::from(session);
    let at = base.at.checked_add(jiff::SignedDuration::from_secs(number)).unwrap();
    let mut ruling = EventRuling::word(word);
    ruling.text = Some(format!("stopped because {reason}")).filter(|_| ruling.stops());
    let (tool, hooks) = (Some("exec".to_owned()), vec![hook("guard", said)].into());
    vec![EventRecord { who, at, tool, ruling, hooks, ..base }]
}

/// Whether an empty store finds turns as it should.
pub(crate) fn pages(store: &dyn Store) {
    keep(store, records(0, "s:anna", VerdictKind::Continue, "fine")).unwrap();
    keep(store, records(1, "s:ben", VerdictKind::Deny, "Too \"loud\"")).unwrap();
    keep(store, records(2, "s:ben", VerdictKind::Ask, "a person")).unwrap();
    let mut failed = records(3, "s:anna", VerdictKind::Continue, "fine");
    let fault = Fault::CannotStart { cause: "gone".into() };
    let outcome = HookOutcome::Failed { fault, became: VerdictKind::Continue, took: Duration::ZERO };
    failed[0].hooks = vec![hook("other", outcome)].into();
    keep(store, failed).unwrap();
    keep(store, records(4, "s:ben/delegate:helper:t", VerdictKind::Continue, "fine")).unwrap();
    let found = |query: TurnQuery| {
        let page = store.turn_page(&TurnQuery { limit: 9, ..query }).unwrap();
        page.turns.into_iter().map(|row| row.turn.session_id).collect::<Vec<_>>()
    };
    let none = || TurnQuery::of(TenantScope::All);
    let came_to = |it| TurnQuery { came_to: Some(it), ..none() };
    let which = |it| TurnQuery { which: Some(it), ..none() };
    let words = |it: &str| TurnQuery { words: Some(it.to_owned()), ..none() };
    let all = ["s:ben/delegate:helper:t", "s:anna", "s:ben", "s:ben", "s:anna"];
    let (anna, ben) = (vec!["s:anna"; 2], vec!["s:ben"; 2]);
    assert_eq!(found(none()), all, "{store:?}");
    assert_eq!(found(came_to(TurnOutcome::Allowed)), ["s:ben/delegate:helper:t", "s:anna"]);
    assert_eq!(found(came_to(TurnOutcome::Blocked)), ["s:ben"]);
    assert_eq!(found(came_to(TurnOutcome::Asked)), ["s:ben"]);
    assert_eq!(found(came_to(TurnOutcome::Faulted)), ["s:anna"]);
    assert_eq!(found(which(WhichTurns::Session("s:anna".into()))), anna);
    assert_eq!(found(which(WhichTurns::Session("s:b".into()))), [""; 0]);
    assert_eq!(found(which(WhichTurns::Part(":anna".into()))), anna);
    assert_eq!(found(words("too \"LOUD")), ["s:ben"]);
    assert_eq!(found(words("_")), [""; 0]);
    assert_eq!(found(TurnQuery { hook: Some("other".into()), ..none() }), ["s:anna"]);
    assert_eq!(found(TurnQuery { tool: Some("exec".into()), ..none() }).len(), 5);
    assert_eq!(found(TurnQuery { agent: Some("helper".into()), ..none() }), [""; 0]);
    assert_eq!(found(TurnQuery { tenant: TenantScope::One(TenantId::from("other")), ..none() }), [""; 0]);
    let third = event(&TurnId::fresh()).at.checked_add(jiff::SignedDuration::from_secs(2)).unwrap();
    assert_eq!(found(TurnQuery { since: Some(third), ..none() }), all[..3]);
    assert_eq!(found(TurnQuery { until: Some(third), ..none() }), all[3..]);

    let page = |after| store.turn_page(&TurnQuery { after, limit: 3, ..none() }).unwrap();
    let first = page(None);
    let second = page(first.next);
    assert_eq!((first.turns.len(), second.turns.len(), second.next), (3, 2, None));
    assert!(first.turns.iter().all(|row| second.turns.iter().all(|other| other.place < row.place)));
    let blocked = &second.turns[0];
    assert_eq!((blocked.turn.refused, blocked.asked, blocked.faults), (1, 0, 0));
    assert_eq!(blocked.reason.as_deref(), Some("stopped because Too \"loud\""));
    assert_eq!((first.turns[1].faults, first.turns[2].asked), (1, 1));
    let below = WhichTurns::Below { session: "s:ben".into(), from: blocked.place };
    assert_eq!(found(which(below)), ["s:ben/delegate:helper:t"]);
    let one = found(which(WhichTurns::Turn(blocked.turn.turn_id.clone())));
    assert_eq!((one, found(which(WhichTurns::Turn("none".into())))), (vec![ben[0].to_owned()], vec![]));
}

#[test]
fn the_journal_of_one_turn_is_the_same_from_every_backend() {
    let folder = tempfile::tempdir().unwrap();
    let sqlite: Arc<dyn Store> = Arc::new(Sqlite::open(&folder.path().join("pintle.db"), Durability::Commit).unwrap());
    for store in [sqlite, Arc::new(Memory::new())] {
        journal(&*store);
    }
}

/// Whether an empty store has the journal of each turn.
pub(crate) fn journal(store: &dyn Store) {
    let key = SessionKey { tenant: TenantId::default_tenant(), session: SessionId::from("s") };
    let (first, second) = (TurnId::fresh(), TurnId::fresh());
    let at = |number: i64, entries: Vec<JournalEntry>| JournalAppend { at: moment(number), ..append_of(&key, entries) };
    appended(store, at(1, vec![begun(&first, "one")]));
    appended(store, at(2, vec![ended()]));
    appended(store, at(3, vec![begun(&second, "two")]));
    let told = |turn: &TurnId, limit| store.turn_journal(&key, turn, limit).unwrap();
    assert_eq!(told(&first, 9), [(moment(1), begun(&first, "one")), (moment(2), ended())], "{store:?}");
    assert_eq!(told(&second, 9), [(moment(3), begun(&second, "two"))]);
    assert_eq!((told(&first, 1).len(), told(&TurnId::fresh(), 9)), (1, vec![]));
}
