//! `pintle hooks lint`.

use super::env::TestEnv;

#[test]
fn a_good_configuration_has_no_mistakes() {
    let env = TestEnv::new();
    let seen = [env.pintle(&["hooks", "lint"]), env.pintle(&["hooks", "lint", "--json"])];
    insta::assert_snapshot!(seen.map(|seen| seen.to_string()).concat(), @"");
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
    insta::assert_snapshot!(seen, @"");
}

#[test]
fn what_nobody_accepted_is_looked_at_too_and_nothing_of_it_runs() {
    let env = TestEnv::new();
    env.found_config(
        "[hooks.processes.a]\nenabled = true\ncommand = ['sh', '-c', 'touch ran']\nintercept = ['before_tool']\nmatcher = 'exce'\n\
         [hooks.processes.b]\nenabled = true\ncommand = ['sh']\nintercept = ['befor_tool']\n",
    );
    let seen = env.pintle(&["hooks", "lint", "--json"]);
    insta::assert_snapshot!(seen, @"");
    assert!(!env.path("work/ran").exists());
}
