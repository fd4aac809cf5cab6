//! `pintle hooks test` for rules, for records in files, and for the starter guards.

use pintle_domain::json::Value;

use super::{GUARD, add, listed};
use crate::env::{PINTLE, TestEnv};

/// A command hook `h` that runs `command`, with `more` in its record.
fn command(command: &str, more: &str) -> String {
    format!(
        "[[hook]]\nname = 'h'\nevent = 'pre_tool_use'\nhandler_type = 'command'\nscope = 'tenant'\n{more}\n\
         [hook.config]\ncommand = '''{command}'''\n"
    )
}

fn check(text: &str, args: &[&str]) -> String {
    let env = TestEnv::new();
    env.write("here/rules.toml", text);
    let seen = env.pintle(&[&["hooks", "test", "--file", "rules.toml"], args].concat());
    assert_eq!(listed(&env), Vec::<Value>::new(), "nothing is kept");
    seen.to_string()
}

#[test]
fn every_decision_has_a_line_and_an_exit_code() {
    let seen = [
        check(&command("cat >/dev/null; echo not today >&2; exit 2", ""), &[]),
        check(&command("cat", ""), &[]),
        check(&command(r#"echo '{"decision":"ask","reason":"sure?"}'"#, ""), &[]),
        check(&command("echo broken >&2; exit 3", ""), &[]),
        check(&command("sleep 30", "timeout_ms = 50"), &[]),
        check(&command("true", "matcher = '^read_file$'"), &["--tool", "exec"]),
        check(&command("true", "if_expr = 'tool_input.command == \"ls\"'"), &["--input", r#"{"command": "rm"}"#]),
        check(&command("true", "if_expr = 'tool_input.command == \"ls\"'"), &[]),
        check(&command(r#"echo '{"updatedInput":{"command":"ls"}}'"#, ""), &[]),
        check(
            &command(
                r#"echo '{"updatedInput":{"command":"ls"},"additionalContext":"mind the gap"}'"#,
                "may_rewrite = true",
            ),
            &[],
        ),
    ];
    insta::assert_snapshot!(seen.concat(), @r#"
    exit 4
    --- out
    block  h  "not today"  [time]

    exit 0
    --- out
    allow  h  [time]

    exit 4
    --- out
    ask  h  "sure?"  [time]

    exit 1
    --- out
    fault  h  hook: command exited 3: broken → block  [time]
      stderr    broken

    exit 1
    --- out
    timeout  h  no answer within [time] → block  [time]

    exit 0
    --- out
    allow  h  [time]
      matcher   does not want this event: it would not be asked

    exit 0
    --- out
    allow  h  [time]
      condition does not hold: it would not be asked

    exit 1
    --- out
    allow  h  [time]
      condition a fault at a real event: no such key: command; test it with has() first

    exit 0
    --- out
    allow  h  [time]
      rewrite   dropped: it may not change command
                {"command":"ls"}

    exit 0
    --- out
    allow  h  [time]
      rewrite   applied
                {"command":"ls"}
      context   mind the gap
    "#);
}

#[test]
fn the_result_is_that_of_the_protocol() {
    let env = TestEnv::new();
    add(&env, GUARD);
    let args =
        ["hooks", "test", "no-force", "--tool", "bash", "--input", r#"{"command": "git push --force"}"#, "--json"];
    let output = env.command(PINTLE).args(args).output().unwrap();
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(4));
    assert_eq!((&result["decision"], &result["effective"]), (&"block".into(), &"block".into()));
    assert_eq!(result["reason"], "forced pushes are done by people");
    assert_eq!(result["matcherMatched"], true);
    assert!(result["durationMs"].is_u64());
    assert!(env.pintle(&["hooks", "history"]).err.contains("no execution matches"), "a test leaves no row");
}

#[test]
fn the_starter_guards_answer_as_a_chain() {
    let env = TestEnv::new();
    let test = |input: &str| env.pintle(&["hooks", "test", "--starter", "--tool", "exec", "--input", input]);
    let bad = test(r#"{"command": "rm -rf /"}"#);
    assert!(bad.code == Some(4) && bad.out.starts_with("block  starter-destroy  \""), "{bad}");
    assert_eq!(test(r#"{"command": "ls"}"#).code, Some(0));
    // A question for a person does not keep a later guard from refusing; each is named with what it said.
    let both = test(r#"{"command": "sudo -u bob cat /etc/shadow"}"#);
    assert!(both.code == Some(4) && both.out.starts_with("block  starter-secrets  \""), "{both}");
    assert!(both.out.contains("  asked     starter-outside: ask  \""), "{both}");
    assert!(both.out.contains("  asked     starter-secrets: block  \""), "{both}");
}

#[test]
fn a_record_of_several_is_named() {
    let both = format!("{GUARD}\n{}", command("true", ""));
    let seen =
        [check(&both, &[]), check(&both, &["h"]), check(&both, &["hh"]), check(&both, &["h", "--event", "stop"])];
    insta::assert_snapshot!(seen.concat(), @r#"
    exit 2
    --- err
    error: rules.toml holds 2 records
      hint: name the one that you mean before --file: "no-force", "h"

    exit 0
    --- out
    allow  h  [time]

    exit 2
    --- err
    error: there is no record "hh"; did you mean "h"?

    exit 2
    --- err
    error: --event: hook "h" does not act at `stop`; it acts at pre_tool_use
    "#);
}

#[test]
fn a_bad_record_says_where() {
    let seen = [check(&command("true", "matcher = '('"), &[]), check(&command("true", "timeout = 5"), &[])];
    insta::assert_snapshot!(seen.concat(), @r#"
    exit 2
    --- err
    error: rules.toml:6:11: hook: matcher invalid: compile matcher "(": error: unclosed group

    exit 2
    --- err
    error: rules.toml:6:1: invalid request: invalid config: unknown field "timeout" (did you mean "timeout_ms"?)
    "#);
}
