//! What is written of command hooks, and what becomes of it.

use std::time::Duration;

use pintle_dialects::claude::config::ListContext;
use pintle_dialects::claude::{ClaudeEvent, CommandEntry};
use pintle_domain::checkpoint::{CheckpointKind, Facts};
use pintle_domain::hook::{Family, Hook, HookState, OnFailure};
use pintle_domain::json::{Value, from_value, json};

fn around(event: ClaudeEvent) -> ListContext<'static> {
    ListContext { event, origin: "pintle.toml:1:1", before: 1, inherit_env: &[], files: None }
}

fn hooks(event: ClaudeEvent, groups: &Value) -> Result<Vec<(Hook, CommandEntry)>, Vec<String>> {
    let groups: Vec<_> = from_value(groups.clone()).map_err(|error| vec![error.to_string()])?;
    let said = |problems: Vec<pintle_dialects::process::config::EntryProblem>| {
        problems.iter().map(|problem| format!("{}: {problem}", problem.path.join("."))).collect()
    };
    around(event).hooks(&groups).map_err(said)
}

#[test]
fn commands_run_in_the_order_in_which_they_are_written() {
    let groups = json!([
        {"matcher": "Bash|Write", "hooks": [{"type": "command", "command": "guard.sh", "timeout": 5, "if": "Bash(git *)"},
                                            {"command": "guard", "args": ["--strict"], "onFailure": "continue"}]},
        {"hooks": [{"command": "all.sh", "shell": "bash", "statusMessage": "looking"}]},
    ]);
    let hooks = hooks(ClaudeEvent::PreToolUse, &groups).unwrap();
    let row: Vec<_> =
        hooks.iter().map(|(hook, entry)| (hook.name.as_str(), hook.priority, entry.argv.join(" "))).collect();
    assert_eq!(
        row,
        [
            ("claude.PreToolUse.2", 2, "/bin/sh -c guard.sh".to_owned()),
            ("claude.PreToolUse.3", 3, "guard --strict".to_owned()),
            ("claude.PreToolUse.4", 4, "bash -c all.sh".to_owned()),
        ]
    );
    let stages: Vec<_> = hooks.iter().map(|(hook, _)| hook.stages.get(CheckpointKind::PreToolUse).unwrap()).collect();
    assert_eq!(stages.iter().map(|stage| stage.timeout.as_secs()).collect::<Vec<_>>(), [5, 600, 600]);
    assert_eq!(
        stages.iter().map(|stage| stage.on_failure).collect::<Vec<_>>(),
        [OnFailure::Close, OnFailure::Continue, OnFailure::Close]
    );
    let (first, entry) = &hooks[0];
    assert_eq!((first.family, first.matcher.as_ref().unwrap().pattern()), (Family::Command, "Bash|Write"));
    assert_eq!(entry.condition.as_ref().unwrap().text(), "Bash(git *)");
    let about = |tool: &str| first.matches(&Facts::of_tool(tool));
    assert_eq!(["exec", "write_file", "edit_file", "read_file"].map(about), [true, true, false, false]);
    assert!(hooks[2].0.matches(&Facts::of_tool("anything")));
}

#[test]
fn a_list_of_names_is_exact_and_all_else_an_expression() {
    let about = |matcher: &str, tool: &str, raw: &str| {
        let groups = json!([{"matcher": matcher, "hooks": [{"command": "x"}]}]);
        let hook = hooks(ClaudeEvent::PreToolUse, &groups).unwrap().remove(0).0;
        hook.matches(&Facts { tool: Some((tool, raw)), ..Facts::default() })
    };
    for (matcher, tool, raw, expected) in [
        ("*", "exec", "Bash", true),
        ("Edit, MultiEdit", "edit_file", "edit_file", true),
        ("Edit", "write_file", "Write", false),
        ("Ed", "edit_file", "Edit", false),
        ("Edit.*", "edit_file", "edit_file", true),
        ("^(Read|Glob)$", "find_files", "find_files", true),
        ("mcp__rig__.*", "mcp_rig_touch", "mcp__rig__touch", true),
        ("mcp__rig__.*", "mcp_rig_touch", "mcp_rig_touch", true),
        ("mcp__other__.*", "mcp_rig_touch", "mcp_rig_touch", false),
        ("apply_patch", "edit_file", "apply_patch", true),
        ("run_shell_command", "exec", "Bash", true),
        ("exec", "exec", "Bash", true),
    ] {
        assert_eq!(about(matcher, tool, raw), expected, "{matcher} {tool} {raw}");
    }
}

#[test]
fn events_of_no_tool_have_matchers_of_their_own() {
    let groups = json!([{"matcher": "explore", "hooks": [{"command": "x"}]}]);
    let (hook, entry) = hooks(ClaudeEvent::SubagentStart, &groups).unwrap().remove(0);
    assert!(hook.matcher.is_none() && entry.about.unwrap().is_match("explore"));
    let (hook, entry) = hooks(ClaudeEvent::UserPromptSubmit, &groups).unwrap().remove(0);
    assert!(hook.matcher.is_none() && entry.about.is_none());
    let timeout = hook.stages.get(CheckpointKind::UserPromptSubmit).unwrap().timeout;
    assert_eq!(timeout, Duration::from_secs(30));
    let after = json!([{"hooks": [{"command": "x", "onFailure": "block"}, {"command": "y"}]}]);
    let stages = hooks(ClaudeEvent::PostToolUse, &after).unwrap();
    let on_failure = stages.iter().map(|(hook, _)| hook.stages.get(CheckpointKind::AfterTool).unwrap().on_failure);
    assert_eq!(on_failure.collect::<Vec<_>>(), [OnFailure::AbortTurn, OnFailure::Continue]);
}

#[test]
fn every_mistake_is_named() {
    for (group, expected) in [
        (
            json!({"hooks": [{"type": "http", "command": "x"}]}),
            "0.hooks.0.type: unsupported type \"http\": only commands run here",
        ),
        (json!({"hooks": [{"type": "command"}]}), "0.hooks.0.command: command is required"),
        (json!({"hooks": [{"command": "x", "timeout": 0}]}), "0.hooks.0.timeout: must be greater than 0"),
        (
            json!({"hooks": [{"command": "x", "if": "git push"}]}),
            "0.hooks.0.if: expected one rule such as `Bash(git *)`, got `git push`",
        ),
        (
            json!({"hooks": [{"command": "x", "onFailure": "blok"}]}),
            "0.hooks.0.onFailure: unsupported onFailure \"blok\"; did you mean \"block\"?",
        ),
        (
            json!({"hooks": [{"command": "x", "shell": "powershell"}]}),
            "0.hooks.0.shell: unsupported shell \"powershell\": expected \"bash\"",
        ),
        (
            json!({"hooks": [{"command": "x", "shell": "bash", "args": []}]}),
            "0.hooks.0.shell: with `args` there is no shell: leave one of them out",
        ),
        (json!({"matcher": "(", "hooks": [{"command": "x"}]}), "0.matcher: invalid matcher `(`: "),
        (json!({"matcher": "Bash"}), "0: `hooks` is missing: the commands of this matcher"),
        (json!({"hooks": [{"command": "x", "asynch": true}]}), "unknown field `asynch`"),
    ] {
        let problems = hooks(ClaudeEvent::PreToolUse, &json!([group.clone()])).unwrap_err();
        assert!(problems[0].contains(expected), "{group}: {problems:?}");
    }
    let groups = json!([{"hooks": [{"command": "x", "if": "Bash"}]}]);
    assert_eq!(hooks(ClaudeEvent::Stop, &groups).unwrap_err(), ["0.hooks.0.if: `Stop` is about no tool"]);
}

#[test]
fn a_list_that_is_not_in_force_is_seen_and_a_bad_one_shuts() {
    let list =
        json!([{"matcher": "Bash", "hooks": [{"command": "a"}, {"command": "b"}]}, {"hooks": [{"command": "c"}]}]);
    let idle = around(ClaudeEvent::PreToolUse).idle(&list, &HookState::Untrusted);
    assert_eq!(
        idle.iter().map(|hook| hook.name.as_str()).collect::<Vec<_>>(),
        ["claude.PreToolUse.2", "claude.PreToolUse.3", "claude.PreToolUse.4"]
    );
    let stub = around(ClaudeEvent::PreToolUse).broken("it is bad");
    assert_eq!(stub.stages.get(CheckpointKind::PreToolUse).unwrap().on_failure, OnFailure::Close);
    assert!(matches!(stub.state, HookState::Broken(_)) && stub.matches(&Facts::of_tool("exec")));
}
