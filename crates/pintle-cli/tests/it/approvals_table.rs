//! What is shown, what is digested, what runs: every edit between a question and its use, wherever a person is waited
//! for. Nothing runs that was not shown.

use std::path::PathBuf;

use pintle_domain::approval::Approval;
use pintle_domain::json::Value;

use super::chat::tty::Tty;
use super::env::{PINTLE, TestEnv};
use super::mcp_serve::Hand;
use super::run::{MODEL, scripted};
use super::secrets::on_terminal;

/// What runs where nobody edits anything.
const COMMAND: &str = "echo once >>ran; echo written";

const REPLIES: &str = r#"
    {"when": {"contains": "write"}, "tool_calls": [{"name": "exec", "arguments": {"command": "echo once >>ran; echo written"}}]},
    {"when": {"contains": "serve"}, "tool_calls": [{"name": "mcp_own_work", "arguments": {"n": 1}}]},
    {"when": {"tool_result": "written"}, "text": "It is written."},
    {"when": {"tool_result": "it is forbidden now"}, "text": "It was blocked."},
    {"when": {"tool_result": "was approved, but not here"}, "text": "It was blocked."},
    {"when": {"tool_result": "refused by a person"}, "text": "Then not."}"#;

/// A server of one tool, which leaves the word that its command says.
const OWN: &str = r#"import json, sys
for line in sys.stdin:
    message = json.loads(line)
    method, answer = message.get("method"), None
    if method == "initialize":
        answer = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                  "serverInfo": {"name": "own", "version": "1"}}
    elif method == "tools/list":
        answer = {"tools": [{"name": "work", "inputSchema": {"type": "object"}}]}
    elif method == "tools/call":
        print(sys.argv[1], file=open("served", "a"))
        answer = {"content": [{"type": "text", "text": "written"}]}
    if answer is not None:
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": answer}), flush=True)
"#;

/// A rule that asks, and one that blocks.
const RULE: &str = r#"[[hook]]
name = "@NAME@"
event = "pre_tool_use"
handler_type = "script"
scope = "tenant"
matcher = "^(exec|mcp_own_work)$"
[hook.config]
source = '''function handle(event) { return { decision: "@WORD@", reason: "it is forbidden now" }; }'''
"#;

/// When somebody edits.
#[derive(Clone, Copy, Debug, PartialEq)]
enum When {
    /// While the question waits.
    Waiting,
    /// After the answer. Only a parked turn leaves time for that.
    Answered,
}

/// What becomes of the call when a person says yes to what they were shown.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Outcome {
    /// It runs, once, as it was shown.
    Runs,
    /// Nothing runs, and a person is asked again, about what would run now.
    AskedAgain,
    /// Nothing runs, and the model reads why.
    Blocked,
    /// There is no such case.
    None,
}

use Outcome::{AskedAgain, Blocked, None as Nothing, Runs};

struct Row {
    edited: &'static str,
    when: When,
    edit: fn(&TestEnv, &str),
    /// In `chat`, in `mcp`, and in `run`, `approvals approve`, `sessions resume`.
    cells: [Outcome; 3],
}

const fn row(edited: &'static str, when: When, edit: fn(&TestEnv, &str), cells: [Outcome; 3]) -> Row {
    Row { edited, when, edit, cells }
}

const AGAIN: [Outcome; 3] = [AskedAgain; 3];
const AGAIN_LATER: [Outcome; 3] = [Nothing, Nothing, AskedAgain];

const TABLE: [Row; 20] = [
    row("nothing", When::Waiting, |_, _| {}, [Runs; 3]),
    row("arguments in the store", When::Waiting, harmless, AGAIN),
    row("arguments and digest in the store", When::Waiting, harmless_with_digest, AGAIN),
    row("reason in the store", When::Waiting, |env, id| body(env, id, "waits for a person", "is fine"), AGAIN),
    row("until in the store", When::Waiting, later, AGAIN),
    row("place in the store", When::Waiting, |env, id| body(env, id, "/here", "/harmless"), AGAIN),
    row("state in the store", When::Waiting, |env, _| sql(env, "UPDATE approvals SET state = 'approved'"), AGAIN),
    row("arguments in the store", When::Answered, harmless, AGAIN_LATER),
    row("until in the store", When::Answered, later, AGAIN_LATER),
    row("who in the store", When::Answered, |env, _| sql(env, "UPDATE approvals SET answered_by = 'eve'"), AGAIN_LATER),
    row("seal in the store", When::Answered, |env, _| sql(env, "UPDATE approvals SET seal = NULL"), AGAIN_LATER),
    // Whoever waits goes on with what the turn began with, and that was shown.
    row("workspace", When::Waiting, |env, _| config(env, "workspace = '../../other'\n", ""), [Runs, Runs, AskedAgain]),
    row("workspace", When::Answered, |env, _| config(env, "workspace = '../../other'\n", ""), AGAIN_LATER),
    row("shell", When::Answered, |env, _| config(env, "", "[tools.exec]\nshell = '/bin/bash'\n"), AGAIN_LATER),
    row("another key of the configuration", When::Waiting, |env, _| config(env, "max_iterations = 7\n", ""), [Runs; 3]),
    row("a gate of the configuration goes", When::Waiting, ungated, [Runs; 3]),
    row("a gate and the workspace of the configuration", When::Waiting, moved_and_ungated, [Runs, Runs, Blocked]),
    row("a rule that blocks comes", When::Waiting, forbid, [Blocked; 3]),
    row("a rule that blocks comes", When::Answered, forbid, [Nothing, Nothing, Blocked]),
    row("a rule that asks goes", When::Waiting, |env, _| drop(operate(env, &["hooks", "disable", "asks"])), [Runs; 3]),
];

/// The same for a tool of an MCP server, which `pintle mcp` does not offer.
const SERVED: [Row; 4] = [
    row("nothing", When::Waiting, |_, _| {}, [Runs, Nothing, Runs]),
    row("command of its server", When::Waiting, |env, _| serve(env, "two"), [Runs, Nothing, AskedAgain]),
    row("command of its server", When::Answered, |env, _| serve(env, "two"), AGAIN_LATER),
    row("place in the store", When::Answered, |env, id| body(env, id, "own.py one", "own.py harmless"), AGAIN_LATER),
];

fn write_config(env: &TestEnv, (gate, agent, more): (&str, &str, &str), word: &str) {
    let agent = format!("tools = ['exec', 'mcp_own_work']\n{gate}{agent}");
    let server = format!("[mcp.servers.own]\ncommand = ['python3', 'own.py', '{word}']\n");
    env.user_config(&format!("{MODEL}{agent}{more}{server}"));
}

const GATE: &str = "ask = ['exec', 'mcp_*']\n";

fn config(env: &TestEnv, agent: &str, more: &str) {
    write_config(env, (GATE, agent, more), "one");
}

fn serve(env: &TestEnv, word: &str) {
    write_config(env, (GATE, "", ""), word);
}

fn ungated(env: &TestEnv, _: &str) {
    write_config(env, ("", "", ""), "one");
}

fn moved_and_ungated(env: &TestEnv, _: &str) {
    write_config(env, ("", "workspace = '../../other'\n", ""), "one");
}

/// Surroundings in which a call of `row` is asked about.
fn world(row: &Row) -> TestEnv {
    let env = scripted(REPLIES, "");
    env.write("config/pintle/own.py", OWN);
    std::fs::create_dir(env.path("other")).unwrap();
    if row.edited == "a rule that asks goes" {
        ungated(&env, "");
        rule(&env, "asks", "ask");
    } else {
        serve(&env, "one");
    }
    env
}

fn operate(env: &TestEnv, args: &[&str]) -> String {
    let seen = env.on_terminal("y\n", args);
    assert_eq!(seen.code, Some(0), "{seen}");
    seen.out
}

fn rule(env: &TestEnv, name: &str, word: &str) {
    let file = env.write("rule.toml", &RULE.replace("@NAME@", name).replace("@WORD@", word));
    operate(env, &["hooks", "add", file.to_str().unwrap()]);
}

fn forbid(env: &TestEnv, _: &str) {
    rule(env, "forbids", "block");
}

/// Runs a statement behind the program's back, with what stands for `?`.
fn sql_with(env: &TestEnv, statement: &str, args: &[&str]) -> String {
    let script = "import sqlite3, sys\ndb = sqlite3.connect(sys.argv[1], timeout=30)\n\
                  rows = db.execute(sys.argv[2], sys.argv[3:]).fetchall()\ndb.commit()\nprint(rows[0][0] if rows else '')";
    let mut python = env.command("python3");
    python.args(["-c", script]).arg(env.path("data/pintle/pintle.db")).arg(statement).args(args);
    let output = python.output().unwrap();
    assert!(output.status.success(), "{statement}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

fn sql(env: &TestEnv, statement: &str) {
    sql_with(env, statement, &[]);
}

/// Puts `to` in the place of `from` in what stands in the store of the question.
fn body(env: &TestEnv, id: &str, from: &str, to: &str) {
    let edited = sql_with(env, "SELECT instr(body, ?) FROM approvals WHERE id = ?", &[from, id]);
    assert_ne!(edited, "0", "`{from}` is there");
    sql_with(env, "UPDATE approvals SET body = replace(body, ?, ?) WHERE id = ?", &[from, to, id]);
}

fn harmless(env: &TestEnv, id: &str) {
    body(env, id, COMMAND, "echo harmless");
}

fn harmless_with_digest(env: &TestEnv, id: &str) {
    harmless(env, id);
    let kept = sql_with(env, "SELECT body FROM approvals WHERE id = ?", &[id]);
    let mut approval: Approval = serde_json::from_str(&kept).unwrap();
    approval.digest = approval.shown_digest().to_string();
    let edited = serde_json::to_string(&approval).unwrap();
    sql_with(env, "UPDATE approvals SET body = ? WHERE id = ?", &[&edited, id]);
}

fn later(env: &TestEnv, id: &str) {
    body(env, id, "\"expires_at\":\"20", "\"expires_at\":\"21");
}

/// The question that waits and is not `but`; waits for it itself.
fn waiting(env: &TestEnv, but: &str) -> Approval {
    loop {
        let listed: Vec<Approval> = serde_json::from_str(&env.raw(&["approvals", "list", "--json"])).unwrap();
        if let Some(one) = listed.into_iter().find(|one| one.state.word() == "waiting" && one.id != but) {
            return one;
        }
    }
}

fn approve(env: &TestEnv, id: &str) -> Option<i32> {
    env.on_terminal("", &["approvals", "approve", id]).code
}

/// What ran, in whichever folder, and whichever server served.
fn ran(env: &TestEnv) -> String {
    let marks = ["here/ran", "other/ran", "config/pintle/served"].map(|name| env.path(name));
    let read = |file: PathBuf| std::fs::read_to_string(&file).ok().map(|text| format!("{}: {text}", file.display()));
    env.redact(&marks.into_iter().filter_map(read).collect::<String>())
}

/// What runs where nobody edits anything.
fn as_shown(message: &str) -> &'static str {
    if message == "serve" { "[root]/config/pintle/served: one\n" } else { "[root]/here/ran: once\n" }
}

/// The question that is asked in the place of an edited one is about what would run now, and says why it is asked.
fn check_again(env: &TestEnv, message: &str, first: &str, what: &str) {
    let again = waiting(env, first);
    let arguments = Value::Object(again.arguments.clone()).to_string();
    let expected = if message == "serve" { r#"{"n":1}"#.to_owned() } else { format!(r#"{{"command":"{COMMAND}"}}"#) };
    assert_eq!(arguments, expected, "{what}");
    let why = again.again_because.clone().unwrap_or_default();
    assert!(why.starts_with(&format!("approval `{first}` is void: ")), "{what}: {why}");
    assert_eq!(ran(env), "", "{what}");
    // It is evidence: of the turn, and in the chain.
    let seen = env.pintle(&["why", "--denied", "--json"]).out;
    assert!(seen.contains("a person has to approve it again"), "{what}: {seen}");
}

fn check_outcome(env: &TestEnv, message: &str, outcome: Outcome, what: &str) {
    let expected = if outcome == Runs { as_shown(message) } else { "" };
    assert_eq!(ran(env), expected, "{what}");
}

fn in_chat(row: &Row, message: &str, outcome: Outcome, what: &str) {
    let env = world(row);
    let mut chat = Tty::chat(&env, &["--session", "s"]);
    chat.until("/help shows the rest.");
    chat.say(message, "l: later");
    let id = waiting(&env, "").id;
    (row.edit)(&env, &id);
    match outcome {
        Runs => drop(chat.say("y", "It is written.")),
        Blocked => drop(chat.say("y", "It was blocked.")),
        AskedAgain => {
            chat.until("l: later");
            check_again(&env, message, &id, what);
            chat.say("n", "Then not.");
        }
        Nothing => unreachable!("no such case"),
    }
    chat.until("turn completed");
    assert_eq!(chat.leave().code, Some(0), "{what}");
    check_outcome(&env, message, outcome, what);
}

fn in_mcp(row: &Row, message: &str, outcome: Outcome, what: &str) {
    let env = world(row);
    let mut hand = Hand::greeted(&env);
    hand.call_with(1, "exec", &format!(r#"{{"command":"{COMMAND}"}}"#));
    let id = waiting(&env, "").id;
    (row.edit)(&env, &id);
    match outcome {
        Runs | Blocked => {
            assert_eq!(approve(&env, &id), Some(0), "{what}");
            let word = if outcome == Runs { "written" } else { "it is forbidden now" };
            let heard = hand.hear()["result"]["content"][0]["text"].to_string();
            assert!(heard.contains(word), "{what}: {heard}");
        }
        AskedAgain => {
            assert_eq!(approve(&env, &id), Some(1), "{what}");
            check_again(&env, message, &id, what);
            // Whoever refuses what would run now ends the call.
            let second = waiting(&env, &id).id;
            operate(&env, &["approvals", "refuse", &second]);
            assert_eq!(hand.hear()["result"]["isError"], true, "{what}");
        }
        Nothing => unreachable!("no such case"),
    }
    assert_eq!(hand.leave(), Some(0), "{what}");
    check_outcome(&env, message, outcome, what);
}

fn parked(row: &Row, message: &str, outcome: Outcome, what: &str) {
    let env = world(row);
    let seen = env.pintle(&["run", "--quiet", "--session", "s", message]);
    assert_eq!(seen.code, Some(75), "{what}: {seen}");
    let id = waiting(&env, "").id;
    if row.when == When::Answered {
        assert_eq!(approve(&env, &id), Some(0), "{what}");
    }
    (row.edit)(&env, &id);
    if row.when == When::Waiting {
        let in_store = row.edited.contains("in the store");
        assert_eq!(approve(&env, &id), Some(i32::from(in_store)), "{what}");
    }
    let seen = env.pintle(&["sessions", "resume", "--quiet", "s"]);
    let expected = match outcome {
        Runs => (Some(0), "It is written.\n"),
        Blocked => (Some(0), "It was blocked.\n"),
        AskedAgain => (Some(75), ""),
        Nothing => unreachable!("no such case"),
    };
    assert_eq!((seen.code, seen.out.as_str()), expected, "{what}: {seen}");
    if outcome == AskedAgain {
        assert!(seen.err.contains("is void: "), "{what}: {seen}");
        check_again(&env, message, &id, what);
        // Whoever approves what would run now lets exactly that run.
        let second = waiting(&env, &id).id;
        assert_eq!(approve(&env, &second), Some(0), "{what}");
        assert_eq!(env.pintle(&["sessions", "resume", "--quiet", "s"]).out, "It is written.\n", "{what}");
        assert_eq!(ran(&env).lines().count(), 1, "{what}");
        return;
    }
    check_outcome(&env, message, outcome, what);
}

/// Checks the cells of one column, for what is edited at that time.
fn check(column: usize, (table, message): (&[Row], &str), when: When) {
    let run = [in_chat, in_mcp, parked][column];
    for row in table.iter().filter(|row| row.when == when && row.cells[column] != Nothing) {
        let what = format!("{} {:?}, column {column}", row.edited, row.when);
        eprintln!("{what}");
        run(row, message, row.cells[column], &what);
    }
}

const RUN: (&[Row], &str) = (&TABLE, "write");

#[test]
fn law_11_nothing_runs_that_was_not_shown_in_chat() {
    check(0, RUN, When::Waiting);
}

#[test]
fn law_11_nothing_runs_that_was_not_shown_over_mcp() {
    check(1, RUN, When::Waiting);
}

#[test]
fn law_11_nothing_runs_that_was_not_shown_in_a_parked_turn() {
    check(2, RUN, When::Waiting);
}

#[test]
fn law_11_nothing_runs_that_was_not_shown_whatever_follows_the_answer() {
    check(2, RUN, When::Answered);
}

#[test]
fn no_other_server_runs_what_was_approved() {
    for when in [When::Waiting, When::Answered] {
        check(0, (&SERVED, "serve"), when);
        check(2, (&SERVED, "serve"), when);
    }
}

/// As a program left the store that did not know that every question has a seal.
fn before_all_were_sealed(env: &TestEnv) {
    pintle_store::migrate_to("sqlite://pintle.db", &env.path("data/pintle"), 56).unwrap();
}

#[test]
fn a_question_whose_seal_and_place_were_taken_is_void_and_asked_again() {
    let env = world(&TABLE[0]);
    assert_eq!(env.pintle(&["run", "--quiet", "--session", "s", "write"]).code, Some(75));
    let id = waiting(&env, "").id;
    let kept = sql_with(&env, "SELECT body FROM approvals WHERE id = ?", &[&id]);
    let approval: Approval = serde_json::from_str(&kept).unwrap();
    let body = serde_json::to_string(&Approval { place: None, ..approval }).unwrap();
    sql_with(&env, "UPDATE approvals SET body = ?, seal = NULL", &[&body]);
    let seen = env.on_terminal("", &["approvals", "approve", &id]);
    assert!(seen.code == Some(1) && seen.out.contains("it is void: what stands in the store"), "{seen}");
    let seen = env.pintle(&["sessions", "resume", "--quiet", "s"]);
    assert!(seen.code == Some(75) && seen.err.contains("approval `[id]` is void"), "{seen}");
    let second = waiting(&env, &id).id;
    assert!(second != id && ran(&env).is_empty());
    let why = env.pintle(&["why", "--denied", "--json"]).out;
    assert!(why.contains("a person has to approve it again"), "it is recorded: {why}");
    assert_eq!(approve(&env, &second), Some(0));
    assert_eq!(env.pintle(&["sessions", "resume", "--quiet", "s"]).out, "It is written.\n");
    assert_eq!(ran(&env), as_shown("write"));
}

#[test]
fn an_answer_of_a_version_that_sealed_nothing_is_asked_for_again() {
    let env = world(&TABLE[0]);
    assert_eq!(env.pintle(&["run", "--quiet", "--session", "s", "write"]).code, Some(75));
    let id = waiting(&env, "").id;
    // As that version left it.
    let of_before = |env: &TestEnv| {
        let kept = sql_with(env, "SELECT body FROM approvals WHERE id = ?", &[&id]);
        let approval: Approval = serde_json::from_str(&kept).unwrap();
        let body = serde_json::to_string(&Approval { place: None, ..approval }).unwrap();
        sql_with(env, "UPDATE approvals SET body = ?, seal = NULL", &[&body]);
        before_all_were_sealed(env);
    };
    of_before(&env);
    let approved = env.on_terminal("", &["approvals", "approve", &id]);
    assert!(approved.code == Some(0) && approved.out.contains("an older version asked"), "{approved}");
    of_before(&env);
    let seen = env.pintle(&["sessions", "resume", "--quiet", "s"]);
    let why = "approval `[id]` is void: its answer carries no seal: an older version wrote it, or no person gave it\n";
    assert!(seen.code == Some(75) && seen.err.contains(why), "{seen}");
    assert_eq!(ran(&env), "");
    let second = waiting(&env, &id).id;
    assert_eq!(approve(&env, &second), Some(0));
    assert_eq!(env.pintle(&["sessions", "resume", "--quiet", "s"]).out, "It is written.\n");
    assert_eq!(ran(&env), as_shown("write"));
}

#[test]
fn a_question_of_a_version_that_sealed_nothing_waits_on() {
    let env = world(&TABLE[0]);
    assert_eq!(env.pintle(&["run", "--quiet", "--session", "s", "write"]).code, Some(75));
    let id = waiting(&env, "").id;
    let kept = sql_with(&env, "SELECT body FROM approvals WHERE id = ?", &[&id]);
    let approval: Approval = serde_json::from_str(&kept).unwrap();
    let body = serde_json::to_string(&Approval { place: None, ..approval }).unwrap();
    sql_with(&env, "UPDATE approvals SET body = ?, seal = NULL", &[&body]);
    before_all_were_sealed(&env);
    assert_eq!(env.pintle(&["sessions", "resume", "--quiet", "s"]).code, Some(75), "it waits on");
    assert_eq!(waiting(&env, "").id, id);
    assert_eq!(approve(&env, &id), Some(0));
    assert_eq!(env.pintle(&["sessions", "resume", "--quiet", "s"]).out, "It is written.\n");
}

#[test]
fn what_was_altered_is_listed_as_void_and_why() {
    let env = world(&TABLE[0]);
    assert_eq!(env.pintle(&["run", "--quiet", "--session", "s", "write"]).code, Some(75));
    let id = waiting(&env, "").id;
    harmless(&env, &id);
    let listed = env.pintle(&["approvals", "list"]).out;
    assert!(listed.starts_with("[id]  void: what stands in the store is not what was asked\n"), "{listed}");
    let seen = env.on_terminal("", &["approvals", "approve", &id]);
    let why = "cannot be answered: it is void: what stands in the store is not what was asked";
    assert!(seen.code == Some(1) && seen.out.contains(why), "{seen}");
}

#[test]
fn questions_of_another_key_are_listed_as_they_stand_and_the_key_is_named_once() {
    let env = world(&TABLE[0]);
    let [old, new] = ["01", "02"].map(|byte| byte.repeat(32));
    let create = ["keys", "create", "k", "--owner", "ann", "--scope", "operator.read"];
    assert_eq!(on_terminal(&env, &[("PINTLE_ENCRYPTION_KEY", old.as_str())], &create).code, Some(0));
    let with = |key: &str, args: &[&str]| {
        let mut command = env.command(PINTLE);
        env.run(command.args(args).env("PINTLE_ENCRYPTION_KEY", key), "")
    };
    assert_eq!(with(&old, &["run", "--quiet", "--session", "s", "write"]).code, Some(75));
    for args in [&["approvals", "list"][..], &["approvals", "list", "--all"]] {
        let seen = with(&new, args);
        assert!(seen.out.contains("waiting") && !seen.out.contains("void"), "{seen}");
        let said = seen.err.split_whitespace().collect::<Vec<_>>().join(" ");
        let key = "the key here differs from the one that sealed these questions";
        assert!(said.matches(key).count() == 1 && said.contains("`PINTLE_ENCRYPTION_KEY`"), "{seen}");
        let seen = with(&old, args);
        assert!(seen.out.contains("waiting") && !seen.err.contains("the key here differs"), "{seen}");
    }
}
