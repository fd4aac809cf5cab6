//! What only a person may do, and no agent under guard.

use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use serde_json::json;

use super::door::{Door, document, refusal, refusing, wait_for};
use crate::env::{ON_TERMINAL, PINTLE, Seen, TestEnv};

/// A coding agent in some lines: it runs its hook, then a command on a terminal, as a tool would.
const HOST: &str = "
import json, subprocess, sys
hook, payload, rest = sys.argv[1].split('\\t'), sys.argv[2], sys.argv[3:]
told = subprocess.run(hook, input=payload.encode(), stdout=subprocess.PIPE).stdout
sys.exit(subprocess.run(rest).returncode)
";

/// What comes of `rest` below an agent under guard.
fn below(door: &Door, rest: &[&str]) -> Seen {
    let payload = door.event("SessionStart", &json!({"source": "startup"})).to_string();
    let hook = door.words("claude", "SessionStart").join("\t");
    let mut host = door.env.command("python3");
    host.args(["-c", HOST, &hook, &payload]).args(rest);
    door.env.run(&mut host, "")
}

#[test]
fn an_agent_under_guard_cannot_answer_for_itself() {
    let env = TestEnv::new();
    env.user_config("[agents.main]\nask = ['exec']\n");
    let door = Door::open(env);
    let seen = below(&door, &["python3", "-c", ON_TERMINAL, "", PINTLE, "approvals", "approve", "0"]);
    assert_eq!(seen.code, Some(5), "{seen}");
    assert!(seen.out.contains("`claude` that is under guard"), "{seen}");
    // A person beside it may: there is only no such approval.
    let seen = door.env.on_terminal("", &["approvals", "approve", "0"]);
    assert_eq!(seen.code, Some(2), "{seen}");
}

#[test]
fn a_hook_that_a_person_tries_makes_no_agent_of_the_terminal() {
    let door = Door::open(TestEnv::new());
    let payload = door.env.write("payload.json", &door.shell("toolu_1", "ls").to_string());
    let hook = door.words("claude", "PreToolUse").join(" ");
    let line = format!("{hook} <{}; {PINTLE} approvals approve 0", payload.display());
    let mut terminal = door.env.command("python3");
    terminal.args(["-c", ON_TERMINAL, "", "eval", &line]);
    let seen = door.env.run(&mut terminal, "");
    // There is only no such approval.
    assert!(seen.code == Some(2) && seen.out.starts_with("{}"), "{seen}");
    let why = wait_for(|| {
        let seen = door.env.pintle(&["why", "-vv", "claude:s"]);
        seen.out.contains("door: hook").then_some(seen)
    });
    let text = why.out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("started by no process of the agent"), "{why}");
}

#[test]
fn an_agent_under_guard_gives_no_commands_of_a_person() {
    let env = TestEnv::new();
    env.found_config("[hooks.processes.x]\nenabled = true\ncommand = ['true']\nintercept = ['before_tool']\n");
    let rule = "[[hook]]\nname = \"x\"\nevent = \"stop\"\nhandler_type = \"script\"\nscope = \"tenant\"\n\
                [hook.config]\nsource = \"function handle(event) { return { decision: 'allow' }; }\"\n";
    env.write("here/rules.toml", rule);
    let door = Door::open(env);
    for command in [
        "trust",
        "hooks add rules.toml",
        "hooks set x priority=1",
        "hooks enable x",
        "hooks disable x",
        "hooks remove x",
        "hooks reset x",
        "keys create x --scope operator.admin --owner me",
        "keys revoke x",
        "members add x --role admin",
        "members set x --role admin",
        "members enable x",
        "tenants create x",
        "tenants enable x",
        "webhooks retry x",
        "serve link",
        "store accept",
        "secrets rotate",
        "budget set 1",
        "mcp accept x",
    ] {
        let words = ["python3", "-c", ON_TERMINAL, "y\n", PINTLE];
        let words: Vec<&str> = words.into_iter().chain(command.split(' ')).collect();
        let seen = below(&door, &words);
        assert!(seen.code == Some(5) && seen.out.contains("`claude` that is under guard"), "{command}: {seen}");
    }
}

#[test]
fn an_agent_under_guard_takes_no_hooks_out() {
    let env = TestEnv::new();
    let door = Door::open(env);
    for command in ["install", "uninstall"] {
        // No terminal, and nobody is asked.
        let seen = below(&door, &[PINTLE, "guard", command, "--host", "claude", "--yes"]);
        assert!(seen.code == Some(5) && seen.err.contains("`claude` that is under guard"), "{command}: {seen}");
    }
}

/// Asks the port of the console for something that only who is let in gets.
const KNOCK: &str = "
import http.client, sys
there = http.client.HTTPConnection(sys.argv[1])
there.request('GET', '/v1/models')
answer = there.getresponse()
print(answer.status, answer.read().decode())
";

/// What `asking` makes of the words that ask the port of a console of `env`.
fn at_a_console<T>(env: &TestEnv, asking: impl FnOnce(&[&str]) -> T) -> T {
    let mut command = env.command(PINTLE);
    command
        .args(["serve", "--listen", "127.0.0.1:0"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let mut server = command.spawn().unwrap();
    let mut lines = BufReader::new(server.stderr.take().unwrap()).lines().map_while(Result::ok);
    let line = lines.find(|line| line.contains("listening at http")).expect("an address");
    let told = asking(&["python3", "-c", KNOCK, line.rsplit('/').next().unwrap()]);
    server.kill().unwrap();
    server.wait().unwrap();
    told
}

/// What somebody gets who is below no agent.
fn alone(env: &TestEnv, words: &[&str]) -> Seen {
    env.run(env.command(words[0]).args(&words[1..]), "")
}

#[test]
fn an_agent_under_guard_is_not_let_in_by_the_port_of_the_console() {
    let door = Door::open(TestEnv::new());
    at_a_console(&door.env, |knock| {
        let seen = below(&door, knock);
        assert!(seen.out.starts_with("401") && seen.out.contains("needs a key of its own"), "{seen}");
        // A person of this machine is.
        let seen = alone(&door.env, knock);
        assert!(seen.out.starts_with("200"), "{seen}");
    });
}

#[test]
fn where_nobody_knows_the_agents_nobody_is_taken_for_a_person() {
    let env = TestEnv::new();
    let file = env.write("data/pintle/guard/sessions.json", "[{");
    let door = Door::open(env);
    // The daemon guards on, but what it knows says nothing of agents that ran before.
    assert_eq!(door.told(&door.shell("toolu_1", "ls")), json!({}));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "[{");
    let approve = || door.env.on_terminal("", &["approvals", "approve", "0"]);
    let seen = approve();
    assert!(seen.code == Some(5) && seen.out.contains("sessions.json"), "{seen}");
    at_a_console(&door.env, |knock| {
        let seen = alone(&door.env, knock);
        assert!(seen.out.starts_with("401") && seen.out.contains("nobody knows which agents run"), "{seen}");
        std::fs::remove_file(&file).unwrap();
        let seen = alone(&door.env, knock);
        assert!(seen.out.starts_with("200"), "{seen}");
    });
    let seen = approve();
    assert_eq!(seen.code, Some(2), "{seen}");
}

/// A project's settings can set the environment of hooks: nothing there leads to another daemon, or to none.
#[test]
fn no_environment_of_a_hook_leads_elsewhere() {
    let env = TestEnv::new();
    refusing(&env, "*--force*");
    let door = Door::open(env);
    let elsewhere = door.env.path("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let payload = door.shell("toolu_1", "git push --force").to_string();
    for name in [
        "HOME",
        "LD_LIBRARY_PATH",
        "LD_PRELOAD",
        "PATH",
        "PINTLE_HOME",
        "PINTLE_SOCKET",
        "TMPDIR",
        "XDG_CONFIG_HOME",
        "XDG_DATA_HOME",
        "XDG_RUNTIME_DIR",
    ] {
        let words = door.words("claude", "PreToolUse");
        let mut hook = door.env.command(&words[0]);
        hook.args(&words[1..]).env(name, &elsewhere);
        let told = document(&TestEnv::output(&mut hook, &payload));
        assert!(refusal(&told).contains("history is not ours"), "{name}: {told}");
    }
}
