//! `pintle doctor`.

use super::env::TestEnv;

/// A hook that answers everything with `{}`.
const OPEN: &str = r#"while read -r line; do id=${line#*\"id\":}; echo "{\"id\":${id%%,*},\"result\":{}}"; done"#;

/// What `doctor` says of everything but the machine.
fn doctor(env: &TestEnv) -> String {
    let seen = env.pintle(&["doctor"]);
    let of_the_machine = |line: &&str| !line.contains(" exec  ");
    let out: Vec<&str> = seen.out.lines().filter(of_the_machine).collect();
    format!("exit {}\n{}\n{}", seen.code.unwrap(), out.join("\n"), seen.err)
}

fn with_hooks(hooks: &str) -> TestEnv {
    let env = TestEnv::new();
    env.write("config/pintle/open.sh", OPEN);
    env.write("config/pintle/reply.json", r#"{"replies": []}"#);
    env.user_config(&format!(
        "[agents.main]\ntools = ['exec', 'read_file']\n[providers.play]\nkind = 'scripted'\nscript = 'reply.json'\n{hooks}"
    ));
    env
}

fn hook(name: &str, entry: &str) -> String {
    format!("[hooks.processes.{name}]\nenabled = true\n{entry}\n")
}

#[test]
fn a_guard_that_answers_the_canary_is_armed() {
    let env = with_hooks(
        &[
            hook("guard", "command = ['sh', 'open.sh']\nintercept = ['before_tool']\nmatcher = '^exec$'"),
            hook("both", "command = ['sh', 'open.sh']\nintercept = ['before_tool', 'approve_tool']"),
            hook("words", "command = ['sh', 'open.sh']\nintercept = ['before_llm']"),
            hook("after", "command = ['sh', 'open.sh']\nintercept = ['after_tool']"),
            "[hooks.processes.off]\ncommand = ['sh']\nintercept = ['before_tool']\n".to_owned(),
        ]
        .concat(),
    );
    insta::assert_snapshot!(doctor(&env), @"");
    // What doctor wrote is evidence, and marked as a test: it never is the newest turn.
    assert!(env.path("data/pintle/pintle.db").is_file());
}

#[test]
fn a_guard_is_unproven_at_the_step_that_failed() {
    let env = with_hooks(
        &[
            hook("gone", "command = ['no-such-guard']\nintercept = ['before_tool']"),
            hook("rude", "command = ['sh', '-c', 'exit 3']\nintercept = ['before_tool']"),
            hook("mute", "command = ['sh', '-c', 'cat >/dev/null']\nintercept = ['approve_tool']\nstart_timeout_ms = 50"),
            hook("slow", "command = ['sh', '-c', 'read -r l; echo \"{\\\"id\\\":1}\"; cat >/dev/null']\nintercept = ['before_tool']\ntimeout_ms = 50"),
            hook("odd", "command = ['sh', '-c', 'read -r l; echo \"{\\\"id\\\":1}\"; read -r l; echo \"{\\\"id\\\":2,\\\"result\\\":{\\\"action\\\":\\\"deny\\\"}}\"; cat >/dev/null']\nintercept = ['before_tool']"),
            hook("blind", "command = ['sh', 'open.sh']\nintercept = ['before_tool']\nmatcher = 'writefile'"),
            hook("idle", "command = ['sh', 'open.sh']\nintercept = ['before_tool']\nmatcher = '^web_fetch$'"),
            hook("bad", "command = ['sh', 'open.sh']\nintercept = ['before_tol']"),
        ]
        .concat(),
    );
    insta::assert_snapshot!(doctor(&env), @"");
}

#[test]
fn a_found_guard_is_untrusted() {
    let env = with_hooks("");
    env.found_config(
        "[hooks.processes.g]\nenabled = true\ncommand = ['sh', '-c', 'touch ran']\nintercept = ['before_tool']\n",
    );
    insta::assert_snapshot!(doctor(&env), @"");
    assert!(!env.path("work/ran").exists());
}

#[test]
fn what_is_no_guard_fails_with_another_code() {
    let env = with_hooks(&hook("words", "command = ['no-such-program']\nintercept = ['before_llm']"));
    env.write("config/pintle/reply.json", "no script");
    env.write("data/pintle", "a file where the home should be");
    insta::assert_snapshot!(doctor(&env), @"");
}

#[test]
fn json_counts_the_guards() {
    let env = with_hooks(&hook("guard", "command = ['no-such-guard']\nintercept = ['before_tool']"));
    let seen = env.pintle(&["doctor", "--json"]);
    let found: serde_json::Value = serde_json::from_str(&seen.out).unwrap();
    assert_eq!(seen.code, Some(5));
    assert_eq!(found["guards"], serde_json::json!({"armed": 0, "total": 1}));
    let guard = found["checks"].as_array().unwrap().iter().find(|check| check["what"] == "guard").unwrap();
    assert_eq!((&guard["name"], &guard["state"], &guard["step"]), (&"guard".into(), &"failed".into(), &"spawn".into()));
}
