//! What takes the guard away before a session begins: `status` names it, row by row.

use serde_json::{Value, json};

use super::door::{Door, LONG, document, refusal, wait_for};
use super::every_agent::{pintle, with_agents};
use crate::env::TestEnv;

/// One way in which an agent under guard runs none of our hooks, or lets them be undone: files below the test's folder,
/// and what `status` says of it. An empty text takes the file away; one that begins with `+` comes behind what is there.
type Row = (&'static str, &'static str, &'static [(&'static str, &'static str)], &'static str);

const OFF: &str = "{\"disableAllHooks\": true}";

const BEFORE: &[Row] = &[
    ("the project", "claude", &[("here/.claude/settings.json", OFF)], "`disableAllHooks` in"),
    ("the person in the project", "claude", &[("here/.claude/settings.local.json", OFF)], "`disableAllHooks` in"),
    (
        "features.hooks",
        "codex",
        &[("home/.codex/config.toml", "+\n[features]\nhooks = false\n")],
        "`features.hooks` in",
    ),
    (
        "features.hooks of the project",
        "codex",
        &[("here/.codex/config.toml", "[features]\nhooks = false\n")],
        "`features.hooks` in",
    ),
    ("a broken file", "codex", &[("home/.codex/hooks.json", "+}")], "cannot be read"),
    (
        "hooks are off",
        "gemini",
        &[("here/.gemini/settings.json", "{\"hooksConfig\": {\"enabled\": false}}")],
        "`hooksConfig.enabled` in",
    ),
    (
        "ours are off",
        "gemini",
        &[("here/.gemini/settings.json", "{\"hooksConfig\": {\"disabled\": [\"pintle-BeforeTool\"]}}")],
        "`hooksConfig.disabled` in",
    ),
    ("the project", "qwen", &[("here/.qwen/settings.json", OFF)], "`disableAllHooks` in"),
    (
        "the project's own hook comes behind",
        "qwen",
        &[("here/.qwen/settings.json", "{\"hooks\": {\"PreToolUse\": [{\"hooks\": [{\"command\": \"theirs\"}]}]}}")],
        "`theirs` at `PreToolUse` in",
    ),
    ("settings of the project", "copilot", &[("here/.github/copilot/settings.json", OFF)], "`disableAllHooks` in"),
    (
        "a file of hooks",
        "copilot",
        &[("here/.github/hooks/any.json", "{\"version\": 1, \"disableAllHooks\": true}")],
        "`disableAllHooks` in",
    ),
    (
        "another file of hooks",
        "copilot",
        &[("home/.copilot/hooks/other.json", "{\"version\": 1, \"disableAllHooks\": true}")],
        "`disableAllHooks` in",
    ),
    (
        "a wrong event",
        "kimi",
        &[("home/.kimi-code/config.toml", "+\n[[hooks]]\nevent = \"Nope\"\ncommand = \"x\"\n")],
        "runs no hook at all",
    ),
    (
        "a wrong key",
        "kimi",
        &[("home/.kimi-code/config.toml", "+\n[[hooks]]\nevent = \"Stop\"\ncommand = \"x\"\nname = \"y\"\n")],
        "the key `name`",
    ),
    (
        "a wrong timeout",
        "kimi",
        &[("home/.kimi-code/config.toml", "+\n[[hooks]]\nevent = \"Stop\"\ncommand = \"x\"\ntimeout = 601\n")],
        "`timeout` in the entry of `Stop`",
    ),
    ("a missing file", "cline", &[("home/.cline/hooks/PreToolUse", "")], "`PreToolUse` is not there"),
];

fn change(env: &TestEnv, (file, text): (&str, &str)) -> Option<String> {
    let before = std::fs::read_to_string(env.path(file)).ok();
    match text.strip_prefix('+') {
        Some(more) => drop(env.write(file, &format!("{}{more}", before.clone().unwrap_or_default()))),
        None if text.is_empty() => std::fs::remove_file(env.path(file)).unwrap(),
        None => drop(env.write(file, text)),
    }
    before
}

fn put_back(env: &TestEnv, file: &str, before: Option<String>) {
    use std::os::unix::fs::PermissionsExt as _;
    match before {
        Some(text) => {
            let file = env.write(file, &text);
            if text.starts_with("#!") {
                std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).unwrap();
            }
        }
        None => std::fs::remove_file(env.path(file)).unwrap(),
    }
}

#[test]
fn what_takes_the_guard_away_before_a_session_is_named() {
    let env = with_agents();
    let seen = pintle(&env, &["guard", "install", "--host", "all", "--yes"]);
    assert_eq!(seen.code, Some(0), "{seen}");
    for (row, id, files, said) in BEFORE {
        let status = || pintle(&env, &["guard", "status", "--host", id]);
        let before: Vec<_> = files.iter().map(|(file, text)| (*file, change(&env, (file, text)))).collect();
        let seen = status();
        assert!(seen.code == Some(5) && seen.out.contains(said), "{id}, {row}: {seen}");
        before.into_iter().for_each(|(file, before)| put_back(&env, file, before));
        let seen = status();
        assert_eq!(seen.code, Some(0), "{id}, {row} is gone: {seen}");
    }
}

#[test]
fn an_entry_that_drops_all_hooks_is_mended_before_ours_come_beside_it() {
    let env = with_agents();
    let text = "[[hooks]]\nevent = \"Nope\"\ncommand = \"x\"\n";
    let file = env.write("home/.kimi-code/config.toml", text);
    let seen = pintle(&env, &["guard", "install", "--host", "kimi", "--yes"]);
    assert!(seen.code == Some(2) && seen.err.contains("runs no hook at all"), "{seen}");
    assert_eq!(std::fs::read_to_string(file).unwrap(), text);
}

#[test]
fn hooks_of_a_project_that_nobody_trusts_are_named() {
    let env = with_agents();
    let seen = pintle(&env, &["guard", "install", "--host", "copilot", "--project", "--yes"]);
    assert_eq!(seen.code, Some(0), "{seen}");
    let status = || pintle(&env, &["guard", "status", "--host", "copilot"]);
    let seen = status();
    assert!(seen.code == Some(5) && seen.out.contains("`trusted_folders` in"), "{seen}");
    let here = env.path("here").canonicalize().unwrap();
    env.write("home/.copilot/config.json", &format!("// by itself\n{}", json!({"trusted_folders": [here]})));
    let seen = status();
    assert_eq!(seen.code, Some(0), "{seen}");
}

#[test]
fn ours_in_the_project_has_the_last_word_over_hooks_of_the_project() {
    let env = with_agents();
    let theirs = "{\"hooks\": {\"PreToolUse\": [{\"hooks\": [{\"command\": \"theirs\"}]}]}}";
    env.write("here/.qwen/settings.json", theirs);
    for scope in [None, Some("--project")] {
        let mut args = vec!["guard", "install", "--host", "qwen", "--yes"];
        args.extend(scope);
        let seen = pintle(&env, &args);
        assert_eq!(seen.code, Some(0), "{seen}");
        let status = pintle(&env, &["guard", "status", "--host", "qwen"]);
        assert_eq!(status.code, Some(if scope.is_some() { 0 } else { 5 }), "{status}");
    }
}

#[test]
fn a_wrapper_that_names_the_client_is_none_of_ours() {
    let env = with_agents();
    let wrapper = "/opt/log.sh /usr/bin/pintle-hook --host codex --event PreToolUse";
    let hooks = json!({"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": wrapper}]}]}}).to_string();
    let script = format!("#!/bin/sh\n{wrapper}\n");
    for (id, file, text) in [
        ("codex", "home/.codex/hooks.json", hooks.as_str()),
        ("cline", "home/.cline/hooks/PreToolUse", &script),
        ("pi", "home/.pi/agent/extensions/pintle.ts", "// pintle-hook\nexport default () => {}\n"),
    ] {
        let file = env.write(file, text);
        let seen = pintle(&env, &["guard", "status", "--host", id]);
        assert!(seen.code == Some(0) && seen.out.contains("not installed"), "{id}: {seen}");
        let seen = pintle(&env, &["guard", "uninstall", "--host", id, "--yes"]);
        assert_eq!(seen.code, Some(0), "{id}: {seen}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), text, "{id}");
    }
}

#[test]
fn an_agent_that_does_not_let_be_held_what_has_to_be_is_refused() {
    let env = with_agents();
    env.user_config("[guard]\nrequire = [\"shell\", \"file_write\"]\n");
    for id in ["claude", "codex"] {
        let seen = pintle(&env, &["guard", "install", "--host", id, "--yes"]);
        assert_eq!(seen.code, Some(0), "{seen}");
        let status = pintle(&env, &["guard", "status", "--host", id]);
        let is_codex = id == "codex";
        assert_eq!(status.code, Some(if is_codex { 5 } else { 0 }), "{status}");
        assert_eq!(status.out.contains("each of its prompts and calls here"), is_codex, "{status}");
    }
    let door = Door::open(env);
    let unknown = door.told(&door.shell("toolu_1", "ls"));
    assert!(refusal(&unknown).contains("nobody knows yet in which version Claude Code runs"), "{unknown}");
    let newest = pintle_guard::host("claude").unwrap().versions.newest.replace('.', "-");
    let mut other = door.shell("toolu_1", "ls");
    other["session_id"] = json!("other");
    let mut command = door.command("PreToolUse", LONG);
    command.env("AI_AGENT", format!("claude-code_{newest}_harness"));
    let known = document(&TestEnv::output(&mut command, &other.to_string()));
    assert_eq!(known, json!({}), "Claude Code holds both");
    let told = |event: &str, more: Value| {
        let mut payload = door.event(event, &more);
        payload["turn_id"] = json!("t");
        let mut command = door.command(event, LONG);
        command.args(["--host", "codex"]);
        let mut child = command.spawn().unwrap();
        std::io::Write::write_all(&mut child.stdin.take().unwrap(), payload.to_string().as_bytes()).unwrap();
        document(&child.wait_with_output().unwrap())
    };
    let call = json!({"tool_name": "Bash", "tool_use_id": "c", "tool_input": {"command": "ls"}});
    assert!(refusal(&told("PreToolUse", call)).contains("`guard.require`"));
    let prompt = told("UserPromptSubmit", json!({"prompt": "hello"}));
    assert!(prompt["reason"].as_str().unwrap().contains("`shell` have to be held"), "{prompt}");
}

#[test]
fn a_class_that_there_is_none_of_demands_all_until_it_is_mended() {
    let env = TestEnv::new();
    env.user_config("[guard]\nrequire = [\"shel\"]\n");
    let seen = env.pintle(&["hooks", "list"]);
    assert!(seen.err.contains("there is no class of tools `shel`") && seen.err.contains("shell"), "{seen}");
    let status = pintle(&env, &["guard", "status", "--json"]);
    let said: Value = serde_json::from_str(&status.out).unwrap();
    let lacks =
        |id: &str| said["hosts"].as_array().unwrap().iter().find(|it| it["host"] == id).unwrap()["lacks"].clone();
    let all = ["codex", "opencode", "claude"].map(|id| lacks(id).as_str().unwrap_or_default().to_owned());
    assert!(all.iter().all(|why| why.contains("there is no class of tools `shel`")), "{said}");
}

/// The payload with which a session of each agent begins in `here`, and the event.
fn begins(id: &str, here: &std::path::Path) -> (&'static str, Value) {
    let named = |event: &str| json!({"session_id": "s", "cwd": here, "hook_event_name": event, "source": "startup"});
    match id {
        "copilot" => ("sessionStart", json!({"sessionId": "s", "cwd": here, "timestamp": 0})),
        "cline" => (
            "TaskStart",
            json!({"taskId": "t", "hookName": "agent_start", "sessionContext": {"rootSessionId": "s"},
                "workspaceInfo": {"rootPath": here}}),
        ),
        _ => ("SessionStart", named("SessionStart")),
    }
}

/// An agent that is there until its input ends, and asks its hook at the beginning.
const STAYS: &str = "import subprocess, sys
subprocess.run(sys.argv[1:], input=sys.stdin.readline().encode(), stdout=subprocess.DEVNULL)
print('asked', flush=True)
sys.stdin.read()";

#[test]
fn what_takes_the_guard_away_is_found_while_the_session_runs() {
    use std::io::{BufRead as _, BufReader, Write as _};
    use std::process::Stdio;

    let env = with_agents();
    let seen = pintle(&env, &["guard", "install", "--host", "all", "--yes"]);
    assert_eq!(seen.code, Some(0), "{seen}");
    let door = Door::open(env);
    let here = door.env.path("here");
    // One row an agent: all that is looked at is whether any of our entries is still in force.
    let rows: Vec<&Row> = ["claude", "codex", "gemini", "qwen", "copilot", "kimi", "cline"]
        .iter()
        .map(|id| BEFORE.iter().find(|row| row.1 == *id).unwrap())
        .collect();
    let mut agents = Vec::new();
    for (_, id, files, _) in &rows {
        let (event, payload) = begins(id, &here);
        let mut command = door.env.command("python3");
        command.args(["-c", STAYS]).args(door.words(id, event)).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut agent = command.spawn().unwrap();
        writeln!(agent.stdin.as_mut().unwrap(), "{payload}").unwrap();
        let mut said = BufReader::new(agent.stdout.take().unwrap()).lines().map_while(Result::ok);
        assert!(said.any(|line| line == "asked"), "{id}");
        agents.push(agent);
        files.iter().for_each(|file| drop(change(&door.env, *file)));
    }
    for (row, id, _, said) in rows {
        wait_for(|| {
            let seen = pintle(&door.env, &["guard", "status", "--host", id, "--json"]);
            let host = serde_json::from_str::<Value>(&seen.out).unwrap()["hosts"][0].clone();
            let past = host["live"][0]["past"][0]["text"].as_str().unwrap_or_default().to_owned();
            assert!(past.is_empty() || past.contains("disarmed: "), "{id}, {row}: {past}");
            (seen.code == Some(5) && past.contains(said)).then_some(())
        });
        let why = door.env.pintle(&["why", "-vv", &format!("{id}:s")]);
        assert!(why.out.contains("disarmed: "), "{id}, {row}: {why}");
    }
    for mut agent in agents {
        drop(agent.stdin.take());
        agent.wait().unwrap();
    }
}
