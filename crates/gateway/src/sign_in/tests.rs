//! Who somebody is, as tables: what they say, what the store knows, and what comes of it.

use pintle_domain::json::{Value, json};
use pintle_domain::store::{IdentityStore as _, KeyScope, RuleStore as _, SessionSecrets};
use pintle_store::Memory;

use super::*;
use crate::door::OtherEnd;

const LOCAL: Visit = Visit {
    from: None,
    is_local: true,
    is_agents: false,
    other_end: OtherEnd::Unknown,
    is_own_page: true,
    is_encrypted: false,
};
const REMOTE: Visit = Visit { is_local: false, ..LOCAL };
const FOREIGN_PAGE: Visit = Visit { is_own_page: false, ..REMOTE };
const ACME: &str = "0193a5b0-7000-7000-8000-0000000000aa";

fn now() -> Timestamp {
    "2026-01-02T03:04:05Z".parse().unwrap()
}

fn by() -> pintle_domain::store::Actor {
    pintle_domain::store::Actor { name: "cli".into(), at: now(), reason: String::new() }
}

/// A store with the tenant `acme`, where `anna` is an operator, `ben` a viewer and `zoe` disabled.
fn store() -> Memory {
    let store = Memory::new();
    let (id, created_at) = (TenantId::from(ACME), now().to_string());
    store.add_tenant(&Tenant { id: id.clone(), slug: "acme".into(), name: "Acme".into(), created_at }).unwrap();
    for (user, role) in [("anna", CallerRole::Operator), ("ben", CallerRole::Viewer), ("zoe", CallerRole::Admin)] {
        let disabled_at = (user == "zoe").then(|| now().to_string());
        store
            .add_member(&Member {
                tenant: id.clone(),
                user: user.into(),
                role,
                disabled_at,
                created_at: now().to_string(),
                created_by: "cli".into(),
            })
            .unwrap();
    }
    store
}

fn add_key(store: &Memory, secret: &str, owner: &str, scopes: &[KeyScope]) -> ApiKey {
    let key = ApiKey {
        tenant: TenantId::from(ACME),
        id: uuid::Uuid::now_v7().to_string(),
        owner: owner.into(),
        name: "ci".into(),
        shown: secret.chars().take(15).collect(),
        scopes: scopes.to_vec(),
        expires_at: Some("2026-02-01T00:00:00Z".into()),
        revoked_at: None,
        created_at: now().to_string(),
        created_by: "cli".into(),
    };
    store.add_key(&key, &SecretDigest::of(secret)).unwrap();
    key
}

fn secret(digit: char) -> String {
    format!("pintle_{}", digit.to_string().repeat(32))
}

type Known = Result<(String, CallerRole, String), ErrorCode>;

fn at(known: &KnownBy, store: &Memory, claim: &Claim, visit: Visit, now: Timestamp) -> Result<Principal, ErrorCode> {
    Registry::read(known, store, now).unwrap().principal(claim, visit).map_err(|error| error.code)
}

fn who(known: &KnownBy, store: &Memory, params: Value, visit: Visit) -> Known {
    let claim = Claim::read(&params).map_err(|error| error.code)?;
    let principal = at(known, store, &claim, visit, now())?;
    Ok((principal.user, principal.role, principal.slug))
}

#[test]
fn the_gateway_token_gives_an_admin_and_an_owner_by_name() {
    let (known, store) = (KnownBy::new(Some("secret"), Vec::new()), store());
    let with = |user: &str, tenant: &str| {
        who(&known, &store, json!({ "token": "secret", "user_id": user, "tenant_hint": tenant }), REMOTE)
    };
    assert_eq!(with("anna", ""), Ok(("anna".into(), CallerRole::Admin, "default".into())));
    assert_eq!(with("", ""), Ok(("admin".into(), CallerRole::Admin, "default".into())));
    assert_eq!(with("system", "acme"), Ok(("system".into(), CallerRole::Owner, "acme".into())));
    assert_eq!(with("anna", "acme"), Ok(("anna".into(), CallerRole::Operator, "acme".into())), "the lower of both");
    assert_eq!(with("ben", ACME), Ok(("ben".into(), CallerRole::Viewer, "acme".into())));
    for (user, tenant) in [("nobody", "acme"), ("zoe", "acme")] {
        assert_eq!(with(user, tenant), Err(ErrorCode::TenantAccessRevoked), "{user}");
    }
    for other in ["none", "global", "0193a5b0-7000-7000-8000-000000000001"] {
        assert_eq!(with("system", other), Err(ErrorCode::TenantAccessRevoked), "{other}");
    }
    let named = KnownBy::new(Some("secret"), vec!["root".into()]);
    let role = |user: &str| who(&named, &store, json!({ "token": "secret", "user_id": user }), REMOTE).unwrap().1;
    assert_eq!((role("root"), role("system")), (CallerRole::Owner, CallerRole::Admin));
    store.set_tenant_disabled(&TenantId::from(ACME), true, &by()).unwrap();
    assert_eq!(with("system", "acme"), Err(ErrorCode::TenantAccessRevoked), "it is disabled");
}

#[test]
fn nobody_is_anonymous_but_on_their_own_machine_without_a_token() {
    let (open, shut, store) = (KnownBy::default(), KnownBy::new(Some("secret"), Vec::new()), store());
    let nothing = || json!({ "token": "", "user_id": "", "tenant_id": "" });
    assert_eq!(who(&open, &store, nothing(), LOCAL), Ok(("local".into(), CallerRole::Operator, "default".into())));
    assert_eq!(who(&open, &store, json!({ "tenant_id": "acme" }), LOCAL), Err(ErrorCode::TenantAccessRevoked));
    assert_eq!(who(&open, &store, nothing(), REMOTE), Err(ErrorCode::Unauthorized));
    assert_eq!(who(&shut, &store, nothing(), LOCAL), Err(ErrorCode::Unauthorized));
    for token in ["wrong", "secre", "secret "] {
        assert_eq!(who(&shut, &store, json!({ "token": token }), LOCAL), Err(ErrorCode::Unauthorized));
        // Where nobody asks for a key, any will do that is none of ours.
        let local = Ok(("local".into(), CallerRole::Operator, "default".into()));
        assert_eq!(who(&open, &store, json!({ "token": token }), LOCAL), local);
        assert_eq!(who(&open, &store, json!({ "token": token }), REMOTE), Err(ErrorCode::Unauthorized));
    }
    let revoked = json!({ "token": "pintle_0123456789abcdef0123456789abcdef" });
    assert_eq!(who(&open, &store, revoked, LOCAL), Err(ErrorCode::Unauthorized));
}

#[test]
fn a_key_is_its_owner_in_its_tenant_and_never_more_than_both_allow() {
    let (known, store) = (KnownBy::new(Some("secret"), Vec::new()), store());
    let rows: &[(&str, &[KeyScope], CallerRole)] = &[
        ("anna", &[KeyScope::Read], CallerRole::Viewer),
        ("anna", &[KeyScope::Write], CallerRole::Operator),
        ("anna", &[KeyScope::Admin], CallerRole::Operator),
        ("ben", &[KeyScope::Admin], CallerRole::Viewer),
        ("ben", &[KeyScope::Approvals], CallerRole::Viewer),
    ];
    for (number, (owner, scopes, role)) in rows.iter().enumerate() {
        let secret = format!("pintle_{number:032}");
        let key = add_key(&store, &secret, owner, scopes);
        for said in [json!({ "token": secret }), json!({ "token": secret, "user_id": "system", "tenant_id": "acme" })] {
            let expected = Ok(((*owner).to_owned(), *role, "acme".to_owned()));
            assert_eq!(who(&known, &store, said, REMOTE), expected, "{owner} {scopes:?}");
        }
        let elsewhere = json!({ "token": secret, "tenant_id": "default" });
        assert_eq!(who(&known, &store, elsewhere, REMOTE), Err(ErrorCode::TenantAccessRevoked));
        store.revoke_key(&key.tenant, &key.id, &by()).unwrap();
        assert_eq!(who(&known, &store, json!({ "token": secret }), REMOTE), Err(ErrorCode::Unauthorized));
    }
    add_key(&store, &secret('a'), "zoe", &[KeyScope::Read]);
    assert_eq!(who(&known, &store, json!({ "token": secret('a') }), REMOTE), Err(ErrorCode::TenantAccessRevoked));
    add_key(&store, &secret('b'), "anna", &[KeyScope::Read]);
    let claim = Claim { token: Some(secret('b')), ..Claim::default() };
    let later = "2026-02-01T00:00:00Z".parse().unwrap();
    assert!(at(&known, &store, &claim, REMOTE, now()).is_ok());
    assert_eq!(at(&known, &store, &claim, REMOTE, later), Err(ErrorCode::Unauthorized), "it is over");
}

/// A console session of `user` in `acme`, and what a page says that has it.
fn signed_in(store: &Memory, user: &str, role: CallerRole, origin: SessionOrigin) -> (ConsoleSession, Claim) {
    let id = uuid::Uuid::now_v7().to_string();
    let session = ConsoleSession {
        tenant: TenantId::from(ACME),
        id: id.clone(),
        user: user.into(),
        role,
        origin,
        device: "a browser".into(),
        created_at: now().to_string(),
        seen_at: now().to_string(),
    };
    let (key, cookie) = (format!("key {id}"), format!("cookie {id}"));
    let secrets = SessionSecrets { key: SecretDigest::of(&key), cookie: SecretDigest::of(&cookie) };
    store.add_console_session(&session, &secrets).unwrap();
    (session, Claim { console_key: Some(key), cookies: vec!["other".into(), cookie], ..Claim::default() })
}

#[test]
fn a_console_session_takes_its_key_and_its_cookie_and_a_page_of_this_server() {
    let (known, store) = (KnownBy::new(Some("secret"), Vec::new()), store());
    let (_, claim) = signed_in(&store, "anna", CallerRole::Admin, SessionOrigin::Link);
    let role = |claim: &Claim, visit| at(&known, &store, claim, visit, now()).map(|who| who.role);
    assert_eq!(role(&claim, REMOTE), Ok(CallerRole::Operator), "the lower of link and member");
    assert_eq!(role(&claim, FOREIGN_PAGE), Err(ErrorCode::Unauthorized));
    assert_eq!(role(&Claim { cookies: Vec::new(), ..claim.clone() }, REMOTE), Err(ErrorCode::Unauthorized));
    assert_eq!(role(&Claim { console_key: None, ..claim.clone() }, REMOTE), Err(ErrorCode::Unauthorized));
    let swapped = Claim { console_key: Some(claim.cookies[1].clone()), ..claim.clone() };
    assert_eq!(role(&swapped, REMOTE), Err(ErrorCode::Unauthorized));
    let with_token = Claim { token: Some("wrong".into()), ..claim.clone() };
    assert_eq!(role(&with_token, REMOTE), Err(ErrorCode::Unauthorized), "a token goes before it");
    assert_eq!(role(&Claim { tenant: Some("default".into()), ..claim }, REMOTE), Err(ErrorCode::TenantAccessRevoked));
}

#[test]
fn a_console_session_ends_with_what_it_came_from() {
    let (known, store) = (KnownBy::new(Some("secret"), Vec::new()), store());
    let good = |known: &KnownBy, claim: &Claim, at_hour: i64| {
        let later = now() + SignedDuration::from_hours(at_hour);
        at(known, &store, claim, REMOTE, later).map(|who| who.role)
    };
    let origin = known.token_origin().unwrap();
    let (_, of_token) = signed_in(&store, "anna", CallerRole::Operator, origin);
    assert_eq!(good(&known, &of_token, 0), Ok(CallerRole::Operator));
    let other = KnownBy::new(Some("another"), Vec::new());
    assert_eq!(good(&other, &of_token, 0), Err(ErrorCode::Unauthorized), "another token");
    let key = add_key(&store, &secret('c'), "anna", &[KeyScope::Read]);
    let (_, of_key) = signed_in(&store, "anna", CallerRole::Viewer, SessionOrigin::Key(key.id.clone()));
    assert_eq!(good(&known, &of_key, 0), Ok(CallerRole::Viewer));
    store.revoke_key(&key.tenant, &key.id, &by()).unwrap();
    assert_eq!(good(&known, &of_key, 0), Err(ErrorCode::Unauthorized));
    let (session, idle) = signed_in(&store, "anna", CallerRole::Operator, SessionOrigin::Link);
    assert_eq!(good(&known, &idle, 11), Ok(CallerRole::Operator));
    assert_eq!(good(&known, &idle, 22), Ok(CallerRole::Operator), "it was used");
    assert_eq!(good(&known, &idle, 34), Err(ErrorCode::Unauthorized), "nobody used it for twelve hours");
    store.console_session_seen(&session.tenant, &session.id, now() + SignedDuration::from_hours(167)).unwrap();
    assert_eq!(good(&known, &idle, 168), Err(ErrorCode::Unauthorized), "seven days are over");
    let (_, of_member) = signed_in(&store, "ben", CallerRole::Operator, SessionOrigin::Link);
    assert_eq!(good(&known, &of_member, 0), Ok(CallerRole::Viewer));
    store.remove_member(&TenantId::from(ACME), "ben", &by()).unwrap();
    assert_eq!(good(&known, &of_member, 0), Err(ErrorCode::Unauthorized));
}

#[test]
fn whoever_is_connected_is_looked_at_again() {
    let (known, store) = (KnownBy::new(Some("secret"), Vec::new()), store());
    let again = |who: &Principal| {
        Registry::read(&known, &store, now()).unwrap().again(who).map(|now| now.may_as(who)).map_err(|it| it.code)
    };
    let claim = |params: Value| Claim::read(&params).unwrap();
    let of_token =
        at(&known, &store, &claim(json!({ "token": "secret", "user_id": "anna", "tenant_id": "acme" })), REMOTE, now());
    let key = add_key(&store, &secret('d'), "anna", &[KeyScope::Write]);
    let of_key = at(&known, &store, &claim(json!({ "token": secret('d') })), REMOTE, now());
    let (of_token, of_key) = (of_token.unwrap(), of_key.unwrap());
    assert_eq!((again(&of_token), again(&of_key)), (Ok(true), Ok(true)));
    let anna = store.member(&key.tenant, "anna").unwrap().unwrap();
    store.change_member(&Member { role: CallerRole::Viewer, ..anna }, &by()).unwrap();
    assert_eq!((again(&of_token), again(&of_key)), (Ok(false), Ok(false)), "they may less");
    store.remove_member(&key.tenant, "anna", &by()).unwrap();
    assert_eq!(again(&of_token), Err(ErrorCode::TenantAccessRevoked));
    assert_eq!(again(&of_key), Err(ErrorCode::Unauthorized));
}

#[test]
fn whoever_was_taken_out_is_nobody_until_they_are_added_again() {
    let (known, store) = (KnownBy::new(Some("secret"), Vec::new()), store());
    let tenant = TenantId::default_tenant();
    let member = |user: &str| Member {
        tenant: tenant.clone(),
        user: user.into(),
        role: CallerRole::Viewer,
        disabled_at: None,
        created_at: now().to_string(),
        created_by: "anna".into(),
    };
    let role = |user: &str| {
        let claim = Claim::read(&json!({ "token": "secret", "user_id": user })).unwrap();
        at(&known, &store, &claim, REMOTE, now()).map(|who| who.role)
    };
    let shut_out = |user: &str| Registry::read(&known, &store, now()).unwrap().is_shut_out(&tenant, user).unwrap();
    for user in ["carl", "system"] {
        store.add_member(&member(user)).unwrap();
    }
    assert_eq!((role("carl"), shut_out("carl")), (Ok(CallerRole::Viewer), false));
    for user in ["carl", "system"] {
        assert!(store.remove_member(&tenant, user, &by()).unwrap());
    }
    assert_eq!((role("carl"), shut_out("carl")), (Err(ErrorCode::TenantAccessRevoked), true));
    assert_eq!((role("system"), shut_out("system")), (Ok(CallerRole::Owner), false), "an owner is not a member");
    assert_eq!((role("dora"), shut_out("dora")), (Ok(CallerRole::Admin), false), "nobody took them out");
    store.add_member(&member("carl")).unwrap();
    assert_eq!((role("carl"), shut_out("carl")), (Ok(CallerRole::Viewer), false));
}

#[test]
fn what_somebody_asked_for_ends_with_their_key_and_with_their_role() {
    let (known, store) = (KnownBy::new(Some("secret"), Vec::new()), store());
    let tenant = TenantId::from(ACME);
    let why = |user: &str, keys: &[&ApiKey], at: Timestamp| {
        let keys = keys.iter().map(|key| key.id.clone()).collect();
        Registry::read(&known, &store, at).unwrap().why_over(&tenant, user, &keys).unwrap()
    };
    let [first, second, reads] = ['e', 'f', '0'].map(|digit| {
        let scope = if digit == '0' { KeyScope::Read } else { KeyScope::Write };
        add_key(&store, &secret(digit), "anna", &[scope])
    });
    let later: Timestamp = "2026-02-01T00:00:00Z".parse().unwrap();
    assert_eq!(why("anna", &[], now()), None);
    assert_eq!(why("anna", &[&first, &second], now()), None);
    assert_eq!(why("anna", &[&first, &reads], now()), Some(MAY_NOT_TALK));
    assert_eq!(why("anna", &[&first], later), Some(KEY_IS_OVER), "it has expired");
    store.revoke_key(&tenant, &first.id, &by()).unwrap();
    assert_eq!(why("anna", &[&first], now()), Some(KEY_IS_OVER));
    assert_eq!(why("anna", &[&second], now()), None, "another key is as good as before");
    assert_eq!(why("ben", &[], now()), Some(MAY_NOT_TALK), "a viewer looks");
    assert_eq!(why("zoe", &[], now()), Some(SHUT_OUT));
    assert_eq!(why("system", &[], now()), None, "an owner is not a member");
    let anna = store.member(&tenant, "anna").unwrap().unwrap();
    store.change_member(&Member { role: CallerRole::Viewer, ..anna }, &by()).unwrap();
    assert_eq!((why("anna", &[], now()), why("anna", &[&second], now())), (Some(MAY_NOT_TALK), Some(MAY_NOT_TALK)));
}
