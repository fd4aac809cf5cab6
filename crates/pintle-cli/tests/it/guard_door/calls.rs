//! From an event of a host to what it is told, and to the record.

use std::path::PathBuf;

use serde_json::json;

use super::door::{Door, hook_program, refusal, refusing};
use crate::env::{BEFORE_TOOL, PINTLE, TestEnv, answering};

#[test]
fn a_call_that_a_hook_refuses_does_not_run_and_why_says_so() {
    let env = TestEnv::new();
    refusing(&env, "*--force*");
    let door = Door::open(env);
    assert_eq!(door.told(&door.event("SessionStart", &json!({"source": "startup"}))), json!({}));
    assert_eq!(door.told(&door.event("UserPromptSubmit", &json!({"prompt": "push it"}))), json!({}));
    assert_eq!(door.told(&door.shell("toolu_1", "git push")), json!({}));
    let told = door.told(&door.shell("toolu_2", "git push --force"));
    assert!(refusal(&told).contains("history is not ours to rewrite"), "{told}");
    assert!(refusal(&told).contains("keep-history"), "{told}");
    assert_eq!(door.told(&door.event("Stop", &json!({"last_assistant_message": "done"}))), json!({}));
    let why = door.env.pintle(&["why", "claude:s"]);
    assert_eq!(why.code, Some(0), "{why}");
    assert!(why.out.contains("history is not ours to rewrite") && why.out.contains("exec"), "{why}");
    let why = door.env.pintle(&["why", "toolu_2"]);
    assert!(why.out.contains("keep-history"), "{why}");
    let denied = door.env.pintle(&["why", "--denied"]);
    assert!(denied.out.contains("git push --force"), "{denied}");
}

#[test]
fn a_second_refusal_under_the_id_of_a_call_hides_no_first_one() {
    let env = TestEnv::new();
    refusing(&env, "*--force*");
    let door = Door::open(env);
    for command in ["git push --force one", "git push --force two", "git push --force two"] {
        refusal(&door.told(&door.shell("toolu_1", command)));
    }
    for asked in [&["why", "--denied"][..], &["why", "claude:s"]] {
        let seen = door.env.pintle(asked);
        let counted = |text: &str| seen.out.matches(text).count();
        assert_eq!((counted("--force one"), counted("--force two")), (1, 1), "{seen}");
    }
}

#[test]
fn no_agent_takes_its_guard_away_or_answers_for_a_person() {
    let door = Door::open(TestEnv::new());
    let settings = door.env.path("home/.claude/settings.json");
    let more = json!({
        "tool_name": "Write", "tool_use_id": "toolu_1", "tool_input": {"file_path": settings, "content": "{}"},
    });
    refusal(&door.told(&door.event("PreToolUse", &more)));
    for program in [hook_program(), PathBuf::from(PINTLE)] {
        let program = program.display();
        let more = json!({
            "tool_name": "Write", "tool_use_id": "toolu_1",
            "tool_input": {"file_path": program.to_string(), "content": "#!/bin/sh"},
        });
        refusal(&door.told(&door.event("PreToolUse", &more)));
        for command in ["cp x PROGRAM", "mv x PROGRAM", "echo > PROGRAM", "rm PROGRAM", "ln -sf x PROGRAM"] {
            refusal(&door.told(&door.shell("toolu_2", &command.replace("PROGRAM", &program.to_string()))));
        }
    }
    for command in ["pintle approvals approve 0199", "rm -rf ~/.claude", "echo {} > ~/.claude/settings.json"] {
        refusal(&door.told(&door.shell("toolu_2", command)));
    }
    let told = door.told(&door.event("ConfigChange", &json!({"source": "user_settings", "file_path": settings})));
    assert_eq!(told["decision"], "block", "{told}");
    assert_eq!(door.told(&door.shell("toolu_3", "ls")), json!({}));
    let denied = door.env.pintle(&["why", "--denied"]);
    assert!(denied.out.contains("only a person"), "{denied}");
}

#[test]
fn a_rule_knows_where_a_file_tool_writes() {
    let env = TestEnv::new();
    let seen = env.on_terminal("", &["hooks", "add", "--starter"]);
    assert_eq!(seen.code, Some(0), "{seen}");
    let door = Door::open(env);
    let write = |id: &str, file: &str| {
        let call = json!({"tool_name": "Write", "tool_use_id": id, "tool_input": {"file_path": file, "content": "x"}});
        door.told(&door.event("PreToolUse", &call))
    };
    let told = write("toolu_1", "/etc/passwd");
    assert!(refusal(&told).contains("changes /etc/passwd, which lies outside of the workspace"), "{told}");
    let inside = door.env.path("here/src/x.rs").display().to_string();
    assert_eq!(write("toolu_2", &inside), json!({}));
    let hook = door.env.path("here/.git/hooks/pre-commit").display().to_string();
    assert!(refusal(&write("toolu_3", &hook)).contains("past git"));
}

#[test]
fn a_call_that_a_hook_changes_runs_changed() {
    let env = TestEnv::new();
    let result =
        r#"{"action":"modify","call":{"tool":"exec","arguments":{"command":"git push --dry-run","description":"x"}}}"#;
    let guard = env.write("config/pintle/guard.sh", &answering(BEFORE_TOOL, result));
    let config = "[hooks.processes.dry]\nenabled = true\ncommand = ['sh', 'GUARD']\nintercept = ['before_tool']\n";
    env.user_config(&config.replace("GUARD", &guard.display().to_string()));
    let door = Door::open(env);
    let told = door.told(&door.shell("toolu_1", "git push"));
    let expected = json!({"command": "git push --dry-run", "description": "x"});
    assert_eq!(told["hookSpecificOutput"]["updatedInput"], expected, "{told}");
}

#[test]
fn no_hook_changes_a_call_into_one_that_takes_the_guard_away() {
    for arguments in [r#"{"command":"echo {} > .claude/settings.json"}"#, r#"{"Command":"ls"}"#, "{}"] {
        let env = TestEnv::new();
        let result = r#"{"action":"modify","call":{"tool":"exec","arguments":ARGUMENTS}}"#;
        let guard =
            env.write("config/pintle/guard.sh", &answering(BEFORE_TOOL, &result.replace("ARGUMENTS", arguments)));
        let config = "[hooks.processes.bad]\nenabled = true\ncommand = ['sh', 'GUARD']\nintercept = ['before_tool']\n";
        env.user_config(&config.replace("GUARD", &guard.display().to_string()));
        let door = Door::open(env);
        refusal(&door.told(&door.shell("toolu_1", "git status")));
        let denied = door.env.pintle(&["why", "--denied"]);
        assert_eq!(denied.code, Some(0), "{denied}");
    }
}

#[test]
fn no_link_hides_what_guards() {
    let door = Door::open(TestEnv::new());
    let settings = door.env.path("home/.claude/settings.json");
    std::fs::create_dir_all(settings.parent().unwrap()).unwrap();
    std::os::unix::fs::symlink(settings.parent().unwrap(), door.env.path("here/lnk")).unwrap();
    std::os::unix::fs::symlink(&settings, door.env.path("here/s.json")).unwrap();
    let told = |tool: &str, member: &str, path: &str| {
        let more = json!({
            "tool_name": tool, "tool_use_id": "toolu_1", "tool_input": {(member): path, "content": "{}"},
        });
        door.told(&door.event("PreToolUse", &more))
    };
    // It leads to a file that is not there yet, too.
    for path in ["lnk/settings.json", "s.json", "/proc/self/cwd/s.json"] {
        refusal(&told("Write", "file_path", path));
        refusal(&told("mcp__fs__put", "dest", path));
    }
    assert_eq!(told("Write", "file_path", "t.json"), json!({}));
}

#[test]
fn a_result_that_a_hook_changes_reaches_the_model_changed() {
    let env = TestEnv::new();
    let pattern = r#"*'"method":"hook.after_tool"'*"#;
    let result = r#"{"action":"modify","result":{"result":{"for_llm":"[withheld]"}}}"#;
    let guard = env.write("config/pintle/guard.sh", &answering(pattern, result));
    let config = "[hooks.processes.redact]\nenabled = true\ncommand = ['sh', 'GUARD']\nintercept = ['after_tool']\n";
    env.user_config(&config.replace("GUARD", &guard.display().to_string()));
    let door = Door::open(env);
    let result = json!({"stdout": "the key is 42", "stderr": "", "interrupted": false, "isImage": false});
    let more = json!({
        "tool_name": "Bash", "tool_use_id": "toolu_1", "tool_input": {"command": "cat key"}, "tool_response": result,
    });
    let told = door.told(&door.event("PostToolUse", &more));
    assert_eq!(told["hookSpecificOutput"]["updatedToolOutput"]["stdout"], "[withheld]", "{told}");
    assert!(!told.to_string().contains("42"), "{told}");
}

#[test]
fn a_changed_configuration_counts_for_the_next_session_at_the_latest() {
    let env = TestEnv::new();
    refusing(&env, "*--force*");
    let door = Door::open(env);
    assert_eq!(door.told(&door.shell("toolu_1", "git push")), json!({}));
    refusing(&door.env, "*push*");
    let mut other = door.shell("toolu_2", "git push");
    other["session_id"] = json!("another");
    assert!(refusal(&door.told(&other)).contains("history"));
}

#[test]
fn a_folder_keeps_its_hooks_wherever_the_agent_goes() {
    let env = TestEnv::new();
    let door = Door::open(env);
    // The project's own configuration, which somebody accepted.
    let guard = door.env.write(
        "here/guard.sh",
        &answering(&format!("{BEFORE_TOOL}*--force*"), r#"{"action":"deny_tool","reason":"not in this project"}"#),
    );
    door.env.found_config(&format!(
        "[hooks.processes.project]\nenabled = true\ncommand = ['sh', '{}']\nintercept = ['before_tool']\n",
        guard.display()
    ));
    let trusted = door.env.on_terminal("y\n", &["trust"]);
    assert_eq!(trusted.code, Some(0), "{trusted}");
    assert!(refusal(&door.told(&door.shell("toolu_1", "git push --force"))).contains("not in this project"));
    let mut elsewhere = door.shell("toolu_2", "git push --force");
    elsewhere["cwd"] = json!(door.env.path("home"));
    assert!(refusal(&door.told(&elsewhere)).contains("not in this project"), "`cd` leads out of no guard");
}

#[test]
fn a_refusal_of_the_guard_itself_shows_the_call() {
    let door = Door::open(TestEnv::new());
    let told = door.told(&door.shell("toolu_1", "rm -rf / --no-preserve-root"));
    assert!(refusal(&told).contains("holds what guards"), "{told}");
    for (args, place) in [(["why", "--denied"], "exec"), (["audit", "tail"], "pre_tool_use exec")] {
        let seen = wait_for(|| Some(door.env.pintle(&args)).filter(|seen| seen.out.contains("holds what guards")));
        assert!(seen.out.contains(place) && seen.out.contains("rm -rf / --no-preserve-root"), "{seen}");
    }
}
