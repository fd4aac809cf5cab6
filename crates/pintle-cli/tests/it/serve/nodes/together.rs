//! Two nodes behave as one: routing, watching, rules, configurations that differ.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::pair::{Client, Node, Nodes, until};
use crate::env::TestEnv;
use crate::run::{DONE, scripted};
use crate::serve::server::{Server, WITH_TOKEN};

const KEY: &str = "agent:main:ws:direct:trip";

fn prompt(text: &str) -> Value {
    json!({ "sessionKey": KEY, "message": text })
}

fn texts(client: &mut Client) -> Vec<String> {
    let history = client.done("chat.history", json!({ "sessionKey": KEY }));
    history["messages"].as_array().unwrap().iter().map(|it| it["content"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn what_is_meant_for_a_turn_reaches_the_node_that_works_it() {
    let nodes = Nodes::new();
    let (a, b) = (nodes.start("a"), nodes.start("b"));
    let (mut at_a, mut at_b) = (a.client("anna"), b.client("anna"));
    let sent = at_a.ask("chat.send", prompt("slow: 1500")).unwrap();
    let run = at_a.event("agent", |it| it["type"] == "run.started")["runId"].clone();

    // The other node knows that it is worked.
    let status = at_b.done("chat.session.status", json!({ "sessionKey": KEY }));
    assert_eq!((&status["isRunning"], &status["runId"]), (&json!(true), &run), "{status}");
    let agents = at_b.done("agents.list", json!({}));
    assert_eq!(agents["agents"][0]["isRunning"], true, "{agents}");
    // A message that comes in there steers the turn.
    let said = at_b.done("chat.send", prompt("more"));
    assert_eq!(said["injected"], true, "{said}");
    assert_eq!(at_b.done("chat.inject", prompt("and more"))["ok"], true);
    let answer = at_a.answer(&sent).unwrap();
    assert_eq!(answer["ok"], true, "{answer}");
    // Both are one message where they come in before the same round.
    assert!(answer["payload"]["content"].as_str().unwrap().ends_with("and more"), "{answer}");
    // Whoever watches there gets the whole of it, and is told that it is no live text.
    let told = at_b.event("agent", |it| it["type"] == "run.completed");
    assert_eq!(told["live"], false, "{told}");
    assert_eq!(texts(&mut at_b), texts(&mut at_a));

    // The session is whoever's node gets the next message.
    assert_eq!(at_b.done("chat.send", prompt("hello"))["content"], "answer hello");
    // It is stopped from anywhere.
    let sent = at_b.ask("chat.send", prompt("slow: 60000")).unwrap();
    at_b.event("agent", |it| it["type"] == "run.started" && it["payload"]["message"] == "slow: 60000");
    let aborted = at_a.done("chat.abort", json!({ "sessionKey": KEY }));
    assert_eq!(aborted["aborted"], true, "{aborted}");
    assert_eq!(at_b.answer(&sent).unwrap()["payload"], json!({ "cancelled": true }));
    assert_eq!(at_a.done("chat.abort", json!({ "sessionKey": KEY }))["aborted"], false);
    let idle = at_a.call("chat.inject", prompt("x")).unwrap();
    assert_eq!(idle["error"]["code"], "FAILED_PRECONDITION", "{idle}");
}

#[test]
fn what_a_revoked_key_said_at_another_node_is_not_heard() {
    let nodes = Nodes::new();
    let (a, b) = (nodes.start("a"), nodes.start("b"));
    let mut zoe = a.client("zoe");
    let made = zoe.done("api_keys.create", json!({ "name": "ci", "owner": "anna", "scopes": ["operator.write"] }));
    let (mut at_a, mut at_b) = (a.client("anna"), b.client("anna"));
    let mut thief = Client::connect_as(&b.address, json!({ "token": made["key"] })).unwrap();
    let sent = at_a.ask("chat.send", prompt("slow: 3000")).unwrap();
    // What is said from here on waits for the model's answer.
    at_a.event("agent", |it| it["type"] == "activity");
    assert_eq!(thief.done("chat.send", prompt("push it"))["injected"], true);
    assert_eq!(at_b.done("chat.inject", prompt("and be brief"))["ok"], true);
    zoe.done("api_keys.revoke", json!({ "id": made["apiKey"]["id"] }));
    let answer = at_a.answer(&sent).unwrap();
    assert_eq!(answer["ok"], true, "{answer}");
    let texts = texts(&mut at_a);
    assert!(texts.iter().any(|text| text == "and be brief"), "{texts:?}");
    assert!(!texts.iter().any(|text| text.contains("push it")), "{texts:?}");
}

#[test]
fn no_node_takes_a_conversation_away_that_another_one_works() {
    let nodes = Nodes::new();
    let (a, b) = (nodes.start("a"), nodes.start("b"));
    let (mut at_a, mut at_b) = (a.client("anna"), b.client("anna"));
    at_a.done("chat.send", prompt("hello"));
    let sent = at_a.ask("chat.send", prompt("slow: 60000")).unwrap();
    at_a.event("agent", |it| it["type"] == "run.started" && it["payload"]["message"] == "slow: 60000");
    let methods = [
        ("sessions.compact", json!({ "key": KEY, "keepLast": 1 })),
        ("sessions.reset", json!({ "key": KEY })),
        ("sessions.delete", json!({ "key": KEY })),
    ];
    for (method, params) in methods.clone() {
        let refused = at_b.call(method, params).unwrap();
        assert_eq!(refused["error"]["code"], "FAILED_PRECONDITION", "{method}: {refused}");
    }
    assert_eq!(at_b.done("chat.abort", json!({ "sessionKey": KEY }))["aborted"], true);
    assert_eq!(at_a.answer(&sent).unwrap()["payload"], json!({ "cancelled": true }));
    assert_eq!(texts(&mut at_b)[..2], ["hello", "answer hello"], "nothing of it is gone");
    // Once nobody works it, any node does it.
    for (method, params) in methods {
        until(method, || (at_b.call(method, params.clone()).unwrap()["ok"] == true).then_some(()));
    }
    let gone = at_a.call("sessions.delete", json!({ "key": KEY })).unwrap();
    assert_eq!(gone["error"]["code"], "NOT_FOUND", "{gone}");
}

#[test]
fn an_approval_is_given_anywhere_and_a_decided_turn_goes_on_wherever_its_agent_is() {
    let nodes = Nodes::new();
    let asks = "ask = ['exec']";
    let (mut a, b) = (nodes.start_at("a", asks, &nodes.url), nodes.start_at("b", asks, &nodes.url));
    let (mut at_a, mut at_b) = (a.client("anna"), b.client("anna"));
    let sent = at_a.ask("chat.send", prompt("run: echo one")).unwrap();
    let waiting = |client: &mut Client| {
        until("a question", || {
            let listed = client.done("approvals.list", json!({}));
            listed["approvals"][0]["id"].as_str().map(str::to_owned)
        })
    };
    let id = waiting(&mut at_b);
    // Its session says so on every node, from when the node that asked has parked it.
    at_a.event("agent", |it| it["type"] == "approval.waiting");
    let busy = at_b.call("chat.send", prompt("hurry")).unwrap();
    assert_eq!(busy["error"]["details"]["kind"], "approval_pending", "{busy}");
    at_b.done("approvals.approve", json!({ "id": id }));
    let answer = at_a.answer(&sent).unwrap();
    assert_eq!(answer["payload"]["content"], "answer run: echo one", "{answer}");

    // The node that parked it is gone before anybody decides.
    at_a.ask("chat.send", prompt("run: echo two")).unwrap();
    let id = waiting(&mut at_b);
    a.signal(nix::sys::signal::Signal::SIGTERM);
    assert_eq!(a.ended().0, Some(0));
    let decided = Instant::now();
    at_b.done("approvals.approve", json!({ "id": id }));
    until("the parked turn goes on", || texts(&mut at_b).contains(&"answer run: echo two".to_owned()).then_some(()));
    let took = decided.elapsed();
    println!("a parked turn of a node that is gone went on and ended {took:?} after it was decided");
    assert!(took < Duration::from_secs(5), "{took:?}");
}

#[test]
fn what_becomes_of_an_approval_is_told_on_every_node_once() {
    let nodes = Nodes::new();
    let asks = "ask = ['exec']";
    let (mut a, b) = (nodes.start_at("a", asks, &nodes.url), nodes.start_at("b", asks, &nodes.url));
    let (mut at_a, mut at_b) = (a.client("anna"), b.client("anna"));
    let is_over = |client: &mut Client, text: &str| {
        client.event("agent", |it| it["type"] == "run.completed" && it["payload"]["content"] == text);
    };
    let times = |client: &Client, name: &str, id: &Value| {
        client.heard.iter().filter(|frame| frame["event"] == name && frame["payload"]["id"] == *id).count()
    };
    // Asked at one node, answered at the other.
    at_a.ask("chat.send", prompt("run: echo one")).unwrap();
    let id = at_b.event("approvals.created", |_| true)["id"].clone();
    assert_eq!(at_a.event("approvals.created", |_| true)["id"], id);
    at_b.done("approvals.approve", json!({ "id": id }));
    for client in [&mut at_a, &mut at_b] {
        let decided = client.event("approvals.decided", |it| it["id"] == id);
        assert_eq!(decided["answered_by"], "anna", "{decided}");
        let is_it = |it: &Value| it["type"] == "approval.decided" && it["payload"]["approvalId"] == id;
        client.event("agent", is_it);
        is_over(client, "answer run: echo one");
        assert_eq!(times(client, "approvals.decided", &id) + times(client, "approvals.created", &id), 0);
    }
    // The node that asked is gone before anybody answers.
    at_a.ask("chat.send", prompt("run: echo two")).unwrap();
    let asked = at_b.event("approvals.created", |_| true);
    let id = asked["id"].clone();
    a.signal(nix::sys::signal::Signal::SIGTERM);
    assert_eq!(a.ended().0, Some(0));
    at_b.done("approvals.approve", json!({ "id": id }));
    assert_eq!(at_b.event("approvals.decided", |it| it["id"] == id)["state"], "approved");
    let is_it = |it: &Value| it["type"] == "approval.decided" && it["payload"]["approvalId"] == id;
    assert_eq!(at_b.event("agent", is_it)["runId"], asked["turn_id"]);
    is_over(&mut at_b, "answer run: echo two");
    assert_eq!(times(&at_b, "approvals.decided", &id), 0);
}

#[test]
fn a_key_that_is_revoked_at_one_node_is_out_at_the_other_within_a_second() {
    let nodes = Nodes::new();
    let (a, b) = (nodes.start("a"), nodes.start("b"));
    let mut boss = a.client("boss");
    let wish = json!({ "name": "ci", "owner": "anna", "scopes": ["operator.write"] });
    let made = boss.done("api_keys.create", wish);
    let mut anna = Client::connect_as(&b.address, json!({ "token": made["key"] })).expect("it answers");
    anna.done("agents.list", json!({}));
    boss.done("api_keys.revoke", json!({ "id": made["apiKey"]["id"] }));
    let since = Instant::now();
    while anna.call("agents.list", json!({})).is_ok_and(|answer| answer["ok"] == true) {
        assert!(since.elapsed() < Duration::from_secs(1), "it still answers after {:?}", since.elapsed());
    }
}

#[test]
fn a_turn_ends_with_its_key_though_another_node_revokes_that() {
    let nodes = Nodes::new();
    let (a, b) = (nodes.start("a"), nodes.start("b"));
    let (mut at_a, mut at_b) = (a.client("system"), b.client("system"));
    let made = at_a.done("api_keys.create", json!({ "name": "ci", "owner": "anna", "scopes": ["operator.write"] }));
    let mut anna = Client::connect_as(&b.address, json!({ "token": made["key"] })).expect("it answers");
    anna.ask("chat.send", prompt("slow: 60000")).unwrap();
    at_b.event("agent", |it| it["type"] == "run.started");
    at_a.done("api_keys.revoke", json!({ "id": made["apiKey"]["id"] }));
    let since = Instant::now();
    at_b.event("agent", |it| it["type"] == "run.cancelled" && it["userId"] == "anna");
    assert!(since.elapsed() < Duration::from_secs(1), "it took {:?}", since.elapsed());
}

#[test]
fn a_node_that_differs_takes_no_turns_of_the_agents_that_differ() {
    let nodes = Nodes::new();
    let a = nodes.start("a");
    let other = "[agents.other]\nmodel = 'model/m'\ntools = []";
    let b = nodes.start_at("b", &format!("system = 'be brief'\n{other}"), &nodes.url);
    let (mut at_a, mut at_b) = (a.client("anna"), b.client("anna"));
    let mut owner = a.client("system");
    let listed = until("both nodes are known", || {
        let listed = owner.done("nodes.list", json!({}));
        (listed["nodes"].as_array().unwrap().len() == 2).then_some(listed)
    });
    let of = |name: &str| listed["nodes"].as_array().unwrap().iter().find(|it| it["name"] == name).unwrap().clone();
    let (first, second) = (of("a"), of("b"));
    assert_eq!((&first["self"], &first["differs"], &first["online"]), (&json!(true), &json!([]), &json!(true)));
    assert_eq!((&second["self"], &second["differs"]), (&json!(false), &json!(["main"])));
    assert_eq!(first["version"], second["version"]);
    assert!(first["configDigest"] != second["configDigest"] && first["addresses"][0] == json!(a.address));
    let refused = at_a.call("nodes.list", json!({})).unwrap();
    assert_eq!(refused["error"]["code"], "UNAUTHORIZED", "{refused}");

    let refused = at_b.call("chat.send", prompt("hello")).unwrap();
    let message = refused["error"]["message"].as_str().unwrap();
    assert!(message.starts_with("this node has another configuration of the agent main"), "{refused}");
    assert_eq!(refused["error"]["retryable"], true);
    let unlike = json!({ "sessionKey": "agent:other:ws:direct:x", "message": "hello" });
    assert_eq!(at_b.done("chat.send", unlike)["content"], "answer hello");
    assert_eq!(at_a.done("chat.send", prompt("hello"))["content"], "answer hello");
    // Once the others are gone, its own counts.
    drop(a);
    until("the other one counts as gone", || {
        thread::sleep(Duration::from_secs(1));
        let answer = b.client("ben").call("chat.send", prompt("again")).unwrap();
        (answer["ok"] == true).then_some(())
    });
}

#[test]
fn a_session_whose_files_are_on_one_node_stays_there() {
    let nodes = Nodes::new();
    let bound = "[agents.bound]\nmodel = 'model/m'\ntools = ['exec']";
    let (a, b) = (nodes.start_at("a", bound, &nodes.url), nodes.start_at("b", bound, &nodes.url));
    let (mut at_a, mut at_b) = (a.client("anna"), b.client("anna"));
    let say = |text: &str| json!({ "sessionKey": "agent:bound:ws:direct:x", "message": text });
    assert_eq!(at_a.done("chat.send", say("hello"))["content"], "answer hello");
    let refused = at_b.call("chat.send", say("hello")).unwrap();
    let why = "the files of this session are on the node a: ask that one; or share them and set \
               agents.bound.workspace_shared";
    assert_eq!(refused["error"]["message"], why, "{refused}");
    assert_eq!(at_a.done("chat.send", say("again"))["content"], "answer again");
}

/// A way to the database that lets everything through but what listens.
fn deaf(url: &str) -> String {
    let server = url.split('@').nth(1).unwrap().split('/').next().unwrap().to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let here = listener.local_addr().unwrap().to_string();
    let there = server.clone();
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let server = TcpStream::connect(&there).unwrap();
            let (from, to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            thread::spawn(move || pass(from, to, true));
            thread::spawn(move || pass(server, client, false));
        }
    });
    url.replace(&server, &here)
}

/// Passes bytes on. Who wants to listen is cut off.
fn pass(mut from: TcpStream, mut to: TcpStream, looks: bool) {
    let mut buffer = [0; 65536];
    while let Ok(read) = from.read(&mut buffer) {
        let bytes = &buffer[..read];
        let listens = looks && bytes.windows(7).any(|it| it == b"LISTEN ");
        if read == 0 || listens || to.write_all(bytes).is_err() {
            break;
        }
    }
    // The other side may have gone already.
    from.shutdown(Shutdown::Both).ok();
    to.shutdown(Shutdown::Both).ok();
}

#[test]
fn a_changed_rule_is_seen_on_every_node() {
    let nodes = Nodes::new();
    let (a, b) = (nodes.start("a"), nodes.start("b"));
    let hears_nothing = nodes.start_at("c", "", &deaf(&nodes.url));
    let mut admin = a.client("anna");
    let source = "function handle() { return { decision: 'block', reason: 'closed' } }";
    let rule = json!({
        "event": "user_prompt_submit", "handler_type": "script", "scope": "tenant", "name": "closed",
        "config": { "source": source }
    });
    let mut others = [b, hears_nothing];
    // Another user each time: one alone would send too many messages.
    let try_it = |node: &mut Node, number: usize| {
        let (key, mut client) = ("agent:main:ws:direct:rule", node.client(&format!("user{number}")));
        client.call("chat.send", json!({ "sessionKey": key, "message": "hello" })).unwrap()["ok"] == true
    };
    assert!(others.iter_mut().enumerate().all(|(i, node)| try_it(node, i)), "nothing is closed yet");
    let id = admin.done("hooks.create", rule)["hookId"].clone();
    let changed = Instant::now();
    let bounds = [Duration::from_millis(200), Duration::from_secs(5)];
    let mut number = 10;
    let mut first = Vec::new();
    for (node, bound) in others.iter_mut().zip(bounds) {
        loop {
            let asked = changed.elapsed();
            number += 1;
            if !try_it(node, number) {
                first.push(asked);
                break;
            }
            assert!(asked < Duration::from_secs(30), "it is never seen");
        }
        let seen = *first.last().unwrap();
        println!("a changed rule was in force {seen:?} after the change, of {bound:?}");
        assert!(seen < bound, "{seen:?} of {bound:?}");
    }
    admin.done("hooks.toggle", json!({ "hookId": id, "enabled": false }));
}

#[test]
fn what_no_notification_told_is_found_within_five_seconds() {
    let nodes = Nodes::new();
    let a = nodes.start("a");
    let b = nodes.start_at("b", "", &deaf(&nodes.url));
    let (mut at_a, mut at_b) = (a.client("anna"), b.client("anna"));
    let sent = at_b.ask("chat.send", prompt("slow: 60000")).unwrap();
    at_b.event("agent", |it| it["type"] == "run.started");
    let asked = Instant::now();
    assert_eq!(at_a.done("chat.abort", json!({ "sessionKey": KEY }))["aborted"], true);
    assert_eq!(at_b.answer(&sent).unwrap()["payload"], json!({ "cancelled": true }));
    let stopped = asked.elapsed();
    let said = Instant::now();
    // In a conversation of its own: in this one, what was stopped and what is said next are one message.
    let hello = json!({ "sessionKey": "agent:main:ws:direct:other", "message": "hello" });
    assert_eq!(at_a.done("chat.send", hello)["content"], "answer hello");
    at_b.event("agent", |it| it["type"] == "run.completed");
    let told = said.elapsed();
    println!("without notifications: stopped after {stopped:?}, told after {told:?}");
    assert!(stopped < Duration::from_secs(5) && told < Duration::from_secs(5), "{stopped:?} {told:?}");
}

#[test]
fn a_file_is_served_once() {
    let first = Server::start(scripted(DONE, WITH_TOKEN));
    let env: &TestEnv = &first.env;
    let mut second = env.command(crate::env::PINTLE);
    second.args(["serve", "--listen", "127.0.0.1:0"]).env("PINTLE_TEST_TOKEN", crate::serve::server::TOKEN);
    let seen = env.run(&mut second, "");
    let words = format!("is served already: it listens at {};", first.address);
    let output = TestEnv::output(
        env.command(crate::env::PINTLE)
            .args(["serve", "--listen", "127.0.0.1:0"])
            .env("PINTLE_TEST_TOKEN", crate::serve::server::TOKEN),
        "",
    );
    let shown = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(seen.code == Some(1) && shown.contains(&words), "{seen:?} {shown}");
}
