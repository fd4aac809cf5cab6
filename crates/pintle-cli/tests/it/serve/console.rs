//! What pages of the console ask for beside lists: imports, what a model was sent, who would be asked now, messages that
//! are said anew.

use serde_json::{Value, json};

use super::people::{ACME, People};
use super::server::{Client, Server, WITH_TOKEN};
use crate::run::{DONE, LISTS, scripted};

const KEY: &str = "agent:main:ws:direct:one";

fn script(name: &str, answer: &Value) -> Value {
    json!({
        "event": "pre_tool_use", "handler_type": "script", "scope": "tenant", "name": name, "matcher": "^list_dir$",
        "config": { "source": format!("function handle() {{ return {answer}; }}") }
    })
}

fn allows(name: &str) -> Value {
    script(name, &json!({ "decision": "allow" }))
}

fn with(mut record: Value, member: &str, value: Value) -> Value {
    record[member] = value;
    record
}

fn outcomes(imported: &Value) -> Vec<&str> {
    imported["hooks"].as_array().unwrap().iter().map(|hook| hook["outcome"].as_str().unwrap()).collect()
}

fn names(client: &mut Client) -> Vec<String> {
    let listed = client.done("hooks.list", json!({ "event": "pre_tool_use", "scope": "tenant" }));
    listed["hooks"].as_array().unwrap().iter().map(|hook| hook["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_file_of_hooks_is_taken_whole_or_not_at_all() {
    let server = Server::start(scripted(DONE, WITH_TOKEN));
    let mut client = server.admin("anna");
    let header = json!({ "url": "https://a.example/x", "headers": { "Authorization": "Bearer s3cret" } });
    let tells =
        json!({ "event": "stop", "handler_type": "http", "scope": "tenant", "name": "tells", "config": header });
    client.done("hooks.import", json!({ "hooks": [allows("a"), tells] }));
    let bad = with(allows("c"), "matcher", json!("("));
    let file = json!([allows("a"), with(allows("a"), "priority", json!(9)), allows("b"), bad]);
    // What would come of each; nothing is written.
    let tried = client.done("hooks.import", json!({ "hooks": file, "overwrite": true, "dryRun": true }));
    assert_eq!(outcomes(&tried), ["same", "refused", "created", "refused"], "{tried}");
    let text = |of: &Value, at: usize| of["hooks"][at]["error"].as_str().unwrap_or_default().to_owned();
    assert!(text(&tried, 3).contains("matcher"), "{tried}");
    assert!(tried["hooks"][2]["hookId"].is_null() && tried["hooks"][0]["hookId"].is_string(), "{tried}");
    let (_, why) = client.refused("hooks.import", json!({ "hooks": file, "overwrite": true }));
    assert!(why.starts_with("record 2 (\"a\")"), "{why}");
    assert_eq!(names(&mut client), ["a"]);
    // Another one of what is there has to be meant.
    let changed = json!([with(allows("a"), "priority", json!(9)), allows("b")]);
    let (_, why) = client.refused("hooks.import", json!({ "hooks": changed }));
    assert!(why.contains("priority is 0, not 9"), "{why}");
    let done = client.done("hooks.import", json!({ "hooks": changed, "overwrite": true }));
    assert_eq!(outcomes(&done), ["updated", "created"]);
    assert_eq!(done["hooks"][0]["differs"], json!(["priority is 0, not 9"]));
    assert_eq!(names(&mut client), ["a", "b"]);
    for params in [json!({}), json!({ "hooks": [] }), json!({ "hooks": {} }), json!({ "hooks": vec![7; 1001] })] {
        let (code, why) = client.refused("hooks.import", params);
        assert_eq!((code.as_str(), why.contains("hooks")), ("INVALID_REQUEST", true), "{why}");
    }
}

#[test]
fn a_mask_in_a_file_stands_for_todays_secret_of_the_same_hook_at_the_same_place() {
    let server = Server::start(scripted(DONE, WITH_TOKEN));
    let mut client = server.admin("anna");
    let record = |name: &str, url: &str, secret: &str| {
        json!({
            "event": "stop", "handler_type": "http", "scope": "tenant", "name": name,
            "config": { "url": url, "headers": { "Authorization": secret } }
        })
    };
    client.done("hooks.import", json!({ "hooks": [record("tells", "https://a.example/x", "Bearer s3cret")] }));
    let tried = |client: &mut Client, record: Value| {
        let tried = client.done("hooks.import", json!({ "hooks": [record], "overwrite": true, "dryRun": true }));
        tried["hooks"][0].clone()
    };
    let mask = "********";
    assert_eq!(tried(&mut client, record("tells", "https://a.example/x", mask))["outcome"], "same");
    assert_eq!(tried(&mut client, record("tells", "https://a.example/y", mask))["outcome"], "updated");
    for (name, url) in [("tells", "https://b.example/x"), ("other", "https://a.example/x")] {
        let said = tried(&mut client, record(name, url, mask));
        assert!(said["error"].as_str().unwrap().contains("must be sent anew"), "{name} {url}: {said}");
    }
}

#[test]
fn nobody_imports_into_another_tenant_or_below_admin() {
    let people = People::start(WITH_TOKEN);
    for (role, mut client) in people.by_role() {
        let may = ["admin", "owner"].contains(&role);
        let asked = client.call("hooks.import", json!({ "hooks": [allows("mine")], "dryRun": true }));
        assert_eq!(asked["ok"] == true, may, "{role}: {asked}");
        let global = with(allows("everybodys"), "scope", json!("global"));
        let asked = client.call("hooks.import", json!({ "hooks": [global] }));
        let taken = asked["ok"] == true;
        assert!(!taken || role == "owner", "{role}: {asked}");
    }
    // A hook of another tenant is no twin.
    let mut other = people.admin_of(ACME);
    other.done("hooks.import", json!({ "hooks": [allows("guard")] }));
    let mut own = people.server.admin("anna");
    let tried = own.done("hooks.import", json!({ "hooks": [allows("guard")], "dryRun": true }));
    assert_eq!(outcomes(&tried), ["created"]);
}

#[test]
fn what_a_model_was_sent_is_shown_by_rounds_to_those_who_may_see_the_turn() {
    let server = Server::start(scripted(&[LISTS, DONE].join(","), WITH_TOKEN));
    let mut client = server.admin("anna");
    client.done("hooks.create", script("elsewhere", &json!({ "decision": "allow" })));
    let said = client.done("chat.send", json!({ "sessionKey": KEY, "message": "look around" }));
    let turn = said["runId"].clone();
    let first = client.done("turns.seen", json!({ "turnId": turn, "round": 1 }))["call"].clone();
    let last = |call: &Value| call["before"]["messages"].as_array().unwrap().last().unwrap().clone();
    assert_eq!((&first["purpose"], &first["after"], &first["complete"]), (&json!("step"), &Value::Null, &json!(true)));
    assert_eq!((&last(&first)["content"], &last(&first)["from"]), (&json!("look around"), &json!("user")));
    assert!(first["before"]["tools"].as_array().unwrap().contains(&json!("list_dir")), "{first}");
    let second = client.done("turns.seen", json!({ "turnId": turn, "round": 2 }))["call"].clone();
    let new: Vec<&str> = second["before"]["messages"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|message| message["isNew"] == true)
        .map(|message| message["role"].as_str().unwrap())
        .collect();
    assert_eq!(new, ["assistant", "tool"]);
    for (params, code) in [
        (json!({ "turnId": turn, "round": 3 }), "NOT_FOUND"),
        (json!({ "turnId": turn, "round": 0 }), "NOT_FOUND"),
        (json!({ "turnId": turn }), "INVALID_REQUEST"),
        (json!({ "turnId": "01a2143f-30e4-72a6-9657-8c823464c0cc", "round": 1 }), "NOT_FOUND"),
    ] {
        assert_eq!(client.refused("turns.seen", params.clone()).0, code, "{params}");
    }
    let counts = client.done("hooks.counts", json!({}));
    let own = counts["hooks"].as_array().unwrap().iter().find(|hook| hook["name"] == "elsewhere").unwrap();
    assert_eq!((&own["event"], &own["runs"], &own["allowed"]), (&json!("pre_tool_use"), &json!(1), &json!(1)));
    assert!(own["p95Ms"].is_number() && own["lastAt"].is_string(), "{own}");
}

/// A server whose gate stops messages with `no` in them. A user sends five messages at once at most.
fn gated() -> (Server, Client) {
    let server = Server::start(scripted(&[DONE].repeat(4).join(","), WITH_TOKEN));
    let mut client = server.admin("anna");
    let gate = "function handle(event) { return { decision: event.rawInput.includes('no') ? 'block' : 'allow' } }";
    client.done(
        "hooks.create",
        json!({
            "event": "user_prompt_submit", "handler_type": "script", "scope": "tenant", "name": "gate",
            "config": { "source": gate }
        }),
    );
    (server, client)
}

fn send(client: &mut Client, message: &str, edits: Value) -> Value {
    client.call("chat.send", json!({ "sessionKey": KEY, "message": message, "edits": edits }))
}

fn said(client: &mut Client) -> Vec<String> {
    let history = client.done("chat.history", json!({ "sessionKey": KEY }));
    let messages = history["messages"].as_array().unwrap().iter();
    messages.map(|message| message["content"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_message_is_said_anew_where_it_stood_once_its_gates_let_it_pass() {
    let (_server, mut client) = gated();
    for message in ["one", "two"] {
        assert_eq!(send(&mut client, message, Value::Null)["ok"], true);
    }
    let stopped = send(&mut client, "no", json!({ "place": 2, "of": 4 }));
    assert!(stopped["error"]["message"].as_str().unwrap().starts_with("hook blocked"), "{stopped}");
    assert_eq!(said(&mut client), ["one", "All done.", "two", "All done."]);
    assert_eq!(send(&mut client, "anew", json!({ "place": 2, "of": 4 }))["ok"], true);
    assert_eq!(said(&mut client), ["one", "All done.", "anew", "All done."]);
    assert_eq!(send(&mut client, "all anew", json!({ "place": 0, "of": 4 }))["ok"], true);
    assert_eq!(said(&mut client), ["all anew", "All done."]);
}

#[test]
fn only_what_a_person_said_is_said_anew_and_only_as_somebody_saw_it() {
    let (_server, mut client) = gated();
    assert_eq!(send(&mut client, "one", Value::Null)["ok"], true);
    for (edits, code) in [
        (json!({ "place": 0, "of": 3 }), "FAILED_PRECONDITION"),
        (json!({ "place": 1, "of": 2 }), "INVALID_REQUEST"),
        (json!({ "place": 9, "of": 2 }), "INVALID_REQUEST"),
        (json!({ "place": 0 }), "INVALID_REQUEST"),
        (json!({ "place": 0, "of": 2, "x": 1 }), "INVALID_REQUEST"),
    ] {
        let answer = send(&mut client, "anew", edits.clone());
        assert_eq!(answer["error"]["code"], code, "{edits}: {answer}");
    }
    assert_eq!(said(&mut client), ["one", "All done."]);
}

#[test]
fn the_chain_has_hooks_of_the_configuration_too() {
    let process = "[hooks.processes.freeze]\nenabled = true\ncommand = ['true']\nintercept = ['before_tool']\n\
                   matcher = '^write_file$'\n";
    let server = Server::start(scripted(DONE, &format!("{WITH_TOKEN}{process}")));
    let mut client = server.admin("anna");
    let asked = |client: &mut Client, tool: &str| {
        let params = json!({ "event": "before_tool", "toolName": tool, "toolInput": {} });
        client.done("hooks.chain", params)["configured"][0].clone()
    };
    let (fits, other) = (asked(&mut client, "write_file"), asked(&mut client, "exec"));
    assert_eq!(
        (&fits["name"], &fits["family"], &fits["wouldRun"]),
        (&json!("freeze"), &json!("process"), &json!(true))
    );
    assert_eq!(other["wouldRun"], false);
    assert!(other["reason"].as_str().unwrap().contains("does not match"), "{other}");
    // Where it comes from is for those who run the host.
    assert_eq!(fits["origin"], Value::Null);
}

#[test]
fn why_somebody_switched_a_hook_off_stands_beside_it_until_it_is_on() {
    let server = Server::start(scripted(DONE, WITH_TOKEN));
    let mut client = server.admin("anna");
    let id = client.done("hooks.create", allows("noisy"))["hookId"].clone();
    let toggle = |client: &mut Client, enabled: bool, reason: &str| {
        client.call("hooks.toggle", json!({ "hookId": id, "enabled": enabled, "reason": reason }))
    };
    for bad in ["edition", "breaker", &"x".repeat(33), "a\u{1b}b"] {
        assert_eq!(toggle(&mut client, false, bad)["error"]["code"], "INVALID_REQUEST", "{bad}");
    }
    let kept =
        |client: &mut Client| client.done("hooks.get", json!({ "hookId": id }))["hook"]["disabled_reason"].clone();
    assert_eq!(toggle(&mut client, false, " too noisy ")["ok"], true);
    assert_eq!(kept(&mut client), "too noisy");
    let longest = "x".repeat(32);
    assert_eq!(toggle(&mut client, false, &longest)["ok"], true);
    assert_eq!(kept(&mut client), longest.as_str());
    assert_eq!(toggle(&mut client, true, "")["ok"], true);
    assert_eq!(kept(&mut client), "");
}
