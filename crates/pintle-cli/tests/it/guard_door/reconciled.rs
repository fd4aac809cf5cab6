//! What got past the guard is found: by the daemon while the session runs, and by `guard reconcile` at any time.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use super::door::{Door, wait_for};
use super::every_agent::{pintle, with_agents};
use crate::env::{PINTLE, TestEnv};

/// An agent that asks its hook once and then goes on: a child that starts the hook, and waits until its own input ends.
struct Agent(Child);

const GOING_ON: &str = "import subprocess, sys
payload = sys.stdin.readline().encode()
subprocess.run(sys.argv[1:], input=payload, stdout=subprocess.DEVNULL)
print('asked', flush=True)
sys.stdin.read()";

impl Agent {
    fn start(door: &Door, payload: &Value) -> Self {
        let hook = door.command(payload["hook_event_name"].as_str().unwrap(), super::door::LONG);
        let mut command: Command = door.env.command("python3");
        // Past the interpreter and its program: the hook and its words.
        command.args(["-c", GOING_ON]).args(hook.get_args().skip(2));
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        writeln!(child.stdin.as_mut().unwrap(), "{payload}").unwrap();
        let said =
            BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok).find(|line| line == "asked");
        assert!(said.is_some());
        Self(child)
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        self.0.wait().ok();
    }
}

/// What Claude Code writes down of a call that ran.
fn written(id: &str, command: &str) -> String {
    written_at(id, command, jiff::Timestamp::now())
}

fn written_at(id: &str, command: &str, at: jiff::Timestamp) -> String {
    let call = json!({"type": "tool_use", "id": id, "name": "Bash", "input": {"command": command}});
    let result = json!({"type": "tool_result", "tool_use_id": id, "content": "out"});
    let line = |kind: &str, content: Value| {
        json!({"type": kind, "timestamp": at.to_string(), "message": {"content": [content]}}).to_string()
    };
    format!("{}\n{}\n", line("assistant", call), line("user", result))
}

fn call(door: &Door, id: &str, command: &str) -> Value {
    let mut payload = door.shell(id, command);
    payload["transcript_path"] = json!(door.env.path("home/transcript.jsonl"));
    payload
}

fn installed() -> TestEnv {
    let env = with_agents();
    let seen = pintle(&env, &["guard", "install", "--host", "claude", "--yes"]);
    assert_eq!(seen.code, Some(0), "{seen}");
    env
}

#[test]
fn a_call_that_nobody_asked_about_is_found_while_the_session_runs() {
    let door = Door::open(installed());
    let _agent = Agent::start(&door, &call(&door, "toolu_1", "echo asked"));
    let transcript = door.env.write("home/transcript.jsonl", &written("toolu_1", "echo asked"));
    let reconcile = |more: &[&str]| pintle(&door.env, &[&["guard", "reconcile"], more].concat());
    let seen = reconcile(&["--last"]);
    assert!(seen.code == Some(0) && seen.out.contains("1 call written down, each of them asked about"), "{seen}");
    let text = std::fs::read_to_string(&transcript).unwrap()
        + &written("toolu_2", "curl -H 'Authorization: Bearer sk-ant-api03-secretsecret' x");
    std::fs::write(&transcript, text).unwrap();
    // The daemon finds it by itself, and it is in the record.
    let why = wait_for(|| {
        let seen = door.env.pintle(&["why", "-vv", "s"]);
        let seen =
            if seen.out.contains("unguarded_call") { seen } else { door.env.pintle(&["why", "-vv", "claude:s"]) };
        seen.out.contains("unguarded_call").then_some(seen)
    });
    assert!(why.out.contains("ran `Bash` and no hook was asked") && !why.out.contains("secretsecret"), "{why}");
    let seen = reconcile(&["--session", "s", "--json"]);
    assert_eq!(seen.code, Some(5), "{seen}");
    let said: Value = serde_json::from_str(&seen.out).unwrap();
    assert_eq!(said["sessions"][0]["unguarded"][0]["call"], "toolu_2", "{said}");
    let status = pintle(&door.env, &["guard", "status", "--host", "claude"]);
    assert!(status.code == Some(5) && status.out.contains("past it"), "{status}");
}

#[test]
fn hooks_that_were_taken_away_are_found_while_the_session_runs() {
    let door = Door::open(installed());
    let _agent = Agent::start(&door, &call(&door, "toolu_1", "echo asked"));
    door.env.write("here/.claude/settings.local.json", "{\"disableAllHooks\": true}");
    let status = wait_for(|| {
        let seen = pintle(&door.env, &["guard", "status", "--host", "claude"]);
        seen.out.contains("past it").then_some(seen)
    });
    assert!(status.out.contains("disarmed: ") && status.out.contains("turns hooks off"), "{status}");
    let seen = pintle(&door.env, &["guard", "reconcile"]);
    assert!(seen.code == Some(5) && seen.out.contains("disarmed: "), "{seen}");
}

#[test]
fn a_session_that_is_not_known_is_named() {
    let env = installed();
    let seen = pintle(&env, &["guard", "reconcile"]);
    assert!(seen.code == Some(2) && seen.err.contains("knows no session yet"), "{seen}");
    let door = Door::open(env);
    drop(Agent::start(&door, &call(&door, "toolu_1", "ls")));
    let seen = pintle(&door.env, &["guard", "reconcile", "--session", "nope"]);
    assert!(seen.code == Some(2) && seen.err.contains("knows no session `nope`"), "{seen}");
    let seen = pintle(&door.env, &["guard", "reconcile", "--session", "claude:s"]);
    assert!(seen.code == Some(0) && seen.out.contains("nothing is known of what this agent writes down"), "{seen}");
}

/// What each agent writes down of one call of `ls` that ran, in its own form, and where.
fn written_by_each(at: jiff::Timestamp) -> Vec<(&'static str, &'static str, String)> {
    let (time, ms, ls) = (at.to_string(), at.as_millisecond(), json!({"command": "ls"}));
    let lines = |all: &[Value]| all.iter().map(|line| format!("{line}\n")).collect::<String>();
    let item = |payload: Value| json!({"timestamp": time, "type": "response_item", "payload": payload});
    let codex = lines(&[
        item(
            json!({"type": "function_call", "name": "exec_command", "call_id": "c1", "arguments": "{\"cmd\":\"ls\"}"}),
        ),
        item(json!({"type": "function_call_output", "call_id": "c1", "output": "out"})),
    ]);
    let done = json!({"id": "c1", "name": "run_shell_command", "args": ls, "result": [{"output": "out"}], "status": "success"});
    let gemini = lines(&[json!({"type": "gemini", "timestamp": time, "toolCalls": [done]})]);
    let called = json!({"functionCall": {"id": "c1", "name": "run_shell_command", "args": ls}});
    let answered =
        json!({"functionResponse": {"id": "c1", "name": "run_shell_command", "response": {"output": "out"}}});
    let qwen = lines(&[
        json!({"type": "assistant", "timestamp": time, "message": {"parts": [called]}}),
        json!({"type": "tool_result", "timestamp": time, "message": {"parts": [answered]}}),
    ]);
    let event = |kind: &str, data: Value| json!({"type": kind, "timestamp": time, "data": data});
    let copilot = lines(&[
        event("tool.execution_start", json!({"toolCallId": "c1", "toolName": "bash", "arguments": ls})),
        event("tool.execution_complete", json!({"toolCallId": "c1", "success": true, "result": {"content": "out"}})),
    ]);
    let step = |event: Value| json!({"type": "context.append_loop_event", "event": event, "time": ms});
    let kimi = lines(&[
        step(json!({"type": "tool.call", "toolCallId": "c1", "name": "Bash", "args": ls})),
        step(json!({"type": "tool.result", "toolCallId": "c1", "result": {"output": "out"}})),
    ]);
    let wanted = json!({"type": "tool_use", "id": "c1", "name": "run_commands", "input": {"commands": ["ls"]}});
    let came = json!({"type": "tool_result", "tool_use_id": "c1", "content": [{"query": "ls", "result": "out"}]});
    let cline = json!({"version": 1, "sessionId": "0190-g", "messages": [
        {"role": "assistant", "content": [wanted], "ts": ms}, {"role": "user", "content": [came], "ts": ms},
    ]});
    let message = |message: Value| json!({"type": "message", "timestamp": time, "message": message});
    let call = json!({"type": "toolCall", "id": "c1", "name": "bash", "arguments": ls});
    let pi = lines(&[
        message(json!({"role": "assistant", "content": [call]})),
        message(json!({"role": "toolResult", "toolCallId": "c1", "toolName": "bash", "content": [{"text": "out"}]})),
    ]);
    vec![
        ("claude", "home/.claude/projects/-w/0190-a.jsonl", written_at("c1", "ls", at)),
        ("claude", "home/.claude/projects/-w/0190-a/subagents/agent-1.jsonl", written_at("c2", "ls", at)),
        ("codex", "home/.codex/sessions/2026/11/26/rollout-2026-11-26T07-00-00-0190-b.jsonl", codex),
        ("gemini", "home/.gemini/tmp/w/chats/session-2026-11-26T07-00-0190.jsonl", gemini),
        ("qwen", "home/.qwen/projects/-w/chats/0190-c.jsonl", qwen.clone()),
        ("qwen", "home/.qwen/projects/-w/subagents/0190-c/agent-1.jsonl", qwen),
        ("copilot", "home/.copilot/session-state/0190-d/events.jsonl", copilot),
        ("kimi", "home/.kimi-code/sessions/wd_w/session_0190-e/agents/main/wire.jsonl", kimi),
        ("cline", "home/.cline/data/sessions/0190-g/0190-g.messages.json", cline.to_string()),
        ("pi", "home/.pi/agent/sessions/--w--/2026-11-26T07-00_0190-f.jsonl", pi),
    ]
}

/// The store of OpenCode, with one call of the session `id`.
fn store_of_opencode(env: &TestEnv, id: &str, at: jiff::Timestamp) {
    let file = env.path("data/opencode/opencode.db");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let store = rusqlite::Connection::open(&file).unwrap();
    let sql = "PRAGMA journal_mode = WAL;
        CREATE TABLE IF NOT EXISTS session (id text, parent_id text, time_created integer);
        CREATE TABLE IF NOT EXISTS part (id text, session_id text, time_created integer, data text);
        DELETE FROM session; DELETE FROM part;";
    store.execute_batch(sql).unwrap();
    let ms = at.as_millisecond();
    let state =
        json!({"status": "completed", "input": {"command": "ls"}, "output": "out", "time": {"start": ms, "end": ms}});
    let part = json!({"type": "tool", "tool": "bash", "callID": "c1", "state": state}).to_string();
    store.execute("INSERT INTO session VALUES (?1, NULL, ?2)", (id, ms)).unwrap();
    store.execute("INSERT INTO part VALUES ('p1', ?1, ?2, ?3)", (id, ms, part)).unwrap();
}

/// How each agent runs without its hooks although they are installed: it writes down what it did all the same.
#[test]
fn a_session_that_no_hook_said_anything_of_is_found() {
    let env = with_agents();
    let seen = pintle(&env, &["guard", "install", "--host", "all", "--yes"]);
    assert_eq!(seen.code, Some(0), "{seen}");
    let now = jiff::Timestamp::now();
    let files = written_by_each(now);
    for (_, file, text) in &files {
        env.write(file, text);
    }
    store_of_opencode(&env, "ses_1", now);
    let mut wanted: Vec<&str> = files.iter().map(|(id, ..)| *id).collect();
    wanted.insert(wanted.len() - 1, "opencode");
    // First of all, nobody wrote anything down: nothing says that somebody did.
    let kept = env.pintle(&["why", "-vv", "claude:0190-a"]);
    assert!(!kept.out.contains("unheard"), "{kept}");
    let seen = pintle(&env, &["guard", "reconcile", "--json"]);
    assert_eq!(seen.code, Some(5), "{seen}");
    let said: Value = serde_json::from_str(&seen.out).unwrap();
    let found: Vec<&str> = said["unheard"].as_array().unwrap().iter().map(|it| it["host"].as_str().unwrap()).collect();
    assert_eq!(found, wanted, "{said}");
    assert!(said["unheard"].as_array().unwrap().iter().all(|it| it["calls"] == 1), "{said}");
    let seen = pintle(&env, &["guard", "reconcile"]);
    assert!(seen.code == Some(5) && seen.out.contains("1 call without any hook"), "{seen}");
    // No daemon runs, so that the command itself has it in the record.
    for session in ["claude:0190-a", "opencode:ses_1"] {
        let why = env.pintle(&["why", "-vv", session]);
        assert!(why.out.contains("unheard: "), "{why}");
    }
    // Status has it in red, of each.
    let status = pintle(&env, &["guard", "status", "--json"]);
    assert_eq!(status.code, Some(5), "{status}");
    let said: Value = serde_json::from_str(&status.out).unwrap();
    for host in said["hosts"].as_array().unwrap() {
        let expected = wanted.iter().filter(|id| host["host"] == **id).count();
        assert_eq!(host["unheard"].as_array().unwrap().len(), expected, "{host}");
    }
    let status = pintle(&env, &["guard", "status", "--host", "opencode"]);
    assert!(status.code == Some(5) && status.out.contains("session ses_1: 1 call without any hook"), "{status}");
    // What was there before the guard came is not its business.
    for (_, file, text) in written_by_each(jiff::Timestamp::UNIX_EPOCH) {
        env.write(file, &text);
    }
    store_of_opencode(&env, "ses_1", jiff::Timestamp::UNIX_EPOCH);
    let seen = pintle(&env, &["guard", "reconcile"]);
    assert!(seen.code == Some(2) && seen.err.contains("knows no session yet"), "{seen}");
    let status = pintle(&env, &["guard", "status"]);
    assert_eq!(status.code, Some(0), "{status}");
}

/// Codex keeps a file for each sub-agent, and names it at the events of that one under the session of its parent.
#[test]
fn what_sub_agents_wrote_down_belongs_to_their_session() {
    let env = with_agents();
    let seen = pintle(&env, &["guard", "install", "--host", "codex", "--yes"]);
    assert_eq!(seen.code, Some(0), "{seen}");
    let door = Door::open(env);
    let at = |id: &str| format!("home/.codex/sessions/2026/11/26/rollout-2026-11-26T07-00-00-{id}.jsonl");
    let call = |id: &str, command: &str| {
        let arguments = json!({"command": command}).to_string();
        let item = |payload: Value| json!({"timestamp": jiff::Timestamp::now().to_string(), "type": "response_item", "payload": payload});
        let asked = item(json!({"type": "function_call", "name": "Bash", "call_id": id, "arguments": arguments}));
        let came = item(json!({"type": "function_call_output", "call_id": id, "output": "out"}));
        format!("{asked}\n{came}\n")
    };
    let asks = |id: &str, file: &str, more: Value| {
        let call = json!({"tool_name": "Bash", "tool_use_id": id, "tool_input": {"command": "ls"}, "turn_id": "t",
            "transcript_path": door.env.path(file)});
        let mut payload = door.event("PreToolUse", &call);
        payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        door.asked("codex", "PreToolUse", &payload)
    };
    // The child is the last to be heard, then the parent again.
    asks("c1", &at("0190-p"), json!({}));
    asks("c2", &at("0190-k"), json!({"agent_id": "0190-k", "agent_type": "default"}));
    asks("c3", &at("0190-p"), json!({}));
    door.env.write(&at("0190-p"), &(call("c1", "ls") + &call("c3", "ls")));
    door.env.write(&at("0190-k"), &call("c2", "ls"));
    let reconcile = || pintle(&door.env, &["guard", "reconcile", "--json"]);
    let seen = reconcile();
    assert_eq!(seen.code, Some(0), "a sub-agent is no session of its own: {seen}");
    let said: Value = serde_json::from_str(&seen.out).unwrap();
    assert_eq!((&said["sessions"][0]["calls"], &said["unheard"]), (&json!(3), &json!([])), "{said}");
    // What only a sub-agent wrote down is found, and said of it.
    door.env.write(&at("0190-k"), &(call("c2", "ls") + &call("c4", "touch past")));
    let seen = reconcile();
    assert_eq!(seen.code, Some(5), "{seen}");
    let why = wait_for(|| {
        let seen = door.env.pintle(&["why", "-vv", "codex:s"]);
        seen.out.contains("unguarded_call").then_some(seen)
    });
    assert!(why.out.contains("the sub-agent 0190-k ran `Bash`") && why.out.contains("touch past"), "{why}");
}

/// Claude Code names the file of a sub-agent at its end alone: what stands beside that of the session is read before.
#[test]
fn what_a_sub_agent_writes_is_read_while_it_works() {
    let door = Door::open(installed());
    let own = "home/.claude/projects/-w/s.jsonl";
    let mut payload = door.shell("toolu_1", "ls");
    payload["transcript_path"] = json!(door.env.path(own));
    let _agent = Agent::start(&door, &payload);
    door.env.write(own, &written("toolu_1", "ls"));
    door.env.write("home/.claude/projects/-w/s/subagents/agent-a1.jsonl", &written("toolu_2", "touch past"));
    let seen = pintle(&door.env, &["guard", "reconcile", "--json"]);
    let said: Value = serde_json::from_str(&seen.out).unwrap();
    assert_eq!(said["sessions"][0]["unguarded"][0]["call"], "toolu_2", "{said}");
    assert_eq!((said["sessions"][0]["calls"].clone(), said["unheard"].clone()), (json!(2), json!([])), "{said}");
    wait_for(|| pintle(&door.env, &["guard", "status", "--host", "claude"]).out.contains("touch past").then_some(()));
    // One that nobody can read hides nothing of the others.
    std::fs::create_dir(door.env.path("home/.claude/projects/-w/s/subagents/agent-a0.jsonl")).unwrap();
    let seen = pintle(&door.env, &["guard", "reconcile", "--json"]);
    assert!(seen.out.contains("touch past") && seen.out.contains("it cannot be read"), "{seen}");
}

/// An agent that says its version nowhere: it is that of the package which its program belongs to.
#[test]
fn a_record_says_which_version_of_the_agent_it_was() {
    let env = with_agents();
    let door = Door::open(env);
    let package = "node_modules/@google/gemini-cli";
    door.env.write(&format!("{package}/package.json"), r#"{"name": "@google/gemini-cli", "version": "0.60.9"}"#);
    let program = door.env.write(&format!("{package}/bundle/gemini.js"), super::door::AGENT);
    let payload = json!({"session_id": "s", "cwd": door.env.path("here"), "hook_event_name": "BeforeTool",
        "timestamp": "2026-11-26T07:00:00Z", "tool_name": "run_shell_command", "tool_input": {"command": "ls"}});
    let mut command = door.env.command("python3");
    command.arg(program).args(door.words("gemini", "BeforeTool"));
    let seen = door.env.run(&mut command, &payload.to_string());
    assert_eq!(seen.code, Some(0), "{seen}");
    let why = wait_for(|| {
        let seen = door.env.pintle(&["why", "-vv", "gemini:s"]);
        seen.out.contains("door: hook").then_some(seen)
    });
    assert!(why.out.contains("Gemini CLI 0.60.9"), "{why}");
}

#[test]
fn whoever_watches_sees_what_is_concluded_as_it_happens() {
    let env = TestEnv::new();
    super::door::refusing(&env, "*--force*");
    let door = Door::open(env);
    let mut command = door.env.command(PINTLE);
    command.args(["guard", "watch"]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut watch = command.spawn().unwrap();
    let mut notes = BufReader::new(watch.stderr.take().unwrap()).lines();
    assert!(notes.next().unwrap().unwrap().contains("watching"));
    super::door::refusal(&door.told(&door.shell("toolu_1", "git push --force")));
    let lines = BufReader::new(watch.stdout.take().unwrap()).lines().map_while(Result::ok);
    let line = lines.into_iter().find(|line| line.contains("deny")).unwrap();
    for said in ["claude", "exec", "git push --force", "history is not ours"] {
        assert!(line.contains(said), "{said}: {line}");
    }
    nix::sys::signal::kill(
        nix::unistd::Pid::from_raw(watch.id().try_into().unwrap()),
        nix::sys::signal::Signal::SIGINT,
    )
    .unwrap();
    assert_eq!(watch.wait().unwrap().code(), Some(0));
}
