//! A new version of an agent: proven by itself, once, and held as far as that goes.

use serde_json::{Value, json};

use super::door::{Door, wait_for};
use super::every_agent::{pintle, with_agents};
use crate::env::TestEnv;

/// Claude Code in some lines, as far as a canary goes: it says its version, or asks its model, and its hooks before each
/// call. With `disobedient` beside it, it asks none.
const FAKE: &str = r#"#!/usr/bin/env python3
import http.client, json, os, subprocess, sys, time
if sys.argv[1] == "--version":
    print("9.9.9 (Claude Code)")
    sys.exit()
here = os.path.dirname(os.path.abspath(__file__))
with open(here + "/runs", "a") as runs:
    runs.write(os.getcwd() + "\n")
while not os.path.exists(here + "/go"):
    time.sleep(0.02)
settings = json.load(open(os.path.expanduser("~/.claude/settings.json")))["hooks"]
def hook(event, **more):
    if os.path.exists(here + "/disobedient"):
        return {}
    entry = settings[event][0]["hooks"][0]
    payload = {"session_id": "canary", "cwd": os.getcwd(), "hook_event_name": event, "prompt_id": "p", **more}
    environment = {**os.environ, "AI_AGENT": "claude-code_9-9-9_harness"}
    told = subprocess.run([entry["command"], *entry["args"]], input=json.dumps(payload), capture_output=True, text=True, env=environment)
    return json.loads(told.stdout or "{}")
def ask(messages):
    model = http.client.HTTPConnection(os.environ["ANTHROPIC_BASE_URL"].removeprefix("http://"))
    body = {"model": "m", "stream": False, "tools": [{"name": "Bash"}], "messages": messages}
    model.request("POST", "/v1/messages", json.dumps(body))
    return json.loads(model.getresponse().read())["content"][0]
hook("SessionStart", source="startup")
prompt = {"role": "user", "content": sys.argv[-1]}
if hook("UserPromptSubmit", prompt=sys.argv[-1]).get("decision") == "block":
    sys.exit("its prompt was refused")
call = ask([prompt])
ruled = hook("PreToolUse", tool_name="Bash", tool_use_id=call["id"], tool_input=call["input"])
result = ruled.get("hookSpecificOutput", {}).get("permissionDecisionReason", "it ran")
ask([prompt, {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call["id"], "content": result}]}])
"#;

fn with_new_claude() -> TestEnv {
    let env = with_agents();
    env.write("bin/claude", FAKE);
    env.user_config("[guard]\nrequire = [\"shell\"]\n");
    let seen = pintle(&env, &["guard", "install", "--host", "claude", "--yes", "--force"]);
    assert_eq!(seen.code, Some(0), "{seen}");
    env
}

fn standing(env: &TestEnv) -> Value {
    let seen = pintle(env, &["guard", "status", "--host", "claude", "--json"]);
    serde_json::from_str::<Value>(&seen.out).unwrap()["hosts"][0].clone()
}

/// How far the shell is under guard, and why.
fn shell(host: &Value) -> (&str, &str) {
    let row = host["coverage"].as_array().unwrap().iter().find(|row| row["tools"] == "shell").unwrap();
    (row["level"].as_str().unwrap(), row["basis"].as_str().unwrap())
}

/// A session of the agent in its new version begins, and makes a call: what that came to.
fn session(door: &Door, id: &str) -> String {
    let asked = |event: &str, more: Value| {
        let mut payload = door.event(event, &more);
        payload["session_id"] = json!(id);
        let mut command = door.env.command("python3");
        command.args(["-c", super::door::AGENT]).args(door.words("claude", event));
        command.env("AI_AGENT", "claude-code_9-9-9_harness");
        door.env.run(&mut command, &payload.to_string()).out
    };
    asked("SessionStart", json!({"source": "startup"}));
    asked("PreToolUse", json!({"tool_name": "Bash", "tool_use_id": "c", "tool_input": {"command": "ls"}}))
}

fn runs(env: &TestEnv) -> usize {
    std::fs::read_to_string(env.path("bin/runs")).unwrap_or_default().lines().count()
}

#[test]
fn a_new_version_is_proven_by_itself_and_counts_as_held_then() {
    let env = with_new_claude();
    let status = pintle(&env, &["guard", "status", "--host", "claude"]);
    assert!(status.code == Some(5) && status.out.contains("since 9.9.9; it is tried at the next session"), "{status}");
    let before = standing(&env);
    assert_eq!(shell(&before), ("open", "found"), "{before}");
    assert!(before["lacks"].as_str().unwrap().contains("unproven since 9.9.9"), "{before}");
    let door = Door::among_agents(env);
    // No hook waits for the proof: until it is there, the version holds nothing.
    assert!(session(&door, "first").contains("unproven since 9.9.9"));
    assert!(standing(&door.env)["proven"].is_null());
    door.env.write("bin/go", "");
    let after = wait_for(|| {
        let host = standing(&door.env);
        (!host["tried"]["said"].as_str().unwrap_or("under way").contains("under way")).then_some(host)
    });
    assert_eq!(after["tried"]["said"], "proven: its call reached the guard and was refused", "{after}");
    assert_eq!((&after["proven"]["version"], shell(&after)), (&json!("9.9.9"), ("held", "proven")), "{after}");
    assert!(after["lacks"].is_null(), "{after}");
    assert_eq!(session(&door, "second").trim(), "{}", "and then it holds what has to be");
    // Its own session asked for no other, and nor did the second one.
    let runs_now = std::fs::read_to_string(door.env.path("bin/runs")).unwrap();
    assert_eq!(runs(&door.env), 1, "{runs_now}");
    let folder = runs_now.trim();
    assert!(folder.contains("pintle-canary-") && !std::path::Path::new(folder).exists(), "{folder}");
}

#[test]
fn a_new_version_that_is_not_held_is_tried_once_and_named() {
    let env = with_new_claude();
    env.write("bin/disobedient", "");
    let door = Door::among_agents(env);
    assert!(session(&door, "first").contains("unproven since 9.9.9"));
    door.env.write("bin/go", "");
    let after = wait_for(|| {
        let host = standing(&door.env);
        host["tried"]["said"].as_str().is_some_and(|said| said.starts_with("open: ")).then_some(host)
    });
    assert_eq!((&after["proven"], shell(&after)), (&Value::Null, ("open", "found")), "{after}");
    for id in ["second", "third"] {
        assert!(session(&door, id).contains("unproven since 9.9.9"));
    }
    let status = pintle(&door.env, &["guard", "status", "--host", "claude"]);
    assert!(status.out.contains("since 9.9.9; tried "), "{status}");
    assert_eq!(runs(&door.env), 1);
}
