//! Hosts of one store that get another encryption key one after another: until somebody seals anew, each knows what was
//! there before.

use std::path::Path;
use std::sync::Arc;

use pintle_domain::caller_role::CallerRole;
use pintle_domain::id::TenantId;
use pintle_store::keyring::signing::SigningKey;
use pintle_store::keyring::{KeySource, Keyring};
use pintle_store::{AnchorFile, Durability, Store, StoreKeys};

use super::anchors::{World, by, in_both};
use super::sealed_identities::{KEY, SECOND, digest, filled, is_good, key, member, role};

const OLD: &str = "0000000000000000000000000000000000000000000000000000000000000001";
const NEW: &str = "0000000000000000000000000000000000000000000000000000000000000002";

/// A host with a home of its own, and the one key or both.
fn host(world: &World<'_>, home: &Path, (now, old): (&str, Option<&str>)) -> (Arc<dyn Store>, Arc<Keyring>) {
    let primary = Some(("PINTLE_ENCRYPTION_KEY", now.into()));
    let keyring = Arc::new(Keyring::open(&KeySource { primary, old: old.map(Into::into), file: None }).unwrap());
    let keys = StoreKeys {
        keyring: Some(keyring.clone()),
        signing: Some(Arc::new(SigningKey::open_or_create(home).unwrap())),
        anchor: Some(Arc::new(AnchorFile::beside(home, &world.url))),
        ..StoreKeys::default()
    };
    let store = pintle_store::open_with(&world.url, world.home.path(), Durability::Commit, keys).unwrap();
    assert_eq!(store.rules().unwrap().shut, None);
    (store, keyring)
}

fn holds(store: &dyn Store) {
    assert_eq!(store.identity_doubts().unwrap(), Vec::<String>::new());
    assert_eq!((role(store, "cleo"), is_good(store, "two")), (Some(CallerRole::Operator), true));
}

#[test]
fn a_start_with_a_new_key_beside_the_old_one_takes_nothing_from_hosts_that_have_the_old_one() {
    in_both(|world| {
        let homes = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let [one, two] = homes.each_ref().map(tempfile::TempDir::path);
        let (first, _) = host(&world, one, (OLD, None));
        first.add_member(&member("cleo", CallerRole::Operator)).unwrap();
        first.add_key(&key(SECOND, "cleo"), &digest("two")).unwrap();
        drop(first);
        holds(&*host(&world, two, (OLD, None)).0);
        for _ in 0..2 {
            holds(&*host(&world, one, (NEW, Some(OLD))).0);
            holds(&*host(&world, two, (OLD, None)).0);
        }
        // Nothing is in doubt, so nobody takes it to another key either.
        assert_eq!(host(&world, one, (NEW, Some(OLD))).0.accept(&by()), Ok(vec![]));
        holds(&*host(&world, two, (OLD, None)).0);
        let (store, keyring) = host(&world, one, (NEW, Some(OLD)));
        store.reseal_identities(&keyring).unwrap();
        drop(store);
        holds(&*host(&world, one, (NEW, None)).0);
        assert_eq!(role(&*host(&world, two, (OLD, None)).0, "cleo"), None, "from then on the new key counts");
    });
}

#[test]
fn rows_of_before_there_were_seals_are_sealed_with_a_key_that_all_hosts_have() {
    in_both(|world| {
        let homes = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        let [one, two] = homes.each_ref().map(tempfile::TempDir::path);
        let (first, _) = host(&world, one, (OLD, None));
        first.add_member(&member("cleo", CallerRole::Operator)).unwrap();
        first.add_key(&key(SECOND, "cleo"), &digest("two")).unwrap();
        drop(first);
        world.tell("UPDATE members SET seal = NULL");
        world.tell("UPDATE api_keys SET seal = NULL");
        AnchorFile::beside(one, &world.url).forget().unwrap();
        holds(&*host(&world, one, (NEW, Some(OLD))).0);
        holds(&*host(&world, two, (OLD, None)).0);
    });
}

#[test]
fn what_is_accepted_is_named_and_stands_in_the_chain() {
    in_both(|world| {
        let store = filled(&world);
        let tenant = TenantId::default_tenant();
        store.add_member(&member("eve", CallerRole::Viewer)).unwrap();
        store.add_key(&key(SECOND, "eve"), &digest("two")).unwrap();
        store.revoke_key(&tenant, SECOND, &by()).unwrap();
        let revoked = store.audit_entries(&tenant, 1, 1000).unwrap().len();
        drop(store);
        world.tell(&format!("UPDATE api_keys SET revoked_at = NULL WHERE id = '{SECOND}'"));
        world.tell("UPDATE members SET role = 'admin' WHERE user_id = 'eve'");
        let store = world.open().unwrap();
        assert!(!is_good(&*store, "two") && role(&*store, "eve").is_none());
        let taken = store.accept(&by()).unwrap();
        let before = "its seal was not one of the keys here over what it says; the audit chain last said";
        let (eve, own) = (revoked - 2, revoked);
        let (eve, own) = (format!("viewer, enabled (row {eve})"), format!("revoked (row {own})"));
        let lines = [
            format!("the member `eve` of tenant default, from now on admin, enabled: {before} {eve}"),
            format!("the API key `{SECOND}` of `eve` in tenant default, from now on live: {before} {own}"),
        ];
        assert_eq!(taken, lines);
        let entries = store.audit_entries(&tenant, 1, 1000).unwrap();
        let said: Vec<&str> = entries[revoked..].iter().map(|entry| entry.body.as_str()).collect();
        assert_eq!(said.len(), 2, "{said:?}");
        for (body, parts) in said.iter().zip([
            [r#""action":"member_accepted""#, r#""actor":"ada""#, r#""role":"admin""#, r#""subject":"eve""#],
            [r#""action":"key_accepted""#, r#""actor":"ada""#, r#""revoked":false"#, SECOND],
        ]) {
            assert!(parts.iter().all(|part| body.contains(*part)), "{body}");
            assert!(body.contains(r#""seal":""#) && !body.contains(digest("two").as_str()), "{body}");
        }
        assert!(is_good(&*store, "two") && role(&*store, "eve") == Some(CallerRole::Admin));
        assert!(is_good(&*store, "one"), "{KEY}");
        assert_eq!(store.accept(&by()), Ok(vec![]));
        assert_eq!(store.audit_entries(&tenant, 1, 1000).unwrap().len(), revoked + 2, "once");
    });
}

#[test]
fn an_older_copy_that_is_accepted_says_in_the_chain_which_rows_are_missing() {
    in_both(|world| {
        let tenant = TenantId::default_tenant();
        drop(filled(&world));
        drop(world.rules());
        let count = world.open().unwrap().audit_entries(&tenant, 1, 1000).unwrap().len();
        let last = format!("tenant_id = '{tenant}' AND seq = {count}");
        world.tell(&format!("DELETE FROM audit_checkpoints; DELETE FROM audit_log WHERE {last}"));
        let store = world.open().unwrap();
        assert!(store.rules().unwrap().shut.is_some());
        let taken = store.accept(&by()).unwrap();
        let missing = format!("row {count} is missing");
        assert!(taken[0].starts_with("an older copy of the store: ") && taken[0].ends_with(&missing), "{taken:?}");
        let entries = store.audit_entries(&tenant, 1, 1000).unwrap();
        let body = &entries.last().unwrap().body;
        assert!(body.contains(r#""action":"store_accepted""#) && body.contains(&missing), "{body}");
        assert!(body.contains(&format!(r#""missing_from":{count},"missing_to":{count}"#)), "{body}");
        assert_eq!(store.rules().unwrap().shut, None);
        // What the missing row told of is behind the chain that is there now, and later entries make it an old one.
        assert!(is_good(&*store, "one"));
        store.revoke_key(&tenant, KEY, &by()).unwrap();
        assert!(!is_good(&*store, "one"));
    });
}
