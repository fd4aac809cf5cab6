//! Keys, members, tenants and sessions of the console, from a terminal and over the wire.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::people::{ACME, People, operator, post, session_of, signed_in, word};
use super::server::{Client, Server, TOKEN, WITH_TOKEN};
use crate::run::{DONE, LISTS, scripted};

/// How long something may still be let in that was taken away.
const IN_FORCE: Duration = Duration::from_secs(1);

/// Waits until the server closes a connection; how long that took.
#[track_caller]
fn closed(mut client: Client, since: Instant) -> Duration {
    while client.text().is_some() {}
    let took = since.elapsed();
    assert!(took < IN_FORCE, "it took {took:?}");
    took
}

fn models(server: &Server, headers: &str) -> u16 {
    let answer = server.http(&format!("GET /v1/models HTTP/1.1\nHost: localhost\nConnection: close\n{headers}\n"));
    answer.split(' ').nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_key_is_shown_once_and_ends_when_it_is_revoked() {
    let server = Server::start(scripted(DONE, WITH_TOKEN));
    let key = People::key(&server, "anna", &["operator.write"]);
    let mut client = server.client();
    let signs_in = post(&server, "/auth/sign-in", "", &json!({ "token": key, "userId": "somebody else" }));
    assert_eq!(
        (signs_in.0, &signs_in.2["error"]["message"]),
        (400, &json!("`userId` goes with the gateway token only"))
    );
    let other = client.refused("connect", json!({ "token": key, "user_id": "somebody else" }));
    assert_eq!(other, ("INVALID_REQUEST".into(), "`user_id` goes with the gateway token only".into()));
    let welcome = client.done("connect", json!({ "token": key, "user_id": "anna" }));
    assert_eq!((&welcome["role"], &welcome["user_id"]), (&json!("operator"), &json!("anna")));
    assert_eq!(models(&server, &format!("x-api-key: {key}\n")), 200);
    assert_eq!(models(&server, &format!("x-api-key: {key}\nX-Pintle-User: ben\n")), 400);
    assert_eq!(models(&server, &format!("x-api-key: {key}\nX-Pintle-Tenant: other\n")), 403);
    let mut admin = server.admin("zoe");
    let listed = admin.done("api_keys.list", json!({}));
    assert!(!listed.to_string().contains(&key), "{listed}");
    let shown = &listed["apiKeys"][0];
    assert_eq!((&shown["owner"], &shown["role"]), (&json!("anna"), &json!("operator")));
    assert!(key.starts_with(shown["prefix"].as_str().unwrap()));
    // From a terminal, which is another process.
    operator(&server.env, &["keys", "revoke", shown["id"].as_str().unwrap()]);
    let since = Instant::now();
    closed(client, since);
    assert_eq!(models(&server, &format!("x-api-key: {key}\n")), 401);
    assert_eq!(server.client().refused("connect", json!({ "token": key })).0, "UNAUTHORIZED");
    let all = operator(&server.env, &["keys", "list", "--all"]);
    assert!(all.contains("revoked "), "{all}");
}

#[test]
fn nobody_gives_more_than_they_have_and_the_lower_of_key_and_member_counts() {
    let people = People::start(WITH_TOKEN);
    let mut admin = people.admin_of(ACME);
    let create = |scope: &str, owner: &str| json!({ "name": "k", "owner": owner, "scopes": [scope] });
    let made = admin.done("api_keys.create", create("operator.admin", "a-viewer"));
    let mut lower = people.server.client();
    assert_eq!(lower.done("connect", json!({ "token": made["key"] }))["role"], "viewer");
    assert_eq!(admin.refused("members.add", json!({ "userId": "x", "role": "owner" })).0, "INVALID_REQUEST");
    assert_eq!(admin.refused("members.add", json!({ "userId": "a-viewer", "role": "admin" })).0, "ALREADY_EXISTS");
    assert_eq!(admin.refused("tenants.list", json!({})).0, "UNAUTHORIZED");
    // An admin of the default tenant by a key with fewer scopes is no admin.
    let mut writer = people.with_key(&["operator.write"]);
    assert_eq!(writer.refused("api_keys.create", create("operator.read", "a-viewer")).0, "UNAUTHORIZED");
    for params in [
        json!({ "name": "k", "scopes": [] }),
        json!({ "name": "", "scopes": ["operator.read"] }),
        json!({ "name": "k", "scopes": ["operator.root"] }),
        json!({ "name": "k", "scopes": ["operator.read"], "expiresIn": 0 }),
        json!({ "name": "x".repeat(256), "scopes": ["operator.read"] }),
    ] {
        assert_eq!(admin.refused("api_keys.create", params.clone()).0, "INVALID_REQUEST", "{params}");
    }
    // What a member may is lowered while they are connected.
    let made = admin.done("api_keys.create", create("operator.write", "a-operator"));
    let client = people.server.connected(json!({ "token": made["key"] }));
    let since = Instant::now();
    admin.done("members.update", json!({ "userId": "a-operator", "role": "viewer" }));
    closed(client, since);
    let mut again = people.server.client();
    assert_eq!(again.done("connect", json!({ "token": made["key"] }))["role"], "viewer");
    let since = Instant::now();
    admin.done("members.update", json!({ "userId": "a-operator", "enabled": false }));
    closed(again, since);
    let refused = people.server.client().refused("connect", json!({ "token": made["key"] }));
    assert_eq!(refused.0, "TENANT_ACCESS_REVOKED");
}

#[test]
fn a_tenant_that_is_disabled_is_closed() {
    let asks = format!("ask = ['list_dir']\n{WITH_TOKEN}edition = 'standard'\n");
    let server = Server::start(scripted(&[LISTS, DONE].join(","), &asks));
    let mut owner = server.admin("system");
    let acme = owner.done("tenants.create", json!({ "slug": ACME }))["tenant"]["id"].clone();
    let mut there = server.connected(json!({ "token": TOKEN, "user_id": "system", "tenant_id": acme }));
    there.done("members.add", json!({ "userId": "anna", "role": "operator" }));
    let mut anna = server.connected(json!({ "token": TOKEN, "user_id": "anna", "tenant_id": ACME }));
    let sent = anna.ask("chat.send", json!({ "message": "look" }));
    anna.event("agent", |event| event["type"] == "approval.waiting");
    let stranger = json!({ "token": TOKEN, "user_id": "ben", "tenant_hint": ACME });
    assert_eq!(server.client().refused("connect", stranger).0, "TENANT_ACCESS_REVOKED");
    let since = Instant::now();
    owner.done("tenants.update", json!({ "tenantId": ACME, "enabled": false }));
    closed(anna, since);
    assert!(!sent.is_empty());
    for user in ["anna", "system"] {
        let params = json!({ "token": TOKEN, "user_id": user, "tenant_hint": ACME });
        assert_eq!(server.client().refused("connect", params).0, "TENANT_ACCESS_REVOKED", "{user}");
    }
    assert_eq!(
        owner.refused("tenants.update", json!({ "tenantId": "default", "enabled": false })).0,
        "FAILED_PRECONDITION"
    );
    assert!(operator(&server.env, &["tenants", "list"]).contains("acme  acme  disabled"));
    operator(&server.env, &["tenants", "enable", ACME]);
    let mut anna = server.connected(json!({ "token": TOKEN, "user_id": "anna", "tenant_hint": ACME }));
    let status = anna.done("chat.session.status", json!({}));
    assert_eq!(status["isRunning"], false, "its turn ended: {status}");
}

#[test]
fn the_edition_lite_has_one_tenant_and_says_so() {
    let server = Server::start(scripted(DONE, WITH_TOKEN));
    let said = server.admin("system").refused("tenants.create", json!({ "slug": "acme" }));
    assert_eq!(said, ("FAILED_PRECONDITION".into(), "several tenants need edition standard".into()));
    let seen = server.env.on_terminal("", &["tenants", "create", "acme"]);
    assert_eq!(seen.code, Some(1));
    assert!(seen.out.contains("several tenants need edition standard"), "{seen:?}");
    assert!(operator(&server.env, &["tenants", "list"]).contains("edition lite has one tenant"));
}

#[test]
fn what_was_done_with_members_and_tenants_is_said() {
    let server = Server::start(scripted(DONE, "[gateway]\nedition = 'standard'\n"));
    for (args, said) in [
        (&["members", "add", "anna", "--role", "viewer"][..], "anna: added as viewer"),
        (&["members", "set", "anna", "--role", "admin"], "anna: has the role admin now"),
        (&["members", "disable", "anna"], "anna: disabled; their keys and sessions stop working within a second"),
        (&["members", "enable", "anna"], "anna: enabled"),
        (&["members", "remove", "anna"], "anna: removed, with their keys and sessions"),
        (&["tenants", "create", "acme"], "acme: created; its id:"),
        (&["tenants", "disable", "acme"], "acme: disabled; its connections and turns end"),
        (&["tenants", "enable", "acme"], "acme: enabled"),
    ] {
        let shown = operator(&server.env, args);
        assert!(shown.contains(said), "{args:?}: {shown}");
    }
    let none = server.env.on_terminal("", &["tenants", "disable", "acm"]);
    assert_eq!(none.code, Some(2), "{none}");
    assert!(none.out.contains("there is no tenant \"acm\"; did you mean \"acme\"?"), "{none}");
}

#[test]
fn only_a_person_makes_keys_members_tenants_and_links() {
    let server = Server::start(scripted(DONE, WITH_TOKEN));
    for args in [
        &["keys", "create", "x", "--owner", "y", "--scope", "operator.admin"][..],
        &["keys", "list"],
        &["keys", "revoke", "x"],
        &["members", "add", "x", "--role", "admin"],
        &["members", "list"],
        &["tenants", "list"],
        &["tenants", "disable", "x"],
        &["serve", "link"],
    ] {
        let seen = server.env.pintle(args);
        assert_eq!(seen.code, Some(5), "{args:?}: {seen:?}");
        assert!(seen.err.contains("only a person may do this"), "{seen:?}");
    }
}

#[test]
fn a_link_signs_in_once_and_its_session_takes_two_secrets() {
    let server = Server::start(scripted(DONE, WITH_TOKEN));
    let printed = operator(&server.env, &["serve", "link", "--role", "operator"]);
    let link = word(&printed, "http://");
    assert!(link.contains("/#code="), "{link}");
    let code = json!({ "code": link.split("#code=").nth(1).unwrap() });
    let allowed = post(&server, "/auth/exchange", "Origin: http://localhost:1\n", &code);
    assert_eq!(allowed.0, 403, "another origin");
    let answer = post(&server, "/auth/exchange", "", &code);
    let cookie = answer.1.lines().find(|line| line.starts_with("set-cookie: ")).unwrap().to_owned();
    assert!(cookie.contains("; HttpOnly; SameSite=Strict; Path=/; Max-Age=604800"), "{cookie}");
    assert_eq!((&answer.2["role"], &answer.2["user_id"]), (&json!("operator"), &json!("local")));
    let session = session_of(answer);
    assert_eq!(post(&server, "/auth/exchange", "", &code).0, 401, "twice");
    let both = format!("Cookie: {}\nX-Pintle: {}\n", session.cookie, session.key);
    assert_eq!(models(&server, &both), 200);
    assert_eq!(models(&server, &format!("Cookie: {}\n", session.cookie)), 401);
    assert_eq!(models(&server, &format!("X-Pintle: {}\n", session.key)), 401);
    assert_eq!(models(&server, &format!("{both}X-Forwarded-For: 192.0.2.1\n")), 200);
    let with_cookie = [("cookie", session.cookie.as_str())];
    let mut client = server.client_with(&with_cookie).unwrap();
    let welcome = client.done("connect", json!({ "consoleKey": session.key }));
    assert_eq!(welcome["role"], "operator");
    let mut without = server.client();
    assert_eq!(without.refused("connect", json!({ "consoleKey": session.key })).0, "UNAUTHORIZED");
    let since = Instant::now();
    let out = post(&server, "/auth/sign-out", &both, &Value::Null);
    assert_eq!(out.0, 200, "{}", out.2);
    assert!(out.1.contains("Max-Age=0"), "{}", out.1);
    closed(client, since);
    assert_eq!(models(&server, &both), 401);
}

#[test]
fn somebody_sees_their_devices_and_signs_them_out() {
    let server = Server::start(scripted(DONE, WITH_TOKEN));
    let key = People::key(&server, "anna", &["operator.write"]);
    let (here, there) = (signed_in(&server, &key), signed_in(&server, &key));
    signed_in(&server, TOKEN);
    let with_cookie = [("cookie", here.cookie.as_str())];
    let mut client = server.client_with(&with_cookie).unwrap();
    client.done("connect", json!({ "consoleKey": here.key }));
    let sessions = client.done("auth.sessions.list", json!({}))["sessions"].as_array().unwrap().clone();
    let current: Vec<bool> = sessions.iter().map(|it| it["current"].as_bool().unwrap()).collect();
    assert_eq!(current, [false, true], "{sessions:?}");
    client.done("auth.sessions.revoke", json!({ "id": sessions[0]["id"] }));
    let of = |session: &super::people::Session| {
        models(&server, &format!("Cookie: {}\nX-Pintle: {}\n", session.cookie, session.key))
    };
    assert_eq!((of(&here), of(&there)), (200, 401));
    assert_eq!(client.refused("auth.sessions.revoke", json!({ "id": sessions[0]["id"] })).0, "NOT_FOUND");
    assert_eq!(client.refused("auth.sessions.revoke", json!({})).0, "INVALID_REQUEST");
    // The key that it came from.
    let since = Instant::now();
    let listed = server.admin("zoe").done("api_keys.list", json!({}));
    server.admin("zoe").done("api_keys.revoke", json!({ "id": listed["apiKeys"][0]["id"] }));
    closed(client, since);
    assert_eq!(of(&here), 401);
}

#[test]
fn an_owner_goes_to_another_tenant_with_a_session_of_its_own_and_nobody_else_does() {
    let people = People::start(WITH_TOKEN);
    let server = &people.server;
    let signed = |user: &str, tenant: &str| {
        session_of(post(server, "/auth/sign-in", "", &json!({ "token": TOKEN, "userId": user, "tenant": tenant })))
    };
    let headers = |session: &super::people::Session| format!("Cookie: {}\nX-Pintle: {}\n", session.cookie, session.key);
    let to = |session: &super::people::Session, tenant: &str| {
        post(server, "/auth/switch", &headers(session), &json!({ "tenant": tenant }))
    };
    let admin = signed("a-admin", ACME);
    assert_eq!(to(&admin, "default").0, 401, "an administrator stays");
    assert_eq!(models(server, &headers(&admin)), 200);
    let owner = signed("system", "default");
    assert_eq!(to(&owner, "nowhere").0, 403);
    assert_eq!(models(server, &headers(&owner)), 200, "what failed ended nothing");
    let moved = to(&owner, ACME);
    assert_eq!((&moved.2["tenant_slug"], &moved.2["role"]), (&json!(ACME), &json!("owner")));
    assert!(moved.1.contains("Max-Age=0"), "the cookie of the session that ended goes: {}", moved.1);
    let moved = session_of(moved);
    assert_eq!(models(server, &headers(&owner)), 401, "the session did not leave its tenant, it ended");
    let mut client = server.client_with(&[("cookie", moved.cookie.as_str())]).unwrap();
    assert_eq!(client.done("connect", json!({ "consoleKey": moved.key }))["tenant_slug"], ACME);
}

#[test]
fn a_key_may_open_so_many_connections_and_a_tenant_work_so_many_turns() {
    let asks = format!("ask = ['list_dir']\n{WITH_TOKEN}");
    let server = Server::start(scripted(&format!("{{\"repeat\": true, {}", &LISTS[1..]), &asks));
    let key = People::key(&server, "anna", &["operator.read"]);
    let mut open: Vec<Client> = (0..200).map(|_| server.connected(json!({ "token": key }))).collect();
    let refused = server.client().call("connect", json!({ "token": key }));
    assert_eq!(refused["error"]["code"], "RESOURCE_EXHAUSTED", "{refused}");
    assert!(refused["error"]["retryAfterMs"].as_u64().unwrap() > 0);
    // The token is the operator's own.
    let mut admin = server.admin("zoe");
    drop(open.pop());
    let until = Instant::now() + Duration::from_secs(10);
    while server.client().call("connect", json!({ "token": key }))["ok"] != true {
        assert!(Instant::now() < until, "the place of one that is gone is not given back");
    }
    // Users one after the other, since each may say only so much.
    let mut waiting = Vec::new();
    for number in 0..50 {
        let mut user = server.admin(&format!("user-{number}"));
        user.ask("chat.send", json!({ "message": "look" }));
        user.event("agent", |event| event["type"] == "approval.waiting");
        waiting.push(user);
    }
    let refused = admin.call("chat.send", json!({ "message": "look" }));
    assert_eq!(refused["error"]["code"], "RESOURCE_EXHAUSTED", "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().starts_with("too many turns in flight"), "{refused}");
}

#[test]
fn each_key_may_ask_so_often() {
    let server = Server::start(scripted(DONE, &format!("{WITH_TOKEN}requests_per_minute = 1\n")));
    let [one, two] = ["anna", "ben"].map(|owner| People::key(&server, owner, &["operator.read"]));
    let header = |key: &str| format!("x-api-key: {key}\n");
    assert_eq!(models(&server, &header(&one)), 200);
    assert_eq!(models(&server, &header(&one)), 429);
    assert_eq!(models(&server, &header(&two)), 200);
    let mut client = server.connected(json!({ "token": one }));
    let refused = client.call("agents.list", json!({}));
    assert_eq!(refused["error"]["code"], "RESOURCE_EXHAUSTED", "{refused}");
    assert!(refused["error"]["retryAfterMs"].as_u64().unwrap() > 0);
}

#[test]
fn an_address_that_others_reach_is_enough_with_a_key() {
    let env = scripted(DONE, "");
    let seen = env.pintle(&["serve", "--check", "--listen", "0.0.0.0:0"]);
    assert_eq!(seen.code, Some(2), "{seen:?}");
    assert!(seen.err.contains("make a key with `pintle keys create NAME --owner USER --scope "), "{seen:?}");
    operator(&env, &["keys", "create", "ci", "--owner", "anna", "--scope", "operator.read"]);
    let seen = env.pintle(&["serve", "--check", "--listen", "0.0.0.0:0"]);
    assert_eq!(seen.code, Some(0), "{seen:?}");
}
