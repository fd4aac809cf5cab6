//! What only a person may do, and no agent under guard.

use serde_json::json;

use super::door::{Door, hook_program};
use crate::env::{ON_TERMINAL, PINTLE, TestEnv};

/// A coding agent in some lines: it runs its hook, then a command on a terminal, as a tool would.
const HOST: &str = "
import json, subprocess, sys
hook, payload, rest = sys.argv[1].split('\\t'), sys.argv[2], sys.argv[3:]
told = subprocess.run(hook, input=payload.encode(), stdout=subprocess.PIPE).stdout
sys.exit(subprocess.run(rest).returncode)
";

#[test]
fn an_agent_under_guard_cannot_answer_for_itself() {
    let env = TestEnv::new();
    env.user_config("[agents.main]\nask = ['exec']\n");
    let door = Door::open(env);
    let payload = door.event("SessionStart", &json!({"source": "startup"})).to_string();
    let folder = door.folder();
    let hook = [
        hook_program().display().to_string(),
        "--host\tclaude\t--event\tSessionStart\t--deadline\t60000".into(),
        format!("--socket\t{}", folder.join("guard.sock").display()),
        format!("--key-file\t{}", folder.join("key").display()),
    ]
    .join("\t");
    let mut host = door.env.command("python3");
    host.args(["-c", HOST, &hook, &payload, "python3", "-c", ON_TERMINAL, "", PINTLE]);
    host.args(["approvals", "approve", "0"]);
    let seen = door.env.run(&mut host, "");
    assert_eq!(seen.code, Some(5), "{seen}");
    assert!(seen.out.contains("`claude` that is under guard"), "{seen}");
    // A person beside it may: there is only no such approval.
    let seen = door.env.on_terminal("", &["approvals", "approve", "0"]);
    assert_eq!(seen.code, Some(2), "{seen}");
}

#[test]
fn an_agent_under_guard_takes_no_hooks_out() {
    let env = TestEnv::new();
    let door = Door::open(env);
    let payload = door.event("SessionStart", &json!({"source": "startup"})).to_string();
    let folder = door.folder();
    let hook = [
        hook_program().display().to_string(),
        "--host\tclaude\t--event\tSessionStart\t--deadline\t60000".into(),
        format!("--socket\t{}", folder.join("guard.sock").display()),
        format!("--key-file\t{}", folder.join("key").display()),
    ]
    .join("\t");
    for command in ["install", "uninstall"] {
        let mut host = door.env.command("python3");
        // No terminal, and nobody is asked.
        host.args(["-c", HOST, &hook, &payload, PINTLE, "guard", command, "--host", "claude", "--yes", "--force"]);
        let seen = door.env.run(&mut host, "");
        assert!(seen.code == Some(5) && seen.err.contains("`claude` that is under guard"), "{command}: {seen}");
    }
}
