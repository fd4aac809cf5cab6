//! What a hook runs is what stands beside its configuration: whatever an agent writes where it works, or a repository
//! brings, is not run in its place.

use pintle_domain::json::Value;

use super::env::{BEFORE_TOOL, TestEnv, answering};
use super::guard_door::door::{Door, refusal};
use super::run::scripted;

/// A command hook that refuses a forced push. It reads what it is told, and answers with an exit code.
const GUARD: &str = "import json, sys\ne = json.load(sys.stdin)\nif 'push --force' in json.dumps(e['tool_input']):\n    \
                     print('no forced push', file=sys.stderr)\n    sys.exit(2)\n";

/// The same as a program and as a script of a shell.
const GATE: &str = "#!/bin/sh\ngrep -q 'push --force' || exit 0\necho no forced push >&2\nexit 2\n";

/// What would let everything pass.
const OPEN: &str = "import sys\nsys.exit(0)\n";
const OPEN_GATE: &str = "#!/bin/sh\nexit 0\n";

/// A model that writes each of `files` into its workspace, pushes, and is done.
fn replies(files: &[&str]) -> String {
    let writes = files.iter().map(|file| {
        let text = if file.ends_with(".py") { OPEN } else { OPEN_GATE };
        let arguments = pintle_domain::json::json!({"path": *file, "content": text});
        format!(r#"{{"tool_calls": [{{"name": "write_file", "arguments": {arguments}}}]}},"#)
    });
    let push = r#"{"tool_calls": [{"name": "exec", "arguments": {"command": "echo git push --force > pushed"}}]}"#;
    format!(r#"{}{push},{{"text": "done", "repeat": true}}"#, writes.collect::<String>())
}

/// Tools, behind which further tables stand.
const TOOLS: &str = "tools = ['exec', 'write_file']\n";

fn command_hook(members: &str) -> String {
    format!("{TOOLS}[[hooks.claude.PreToolUse]]\nmatcher = 'Bash'\nhooks = [{{ {members} }}]\n")
}

fn make_executable(env: &TestEnv, name: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(env.path(name), std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// The guards, in `folder`.
fn guards(env: &TestEnv, folder: &str) {
    for name in ["guard.py", "gate.py", "pkg/__main__.py"] {
        env.write(&format!("{folder}/{name}"), GUARD);
    }
    env.write(&format!("{folder}/pkg/__init__.py"), "");
    env.write(&format!("{folder}/gate.sh"), GATE);
    make_executable(env, &format!("{folder}/gate.sh"));
}

/// Every way in which a command hook names what it runs, and the words with which `hooks show` calls it.
const WAYS: [(&str, &str); 8] = [
    ("command = 'python3 guard.py'", "python3 [root]/config/pintle/guard.py"),
    ("command = 'python3', args = ['-u', 'guard.py']", "python3 -u [root]/config/pintle/guard.py"),
    ("command = './gate.sh'", "[root]/config/pintle/gate.sh"),
    ("command = 'sh gate.sh'", "sh [root]/config/pintle/gate.sh"),
    ("command = 'sh', args = ['-c', 'exec ./gate.sh']", "exec [root]/config/pintle/gate.sh"),
    ("command = 'python3 -m gate'", "python3 [root]/config/pintle/gate.py"),
    ("command = 'python3 -m pkg'", r#"["[root]/config/pintle"]"#),
    ("command = 'timeout 60 python3 ./guard.py'", "timeout 60 python3 [root]/config/pintle/guard.py"),
];

#[test]
fn what_an_agent_writes_into_its_workspace_is_no_command_hook() {
    for (members, shown) in WAYS {
        let written = ["guard.py", "gate.sh", "gate.py", "pkg/__main__.py", "pkg/__init__.py"];
        let env = scripted(&replies(&written), &command_hook(members));
        guards(&env, "config/pintle");
        let seen = env.pintle(&["run", "go"]);
        assert_eq!(seen.code, Some(0), "{members}: {seen}");
        assert!(env.path("here/guard.py").exists(), "{members}: {seen}");
        make_executable(&env, "here/gate.sh");
        assert!(!env.path("here/pushed").exists(), "{members}: {seen}");
        // What it wrote is there from the beginning now, as what a repository brings is.
        let again = env.pintle(&["run", "go"]);
        assert!(!env.path("here/pushed").exists(), "{members}: {again}");
        assert!(again.err.contains("no forced push"), "{members}: {again}");
        let show: Value =
            pintle_domain::json::parse(&env.raw(&["hooks", "show", "claude.PreToolUse.1", "--json"])).unwrap();
        let words = show["command"].as_array().unwrap().iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" ");
        assert!(env.redact(&words).contains(shown), "{members}: {show}");
        let lint = env.pintle(&["hooks", "lint"]);
        assert_eq!(lint.code, Some(0), "{members}: {lint}");
    }
}

#[test]
fn so_it_is_for_a_file_that_is_named_and_for_one_that_was_accepted() {
    let hook = command_hook("command = 'python3 guard.py'");
    for found in [false, true] {
        let env = scripted(&replies(&["guard.py"]), "");
        env.user_config("");
        env.write("project/pintle.toml", &format!("{}{hook}", super::run::MODEL));
        env.write("project/replies.json", &format!("{{\"replies\": [{}]}}", replies(&["guard.py"])));
        guards(&env, "project");
        env.write("project/deep/x", "");
        let pintle = |args: &[&str]| {
            env.run(env.command(super::env::PINTLE).args(args).current_dir(env.path("project/deep")), "")
        };
        let seen = match found {
            true => {
                assert_eq!(env.on_terminal("y\n", &["trust", "../project/pintle.toml"]).code, Some(0));
                // The model of a file that was found is its own, and so is where its agent works.
                pintle(&["run", "go"])
            }
            false => pintle(&["-c", "../pintle.toml", "run", "go"]),
        };
        assert_eq!(seen.code, Some(0), "{found}: {seen}");
        assert!(seen.err.contains("no forced push"), "{found}: {seen}");
        assert!(!env.path("project/deep/pushed").exists() && !env.path("project/pushed").exists(), "{found}: {seen}");
    }
}

#[test]
fn under_guard_a_repository_brings_no_guard_of_its_own() {
    for (members, _) in WAYS {
        let env = TestEnv::new();
        let hook = command_hook(members);
        env.user_config(hook.trim_start_matches(TOOLS));
        guards(&env, "config/pintle");
        for (name, text) in [("guard.py", OPEN), ("gate.py", OPEN), ("pkg/__main__.py", OPEN), ("gate.sh", OPEN_GATE)] {
            env.write(&format!("here/{name}"), text);
        }
        make_executable(&env, "here/gate.sh");
        let door = Door::open(env);
        let told = door.told(&door.shell("toolu_1", "git push --force"));
        assert!(refusal(&told).contains("no forced push"), "{members}: {told}");
        assert_eq!(door.told(&door.shell("toolu_2", "git status")), serde_json::json!({}), "{members}");
    }
}

#[test]
fn a_file_that_is_not_there_is_a_bad_entry_in_every_kind() {
    let process =
        "[hooks.processes.p]\nenabled = true\ncommand = ['python3', 'guard.py']\nintercept = ['before_tool']\n";
    let server = "[mcp.servers.s]\ncommand = ['node', 'server.js']\n";
    let rules = "[agent_hooks]\ndir = 'hooks.d'\n";
    let rule = "[[hook]]\nname = 'r'\nevent = 'pre_tool_use'\nhandler_type = 'command'\nscope = 'tenant'\n\
                [hook.config]\ncommand = 'python3 guard.py'\n";
    let hook = command_hook("command = 'python3 guard.py'");
    for (more, path, file) in [
        (hook.as_str(), "hooks.claude.PreToolUse.0.hooks.0.command", "guard.py"),
        (process, "hooks.processes.p.command.1", "guard.py"),
        (server, "mcp.servers.s.command.1", "server.js"),
        (rules, "hook.0.config.command", "guard.py"),
    ] {
        let more = if more.starts_with(TOOLS) { more.to_owned() } else { format!("{TOOLS}{more}") };
        let env = scripted(&replies(&["guard.py"]), &more);
        env.write("config/pintle/hooks.d/rules.toml", rule);
        // It stands where the agent works, and is not meant.
        env.write(&format!("here/{file}"), OPEN);
        let lint = env.pintle(&["hooks", "lint"]);
        let text = lint.out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(lint.code, Some(2), "{path}: {lint}");
        let folder = if path.starts_with("hook.") { "config/pintle/hooks.d" } else { "config/pintle" };
        for said in [
            format!(": {path}: "),
            format!("got `{file}`, which does not exist in [root]/{folder};"),
            "put the file there, or write its absolute path".to_owned(),
        ] {
            assert!(text.contains(&said), "{path}: {said}: {lint}");
        }
        let strict = env.pintle(&["run", "--strict", "go"]);
        let doctor = env.pintle(&["doctor"]);
        assert!(doctor.out.contains(&format!("`{file}`")), "{path}: {doctor}");
        if path.starts_with("mcp.") {
            continue;
        }
        assert_eq!((strict.code, doctor.code), (Some(5), Some(5)), "{path}: {strict} {doctor}");
        let run = env.pintle(&["run", "go"]);
        assert!(!env.path("here/pushed").exists(), "{path}: {run}");
    }
}

#[test]
fn a_rule_of_a_file_runs_what_stands_beside_its_file() {
    let rule = |command: &str| {
        format!(
            "[[hook]]\nname = 'r'\nevent = 'pre_tool_use'\nmatcher = '^exec$'\nhandler_type = 'command'\nscope = 'tenant'\n\
             [hook.config]\ncommand = '{command}'\n"
        )
    };
    for command in ["python3 guard.py", "./gate.sh", "python3 -m gate", "python3 -m pkg"] {
        let env = scripted(
            &replies(&["guard.py", "gate.sh", "gate.py"]),
            &format!("{TOOLS}[agent_hooks]\ndir = 'hooks.d'\n"),
        );
        env.write("config/pintle/hooks.d/rules.toml", &rule(command));
        guards(&env, "config/pintle/hooks.d");
        env.write("here/pkg/__main__.py", OPEN);
        for _ in 0..2 {
            let seen = env.pintle(&["run", "go"]);
            assert!(seen.err.contains("no forced push"), "{command}: {seen}");
            assert!(!env.path("here/pushed").exists(), "{command}: {seen}");
            make_executable(&env, "here/gate.sh");
        }
    }
}

#[test]
fn the_script_of_an_accepted_rule_is_accepted_with_it() {
    let env = scripted(&replies(&[]), TOOLS);
    env.found_config("[agent_hooks]\ndir = 'rules'\n");
    env.write(
        "here/rules/r.toml",
        "[[hook]]\nname = 'r'\nevent = 'pre_tool_use'\nmatcher = '^exec$'\nhandler_type = 'command'\nscope = 'tenant'\n\
         [hook.config]\ncommand = 'python3 guard.py'\n",
    );
    guards(&env, "here/rules");
    assert_eq!(env.on_terminal("y\n", &["trust"]).code, Some(0));
    let seen = env.pintle(&["run", "go"]);
    assert!(seen.err.contains("no forced push") && !env.path("here/pushed").exists(), "{seen}");
    env.write("here/rules/guard.py", OPEN);
    let seen = env.pintle(&["run", "go"]);
    assert!(seen.err.contains("changed since it was trusted") && !env.path("here/pushed").exists(), "{seen}");
}

#[test]
fn a_process_hook_and_a_server_are_shown_by_whole_paths() {
    let env = scripted(
        &replies(&["guard.sh"]),
        &format!(
            "{TOOLS}[hooks.processes.p]\nenabled = true\ncommand = ['sh', 'guard.sh']\ndir = 'sub'\nintercept = ['before_tool']\n"
        ),
    );
    env.write("config/pintle/sub/guard.sh", &answering(BEFORE_TOOL, r#"{"action":"deny_tool","reason":"no"}"#));
    let show = env.pintle(&["hooks", "show", "p"]);
    assert!(show.out.contains("sh [root]/config/pintle/sub/guard.sh"), "{show}");
    let run = env.pintle(&["run", "--strict", "go"]);
    assert!(run.code == Some(0) && !env.path("here/pushed").exists(), "{run}");
}

#[test]
fn a_text_for_a_shell_that_runs_where_an_agent_works_is_named() {
    let text = "./gate.sh | tee log";
    let process = |dir: &str| {
        format!(
            "{TOOLS}[hooks.processes.p]\nenabled = true\ncommand = ['sh', '-c', '{text}']\ndir = '{dir}'\n\
             intercept = ['before_tool']\n"
        )
    };
    let command = command_hook(&format!("command = '{text}'"));
    for (more, path) in [
        (command.as_str(), "hooks.claude.PreToolUse.0.hooks.0.command"),
        (&process("../../here"), "hooks.processes.p.command"),
        (&process("."), ""),
    ] {
        let env = scripted(&replies(&[]), more);
        let lint = env.pintle(&["hooks", "lint"]);
        let named = lint.out.contains(&format!("{path}: replaceable by the agent: "));
        assert_eq!((named, lint.code), (!path.is_empty(), Some(if path.is_empty() { 0 } else { 2 })), "{path}: {lint}");
        let strict = env.pintle(&["run", "--strict", "go"]);
        let doctor = env.pintle(&["doctor"]);
        if !path.is_empty() {
            assert_eq!((strict.code, doctor.code), (Some(5), Some(5)), "{path}: {strict} {doctor}");
            assert!(doctor.out.contains("replaceable by the agent"), "{path}: {doctor}");
        }
    }
    // What was accepted is looked at before every start.
    let env = scripted(&replies(&[]), "");
    env.found_config(command_hook(&format!("command = '{text}'")).trim_start_matches(TOOLS));
    env.write("here/gate.sh", GATE);
    assert_eq!(env.pintle(&["hooks", "lint"]).code, Some(0));
    assert_eq!(env.on_terminal("y\n", &["trust"]).code, Some(0));
    assert_eq!(env.pintle(&["hooks", "lint"]).code, Some(0));
}

#[test]
fn a_server_of_tools_is_the_one_beside_its_configuration() {
    let env = scripted(
        r#"{"text": "done", "repeat": true}"#,
        "tools = ['mcp_s_*']\n[mcp.servers.s]\ncommand = ['python3', './server.py']\n",
    );
    env.write("config/pintle/server.py", "import sys\nsys.stderr.write(sys.argv[0])\nsys.exit(3)\n");
    env.write("here/server.py", OPEN);
    let doctor = env.pintle(&["doctor"]);
    let text: String = doctor.out.split_whitespace().collect();
    assert!(text.contains("[root]/config/pintle/server.py"), "{doctor}");
}

#[test]
fn the_file_that_was_accepted_is_the_one_that_runs() {
    let env = scripted(&replies(&[]), "");
    env.found_config(command_hook("command = 'python3 guard.py'").trim_start_matches(TOOLS));
    env.write("here/guard.py", GUARD);
    assert_eq!(env.on_terminal("y\n", &["trust"]).code, Some(0));
    let show: Value =
        pintle_domain::json::parse(&env.raw(&["hooks", "show", "claude.PreToolUse.1", "--json"])).unwrap();
    let words = show["command"].as_array().unwrap();
    let file = env.path("here/guard.py");
    assert_eq!(words[2], format!("python3 {}", file.display()).as_str());
    env.write("here/guard.py", OPEN);
    let list = env.pintle(&["hooks", "list"]);
    assert!(list.err.contains("changed since it was trusted"), "{list}");
}
