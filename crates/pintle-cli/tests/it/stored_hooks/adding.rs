//! `pintle hooks add`.

use super::{GUARD, add, listed, operate, rows};
use crate::env::TestEnv;
use crate::run::{DONE, scripted};

#[test]
fn several_records_are_added_in_either_form_and_their_ids_printed() {
    let env = TestEnv::new();
    let file = env.write(
        "here/rules.json",
        r#"[{"name": "a", "event": "pre_tool_use", "handler_type": "command", "scope": "tenant", "config": {"command": "true"}},
            {"name": "b", "event": "stop", "handler_type": "command", "scope": "global", "config": {"command": "true"}}]"#,
    );
    let seen = operate(&env, &["hooks", "add", file.to_str().unwrap()]);
    assert_eq!(seen.to_string(), "exit 0\n--- out\na at pre_tool_use is added\nb at stop is added\n[id]\n[id]\n\n");
    let names: Vec<String> = listed(&env).iter().map(|hook| hook["hook"].to_string()).collect();
    assert_eq!(names, ["\"a\"", "\"b\""]);
    let seen = operate(&env, &["hooks", "add", "--json", file.to_str().unwrap()]);
    let said: pintle_domain::json::Value = serde_json::from_str(&seen.out).unwrap();
    assert_eq!((said["hookIds"].as_array().unwrap().len(), &said["warnings"]), (2, &pintle_domain::json::json!([])));
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
    error: [root]/here/rules.toml:3:9: hook: unknown event "pre_tool" (did you mean "pre_tool_use"?)

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
    let yaml = env.write("here/rules.yaml", "name: no-force\nevent: pre_tool_use\n");
    let seen = operate(&env, &["hooks", "add", yaml.to_str().unwrap()]);
    assert!(seen.code == Some(2) && seen.out.contains("records are written in JSON or TOML"), "{seen}");
    let script = second.replace("function handle(event) {", "function handle(event) {{");
    let seen = add(&env, &format!("{GUARD}\n{script}"));
    assert!(seen.out.contains("rules.toml:29:10: record 2 (\"second\"): hook: script compile error: "), "{seen}");
    let seen = operate(&env, &["hooks", "add", "missing.toml"]);
    assert_eq!(seen.code, Some(2), "{seen}");
    assert!(seen.out.contains("missing.toml: No such file"), "{seen}");
    assert_eq!(operate(&env, &["hooks", "add"]).code, Some(2));
    assert_eq!(listed(&env), Vec::<pintle_domain::json::Value>::new());
}

#[test]
fn the_starter_guards_are_added_once() {
    let env = TestEnv::new();
    let seen = operate(&env, &["hooks", "add", "--starter"]);
    assert_eq!(seen.code, Some(0), "{seen}");
    let first = listed(&env);
    assert_eq!(ids(&seen.out), first.len(), "{seen}");
    assert!(first.iter().all(|hook| hook["hook"].as_str().unwrap().starts_with("starter-")));
    operate(&env, &["hooks", "set", "starter-disks", "priority=3"]);
    let seen = operate(&env, &["hooks", "add", "--starter"]);
    assert!(seen.code == Some(0) && seen.out.contains("`starter-disks` is there already"), "{seen}");
    let ids_of = |hooks: &[pintle_domain::json::Value]| {
        let mut ids: Vec<String> = hooks.iter().map(|hook| hook["id"].to_string()).collect();
        ids.sort();
        ids
    };
    let second = listed(&env);
    assert_eq!(ids_of(&second), ids_of(&first));
    assert!(second.iter().any(|hook| hook["hook"] == "starter-disks" && hook["priority"] == 3), "it stays as it is");
    let seen = operate(&env, &["hooks", "add", "--starter", "--update"]);
    assert!(seen.code == Some(0) && seen.out.contains("starter-disks at pre_tool_use is changed"), "{seen}");
    let priorities = |hooks: &[pintle_domain::json::Value]| {
        let mut all: Vec<String> = hooks.iter().map(|hook| format!("{} {}", hook["id"], hook["priority"])).collect();
        all.sort();
        all
    };
    assert_eq!(priorities(&listed(&env)), priorities(&first), "it is as it was shipped");
}

/// How many ids stand in what `hooks add` shows on a terminal.
fn ids(seen: &str) -> usize {
    seen.lines().filter(|line| *line == "[id]").count()
}

#[test]
fn a_record_that_is_there_already_is_the_hook_that_it_is() {
    let env = TestEnv::new();
    insta::assert_snapshot!(add(&env, GUARD), @r#"
    exit 0
    --- out
    no-force at pre_tool_use is added
    [id]
    "#);
    let id = listed(&env)[0]["id"].as_str().unwrap().to_owned();
    insta::assert_snapshot!(add(&env, GUARD), @r#"
    exit 0
    --- out
    no-force at pre_tool_use is already there, unchanged
    [id]
    "#);
    let other = GUARD.replace("^exec$", "^(exec|spawn)$").replace("priority = 10", "priority = 20");
    insta::assert_snapshot!(add(&env, &other), @r#"
    exit 1
    --- out
    error: hook "no-force" ([id]) is at pre_tool_use already and differs: matcher is "^exec$", not "^(exec|spawn)$"; priority is 10, not 20
      hint: `--update` writes the record over it; another name makes another hook
    "#);
    assert_eq!((listed(&env).len(), &listed(&env)[0]["version"]), (1, &1.into()), "nothing is changed");
    let file = env.path("here/rules.toml");
    insta::assert_snapshot!(operate(&env, &["hooks", "add", "--update", file.to_str().unwrap()]), @r#"
    exit 0
    --- out
    no-force at pre_tool_use is changed
    [id]
    "#);
    let row = &listed(&env)[0];
    assert_eq!((&row["id"], &row["version"], &row["priority"]), (&id.into(), &2.into(), &20.into()));
    // At another event it is another hook, and one without a name always is.
    let stop = "[[hook]]\nname = 'no-force'\nevent = 'stop'\nhandler_type = 'command'\nscope = 'tenant'\n\
                config.command = 'true'\n";
    assert_eq!(ids(&add(&env, &format!("{stop}{stop}")).out), 2);
    let unnamed = stop.replace("name = 'no-force'\n", "");
    add(&env, &unnamed);
    add(&env, &unnamed);
    assert_eq!(listed(&env).len(), 4);
    let seen = add(&env, &format!("{stop}{}", stop.replace("'true'", "'false'")));
    assert!(seen.code == Some(1) && seen.out.contains("record 2 (\"no-force\"): "), "{seen}");
}

#[test]
fn a_secret_that_is_another_one_is_not_shown() {
    let env = TestEnv::new();
    env.user_config("[agents.main]\n[[agent_hooks.http.allow]]\nhost = '127.0.0.1'\n");
    let record = |secret: &str| {
        format!(
            "[[hook]]\nname = 'ask'\nevent = 'stop'\nhandler_type = 'http'\nscope = 'tenant'\n[hook.config]\n\
             url = 'https://example.com/x'\n[hook.config.headers]\nAuthorization = '{secret}'\n"
        )
    };
    assert_eq!(add(&env, &record("Bearer one")).code, Some(0));
    let same = add(&env, &record("Bearer one"));
    assert!(same.out.contains("ask at stop is already there, unchanged"), "{same}");
    let seen = add(&env, &record("Bearer two"));
    assert!(seen.out.contains("differs: another secret in config.headers\n"), "{seen}");
    assert!(!seen.out.contains("Bearer"), "{seen}");
}

#[test]
fn a_matcher_that_is_about_no_tool_is_told_when_it_is_stored_and_by_lint() {
    let env = TestEnv::new();
    let seen = add(&env, &GUARD.replace("^exec$", "^exce$"));
    assert!(
        seen.code == Some(0) && seen.out.contains("warning: matcher `^exce$` matches no tool; did you mean `exec`?"),
        "{seen}"
    );
    let seen = env.pintle(&["hooks", "lint"]);
    assert!(
        seen.code == Some(2) && seen.out.contains("no-force.matcher: `^exce$` matches no tool; did you mean \"exec\"?"),
        "{seen}"
    );
    operate(&env, &["hooks", "set", "no-force", "matcher=^exec$"]);
    assert_eq!(env.pintle(&["hooks", "lint"]).err, "no mistakes\n");
}

#[test]
fn a_matcher_about_tools_of_mcp_servers_may_be_about_some() {
    let env = TestEnv::new();
    let seen = add(&env, &GUARD.replace("^exec$", "^mcp_files_(write|edit|move)_file$"));
    assert!(seen.code == Some(0) && !seen.out.contains("matches no tool"), "{seen}");
    env.user_config(
        "[hooks.processes.adopted]\nenabled = true\ncommand = ['true']\nintercept = ['before_tool']\n\
         matcher = '^mcp__.*'\n",
    );
    for words in [["hooks", "list"], ["hooks", "lint"]] {
        let seen = env.pintle(&words);
        assert!(!format!("{seen}").contains("matches no tool"), "{seen}");
    }
}

#[test]
fn a_rule_that_is_about_no_tool_says_so_wherever_it_is_shown_or_relied_on() {
    let env = scripted(DONE, "tools = ['exec']\n");
    add(&env, &GUARD.replace("^exec$", "^exce$"));
    let health = "unproven: matches no tool; did you mean exec?";
    let list = env.pintle(&["hooks", "list"]);
    assert!(rows(&list.out).contains(&format!("priority 10   {health} · script")), "{list}");
    assert_eq!(listed(&env)[0]["unproven"], "matches no tool; did you mean exec?");
    let show = env.pintle(&["hooks", "show", "no-force"]);
    assert!(show.out.contains(&format!("health           {health}\n")), "{show}");
    assert_eq!((list.err.as_str(), show.err.as_str()), ("", ""), "it is said once");
    let doctor = env.pintle(&["doctor"]);
    assert!(doctor.code == Some(5) && doctor.out.contains("no-force  unproven at matcher: "), "{doctor}");
    let sentence = "matcher `^exce$` matches no tool; did you mean `exec`?";
    let run = env.pintle(&["run", "hello"]);
    let warning = format!("warning: hook \"no-force\": {sentence}\n");
    assert!(run.code == Some(0) && run.err.matches(&warning).count() == 1, "{run}");
    let strict = env.pintle(&["run", "--strict", "hello"]);
    assert!(strict.code == Some(5) && strict.err.contains("guards that cannot work: no-force\n"), "{strict}");
    assert!(strict.err.contains(&warning), "{strict}");
    // Whoever switches it off relies on it no more; whoever switches it on is told again.
    assert!(!operate(&env, &["hooks", "disable", "no-force"]).out.contains("warning"));
    assert_eq!(env.pintle(&["run", "--strict", "--quiet", "hello"]).code, Some(0));
    let on = operate(&env, &["hooks", "enable", "no-force"]);
    assert!(on.code == Some(0) && on.out.contains(&format!("warning: {sentence}")), "{on}");
    let set = operate(&env, &["hooks", "set", "no-force", "matcher=^exec$"]);
    assert!(set.code == Some(0) && !set.out.contains("warning"), "{set}");
    assert!(rows(&env.pintle(&["hooks", "list"]).out).contains("priority 10   on, script"));
}

#[test]
fn the_usage_names_both_ways_to_add() {
    let env = TestEnv::new();
    let seen = env.pintle(&["hooks", "add"]);
    assert!(seen.code == Some(2) && seen.err.contains("<FILE|--starter>"), "{seen}");
}

#[test]
fn the_nearest_word_is_named_where_one_is_none() {
    let env = TestEnv::new();
    for (from, to, said) in [
        ("pre_tool_use", "pre_tol_use", "unknown event \"pre_tol_use\" (did you mean \"pre_tool_use\"?)"),
        ("\"script\"", "\"scirpt\"", "hook.unknown_handler_type (did you mean \"script\"?)"),
        ("\"tenant\"", "\"tennant\"", "unknown scope \"tennant\" (did you mean \"tenant\"?)"),
    ] {
        let seen = add(&env, &GUARD.replace(from, to));
        assert!(seen.code == Some(2) && seen.out.contains(said), "{seen}");
    }
}
