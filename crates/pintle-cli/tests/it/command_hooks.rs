//! Command hooks in Claude's wire, at work in whole turns of the real program.

use std::fs;
use std::time::{Duration, Instant};

use pintle_domain::json::{Value, json};

use crate::env::TestEnv;
use crate::rules_in_turns::stage::{Model, calls, runs, says, turn, whole_turn};

/// An agent with `exec` and the command hooks `hooks`.
fn agent(hooks: &str) -> String {
    format!("tools = ['exec', 'write_file']\n{hooks}")
}

/// One command at `event`, with `more` members.
fn hook(event: &str, matcher: &str, command: &str, more: &str) -> String {
    format!("[[hooks.claude.{event}]]\nmatcher = '{matcher}'\nhooks = [{{ command = '''{command}''' {more} }}]\n")
}

/// A command that writes what it is given to the file `NAME.jsonl`, a line each.
fn dumps(event: &str) -> String {
    hook(event, "*", &format!("line=$(cat); printf \"%s\\n\" \"$line\" >>{event}.jsonl"), "")
}

/// What a command of [`dumps`] was given.
fn dumped(env: &TestEnv, event: &str) -> Vec<Value> {
    let text = fs::read_to_string(env.path(&format!("here/{event}.jsonl"))).unwrap_or_default();
    text.lines().map(|line| pintle_domain::json::parse(line).unwrap()).collect()
}

#[test]
fn each_event_gives_its_command_what_it_is_about() {
    let model = Model::giving(vec![
        runs("c1", "echo hi"),
        calls(&[("c2", "write_file", json!({"path": "a.txt", "content": "x"}))]),
        runs("c3", "exit 3"),
        says("Done."),
    ]);
    let events = ["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "Stop"];
    let env = model.env(&agent(&events.map(dumps).concat()), "");
    assert_eq!(whole_turn(&env, "go"), "Done.\n");
    let told = events.map(|event| dumped(&env, event));
    assert_eq!(told.each_ref().map(Vec::len), [1, 1, 3, 2, 1, 1], "{told:?}");
    let here = env.path("here");
    for event in told.iter().flatten() {
        assert_eq!(event["cwd"], here.canonicalize().unwrap().to_string_lossy().as_ref(), "{event}");
    }
    assert_eq!(told[1][0]["prompt"], "go");
    let row = |event: &Value| format!("{} {}", event["tool_name"].as_str().unwrap(), event["tool_input"]);
    assert_eq!(row(&told[2][0]), r#"Bash {"command":"echo hi"}"#);
    let file = here.canonicalize().unwrap().join("a.txt");
    assert_eq!(told[2][1]["tool_input"]["file_path"], file.to_string_lossy().as_ref());
    assert_eq!(told[2][1]["tool_name"], "Write");
    assert!(told[3][0]["tool_response"]["stdout"].as_str().unwrap().contains("hi"), "{}", told[3][0]);
    assert_eq!(told[4][0]["hook_event_name"], "PostToolUseFailure");
    assert_eq!(told[5][0]["last_assistant_message"], "Done.");
}

#[test]
fn a_command_refuses_asks_changes_and_says_more() {
    let model = Model::giving(vec![
        runs("c1", "git push --force"),
        runs("c2", "echo one"),
        calls(&[("c3", "write_file", json!({"path": "a.txt", "content": "x"}))]),
        says("Done."),
    ]);
    let changes = r#"echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow","updatedInput":{"command":"echo two"},"additionalContext":"it was one"}}'"#;
    let hooks = [
        hook("UserPromptSubmit", "", "echo the branch is main", ""),
        hook(
            "PreToolUse",
            "Bash",
            "grep -q force && { echo not by force >&2; exit 2; }; exit 0",
            ", if = 'Bash(git *)'",
        ),
        hook("PreToolUse", "Bash", changes, ""),
        hook("PostToolUse", "Write|Edit", "echo run the formatter >&2; exit 2", ""),
    ];
    let env = model.env(&agent(&hooks.concat()), "");
    assert_eq!(whole_turn(&env, "go"), "Done.\n");
    let last = model.asked(3).join("\n");
    for said in ["the branch is main", "not by force", "two", "it was one", "run the formatter"] {
        assert!(last.contains(said), "{said}: {last}");
    }
    assert!(env.path("here/a.txt").exists(), "what ran has run");
    let why = env.pintle(&["why", "--last", "-v"]);
    for said in [
        "claude.PreToolUse.1",
        "claude.PreToolUse.2",
        "its condition `Bash(git *)` does not hold",
        "claude.PostToolUse.1",
        "not by force",
    ] {
        assert!(why.out.contains(said), "{said}: {why}");
    }
}

#[test]
fn a_question_of_a_command_waits_for_a_person() {
    let asks = r#"echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"ask","permissionDecisionReason":"is it time?"}}'"#;
    let model = Model::giving(vec![runs("c1", "touch ran"), says("Done.")]);
    let env = model.env(&agent(&hook("PreToolUse", "Bash", asks, "")), "");
    let seen = turn(&env, "go");
    assert_eq!(seen.code, Some(75), "{seen}");
    let waiting = env.pintle(&["approvals", "list"]);
    assert!(waiting.out.contains("is it time?") && !env.path("here/ran").exists(), "{waiting}");
}

#[test]
fn every_fault_refuses_and_is_named() {
    let deny = r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no"}}"#;
    for (command, more, said) in [
        ("exit 1", "", "exited with status 1"),
        ("echo broken >&2; exit 3", "", "broken"),
        ("no-such-guard", "", "exited with status 127"),
        ("./no-such-guard", "", "no-such-guard"),
        ("kill -9 $$", "", "was killed by signal 9"),
        ("sleep 60", ", timeout = 1", "timed out after"),
        ("echo '{'", "", "sent an unreadable reply"),
        (&format!("echo checking; echo '{deny}'"), "", "sent an unreadable reply"),
        (r#"echo '{"decision":"perhaps"}'"#, "", "which nobody knows"),
        ("yes | head -c 2000000", "", "sent a reply above"),
    ] {
        let model = Model::giving(vec![runs("c1", "touch ran"), says("Done.")]);
        let env = model.env(&agent(&hook("PreToolUse", "Bash", command, more)), "");
        assert_eq!(whole_turn(&env, "go"), "Done.\n");
        let why = env.pintle(&["why", "--last", "-v"]);
        assert!(why.out.contains(said) && why.out.contains("claude.PreToolUse.1"), "{command}: {why}");
        let denied = env.pintle(&["why", "--denied"]);
        let text = denied.out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(said), "{command}: {denied}");
        assert!(!env.path("here/ran").exists(), "{command}");
    }
}

#[test]
fn a_fault_lets_pass_only_where_the_entry_says_so_and_a_refusal_never() {
    let deny = r#"{"decision":"block","reason":"no"}"#;
    for (command, runs_all_the_same) in [
        ("exit 1", true),
        ("sleep 60", true),
        ("echo '{'", true),
        (&*format!("echo checking; echo '{deny}'"), false),
        ("exit 2", false),
    ] {
        let model = Model::giving(vec![runs("c1", "touch ran"), says("Done.")]);
        let more = ", timeout = 1, onFailure = 'continue'";
        let env = model.env(&agent(&hook("PreToolUse", "Bash", command, more)), "");
        assert_eq!(whole_turn(&env, "go"), "Done.\n");
        assert_eq!(env.path("here/ran").exists(), runs_all_the_same, "{command}");
    }
}

#[test]
fn what_a_command_started_is_ended_with_it() {
    let model = Model::giving(vec![runs("c1", "true"), says("Done.")]);
    let leaves = "(sleep 300; touch late) & echo $! >pid; sleep 300";
    let env = model.env(&agent(&hook("PreToolUse", "Bash", leaves, ", timeout = 1")), "");
    let began = Instant::now();
    assert_eq!(whole_turn(&env, "go"), "Done.\n");
    assert!(began.elapsed() < Duration::from_secs(60));
    let pid = fs::read_to_string(env.path("here/pid")).unwrap();
    assert!(!fs::exists(format!("/proc/{}", pid.trim())).unwrap(), "{pid} still runs");
}

#[test]
fn commands_see_no_secret_that_nobody_named() {
    let dump = hook("PreToolUse", "", "env >env.txt", "");
    for (more, is_given) in [("", false), ("[hooks.claude]\ninherit_env = ['A_TOKEN']\n", true)] {
        let model = Model::giving(vec![runs("c1", "true"), says("Done.")]);
        let env = model.env(&agent(&format!("{more}{dump}")), "");
        let seen = env.run(env.command(crate::env::PINTLE).args(["run", "-q", "go"]).env("A_TOKEN", "t"), "");
        assert_eq!(seen.code, Some(0), "{seen}");
        let vars = fs::read_to_string(env.path("here/env.txt")).unwrap();
        assert_eq!(vars.contains("A_TOKEN=t"), is_given, "{vars}");
        let here = env.path("here").canonicalize().unwrap();
        assert!(vars.contains(&format!("CLAUDE_PROJECT_DIR={}", here.display())), "{vars}");
    }
}

#[test]
fn what_a_folder_brings_counts_once_it_is_accepted_as_it_was() {
    let model = Model::giving(vec![
        runs("c1", "touch one"),
        says("1"),
        runs("c2", "touch two"),
        says("2"),
        runs("c3", "touch three"),
        says("3"),
    ]);
    let env = model.env("tools = ['exec']\n", "");
    env.write("here/guard.sh", "echo not here >&2; exit 2\n");
    env.found_config(&hook("PreToolUse", "Bash", "sh \"$CLAUDE_PROJECT_DIR/guard.sh\"", ""));
    let turn = || env.pintle(&["run", "--quiet", "go"]).out;
    assert_eq!(turn(), "1\n");
    assert!(env.path("here/one").exists());
    let untrusted = env.pintle(&["hooks", "list"]);
    assert!(untrusted.out.contains("claude.PreToolUse.1") && untrusted.out.contains("untrusted"), "{untrusted}");
    assert_eq!(env.on_terminal("y\n", &["trust"]).code, Some(0));
    assert_eq!(turn(), "2\n");
    assert!(!env.path("here/two").exists());
    // The script is another one by now.
    env.write("here/guard.sh", "exit 0\n");
    assert_eq!(turn(), "3\n");
    assert!(!env.path("here/three").exists(), "{}", env.pintle(&["why", "--last", "-v"]));
}

#[test]
fn a_bad_list_is_shut_and_listings_say_what_there_is() {
    let model = Model::giving(vec![runs("c1", "touch ran"), says("Done.")]);
    let env = model.env(&agent(&hook("PreToolUse", "Bash", "true", ", typ = 'x'")), "");
    let seen = turn(&env, "go");
    assert!(seen.err.contains("typ"), "{seen}");
    assert!(!env.path("here/ran").exists(), "{seen}");
    let model = Model::giving(Vec::new());
    let env = model.env(&agent(&hook("PreToolUse", "Bash", "true", ", if = 'Bash(git *)'")), "");
    let list = env.pintle(&["hooks", "list", "--json"]);
    assert!(list.out.contains(r#""claude.PreToolUse.1""#) && list.out.contains(r#""command""#), "{list}");
    let show = env.pintle(&["hooks", "show", "claude.PreToolUse.1"]);
    for said in ["command", "Bash(git *)", "/bin/sh -c true", "pre_tool_use"] {
        assert!(show.out.contains(said), "{said}: {show}");
    }
}
