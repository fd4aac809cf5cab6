//! `pintle hooks lint`.

use super::env::TestEnv;

#[test]
fn a_good_configuration_has_no_mistakes() {
    let env = TestEnv::new();
    let seen = [env.pintle(&["hooks", "lint"]), env.pintle(&["hooks", "lint", "--json"])];
    insta::assert_snapshot!(seen.map(|seen| seen.to_string()).concat(), @"
    exit 0
    --- err
    no mistakes

    exit 0
    --- out
    []
    ");
}

#[test]
fn mistakes_and_suspicions_stand_in_the_order_of_the_file() {
    let env = TestEnv::new();
    env.write("config/pintle/there.py", "");
    env.user_config(
        "[hooks.processes.good]\nenabled = true\ncommand = ['sh', '-c', 'true']\nintercept = ['before_tool']\nmatcher = '_file$'\n\
         [hooks.processes.typo]\nenabled = true\ncommand = ['sh']\nintercept = ['before_tool']\ntimout_ms = 5\n\
         [hooks.processes.blind]\nenabled = true\ncommand = ['sh', 'there.py']\nintercept = ['before_tool']\nmatcher = '^writefile$'\n\
         [hooks.processes.gone]\nenabled = true\ncommand = ['no-such-program']\nintercept = ['before_tool']\n\
         [hooks.processes.lost]\nenabled = true\ncommand = ['sh', 'guard.py']\nintercept = ['before_tool']\n\
         [hooks.processes.nowhere]\nenabled = true\ncommand = ['sh']\ndir = 'nowhere'\nintercept = ['before_tool']\n\
         [hooks.processes.first]\nenabled = true\ncommand = ['sh']\nintercept = ['before_tool']\nmatcher = '^exec$'\nrespond = 'exec'\npriority = -1\n\
         [hooks.processes.owner]\nenabled = true\ncommand = ['sh']\nintercept = ['before_llm', 'before_tool']\nmatcher = '^weather$'\n\
         [agents.main]\nmodel = 'nobody/m'\n",
    );
    let seen = env.pintle(&["hooks", "lint"]);
    insta::assert_snapshot!(seen, @r#"
    exit 2
    --- out
    [root]/config/pintle/pintle.toml:10:1: hooks.processes.typo.timout_ms: unknown key "hooks.processes.typo.timout_ms"; did you mean "timeout_ms"?
    [root]/config/pintle/pintle.toml:11:18: hooks.processes.blind.matcher: `^writefile$` matches no tool; did you mean "write_file"?
    [root]/config/pintle/pintle.toml:16:18: hooks.processes.gone.command: the program `no-such-program` was not found through PATH
    [root]/config/pintle/pintle.toml:20:18: hooks.processes.lost.command: the file `guard.py` does not exist in [root]/config/pintle
    [root]/config/pintle/pintle.toml:24:18: hooks.processes.nowhere.dir: the folder [root]/config/pintle/nowhere does not exist
    [root]/config/pintle/pintle.toml:29:18: hooks.processes.first.respond: it may answer for a tool before hook "gone", which also matches it, is asked
    [root]/config/pintle/pintle.toml:29:18: hooks.processes.first.respond: it may answer for a tool before hook "lost", which also matches it, is asked
    [root]/config/pintle/pintle.toml:29:18: hooks.processes.first.respond: it may answer for a tool before hook "nowhere", which also matches it, is asked
    [root]/config/pintle/pintle.toml:42:9: agents.main.model: there is no provider "nobody", expected PROVIDER/MODEL
    "#);
}

#[test]
fn what_nobody_accepted_is_looked_at_too_and_nothing_of_it_runs() {
    let env = TestEnv::new();
    env.found_config(
        "[hooks.processes.a]\nenabled = true\ncommand = ['sh', '-c', 'touch ran']\nintercept = ['before_tool']\nmatcher = 'exce'\n\
         [hooks.processes.b]\nenabled = true\ncommand = ['sh']\nintercept = ['befor_tool']\n",
    );
    let seen = env.pintle(&["hooks", "lint", "--json"]);
    insta::assert_snapshot!(seen, @r#"
    exit 2
    --- out
    [
      {
        "place": {
          "file": "[root]/here/pintle.toml",
          "line": 1,
          "column": 18
        },
        "path": "hooks.processes.a.matcher",
        "message": "`exce` matches no tool",
        "nearest": "exec",
        "guard": true
      },
      {
        "place": {
          "file": "[root]/here/pintle.toml",
          "line": 9,
          "column": 14
        },
        "path": "hooks.processes.b.intercept.0",
        "message": "unsupported intercept \"befor_tool\"",
        "nearest": "before_tool",
        "guard": true
      }
    ]
    "#);
    assert!(!env.path("here/ran").exists());
}
