//! Two tenants on one host that have everything at once: what is one's, the other cannot tell from what is not there.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::people::{ACME, People};
use super::server::{Client, TOKEN, WITH_TOKEN};
use crate::run::LISTS;

/// How many pairs of ids are tried, a foreign and a random one each: two thousand tries.
const PAIRS: usize = 1000;

/// How often as many again are tried where they seem to be apart: what the machine does else is gone by then, a
/// difference is not.
const ROUNDS: usize = 4;

/// The most that the two may be apart, as a part of one. Source: the promise of a host with several tenants.
const APART: f64 = 0.05;

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
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value} is not text")).to_owned()
}

/// Every way to ask for one thing by its id: the method, its params, and an id that is nowhere.
fn asked(things: &Things, foreign: bool) -> Vec<(&'static str, Value, String)> {
    let nowhere = "0193a5b0-7000-7000-8000-00000000beef";
    let pick = |own: &str, other: &str| if foreign { own.to_owned() } else { other.to_owned() };
    let (hook, key) = (pick(&things.hook, nowhere), pick(&things.key, nowhere));
    let (approval, execution) = (pick(&things.approval, nowhere), pick(&things.execution, nowhere));
    let (run, console) = (pick(&things.run, nowhere), pick(&things.console, nowhere));
    let session = pick(&things.session, "agent:main:ws:a-operator:none");
    let member = pick(&things.member, "nobody-here");
    let of = |method, params: Value, id: &str| (method, params, id.to_owned());
    vec![
        of("hooks.get", json!({ "hookId": hook }), &hook),
        of("hooks.update", json!({ "hookId": hook, "updates": { "name": "mine" } }), &hook),
        of("hooks.toggle", json!({ "hookId": hook, "enabled": false }), &hook),
        of("hooks.reset", json!({ "hookId": hook }), &hook),
        of("hooks.test", json!({ "hookId": hook, "sampleEvent": {} }), &hook),
        of("hooks.history", json!({ "hookId": hook }), &hook),
        of("hooks.delete", json!({ "hookId": hook }), &hook),
        of("hooks.execution.get", json!({ "id": execution }), &execution),
        of("sessions.preview", json!({ "key": session }), &session),
        of("chat.history", json!({ "sessionKey": session }), &session),
        of("chat.session.status", json!({ "sessionKey": session }), &session),
        of("chat.inject", json!({ "sessionKey": session, "message": "x" }), &session),
        of("chat.abort", json!({ "sessionKey": session }), &session),
        of("chat.abort", json!({ "runId": run }), &run),
        of("sessions.delete", json!({ "key": session }), &session),
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

fn people() -> People {
    let replies = format!("{{\"repeat\": true, {}", &LISTS[1..]);
    People::start_with(&replies, &format!("ask = ['list_dir']\n{WITH_TOKEN}"))
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
fn how_long_it_takes_says_nothing_either() {
    let people = people();
    let ours = things(&people, "default");
    let mut stranger = people.admin_of(ACME);
    let mut apart = Vec::new();
    for method in ["hooks.get", "sessions.preview", "approvals.get", "api_keys.revoke"] {
        let one = |foreign| asked(&ours, foreign).into_iter().find(|(name, ..)| *name == method).unwrap().1;
        let params = [one(false), one(true)];
        let mut took = [Vec::new(), Vec::new()];
        for _ in 0..ROUNDS {
            try_pairs(&mut stranger, (method, &params), &mut took);
            if differs(&took) < APART {
                break;
            }
        }
        let [random, foreign] = [0, 1].map(|of: usize| median(took[of].clone()));
        println!(
            "{method}: medians of {} foreign {:.0} µs, random {:.0} µs, {:.1} % apart; in pairs {:.1} % apart",
            took[0].len(),
            foreign * 1e6,
            random * 1e6,
            (foreign / random - 1.0).abs() * 100.0,
            differs(&took) * 100.0
        );
        apart.push((method, differs(&took)));
    }
    assert!(apart.iter().all(|(_, apart)| *apart < APART), "{apart:?}");
}

/// Tries pairs of a random and a foreign id.
fn try_pairs(stranger: &mut Client, (method, params): (&str, &[Value; 2]), took: &mut [Vec<f64>; 2]) {
    for number in 0..PAIRS {
        // Whoever comes second may find what the first one left; so they take turns.
        for of in if number % 2 == 0 { [0, 1] } else { [1, 0] } {
            let since = Instant::now();
            assert_eq!(stranger.refused(method, params[of].clone()).0, "NOT_FOUND");
            took[of].push(since.elapsed().as_secs_f64());
        }
    }
}

/// How far the two are apart in the median of all pairs, as a part of one. What else the machine does comes and goes,
/// and meets both of a pair; two medians of all are moved by it as they please.
fn differs([random, foreign]: &[Vec<f64>; 2]) -> f64 {
    (median(foreign.iter().zip(random).map(|(foreign, random)| foreign / random).collect()) - 1.0).abs()
}

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}
