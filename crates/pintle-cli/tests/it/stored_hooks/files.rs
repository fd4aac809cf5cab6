//! Rules that come from files, as the commands see them.

use pintle_domain::json::Value;

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
    assert!(seen.err.contains("hooks.d/team.toml:12:11: hook.1.matcher: hook: matcher invalid"), "{seen}");
    assert!(seen.code == Some(0) && seen.out.contains("filed"), "{seen}");
}

#[test]
fn what_cannot_be_read_is_listed_with_why() {
    let env = filed(
        &(RULE.replace("filed", "bad").replace("scope", "matcher = '('\nscope")
            + &RULE.replace("filed", "told").replace("pre_tool_use", "stop").replace("scope", "priorty = 3\nscope")),
    );
    env.write("config/pintle/hooks.d/torn.json", "{\"hook\": [");
    let chains: Value = serde_json::from_str(&env.raw(&["hooks", "list", "--json"])).unwrap();
    let mut rows = Vec::new();
    for chain in chains.as_array().unwrap() {
        for hook in chain["hooks"].as_array().unwrap().iter().filter(|hook| hook["state"] == "broken") {
            let fault = hook["fault"].as_str().unwrap().rsplit_once("/hooks.d/").unwrap().1.to_owned();
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            rows.push([text(&chain["checkpoint"]), text(&hook["hook"]), text(&hook["origin"]), fault]);
        }
    }
    let torn = "torn.json:1:10: EOF while parsing a list";
    let matcher =
        "team.toml:12:11: hook.1.matcher: hook: matcher invalid: compile matcher \"(\": error: unclosed group";
    let field = "team.toml:20:1: hook.2.priorty: invalid request: invalid config: unknown field \"priorty\" (did you mean \"priority\"?)";
    let all = |at: &str| [at, "torn.json", "file:torn.json", torn].map(str::to_owned);
    let one = |at: &str, name: &str, why: &str| [at, name, "file:team.toml", why].map(str::to_owned);
    assert_eq!(
        rows,
        [
            all("user_prompt_submit"),
            one("pre_tool_use", "bad", matcher),
            all("pre_tool_use"),
            all("subagent_start"),
            one("stop", "told", field),
        ]
    );
    let seen = env.pintle(&["hooks", "list"]);
    let lines: Vec<&str> = seen.out.lines().filter(|line| line.contains("priority first")).collect();
    assert!(lines.len() == 5 && lines.iter().all(|line| line.contains("is unavailable: ")), "{seen}");
}
