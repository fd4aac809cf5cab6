//! What every store of those who may ask has to do.

use jiff::{SignedDuration, Timestamp};
use pintle_domain::approval::LIFETIME_SECONDS;
use pintle_domain::audit::{AuditEntry, AuditKind};
use pintle_domain::caller_role::CallerRole;
use pintle_domain::id::{DEFAULT_TENANT, TenantId, TurnId};
use pintle_domain::identity::Identity;
use pintle_domain::json::{Value, parse};
use pintle_domain::store::{
    Actor, ApiKey, ApprovalStore, AuditStore, ConsoleSession, GatewayUse, IdentityStore, KeyScope, Member, RuleStore,
    SecretDigest, SessionOrigin, SessionSecrets, SessionStore, SignInLink, StoreError, Tenant, TurnRoom, UseKind,
    UseRoom,
};
use uuid::Uuid;

use super::approvals::{call, key_of, moment, question};
use super::sessions::{append_of, appended, begun};

/// The ports that the suite needs.
pub trait IdentityBackend: IdentityStore + RuleStore + AuditStore + SessionStore + ApprovalStore {}

impl<S: IdentityStore + RuleStore + AuditStore + SessionStore + ApprovalStore + ?Sized> IdentityBackend for S {}

/// Runs the suite on an empty store.
///
/// # Panics
/// The store does not do what it has to.
pub fn identity(store: &(impl IdentityBackend + ?Sized)) {
    let (own, other) = (TenantId::from(DEFAULT_TENANT), another_tenant(store));
    members_come_back(store, (&own, &other));
    a_key_is_found_by_its_tenant_and_by_its_secret(store, (&own, &other));
    whoever_is_taken_out_loses_everything(store, &own);
    a_link_is_taken_once(store, &own);
    console_sessions_end(store, (&own, &other));
    what_is_used_is_counted(store, (&own, &other));
    a_question_that_nobody_can_answer_takes_no_room(store);
    a_disabled_tenant_is_said(store, &other);
    every_change_is_an_entry_of_the_chain(store);
}

fn another_tenant(store: &(impl IdentityBackend + ?Sized)) -> TenantId {
    let id = TenantId::new(Uuid::now_v7().to_string());
    let slug = format!("t-{id}");
    let tenant = Tenant { id: id.clone(), slug, name: "Acme".into(), created_at: now().to_string() };
    store.add_tenant(&tenant).expect("a tenant is added");
    id
}

fn now() -> Timestamp {
    Timestamp::from_microsecond(Timestamp::UNIX_EPOCH.as_microsecond() + 1_770_000_000_000_000).expect("it is one")
}

fn later(seconds: i64) -> Timestamp {
    now() + SignedDuration::from_secs(seconds)
}

fn by() -> Actor {
    Actor { name: "anna".into(), at: now(), reason: String::new() }
}

fn member(tenant: &TenantId, user: &str, role: CallerRole) -> Member {
    Member {
        tenant: tenant.clone(),
        user: user.into(),
        role,
        disabled_at: None,
        created_at: now().to_string(),
        created_by: "anna".into(),
    }
}

fn key(tenant: &TenantId, owner: &str) -> ApiKey {
    ApiKey {
        tenant: tenant.clone(),
        id: Uuid::now_v7().to_string(),
        owner: owner.into(),
        name: "ci; DROP TABLE api_keys".into(),
        shown: "pintle_0a1b2c3d".into(),
        scopes: vec![KeyScope::Read, KeyScope::Approvals],
        expires_at: Some(later(60).to_string()),
        revoked_at: None,
        created_at: now().to_string(),
        created_by: "anna".into(),
    }
}

fn session(tenant: &TenantId, user: &str, origin: SessionOrigin) -> (ConsoleSession, SessionSecrets) {
    let id = Uuid::now_v7().to_string();
    let secrets = SessionSecrets { key: SecretDigest::of(&id), cookie: SecretDigest::of(&format!("cookie {id}")) };
    let session = ConsoleSession {
        tenant: tenant.clone(),
        id,
        user: user.into(),
        role: CallerRole::Owner,
        origin,
        device: "a browser".into(),
        created_at: now().to_string(),
        seen_at: now().to_string(),
    };
    (session, secrets)
}

fn members_come_back(store: &(impl IdentityBackend + ?Sized), (own, other): (&TenantId, &TenantId)) {
    let before = store.identity_epoch().expect("it can be read");
    let (ben, zoe) = (member(own, "ben", CallerRole::Viewer), member(own, "Zoë", CallerRole::Admin));
    for one in [&ben, &zoe] {
        store.add_member(one).expect("they are none yet");
    }
    assert!(matches!(store.add_member(&ben), Err(StoreError::Conflict(_))), "twice");
    let nowhere = member(&TenantId::from("0193a5b0-7000-7000-8000-00000000ffff"), "ben", CallerRole::Viewer);
    assert!(matches!(store.add_member(&nowhere), Err(StoreError::NotFound(_))), "in no tenant");
    assert_eq!(store.members(own).expect("read"), [zoe, ben.clone()], "by user");
    assert_eq!(store.members(other).expect("read"), []);
    assert_eq!(store.member(other, "ben").expect("read"), None, "another tenant's");
    assert_eq!(store.identity_epoch().expect("read"), before, "nothing was taken away");
    let ben = Member { role: CallerRole::Operator, disabled_at: Some(later(1).to_string()), ..ben };
    let (signed_in, secrets) = session(own, "ben", SessionOrigin::Link);
    let (of_zoe, others) = session(own, "Zoë", SessionOrigin::Link);
    store.add_console_session(&signed_in, &secrets).expect("kept");
    store.add_console_session(&of_zoe, &others).expect("kept");
    store.change_member(&ben, &by()).expect("they are one");
    assert_eq!(store.member(own, "ben").expect("read"), Some(ben.clone()));
    store.change_member(&Member { disabled_at: None, ..ben.clone() }, &by()).expect("they may come back");
    assert_eq!(store.console_session_of(&secrets.key).expect("read"), None, "their session does not");
    assert_eq!(store.end_console_sessions(own, "Zoë", None).expect("done"), 1, "nobody touched that of another");
    store.change_member(&ben, &by()).expect("they are one");
    assert!(store.identity_epoch().expect("read") > before, "somebody was");
    let nobody = member(own, "nobody", CallerRole::Viewer);
    assert!(matches!(store.change_member(&nobody, &by()), Err(StoreError::NotFound(_))));
}

fn a_key_is_found_by_its_tenant_and_by_its_secret(
    store: &(impl IdentityBackend + ?Sized),
    (own, other): (&TenantId, &TenantId),
) {
    assert!(!store.has_keys(now()).expect("read"));
    let (one, digest) = (key(own, "Zoë"), SecretDigest::of("one"));
    store.add_key(&one, &digest).expect("its owner is a member");
    assert!(store.has_keys(now()).expect("read") && !store.has_keys(later(61)).expect("read"));
    assert!(matches!(store.add_key(&key(own, "nobody"), &digest), Err(StoreError::NotFound(_))));
    assert_eq!(store.key(own, &one.id).expect("read"), Some(one.clone()));
    assert_eq!(store.key(other, &one.id).expect("read"), None, "another tenant's");
    assert_eq!(store.key(own, "no id").expect("read"), None);
    assert_eq!(store.key_of(&digest).expect("read"), Some(one.clone()));
    assert_eq!(store.key_of(&SecretDigest::of("two")).expect("read"), None);
    assert_eq!((store.keys(own).expect("read").len(), store.keys(other).expect("read").len()), (1, 0));
    let (before, (of_key, secrets)) =
        (store.identity_epoch().expect("read"), session(own, "Zoë", SessionOrigin::Key(one.id.clone())));
    store.add_console_session(&of_key, &secrets).expect("kept");
    assert!(!store.revoke_key(other, &one.id, &by()).expect("done"), "another tenant's");
    assert_eq!(store.identity_epoch().expect("read"), before);
    assert!(store.revoke_key(own, &one.id, &by()).expect("done"));
    assert!(!store.revoke_key(own, &one.id, &by()).expect("done"), "twice");
    let revoked = ApiKey { revoked_at: Some(now().to_string()), ..one };
    assert_eq!(store.key_of(&digest).expect("read"), Some(revoked));
    assert_eq!(store.console_session_of(&secrets.key).expect("read"), None, "it ends with the key");
    assert!(store.identity_epoch().expect("read") > before && !store.has_keys(now()).expect("read"));
}

fn whoever_is_taken_out_loses_everything(store: &(impl IdentityBackend + ?Sized), own: &TenantId) {
    store.add_member(&member(own, "carl", CallerRole::Operator)).expect("added");
    let (one, digest) = (key(own, "carl"), SecretDigest::of("of carl"));
    store.add_key(&one, &digest).expect("kept");
    let (signed_in, secrets) = session(own, "carl", SessionOrigin::Link);
    store.add_console_session(&signed_in, &secrets).expect("kept");
    assert!(store.remove_member(own, "carl", &by()).expect("done"));
    assert!(!store.remove_member(own, "carl", &by()).expect("done"), "twice");
    assert!(store.was_removed(own, "carl").expect("read") && !store.was_removed(own, "nobody").expect("read"));
    assert!(store.key_of(&digest).expect("read").is_some_and(|key| !key.is_good(now())));
    assert_eq!(store.console_session_of(&secrets.key).expect("read"), None);
    store.add_member(&member(own, "carl", CallerRole::Operator)).expect("they may come back");
    assert!(!store.was_removed(own, "carl").expect("read"));
    assert!(store.key_of(&digest).expect("read").is_some_and(|key| !key.is_good(now())), "the key does not");
}

fn a_link_is_taken_once(store: &(impl IdentityBackend + ?Sized), own: &TenantId) {
    let link = SignInLink {
        tenant: own.clone(),
        user: "Zoë".into(),
        role: CallerRole::Owner,
        expires_at: later(120).to_string(),
    };
    let code = |code: &str| SecretDigest::of(code);
    store.add_link(&link, &code("a")).expect("kept");
    store.add_link(&link, &code("b")).expect("kept");
    assert_eq!(store.take_link(&code("c"), now()).expect("read"), None);
    assert_eq!(store.take_link(&code("a"), now()).expect("read"), Some(link));
    assert_eq!(store.take_link(&code("a"), now()).expect("read"), None, "twice");
    assert_eq!(store.take_link(&code("b"), later(120)).expect("read"), None, "too late");
    assert_eq!(store.take_link(&code("b"), now()).expect("read"), None, "and it is gone");
}

fn console_sessions_end(store: &(impl IdentityBackend + ?Sized), (own, other): (&TenantId, &TenantId)) {
    let (one, one_secrets) = session(own, "Zoë", SessionOrigin::Token("abc".into()));
    let (two, two_secrets) = session(own, "Zoë", SessionOrigin::Link);
    store.add_console_session(&one, &one_secrets).expect("kept");
    store.add_console_session(&two, &two_secrets).expect("kept");
    let found = store.console_session_of(&one_secrets.key).expect("read");
    assert_eq!(found, Some((one.clone(), one_secrets.cookie.clone())));
    assert_eq!(store.console_session_of(&one_secrets.cookie).expect("read"), None, "a cookie is not a key");
    assert_eq!(store.console_session(other, &one.id).expect("read"), None);
    assert_eq!(store.console_sessions(own, "Zoë").expect("read"), [two.clone(), one.clone()], "newest first");
    assert_eq!(store.console_sessions(own, "ben").expect("read"), []);
    store.console_session_seen(own, &one.id, later(5)).expect("noted");
    let seen = store.console_session(own, &one.id).expect("read");
    assert_eq!(seen, Some(ConsoleSession { seen_at: later(5).to_string(), ..one.clone() }));
    for (tenant, user) in [(other, "Zoë"), (own, "ben")] {
        assert_eq!(store.end_console_sessions(tenant, user, Some(&one.id)).expect("done"), 0, "not theirs");
    }
    let before = store.identity_epoch().expect("read");
    assert_eq!(store.end_console_sessions(own, "Zoë", Some(&two.id)).expect("done"), 1);
    assert!(store.identity_epoch().expect("read") > before);
    store.forget_identities(now(), (later(4), later(-1))).expect("done");
    assert!(store.console_session(own, &one.id).expect("read").is_some(), "it was seen");
    store.forget_identities(now(), (later(-1), now())).expect("done");
    assert_eq!(store.console_session(own, &one.id).expect("read"), None, "it is too old");
    assert_eq!(store.end_console_sessions(own, "Zoë", None).expect("done"), 0);
}

fn room(limit: u32, ended: &[String]) -> UseRoom<'_> {
    UseRoom { limit, turns: None, ended }
}

fn what_is_used_is_counted(store: &(impl IdentityBackend + ?Sized), (own, other): (&TenantId, &TenantId)) {
    let one = |tenant: &TenantId, kind, who: &str, node: &str| GatewayUse {
        id: Uuid::now_v7().to_string(),
        kind,
        tenant: tenant.clone(),
        who: who.into(),
        node: node.into(),
    };
    let take =
        |it: &GatewayUse, at| store.take_use(it, room(2, &[]), (at, at + SignedDuration::from_secs(30))).expect("done");
    let (a, b) = (one(own, UseKind::Turn, "", "n1"), one(own, UseKind::Turn, "", "n2"));
    assert!(take(&a, now()) && take(&b, now()));
    assert!(!take(&one(own, UseKind::Turn, "", "n1"), now()), "there are two");
    assert!(take(&one(other, UseKind::Turn, "", "n1"), now()), "of another tenant");
    assert!(take(&one(own, UseKind::Connection, "", "n1"), now()), "of another kind");
    assert!(take(&one(own, UseKind::Turn, "key", "n3"), now()), "for another");
    store.end_uses(std::slice::from_ref(&a.id)).expect("done");
    assert!(take(&a, now()), "one ended");
    let c = one(own, UseKind::Turn, "", "n1");
    let times = (now(), later(30));
    assert!(store.take_use(&c, room(2, std::slice::from_ref(&a.id)), times).expect("done"), "one ends with it");
    assert!(!take(&a, now()), "there are two");
    let ended = [a.id.clone(), c.id.clone()];
    assert!(!store.take_use(&a, room(0, &ended), times).expect("done"), "there is no room");
    assert!(take(&c, now()), "what ended has ended all the same");
    store.keep_uses("n2", later(60)).expect("done");
    assert!(take(&one(own, UseKind::Turn, "", "n1"), later(31)), "nobody kept the one");
    assert!(!take(&one(own, UseKind::Turn, "", "n1"), later(32)), "somebody kept the other");
    let turn = |it: &GatewayUse| {
        let room = UseRoom { limit: 1, turns: Some(TurnRoom { limit: 2, user: &it.who }), ended: &[] };
        store.take_use(it, room, (later(100), later(130))).expect("done")
    };
    let (of_anna, of_ben) = (one(own, UseKind::Turn, "anna", "n1"), one(own, UseKind::Turn, "ben", "n1"));
    assert!(turn(&of_anna), "whoever was here is gone");
    assert!(turn(&of_ben));
    assert!(!turn(&one(own, UseKind::Turn, "carl", "n1")), "of one tenant");
    assert!(turn(&of_anna), "it is one of the two");
    store.end_uses(&[of_ben.id]).expect("done");
    assert!(turn(&one(own, UseKind::Turn, "carl", "n1")), "one ended");
    many_count_at_once(store, other);
}

/// However many ask at once, no more get it than may.
fn many_count_at_once(store: &(impl IdentityBackend + ?Sized), tenant: &TenantId) {
    let asks = || {
        let one = GatewayUse {
            id: Uuid::now_v7().to_string(),
            kind: UseKind::Connection,
            tenant: tenant.clone(),
            who: "key".into(),
            node: "n".into(),
        };
        store.take_use(&one, room(5, &[]), (now(), later(30))).expect("done")
    };
    let taken = std::thread::scope(|scope| {
        let asked: Vec<_> = (0..16).map(|_| scope.spawn(asks)).collect();
        asked.into_iter().map(|it| it.join().expect("it ends")).filter(|taken| *taken).count()
    });
    assert_eq!(taken, 5);
}

fn a_question_that_nobody_can_answer_takes_no_room(store: &(impl IdentityBackend + ?Sized)) {
    let turn = TurnId::fresh();
    let who = Identity::top("main", "agent:main:ws:dora:one", turn.clone());
    appended(store, append_of(&key_of(&who), vec![begun(&turn, "look")]));
    store.ask(question("takes-room", &who, &call("{}")), moment(0)).expect("it can be asked");
    let one = GatewayUse {
        id: Uuid::now_v7().to_string(),
        kind: UseKind::Turn,
        tenant: who.tenant_id,
        who: "dora".into(),
        node: "n".into(),
    };
    let fits = |seconds| {
        let room = UseRoom { limit: 1, turns: Some(TurnRoom { limit: 99, user: "dora" }), ended: &[] };
        store.take_use(&one, room, (moment(seconds), moment(seconds + 30))).expect("done")
    };
    assert!(!fits(LIFETIME_SECONDS - 1), "it waits for a person");
    assert!(fits(LIFETIME_SECONDS), "nobody can answer any more");
}

fn a_disabled_tenant_is_said(store: &(impl IdentityBackend + ?Sized), other: &TenantId) {
    let (before, rules) = (store.identity_epoch().expect("read"), store.epoch().expect("read"));
    store.set_tenant_disabled(other, true, &by()).expect("done");
    assert_eq!(store.disabled_tenants().expect("read"), std::slice::from_ref(other));
    assert_eq!(store.rules().expect("read").disabled, std::slice::from_ref(other));
    assert!(store.identity_epoch().expect("read") > before && store.epoch().expect("read") > rules);
    store.set_tenant_disabled(other, true, &by()).expect("twice is once");
    store.set_tenant_disabled(other, false, &by()).expect("done");
    assert_eq!(store.disabled_tenants().expect("read"), []);
    let nobody = TenantId::from("0193a5b0-7000-7000-8000-00000000ffff");
    assert!(matches!(store.set_tenant_disabled(&nobody, true, &by()), Err(StoreError::NotFound(_))));
}

fn every_change_is_an_entry_of_the_chain(store: &(impl IdentityBackend + ?Sized)) {
    let id = TenantId::new(Uuid::now_v7().to_string());
    let slug = format!("t-{id}");
    let tenant = Tenant { id: id.clone(), slug, name: "Chained".into(), created_at: now().to_string() };
    store.create_tenant(&tenant, &by()).expect("added");
    assert!(matches!(store.create_tenant(&tenant, &by()), Err(StoreError::Conflict(_))), "twice");
    let dora = member(&id, "dora", CallerRole::Viewer);
    store.add_member(&dora).expect("added");
    store.change_member(&Member { role: CallerRole::Admin, ..dora.clone() }, &by()).expect("changed");
    let made = key(&id, "dora");
    store.add_key(&made, &SecretDigest::of("of dora")).expect("kept");
    assert!(store.revoke_key(&id, &made.id, &by()).expect("done"));
    assert!(!store.revoke_key(&id, &made.id, &by()).expect("done"), "twice");
    assert!(store.remove_member(&id, "dora", &by()).expect("done"));
    store.set_tenant_disabled(&id, true, &by()).expect("done");
    store.set_tenant_disabled(&id, false, &by()).expect("done");
    let entries = store.audit_entries(&id, 1, 100).expect("read");
    let said = |entry: &AuditEntry| {
        let body: Value = parse(&entry.body).expect("JSON");
        let data = body.get("data").and_then(Value::as_object).expect("an object").clone();
        assert!(!entry.body.contains(SecretDigest::of("of dora").as_str()), "{}", entry.body);
        ["action", "actor", "subject"].map(|name| data.get(name).and_then(Value::as_str).unwrap_or("").to_owned())
    };
    let expected = [
        ("tenant_created", tenant.slug.as_str()),
        ("member_added", "dora"),
        ("member_changed", "dora"),
        ("key_created", "dora"),
        ("key_revoked", "dora"),
        ("member_removed", "dora"),
        ("tenant_disabled", tenant.slug.as_str()),
        ("tenant_enabled", tenant.slug.as_str()),
    ];
    let expected = expected.map(|(action, subject)| [action, "anna", subject].map(str::to_owned));
    assert_eq!(entries.iter().map(said).collect::<Vec<_>>(), expected);
    assert!(entries.iter().all(|entry| entry.kind == AuditKind::Change));
}
