//! Others are told what happens, by signed requests.

use pintle_testkit::http::{HttpStub, ReceivedRequest, StubAnswer};
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::server::{Server, WITH_TOKEN};
use crate::env::TestEnv;
use crate::run::{DONE, LISTS, scripted};

pub(super) const OLD: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const NEW: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";

/// How long a test waits for a request.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(30);

/// Somebody who is told.
pub(super) struct Receiver {
    stub: HttpStub,
    /// What it runs on.
    _runtime: Runtime,
}

impl Receiver {
    pub(super) fn answering(answers: Vec<StubAnswer>) -> Self {
        let runtime = Runtime::new().unwrap();
        Self { stub: runtime.block_on(HttpStub::start(answers)), _runtime: runtime }
    }

    /// Waits until `count` requests have come.
    pub(super) fn told(&self, count: usize) -> Vec<ReceivedRequest> {
        let began = std::time::Instant::now();
        loop {
            let seen = self.stub.seen();
            if seen.len() >= count {
                return seen;
            }
            let bodies = || seen.iter().map(|it| it.body.clone()).collect::<Vec<_>>();
            assert!(began.elapsed() < PATIENCE, "{} of {count} came: {:#?}", seen.len(), bodies());
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }

    pub(super) fn entry(&self, events: &[&str]) -> String {
        format!(
            "[[gateway.webhooks]]\nurl = '{}/pintle?key=hidden'\nevents = {events:?}\nsecret_env = 'HOOK_SECRET'\n",
            self.stub.url()
        )
    }
}

/// What a request is signed with, by the specification.
fn signature(env: &TestEnv, request: &ReceivedRequest, secret: &str) -> String {
    let script = "import base64, hashlib, hmac, sys
secret, id, at = sys.argv[1:4]
key = base64.b64decode(secret.removeprefix('whsec_'))
message = f'{id}.{at}.'.encode() + sys.stdin.buffer.read()
print('v1,' + base64.b64encode(hmac.new(key, message, hashlib.sha256).digest()).decode())";
    let (id, at) = (request.header("webhook-id").unwrap(), request.header("webhook-timestamp").unwrap());
    let seen = TestEnv::output(env.command("python3").args(["-c", script, secret, id, at]), &request.body);
    String::from_utf8(seen.stdout).unwrap().trim().to_owned()
}

/// What a request says.
pub(super) fn body(request: &ReceivedRequest) -> Value {
    serde_json::from_str(&request.body).unwrap()
}

pub(super) fn ok(count: usize) -> Vec<StubAnswer> {
    vec![StubAnswer::new(204, ""); count]
}

pub(super) fn shuts() -> Value {
    json!({
        "event": "pre_tool_use", "handler_type": "script", "scope": "tenant", "name": "shuts", "matcher": "^list_dir$",
        "config": { "source": "function handle() { return { decision: 'block', reason: 'ask ada@example.org' } }" },
    })
}

#[test]
fn what_a_hook_refuses_is_told_signed_and_without_secrets() {
    let receiver = Receiver::answering(ok(10));
    let public = "public_url = 'https://pintle.example.org'\n";
    let config = format!("{WITH_TOKEN}{public}{}", receiver.entry(&["execution.blocked", "hook.changed"]));
    let server =
        Server::start_with(scripted(&[LISTS, DONE].join(","), &config), &[("HOOK_SECRET", &format!("{OLD} {NEW}"))]);
    let mut anna = server.admin("anna");
    let hook = anna.done("hooks.create", shuts())["hookId"].clone();
    let told = receiver.told(1);
    let changed = body(&told[0]);
    assert_eq!((&changed["type"], &changed["seq"]), (&json!("hook.changed"), &json!(1)), "{changed}");
    assert_eq!(changed["data"]["link"], format!("https://pintle.example.org/hooks/{}", hook.as_str().unwrap()));
    anna.done("chat.send", json!({ "message": "look" }));
    let told = receiver.told(2);
    let (request, body) = (&told[1], body(&told[1]));
    assert_eq!(request.line, "POST /pintle?key=hidden");
    assert_eq!((&body["type"], &body["seq"]), (&json!("execution.blocked"), &json!(2)), "{body}");
    assert!(body["timestamp"].as_str().unwrap().parse::<jiff::Timestamp>().is_ok(), "{body}");
    let data = &body["data"];
    assert_eq!((&data["hookId"], &data["hook"], &data["tool"]), (&hook, &json!("shuts"), &json!("list_dir")), "{body}");
    assert_eq!((&data["call"], &data["reason"]), (&json!(r#"{"path":"."}"#), &json!("ask [REDACTED]")), "{body}");
    let turn = data["turnId"].as_str().unwrap();
    assert_eq!(data["link"], format!("https://pintle.example.org/turns/{turn}"));
    // Whoever knows the old secret or the new one can tell that it comes from here.
    let signatures: Vec<&str> = request.header("webhook-signature").unwrap().split(' ').collect();
    assert_eq!(signatures, [signature(&server.env, request, OLD), signature(&server.env, request, NEW)]);
}

#[test]
fn what_is_not_taken_is_sent_again_and_a_redirect_is_not_followed() {
    let elsewhere = Receiver::answering(ok(1));
    let moved = StubAnswer::new(307, "").header("location", &elsewhere.stub.url());
    let receiver = Receiver::answering([vec![moved], ok(3)].concat());
    let config = format!("{WITH_TOKEN}{}", receiver.entry(&["hook.changed"]));
    let server = Server::start_with(scripted(DONE, &config), &[("HOOK_SECRET", OLD)]);
    let mut owner = server.connected(json!({ "token": super::server::TOKEN, "user_id": "system" }));
    owner.done("hooks.create", shuts());
    let first = receiver.told(1);
    let waiting = loop {
        let list = owner.done("webhooks.list", json!({}));
        if list["deliveries"][0]["attempts"] == 1 {
            break list["deliveries"][0].clone();
        }
    };
    assert_eq!(waiting["error"], "it answered 307");
    // Nobody waits for the pause who need not.
    assert_eq!(owner.done("webhooks.retry", json!({ "id": waiting["id"] })), json!({ "retried": 1 }));
    let told = receiver.told(2);
    assert_eq!((told[1].header("webhook-id"), &told[1].body), (first[0].header("webhook-id"), &first[0].body));
    assert!(elsewhere.stub.seen().is_empty());
    assert_eq!(owner.refused("webhooks.retry", json!({ "id": "x" })).0, "NOT_FOUND");
    let mut anna = server.admin("anna");
    assert_eq!(anna.refused("webhooks.list", json!({})).0, "UNAUTHORIZED");
}

#[test]
fn a_receiver_that_is_gone_is_left_alone_until_somebody_says_so() {
    let receiver = Receiver::answering([vec![StubAnswer::new(410, "")], ok(5)].concat());
    let config = format!("{WITH_TOKEN}{}", receiver.entry(&["hook.changed"]));
    let server = Server::start_with(scripted(DONE, &config), &[("HOOK_SECRET", OLD)]);
    let mut owner = server.connected(json!({ "token": super::server::TOKEN, "user_id": "system" }));
    let hook = owner.done("hooks.create", shuts())["hookId"].clone();
    receiver.told(1);
    let stopped = loop {
        let list = owner.done("webhooks.list", json!({}));
        if list["endpoints"][0]["stoppedAt"].is_string() {
            break list;
        }
    };
    let endpoint = &stopped["endpoints"][0];
    assert!(!endpoint["url"].as_str().unwrap().contains("hidden"), "{endpoint}");
    // What happens meanwhile is not kept.
    owner.done("hooks.toggle", json!({ "hookId": hook, "enabled": false }));
    owner.event("hooks.changed", |it| it["action"] == "toggled");
    let listed = server.env.on_terminal("", &["webhooks", "list"]);
    assert!(listed.out.contains("it answered 410") && listed.out.contains("1 given up"), "{listed}");
    let head = format!("Authorization: Bearer {}\nX-Pintle-User: system\n", super::server::TOKEN);
    let numbers = super::http_client::get(&server, "/metrics", &head).text();
    assert!(
        numbers.contains("gateway_webhooks_failed 1") && numbers.contains("gateway_webhooks_waiting 0"),
        "{numbers}"
    );
    let again = server.env.on_terminal("", &["webhooks", "retry", endpoint["id"].as_str().unwrap()]);
    assert!(again.code == Some(0) && again.out.contains("1 webhook due now"), "{again}");
    assert_eq!(body(&receiver.told(2)[1])["seq"], 1);
    let refused = server.env.pintle(&["webhooks", "list"]);
    assert!(refused.code == Some(5) && refused.err.contains("only a person may do this"), "{refused}");
}

#[test]
fn an_approval_is_told_when_it_waits_and_when_it_is_decided() {
    let receiver = Receiver::answering(ok(5));
    let events = receiver.entry(&["approval.created", "approval.decided"]);
    let config = format!("ask = ['list_dir']\n{WITH_TOKEN}public_url = 'https://pintle.example.org'\n{events}");
    let server = Server::start_with(scripted(&[LISTS, DONE].join(","), &config), &[("HOOK_SECRET", OLD)]);
    let mut anna = server.admin("anna");
    let sent = anna.ask("chat.send", json!({ "message": "look" }));
    let id = anna.event("approvals.created", |_| true)["id"].clone();
    let waits = body(&receiver.told(1)[0]);
    assert_eq!((&waits["type"], &waits["data"]["approvalId"]), (&json!("approval.created"), &id), "{waits}");
    assert_eq!(waits["data"]["link"], format!("https://pintle.example.org/approvals/{}", id.as_str().unwrap()));
    anna.done("approvals.approve", json!({ "id": id }));
    anna.answer(&sent);
    let decided = body(&receiver.told(2)[1]);
    assert_eq!(
        (&decided["type"], &decided["data"]["decidedBy"]),
        (&json!("approval.decided"), &json!("anna")),
        "{decided}"
    );
}

#[test]
fn a_turn_that_fails_is_told_and_what_was_not_sent_survives_the_server() {
    let receiver = Receiver::answering(Vec::new());
    let config = format!("{WITH_TOKEN}{}", receiver.entry(&["turn.failed"]));
    let replies = r#"{"error": {"kind": "final", "message": "no such model"}}"#;
    let mut server = Server::start_with(scripted(replies, &config), &[("HOOK_SECRET", OLD)]);
    let mut anna = server.admin("anna");
    let (_, message) = anna.refused("chat.send", json!({ "message": "go" }));
    let mut owner = server.connected(json!({ "token": super::server::TOKEN, "user_id": "system" }));
    let kept = loop {
        let list = owner.done("webhooks.list", json!({}));
        if list["deliveries"][0].is_object() {
            break list["deliveries"][0].clone();
        }
    };
    assert_eq!(kept["event"], "turn.failed", "{message}");
    server.signal(nix::sys::signal::Signal::SIGTERM);
    assert_eq!(server.ended().0, Some(0));
    let listed = server.env.on_terminal("", &["webhooks", "list", "--json"]);
    assert!(listed.out.contains("turn.failed"), "{listed}");
}

#[test]
fn a_breaker_that_opens_is_told() {
    let receiver = Receiver::answering(ok(5));
    let config = format!("max_iterations = 9\n{WITH_TOKEN}{}", receiver.entry(&["breaker.tripped"]));
    let replies = format!("{}, {DONE}", [LISTS].repeat(5).join(","));
    let server = Server::start_with(scripted(&replies, &config), &[("HOOK_SECRET", OLD)]);
    let mut anna = server.admin("anna");
    let hook = anna.done("hooks.create", shuts())["hookId"].clone();
    anna.done("chat.send", json!({ "message": "look" }));
    let told = body(&receiver.told(1)[0]);
    assert_eq!((&told["type"], &told["data"]["hookId"]), (&json!("breaker.tripped"), &hook), "{told}");
    assert_eq!(told["data"]["reason"], "5 blocks/timeouts in 60 s", "{told}");
}

#[test]
fn a_webhook_without_its_secret_does_not_start() {
    let entry =
        "[[gateway.webhooks]]\nurl = 'https://example.org/x'\nevents = ['turn.failed']\nsecret_env = 'NOT_SET'\n";
    let env = scripted(DONE, entry);
    let seen = env.pintle(&["serve", "--check"]);
    assert!(seen.code == Some(2) && seen.err.contains("`NOT_SET`, which `secret_env` names, is not set"), "{seen}");
    let mut command = env.command(crate::env::PINTLE);
    command.args(["serve", "--check"]).env("NOT_SET", "plain");
    let seen = env.run(&mut command, "");
    assert!(seen.code == Some(2) && seen.err.contains("is not a Standard Webhooks secret"), "{seen}");
}
