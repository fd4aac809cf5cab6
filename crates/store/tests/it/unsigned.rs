//! A chain that somebody forged, or took the signatures from: nothing of it is signed until a person takes it.

use pintle_domain::store::TenantScope;
use std::collections::BTreeMap;

use pintle_domain::approval::{APPROVAL_USED, Approval, ApprovalFlaw};
use pintle_domain::audit::Hash;
use pintle_domain::id::{DEFAULT_TENANT, TenantId, TurnId};
use pintle_domain::identity::Identity;
use pintle_domain::tool::CallPlace;
use pintle_store::{AnchorFile, Durability};
use pintle_testkit::conformance::approvals::{call, question, said};
use pintle_testkit::conformance::audit::cleared;
use pintle_testkit::conformance::store::keep;

use super::anchors::{World, by, in_both};

fn tenant() -> TenantId {
    TenantId::default_tenant()
}

/// The last row of the chain that is signed, as whoever has no keys finds it.
fn signed(world: &World<'_>) -> Option<u64> {
    let store = pintle_store::open(&world.url, world.home.path(), Durability::Commit).unwrap();
    store.last_checkpoint(&tenant()).unwrap().map(|point| point.seq)
}

/// Says something else in the first row that names the rule `name`, hashes all rows behind it anew, and takes the signatures.
fn forge(world: &World<'_>, name: &str) {
    let store = pintle_store::open(&world.url, world.home.path(), Durability::Commit).unwrap();
    let entries = store.audit_entries(&tenant(), 1, 1000).unwrap();
    drop(store);
    let edited = entries.iter().position(|entry| entry.body.contains(name)).unwrap();
    let mut prev = entries[edited].prev;
    for (number, entry) in entries.iter().enumerate().skip(edited) {
        let body = if number == edited { entry.body.replace(name, "no-mv") } else { entry.body.clone() };
        let hash = Hash::of(&prev, &body);
        world.tell(&format!(
            "UPDATE audit_log SET body = '{}', prev = '{prev}', hash = '{hash}' WHERE tenant_id = '{}' AND seq = {}",
            body.replace('\'', "''"),
            tenant(),
            entry.seq
        ));
        prev = hash;
    }
    world.tell("DELETE FROM audit_checkpoints");
}

/// Goes on as programs do: one that reads the rules first, and one that never does.
fn go_on(world: &World<'_>, reads_rules: bool) {
    let store = world.open().unwrap();
    if reads_rules {
        store.rules().unwrap();
    }
    for _ in 0..3 {
        keep(&*store, cleared()).unwrap();
    }
}

#[test]
fn nothing_is_signed_over_a_chain_that_is_another_one_until_a_person_takes_it() {
    in_both(|world| {
        for (other_name, rule) in [(false, "no-rm"), (true, "no-push")] {
            forge(&world, rule);
            if other_name {
                world.tell("UPDATE store_identity SET store_id = 'another'");
            }
            for reads_rules in [false, true] {
                go_on(&world, reads_rules);
                assert_eq!(signed(&world), None, "another name: {other_name}, rules are read: {reads_rules}");
            }
            let store = world.open().unwrap();
            let shut = store.rules().unwrap().shut.unwrap();
            assert!(shut.contains("of its audit chain of") && shut.contains("is another one"), "{shut}");
            let taken = store.accept(&by()).unwrap();
            assert!(taken[0].contains("an older copy of the store: row "), "{taken:?}");
            drop(store);
            assert!(signed(&world).is_some(), "what a person took is signed");
            assert_eq!(world.rules().shut, None);
            assert_eq!(world.open().unwrap().accept(&by()), Ok(vec![]));
        }
    });
}

#[test]
fn signatures_that_somebody_took_are_missed_until_a_person_takes_it() {
    in_both(|world| {
        let had = signed(&world).unwrap();
        world.tell("DELETE FROM audit_checkpoints");
        for reads_rules in [false, true] {
            go_on(&world, reads_rules);
            assert_eq!((signed(&world), world.rules().shut), (None, None), "rules are read: {reads_rules}");
        }
        let anchor = AnchorFile::beside(world.home.path(), &world.url);
        let why = anchor.read().unwrap().unwrap().unsigned(&tenant(), 0).unwrap();
        assert!(why.ends_with(&format!("it was signed up to row {had}, and is not at all")), "{why}");
        let store = world.open().unwrap();
        assert_eq!(store.accept(&by()), Ok(vec![why]));
        assert_eq!(store.accept(&by()), Ok(vec![]));
        drop(store);
        assert!(signed(&world) > Some(had));
        assert_eq!(anchor.read().unwrap().unwrap().unsigned(&tenant(), signed(&world).unwrap()), None);
    });
}

#[test]
fn retention_takes_no_signature_that_is_missed() {
    in_both(|world| {
        for _ in 0..3 {
            go_on(&world, true);
        }
        let store = world.open().unwrap();
        store.rules().unwrap();
        let before = store.checkpoints(&tenant(), 1, 1000).unwrap();
        while store.forget_audit(&tenant(), jiff::Timestamp::MAX, 1000).unwrap() > 0 {}
        let after = store.checkpoints(&tenant(), 1, 1000).unwrap();
        assert_eq!((before.len() > 1, after.len()), (true, 1));
        assert_eq!(store.rules().unwrap().shut, None);
        assert_eq!(store.accept(&by()), Ok(vec![]));
        keep(&*store, cleared()).unwrap();
        drop(store);
        assert!(signed(&world) > after.last().map(|point| point.seq), "the chain goes on and is signed");
    });
}

#[test]
fn an_anchor_of_before_knows_of_no_signature_and_learns_of_it() {
    in_both(|world| {
        let anchor = AnchorFile::beside(world.home.path(), &world.url);
        let text = std::fs::read_to_string(anchor.path()).unwrap();
        let mut older: BTreeMap<String, pintle_domain::json::Value> = serde_json::from_str(&text).unwrap();
        let mut known = anchor.read().unwrap().unwrap().without_signatures();
        let chains = pintle_domain::json::to_value(&known.chains).unwrap();
        assert!(!chains.to_string().contains("signed"), "an older program reads it");
        older.insert("chains".into(), chains);
        std::fs::write(anchor.path(), serde_json::to_vec(&older).unwrap()).unwrap();
        world.tell("DELETE FROM audit_checkpoints");
        assert_eq!(world.rules().shut, None);
        go_on(&world, true);
        let end = signed(&world).unwrap();
        known = anchor.read().unwrap().unwrap();
        assert_eq!(known.chains[&tenant()].signed, Some(end), "what is there then counts");
    });
}

#[test]
fn a_use_that_somebody_cuts_off_the_chain_is_missed_at_once() {
    in_both(|world| {
        let store = world.open().unwrap();
        assert_eq!(store.rules().unwrap().shut, None);
        let now = jiff::Timestamp::now();
        let until = now.checked_add(jiff::SignedDuration::from_hours(24)).unwrap();
        let who = Identity::top("main", "cli:1", TurnId::from("once"));
        let asked = question("once", &who, &call(r#"{"command":"rm -rf build"}"#)).at(CallPlace::in_folder("/work"));
        let asked = Approval { asked_at: now, expires_at: until, ..asked };
        store.ask(asked, now).unwrap();
        store.answer(&TenantScope::All, "once", said(true), now).unwrap();
        world.tell("CREATE TABLE saved AS SELECT * FROM approvals");
        store.use_up(&DEFAULT_TENANT.into(), "once", now).unwrap();
        world.tell(&format!("DELETE FROM audit_log WHERE body LIKE '%{APPROVAL_USED}%'"));
        world.tell("UPDATE approvals SET state = 'approved', seal = (SELECT seal FROM saved)");
        let found = store.approval(&TenantScope::All, "once").unwrap().unwrap();
        assert_eq!(found.flaw, Some(ApprovalFlaw::BrokenChain));
        assert!(store.use_up(&DEFAULT_TENANT.into(), "once", now).is_err());
    });
}
