//! A server that dies under load: what was acknowledged is there, what was not says so, and nobody opens the store anew.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{channel, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread;

use pintle_domain::execution::Execution;
use pintle_domain::id::{DEFAULT_TENANT, HookId, TurnId};
use pintle_domain::store::{
    ExecutionStore, JournalAppend, RecordQuery, RecordStore, SessionStore, StoreError, TenantScope,
};
use pintle_store::{Durability, Postgres};
use pintle_testkit::conformance::executions::{by, failed, ran};
use pintle_testkit::conformance::sessions::{append_of, key, queued};
use pintle_testkit::conformance::store::{event, keep};
use pintle_testkit::postgres::Server;

use crate::postgres_processes::until;

/// How many appends are under way at any time.
const UNDER_WAY: usize = 32;

/// How often the server is killed.
const ROUNDS: usize = 3;

/// How many appends have to be acknowledged before each kill.
const APPENDS: usize = 150;

/// What came of the load so far.
#[derive(Default)]
struct Came {
    acknowledged: Vec<(usize, String)>,
    refused: Vec<StoreError>,
}

/// Appends for ever, each with a record, until `over`.
fn load(store: &Postgres, over: &AtomicBool, came: &Arc<Mutex<Came>>) {
    let (finished, wait) = sync_channel(UNDER_WAY);
    (0..UNDER_WAY).for_each(|_| finished.send(()).unwrap());
    for number in 0.. {
        wait.recv().unwrap();
        if over.load(Ordering::Relaxed) {
            return;
        }
        let record = event(&TurnId::from("t"));
        let (id, finished, came) = (record.event_id.to_string(), finished.clone(), came.clone());
        let entries = (0..3).map(|i| queued(&format!("{number}.{i}"))).collect();
        let append = JournalAppend { records: vec![record], ..append_of(&key(DEFAULT_TENANT, "load"), entries) };
        let done = Box::new(move |how| {
            let mut came = came.lock().unwrap();
            match how {
                Ok(()) => came.acknowledged.push((number, id)),
                Err(why) => came.refused.push(why),
            }
            drop(came);
            // Once it is over, nobody waits for the last ones.
            let _nobody = finished.send(());
        });
        store.append(append, done);
    }
}

#[test]
fn nothing_acknowledged_is_lost_when_the_server_is_killed() {
    let mut server = Server::start();
    let store = Postgres::open(&server.fresh_database(), Durability::BeforeEffect).unwrap();
    let held = key(DEFAULT_TENANT, "load");
    let hold = store.hold(&held).unwrap();
    let (over, came) = (AtomicBool::new(false), Arc::new(Mutex::new(Came::default())));
    let acknowledged = || came.lock().unwrap().acknowledged.len();
    thread::scope(|scope| {
        scope.spawn(|| load(&store, &over, &came));
        for round in 0..ROUNDS {
            let before = acknowledged();
            until("the load goes on", || acknowledged() >= before + APPENDS);
            server.kill();
            let refused = came.lock().unwrap().refused.len();
            until("appends are refused", || came.lock().unwrap().refused.len() > refused);
            // Whatever is asked fails, and says which server.
            let said = [
                store.find(&RecordQuery::of(TenantScope::All)).err(),
                store.journal(&held).err(),
                store.sessions(&held.tenant).err(),
                store.hold(&key(DEFAULT_TENANT, "another")).err(),
                store.delete(&key(DEFAULT_TENANT, "another")).err(),
                keep(&store, vec![event(&TurnId::fresh())]).err(),
            ];
            for said in said {
                let Some(StoreError::Unavailable(why)) = said else { panic!("round {round}: {said:?}") };
                assert!(why.contains(store.name()), "{why}");
            }
            server.restart();
        }
        let before = acknowledged();
        until("the load goes on after the last", || acknowledged() >= before + APPENDS);
        over.store(true, Ordering::Relaxed);
    });
    // Everybody has been told once a last one is.
    until("the last one is kept", || keep(&store, vec![event(&TurnId::fresh())]).is_ok());

    let came = came.lock().unwrap();
    assert!(came.refused.iter().all(|why| matches!(why, StoreError::Unavailable(_))), "{:?}", came.refused);
    let journal: Vec<String> = store.journal(&held).unwrap().iter().map(|entry| format!("{entry:?}")).collect();
    assert_eq!(journal.len() % 3, 0, "appends are whole");
    let there = |number: usize| format!("{:?}", queued(&format!("{number}.0")));
    let entries: HashSet<&String> = journal.iter().collect();
    assert_eq!(entries.len(), journal.len(), "nothing is there twice");
    let found = store.find(&RecordQuery { limit: usize::MAX, ..RecordQuery::of(TenantScope::All) }).unwrap();
    let events: HashSet<&str> = found.iter().map(|event| event.event_id.as_str()).collect();
    for (number, event) in &came.acknowledged {
        assert!(entries.contains(&there(*number)) && events.contains(event.as_str()), "append {number} is lost");
    }
    assert!(came.acknowledged.is_sorted_by_key(|(number, _)| *number), "told in the order of the calls");
    until("the session is held again", || {
        store.sessions(&held.tenant).is_ok_and(|rows| rows.iter().any(|row| row.held_by.is_some()))
    });
    drop(hold);
}

#[test]
fn a_store_whose_server_is_gone_can_be_dropped() {
    let mut server = Server::start();
    let store = Postgres::open(&server.fresh_database(), Durability::Commit).unwrap();
    let hold = store.hold(&key(DEFAULT_TENANT, "s")).unwrap();
    server.kill();
    let (say, hear) = channel();
    for _ in 0..500 {
        let say = say.clone();
        store.keep(vec![event(&TurnId::fresh())], Box::new(move |how| say.send(how).unwrap()));
    }
    drop(store);
    drop((say, hold));
    let answers: Vec<Result<(), StoreError>> = hear.iter().collect();
    assert_eq!(answers.len(), 500, "everybody is told");
    assert!(answers.iter().all(Result::is_err));
}

#[test]
fn what_nobody_waits_for_outlasts_a_server_that_is_killed() {
    let mut server = Server::start();
    let store = Postgres::open(&server.fresh_database(), Durability::BeforeEffect).unwrap();
    keep(&store, vec![event(&TurnId::fresh())]).unwrap();
    server.kill();
    let (say, hear) = channel();
    let told = |what: &'static str| {
        let say = say.clone();
        Box::new(move |how| say.send((what, how)).unwrap())
    };
    let late = event(&TurnId::fresh());
    store.keep_patiently(vec![late.clone()], Box::new(()), told("record"));
    let hook = HookId::fresh();
    let row = Execution::of(&ran(&hook, failed()), &by(&hook, failed())).unwrap();
    store.keep_executions(vec![row.clone()], told("row"));
    // A permitted call waits for its records, which are handed over behind those.
    assert!(keep(&store, vec![event(&TurnId::fresh())]).is_err(), "gates stay shut, and at once");
    assert!(hear.try_recv().is_err(), "those who do not wait are told in the end");

    server.restart();
    assert_eq!([hear.recv().unwrap(), hear.recv().unwrap()], [("record", Ok(())), ("row", Ok(()))]);
    let found = store.find(&RecordQuery { limit: usize::MAX, ..RecordQuery::of(TenantScope::All) }).unwrap();
    let ids: Vec<&str> = found.iter().map(|event| event.event_id.as_str()).collect();
    assert_eq!(ids.iter().filter(|id| **id == late.event_id.as_str()).count(), 1, "{ids:?}");
    assert!(store.execution(&TenantScope::All, &row.id).unwrap().is_some());
}
