//! `pintle hooks list` and `show`.

use super::env::TestEnv;

#[test]
fn without_hooks_the_command_that_writes_one_is_whole() {
    let env = TestEnv::new();
    let seen = [env.pintle(&["hooks", "list"]), env.pintle(&["hooks", "show", "nope"])];
    insta::assert_snapshot!(seen.map(|seen| seen.to_string()).concat(), @r#"
    exit 0
    --- out
    user_prompt_submit
      1. pii-redactor  rule  priority 900  off, script, global, [time], version 1  builtin
    pre_tool_use
      1. pii-redactor  rule  priority 900  off, script, global, [time], version 1  builtin

    --- err
    no hooks but those that are shipped; `pintle hooks new NAME --lang python` writes a first one, `pintle hooks add --starter` adds the starter guards

    exit 2
    --- err
    error: there is no hook "nope"
      hint: the hooks are pii-redactor
    "#);
}

#[test]
fn hooks_that_act_nowhere_are_listed_and_no_name_moves_the_terminal() {
    let env = TestEnv::new();
    env.user_config(
        "[hooks.processes.\"no\\u001b[2J\"]\nenabled = true\ncommand = ['sh']\nintercept = ['before_tool']\n\
         [hooks.processes.off]\ncommand = ['sh']\n\
         [hooks.processes.bad]\nenabled = true\ncommand = 5\n",
    );
    let seen = [env.pintle(&["hooks", "list"]), env.pintle(&["hooks", "show", "nope"])];
    insta::assert_snapshot!(seen.map(|seen| seen.to_string()).concat(), @r#"
    exit 0
    --- out
    user_prompt_submit
      1. pii-redactor  rule     priority 900  off, script, global, [time], version 1  builtin
    before_tool
      1. no\u{1b}[2J   process  priority 0    unproven: has not answered yet, [time]  [root]/config/pintle/pintle.toml:1:18
    pre_tool_use
      1. pii-redactor  rule     priority 900  off, script, global, [time], version 1  builtin
    after_tool
      1. no\u{1b}[2J   process  priority 0    unproven: has not answered yet, [time], paired  [root]/config/pintle/pintle.toml:1:18
    without a checkpoint
      1. bad           process  priority 0    broken: its configuration is wrong: [root]/config/pintle/pintle.toml:9:11: hooks.processes.bad.command: expected a list, got 5  [root]/config/pintle/pintle.toml:7:18
      2. off           process  priority 0    disabled  [root]/config/pintle/pintle.toml:5:18

    --- err
    warning: [root]/config/pintle/pintle.toml:9:11: hooks.processes.bad.command: expected a list, got 5

    exit 2
    --- err
    error: there is no hook "nope"
      hint: the hooks are no\u{1b}[2J, off, bad, pii-redactor
    "#);
    let json: pintle_domain::json::Value = serde_json::from_str(&env.pintle(&["hooks", "list", "--json"]).out).unwrap();
    let last = json.as_array().unwrap().last().unwrap();
    assert_eq!(
        (&last["checkpoint"], last["hooks"].as_array().map(Vec::len)),
        (&pintle_domain::json::Value::Null, Some(2))
    );
}
