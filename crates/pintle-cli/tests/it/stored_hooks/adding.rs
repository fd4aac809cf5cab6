//! `pintle hooks add`.

use super::{GUARD, add, listed, operate};
use crate::env::TestEnv;

#[test]
fn several_records_are_added_in_either_form_and_their_ids_printed() {
    let env = TestEnv::new();
    let file = env.write(
        "here/rules.json",
        r#"[{"name": "a", "event": "pre_tool_use", "handler_type": "command", "scope": "tenant", "config": {"command": "true"}},
            {"name": "b", "event": "stop", "handler_type": "command", "scope": "global", "config": {"command": "true"}}]"#,
    );
    let seen = operate(&env, &["hooks", "add", file.to_str().unwrap()]);
    assert_eq!(seen.to_string(), "exit 0\n--- out\n[id]\n[id]\n\n");
    let names: Vec<String> = listed(&env).iter().map(|hook| hook["hook"].to_string()).collect();
    assert_eq!(names, ["\"a\"", "\"b\""]);
    let seen = operate(&env, &["hooks", "add", "--json", file.to_str().unwrap()]);
    let said: domain::json::Value = serde_json::from_str(&seen.out).unwrap();
    assert_eq!((said["hookIds"].as_array().unwrap().len(), &said["warnings"]), (2, &domain::json::json!([])));
}

#[test]
fn a_setting_that_is_probably_not_meant_is_said() {
    let env = TestEnv::new();
    let text = GUARD.replace("matcher", "breaker = 'all'\non_trip = 'allow'\nmatcher");
    let seen = add(&env, &text);
    assert!(seen.code == Some(0) && seen.out.contains("warning: "), "{seen}");
}

#[test]
fn a_mistake_says_where_and_nothing_is_added() {
    let env = TestEnv::new();
    let second = GUARD.replace("no-force", "second");
    let cases = [
        GUARD.replace("^exec$", "(").as_str().to_owned(),
        format!("{GUARD}\n{}", second.replace("priority", "timeout = 5\npriority")),
        GUARD.replace("pre_tool_use", "pre_tool"),
        GUARD.replace("\"tenant\"", "\"agent\"\nagent_ids = ['nobody']"),
        "[[hook]\n".to_owned(),
        String::new(),
    ];
    let seen = cases.map(|text| add(&env, &text).to_string()).concat();
    insta::assert_snapshot!(seen, @r#"
    exit 2
    --- out
    error: [root]/here/rules.toml:6:11: hook: matcher invalid: compile matcher "(": error: unclosed group

    exit 2
    --- out
    error: [root]/here/rules.toml:26:1: record 2 ("second"): invalid request: invalid config: unknown field "timeout" (did you mean "timeout_ms"?)

    exit 2
    --- out
    error: [root]/here/rules.toml:3:9: hook: unknown event "pre_tool"

    exit 2
    --- out
    error: [root]/here/rules.toml:6:13: hook: agent not found: "nobody"
      hint: `agent_ids` takes the names of configured agents, or their ids

    exit 2
    --- out
    error: [root]/here/rules.toml:1:8: unclosed array table, expected `]`

    exit 2
    --- out
    error: [root]/here/rules.toml: there is no record in it
      hint: write one as a JSON object, or as a table [[hook]] in TOML
    "#);
    let script = second.replace("function handle(event) {", "function handle(event) {{");
    let seen = add(&env, &format!("{GUARD}\n{script}"));
    assert!(seen.out.contains("rules.toml:29:10: record 2 (\"second\"): hook: script compile error: "), "{seen}");
    let seen = operate(&env, &["hooks", "add", "missing.toml"]);
    assert_eq!(seen.code, Some(2), "{seen}");
    assert!(seen.out.contains("missing.toml: No such file"), "{seen}");
    assert_eq!(operate(&env, &["hooks", "add"]).code, Some(2));
    assert_eq!(listed(&env), Vec::<domain::json::Value>::new());
}

#[test]
fn the_starter_guards_are_added_once() {
    let env = TestEnv::new();
    let seen = operate(&env, &["hooks", "add", "--starter"]);
    assert_eq!(seen.code, Some(0), "{seen}");
    let first = listed(&env);
    assert_eq!(seen.out.lines().count(), first.len(), "{seen}");
    assert!(first.iter().all(|hook| hook["hook"].as_str().unwrap().starts_with("starter-")));
    operate(&env, &["hooks", "set", "starter-disks", "priority=3"]);
    let seen = operate(&env, &["hooks", "add", "--starter"]);
    assert!(seen.code == Some(0) && seen.out.contains("`starter-disks` is there already"), "{seen}");
    let ids = |hooks: &[domain::json::Value]| {
        let mut ids: Vec<String> = hooks.iter().map(|hook| hook["id"].to_string()).collect();
        ids.sort();
        ids
    };
    let second = listed(&env);
    assert_eq!(ids(&second), ids(&first));
    assert!(second.iter().any(|hook| hook["hook"] == "starter-disks" && hook["priority"] == 3), "it stays as it is");
}
