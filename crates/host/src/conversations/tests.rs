//! Conversations in one store, the records of their calls in another one.

use pintle_domain::approval::ApprovalState;
use pintle_domain::id::TurnId;
use pintle_domain::identity::Identity;
use pintle_domain::store::{RecordQuery, TenantScope};
use pintle_store::{Durability, Memory};
use pintle_testkit::conformance::approvals::{call, key_of, moment, question};
use pintle_testkit::conformance::sessions::{append_of, appended, begun, ended, hand_over};
use pintle_testkit::conformance::store::event;

use super::*;

/// The user's store at `url`, journals beside it, and the sessions over both.
fn split(url: &str) -> (tempfile::TempDir, Arc<dyn Store>, Arc<dyn Store>, SplitSessions) {
    let home = tempfile::tempdir().unwrap();
    let own = pintle_store::open(url, home.path(), Durability::Commit).unwrap();
    let journals: Arc<dyn Store> = Arc::new(Memory::new());
    let sessions = SplitSessions::new(own.clone(), journals.clone()).unwrap();
    (home, own, journals, sessions)
}

const URLS: [&str; 2] = ["memory:", "sqlite://own.db"];

fn records(store: &dyn Store) -> usize {
    store.find(&RecordQuery { limit: 99, ..RecordQuery::of(TenantScope::All) }).unwrap().len()
}

#[test]
fn conversations_are_in_one_store_and_the_records_of_their_calls_in_the_other() {
    URLS.into_iter().for_each(are_apart);
}

fn are_apart(url: &str) {
    let (_home, own, journals, sessions) = split(url);
    let turn = TurnId::fresh();
    let who = Identity::top("main", "s", turn.clone());
    let key = key_of(&who);
    appended(&sessions, append_of(&key, vec![begun(&turn, "hello")]));
    let asked = question("q", &who, &call("{}"));
    own.ask(asked, moment(0)).unwrap();
    let append = JournalAppend { records: vec![event(&turn)], ..append_of(&key, vec![ended()]) };
    let state = || own.approval(&TenantScope::All, "q").unwrap().unwrap().state;
    assert_eq!((state(), sessions.sessions(&key.tenant).unwrap()[0].waiting), (ApprovalState::Waiting, 1));
    appended(&sessions, append);
    assert_eq!((sessions.journal(&key).unwrap().len(), journals.journal(&key).unwrap().len()), (2, 2));
    assert_eq!((own.journal(&key).unwrap().len(), own.sessions(&key.tenant).unwrap().len()), (0, 0));
    assert_eq!((records(&*own), records(&*journals)), (1, 0));
    assert_eq!((state(), sessions.sessions(&key.tenant).unwrap()[0].waiting), (ApprovalState::Void, 0));
    assert!(sessions.delete(&key).unwrap() && !sessions.delete(&key).unwrap());
    assert_eq!((journals.sessions(&key.tenant).unwrap().len(), records(&*own)), (0, 1), "evidence stays");
}

#[test]
fn what_a_turn_asks_is_not_made_void_by_its_own_beginning() {
    URLS.into_iter().for_each(asks_at_once);
}

fn asks_at_once(url: &str) {
    let (_home, own, _journals, sessions) = split(url);
    let turn = TurnId::fresh();
    let who = Identity::top("main", "s", turn.clone());
    let key = key_of(&who);
    hand_over(&sessions, JournalAppend { records: vec![event(&turn)], ..append_of(&key, vec![begun(&turn, "hello")]) });
    own.ask(question("q", &who, &call("{}")), moment(0)).unwrap();
    drop(sessions);
    assert_eq!(own.approval(&TenantScope::All, "q").unwrap().unwrap().state, ApprovalState::Waiting);
}

#[test]
fn what_is_handed_over_is_kept_in_order_before_the_sessions_are_gone() {
    URLS.into_iter().for_each(are_in_order);
}

fn are_in_order(url: &str) {
    let (_home, own, journals, sessions) = split(url);
    let turns: Vec<TurnId> = (0..50).map(|_| TurnId::fresh()).collect();
    let key = key_of(&Identity::top("main", "s", turns[0].clone()));
    for turn in &turns {
        hand_over(&sessions, JournalAppend { records: vec![event(turn)], ..append_of(&key, vec![begun(turn, "x")]) });
    }
    drop(sessions);
    let kept: Vec<JournalEntry> = turns.iter().map(|turn| begun(turn, "x")).collect();
    assert_eq!((journals.journal(&key).unwrap(), records(&*own)), (kept, 50));
}
