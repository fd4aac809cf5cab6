//! Two tenants on one host that have everything at once: what is one's, the other cannot tell from what is not there.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::http_client::{CHAT, MESSAGES, content, get, post, says, send};
use super::people::{ACME, People, operator};
use super::server::{Client, TOKEN, WITH_TOKEN};
use crate::run::LISTS;

/// How many pairs of ids are tried, a foreign and a random one each: two thousand tries.
const PAIRS: usize = 1000;

/// How often as many are tried anew where the medians are apart: what else the machine does comes and goes, and a
/// difference stays. Each round counts by itself.
const ROUNDS: usize = 4;

/// The most that the two may be apart, as a part of one. Source: the promise of a host with several tenants.
const APART: f64 = 0.05;

/// The id of no file.
const NO_MEDIUM: &str = "00000000000000000000000000000000";

/// What there is in a tenant.
struct Things {
    hook: String,
    session: String,
    approval: String,
    execution: String,
    key: String,
    member: String,
    run: String,
    console: String,
    medium: String,
}

/// Fills a tenant.
fn things(people: &People, tenant: &str) -> Things {
    let mut admin = people.admin_of(tenant);
    let rule = json!({
        "event": "user_prompt_submit", "handler_type": "script", "scope": "tenant", "name": "passes",
        "config": { "source": "function handle() { return { decision: 'allow' } }" }
    });
    let hook = text(&admin.done("hooks.create", rule)["hookId"]);
    let mut user = people.server.connected(json!({ "token": TOKEN, "user_id": "a-operator", "tenant_hint": tenant }));
    let key = format!("agent:main:ws:direct:trip-{tenant}");
    user.ask("chat.send", json!({ "sessionKey": key, "message": "look" }));
    let waiting = user.event("agent", |event| event["type"] == "approval.waiting");
    let made = admin.done("api_keys.create", json!({ "name": "ci", "owner": "a-viewer", "scopes": ["operator.read"] }));
    let until = Instant::now() + Duration::from_secs(20);
    let execution = loop {
        let history = admin.done("hooks.history", json!({ "hookId": hook }));
        if let Some(row) = history["executions"].get(0) {
            break text(&row["id"]);
        }
        assert!(Instant::now() < until, "no execution was kept: {history}");
    };
    let session = super::people::session_of(super::people::post(
        &people.server,
        "/auth/sign-in",
        "",
        &json!({ "token": TOKEN, "userId": "a-admin", "tenant": tenant }),
    ));
    let mut client = people.server.client_with(&[("cookie", session.cookie.as_str())]).unwrap();
    client.done("connect", json!({ "consoleKey": session.key }));
    let console = text(&client.done("auth.sessions.list", json!({}))["sessions"][0]["id"]);
    Things {
        hook,
        session: format!("agent:main:ws:a-operator:trip-{tenant}"),
        approval: text(&waiting["payload"]["approvalId"]),
        execution,
        key: text(&made["apiKey"]["id"]),
        member: "only-there".to_owned(),
        run: text(&waiting["runId"]),
        console,
        medium: medium(people, tenant),
    }
}

/// Who asks over HTTP.
fn headers(user: &str, tenant: &str) -> String {
    format!("Authorization: Bearer {TOKEN}\nX-Pintle-User: {user}\nX-Pintle-Tenant: {tenant}\n")
}

/// A file of somebody in `tenant`.
fn medium(people: &People, tenant: &str) -> String {
    let headers = format!("{}Content-Type: text/plain\n", headers("a-operator", tenant));
    let kept = send(&people.server, "POST /v1/media", &headers, b"hello");
    assert_eq!(kept.status, 201, "{}", kept.text());
    text(&kept.json()["id"])
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is not text")).to_owned()
}

/// Every way to ask for one thing by its id over the socket: the method, its params, and the id.
fn asked(things: &Things, foreign: bool) -> Vec<(&'static str, Value, String)> {
    let nowhere = "0193a5b0-7000-7000-8000-00000000beef";
    let pick = |own: &str, other: &str| if foreign { own.to_owned() } else { other.to_owned() };
    let (hook, key) = (pick(&things.hook, nowhere), pick(&things.key, nowhere));
    let (approval, execution) = (pick(&things.approval, nowhere), pick(&things.execution, nowhere));
    let (run, console) = (pick(&things.run, nowhere), pick(&things.console, nowhere));
    let session = pick(&things.session, "agent:main:ws:a-operator:none");
    let member = pick(&things.member, "nobody-here");
    let medium = pick(&things.medium, NO_MEDIUM);
    let of = |method, params: Value, id: &str| (method, params, id.to_owned());
    vec![
        of("hooks.get", json!({ "hookId": hook }), &hook),
        of("hooks.update", json!({ "hookId": hook, "updates": { "name": "mine" } }), &hook),
        of("hooks.toggle", json!({ "hookId": hook, "enabled": false }), &hook),
        of("hooks.reset", json!({ "hookId": hook }), &hook),
        of("hooks.test", json!({ "hookId": hook, "sampleEvent": {} }), &hook),
        of("hooks.history", json!({ "hookId": hook }), &hook),
        of("hooks.watch", json!({ "on": true, "hookId": hook }), &hook),
        of("hooks.versions", json!({ "hookId": hook }), &hook),
        of("hooks.restore", json!({ "hookId": hook, "version": 1 }), &hook),
        of("hooks.changes", json!({ "hookId": hook }), &hook),
        of("hooks.delete", json!({ "hookId": hook }), &hook),
        of("hooks.execution.get", json!({ "id": execution }), &execution),
        of("sessions.preview", json!({ "key": session }), &session),
        of("chat.history", json!({ "sessionKey": session }), &session),
        of("chat.session.status", json!({ "sessionKey": session }), &session),
        of("chat.inject", json!({ "sessionKey": session, "message": "x" }), &session),
        of("chat.abort", json!({ "sessionKey": session }), &session),
        of("chat.abort", json!({ "runId": run }), &run),
        of("chat.send", json!({ "sessionKey": session, "message": "x" }), &session),
        of("chat.send", json!({ "message": "x", "media": [format!("media://{medium}")] }), &medium),
        of("sessions.patch", json!({ "key": session, "label": "mine" }), &session),
        of("sessions.reset", json!({ "key": session }), &session),
        of("sessions.compact", json!({ "key": session }), &session),
        of("sessions.delete", json!({ "key": session }), &session),
        of("turns.get", json!({ "turnId": run }), &run),
        of("turns.seen", json!({ "turnId": run, "round": 1 }), &run),
        of("approvals.get", json!({ "id": approval }), &approval),
        of("approvals.approve", json!({ "id": approval }), &approval),
        of("approvals.refuse", json!({ "id": approval }), &approval),
        of("api_keys.revoke", json!({ "id": key }), &key),
        of("members.update", json!({ "userId": member, "role": "viewer" }), &member),
        of("members.remove", json!({ "userId": member }), &member),
        of("auth.sessions.revoke", json!({ "id": console }), &console),
    ]
}

/// What is answered, without the id that was asked for.
fn answer(client: &mut Client, (method, params, id): (&str, Value, String)) -> String {
    let mut answer = client.call(method, params);
    answer.as_object_mut().unwrap().remove("id");
    answer.to_string().replace(&id, "ID")
}

/// What a stranger is answered who asks for the file `id` over HTTP, without the id.
fn over_http(people: &People, id: &str) -> Vec<(u16, String)> {
    let headers = headers("a-operator", ACME);
    let reference = format!("media://{id}");
    let part = json!({ "type": "image_url", "image_url": { "url": reference } });
    let asks = json!({ "model": "main", "messages": [{ "role": "user", "content": [part] }] });
    let part = json!({ "type": "image", "source": { "type": "url", "url": reference } });
    let says = json!({ "model": "main", "max_tokens": 9, "messages": [{ "role": "user", "content": [part] }] });
    let answers = [
        get(&people.server, &format!("/v1/media/{id}"), &headers),
        post(&people.server, CHAT, &headers, &asks),
        post(&people.server, MESSAGES, &headers, &says),
    ];
    answers.map(|answer| (answer.status, answer.text().replace(id, "ID"))).into()
}

fn people() -> People {
    let replies = format!("{{\"repeat\": true, {}", &LISTS[1..]);
    People::start_with(&replies, &format!("ask = ['list_dir']\n{WITH_TOKEN}"))
}

#[test]
fn a_listing_of_approvals_says_whose_each_is() {
    let people = people();
    people.admin_of("default").done("members.add", json!({ "userId": "only-there", "role": "viewer" }));
    for tenant in ["default", ACME] {
        things(&people, tenant);
    }
    let listed = |args: &[&str]| operator(&people.server.env, &[&["approvals", "list"], args].concat());
    let (all, one) = (listed(&[]), listed(&["--tenant", ACME]));
    assert!(all.contains("tenant default, ") && all.contains("tenant acme, "), "{all}");
    assert!(one.contains("tenant acme, ") && !one.contains("tenant default, "), "{one}");
}

#[test]
fn what_is_anothers_is_not_there() {
    let people = people();
    people.admin_of("default").done("members.add", json!({ "userId": "only-there", "role": "viewer" }));
    let [ours, theirs] = ["default", ACME].map(|tenant| things(&people, tenant));
    let before = snapshot(&people, "default");
    let mut stranger = people.admin_of(ACME);
    let mut wrong = Vec::new();
    for (foreign, random) in asked(&ours, true).into_iter().zip(asked(&ours, false)) {
        let what = format!("{} {}", foreign.0, foreign.1);
        let (said, expected) = (answer(&mut stranger, foreign), answer(&mut stranger, random));
        if said != expected {
            wrong.push(format!("{what}: {said}, and of what is nowhere {expected}"));
        }
        // Whoever stops or steers what does not run is told that it does not, and a key with the name of another user
        // is refused for that name, whether there is such a conversation or not.
        let is_there_not = ["\"NOT_FOUND\"", "\"aborted\":false", "the session is idle", "belongs to another user"];
        let is_there_not = is_there_not.iter().any(|told| said.contains(told));
        if !is_there_not {
            wrong.push(format!("{what}: {said}"));
        }
    }
    for (foreign, random) in over_http(&people, &ours.medium).into_iter().zip(over_http(&people, NO_MEDIUM)) {
        if foreign != random || foreign.0 != 404 {
            wrong.push(format!("{foreign:?}, and of what is nowhere {random:?}"));
        }
    }
    assert_eq!(wrong, [""; 0]);
    assert_eq!(snapshot(&people, "default"), before, "nothing of it changed");
    // And each has its own.
    assert_eq!(stranger.done("hooks.get", json!({ "hookId": theirs.hook }))["hook"]["name"], "passes");
    let listed = stranger.done("approvals.list", json!({}));
    assert_eq!(listed["approvals"].as_array().unwrap().len(), 1, "{listed}");
    let mut owner = people.server.admin("system");
    let ids: Vec<Value> = owner.done("tenants.list", json!({}))["tenants"].as_array().unwrap().clone();
    owner.done("hooks.budget.set", json!({ "tenantId": ids[1]["id"], "budgetTotal": 7 }));
    let budget = |tenant| people.admin_of(tenant).done("hooks.budget.get", json!({}))["budgetTotal"].clone();
    assert_ne!(budget("default"), 7);
    assert_eq!(budget(ACME), 7);
}

/// Everything that an administrator sees.
fn snapshot(people: &People, tenant: &str) -> Vec<Value> {
    let mut admin = people.admin_of(tenant);
    ["hooks.list", "sessions.list", "approvals.list", "api_keys.list", "members.list"]
        .map(|method| admin.done(method, json!({})))
        .into()
}

#[test]
fn names_that_a_caller_gives_are_their_tenants() {
    let people = People::start(WITH_TOKEN);
    // One name in two tenants is two users.
    let [ours, theirs] = ["default", ACME].map(|tenant| headers("a-operator", tenant));
    let named = |headers: &str, more: &str, text: &str| {
        let answer = post(&people.server, CHAT, &format!("{headers}{more}"), &says(text));
        (content(&answer), answer.header("x-pintle-turn").expect("a turn").to_owned())
    };
    let session = "X-Pintle-Session: trip\n";
    named(&ours, session, "the launch is on Friday");
    named(&theirs, session, "hello");
    let said_in = |tenant: &str| {
        let mut user =
            people.server.connected(json!({ "token": TOKEN, "user_id": "a-operator", "tenant_hint": tenant }));
        let listed = user.done("sessions.list", json!({}))["sessions"].clone();
        let [only] = listed.as_array().unwrap().as_slice() else { panic!("{listed}") };
        user.done("sessions.preview", json!({ "key": only["key"] }))["messages"].to_string()
    };
    assert!(said_in("default").contains("Friday") && !said_in(ACME).contains("Friday"), "{}", said_in(ACME));
    // A name of a request, in a session of the same name and without one.
    for more in [session, ""] {
        let repeat = format!("{more}Idempotency-Key: order-1\n");
        let first = named(&ours, &repeat, "pay");
        let other = named(&theirs, &repeat, "pay");
        assert_ne!(first.1, other.1, "each has a turn of their own");
        assert_eq!(named(&ours, &repeat, "pay").1, first.1, "and their own again");
        // Whoever says something else under it is told so in their own tenant only.
        let says_else = |headers: &str, key: &str| {
            post(&people.server, CHAT, &format!("{headers}{more}Idempotency-Key: {key}\n"), &says("else")).status
        };
        assert_eq!(says_else(&ours, "order-1"), 422);
        named(&ours, &format!("{more}Idempotency-Key: only-ours\n"), "pay");
        assert_eq!(says_else(&theirs, "only-ours"), 200);
    }
}

#[test]
fn how_long_it_takes_says_nothing_either() {
    let people = people();
    people.admin_of("default").done("members.add", json!({ "userId": "only-there", "role": "viewer" }));
    let ours = things(&people, "default");
    let mut apart = Vec::new();
    // One for each kind of id.
    let methods = [
        "hooks.get",
        "hooks.execution.get",
        "sessions.preview",
        "chat.history",
        "approvals.get",
        "api_keys.revoke",
        "members.remove",
        "auth.sessions.revoke",
        "turns.get",
    ];
    let mut hold = |name, asks: &mut dyn FnMut(bool)| {
        if (0..ROUNDS).all(|_| round(name, asks) >= APART) {
            apart.push(name);
        }
    };
    for method in methods {
        // A connection of its own, when its turn comes: one that waited for the others is closed as silent.
        let mut stranger = people.admin_of(ACME);
        let one = |foreign| asked(&ours, foreign).into_iter().find(|(name, ..)| *name == method).unwrap().1;
        let params = [one(false), one(true)];
        hold(method, &mut |foreign| {
            assert_eq!(stranger.refused(method, params[usize::from(foreign)].clone()).0, "NOT_FOUND");
        });
    }
    let headers = headers("a-admin", ACME);
    hold("GET /v1/media/{id}", &mut |foreign| {
        let id = if foreign { &ours.medium } else { NO_MEDIUM };
        assert_eq!(get(&people.server, &format!("/v1/media/{id}"), &headers).status, 404);
    });
    assert_eq!(apart, [""; 0], "whether an id is another tenant's shows in the time");
}

/// How far the medians of foreign and random ids are apart, as a part of one: so many pairs of both.
fn round(name: &str, asks: &mut dyn FnMut(bool)) -> f64 {
    let mut took = [Vec::new(), Vec::new()];
    for number in 0..PAIRS {
        // Whoever comes second may find what the first one left; so they take turns.
        for foreign in [number % 2 == 0, number % 2 == 1] {
            let since = Instant::now();
            asks(foreign);
            took[usize::from(foreign)].push(since.elapsed().as_secs_f64());
        }
    }
    let [random, foreign] = took.map(median);
    let differs = (foreign / random - 1.0).abs();
    println!(
        "{name}: {PAIRS} pairs, medians foreign {:.0} µs, random {:.0} µs, {:.1} % apart",
        foreign * 1e6,
        random * 1e6,
        differs * 100.0
    );
    differs
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}

#[test]
fn an_empty_listing_of_sessions_names_the_tenants_that_have_some() {
    let people = People::start(WITH_TOKEN);
    let none = "there are no sessions; `pintle run --session KEY` begins one\n";
    assert_eq!(people.server.env.pintle(&["sessions", "list"]).out, none);
    let there = format!("{}X-Pintle-Session: trip\n", headers("a-operator", ACME));
    content(&post(&people.server, CHAT, &there, &says("hello")));
    let listed = people.server.env.pintle(&["sessions", "list"]).out;
    assert_eq!(listed, "this tenant has no sessions; others have some: `pintle sessions list --tenant acme`\n");
}
