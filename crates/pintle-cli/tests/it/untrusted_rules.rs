//! Rules that no row stands for: nobody accepted them, or nobody can read them. And rows that are about nobody.

use std::process::Command;

use super::env::{PINTLE, TestEnv};

const LISTS: &str = r#"{"tool_calls": [{"name": "LS", "arguments": {"path": "."}}]}"#;
const DONE: &str = r#"{"text": ["Done."]}"#;

/// A rule of a stranger that refuses every call.
const GUARD: &str = "[[hook]]\nname = 'guard'\nevent = 'pre_tool_use'\nhandler_type = 'script'\nscope = 'tenant'\n\
                     config.source = 'function handle(event) { return {decision: \"block\"}; }'\n\
                     [[hook]]\nname = 'sees'\nevent = 'stop'\nhandler_type = 'command'\nscope = 'tenant'\n\
                     config.command = 'touch seen'\n";

/// A model that lists the folder once, and a configuration in the working directory that brings rules.
fn cloned(rules: &str) -> TestEnv {
    let env = TestEnv::new();
    env.write("config/pintle/replies.json", &format!("{{\"replies\": [{LISTS}, {DONE}]}}"));
    env.user_config(
        "[providers.play]\nkind = 'scripted'\nscript = 'replies.json'\n[agents.main]\nmodel = 'play/any'\n",
    );
    env.found_config("[agent_hooks]\ndir = 'hooks.d'\n");
    env.write("here/hooks.d/rules.toml", rules);
    env
}

#[test]
fn a_rule_that_nobody_accepted_is_recorded_at_its_events() {
    let env = cloned(GUARD);
    let seen = env.pintle(&["run", "--quiet", "hello"]);
    assert_eq!((seen.code, seen.out.as_str()), (Some(0), "Done.\n"), "{seen}");
    assert!(!env.path("here/seen").exists(), "nothing of it runs");
    let why = env.pintle(&["why", "--tool", "list_dir"]);
    insta::assert_snapshot!(why, @r#"
    exit 0
    --- out
    turn of main  [at]  session cli:[id], turn [id]

    pre_tool_use list_dir  continue  round 1, event [id]
      guard              rule     skipped: untrusted

    approve_tool list_dir  cleared  round 1, event [id]
      arguments {"path":"."}
      permit sha256 [digest]
    "#);
    let why = env.pintle(&["why", "-vv"]);
    assert!(why.out.contains("sees               rule     skipped: untrusted"), "{why}");
    let strict = env.pintle(&["run", "--quiet", "--strict", "hello"]);
    assert!(strict.code == Some(5) && strict.err.contains("guards that cannot work: guard (untrusted)"), "{strict}");
    let doctor = env.pintle(&["doctor"]);
    let said = "unproven at trust: it has not been accepted; see `pintle trust`";
    assert!(doctor.code == Some(5) && doctor.out.contains(said) && doctor.out.contains("armed 0/1"), "{doctor}");

    assert_eq!(env.on_terminal("y\n", &["trust"]).code, Some(0));
    assert_eq!(env.pintle(&["run", "--quiet", "hello"]).out, "Done.\n");
    let why = env.pintle(&["why", "--tool", "list_dir"]);
    assert!(why.out.contains("pre_tool_use list_dir  deny") && !why.out.contains("untrusted"), "{why}");
}

#[test]
fn a_rule_that_no_row_stands_for_can_be_looked_at() {
    let env = cloned(GUARD);
    let listed = env.pintle(&["hooks", "list"]);
    assert!(listed.out.contains("guard") && listed.out.contains("it has not been accepted"), "{listed}");
    let seen = [env.pintle(&["hooks", "show", "guard"]), env.pintle(&["hooks", "test", "guard"])];
    insta::assert_snapshot!(seen.map(|seen| seen.to_string()).concat(), @r#"
    exit 0
    --- out
    hook             guard
    family           rule
    origin           file:rules.toml
    state            untrusted
    priority         0
    health           untrusted: it has not been accepted; see `pintle trust`
    at pre_tool_use  gate, [time], on failure block

    exit 5
    --- err
    error: hook "guard" is untrusted (file:rules.toml)
      hint: `pintle trust` shows what it would run, and accepts it
    "#);

    let env = TestEnv::new();
    env.user_config("[agents.main]\n[agent_hooks]\ndir = 'hooks.d'\n");
    env.write("config/pintle/hooks.d/rules.toml", &GUARD.replace("'script'", "'skript'"));
    let seen = [
        env.pintle(&["hooks", "show", "guard"]),
        env.pintle(&["hooks", "test", "guard"]),
        env.pintle(&["hooks", "show", "gaurd"]),
    ];
    insta::assert_snapshot!(seen.map(|seen| seen.to_string()).concat(), @r#"
    exit 0
    --- out
    hook             guard
    family           rule
    origin           file:rules.toml
    state            broken
    health           broken: is unavailable: [root]/config/pintle/hooks.d/rules.toml:1:1: hook.0: hook: skript handler not allowed: hook.unknown_handler_type (did you mean "script"?)
    at pre_tool_use  gate, [time], on failure block

    --- err
    warning: [root]/config/pintle/hooks.d/rules.toml:1:1: hook.0: hook: skript handler not allowed: hook.unknown_handler_type (did you mean "script"?)

    exit 1
    --- err
    warning: [root]/config/pintle/hooks.d/rules.toml:1:1: hook.0: hook: skript handler not allowed: hook.unknown_handler_type (did you mean "script"?)
    error: hook "guard" is unavailable: [root]/config/pintle/hooks.d/rules.toml:1:1: hook.0: hook: skript handler not allowed: hook.unknown_handler_type (did you mean "script"?) (file:rules.toml)
      hint: `pintle hooks lint` says where; `pintle hooks test --file FILE` tests what stands in a file

    exit 2
    --- err
    warning: [root]/config/pintle/hooks.d/rules.toml:1:1: hook.0: hook: skript handler not allowed: hook.unknown_handler_type (did you mean "script"?)
    error: there is no hook "gaurd"; did you mean "guard"?
    "#);
    let json: pintle_domain::json::Value =
        serde_json::from_str(&env.raw(&["hooks", "show", "guard", "--json"])).unwrap();
    assert_eq!((&json["state"], &json["priority"]), (&"broken".into(), &pintle_domain::json::Value::Null));
}

#[test]
fn a_pipe_in_a_folder_of_rules_is_not_waited_for() {
    let env = cloned(GUARD);
    for folder in ["here/hooks.d", "config/pintle/hooks.d"] {
        std::fs::create_dir_all(env.path(folder)).unwrap();
        assert!(Command::new("mkfifo").arg(env.path(folder).join("pipe.toml")).status().unwrap().success());
    }
    let seen = env.pintle(&["hooks", "list"]);
    assert!(seen.code == Some(0) && seen.out.contains("pipe.toml"), "{seen}");
    // The own folder counts, so what cannot be read keeps every gate shut.
    env.found_config("");
    env.user_config("[agents.main]\n[agent_hooks]\ndir = 'hooks.d'\n");
    let seen = env.pintle(&["hooks", "list"]);
    assert!(seen.err.contains("pipe.toml:1:1: is not a regular file"), "{seen}");
}

#[test]
fn a_rule_that_is_about_no_agent_is_switched_off_and_is_nobodys() {
    let env = TestEnv::new();
    env.user_config("[agents.main]\n");
    let rule = env.write("here/rule.toml", &GUARD.replace("'tenant'", "'agent'\nagent_ids = ['main']"));
    let seen = env.on_terminal("", &["hooks", "add", rule.to_str().unwrap()]);
    assert_eq!(seen.code, Some(0), "{seen}");
    let changed = env.command("python3").args(["-c", LEFT_ALONE]).arg(env.path("data/pintle/pintle.db")).status();
    assert!(changed.unwrap().success());
    let seen = env.pintle(&["hooks", "list"]);
    assert!(seen.err.contains("the stored rule `guard` was changed by something other than Pintle"), "{seen}");
    assert_eq!(env.on_terminal("", &["store", "accept"]).code, Some(0));
    let seen = env.pintle(&["hooks", "list"]);
    assert!(seen.err.contains("1 hook of scope agent was switched off: its agents are gone"), "{seen}");
    assert!(seen.out.contains("off: no_agents"), "{seen}");
    let again = env.pintle(&["hooks", "list"]);
    assert!(!again.err.contains("switched off") && again.out.contains("off: no_agents"), "{again}");
    let seen = env.pintle(&["doctor"]);
    assert!(seen.out.contains("disabled: the agents that it was about are gone"), "{seen}");
    let seen = env.on_terminal("", &["hooks", "enable", "guard"]);
    assert!(seen.code == Some(2) && seen.out.contains("agent scope requires at least one agent_id"), "{seen}");
    assert_eq!(env.on_terminal("", &["hooks", "set", "guard", "agent_ids=main"]).code, Some(0));
    assert_eq!(env.on_terminal("", &["hooks", "enable", "guard"]).code, Some(0));
    assert!(!env.pintle(&["hooks", "list"]).out.contains("no_agents\n"));
}

#[test]
fn a_rule_about_an_agent_that_is_not_configured_waits_for_it_and_is_nobody_elses() {
    let env = TestEnv::new();
    env.user_config("[agents.main]\n[agents.helper]\n");
    let rule = env.write("here/rule.toml", &GUARD.replace("'tenant'", "'agent'\nagent_ids = ['helper']"));
    assert_eq!(env.on_terminal("", &["hooks", "add", rule.to_str().unwrap()]).code, Some(0));
    assert!(env.pintle(&["hooks", "list"]).out.contains("agent helper,"));
    env.user_config("[agents.main]\n");
    let seen = env.pintle(&["hooks", "list"]);
    assert!(seen.out.contains("on, ") && seen.out.contains("(not configured),"), "{seen}");
    let seen = env.pintle(&["doctor"]);
    assert!(seen.out.contains("none of the agents that it is about is configured"), "{seen}");
    let seen = env.on_terminal("", &["hooks", "set", "guard", "priority=3"]);
    assert!(seen.code == Some(2) && seen.out.contains("agent not found: "), "{seen}");
    env.user_config("[agents.main]\n[agents.helper]\n");
    assert!(env.pintle(&["hooks", "list"]).out.contains("agent helper,"));
    assert_eq!(env.on_terminal("", &["hooks", "set", "guard", "priority=3"]).code, Some(0));
}

#[test]
fn standard_switches_commands_off_once() {
    let env = TestEnv::new();
    env.user_config("[agents.main]\n");
    let rule = "[[hook]]\nname = 'runs'\nevent = 'pre_tool_use'\nhandler_type = 'command'\nscope = 'tenant'\n\
                config.command = 'true'\n";
    let rule = env.write("here/rule.toml", rule);
    assert_eq!(env.on_terminal("", &["hooks", "add", rule.to_str().unwrap()]).code, Some(0));
    let standard = || env.run(env.command(PINTLE).env("PINTLE_EDITION", "standard").args(["hooks", "list"]), "");
    let seen = standard();
    assert!(seen.err.contains("1 command hook was switched off: this is edition standard"), "{seen}");
    assert!(seen.out.contains("off: edition, command"), "{seen}");
    let again = standard();
    assert!(!again.err.contains("switched off") && again.out.contains("off: edition, command"), "{again}");
    let seen = env.pintle(&["hooks", "list"]);
    assert!(seen.out.contains("off: edition, command"), "whoever wants it back says so: {seen}");
    assert_eq!(env.on_terminal("", &["hooks", "enable", "runs"]).code, Some(0));
    assert!(env.pintle(&["hooks", "list"]).out.contains("on, command"));
}

#[test]
fn rules_that_cannot_be_read_open_nothing() {
    let env = TestEnv::new();
    env.write("config/pintle/replies.json", &format!("{{\"replies\": [{LISTS}, {DONE}]}}"));
    env.user_config(
        "[providers.play]\nkind = 'scripted'\nscript = 'replies.json'\n[agents.main]\nmodel = 'play/any'\n",
    );
    let rule = env.write("here/rule.toml", GUARD);
    assert_eq!(env.on_terminal("", &["hooks", "add", rule.to_str().unwrap()]).code, Some(0));
    let changed = env.command("python3").args(["-c", TORN]).arg(env.path("data/pintle/pintle.db")).status();
    assert!(changed.unwrap().success());
    let seen = env.pintle(&["run", "go"]);
    // The prompt passes: no rule is about it. The calls do not, and it is said which rule it is, and what to do.
    assert_eq!((seen.code, &*seen.out), (Some(0), "Done.\n"), "{seen}");
    for part in [
        "✗ blocked      list_dir",
        "the stored rule `guard` cannot be read: ",
        "what it guards stays shut; fix or delete its row with a tool for databases, then `pintle store accept`",
    ] {
        assert!(seen.err.contains(part), "{seen}");
    }
    let why = env.pintle(&["why", "--denied"]);
    assert!(why.out.contains("guard"), "{why}");
}

/// Writes into one rule what is none of its values, as somebody does who changes the file by hand.
const TORN: &str = "
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute(\"UPDATE agent_hooks SET tripped_at = 'nonsense' WHERE name = 'guard'\")
db.execute(\"UPDATE hook_epoch SET epoch = epoch + 1\")
db.commit()
";

/// Takes the last agent from one rule, as somebody does who deletes agents elsewhere.
const LEFT_ALONE: &str = "
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute(\"UPDATE agent_hooks SET agent_ids = '[]' WHERE name = 'guard'\")
db.execute(\"UPDATE hook_epoch SET epoch = epoch + 1\")
db.commit()
";
