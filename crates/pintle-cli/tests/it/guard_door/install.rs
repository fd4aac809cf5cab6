//! Our entries in an agent's settings: put in, found, run as the agent would, and taken out.

use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::door::{AGENT, document, refusal, refusing, wait_for};
use crate::env::TestEnv;

/// Surroundings in which Claude Code of this version seems to be there.
pub(super) fn with_claude(version: &str) -> TestEnv {
    use std::os::unix::fs::PermissionsExt as _;
    let env = TestEnv::new();
    let program = env.write("bin/claude", &format!("#!/bin/sh\necho '{version} (Claude Code)'\n"));
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    env
}

pub(super) fn pintle(env: &TestEnv, args: &[&str]) -> crate::env::Seen {
    let path = format!("{}:{}", env.path("bin").display(), std::env::var("PATH").unwrap());
    env.run(env.command(crate::env::PINTLE).args(args).env("PATH", path), "")
}

const SETTINGS: &str = "{\n  \"model\": \"sonnet\",\n  \"hooks\": { \"Stop\": [ {\"hooks\": []} ] }\n}\n";

#[test]
fn an_installed_hook_starts_the_daemon_and_is_gone_without_a_trace() {
    let env = with_claude("2.1.330");
    refusing(&env, "*--force*");
    let settings = env.write("home/.claude/settings.json", SETTINGS);
    let seen = pintle(&env, &["guard", "install", "--host", "claude", "--dry-run"]);
    assert!(seen.code == Some(0) && seen.out.contains("--key-file"), "{seen}");
    assert_eq!(std::fs::read_to_string(&settings).unwrap(), SETTINGS);
    let seen = pintle(&env, &["guard", "install", "--host", "claude"]);
    assert_eq!(seen.code, Some(5), "it asks, and nobody is there: {seen}");
    let seen = pintle(&env, &["guard", "install", "--host", "claude", "--yes"]);
    assert!(seen.code == Some(0) && seen.out.contains("claude  guarded"), "{seen}");
    assert!(seen.out.contains("claude  changes ") && seen.out.lines().count() == 2, "one line for a file: {seen}");
    assert!(seen.err.contains("guard install --host claude --system"), "{seen}");
    let again = pintle(&env, &["guard", "install", "--host", "claude", "--yes"]);
    assert!(again.out.contains("nothing to change") && !again.err.contains("--system"), "{again}");

    // As Claude Code does it.
    let written: Value = serde_json::from_str(&std::fs::read_to_string(&settings).unwrap()).unwrap();
    let hook = &written["hooks"]["PreToolUse"][0]["hooks"][0];
    let args = hook["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap());
    let mut command: Command = env.command("python3");
    command.args(["-c", AGENT, hook["command"].as_str().unwrap()]);
    let mut child =
        command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let payload = json!({
        "session_id": "s", "cwd": env.path("here"), "prompt_id": "p", "hook_event_name": "PreToolUse", "tool_name": "Bash",
        "tool_use_id": "toolu_1", "tool_input": {"command": "git push --force"},
    });
    child.stdin.take().unwrap().write_all(payload.to_string().as_bytes()).unwrap();
    let told = document(&child.wait_with_output().unwrap());
    assert!(refusal(&told).contains("history is not ours"), "{told}");

    let status = pintle(&env, &["guard", "status", "--host", "claude"]);
    assert_eq!(status.code, Some(0), "{status}");
    for said in ["daemon  runs", "installed  user", "last heard", "shell      held"] {
        assert!(status.out.contains(said), "{said}: {status}");
    }
    let folder = env.path("data/pintle/guard");
    let pid = std::fs::read_to_string(folder.join("pid")).unwrap();
    assert!(Command::new("kill").arg(pid.trim()).status().unwrap().success());
    wait_for(|| (!folder.join("guard.sock").exists()).then_some(()));

    let seen = pintle(&env, &["guard", "uninstall", "--host", "claude", "--yes"]);
    assert_eq!(seen.code, Some(0), "{seen}");
    assert_eq!(std::fs::read_to_string(&settings).unwrap(), SETTINGS);
    let status = pintle(&env, &["guard", "status", "--host", "claude"]);
    assert!(status.out.contains("not installed"), "{status}");
}

#[test]
fn what_was_taken_away_is_said_until_somebody_uninstalls_it() {
    let env = with_claude("2.1.330");
    refusing(&env, "*--force*");
    let settings = env.write("home/.claude/settings.json", SETTINGS);
    let guard = |command: &str| pintle(&env, &["guard", command, "--host", "claude"]);
    let settle = |command: &str| pintle(&env, &["guard", command, "--host", "claude", "--yes"]);
    assert_eq!(settle("install").code, Some(0));
    std::fs::write(&settings, SETTINGS).unwrap();
    let seen = guard("status");
    assert!(seen.code == Some(5) && seen.out.contains("taken away"), "{seen}");
    let state = std::fs::read_dir(env.path("data/pintle/guard/kept")).unwrap().next().unwrap().unwrap().path();
    let whole = std::fs::read(&state).unwrap();
    std::fs::write(&state, "{").unwrap();
    let seen = guard("status");
    assert!(
        seen.code == Some(5) && seen.out.contains("unreadable") && !seen.out.contains("it was installed"),
        "{seen}"
    );
    let seen = settle("uninstall");
    assert!(seen.code == Some(1) && seen.err.contains("cannot be read"), "{seen}");
    std::fs::write(&state, whole).unwrap();
    let seen = settle("uninstall");
    assert_eq!(seen.code, Some(0), "{seen}");
    let seen = guard("status");
    assert!(seen.code == Some(0) && !seen.out.contains("taken away"), "{seen}");
    assert_eq!(std::fs::read_to_string(&settings).unwrap(), SETTINGS);
}

#[test]
fn a_version_that_nobody_has_tried_is_refused() {
    for version in ["2.1.100", "3.0.0"] {
        let env = with_claude(version);
        let seen = pintle(&env, &["guard", "install", "--host", "claude", "--yes"]);
        assert_eq!(seen.code, Some(2), "{seen}");
        assert!(seen.err.contains(version) && seen.err.contains("--force"), "{seen}");
        assert!(seen.err.contains("guard doctor --host claude --live"), "{seen}");
        assert!(!env.path("home/.claude").exists());
        let seen = pintle(&env, &["guard", "install", "--host", "claude", "--yes", "--force"]);
        assert_eq!(seen.code, Some(0), "{seen}");
    }
}

#[test]
fn an_agent_that_does_not_start_is_there_all_the_same() {
    let env = with_claude("2.1.330");
    let install = || pintle(&env, &["guard", "install", "--host", "claude", "--yes"]);
    std::fs::write(env.path("bin/claude"), [0x7f, 0, 1, 2]).unwrap();
    let seen = install();
    assert!(seen.code == Some(2) && seen.err.contains("Claude Code does not say its version"), "{seen}");
    std::fs::remove_file(env.path("bin/claude")).unwrap();
    let seen = install();
    assert!(seen.code == Some(2) && seen.err.contains("Claude Code is not there"), "{seen}");
}

#[test]
fn settings_that_cannot_be_read_are_left_alone() {
    let env = with_claude("2.1.330");
    let settings = env.write("home/.claude/settings.json", "{ // mine\n}\n");
    let seen = pintle(&env, &["guard", "install", "--host", "claude", "--yes"]);
    assert_eq!(seen.code, Some(2), "{seen}");
    assert!(seen.err.contains("settings.json cannot be changed"), "{seen}");
    assert_eq!(std::fs::read_to_string(settings).unwrap(), "{ // mine\n}\n");
}

#[test]
fn a_broken_installation_is_named() {
    let env = with_claude("2.1.330");
    pintle(&env, &["guard", "install", "--host", "claude", "--yes"]);
    std::fs::remove_file(env.path("data/pintle/guard/key")).unwrap();
    let status = pintle(&env, &["guard", "status", "--host", "claude"]);
    assert!(status.code == Some(5) && status.out.contains("the key"), "{status}");
    let status = pintle(&env, &["guard", "status", "--host", "claude", "--json"]);
    let said: Value = serde_json::from_str(&status.out).unwrap();
    assert!(said["hosts"][0]["installed"][0]["flaw"].as_str().unwrap().contains("the key"), "{said}");
}

#[test]
fn what_turns_the_guard_off_or_was_changed_is_named() {
    let env = with_claude("2.1.330");
    let seen = pintle(&env, &["guard", "install", "--host", "claude", "--yes"]);
    assert_eq!(seen.code, Some(0), "{seen}");
    let status = || pintle(&env, &["guard", "status", "--host", "claude"]);
    assert_eq!(status().code, Some(0), "{}", status());
    let settings = env.path("home/.claude/settings.json");
    let written = std::fs::read_to_string(&settings).unwrap();
    for (ours, theirs) in [
        ("\"PreToolUse\"", "\"PreToolUseX\""),
        ("\"onFailure\":\"block\"", "\"onFailure\":\"allow\""),
        ("\"timeout\":600", "\"timeout\":1"),
        ("\"args\"", "\"xargs\""),
    ] {
        let loose = written.replace(": ", ":").replacen(ours, theirs, 1);
        assert_ne!(loose, written.replace(": ", ":"), "{ours} stands in {written}");
        std::fs::write(&settings, loose).unwrap();
        let seen = status();
        assert!(seen.code == Some(5) && seen.out.contains("are not those that"), "{theirs}: {seen}");
    }
    std::fs::write(&settings, format!("garbage {written}")).unwrap();
    let seen = status();
    assert!(seen.code == Some(5) && seen.out.contains("cannot be read"), "{seen}");
    std::fs::write(&settings, &written).unwrap();
    env.write("here/.claude/settings.json", "{\"disableAllHooks\": true}");
    let seen = status();
    assert!(seen.code == Some(5) && seen.out.contains("`disableAllHooks`"), "{seen}");
    env.write("here/.claude/settings.json", "{");
    assert_eq!(status().code, Some(5), "what cannot be read may turn it off");
}

#[test]
fn what_was_there_before_is_there_again() {
    let texts =
        [None, Some(""), Some("\n"), Some("{\"hooks\":{}}"), Some("{ \"hooks\" : { \"PreToolUse\" : [] } }\r\n")];
    for before in texts {
        let env = with_claude("2.1.330");
        let settings = env.path("home/.claude/settings.json");
        before.map(|text| env.write("home/.claude/settings.json", text));
        let install = ["guard", "install", "--host", "claude", "--yes"];
        let seen = pintle(&env, &install);
        assert!(seen.code == Some(0) && seen.out.contains("claude  guarded"), "{before:?}: {seen}");
        let again = pintle(&env, &install);
        assert!(again.out.contains("nothing to change"), "{before:?}: {again}");
        let seen = pintle(&env, &["guard", "uninstall", "--host", "claude", "--yes"]);
        assert_eq!(seen.code, Some(0), "{before:?}: {seen}");
        assert_eq!(std::fs::read_to_string(&settings).ok().as_deref(), before, "{seen}");
    }
}
