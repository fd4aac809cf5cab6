//! Mistakes in what a configuration says of agents under guard: refused, and named where somebody looks.

use serde_json::{Value, json};

use super::door::{Door, refusal};
use super::every_agent::{pintle, with_agents};
use crate::env::{PINTLE, TestEnv};

/// What somebody may write, and what has to be said of it.
const MISTAKES: [(&str, &str); 6] = [
    ("[guard]\nrequire = ['shel']\n", "shel"),
    ("[guard]\nrequires = ['shell']\n", "requires"),
    ("[guard.hosts.cluade]\nask = 'deny'\n", "cluade"),
    ("[guard.hosts.claude]\ndeadline = '5 minutes'\n", "5 minutes"),
    ("[guards]\nrequire = ['shell']\n", "guards"),
    ("rules_from = { url = 'https://pintle.example.org', key_file = 'k' }\n", "rules_from"),
];

#[test]
fn what_nobody_can_read_of_agents_under_guard_refuses_each_call() {
    for (text, said) in MISTAKES {
        let env = TestEnv::new();
        env.user_config(text);
        let door = Door::open(env);
        let told = door.told(&door.shell("toolu_1", "ls"));
        assert!(refusal(&told).contains(said), "{text}: {told}");
    }
}

#[test]
fn what_will_be_refused_is_said_by_status_and_doctor() {
    let env = with_agents();
    let seen = pintle(&env, &["guard", "install", "--host", "claude", "--yes"]);
    assert_eq!(seen.code, Some(0), "{seen}");
    for (text, said) in MISTAKES {
        env.user_config(text);
        for command in ["status", "doctor"] {
            let seen = pintle(&env, &["guard", command, "--host", "claude"]);
            let is_said = seen.out.contains("refused") && seen.out.contains(said);
            assert!(seen.code == Some(5) && is_said, "{text}: {seen}");
        }
        let status = pintle(&env, &["guard", "status", "--json"]);
        let told: Value = serde_json::from_str(&status.out).unwrap();
        assert_eq!(told["daemon"]["mistakes"].as_array().unwrap().len(), 1, "{told}");
    }
    env.user_config("no TOML\n");
    let seen = pintle(&env, &["guard", "doctor", "--host", "claude"]);
    assert!(seen.code == Some(5) && seen.out.contains("the configuration does not load"), "{seen}");
    // A mistake elsewhere is named, and refuses nobody.
    env.user_config("[gateways]\nlisten = ['127.0.0.1:0']\n");
    let seen = pintle(&env, &["guard", "status", "--host", "claude"]);
    assert!(seen.code == Some(0) && seen.out.contains("1 mistake in the configuration"), "{seen}");
    assert_eq!(pintle(&env, &["guard", "doctor", "--host", "claude"]).code, Some(0));
}

#[test]
fn a_configuration_that_breaks_under_a_daemon_is_said_as_it_is() {
    let env = with_agents();
    let seen = pintle(&env, &["guard", "install", "--host", "claude", "--yes"]);
    assert_eq!(seen.code, Some(0), "{seen}");
    let door = Door::open(env);
    assert_eq!(door.told(&door.shell("toolu_1", "ls")), json!({}));
    door.env.user_config("no TOML\n");
    assert_eq!(door.told(&door.shell("toolu_2", "ls")), json!({}), "the last good one is kept");
    let seen = pintle(&door.env, &["guard", "status", "--host", "claude"]);
    assert_eq!(seen.code, Some(5), "{seen}");
    let pid = format!("runs (pid {})", door.daemon.id());
    for said in [pid.as_str(), "unless the daemon that runs still has the last good configuration of this folder"] {
        assert!(seen.out.contains(said), "{said}: {seen}");
    }
}

#[test]
fn several_agents_are_named_with_commas_or_all_at_once() {
    let env = with_agents();
    let seen = pintle(&env, &["guard", "doctor", "--host", "all"]);
    assert!(seen.code == Some(2) && seen.err.contains("no agent is under guard"), "{seen}");
    let seen = pintle(&env, &["guard", "install", "--host", "claude,gemini", "--yes"]);
    assert_eq!(seen.code, Some(0), "{seen}");
    let status = |host: &str| pintle(&env, &["guard", "status", "--host", host]).out;
    let pair = status("claude,gemini");
    assert!(pair.contains("Claude Code") && pair.contains("Gemini CLI") && !pair.contains("--host pi"), "{pair}");
    assert!(status("all").contains("guard install --host pi"), "{}", status("all"));
    for host in ["all", "claude,gemini"] {
        let seen = pintle(&env, &["guard", "doctor", "--host", host]);
        assert!(seen.code == Some(0) && seen.out.lines().count() == 2, "{seen}");
    }
}

#[test]
fn of_several_agents_each_that_cannot_be_tried_says_what_to_do() {
    let env = with_agents();
    let seen = pintle(&env, &["guard", "install", "--host", "claude,gemini", "--yes"]);
    assert_eq!(seen.code, Some(0), "{seen}");
    let doctor = |more: &[&str]| {
        let mut command = env.command(PINTLE);
        command.args(["guard", "doctor", "--live", "--host", "claude,gemini"]).args(more);
        env.run(command.env("PATH", env.path("nowhere")), "")
    };
    let seen = doctor(&[]);
    assert!(seen.code == Some(5) && seen.out.lines().count() >= 2, "{seen}");
    for (line, id) in seen.out.lines().zip(["claude", "gemini"]) {
        assert!(line.starts_with(&format!("{id}  unproven: {id} cannot be started")), "{seen}");
        assert!(line.ends_with(&format!("with `--host {id}` alone, name it with --program FILE")), "{seen}");
    }
    let seen = doctor(&["--program", "x"]);
    assert!(seen.code == Some(2) && seen.err.contains("--host HOST --program FILE"), "{seen}");
}

#[test]
fn a_command_of_hooks_is_found_behind_hook() {
    let env = TestEnv::new();
    let seen = env.pintle(&["hook", "list"]);
    assert!(seen.code == Some(2) && seen.err.contains("did you mean `pintle hooks list`?"), "{seen}");
    let seen = env.pintle(&["hook", "nonsense"]);
    assert!(seen.code == Some(2) && !seen.err.contains("did you mean"), "{seen}");
}

#[test]
fn nothing_is_installed_where_the_configuration_does_not_load() {
    let env = with_agents();
    env.user_config("no TOML\n");
    let seen = pintle(&env, &["guard", "install", "--host", "claude", "--yes"]);
    assert!(seen.code == Some(2) && seen.err.contains("pintle.toml:1:"), "{seen}");
    assert!(seen.err.contains("each prompt and call would be refused"), "{seen}");
    let status = pintle(&env, &["guard", "status", "--host", "claude"]);
    assert!(status.out.contains("not installed"), "{status}");
}
