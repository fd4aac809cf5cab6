//! `pintle import picoclaw`, and PicoClaw's whole configuration in the place of one.

use super::env::TestEnv;

const WHOLE: &str = r#"{
  "agents": {"defaults": {"workspace": "~/w", "model_name": "m", "max_tokens": 8192}},
  "model_list": [{"model_name": "m", "model": "openai/m"}],
  "channels": {"telegram": {"enabled": true, "token": "t"}},
  "gateway": {"host": "127.0.0.1", "port": 18790},
  "heartbeat": {"enabled": true},
  "hooks": {"enabled": true, "processes": {
    "review": {"enabled": true, "transport": "stdio", "command": ["sh", "-c", "exec cat"], "intercept": ["before_tool"]}
  }}
}"#;

#[test]
fn the_hooks_are_taken_and_the_rest_is_named() {
    let env = TestEnv::new();
    env.write("here/config.json", WHOLE);
    let seen = env.pintle(&["import", "picoclaw", "config.json"]);
    insta::assert_snapshot!(seen.err, @"
    imported: `hooks`, with 1 under `processes`
    left: agents, model_list, channels, gateway, heartbeat
    save it as pintle.json, look at it with `pintle hooks lint`, and accept it with `pintle trust`
    ");
    env.write("here/pintle.json", &env.raw(&["import", "picoclaw", "config.json"]));
    assert_eq!(env.pintle(&["hooks", "lint"]).err, "no mistakes\n");
    // Hooks that are part of PicoClaw are named, left out, and no success.
    env.write("here/more.json", r#"{"hooks": {"builtins": {"audit_log": {"enabled": true}}, "processes": {}}}"#);
    let more = env.pintle(&["import", "picoclaw", "more.json"]);
    assert!(more.code == Some(1) && more.err.contains("not imported: 1 under `builtins`"), "{more}");
    assert!(!more.out.contains("audit_log"), "{more}");
    // What is of the other program leads to the other command.
    env.write("here/goclaw.json", r#"{"hooks": [{"event": "stop", "handler_type": "command"}]}"#);
    let other = env.pintle(&["import", "picoclaw", "goclaw.json"]);
    assert!(other.code == Some(2) && other.err.contains("`pintle import goclaw goclaw.json`"), "{other}");
    let other = env.pintle(&["import", "goclaw", "config.json", "--dry-run"]);
    assert!(other.code == Some(2) && other.err.contains("`pintle import picoclaw config.json`"), "{other}");
    env.write("here/none.json", "{}");
    let none = env.pintle(&["import", "picoclaw", "none.json"]);
    assert!(none.code == Some(2) && none.err.contains("none.json has no object `hooks`"), "{none}");
}

#[test]
fn a_whole_configuration_of_picoclaw_is_one_line() {
    let env = TestEnv::new();
    env.write("here/config.json", WHOLE);
    let seen = env.pintle(&["-c", "config.json", "hooks", "lint"]);
    assert_eq!((seen.code, seen.out.lines().count()), (Some(2), 1), "{seen}");
    assert!(seen.out.contains("this is a whole configuration of PicoClaw: its `hooks` are read"), "{seen}");
    let hooks = env.pintle(&["-c", "config.json", "hooks", "list"]).out;
    assert!(hooks.contains("review"), "{hooks}");
}
