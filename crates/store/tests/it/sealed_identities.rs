//! Members, keys and sessions of the console that somebody else writes into the database: without the key of a host
//! nothing comes of it, and everybody else goes on.

use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use pintle_domain::caller_role::CallerRole;
use pintle_domain::id::TenantId;
use pintle_domain::store::{
    Actor, ApiKey, ConsoleSession, KeyScope, Member, SecretDigest, SessionOrigin, SessionSecrets, SignInLink,
    StoreError, Tenant,
};
use pintle_store::keyring::signing::SigningKey;
use pintle_store::keyring::{KEY_FILE, KeySource, Keyring};
use pintle_store::{AnchorFile, Durability, Store, StoreKeys};

use super::anchors::{World, by, in_both};

pub(crate) const KEY: &str = "0193a5b0-7000-7000-8000-0000000000c1";
pub(crate) const SECOND: &str = "0193a5b0-7000-7000-8000-0000000000c2";
const ACME: &str = "0193a5b0-7000-7000-8000-0000000000d1";

/// What a row of one who may do nothing any more says.
const NEVER: &str = "1970-01-01T00:00:00Z";

fn at() -> String {
    "2026-11-24T10:00:00Z".to_owned()
}

pub(crate) fn member(user: &str, role: CallerRole) -> Member {
    let tenant = TenantId::default_tenant();
    Member { tenant, user: user.into(), role, disabled_at: None, created_at: at(), created_by: "anna".into() }
}

pub(crate) fn key(id: &str, owner: &str) -> ApiKey {
    ApiKey {
        tenant: TenantId::default_tenant(),
        id: id.into(),
        owner: owner.into(),
        name: "laptop".into(),
        shown: "pk_1".into(),
        scopes: vec![KeyScope::Read],
        expires_at: None,
        revoked_at: None,
        created_at: at(),
        created_by: "anna".into(),
    }
}

pub(crate) fn digest(secret: &str) -> SecretDigest {
    SecretDigest::of(secret)
}

/// Ben is a viewer with a key, zoe an administrator; there is a second tenant.
pub(crate) fn filled(world: &World<'_>) -> Arc<dyn Store> {
    let store = world.open().unwrap();
    assert_eq!(store.rules().unwrap().shut, None);
    let acme = Tenant { id: TenantId::from(ACME), slug: "acme".into(), name: "Acme".into(), created_at: at() };
    store.create_tenant(&acme, &by()).unwrap();
    store.add_member(&member("ben", CallerRole::Viewer)).unwrap();
    store.add_member(&member("zoe", CallerRole::Admin)).unwrap();
    store.add_key(&key(KEY, "ben"), &digest("one")).unwrap();
    store
}

pub(crate) fn role(store: &dyn Store, user: &str) -> Option<CallerRole> {
    let found = store.member(&TenantId::default_tenant(), user).unwrap()?;
    found.disabled_at.is_none().then_some(found.role)
}

pub(crate) fn is_good(store: &dyn Store, secret: &str) -> bool {
    store.key_of(&digest(secret)).unwrap().is_some_and(|key| key.is_good(Timestamp::now()))
}

/// Plays what `somebody` does with SQL in both databases; then `user` is nobody, or `secret` no key, which is named, and
/// zoe is who she was.
fn check(somebody: impl Fn(&World<'_>), (user, secret): (Option<&str>, Option<&str>), named: &str) {
    in_both(|world| {
        drop(filled(&world));
        somebody(&world);
        for _ in 0..2 {
            let store = world.open().unwrap();
            assert_eq!(store.rules().unwrap().shut, None, "no gate shuts");
            if let Some(user) = user {
                assert_eq!(role(&*store, user), None, "{user}");
                let listed = store.members(&TenantId::default_tenant()).unwrap();
                let own = listed.iter().find(|it| it.user == user).unwrap();
                assert_eq!((own.role, own.disabled_at.as_deref()), (CallerRole::Viewer, Some(NEVER)));
            }
            if let Some(secret) = secret {
                assert!(!is_good(&*store, secret), "{secret}");
            }
            assert_eq!(role(&*store, "zoe"), Some(CallerRole::Admin));
            let doubts = store.identity_doubts().unwrap();
            assert!(doubts.len() == 1 && doubts[0].contains(named), "{doubts:?}");
        }
        let taken = world.open().unwrap().accept(&by()).unwrap();
        assert!(taken.iter().any(|line| line.contains(named)), "{taken:?}");
        assert_eq!(world.open().unwrap().identity_doubts().unwrap(), Vec::<String>::new());
    });
}

fn copied(table: &str, columns: &str, values: &str, which: &str) -> String {
    format!("INSERT INTO {table} ({columns}, seal) SELECT {values}, seal FROM {table} WHERE {which}")
}

#[test]
fn what_pintle_wrote_counts_and_is_nowhere_in_doubt() {
    in_both(|world| {
        let store = filled(&world);
        for store in [store, world.open().unwrap()] {
            assert_eq!(role(&*store, "ben"), Some(CallerRole::Viewer));
            assert!(is_good(&*store, "one"));
            assert_eq!(store.identity_doubts().unwrap(), Vec::<String>::new());
        }
        let store = world.open().unwrap();
        let tenant = TenantId::default_tenant();
        store.change_member(&member("ben", CallerRole::Operator), &by()).unwrap();
        store.revoke_key(&tenant, KEY, &by()).unwrap();
        store.add_key(&key(SECOND, "ben"), &digest("two")).unwrap();
        assert_eq!(role(&*store, "ben"), Some(CallerRole::Operator));
        assert!(!is_good(&*store, "one") && is_good(&*store, "two"));
        store.remove_member(&tenant, "ben", &by()).unwrap();
        assert!(!is_good(&*store, "two"));
        store.add_member(&member("ben", CallerRole::Viewer)).unwrap();
        assert_eq!((role(&*store, "ben"), is_good(&*store, "two")), (Some(CallerRole::Viewer), false));
        assert_eq!(store.identity_doubts().unwrap(), Vec::<String>::new());
    });
}

#[test]
fn a_row_that_somebody_puts_in_is_nobody() {
    let columns = "tenant_id, user_id, role, created_at, created_by";
    check(
        |world| {
            let values = format!("'{}', 'mallory', 'admin', '{}', 'anna'", TenantId::default_tenant(), at());
            world.tell(&format!("INSERT INTO members ({columns}) VALUES ({values})"));
        },
        (Some("mallory"), None),
        "the member `mallory`",
    );
    let columns = "tenant_id, id, owner, name, shown, digest, scopes, created_at, created_by";
    check(
        |world| {
            let digest = digest("mine");
            let values = format!(
                "'{}', '{SECOND}', 'zoe', 'n', 's', '{}', 'operator.admin', '{}', 'anna'",
                TenantId::default_tenant(),
                digest.as_str(),
                at()
            );
            world.tell(&format!("INSERT INTO api_keys ({columns}) VALUES ({values})"));
        },
        (None, Some("mine")),
        SECOND,
    );
}

#[test]
fn a_role_a_scope_and_a_digest_that_somebody_edits_give_nothing() {
    check(|world| world.tell("UPDATE members SET role = 'admin' WHERE user_id = 'ben'"), (Some("ben"), None), "`ben`");
    check(|world| world.tell("UPDATE api_keys SET scopes = 'operator.admin'"), (None, Some("one")), KEY);
    let another = digest("mine");
    check(
        |world| world.tell(&format!("UPDATE api_keys SET digest = '{}'", another.as_str())),
        (None, Some("mine")),
        KEY,
    );
    check(|world| world.tell("UPDATE members SET seal = NULL WHERE user_id = 'ben'"), (Some("ben"), None), "no seal");
}

#[test]
fn a_row_that_is_copied_elsewhere_is_nobody_there() {
    in_both(|world| {
        drop(filled(&world));
        let columns = "tenant_id, user_id, role, created_at, created_by";
        let values = format!("'{ACME}', user_id, role, created_at, created_by");
        world.tell(&copied("members", columns, &values, "user_id = 'zoe'"));
        let store = world.open().unwrap();
        let acme = TenantId::from(ACME);
        let found = store.member(&acme, "zoe").unwrap().unwrap();
        assert_eq!(found.disabled_at.as_deref(), Some(NEVER));
        assert_eq!(role(&*store, "zoe"), Some(CallerRole::Admin), "where she is one");
        assert_eq!(store.identity_doubts().unwrap().len(), 1);
        // Whoever may do so there says again what she is.
        store.change_member(&Member { tenant: acme.clone(), ..member("zoe", CallerRole::Viewer) }, &by()).unwrap();
        assert_eq!(store.member(&acme, "zoe").unwrap().unwrap().disabled_at, None);
        assert_eq!(store.identity_doubts().unwrap(), Vec::<String>::new());
    });
}

#[test]
fn an_older_row_that_is_put_back_gives_nothing() {
    let tenant = TenantId::default_tenant;
    check(
        |world| {
            world.tell("CREATE TABLE saved AS SELECT * FROM members WHERE user_id = 'ben'");
            let store = world.open().unwrap();
            let disabled = Member { disabled_at: Some(at()), ..member("ben", CallerRole::Viewer) };
            store.change_member(&disabled, &by()).unwrap();
            drop(store);
            world.tell(
                "DELETE FROM members WHERE user_id = 'ben'; INSERT INTO members SELECT * FROM saved; DROP TABLE saved",
            );
        },
        (Some("ben"), None),
        "later change",
    );
    check(
        |world| {
            world.tell("CREATE TABLE saved AS SELECT * FROM api_keys");
            world.open().unwrap().revoke_key(&tenant(), KEY, &by()).unwrap();
            world.tell("DELETE FROM api_keys; INSERT INTO api_keys SELECT * FROM saved; DROP TABLE saved");
        },
        (None, Some("one")),
        "later change",
    );
    check(
        |world| {
            world.tell("CREATE TABLE saved AS SELECT * FROM api_keys");
            let store = world.open().unwrap();
            store.remove_member(&tenant(), "ben", &by()).unwrap();
            store.add_member(&member("ben", CallerRole::Admin)).unwrap();
            drop(store);
            world.tell("DELETE FROM api_keys; INSERT INTO api_keys SELECT * FROM saved; DROP TABLE saved");
        },
        (None, Some("one")),
        "later change",
    );
}

#[test]
fn an_entry_that_somebody_makes_up_takes_nothing_from_anybody() {
    in_both(|world| {
        drop(filled(&world));
        // Somebody who has Pintle and the database, and no key: every entry that they leave is whole.
        let stranger = pintle_store::open(&world.url, world.home.path(), Durability::Commit).unwrap();
        let disabled = Member { disabled_at: Some(at()), ..member("zoe", CallerRole::Viewer) };
        world.tell("CREATE TABLE saved AS SELECT * FROM members WHERE user_id = 'zoe'");
        stranger.change_member(&disabled, &Actor { name: "mallory".into(), ..by() }).unwrap();
        drop(stranger);
        assert_eq!(role(&*world.open().unwrap(), "zoe"), None, "the row is another one");
        world.tell(
            "DELETE FROM members WHERE user_id = 'zoe'; INSERT INTO members SELECT * FROM saved; DROP TABLE saved",
        );
        assert_eq!(role(&*world.open().unwrap(), "zoe"), Some(CallerRole::Admin));
    });
}

#[test]
fn nobody_signs_in_to_the_console_with_a_row_of_their_own() {
    in_both(|world| {
        let (store, tenant) = (filled(&world), TenantId::default_tenant());
        let session = ConsoleSession {
            tenant: tenant.clone(),
            id: SECOND.into(),
            user: "zoe".into(),
            role: CallerRole::Admin,
            origin: SessionOrigin::Link,
            device: "a browser".into(),
            created_at: at(),
            seen_at: at(),
        };
        let secrets = SessionSecrets { key: digest("page"), cookie: digest("cookie") };
        store.add_console_session(&session, &secrets).unwrap();
        let later = "2026-11-24T11:00:00Z";
        store.console_session_seen(&tenant, SECOND, later.parse().unwrap()).unwrap();
        assert!(store.console_session_of(&secrets.key).unwrap().is_some(), "it is used");
        let link = SignInLink {
            tenant,
            user: "zoe".into(),
            role: CallerRole::Admin,
            expires_at: "2126-01-01T00:00:00Z".into(),
        };
        for code in ["first", "second"] {
            store.add_link(&link, &digest(code)).unwrap();
        }
        assert_eq!(store.take_link(&digest("first"), Timestamp::now()).unwrap(), Some(link));
        world.tell("UPDATE console_sessions SET role = 'owner'");
        world.tell("UPDATE console_links SET role = 'owner'");
        assert!(store.console_session_of(&secrets.key).unwrap().is_none());
        assert_eq!(store.take_link(&digest("second"), Timestamp::now()).unwrap(), None);
        let doubts = store.identity_doubts().unwrap();
        assert!(doubts.len() == 1 && doubts[0].contains("console session"), "{doubts:?}");
    });
}

#[test]
fn rows_of_before_are_sealed_once() {
    in_both(|world| {
        drop(filled(&world));
        let forget = |world: &World<'_>| {
            world.tell("UPDATE members SET seal = NULL");
            world.tell("UPDATE api_keys SET seal = NULL");
        };
        let anchor = AnchorFile::beside(world.home.path(), &world.url);
        let unknown = || {
            let text = std::fs::read_to_string(anchor.path()).unwrap();
            let lines = text.lines().filter(|line| !line.contains("are_rows_sealed"));
            std::fs::write(anchor.path(), lines.collect::<Vec<_>>().join("\n").replace(",\n}", "\n}")).unwrap();
        };
        forget(&world);
        assert_eq!(world.open().unwrap().identity_doubts().unwrap().len(), 3, "they were sealed");
        unknown();
        let store = world.open().unwrap();
        assert_eq!(role(&*store, "ben"), Some(CallerRole::Viewer), "of before, and not sealed yet");
        store.rules().unwrap();
        assert!(anchor.read().unwrap().unwrap().are_rows_sealed);
        assert_eq!(store.identity_doubts().unwrap(), Vec::<String>::new());
        drop(store);
        forget(&world);
        assert_eq!(world.open().unwrap().identity_doubts().unwrap().len(), 3, "once");
        // Where one has a seal, the others are not of before.
        world.open().unwrap().accept(&by()).unwrap();
        world.tell("UPDATE members SET seal = NULL WHERE user_id = 'ben'");
        unknown();
        let store = world.open().unwrap();
        store.rules().unwrap();
        assert_eq!(role(&*store, "ben"), None);
    });
}

/// The store of `world` with a key that encrypts: that of a variable, or that of a file.
fn with_keys(world: &World<'_>, variable: Option<&str>, file: Option<PathBuf>) -> (Arc<dyn Store>, Arc<Keyring>) {
    let primary = variable.map(|key| ("PINTLE_ENCRYPTION_KEY", key.into()));
    let keyring = Arc::new(Keyring::open(&KeySource { primary, old: None, file }).unwrap());
    let keys = StoreKeys {
        keyring: Some(keyring.clone()),
        signing: Some(Arc::new(SigningKey::open_or_create(world.home.path()).unwrap())),
        anchor: Some(Arc::new(AnchorFile::beside(world.home.path(), &world.url))),
        ..StoreKeys::default()
    };
    let store = pintle_store::open_with(&world.url, world.home.path(), Durability::Commit, keys).unwrap();
    assert_eq!(store.rules().unwrap().shut, None);
    (store, keyring)
}

#[test]
fn a_key_that_appears_once_takes_nothing_away_until_somebody_seals_with_it() {
    let variable = "0123456789abcdef".repeat(4);
    for has_file in [false, true] {
        in_both(|world| {
            drop(filled(&world));
            let file = has_file.then(|| world.home.path().join(KEY_FILE));
            let without = || with_keys(&world, None, file.clone()).0;
            let with = || with_keys(&world, Some(&variable), file.clone());
            let holds = |store: &dyn Store| {
                assert_eq!(store.identity_doubts().unwrap(), Vec::<String>::new(), "a file: {has_file}");
                assert_eq!(role(store, "ben"), Some(CallerRole::Viewer));
                assert!(is_good(store, "one") && is_good(store, "two"), "a file: {has_file}");
            };
            without().add_key(&key(SECOND, "ben"), &digest("two")).unwrap();
            holds(&*with().0);
            holds(&*without());
            let (store, keyring) = with();
            store.reseal_identities(&keyring).unwrap();
            holds(&*store);
            drop(store);
            // A host that has that key alone.
            let keys = StoreKeys { keyring: Some(keyring), ..StoreKeys::default() };
            holds(&*pintle_store::open_with(&world.url, world.home.path(), Durability::Commit, keys).unwrap());
            let doubts = without().identity_doubts().unwrap();
            assert!(doubts.len() == 1 && doubts[0].starts_with("the key here differs"), "{doubts:?}");
            assert!(doubts[0].contains(" and 1 more") && doubts[0].contains("`PINTLE_ENCRYPTION_KEY`"), "{doubts:?}");
        });
    }
}

/// What a host with a home of its own and none of the keys would seal, nobody else would take.
#[test]
fn a_host_with_another_key_is_refused_before_it_writes() {
    in_both(|world| {
        drop(filled(&world));
        let home = tempfile::tempdir().unwrap();
        let open = |with_anchor: bool| {
            let anchor = AnchorFile::beside(home.path(), &world.url);
            let keys = StoreKeys {
                signing: Some(Arc::new(SigningKey::open_or_create(home.path()).unwrap())),
                anchor: with_anchor.then(|| Arc::new(anchor)),
                ..StoreKeys::default()
            };
            pintle_store::open_with(&world.url, world.home.path(), Durability::Commit, keys).unwrap()
        };
        let tenant = TenantId::default_tenant();
        let rows = || world.open().unwrap().audit_entries(&tenant, 1, 1000).unwrap().len();
        let (before, signed) = (rows(), world.open().unwrap().last_checkpoint(&tenant).unwrap());
        for with_anchor in [false, true] {
            let theirs = open(with_anchor);
            let why = theirs.other_key().unwrap().unwrap();
            assert!(why.starts_with("the key here differs") && why.contains("`PINTLE_ENCRYPTION_KEY`"), "{why}");
            let refused = |done: Result<(), StoreError>| {
                assert_eq!(done, Err(StoreError::Conflict(why.clone())));
            };
            refused(theirs.add_member(&member("eve", CallerRole::Viewer)));
            refused(theirs.add_key(&key(SECOND, "zoe"), &digest("two")));
            refused(theirs.revoke_key(&tenant, KEY, &by()).map(drop));
            refused(theirs.remove_member(&tenant, "ben", &by()).map(drop));
            let doubts = theirs.identity_doubts().unwrap();
            assert!(doubts.len() == 1 && doubts[0].starts_with("the key here differs"), "{doubts:?}");
        }
        assert_eq!((rows(), world.open().unwrap().last_checkpoint(&tenant).unwrap()), (before, signed));
        let ours = world.open().unwrap();
        assert_eq!((ours.other_key().unwrap(), ours.identity_doubts().unwrap()), (None, Vec::new()));
        assert!(is_good(&*ours, "one"));
        ours.add_member(&member("eve", CallerRole::Viewer)).unwrap();
    });
}

#[test]
fn a_key_that_was_replaced_refuses_nobody_where_no_row_has_a_seal() {
    in_both(|world| {
        let open = |variable: &str| {
            let primary = Some(("PINTLE_ENCRYPTION_KEY", variable.into()));
            let keyring = Keyring::open(&KeySource { primary, old: None, file: None }).unwrap();
            let keys = StoreKeys { keyring: Some(Arc::new(keyring)), ..StoreKeys::default() };
            pintle_store::open_with(&world.url, world.home.path(), Durability::Commit, keys).unwrap()
        };
        let tenant = |id: &str, slug: &str| Tenant {
            id: TenantId::from(id),
            slug: slug.into(),
            name: slug.into(),
            created_at: at(),
        };
        open(&"0123456789abcdef".repeat(4)).create_tenant(&tenant(ACME, "acme"), &by()).unwrap();
        let store = open(&"fedcba9876543210".repeat(4));
        assert_eq!(store.other_key().unwrap(), None);
        store.create_tenant(&tenant(SECOND, "globex"), &by()).unwrap();
    });
}

#[test]
fn a_doubt_says_the_command_that_ends_it() {
    in_both(|world| {
        drop(filled(&world));
        let columns = "tenant_id, user_id, role, created_at, created_by";
        let values = format!("'{ACME}', 'o''hara', 'admin', '{}', 'anna'", at());
        world.tell(&format!("INSERT INTO members ({columns}) VALUES ({values})"));
        let doubts = world.open().unwrap().identity_doubts().unwrap();
        assert!(doubts.len() == 1 && doubts[0].contains("of tenant acme "), "{doubts:?}");
        assert!(doubts[0].contains(r"`pintle members remove 'o'\''hara' --tenant acme`"), "{doubts:?}");
    });
}

#[test]
fn rows_of_before_are_sealed_with_the_key_that_the_home_keeps() {
    let variable = "0123456789abcdef".repeat(4);
    in_both(|world| {
        drop(filled(&world));
        world.tell("UPDATE members SET seal = NULL");
        world.tell("UPDATE api_keys SET seal = NULL");
        AnchorFile::beside(world.home.path(), &world.url).forget().unwrap();
        let file = || Some(world.home.path().join(KEY_FILE));
        Keyring::open(&KeySource { file: file(), ..KeySource::default() }).unwrap();
        drop(with_keys(&world, Some(&variable), file()));
        let (store, _) = with_keys(&world, None, file());
        assert_eq!(store.identity_doubts().unwrap(), Vec::<String>::new());
        assert!(is_good(&*store, "one") && role(&*store, "zoe") == Some(CallerRole::Admin));
    });
}
