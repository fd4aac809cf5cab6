//! Rules that somebody changes together with the chain, so that every hash fits: without the key of a host nothing comes
//! of it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use pintle_domain::anchor::DoubtKind;
use pintle_domain::audit::Hash;
use pintle_domain::id::{HookId, TenantId};
use pintle_domain::rule::Rule;
use pintle_domain::store::RuleChange;
use pintle_store::keyring::signing::SigningKey;
use pintle_store::keyring::{KeySource, Keyring};
use pintle_store::{AnchorFile, Durability, Store, StoreKeys};
use pintle_testkit::conformance::audit::cleared;
use pintle_testkit::conformance::store::keep;

use super::anchors::{EDITED, OTHER, World, by, in_both, rule};

const NEW: &str = "0193a5b0-7000-7000-8000-0000000000a3";

/// Two keys that encrypt.
const KEY: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const OTHER_KEY: &str = "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210";

fn edited() -> RuleChange {
    let hook = Box::new(Rule { matcher: "^nothing$".into(), ..rule(EDITED, "no-rm") });
    RuleChange::Update { hook, if_version: None, action: "updated" }
}

/// Somebody who has Pintle and the database, and no key: every entry that they leave is whole.
fn stranger(world: &World<'_>) -> Arc<dyn Store> {
    pintle_store::open(&world.url, world.home.path(), Durability::Commit).unwrap()
}

/// Another host, with keys and an anchor of its own; `key` is the one that encrypts there, `old` those of before.
fn host(world: &World<'_>, home: &Path, (key, old): (Option<&str>, Option<&str>)) -> Arc<dyn Store> {
    let primary = key.map(|key| ("PINTLE_ENCRYPTION_KEY", OsString::from(key)));
    let source = KeySource { primary, old: old.map(OsString::from), file: None };
    let keys = StoreKeys {
        keyring: Some(Arc::new(Keyring::open(&source).unwrap())),
        signing: Some(Arc::new(SigningKey::open_or_create(home).unwrap())),
        anchor: Some(Arc::new(AnchorFile::beside(home, &world.url))),
        ..StoreKeys::default()
    };
    pintle_store::open_with(&world.url, home, Durability::Commit, keys).unwrap()
}

fn doubts(store: &dyn Store) -> BTreeMap<String, DoubtKind> {
    let rules = store.rules().unwrap();
    assert_eq!(rules.shut, None, "no other gate shuts");
    rules.doubts.into_iter().map(|doubt| (doubt.hook.to_string(), doubt.why)).collect()
}

fn each(kind: &DoubtKind, ids: &[&str]) -> BTreeMap<String, DoubtKind> {
    ids.iter().map(|id| ((*id).to_owned(), kind.clone())).collect()
}

#[test]
fn a_rule_that_is_changed_with_an_entry_that_no_host_sealed_stays_in_doubt() {
    in_both(|world| {
        let theirs = stranger(&world);
        let made = RuleChange::Create(Box::new(rule(NEW, "let-all")));
        theirs.change(vec![edited(), RuleChange::delete(HookId::from(OTHER)), made], &by()).unwrap();
        drop(theirs);
        for _ in 0..3 {
            let ours = world.open().unwrap();
            assert_eq!(doubts(&*ours), each(&DoubtKind::Unsealed, &[EDITED, OTHER, NEW]));
            // The chain goes on over it, and is signed.
            keep(&*ours, cleared()).unwrap();
        }
        let mut taken = world.open().unwrap().accept(&by()).unwrap();
        taken.sort();
        let names = ["let-all", "no-push", "no-rm"];
        let said = |name: &str| {
            format!(
                "the stored rule `{name}` was changed by something other than Pintle, and its entry in the audit chain \
                 has no seal"
            )
        };
        assert_eq!(taken, names.map(said));
        assert_eq!(doubts(&*world.open().unwrap()), BTreeMap::new());
        assert_eq!(world.open().unwrap().accept(&by()), Ok(vec![]));
    });
}

#[test]
fn a_breaker_that_is_opened_with_an_entry_that_no_host_sealed_leaves_its_rule_in_doubt() {
    in_both(|world| {
        stranger(&world).trip(&HookId::from(EDITED), &TenantId::default_tenant(), &by()).unwrap();
        assert_eq!(doubts(&*world.open().unwrap()), each(&DoubtKind::Unsealed, &[EDITED]));
    });
}

#[test]
fn another_name_of_the_store_lets_no_rule_in() {
    in_both(|world| {
        stranger(&world).change(vec![RuleChange::Create(Box::new(rule(NEW, "let-all")))], &by()).unwrap();
        world.tell("UPDATE store_identity SET store_id = 'another'");
        for _ in 0..2 {
            assert_eq!(doubts(&*world.open().unwrap()), each(&DoubtKind::Unsealed, &[NEW]));
        }
    });
}

#[test]
fn an_entry_of_ours_that_is_written_once_more_is_not_ours() {
    in_both(|world| {
        let ours = world.open().unwrap();
        let toggled = |enabled| {
            let hook = Box::new(Rule { enabled, ..rule(EDITED, "no-rm") });
            RuleChange::Update { hook, if_version: None, action: "toggled" }
        };
        ours.change(vec![toggled(false)], &by()).unwrap();
        world.tell("CREATE TABLE saved AS SELECT * FROM agent_hooks");
        ours.change(vec![toggled(true)], &by()).unwrap();
        let tenant = TenantId::default_tenant();
        let entries = ours.audit_entries(&tenant, 1, 1000).unwrap();
        assert_eq!(doubts(&*ours), BTreeMap::new());
        drop(ours);
        let of_rule: Vec<_> = entries.iter().filter(|entry| entry.body.contains("toggled")).collect();
        let [off, _] = of_rule.as_slice() else { panic!("{of_rule:?}") };
        assert!(off.body.contains(r#""seal":"#), "{}", off.body);
        let (seq, prev) = entries.last().map(|last| (last.seq + 1, last.hash)).unwrap();
        let body = off.body.replace(&format!(r#""seq":{}"#, off.seq), &format!(r#""seq":{seq}"#));
        let hash = Hash::of(&prev, &body);
        world.tell(&format!(
            "INSERT INTO audit_log (tenant_id, seq, at, kind, body, prev, hash) \
             SELECT tenant_id, {seq}, at, kind, '{}', '{prev}', '{hash}' FROM audit_log \
             WHERE tenant_id = '{tenant}' AND seq = {}; \
             DELETE FROM agent_hooks WHERE id = '{EDITED}'; \
             INSERT INTO agent_hooks SELECT * FROM saved WHERE id = '{EDITED}'",
            body.replace('\'', "''"),
            off.seq,
        ));
        assert_eq!(doubts(&*world.open().unwrap()), each(&DoubtKind::OtherKey, &[EDITED]));
    });
}

#[test]
fn hosts_with_one_key_take_what_the_other_one_changes_and_without_it_name_it() {
    in_both(|world| {
        let [one, two] = [(); 2].map(|()| tempfile::tempdir().unwrap());
        let ours = |old| host(&world, one.path(), (Some(KEY), old));
        let same = host(&world, two.path(), (Some(KEY), None));
        for host in [&*ours(None), &*same] {
            assert_eq!(doubts(host), BTreeMap::new());
        }
        same.change(vec![edited()], &by()).unwrap();
        same.trip(&HookId::from(EDITED), &TenantId::default_tenant(), &by()).unwrap();
        assert_eq!(doubts(&*ours(None)), BTreeMap::new());
        drop(same);

        let other = tempfile::tempdir().unwrap();
        let theirs = host(&world, other.path(), (Some(OTHER_KEY), None));
        assert_eq!(doubts(&*theirs), BTreeMap::new());
        theirs.change(vec![RuleChange::delete(HookId::from(OTHER))], &by()).unwrap();
        for _ in 0..2 {
            assert_eq!(doubts(&*ours(None)), each(&DoubtKind::OtherKey, &[OTHER]));
        }
        assert_eq!(doubts(&*ours(Some(OTHER_KEY))), BTreeMap::new(), "the key is known from now on");
        assert_eq!(doubts(&*ours(None)), BTreeMap::new(), "what was taken stays taken");

        theirs.reset(&HookId::from(EDITED), None, &by()).unwrap();
        let said = ours(None).accept(&by()).unwrap();
        assert!(said.len() == 1 && said[0].contains("is sealed with a key that is not known here"), "{said:?}");
        assert_eq!(doubts(&*ours(None)), BTreeMap::new());
        assert_eq!(doubts(&*theirs), BTreeMap::new(), "the row is as that host left it");
    });
}

#[test]
fn what_was_written_before_there_were_seals_counts_and_no_more_of_it() {
    in_both(|world| {
        // A home of before: its anchor knows of no seals, and its last changes were not read.
        let anchor = AnchorFile::beside(world.home.path(), &world.url);
        let text = fs::read_to_string(anchor.path()).unwrap();
        let of_before = |line: &&str| !line.contains("is_sealed") && !line.contains("unsealed_to");
        let text = text.lines().filter(of_before).collect::<Vec<_>>().join("\n").replace("\"tenants\": {}", "");
        let text = text.replace(",\n}", "\n}").replace(",\n    }", "\n    }").replace(",\n      }", "\n      }");
        fs::write(anchor.path(), text).unwrap();
        assert!(!anchor.read().unwrap().unwrap().is_sealed);
        stranger(&world).change(vec![edited()], &by()).unwrap();
        assert_eq!(doubts(&*world.open().unwrap()), BTreeMap::new());
        assert!(anchor.read().unwrap().unwrap().is_sealed, "seals begin");
        stranger(&world).change(vec![RuleChange::delete(HookId::from(OTHER))], &by()).unwrap();
        assert_eq!(doubts(&*world.open().unwrap()), each(&DoubtKind::Unsealed, &[OTHER]));
    });
}
