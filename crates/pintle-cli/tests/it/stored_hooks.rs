//! Rules from the command line: added, listed, tested, at work, explained, switched off, removed.

mod adding;
mod changing;
mod files;
mod guide;
mod history;
mod testing;

use pintle_domain::json::Value;

use super::env::{PINTLE, Seen, TestEnv};
use super::run::scripted;

/// A script that refuses a text in a command.
const GUARD: &str = r#"[[hook]]
name = "no-force"
event = "pre_tool_use"
handler_type = "script"
scope = "tenant"
matcher = "^exec$"
priority = 10

[hook.config]
source = '''
function handle(event) {
  const command = event.toolInput.command ?? "";
  if (command.includes("--force")) {
    return { decision: "block", reason: "forced pushes are done by people" };
  }
  return { decision: "allow" };
}
'''
"#;

/// A call that is refused, and a last word.
const PUSHES: &str = r#"
    {"when": {"tool_result": "forced pushes are done by people"}, "text": "Then not."},
    {"tool_calls": [{"name": "bash", "arguments": {"command": "echo git push --force >>ran"}}], "repeat": true}"#;

/// An operator's command, on a terminal.
fn operate(env: &TestEnv, args: &[&str]) -> Seen {
    env.on_terminal("", args)
}

/// Adds the records of `text`, and says what their ids are.
fn add(env: &TestEnv, text: &str) -> Seen {
    let file = env.write("here/rules.toml", text);
    operate(env, &["hooks", "add", file.to_str().unwrap()])
}

/// The rules, in running order, that are no builtins.
fn listed(env: &TestEnv) -> Vec<Value> {
    let chains: Value = serde_json::from_str(&env.raw(&["hooks", "list", "--json"])).unwrap();
    let hooks = chains.as_array().unwrap().iter().flat_map(|chain| chain["hooks"].as_array().unwrap().clone());
    hooks.filter(|hook| hook["family"] == "agent" && hook["origin"] != "builtin").collect()
}

/// The lines of a listing that are about hooks other than builtins.
fn rows(text: &str) -> String {
    text.lines().filter(|line| !line.contains("pii-redactor")).map(|line| format!("{line}\n")).collect()
}

#[test]
fn a_stored_hook_from_its_file_to_its_work() {
    let env = scripted(PUSHES, "tools = ['exec']\n");
    let seen = add(&env, GUARD);
    insta::assert_snapshot!(seen, @"
    exit 0
    --- out
    no-force at pre_tool_use is added
    [id]
    ");
    insta::assert_snapshot!(rows(&env.pintle(&["hooks", "list"]).out), @"
    user_prompt_submit
    pre_tool_use
      2. no-force      rule  priority 10   on, script, tenant, [time], matcher /^exec$/, version 1  cli
    ");
    let push = ["--input", r#"{"command": "git push --force"}"#];
    insta::assert_snapshot!(env.pintle(&[&["hooks", "test", "no-force"][..], &push].concat()), @r#"
    exit 4
    --- out
    block  no-force  "forced pushes are done by people"  [time]
    "#);
    let seen = env.pintle(&["run", "--quiet", "push it"]);
    assert_eq!((seen.code, seen.out.as_str()), (Some(0), "Then not.\n"), "{}", seen.err);
    assert!(!env.path("here/ran").exists(), "a refused call runs nothing");
    let why = env.pintle(&["why", "-v"]).out;
    // How wide the column of times is depends on how long it took.
    let words: Vec<_> = why.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    for line in [
        "pre_tool_use exec deny round 1, event [id]",
        "Hook blocked: pre_tool_use: no-force: forced pushes are done by people",
        "no-force rule deny [time] forced pushes are done by people",
    ] {
        assert!(words.iter().any(|seen| seen == line), "{line:?} in {why}");
    }
    insta::assert_snapshot!(env.pintle(&["hooks", "history", "no-force"]), @"
    exit 0
    --- out
    [at]  block    no-force  pre_tool_use exec    [time]  forced pushes are done by people
    ");
}

#[test]
fn it_is_switched_off_and_on_shown_and_removed() {
    let env = scripted(PUSHES, "tools = ['exec']\n");
    add(&env, GUARD);
    assert_eq!(env.pintle(&["run", "--quiet", "push it"]).out, "Then not.\n");
    assert_eq!(
        operate(&env, &["hooks", "disable", "no-force"]).to_string(),
        "exit 0\n--- out\nno-force ([id]) is off\n\n"
    );
    assert!(env.pintle(&["hooks", "list"]).out.contains("priority 10   off, script, tenant"));
    env.pintle(&["run", "--quiet", "push it"]);
    assert!(env.path("here/ran").exists(), "nobody refuses it any more");
    assert_eq!(operate(&env, &["hooks", "enable", "no-force"]).out, "no-force ([id]) is on\n");
    insta::assert_snapshot!(env.pintle(&["hooks", "show", "no-force"]).out, @r#"
    no-force ([id])
    family           rule
    scope            tenant
    breaker state    closed
    tenant_id        [id]
    event            pre_tool_use
    handler_type     script
    matcher          ^exec$
    timeout_ms       5000
    on_timeout       block
    priority         10
    enabled          true
    version          3
    source           user
    may_rewrite      false
    breaker          all
    on_trip          block
    created_by       cli
    created_at       [at]
    updated_at       [at]
    config.source    function handle(event) {
          const command = event.toolInput.command ?? "";
          if (command.includes("--force")) {
            return { decision: "block", reason: "forced pushes are done by people" };
          }
          return { decision: "allow" };
        }
    changes
      [at]  toggled by cli, version 3: enabled = true
      [at]  toggled by cli, version 2: enabled = false
      [at]  created by cli, version 1
    executions
      [at]  block    no-force  pre_tool_use exec    [time]  forced pushes are done by people
    "#);
    let seen = operate(&env, &["hooks", "remove", "no-force"]);
    assert_eq!(seen.out, "no-force ([id]) is removed; what it did stays in the history\n");
    assert_eq!(listed(&env), Vec::<Value>::new());
    assert!(env.pintle(&["hooks", "history"]).out.contains("block    no-force  pre_tool_use exec"));
}

#[test]
fn only_a_person_manages_hooks() {
    let env = TestEnv::new();
    env.write("here/rules.toml", GUARD);
    let commands: [&[&str]; 7] = [
        &["hooks", "add", "rules.toml"],
        &["hooks", "add", "--starter"],
        &["hooks", "set", "h", "priority=1"],
        &["hooks", "enable", "h"],
        &["hooks", "disable", "h"],
        &["hooks", "remove", "h"],
        &["hooks", "reset", "h"],
    ];
    for args in commands {
        let mut inside = env.command(PINTLE);
        let seen = env.run(inside.args(args).env("PINTLE_INSIDE_EXEC", "1"), "");
        assert_eq!(seen.code, Some(5), "{seen}");
        assert!(seen.err.contains("only a person may do this"), "{seen}");
    }
    assert_eq!(listed(&env), Vec::<Value>::new());
}
