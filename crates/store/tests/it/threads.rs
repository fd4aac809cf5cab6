//! Threads that read the rules, change them, record calls and have chains signed, all at once in one home: nobody waits
//! for ever.

use std::fs::File;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread;
use std::time::{Duration, Instant};

use nix::fcntl::{Flock, FlockArg};
use pintle_domain::id::HookId;
use pintle_domain::store::RuleChange;
use pintle_store::{AnchorFile, Store};
use pintle_testkit::conformance::audit::cleared;
use pintle_testkit::conformance::store::keep;

use crate::anchors::{EDITED, by, rule, world};

/// Far longer than all of it takes; only whoever waits for ever takes so long.
const PATIENCE: Duration = Duration::from_secs(120);

/// How often each thread does what it does.
const ROUNDS: usize = 150;

/// What a call does: it writes in its own place, where the writer is idle.
fn record(store: &dyn Store) {
    let records = match store.idle() {
        Some(idle) => match idle.write(cleared()) {
            Ok(how) => return how.unwrap(),
            Err(records) => records,
        },
        None => cleared(),
    };
    keep(store, records).unwrap();
}

#[test]
fn calls_rules_and_signatures_never_wait_for_each_other_for_ever() {
    let world = world(None);
    let stores: Vec<Arc<dyn Store>> = (0..3).map(|_| world.open().unwrap()).collect();
    let (done, ended) = channel();
    let begin = |name: &'static str, store: &Arc<dyn Store>, work: fn(&dyn Store)| {
        let (store, done) = (store.clone(), done.clone());
        thread::spawn(move || {
            (0..ROUNDS).for_each(|_| work(&*store));
            done.send(name).unwrap();
        });
    };
    for store in &stores {
        begin("a caller", store, record);
        begin("a session that begins", store, |store| assert_eq!(store.rules().unwrap().shut, None));
    }
    begin("whoever changes rules", &stores[0], |store| {
        let new = rule("0193a5b0-7000-7000-8000-0000000000b1", "short-lived");
        let id = new.id.clone();
        store.change(vec![RuleChange::Create(Box::new(new))], &by()).unwrap();
        store.change(vec![RuleChange::Delete { id, reason: String::new() }], &by()).unwrap();
    });
    begin("a breaker", &stores[1], |store| {
        store.trip(&HookId::from(EDITED), &pintle_domain::id::TenantId::default_tenant(), &by()).unwrap();
        store.reset(&HookId::from(EDITED), None, &by()).unwrap();
    });
    drop(done);
    let deadline = Instant::now() + PATIENCE;
    for left in (1..=8).rev() {
        let waited = ended.recv_timeout(deadline.saturating_duration_since(Instant::now()));
        assert!(waited.is_ok(), "{left} of 8 threads still wait");
    }
    drop(stores);
    let rules = world.rules();
    assert_eq!((rules.shut, rules.doubts), (None, vec![]));
}

#[test]
fn a_process_that_keeps_the_lock_of_the_anchor_holds_nobody_up() {
    let world = world(None);
    let store = world.open().unwrap();
    let lock = AnchorFile::beside(world.home.path(), &world.url).path().with_extension("lock");
    let held = Flock::lock(File::options().write(true).open(lock).unwrap(), FlockArg::LockExclusive).unwrap();
    let began = Instant::now();
    let create = RuleChange::Create(Box::new(rule("0193a5b0-7000-7000-8000-0000000000c1", "late")));
    store.change(vec![create], &by()).unwrap();
    record(&*store);
    assert_eq!(store.rules().unwrap().shut, None);
    assert!(began.elapsed() < PATIENCE);
    drop(held);
    // What the anchor missed meanwhile it has after the next look.
    assert_eq!(store.rules().unwrap().doubts, vec![]);
    drop(store);
    assert_eq!(world.rules().doubts, vec![]);
}
