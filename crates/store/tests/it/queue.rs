//! A writer that cannot keep up: nobody waits for it, and nobody is forgotten.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use pintle_domain::id::TurnId;
use pintle_domain::store::{RecordQuery, RecordStore, StoreError, TenantScope};
use pintle_store::sqlite::{MAX_GROUP_BATCHES, QUEUE_BATCHES};
use pintle_store::{Durability, Sqlite};
use pintle_testkit::conformance::store::{event, keep};
use rusqlite::Connection;

/// More than the queue and the groups in the hands of the writer can hold: one is written, one is put into words.
const FLOOD: usize = QUEUE_BATCHES + 2 * MAX_GROUP_BATCHES + 7;

fn flood(store: &Sqlite) -> Receiver<(usize, Result<(), StoreError>)> {
    let turn = TurnId::fresh();
    let (said, heard) = channel();
    for i in 0..FLOOD {
        let said = said.clone();
        store.keep(vec![event(&turn)], Box::new(move |how| said.send((i, how)).unwrap()));
    }
    heard
}

fn count(store: &Sqlite) -> usize {
    store.find(&RecordQuery { limit: usize::MAX, ..RecordQuery::of(TenantScope::All) }).unwrap().len()
}

#[test]
fn a_full_queue_answers_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let store = Sqlite::open(&folder.path().join("pintle.db"), Durability::Commit).unwrap();
    let other = Connection::open(store.path()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();

    let heard = flood(&store);
    // Nothing can be written, so whoever heard by now was turned away by `keep` itself.
    let refused: Vec<_> = heard.try_iter().collect();
    assert!(refused.len() >= 7, "{} refused", refused.len());
    let why =
        format!("`{}` cannot be written fast enough: {QUEUE_BATCHES} batches wait already", store.path().display());
    for (_, how) in &refused {
        assert_eq!(how, &Err(StoreError::Unavailable(why.clone())));
    }
    assert_eq!(count(&store), 0, "listings do not wait for the lock");

    other.execute_batch("COMMIT").unwrap();
    let (order, rest): (Vec<_>, Vec<_>) = heard.iter().unzip();
    assert_eq!(rest.len() + refused.len(), FLOOD);
    assert!(rest.iter().all(Result::is_ok), "{rest:?}");
    assert!(order.is_sorted(), "told in the order of keeping");
    assert_eq!(count(&store), rest.len());
    keep(&store, vec![event(&TurnId::fresh())]).unwrap();
}

#[test]
fn a_store_is_idle_once_nothing_waits() {
    let folder = tempfile::tempdir().unwrap();
    let store = Sqlite::open(&folder.path().join("pintle.db"), Durability::Commit).unwrap();
    let other = Connection::open(store.path()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let heard = flood(&store);
    assert!(store.idle().is_none(), "what was handed over earlier is written earlier");
    other.execute_batch("COMMIT").unwrap();
    assert_eq!(heard.iter().count(), FLOOD);
    // Waiting for somebody else has made it slow, until a transaction is quick.
    while store.idle().is_none() {
        keep(&store, vec![event(&TurnId::fresh())]).unwrap();
    }
    let before = count(&store);
    let idle = store.idle().expect("nothing was handed over since");
    assert!(store.idle().is_none(), "somebody has it");
    idle.write(vec![event(&TurnId::fresh())]).unwrap().unwrap();
    assert_eq!(count(&store), before + 1);
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let ours = vec![event(&TurnId::fresh())];
    let back = store.idle().expect("the last one was quick").write(ours.clone()).unwrap_err();
    assert_eq!(back[0].event_id, ours[0].event_id, "they come back if somebody else writes");
    other.execute_batch("COMMIT").unwrap();
    assert_eq!(count(&store), before + 1);
}

#[test]
fn dropping_the_store_writes_what_waits() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pintle.db");
    let store = Sqlite::open(&file, Durability::BeforeEffect).unwrap();
    let heard = flood(&store);
    drop(store);
    let good = heard.try_iter().filter(|(_, how)| how.is_ok()).count();
    assert!(good >= QUEUE_BATCHES, "{good}");
    assert_eq!(count(&Sqlite::open(&file, Durability::Commit).unwrap()), good);
    let left: Vec<_> = folder.path().read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["pintle.db"], "the log was folded in");
}

#[test]
fn a_done_may_hold_the_last_handle_or_panic() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pintle.db");
    let store = Arc::new(Sqlite::open(&file, Durability::Commit).unwrap());
    store.keep(vec![event(&TurnId::fresh())], Box::new(|_| panic!("of the caller")));
    keep(&*store, vec![event(&TurnId::fresh())]).unwrap();

    let (mine, hers) = channel::<Arc<Sqlite>>();
    let (said, heard) = channel();
    store.keep(
        vec![event(&TurnId::fresh())],
        Box::new(move |how| {
            drop(hers.recv().unwrap());
            said.send(how).unwrap();
        }),
    );
    mine.send(store).unwrap();
    assert_eq!(heard.recv().unwrap(), Ok(()));
}
