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
fn a_file_of_rules_is_tried_and_not_looked_at() {
    let env = TestEnv::new();
    let seen = env.pintle(&["hooks", "lint", "my rules.toml"]);
    assert_eq!((seen.code, seen.out.as_str()), (Some(2), ""), "{seen}");
    let said = "lint takes no file, got \"my rules.toml\"";
    assert!(seen.err.contains(said) && seen.err.contains("`pintle hooks test --file 'my rules.toml'`"), "{seen}");
}

#[test]
fn every_mistake_of_a_hook_is_shown_at_once() {
    let env = TestEnv::new();
    env.user_config(
        "[hooks.processes.bad]\nenabled = true\ncommand = []\nintercept = ['befor_tool']\ntimeout_ms = 'x'\non_failure = 'maybe'\ncolour = 3\n",
    );
    let seen = env.pintle(&["hooks", "lint"]);
    for member in ["command", "intercept.0", "timeout_ms", "on_failure", "colour"] {
        assert!(seen.out.contains(&format!(": hooks.processes.bad.{member}: ")), "{member}: {seen}");
    }
    assert_eq!((seen.code, seen.out.lines().count()), (Some(2), 5), "{seen}");
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
    [root]/config/pintle/pintle.toml:15:11: hooks.processes.blind.matcher: `^writefile$` matches no tool; did you mean "write_file"?
    [root]/config/pintle/pintle.toml:18:12: hooks.processes.gone.command.0: the program `no-such-program` was not found through PATH
    [root]/config/pintle/pintle.toml:22:18: hooks.processes.lost.command.1: expected a file that is there, got `guard.py`, which does not exist in [root]/config/pintle; what a command runs is looked up there alone, not where an agent works: put the file there, or write its absolute path
    [root]/config/pintle/pintle.toml:27:7: hooks.processes.nowhere.dir: the folder [root]/config/pintle/nowhere does not exist
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
          "line": 5,
          "column": 11
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

#[test]
fn what_a_command_names_is_shown_where_it_stands() {
    let env = TestEnv::new();
    env.user_config(
        "[hooks.processes.a]\nenabled = true\ncommand = ['sh',\n  '/no/such/review.py']\nintercept = ['before_tool']\n\
         [agents.main]\ntools = ['bash', 'reed_file']\nworkspace = 'gone'\n",
    );
    insta::assert_snapshot!(env.pintle(&["hooks", "lint"]), @r#"
    exit 2
    --- out
    [root]/config/pintle/pintle.toml:4:3: hooks.processes.a.command.1: the file `/no/such/review.py` does not exist
    [root]/config/pintle/pintle.toml:7:18: agents.main.tools.1: there is no tool "reed_file"; did you mean "read_file"?
    [root]/config/pintle/pintle.toml:8:13: agents.main.workspace: expected a folder that is there, from the folder of this file, got "gone"
    "#);
    // The same words end a turn of that agent.
    let seen = env.pintle(&["run", "hello"]);
    assert_eq!(seen.code, Some(2));
    let why = "error: the agent `main` is not loaded: [root]/config/pintle/pintle.toml:7:18: agents.main.tools.1: ";
    assert!(seen.err.contains(why), "{seen}");
}

#[test]
fn a_guard_of_a_tool_that_another_hook_brings_is_no_mistake() {
    let env = TestEnv::new();
    env.user_config(
        "[hooks.processes.sky]\nenabled = true\ncommand = ['sh']\nintercept = ['before_llm', 'before_tool']\nmatcher = '^weather$'\nrespond = []\n\
         [hooks.processes.guard]\nenabled = true\ncommand = ['sh']\nintercept = ['before_tool']\nmatcher = '^weather$'\nrespond = []\n\
         [hooks.processes.slip]\nenabled = true\ncommand = ['sh']\nintercept = ['before_tool']\nmatcher = '^exce$'\nrespond = []\n",
    );
    insta::assert_snapshot!(env.pintle(&["hooks", "lint"]), @r#"
    exit 2
    --- out
    [root]/config/pintle/pintle.toml:17:11: hooks.processes.slip.matcher: `^exce$` matches no tool; did you mean "exec"?
    "#);
}

#[test]
fn json_says_too_what_does_not_parse() {
    let env = TestEnv::new();
    env.user_config("[hooks\n");
    let lint = env.pintle(&["hooks", "lint", "--json"]);
    let found: pintle_domain::json::Value = serde_json::from_str(&lint.out).unwrap();
    assert_eq!((lint.code, found.as_array().map(Vec::len)), (Some(2), Some(1)));
    assert_eq!((&found[0]["place"]["line"], &found[0]["path"]), (&1.into(), &"".into()));
    let doctor = env.pintle(&["doctor", "--json"]);
    let found: pintle_domain::json::Value = serde_json::from_str(&doctor.out).unwrap();
    assert_eq!((doctor.code, &found["guards"]["total"]), (Some(2), &0.into()));
    let check = &found["checks"][0];
    assert_eq!((&check["what"], &check["state"]), (&"configuration".into(), &"failed".into()));
    assert!(check["message"].as_str().unwrap().starts_with("[root]/config/pintle/pintle.toml:1:"), "{check}");
    // One that is not there, and without JSON nothing but the error.
    let gone = env.pintle(&["-c", "gone.toml", "hooks", "lint", "--json"]);
    assert!(gone.code == Some(2) && gone.out.contains("cannot be read"), "{gone}");
    assert_eq!(env.pintle(&["hooks", "lint"]).out, "");
}

#[test]
fn a_glob_that_asks_about_no_tool_is_named_where_it_stands() {
    let env = TestEnv::new();
    env.user_config(
        "[agents.main]\ntools = ['exec']\nask = ['exec', 'exce', 'write_*', 'bash',\n 'mcp_files_*', 'mcp_wiki_*']\n\
         [mcp.servers.files]\ncommand = ['true']\n",
    );
    insta::assert_snapshot!(env.pintle(&["hooks", "lint"]), @r#"
    exit 2
    --- out
    [root]/config/pintle/pintle.toml:3:16: agents.main.ask.1: `exce` matches no tool; did you mean "exec"?
    [root]/config/pintle/pintle.toml:4:17: agents.main.ask.5: `mcp_wiki_*` matches no tool; the tools are read_file, list_dir, find_files, search_text, write_file, edit_file, exec, web_fetch, send_file, delegate, spawn
    "#);
}

#[test]
fn rules_in_files_are_looked_at_wherever_they_are_named() {
    const RULE: &str = "[[hook]]\nname = 'good'\nevent = 'pre_tool_use'\nhandler_type = 'script'\nscope = 'tenant'\n\
                        [hook.config]\nsource = 'function handle(event) { return {decision: \"allow\"}; }'\n";
    let env = TestEnv::new();
    env.user_config("[agent_hooks]\ndir = 'hooks.d'\n[agents.main]\n");
    let with = |name: &str, from: &str, to: &str| RULE.replace("good", name).replace(from, to);
    let rules = [
        RULE.to_owned(),
        with("typo", "scope", "timeout = 5\nscope"),
        with("script", "return", "retrn"),
        with("agent", "'tenant'", "'agent'\nagent_ids = ['mian']"),
        with("odd", "pre_tool_use'", "user_prompt_submit'\nmatcher = '^exec$'"),
        with("whose", "scope", "tenant = 'acme'\nscope"),
    ];
    env.write("config/pintle/hooks.d/a.toml", &rules.concat());
    env.write("config/pintle/hooks.d/b.json", "[{\"name\": \"b\",\n  \"event\": \"stpo\"}]");
    env.write("config/pintle/hooks.d/c.toml", "[[hook]\n");
    // Nobody accepted these, and nothing of them runs.
    env.found_config("[agent_hooks]\ndir = 'rules'\n");
    env.write("here/rules/a.toml", &with("good", "'tenant'", "'global'"));
    let seen = env.pintle(&["hooks", "lint"]);
    insta::assert_snapshot!(seen, @r#"
    exit 2
    --- out
    [root]/config/pintle/hooks.d/a.toml:12:1: hook.1.timeout: invalid request: invalid config: unknown field "timeout"; did you mean "timeout_ms"?
    [root]/config/pintle/hooks.d/a.toml:22:10: hook.2.config.source: hook: script compile error: SyntaxError: Line 1:32 expecting ';'
    [root]/config/pintle/hooks.d/a.toml:28:13: hook.3.agent_ids: hook: agent not found: "mian"; did you mean "main"?
    [root]/config/pintle/hooks.d/a.toml:34:11: hook.4.matcher: matcher "^exec$" never matches: user_prompt_submit has no tool, so the name that it is compared with is empty
    [root]/config/pintle/hooks.d/a.toml:39:1: hook.5: several tenants need edition standard
    [root]/config/pintle/hooks.d/b.json:1:2: hook.0: handler_type, event, and scope are required; missing: handler_type, scope; unknown event "stpo"; did you mean "stop"?
    [root]/config/pintle/hooks.d/c.toml:1:8: unclosed array table, expected `]`
    [root]/here/rules/a.toml:2:8: hook.0.name: duplicate hook name "good": [root]/config/pintle/hooks.d/a.toml has it, in a file of the same name; give each its own
    "#);
    let seen = env.pintle(&["hooks", "lint", "--json"]);
    let found: pintle_domain::json::Value = serde_json::from_str(&seen.out).unwrap();
    let typo = found.as_array().unwrap().iter().find(|found| found["path"] == "hook.1.timeout").unwrap();
    let place = &typo["place"];
    assert_eq!((&place["line"], &place["column"]), (&12.into(), &1.into()));
    assert_eq!((&typo["nearest"], &typo["guard"]), (&"timeout_ms".into(), &true.into()));
    assert!(!env.path("data/pintle/pintle.db").exists(), "looking for mistakes makes no store");
}

#[test]
fn where_agents_of_others_are_asked_about_a_tool_may_be_theirs() {
    for (section, is_theirs) in [
        ("", false),
        ("[doors.tool.by_hand]\non_change = 'allow'\n", true),
        ("[guard]\nrequire = ['shell']\n", true),
        ("[guard.hosts.claude]\nask = 'deny'\n", true),
        ("[guard.rules_from]\nurl = 'https://pintle.example.org'\nkey_file = 'k'\n", true),
    ] {
        let env = TestEnv::new();
        env.user_config(&format!(
            "[hooks.processes.g]\nenabled = true\ncommand = ['true']\nintercept = ['before_tool']\n\
             matcher = '^weather$'\nrespond = []\n{section}"
        ));
        let seen = env.pintle(&["hooks", "lint"]);
        assert_eq!(seen.out.contains("matches no tool"), !is_theirs, "{section}: {seen}");
    }
}

#[test]
fn what_never_counts_for_an_agent_under_guard_is_a_mistake() {
    let env = TestEnv::new();
    env.user_config("[agents.main]\n[guard.hosts.claude]\nagent = 'maim'\n[doors.tool.Files]\nhide = ['x']\n");
    let seen = env.pintle(&["hooks", "lint"]);
    for said in [
        "pintle.toml:3:9: guard.hosts.claude.agent: `maim` is no agent here, so each prompt and call of `claude` is \
         refused; did you mean \"main\"?",
        "doors.tool.Files: `Files` is not a name for a server, expected 1 to 32 letters a to z, digits, `_` and `-`, so \
         nothing of it counts",
    ] {
        assert!(seen.out.contains(said), "{said}: {seen}");
    }
    assert_eq!((seen.code, seen.out.lines().count()), (Some(2), 2), "{seen}");
}
