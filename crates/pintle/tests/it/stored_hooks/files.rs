//! Rules that come from files, as the commands see them.

use super::{listed, operate};
use crate::env::TestEnv;

const RULE: &str = "[[hook]]\nname = 'filed'\nevent = 'pre_tool_use'\nhandler_type = 'command'\nscope = 'tenant'\n\
                    [hook.config]\ncommand = 'exit 2'\n";

fn filed(more: &str) -> TestEnv {
    let env = TestEnv::new();
    env.write("config/pintle/hooks.d/team.toml", &format!("{RULE}{more}"));
    env.user_config("[agent_hooks]\ndir = 'hooks.d'\n");
    env
}

#[test]
fn they_are_listed_and_tested_and_changed_in_their_file() {
    let env = filed("");
    let hooks = listed(&env);
    let [hook] = hooks.as_slice() else { panic!("one hook: {hooks:?}") };
    assert_eq!((&hook["hook"], &hook["origin"]), (&"filed".into(), &"file:team.toml".into()));
    assert_eq!(env.pintle(&["hooks", "test", "filed"]).code, Some(4));
    for args in
        [&["hooks", "set", "filed", "priority=3"][..], &["hooks", "disable", "filed"], &["hooks", "remove", "filed"]]
    {
        let seen = operate(&env, args);
        assert!(seen.code == Some(1) && seen.out.contains("comes from the file `team.toml`"), "{seen}");
    }
    assert_eq!(operate(&env, &["hooks", "reset", "filed"]).code, Some(0));
    assert_eq!(listed(&env)[0]["version"], 1);
}

#[test]
fn a_bad_one_is_named_and_the_others_are_there() {
    let env = filed(&RULE.replace("filed", "bad").replace("scope", "matcher = '('\nscope"));
    let seen = env.pintle(&["hooks", "list"]);
    assert!(seen.err.contains("hooks.d/team.toml: record 2 (\"bad\"): hook: matcher invalid"), "{seen}");
    assert!(seen.code == Some(0) && seen.out.contains("filed"), "{seen}");
}
