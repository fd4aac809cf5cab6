//! What the pages about turns, the overview and health ask for, as their clients see it.

use serde_json::{Value, json};

use super::people::{ACME, People};
use super::server::{Client, Server, TOKEN, WITH_TOKEN};
use crate::env::TestEnv;
use crate::run::{DONE, GUARD, LISTS, scripted};

/// A rule that blocks `list_dir`.
fn no_lists() -> Value {
    let source = "function handle() { return { decision: 'block', reason: 'not over the wire' } }";
    json!({
        "event": "pre_tool_use", "handler_type": "script", "scope": "tenant", "name": "no-lists",
        "matcher": "^list_dir$", "config": { "source": source }
    })
}

fn say(client: &mut Client, session: &str) {
    let key = format!("agent:main:ws:direct:{session}");
    let said = client.done("chat.send", json!({ "sessionKey": key, "message": "look around" }));
    assert_eq!(said["content"], "All done.");
}

fn turns(client: &mut Client, params: Value) -> Vec<Value> {
    client.done("turns.list", params)["turns"].as_array().unwrap().clone()
}

#[test]
fn a_turn_is_found_by_what_it_came_to_and_shown_as_a_waterfall() {
    let server = Server::start(scripted(&[LISTS, DONE, DONE].join(","), WITH_TOKEN));
    let mut client = server.admin("anna");
    let hook = client.done("hooks.create", no_lists())["hookId"].clone();
    say(&mut client, "one");
    say(&mut client, "two");
    let all = turns(&mut client, json!({}));
    assert_eq!(all.len(), 2, "{all:?}");
    assert_eq!((&all[0]["ending"], &all[0]["calls"], &all[0]["blocked"]), (&json!("completed"), &json!(0), &json!(0)));
    let blocked = &all[1];
    assert_eq!((&blocked["calls"], &blocked["blocked"], &blocked["faults"]), (&json!(1), &json!(1), &json!(0)));
    assert_eq!(
        (&blocked["prompt"], &blocked["sessionKey"]),
        (&json!("look around"), &json!("agent:main:ws:direct:one"))
    );
    for (params, found) in [
        (json!({ "decision": "blocked" }), 1),
        (json!({ "decision": "allowed" }), 1),
        (json!({ "decision": "asked" }), 0),
        (json!({ "decision": "faulted" }), 0),
        (json!({ "tool": "list_dir" }), 1),
        (json!({ "tool": "exec" }), 0),
        (json!({ "hook": "no-lists" }), 1),
        (json!({ "text": "Not Over" }), 1),
        (json!({ "text": "100%" }), 0),
        (json!({ "agentId": "main" }), 2),
        (json!({ "agentId": "other" }), 0),
        (json!({ "sessionKey": "agent:main:ws:direct:two" }), 1),
        (json!({ "since": "2020-01-01T00:00:00Z" }), 2),
        (json!({ "until": "2020-01-01T00:00:00Z" }), 0),
    ] {
        assert_eq!(turns(&mut client, params.clone()).len(), found, "{params}");
    }
    let got = client.done("turns.get", json!({ "turnId": blocked["turnId"] }));
    let spans = got["turn"]["spans"].as_array().unwrap();
    let kinds = |kind: &str| spans.iter().filter(|span| span["kind"] == kind).collect::<Vec<_>>();
    assert_eq!((kinds("round").len(), kinds("model").len(), kinds("call").len(), kinds("tool").len()), (2, 2, 1, 0));
    let asked = spans.iter().find(|span| span["name"] == "pre_tool_use").unwrap();
    assert_eq!((&asked["parentId"], &asked["ruling"]), (&kinds("call")[0]["id"], &json!("deny")));
    let line = asked["hooks"].as_array().unwrap().iter().find(|line| line["name"] == "no-lists").unwrap();
    assert_eq!(
        (&line["ran"], &line["verdict"], &line["reason"]),
        (&json!(true), &json!("deny"), &json!("not over the wire"))
    );
    assert_eq!((&line["execution"]["hookId"], &line["execution"]["version"]), (&hook, &json!(1)));
    for span in spans {
        let start = span["startMs"].as_f64().unwrap();
        let end = start + span["durationMs"].as_f64().unwrap();
        assert!(start >= 0.0 && end <= got["turn"]["durationMs"].as_f64().unwrap() + 0.01, "{span}");
    }
    let (code, _) = client.refused("turns.get", json!({ "turnId": "01a2143f-30e4-72a6-9657-8c823464c0cc" }));
    assert_eq!(code, "NOT_FOUND");
}

#[test]
fn a_model_call_says_what_it_cost() {
    let reply = r#"{"text": "All done.", "usage": {"prompt_tokens": 9, "completion_tokens": 4}}"#;
    let server = Server::start(scripted(reply, WITH_TOKEN));
    let mut client = server.admin("anna");
    say(&mut client, "one");
    let turn = turns(&mut client, json!({}))[0]["turnId"].clone();
    let got = client.done("turns.get", json!({ "turnId": turn }));
    let spans = got["turn"]["spans"].as_array().unwrap();
    let model = spans.iter().find(|span| span["kind"] == "model").unwrap();
    assert_eq!(model["usage"], json!({ "prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13 }));
}

#[test]
fn a_turn_says_what_it_cost_in_dollars_where_its_model_has_a_price() {
    let replies = [
        r#"{"tool_calls": [{"name": "list_dir", "arguments": {"path": "."}}],
            "usage": {"prompt_tokens": 1000, "completion_tokens": 4}}"#,
        r#"{"text": "All done.", "usage": {"prompt_tokens": 2000, "completion_tokens": 1}}"#,
        r#"{"text": "All done.", "usage": {"prompt_tokens": 9, "completion_tokens": 4}}"#,
    ];
    let priced = "default = true\n[providers.openai]\nkind = 'scripted'\nscript = 'replies.json'\n\
                  [agents.priced]\nmodel = 'openai/gpt-5-mini'\n\
                  [doors.model.openai]\ntenant = 'default'\n\
                  prices = { 'gpt-5*' = { input_usd = 1.25, output_usd = 10 } }\n";
    for (agent, calls, sum) in [
        ("priced", vec![json!("0.001290000"), json!("0.002510000")], json!("0.003800000")),
        ("main", vec![Value::Null, Value::Null], Value::Null),
    ] {
        let server = Server::start(scripted(&replies.join(","), &format!("{priced}{WITH_TOKEN}")));
        let mut client = server.admin("anna");
        let key = format!("agent:{agent}:ws:direct:one");
        client.done("chat.send", json!({ "sessionKey": key, "message": "look around" }));
        let turn = turns(&mut client, json!({}))[0]["turnId"].clone();
        let got = client.done("turns.get", json!({ "turnId": turn }));
        let spans = got["turn"]["spans"].as_array().unwrap();
        let models = spans.iter().filter(|span| span["kind"] == "model");
        let costs: Vec<Value> = models.map(|span| span["costUsd"].clone()).collect();
        assert_eq!((costs, &got["turn"]["costUsd"]), (calls, &sum), "{agent}");
    }
}

#[test]
fn pages_of_turns_follow_each_other_and_a_cursor_is_of_one_question() {
    let server = Server::start(scripted(&[DONE].repeat(5).join(","), WITH_TOKEN));
    let mut client = server.admin("anna");
    (0..5).for_each(|number| say(&mut client, &format!("s{number}")));
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = client.done("turns.list", json!({ "limit": 2, "cursor": cursor }));
        seen.extend(page["turns"].as_array().unwrap().iter().map(|turn| turn["turnId"].to_string()));
        cursor = page["nextCursor"].as_str().unwrap().to_owned();
        if cursor.is_empty() {
            break;
        }
        let other = client.refused("turns.list", json!({ "limit": 2, "tool": "exec", "cursor": cursor }));
        assert_eq!(other.1, "invalid cursor");
    }
    let whole: Vec<String> = turns(&mut client, json!({})).iter().map(|turn| turn["turnId"].to_string()).collect();
    assert_eq!((seen.len(), seen), (5, whole));
}

#[test]
fn nobody_sees_the_turns_of_others_below_admin_nor_of_another_tenant() {
    let people = People::start(WITH_TOKEN);
    let member = |user: &str, tenant: &str| {
        people.server.connected(json!({ "token": TOKEN, "user_id": user, "tenant_hint": tenant }))
    };
    let mut operator = member("a-operator", ACME);
    say(&mut operator, "mine");
    let own = turns(&mut operator, json!({}));
    assert_eq!((own.len(), &own[0]["userId"]), (1, &json!("a-operator")));
    let id = json!({ "turnId": own[0]["turnId"] });
    for (user, tenant, sees) in
        [("a-viewer", ACME, false), ("a-admin", ACME, true), ("a-admin", "default", false), ("a-operator", ACME, true)]
    {
        let mut client = member(user, tenant);
        assert_eq!(!turns(&mut client, json!({})).is_empty(), sees, "{user} of {tenant}");
        assert_eq!(client.call("turns.get", id.clone())["ok"], sees, "{user} of {tenant}");
        let counted = &client.done("overview.get", json!({}))["decisions"]["total"];
        assert!(counted["allowed"].is_u64(), "{counted}");
    }
}

#[test]
fn a_turn_of_a_sub_agent_names_the_turn_that_it_works_for_from_both_sides() {
    let replies = [
        r#"{"when": {"anywhere": "you are the helper"}, "text": "three", "repeat": true}"#,
        r#"{"when": {"tool_result": "three"}, "text": "It is three.", "repeat": true}"#,
        r#"{"tool_calls": [{"name": "delegate", "arguments": {"agent": "helper", "task": "count"}}], "repeat": true}"#,
    ];
    let team = "tools = ['delegate']\ndefault = true\n[agents.helper]\nmodel = 'scripted/test'\n\
                description = 'helps'\nsystem = 'you are the helper'\n";
    let server = Server::start(scripted(&replies.join(","), &format!("{team}{WITH_TOKEN}")));
    let mut client = server.admin("anna");
    let mut seen = Vec::new();
    // Two turns of one session, each with a sub-agent of its own.
    for _ in 0..2 {
        let said =
            client.done("chat.send", json!({ "sessionKey": "agent:main:ws:direct:one", "message": "how many?" }));
        assert_eq!(said["content"], "It is three.");
        let of = |client: &mut Client, agent: &str| turns(client, json!({ "agentId": agent }))[0]["turnId"].clone();
        let (turn, below) = (of(&mut client, "main"), of(&mut client, "helper"));
        assert!(turn.is_string() && below.is_string() && !seen.contains(&below), "{turn} {below}");
        seen.push(below.clone());
        let got = client.done("turns.get", json!({ "turnId": turn }));
        assert_eq!(got["turn"]["parentTurnId"], Value::Null, "{got}");
        let subs = got["subAgents"].as_array().unwrap();
        assert_eq!(subs.len(), 1, "{got}");
        assert_eq!((&subs[0]["turn"]["turnId"], &subs[0]["parentTurnId"]), (&below, &turn));
        assert!(subs[0]["parentSpanId"].as_str().unwrap().starts_with("call:"), "{got}");
        let got = client.done("turns.get", json!({ "turnId": below }));
        assert_eq!(got["turn"]["parentTurnId"], turn, "the same by itself");
    }
}

#[test]
fn a_turn_of_five_hundred_events_is_shown_at_once() {
    let mut replies = [LISTS].repeat(84);
    replies.push(DONE);
    let config = format!("max_iterations = 100\n{WITH_TOKEN}{GUARD}");
    let server = Server::start(scripted(&replies.join(","), &config));
    let mut client = server.admin("anna");
    client.done("hooks.create", no_lists());
    say(&mut client, "long");
    let turn = turns(&mut client, json!({}))[0]["turnId"].clone();
    let got = client.done("turns.get", json!({ "turnId": turn }));
    let spans = got["turn"]["spans"].as_array().unwrap();
    assert!(spans.len() >= 84 * 3, "{}", spans.len());
    assert_eq!(got["turn"]["truncated"], false);
}

#[test]
fn health_names_the_skill_of_which_a_text_does_not_go_in() {
    let env = scripted(DONE, &format!("skills = ['alpha']\n{WITH_TOKEN}"));
    let entry =
        r#"{"name": "tone", "file": "gone.md", "timing": "after_user_input", "role": "user", "persistent": true}"#;
    env.write("config/pintle/skills/alpha/hooks/hooks.json", &format!("{{\"hooks\": [{entry}]}}"));
    let server = Server::start(env);
    let mut owner = server.connected(json!({ "token": TOKEN, "user_id": "system" }));
    let health = owner.done("health.get", json!({}));
    let skills = health["skills"].as_array().unwrap();
    let text = skills.iter().find(|skill| skill["code"] == "E8").unwrap();
    assert_eq!(text["name"], "alpha");
    assert!(text["why"].as_str().unwrap().contains("gone.md"), "{text}");
}

#[test]
fn the_overview_and_health_say_how_hooks_stand() {
    let bad = "[hooks.processes.gone]\nenabled = true\ncommand = ['not-there']\nintercept = ['before_tool']\n";
    let server = Server::start(scripted(&[LISTS, DONE].join(","), &format!("{WITH_TOKEN}{bad}")));
    let mut client = server.connected(json!({ "token": TOKEN, "user_id": "system" }));
    let created = client.done("hooks.create", no_lists());
    say(&mut client, "one");
    let seen = client.done("overview.get", json!({}));
    let not_armed = seen["guards"]["notArmed"].as_array().unwrap();
    assert!(not_armed.iter().any(|line| line["name"] == "gone" && line["state"] == "broken"), "{not_armed:?}");
    // A rule that nobody asked yet is not proven; it is not broken for that.
    for state in ["broken", "unproven"] {
        let lines = not_armed.iter().filter(|line| line["state"] == state).count();
        assert_eq!(seen["guards"]["counts"][state], lines, "{not_armed:?}");
    }
    assert_eq!(seen["approvalsWaiting"], 0);
    assert!(seen["decisions"]["total"]["faults"].as_u64().unwrap() > 0, "{seen}");
    assert_eq!(seen["changes"][0]["hook_id"], created["hookId"]);
    assert_eq!(seen["changes"][0]["hook_name"], "no-lists");
    let health = client.done("health.get", json!({}));
    assert_eq!((&health["store"]["ok"], &health["store"]["kind"]), (&json!(true), &json!("sqlite")));
    assert_eq!(
        (&health["processHooks"][0]["name"], &health["processHooks"][0]["state"]),
        (&json!("gone"), &json!("down"))
    );
    assert_eq!(health["providers"][0]["name"], "scripted");
    assert_eq!(health["nodes"].as_array().unwrap().len(), 1);
    let found = client.done("doctor.run", json!({}));
    let checks = found["checks"].as_array().unwrap();
    let state = |what: &str| checks.iter().find(|check| check["what"] == what).map(|check| check["state"].clone());
    assert_eq!((state("guard"), state("store")), (Some(json!("failed")), Some(json!("ok"))), "{checks:?}");
    // It is still there for whoever comes back.
    assert_eq!((&health["doctor"], &client.done("health.get", json!({}))["doctor"]), (&Value::Null, &found));
    let mut admin = server.admin("anna");
    let theirs = admin.done("health.get", json!({}));
    assert_eq!(theirs["doctor"], Value::Null);
    assert_eq!(admin.refused("doctor.run", json!({})).0, "UNAUTHORIZED");
    let listed = admin.done("hooks.list", json!({}))["configured"].as_array().unwrap().clone();
    let line = listed.iter().find(|hook| hook["event"] == "before_tool").unwrap();
    assert_eq!((&line["name"], &line["state"], &line["origin"]), (&json!("gone"), &json!("broken"), &Value::Null));
    let of_owner = client.done("hooks.list", json!({ "event": "before_tool" }));
    assert!(of_owner["configured"][0]["origin"].as_str().unwrap().contains("pintle.toml"), "{of_owner}");
    assert_eq!((&theirs["nodes"], &theirs["processHooks"][0]["why"]), (&json!([]), &Value::Null));
}

#[test]
fn versions_come_from_the_change_log_and_come_back() {
    let server = Server::start(scripted(DONE, WITH_TOKEN));
    let mut client = server.admin("anna");
    let id = client.done("hooks.create", no_lists())["hookId"].clone();
    let update = |updates: Value| json!({ "hookId": id, "updates": updates });
    client.done("hooks.update", update(json!({ "matcher": "^exec$", "name": "no-exec" })));
    let versions = client.done("hooks.versions", json!({ "hookId": id }))["versions"].as_array().unwrap().clone();
    let matchers: Vec<&Value> = versions.iter().map(|version| &version["hook"]["matcher"]).collect();
    assert_eq!(matchers, [&json!("^exec$"), &json!("^list_dir$")]);
    let stale = client.refused("hooks.restore", json!({ "hookId": id, "version": 1, "ifVersion": 1 }));
    assert_eq!(stale, ("FAILED_PRECONDITION".into(), "version conflict: have 2".into()));
    let back = client.done("hooks.restore", json!({ "hookId": id, "version": 1, "ifVersion": 2 }));
    assert_eq!(back["version"], 3);
    let hook = client.done("hooks.get", json!({ "hookId": id }))["hook"].clone();
    assert_eq!((&hook["matcher"], &hook["name"]), (&json!("^list_dir$"), &json!("no-lists")));
    assert_eq!(client.refused("hooks.restore", json!({ "hookId": id, "version": 9 })).0, "NOT_FOUND");
    let first = client.done("hooks.changes", json!({ "limit": 2 }));
    let rest = client.done("hooks.changes", json!({ "limit": 2, "cursor": first["nextCursor"] }));
    let actions = |page: &Value| {
        let lines = page["changes"].as_array().unwrap().iter().filter(|line| line["hook_id"] == id);
        lines.map(|line| line["version"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!((actions(&first), actions(&rest)[0]), (vec![3, 2], 1));
    assert_eq!(client.refused("hooks.changes", json!({ "cursor": "x" })).1, "invalid cursor");
}

#[test]
fn a_matcher_and_a_condition_are_checked_and_nothing_runs() {
    let server = Server::start(scripted(DONE, WITH_TOKEN));
    let mut client = server.admin("anna");
    let said = client.done("hooks.check", json!({ "matcher": "^read", "condition": "tool_name == == 1" }));
    assert_eq!(said["matcher"], json!({ "ok": true, "matches": ["read_file"] }));
    assert_eq!((&said["condition"]["ok"], &said["condition"]["line"]), (&json!(false), &json!(1)));
    let said = client.done("hooks.check", json!({ "matcher": "(", "agentId": "main" }));
    assert_eq!((&said["matcher"]["ok"], &said["condition"]), (&json!(false), &Value::Null));
    assert_eq!(client.refused("hooks.check", json!({ "agentId": "nobody" })).0, "NOT_FOUND");
}

#[test]
fn owners_look_at_every_tenant_and_answer_in_each() {
    let people = People::start_with(&[DONE, LISTS, DONE].join(","), &format!("ask = ['list_dir']\n{WITH_TOKEN}"));
    let far = |user: &str| people.server.connected(json!({ "token": TOKEN, "user_id": user, "tenant_hint": ACME }));
    let (mut user, mut owner) = (far("a-operator"), people.server.admin("system"));
    let every = json!({ "allTenants": true });
    say(&mut user, "far");
    assert!(turns(&mut owner, json!({})).is_empty(), "their own tenant has none");
    let found = turns(&mut owner, every.clone());
    assert_eq!((found.len(), &found[0]["prompt"]), (1, &json!("look around")));
    assert_ne!(found[0]["tenantId"], json!("default"));
    let shown = owner.done("turns.get", json!({ "turnId": found[0]["turnId"] }));
    assert_eq!(shown["turn"]["turn"], found[0]);
    owner.done("turns.seen", json!({ "turnId": found[0]["turnId"], "round": 1 }));
    there_is_what_to_choose_from(&mut owner, &found[0]);
    user.ask("chat.send", json!({ "sessionKey": "agent:main:ws:direct:asks", "message": "look" }));
    let waiting = user.event("agent", |event| event["type"] == "approval.waiting");
    let id = json!({ "id": waiting["payload"]["approvalId"] });
    assert_eq!(owner.done("approvals.list", json!({}))["approvals"], json!([]));
    let listed = owner.done("approvals.list", every.clone())["approvals"].clone();
    assert_eq!((&listed[0]["id"], &listed[0]["approvers"]["you"]), (&id["id"], &json!(false)));
    assert_eq!(owner.done("approvals.get", id.clone())["approval"]["tenantId"], found[0]["tenantId"]);
    let count = |owner: &mut Client, params: Value| owner.done("overview.get", params)["approvalsWaiting"].clone();
    assert_eq!((count(&mut owner, json!({})), count(&mut owner, every.clone())), (json!(0), json!(1)));
    for method in ["turns.list", "approvals.list", "overview.get", "agents.list", "sessions.list", "hooks.counts"] {
        let refused = people.admin_of("default").refused(method, every.clone());
        assert_eq!(refused, ("UNAUTHORIZED".into(), "this action requires master tenant scope".into()), "{method}");
    }
    assert_eq!(owner.refused("approvals.refuse", id.clone()).0, "NOT_FOUND");
    assert_eq!(far("system").done("approvals.refuse", id)["approval"]["state"], "refused");
}

/// What owners filter by in every tenant names whose it is; `turn` is another tenant's.
fn there_is_what_to_choose_from(owner: &mut Client, turn: &Value) {
    let (every, tenant) = (json!({ "allTenants": true }), &turn["tenantId"]);
    let uuids = |agents: Value| -> Vec<(Value, Value)> {
        let agents = agents["agents"].as_array().unwrap().clone();
        agents.iter().map(|agent| (agent["tenantId"].clone(), agent["uuid"].clone())).collect()
    };
    let own = uuids(owner.done("agents.list", json!({})));
    let all = uuids(owner.done("agents.list", every.clone()));
    assert_eq!((own.len(), &own[0].0), (1, &Value::Null));
    let there = all.iter().find(|(of, _)| of == tenant).unwrap();
    assert!(all.iter().any(|(_, uuid)| *uuid == own[0].1) && there.1 != own[0].1, "{all:?}");
    assert_eq!(owner.done("sessions.list", json!({}))["total"], 0);
    let session = owner.done("sessions.list", every.clone())["sessions"][0].clone();
    assert_eq!((&session["tenantId"], &session["key"]), (tenant, &turn["sessionKey"]));
    for (of, many) in [(tenant.clone(), 1), (json!("default"), 0)] {
        let asked = json!({ "tenantId": of, "sessionKey": session["key"] });
        assert_eq!(turns(owner, asked).len(), many, "{of}");
    }
    assert_eq!(owner.done("hooks.counts", json!({}))["events"], 0);
    assert_ne!(owner.done("hooks.counts", every)["events"], 0);
}

#[test]
fn a_turn_of_another_tenant_does_not_stand_in_for_ones_own() {
    let people = People::start_with(&[DONE, DONE].join(","), WITH_TOKEN);
    let there = json!({ "token": TOKEN, "user_id": "a-operator", "tenant_hint": ACME });
    let (mut user, mut owner) = (people.server.connected(there), people.server.admin("system"));
    say(&mut owner, "mine");
    say(&mut user, "far");
    let own = turns(&mut owner, json!({}))[0].clone();
    assert_eq!(turns(&mut owner, json!({ "allTenants": true })).len(), 2);
    // Machines under guard name their turns: two may have one name.
    let script = "import sqlite3, sys\nstore = sqlite3.connect(sys.argv[1], timeout=30)\n\
                  own = store.execute('SELECT turn_id FROM turns WHERE tenant_id = ?', sys.argv[2:]).fetchone()[0]\n\
                  store.execute('UPDATE turns SET turn_id = ?', [own])\nstore.commit()";
    let mut python = people.server.env.command("python3");
    python.args(["-c", script]).arg(people.server.env.path("data/pintle/pintle.db"));
    let output = TestEnv::output(python.arg(own["tenantId"].as_str().unwrap()), "");
    assert!(output.status.success(), "{output:?}");
    let found = owner.done("turns.get", json!({ "turnId": own["turnId"] }))["turn"]["turn"].clone();
    assert_eq!((&found["tenantId"], &found["sessionKey"]), (&own["tenantId"], &own["sessionKey"]));
}
