//! Installations for the whole machine, whose hooks ask the daemon of whichever account runs the agent; hooks that are
//! away from their daemon; hooks that somebody writes by hand.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use super::door::{Door, document, hook_program, refusal, refusing, wait_for};
use super::every_agent::{pintle, with_agents};
use crate::env::{PINTLE, TestEnv};

/// Runs its arguments where `$1` is the machine's list of accounts.
const AMONG: &str = "mount --bind \"$1\" /etc/passwd && shift && exec \"$@\"";

/// The hook of Claude Code for every account, as it runs where the account of this test has its home in `env`.
fn of_account(env: &TestEnv, payload: &Value) -> Value {
    let program = hook_program();
    let words = ["--host", "claude", "--event", "PreToolUse", "--daemon", "account", "--deadline", "60000"];
    let words: Vec<&str> = std::iter::once(program.to_str().unwrap()).chain(words).collect();
    with_account(env, &words, payload)
}

/// What the hook that is started with `words` says where the account of this test has its home in `env`.
fn with_account(env: &TestEnv, words: &[&str], payload: &Value) -> Value {
    let accounts = env.write("passwd", &format!("anna:x:0:0::{}:/bin/sh\n", env.path("home").display()));
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--mount", "sh", "-c", AMONG, "sh"]).arg(accounts).args(words);
    // Whatever a project's settings say: none of it is read.
    let elsewhere = env.path("elsewhere");
    let names = ["HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR", "PINTLE_HOME"];
    command.env_clear().env("PATH", std::env::var_os("PATH").unwrap()).current_dir(env.path("here"));
    command.envs(names.map(|name| (name, elsewhere.as_os_str())));
    document(&TestEnv::output(&mut command, &payload.to_string()))
}

fn call(env: &TestEnv, command: &str) -> Value {
    json!({
        "session_id": "s", "cwd": env.path("here"), "prompt_id": "p", "hook_event_name": "PreToolUse", "tool_name": "Bash",
        "tool_use_id": "toolu_1", "tool_input": {"command": command},
    })
}

/// With a hook that refuses `--force` in the account's own configuration, which is where it always is.
fn refusing_account() -> TestEnv {
    let env = TestEnv::new();
    refusing(&env, "*--force*");
    std::fs::create_dir_all(env.path("home/.config")).unwrap();
    std::fs::rename(env.path("config/pintle"), env.path("home/.config/pintle")).unwrap();
    let config = env.path("home/.config/pintle/pintle.toml");
    let text =
        std::fs::read_to_string(&config).unwrap().replace("/config/pintle/", concat!("/ho", "me/.config/pintle/"));
    std::fs::write(config, text).unwrap();
    env
}

/// Ends the daemon that a hook started in `folder`.
fn end_daemon(folder: &Path) {
    let pid = std::fs::read_to_string(folder.join("pid")).unwrap();
    assert!(Command::new("kill").arg(pid.trim()).status().unwrap().success());
    wait_for(|| (!folder.join("guard.sock").exists()).then_some(()));
}

#[test]
fn no_environment_leads_a_hook_written_by_hand_away_from_the_guard_of_its_account() {
    let env = refusing_account();
    let force = call(&env, "git push --force");
    refusal(&of_account(&env, &force));
    let elsewhere = env.path("elsewhere");
    let told = with_account(&env, &[PINTLE, "hook", "--host", "claude"], &force);
    assert!(refusal(&told).contains("history is not ours"), "{told}");
    // Who wrote the entry may name another one: there is none.
    let told = with_account(&env, &[PINTLE, "--home", elsewhere.to_str().unwrap(), "hook", "--host", "claude"], &force);
    assert!(!refusal(&told).contains("history is not ours"), "{told}");
    end_daemon(&env.path("home/.local/share/pintle/guard"));
}

#[test]
fn each_account_has_its_own_daemon() {
    let env = refusing_account();
    let told = of_account(&env, &call(&env, "git push --force"));
    assert!(refusal(&told).contains("history is not ours"), "{told}");
    assert_eq!(of_account(&env, &call(&env, "git push")), json!({}));
    let folder = env.path("home/.local/share/pintle/guard");
    let mode = std::fs::metadata(folder.join("key")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert!(!env.path("elsewhere").exists());
    end_daemon(&folder);
    // What somebody else could have written is not followed.
    std::fs::set_permissions(folder.join("start"), std::fs::Permissions::from_mode(0o666)).unwrap();
    assert!(refusal(&of_account(&env, &call(&env, "ls"))).contains("did not answer"));
}

#[test]
fn an_account_that_the_machine_does_not_know_may_do_nothing() {
    let env = TestEnv::new();
    let accounts = env.write("passwd", "bert:x:7:7::/people/bert:/bin/sh\n");
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--mount", "sh", "-c", AMONG, "sh"]).arg(accounts).arg(hook_program());
    command.args(["--host", "claude", "--event", "PreToolUse", "--daemon", "account", "--deadline", "60000"]);
    let output = TestEnv::output(&mut command, &call(&env, "ls").to_string());
    refusal(&document(&output));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no home folder of the account"), "{output:?}");
}

#[test]
fn an_installation_for_the_machine_names_no_account() {
    let env = with_agents();
    for (id, file) in [
        ("claude", "managed-settings.json"),
        ("codex", "requirements.toml"),
        ("gemini", "settings.json"),
        ("qwen", "settings.json"),
        ("copilot", "pintle.json"),
    ] {
        let seen = pintle(&env, &["guard", "install", "--host", id, "--system", "--dry-run"]);
        assert!(seen.code == Some(0) && seen.out.contains(file), "{id}: {seen}");
        assert!(seen.out.contains("account") && !seen.out.contains("--socket"), "{id}: {seen}");
        assert_eq!(seen.out.contains("[features]"), id == "codex", "{id}: {seen}");
    }
    // Whoever installs for themselves is told how root does it for all.
    let seen = pintle(&env, &["guard", "install", "--host", "claude", "--yes"]);
    assert!(seen.err.contains("sudo ") && seen.err.contains("guard install --host claude --system"), "{seen}");
}

#[test]
fn a_host_may_go_on_without_its_daemon_only_where_its_person_said_so() {
    let env = with_agents();
    env.user_config("[guard.hosts.claude]\non_daemon_away = 'allow'\n");
    let install = |id: &str| pintle(&env, &["guard", "install", "--host", id, "--yes"]);
    assert_eq!((install("claude").code, install("pi").code), (Some(0), Some(0)));
    let settings = env.path("home/.claude/settings.json");
    let text = std::fs::read_to_string(&settings).unwrap();
    assert!(text.contains("\"--away\""), "{text}");
    let status = |id: &str| pintle(&env, &["guard", "status", "--host", id]);
    let seen = status("claude");
    assert!(seen.code == Some(0) && seen.out.contains("`on_daemon_away`"), "{seen}");
    // Nobody but the person says so.
    env.user_config("");
    let seen = status("claude");
    assert!(seen.code == Some(5) && seen.out.contains("are not those that"), "{seen}");
    let plugin = std::fs::read_to_string(env.path("home/.pi/agent/extensions/pintle.ts")).unwrap();
    assert!(!plugin.contains("--away"), "{plugin}");
    let hook = |socket: &str, away: bool| {
        let mut command = env.command(hook_program());
        command.args(["--host", "claude", "--event", "PreToolUse", "--deadline", "5000", "--key-file", "/nowhere/k"]);
        command.args(["--socket", socket]).args(away.then_some(["--away", "allow"]).into_iter().flatten());
        document(&TestEnv::output(&mut command, &call(&env, "ls").to_string()))
    };
    refusal(&hook("/nowhere/s", false));
    assert_eq!(hook("/nowhere/s", true), json!({}));
    // Somebody who listens and proves nothing is another matter.
    let listener = std::os::unix::net::UnixListener::bind(env.path("s")).unwrap();
    let answering = std::thread::spawn(move || drop(listener.accept().unwrap()));
    refusal(&hook(env.path("s").to_str().unwrap(), true));
    answering.join().unwrap();
}

#[test]
fn a_hook_that_is_written_by_hand_says_the_same() {
    let env = TestEnv::new();
    refusing(&env, "*--force*");
    let door = Door::open(env);
    let home = door.env.path("data/pintle");
    let nobody = door.env.write("passwd", "");
    // Whichever way the home is said, it is that of every other command.
    let asking = |say: &dyn Fn(&mut Command), command: &str, event: &[&str]| {
        // Whoever runs this may have a guard of their own.
        let mut hook = door.env.command("unshare");
        hook.args(["--map-root-user", "--mount", "sh", "-c", AMONG, "sh"]).arg(&nobody).arg(PINTLE);
        say(&mut hook);
        hook.args(["hook", "--host", "claude"]).args(event);
        TestEnv::output(&mut hook, &door.shell("toolu_1", command).to_string())
    };
    let says: [&dyn Fn(&mut Command); 3] = [
        &|hook: &mut Command| {
            hook.arg("--home").arg(&home);
        },
        &|hook: &mut Command| {
            hook.env("PINTLE_HOME", &home).env_remove("XDG_DATA_HOME");
        },
        &|_: &mut Command| {},
    ];
    for command in ["git push --force", "git push"] {
        let expected = door.ask(super::door::LONG, &door.shell("toolu_1", command)).wait_with_output().unwrap();
        for say in says {
            for event in [&["--event", "PreToolUse"][..], &[]] {
                let output = asking(say, command, event);
                assert_eq!((&output.stdout, output.status.code()), (&expected.stdout, Some(0)), "{output:?}");
            }
        }
    }
    // A home in which no daemon was ever started has none that could answer.
    let elsewhere = door.env.path("elsewhere");
    let moved = |hook: &mut Command| {
        hook.env("PINTLE_HOME", &elsewhere);
    };
    refusal(&document(&asking(&moved, "git push", &[])));
    // Without a name of the event only the exit code is left, which means no.
    let mut hook = door.env.command(PINTLE);
    let output = TestEnv::output(hook.args(["hook", "--host", "copilot"]), "{}");
    assert!(output.status.code() == Some(2) && output.stdout.is_empty() && !output.stderr.is_empty(), "{output:?}");
}

#[test]
fn an_installation_at_some_events_says_what_it_does_not_hold() {
    let env = with_agents();
    let install = |events: &str| pintle(&env, &["guard", "install", "--host", "claude", "--yes", "--events", events]);
    let seen = install("PreToolUse,Nonsense");
    assert!(seen.code == Some(2) && seen.err.contains("no event `Nonsense`"), "{seen}");
    assert_eq!(install("PreToolUse").code, Some(0));
    let status = || pintle(&env, &["guard", "status", "--host", "claude"]);
    let seen = status();
    assert!(seen.code == Some(5) && seen.out.contains("`UserPromptSubmit`"), "{seen}");
    let stops = "UserPromptSubmit,PreToolUse,PermissionRequest,SubagentStop,Stop,ConfigChange";
    assert_eq!(install(stops).code, Some(0));
    let seen = status();
    assert!(seen.code == Some(0) && seen.out.contains("it hears nothing of `SessionStart`"), "{seen}");
    let seen = pintle(&env, &["guard", "install", "--host", "pi", "--yes", "--events", "tool_call"]);
    assert!(seen.code == Some(2) && seen.err.contains("all of its events"), "{seen}");
    assert_eq!(pintle(&env, &["guard", "uninstall", "--host", "claude", "--yes"]).code, Some(0));
    assert!(!env.path("home/.claude/settings.json").exists());
}

#[test]
fn a_hook_of_clines_person_runs_behind_ours_and_comes_back() {
    let env = with_agents();
    let theirs = "#!/bin/sh\ncat >/dev/null\nprintf '{\"context\": \"theirs\"}\\n'\n";
    let file = env.write("home/.cline/hooks/PreToolUse", theirs);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    refusing(&env, "*--force*");
    for _ in 0..2 {
        let seen = pintle(&env, &["guard", "install", "--host", "cline", "--yes"]);
        assert_eq!(seen.code, Some(0), "{seen}");
    }
    let status = pintle(&env, &["guard", "status", "--host", "cline"]);
    assert_eq!(status.code, Some(0), "{status}");
    let told = |command: &str| {
        let payload = json!({
            "hookName": "tool_call", "taskId": "t", "workspaceRoots": [env.path("here")],
            "tool_call": {"id": "c1", "name": "run_commands", "input": {"commands": [command]}},
        });
        document(&TestEnv::output(&mut env.command(&file), &payload.to_string()))
    };
    let refused = told("git push --force");
    assert!(refused["cancel"] == json!(true) && refused.to_string().contains("history is not ours"), "{refused}");
    assert_eq!(told("git push"), json!({"context": "theirs"}));
    let folder = env.path("data/pintle/guard");
    end_daemon(&folder);
    let seen = pintle(&env, &["guard", "uninstall", "--host", "cline", "--yes"]);
    assert_eq!(seen.code, Some(0), "{seen}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), theirs);
    assert_eq!(std::fs::read_dir(file.parent().unwrap()).unwrap().count(), 1);
}

#[test]
fn agents_change_their_settings_only_while_a_person_lets_them() {
    let env = TestEnv::new();
    let door = Door::with_self_edit(env);
    let settings = door.env.path("home/.claude/settings.json");
    let write = |path: &Path| {
        let input = json!({"file_path": path, "content": "{}"});
        door.told(
            &door.event("PreToolUse", &json!({"tool_name": "Write", "tool_use_id": "toolu_1", "tool_input": input})),
        )
    };
    assert_eq!(write(&settings), json!({}));
    let why = door.env.raw(&["why", "claude:s", "--json"]);
    assert!(why.contains("allowed by --allow-self-edit"), "{why}");
    // What is in use stays, and so does what answers for a person.
    refusal(&write(&door.folder().join("key")));
    refusal(&door.told(&door.shell("toolu_2", "pintle approvals approve 0199")));
    let status = door.env.pintle(&["guard", "status", "--host", "claude"]);
    assert!(status.out.contains("--allow-self-edit"), "{status}");
}
