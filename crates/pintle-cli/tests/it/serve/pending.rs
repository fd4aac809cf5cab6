//! Calls that wait for a person, over HTTP: who waits how long, and who may answer.

use std::io::{BufRead as _, BufReader};
use std::time::{Duration, Instant};

use pintle_domain::approval::Approval;
use pintle_domain::id::{DEFAULT_TENANT, SessionId, TurnId};
use pintle_domain::store::{ApprovalQuery, TenantScope};
use pintle_store::keyring::{KEY_FILE, KeySource, Keyring};
use pintle_testkit::conformance::sessions::{append_of, appended, begun, key};
use serde_json::{Value, json};

use super::http_client::{Answer, CHAT, content, post, says, sent};
use super::server::{Client, Server, TOKEN, WITH_TOKEN};
use crate::env::TestEnv;
use crate::run::scripted;

/// How long a server may take to look at what waits.
const LOOKS_SOON: Duration = Duration::from_secs(30);

/// An agent whose every look at a folder waits for a person.
fn asking(wait_s: u32, more: &str) -> TestEnv {
    let rest = format!("ask = ['list_dir']\n{more}{WITH_TOKEN}approval_wait_s = {wait_s}\n");
    let looks = r#"{"tool_calls": [{"name": "list_dir", "arguments": {"path": "."}}], "repeat": true}"#;
    let done = r#"{"when": {"tool_result": ""}, "text": ["All ", "done."], "repeat": true}"#;
    scripted(&[done, looks].join(","), &rest)
}

fn headers(user: &str, session: &str) -> String {
    let session = if session.is_empty() { String::new() } else { format!("X-Pintle-Session: {session}\n") };
    format!("Authorization: Bearer {TOKEN}\nX-Pintle-User: {user}\n{session}")
}

fn asks(server: &Server, session: &str) -> Answer {
    post(server, CHAT, &headers("anna", session), &says("look"))
}

/// The approval that waits.
fn waiting(client: &mut Client) -> String {
    client.event("approvals.created", |_| true)["id"].as_str().unwrap().to_owned()
}

#[test]
fn what_is_refused_as_busy_is_no_message_that_counts() {
    let server = Server::start(asking(0, ""));
    let (mut boss, mut anna) = (server.admin("boss"), server.admin("anna"));
    assert_eq!(asks(&server, "trip").refused().1, "approval_pending");
    let id = waiting(&mut boss);
    let send = json!({ "sessionKey": "agent:main:http:direct:trip", "message": "hurry" });
    for _ in 0..6 {
        assert_eq!(post(&server, CHAT, &headers("anna", "trip"), &says("hurry")).refused().1, "approval_pending");
        let (code, message) = anna.refused("chat.send", send.clone());
        assert_eq!(code, "FAILED_PRECONDITION", "{message}");
        assert!(message.contains(&format!("waits for a person: decide approval {id}")), "{message}");
    }
    assert_eq!(asks(&server, "another trip").refused().1, "approval_pending");
}

#[test]
fn a_request_is_left_and_the_same_prompt_joins_or_gets_the_answer() {
    let server = Server::start(asking(0, ""));
    let mut boss = server.admin("boss");
    let left = asks(&server, "trip");
    let (status, code, message) = left.refused();
    let id = waiting(&mut boss);
    assert_eq!((status, code.as_str(), left.header("x-should-retry")), (409, "approval_pending", Some("false")));
    assert!(message.contains(&id) && left.header("x-pintle-turn").is_some(), "{message}: {}", left.head);
    // Another prompt does not undo the question; the same one waits again.
    let other = post(&server, CHAT, &headers("anna", "trip"), &says("hurry")).refused();
    assert_eq!((other.0, other.1.as_str()), (409, "approval_pending"));
    assert!(other.2.contains(&format!("waits for a person: approval {id}")), "{}", other.2);
    assert_eq!(asks(&server, "trip").refused().1, "approval_pending");
    boss.done("approvals.approve", json!({ "id": id }));
    boss.event("agent", |it| it["type"] == "run.completed");
    assert_eq!(content(&asks(&server, "trip")), "All done.");
    // It was told; the same prompt is another turn by now.
    assert_eq!(asks(&server, "trip").refused().1, "approval_pending");
}

#[test]
fn whoever_hangs_up_while_a_call_waits_finds_the_turn_by_the_same_prompt() {
    let server = Server::start(asking(60, ""));
    let mut boss = server.admin("boss");
    let head = format!("{}Content-Type: application/json\n", headers("anna", "trip"));
    let stream = sent(&server, &format!("POST {CHAT}"), &head, says("look").to_string().as_bytes());
    let id = waiting(&mut boss);
    // Nobody told it anything yet.
    drop(stream);
    boss.done("approvals.approve", json!({ "id": id }));
    boss.event("agent", |it| it["type"] == "run.completed");
    assert_eq!(content(&asks(&server, "trip")), "All done.");
}

/// Plays that the time in which `id` could be answered is over.
fn runs_out(env: &TestEnv, id: &str) {
    let found = env.store().approval(&TenantScope::All, id).unwrap().unwrap();
    let over = Approval { expires_at: found.asked_at, flaw: None, ..found };
    let file = Some(env.path("data/pintle").join(KEY_FILE));
    let keyring = Keyring::open(&KeySource { file, ..KeySource::default() }).unwrap();
    let (seal, body) = (keyring.approval_key().unwrap().seal(&over), serde_json::to_string(&over).unwrap());
    let script = "import sqlite3, sys\nstore = sqlite3.connect(sys.argv[1], timeout=30)\n\
                  store.execute('UPDATE approvals SET body = ?, seal = ? WHERE id = ?', sys.argv[2:])\nstore.commit()";
    let mut python = env.command("python3");
    python.args(["-c", script]).arg(env.path("data/pintle/pintle.db")).args([body.as_str(), seal.as_str(), id]);
    let output = TestEnv::output(&mut python, "");
    assert!(output.status.success(), "{output:?}");
}

#[test]
fn whoever_may_answer_hears_that_nobody_did_in_time() {
    let server = Server::start(asking(0, ""));
    let mut boss = server.admin("boss");
    assert_eq!(asks(&server, "trip").refused().1, "approval_pending");
    let id = waiting(&mut boss);
    runs_out(&server.env, &id);
    let told = boss.event("approvals.expired", |it| it["id"] == id);
    assert_eq!((&told["state"], &told["tool"]), (&json!("expired"), &json!("list_dir")), "{told}");
    // Its turn goes on by itself, so it may be over by now.
    let (code, message) = boss.refused("approvals.approve", json!({ "id": id }));
    assert!(code == "FAILED_PRECONDITION" && message.contains("cannot be answered"), "{code}: {message}");
}

#[test]
fn an_answer_in_time_is_waited_for_and_a_stream_says_what_for() {
    let server = Server::start(asking(60, ""));
    let mut boss = server.admin("boss");
    let mut body = says("look");
    body["stream"] = json!(true);
    let head = format!("{}Content-Type: application/json\n", headers("anna", "trip"));
    let stream = sent(&server, &format!("POST {CHAT}"), &head, body.to_string().as_bytes());
    let mut lines = BufReader::new(stream).lines().map(Result::unwrap);
    let id = waiting(&mut boss);
    let comment = lines.by_ref().find(|line| line.starts_with(": ")).unwrap();
    assert_eq!(comment, format!(": waiting for approval {id}"));
    boss.done("approvals.approve", json!({ "id": id }));
    let rest: Vec<String> = lines.collect();
    assert!(
        rest.iter().any(|line| line.contains("All ")) && rest.iter().any(|line| line.contains("[DONE]")),
        "{rest:#?}"
    );
}

#[test]
fn a_stream_that_waits_too_long_ends_in_an_error_event() {
    let server = Server::start(asking(0, ""));
    let mut body = says("look");
    body["stream"] = json!(true);
    let told = post(&server, CHAT, &headers("anna", "trip"), &body);
    let last: Value = told.events().pop().unwrap();
    assert_eq!((told.status, &last["error"]["code"]), (200, &json!("approval_pending")), "{}", told.text());
    assert!(!told.text().contains("[DONE]"));
    let told = post(&server, "/v1/messages", &headers("anna", "other"), &body);
    assert!(told.text().contains("event: error\n"), "{}", told.text());
    let last = told.events().pop().unwrap();
    assert_eq!((&last["type"], &last["error"]["code"]), (&json!("error"), &json!("approval_pending")));
}

#[test]
fn without_a_session_nobodys_answer_is_a_no_and_the_turn_goes_on() {
    let server = Server::start(asking(0, ""));
    let mut boss = server.admin("boss");
    assert_eq!(content(&asks(&server, "")), "All done.");
    let all = boss.done("approvals.list", json!({ "all": true }));
    let approval = &all["approvals"][0];
    assert_eq!((&approval["state"], &approval["answered_by"]), (&json!("refused"), &json!("pintle")), "{all}");
    assert_eq!(approval["note"], "nobody answered within 0 s");
}

#[test]
fn a_turn_that_was_parked_before_the_start_goes_on_by_itself() {
    let server = Server::start(asking(0, ""));
    assert_eq!(asks(&server, "trip").refused().1, "approval_pending");
    assert_eq!(asks(&server, "second").refused().1, "approval_pending");
    let server = server.again();
    let mut boss = server.admin("boss");
    let listed = boss.done("approvals.list", json!({}));
    let of = |session: &str| {
        let all = listed["approvals"].as_array().unwrap();
        let found = all.iter().find(|it| it["sessionKey"].as_str().unwrap().ends_with(session)).unwrap();
        found["id"].as_str().unwrap().to_owned()
    };
    // One joins before it is decided; the other is decided first. Both go on with the calls that they had.
    let joined = asks(&server, "trip").refused();
    assert_eq!((joined.0, joined.1.as_str()), (409, "approval_pending"), "{}", joined.2);
    for session in [":trip", ":second"] {
        boss.done("approvals.approve", json!({ "id": of(session) }));
    }
    let began = Instant::now();
    for _ in 0..2 {
        boss.event("agent", |it| it["type"] == "run.completed" || it["type"] == "run.failed");
    }
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    for session in ["trip", "second"] {
        assert_eq!(content(&asks(&server, session)), "All done.");
    }
}

#[test]
fn a_turn_that_was_parked_before_the_start_can_be_stopped() {
    let server = Server::start(asking(0, ""));
    assert_eq!(asks(&server, "trip").refused().1, "approval_pending");
    let server = server.again();
    let mut boss = server.admin("boss");
    let waits = boss.done("approvals.list", json!({}))["approvals"][0].clone();
    let (session, turn) = (json!({ "sessionKey": waits["sessionKey"] }), &waits["turn_id"]);
    let stopped = boss.done("chat.abort", session.clone());
    assert_eq!(stopped, json!({ "ok": true, "aborted": true, "runIds": [turn] }));
    boss.event("agent", |it| it["type"] == "run.cancelled" && it["runId"] == *turn);
    assert_eq!(boss.done("approvals.list", json!({}))["approvals"], json!([]));
    assert_eq!(boss.done("chat.abort", session)["aborted"], false, "nothing is open any more");
}

#[test]
fn somebody_sees_their_own_questions_however_many_others_have() {
    let server = Server::start(asking(0, ""));
    server.admin("system").done("members.add", json!({ "userId": "anna", "role": "operator" }));
    assert_eq!(asks(&server, "trip").refused().1, "approval_pending");
    let mut anna = server.admin("anna");
    let own = anna.done("approvals.list", json!({}))["approvals"].clone();
    assert_eq!(own.as_array().map(Vec::len), Some(1), "{own}");
    let store =
        pintle_store::open("sqlite://pintle.db", &server.env.path("data/pintle"), pintle_store::Durability::Commit)
            .unwrap();
    let asked = store.approvals(&ApprovalQuery::newest(TenantScope::All, 1)).unwrap().remove(0);
    for number in 0..500 {
        let of_ben = Approval {
            id: uuid::Uuid::now_v7().to_string(),
            session_id: SessionId::from("agent:main:ws:ben:trip"),
            turn_id: TurnId::from(format!("turn {number}").as_str()),
            ..asked.clone()
        };
        store.ask(of_ben, jiff::Timestamp::now()).unwrap();
    }
    for params in [json!({}), json!({ "all": true })] {
        assert_eq!(anna.done("approvals.list", params)["approvals"], own);
    }
}

#[test]
fn what_somebody_left_parked_counts_for_them_and_keeps_nobody_else_out() {
    let server = Server::start(asking(0, ""));
    assert_eq!(asks(&server, "trip").refused().1, "approval_pending");
    let store =
        pintle_store::open("sqlite://pintle.db", &server.env.path("data/pintle"), pintle_store::Durability::Commit)
            .unwrap();
    let asked = store.approvals(&ApprovalQuery::newest(TenantScope::All, 1)).unwrap().remove(0);
    // With that one as many as one user may have; no node works the others, as after a restart.
    for number in 0..24 {
        let (key, turn_id) = (key(DEFAULT_TENANT, &format!("agent:main:http:anna:{number}")), TurnId::fresh());
        let (id, session_id) = (uuid::Uuid::now_v7().to_string(), key.session.clone());
        let parked = Approval { id, session_id, turn_id: turn_id.clone(), ..asked.clone() };
        store.ask(parked, jiff::Timestamp::now()).unwrap();
        appended(&*store, append_of(&key, vec![begun(&turn_id, "look")]));
    }
    drop(store);
    let full = asks(&server, "other");
    let (status, _, why) = full.refused();
    assert!(status == 429 && why.contains("25 of one user that wait"), "{status}: {why}");
    assert!(full.header("retry-after").is_some());
    let of_ben = post(&server, CHAT, &headers("ben", "trip"), &says("look"));
    assert_eq!(of_ben.refused().1, "approval_pending");
    // Whoever comes back for one of theirs begins none.
    assert_eq!(asks(&server.again(), "trip").refused().1, "approval_pending");
}

/// How often `client` was told an event `name` that `wanted` picks, as far as it has heard.
fn times(client: &Client, name: &str, wanted: impl Fn(&Value) -> bool) -> usize {
    client.heard.iter().filter(|frame| frame["event"] == name && wanted(&frame["payload"])).count()
}

#[test]
fn what_becomes_of_an_approval_is_told_though_nobody_works_its_turn() {
    let server = Server::start(asking(0, ""));
    for session in ["wire", "terminal"] {
        assert_eq!(asks(&server, session).refused().1, "approval_pending");
    }
    // Nobody waits in the new process for what was parked in the one before.
    let server = server.again();
    let (mut boss, mut anna) = (server.admin("boss"), server.admin("anna"));
    let listed = boss.done("approvals.list", json!({}));
    let of = |session: &str| {
        let all = listed["approvals"].as_array().unwrap();
        let ends = format!(":{session}");
        let found = all.iter().find(|it| it["sessionKey"].as_str().unwrap().ends_with(&ends)).unwrap();
        (found["id"].clone(), found["turn_id"].clone())
    };
    let terminal = of("terminal").0;
    let is_over = |client: &mut Client, turn: &Value| {
        let ended = |it: &Value| it["runId"] == *turn && it["type"] == "run.completed";
        client.event("agent", ended);
    };
    let (told, state) = ("approvals.decided", ["approved", "used"]);
    for (session, by) in [("wire", "boss"), ("terminal", "")] {
        let (id, turn) = of(session);
        if session == "wire" {
            boss.done("approvals.approve", json!({ "id": id }));
        } else {
            super::people::operator(&server.env, &["approvals", "approve", terminal.as_str().unwrap()]);
        }
        for client in [&mut boss, &mut anna] {
            let decided = client.event(told, |it| it["id"] == id);
            assert!(state.contains(&decided["state"].as_str().unwrap()), "{session}: {decided}");
            assert!(by.is_empty() || decided["answered_by"] == by, "{session}: {decided}");
            let is_it = |it: &Value| it["type"] == "approval.decided" && it["payload"]["approvalId"] == id;
            let event = client.event("agent", is_it);
            assert_eq!(event["runId"], turn, "{event}");
            assert!(state.contains(&event["payload"]["state"].as_str().unwrap()), "{event}");
            is_over(client, &turn);
            // Once, whoever noticed it.
            assert_eq!(times(client, told, |it| it["id"] == id) + times(client, "agent", is_it), 0, "{session}");
        }
    }
}

#[test]
fn a_question_that_a_terminal_asks_is_told_while_it_waits() {
    let server = Server::start(asking(0, ""));
    let mut boss = server.admin("boss");
    // Whatever it was told of before it listened, it saw in a listing.
    assert_eq!(boss.done("approvals.list", json!({}))["approvals"], json!([]));
    // What was asked before the server looked for the first time is no news either.
    let began = Instant::now();
    let asked = std::iter::from_fn(|| (began.elapsed() < LOOKS_SOON).then_some(())).find_map(|()| {
        let parked = server.env.pintle(&["run", "look"]);
        assert!(parked.err.contains("approv"), "{parked}");
        boss.done("approvals.list", json!({}));
        let told = boss.heard.iter().find(|frame| frame["event"] == "approvals.created");
        told.map(|frame| frame["payload"].clone())
    });
    assert_eq!(asked.expect("it is told")["state"], "waiting");
}

#[test]
fn only_approvers_answer_and_not_whoever_asked() {
    let more = "approvers = ['carl', 'owner']\nother_than_asker = true\n";
    let server = Server::start(asking(60, more));
    let (mut anna, mut boss, mut carl) = (server.admin("anna"), server.admin("boss"), server.admin("carl"));
    let sent = anna.ask("chat.send", json!({ "sessionKey": "agent:main:ws:direct:trip", "message": "look" }));
    let id = waiting(&mut carl);
    let answer = json!({ "id": id });
    let no = anna.refused("approvals.approve", answer.clone());
    assert!(no.0 == "UNAUTHORIZED" && no.1.contains("an approver other than the user who asked"), "{no:?}");
    let no = boss.refused("approvals.approve", answer.clone());
    assert!(no.0 == "UNAUTHORIZED" && no.1.contains("carl, owner"), "{no:?}");
    assert_eq!(carl.done("approvals.approve", answer.clone())["approval"]["answered_by"], "carl");
    assert_eq!(anna.answer(&sent)["payload"]["content"], "All done.");
    let late = server.admin("system").refused("approvals.refuse", answer);
    assert_eq!(late, ("FAILED_PRECONDITION".into(), "already approved by carl".into()));
}
