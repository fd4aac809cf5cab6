//! How many commits a start takes in a file: each of them waits for all others, and where many turns start at once, that
//! is what they wait for.

use std::fs;

use jiff::{SignedDuration, Timestamp};
use pintle_domain::id::{DEFAULT_TENANT, TenantId, TurnId};
use pintle_domain::store::{
    GatewayUse, IdentityStore as _, RuleStore as _, SessionKey, SessionStore as _, UseKind, UseRoom,
};
use pintle_store::{Durability, Sqlite};
use pintle_testkit::conformance::sessions::{append_of, appended, begun, key};

/// What a log begins with, and what stands before each page of it.
const HEAD: usize = 32;
const BEFORE_A_PAGE: usize = 24;
const PAGE: usize = 4096;

/// The commits in the log of the file: what stands before the last page of each has the length of the file.
fn commits(store: &Sqlite) -> usize {
    let mut log = store.path().to_owned().into_os_string();
    log.push("-wal");
    let log = fs::read(log).unwrap();
    log[HEAD..].chunks_exact(BEFORE_A_PAGE + PAGE).filter(|frame| frame[4..8] != [0; 4]).count()
}

fn place(number: u32) -> GatewayUse {
    GatewayUse {
        id: format!("0193a5b0-7000-7000-8000-{number:012}"),
        kind: UseKind::Turn,
        tenant: TenantId::default_tenant(),
        who: String::new(),
        node: "n".into(),
    }
}

/// What a gateway does until it tells that a turn of `key` has begun; another one, which had the place before, is over.
fn start(store: &Sqlite, key: &SessionKey, number: u32) {
    let now = Timestamp::now();
    store.session_settings(key).unwrap();
    let (ended, at) = ([place(number - 1).id], (now, now + SignedDuration::from_secs(30)));
    assert!(store.take_use(&place(number), UseRoom { limit: 1, turns: None, ended: &ended }, at).unwrap());
    store.disabled_tenants().unwrap();
    store.tenants().unwrap();
    store.member(&key.tenant, "anna").unwrap();
    store.was_removed(&key.tenant, "anna").unwrap();
    store.last_node(key).unwrap();
    let _hold = store.hold(key).unwrap();
    store.journal(key).unwrap();
    appended(store, append_of(key, vec![begun(&TurnId::fresh(), "hi")]));
}

#[test]
fn a_turn_at_a_gateway_begins_with_three_commits() {
    let folder = tempfile::tempdir().unwrap();
    let store = Sqlite::open(&folder.path().join("pintle.db"), Durability::Commit).unwrap();
    start(&store, &key(DEFAULT_TENANT, "first"), 1);
    let before = commits(&store);
    assert!(before > 0, "the log has what was written");
    start(&store, &key(DEFAULT_TENANT, "second"), 2);
    // Its place, its session, its first entries.
    assert_eq!(commits(&store) - before, 3);
}
