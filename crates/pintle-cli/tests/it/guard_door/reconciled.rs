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

/// How each agent runs without its hooks although they are installed: it writes down what it did all the same.
#[test]
fn a_session_that_no_hook_said_anything_of_is_found() {
    let env = with_agents();
    let seen = pintle(&env, &["guard", "install", "--host", "all", "--yes"]);
    assert_eq!(seen.code, Some(0), "{seen}");
    let files = [
        ("claude", "home/.claude/projects/-w/0190-a.jsonl"),
        ("codex", "home/.codex/sessions/2026/11/26/rollout-2026-11-26T07-00-00-0190-b.jsonl"),
        ("gemini", "home/.gemini/tmp/w/chats/session-2026-11-26T07-00-0190.jsonl"),
        ("qwen", "home/.qwen/projects/-w/chats/0190-c.jsonl"),
        ("copilot", "home/.copilot/session-state/0190-d/events.jsonl"),
        ("kimi", "home/.kimi-code/sessions/wd_w/session_0190-e/agents/main/wire.jsonl"),
        ("pi", "home/.pi/agent/sessions/--w--/2026-11-26T07-00_0190-f.jsonl"),
    ];
    let calls = written("call_1", "ls");
    for (_, file) in files {
        env.write(file, &calls);
    }
    let seen = pintle(&env, &["guard", "reconcile", "--json"]);
    assert_eq!(seen.code, Some(5), "{seen}");
    let said: Value = serde_json::from_str(&seen.out).unwrap();
    let found: Vec<&str> = said["unheard"].as_array().unwrap().iter().map(|it| it["host"].as_str().unwrap()).collect();
    assert_eq!(found, files.map(|(id, _)| id), "{said}");
    let seen = pintle(&env, &["guard", "reconcile"]);
    assert!(seen.code == Some(5) && seen.out.contains("1 call without any hook"), "{seen}");
    // What was there before the guard came is not its business.
    for (_, file) in files {
        env.write(file, &written_at("call_1", "ls", jiff::Timestamp::UNIX_EPOCH));
    }
    let seen = pintle(&env, &["guard", "reconcile"]);
    assert!(seen.code == Some(2) && seen.err.contains("knows no session yet"), "{seen}");
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
