//! `pintle hooks history`: filters and pages.

use pintle_domain::json::Value;

use super::{GUARD, add, operate};
use crate::env::{PINTLE, TestEnv};
use crate::run::scripted;

/// Three calls of which two are refused, and a last word.
fn worked() -> TestEnv {
    let call = |command: &str| pintle_domain::json::json!({"tool_calls": [{"name": "exec", "arguments": {"command": command}}]});
    let calls = ["true --force", "true", "false --force"].map(call).map(|call| call.to_string());
    let env = scripted(&format!(r#"{}, {{"text": "Done."}}"#, calls.join(",")), "tools = ['exec']\n");
    add(&env, GUARD);
    assert_eq!(env.pintle(&["run", "--quiet", "--session", "s", "go"]).out, "Done.\n");
    env
}

fn page(env: &TestEnv, args: &[&str]) -> (Vec<Value>, String) {
    let output = env.command(PINTLE).args(["hooks", "history", "--json"]).args(args).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    let page: Value = serde_json::from_slice(&output.stdout).unwrap();
    (page["executions"].as_array().unwrap().clone(), page["nextCursor"].as_str().unwrap().to_owned())
}

#[test]
fn filters_narrow_and_pages_follow_one_another() {
    let env = worked();
    let count = |args: &[&str]| page(&env, args).0.len();
    assert_eq!(count(&[]), 3);
    assert_eq!(count(&["no-force", "--decision", "block"]), 2);
    assert_eq!(count(&["--decision", "allow"]), 1);
    assert_eq!((count(&["--session", "s"]), count(&["--session", "t"])), (3, 0));
    assert_eq!((count(&["--event", "pre_tool_use"]), count(&["--event", "stop"])), (3, 0));
    assert_eq!((count(&["--agent", "main"]), count(&["--since", "1h"]), count(&["--until", "1h"])), (3, 3, 0));
    let (all, _) = page(&env, &[]);
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    for _ in 0..3 {
        let (rows, next) = page(&env, &["--limit", "1", "--cursor", &cursor]);
        seen.extend(rows);
        cursor = next;
    }
    assert_eq!(seen, all, "newest first, each once");
    let (rest, _) = page(&env, &["--limit", "200"]);
    assert_eq!(rest, all);
}

#[test]
fn words_that_are_none_are_refused() {
    let env = worked();
    let cases: [&[&str]; 6] = [
        &["--limit", "201"],
        &["--decision", "deny"],
        &["--event", "pre_tool"],
        &["--since", "yesterday"],
        &["--cursor", "zzz"],
        &["--agent", "nobody"],
    ];
    let seen = cases.map(|args| env.pintle(&[&["hooks", "history"], args].concat()).to_string());
    insta::assert_snapshot!(seen.concat(), @r#"
    exit 2
    --- err
    error: --limit: expected 1 to 200, got 201

    exit 2
    --- err
    error: --decision: there is no decision `deny` of rules
      hint: there are allow, block, ask, error, timeout

    exit 2
    --- err
    error: --event: there is no event `pre_tool` of rules
      hint: there are session_start, user_prompt_submit, pre_tool_use, post_tool_use, subagent_start, subagent_stop, stop

    exit 2
    --- err
    error: --since: "yesterday" is not a time
      hint: write [at], 2026-11-22, or how long ago, such as 2h or 3d

    exit 2
    --- err
    error: --cursor: it belongs to other filters
      hint: repeat the command that printed it, with nothing changed but --limit; without --cursor the list starts over

    exit 2
    --- err
    error: --agent: there is no agent "nobody"
      hint: name one of the configuration, or give the id that its executions have
    "#);
}

#[test]
fn a_page_that_ends_before_the_end_says_how_to_go_on() {
    let env = worked();
    let seen = env.pintle(&["hooks", "history", "--limit", "2", "--since", "1h"]);
    assert_eq!(seen.out.lines().count(), 2, "{seen}");
    let words: Vec<&str> = seen.err.trim().split(' ').collect();
    let raw = env.command(PINTLE).args(["hooks", "history", "--limit", "2", "--since", "1h"]).output().unwrap();
    let note = String::from_utf8(raw.stderr).unwrap();
    let flags: Vec<&str> =
        note.trim().trim_end_matches('`').split_once(" --since").unwrap().1.trim().split(' ').collect();
    assert!(words.len() > 6, "{}", seen.err);
    let [since, _, cursor] = flags.as_slice() else { panic!("{note}") };
    let rest = env.pintle(&["hooks", "history", "--limit", "2", "--since", since, "--cursor", cursor]);
    assert_eq!((rest.code, rest.out.lines().count()), (Some(0), 1), "{rest}");
}

/// A command that fails with secrets in its words, which do not stand in the rule.
const LEAKS: &str = r#"[[hook]]
name = "leaks"
event = "pre_tool_use"
handler_type = "command"
scope = "tenant"
matcher = "^exec$"

[hook.config]
command = 'a=ann; b=0123456789; echo "mail $a@example.org, Authorization: Bearer s3cr3t-t0ken-$b" >&2; exit 3'
"#;

#[test]
fn the_whole_text_of_a_fault_is_for_a_person_only() {
    let call = r#"{"tool_calls": [{"name": "exec", "arguments": {"command": "true"}}]}, {"text": "Done."}"#;
    let env = scripted(call, "tools = ['exec']\n");
    assert_eq!(add(&env, LEAKS).code, Some(0));
    let secrets = ["ann@example.org", "s3cr3t-t0ken-0123456789"];
    let shows = |text: &str| secrets.iter().filter(|secret| text.contains(*secret)).count();
    let run = env.pintle(&["run", "go"]);
    assert!(run.err.contains("leaks"), "{run}");
    for args in [&["why"][..], &["why", "-vv"], &["why", "--json"], &["hooks", "history"], &["hooks", "show", "leaks"]]
    {
        let seen = env.pintle(args);
        assert_eq!((seen.code, shows(&seen.to_string())), (Some(0), 0), "{args:?}: {seen}");
    }
    assert_eq!(shows(&run.to_string()), 0, "{run}");
    // The cause is for people, without what is secret; what the model read is the phrase alone.
    assert!(env.pintle(&["why"]).out.contains("exited with status 3: hook: command exited 3: mail [REDACTED]"));
    let journal = env.raw(&["sessions", "list", "--json"]);
    let journal: Value = serde_json::from_str(&journal).unwrap();
    let said = env.raw(&["sessions", "show", journal[0]["session_id"].as_str().unwrap(), "--json"]);
    assert!(said.contains("failed: it exited with status 3") && !said.contains("REDACTED"), "{said}");
    let reads = || env.raw(&["audit", "tail", "--json"]).matches("detail_read").count();
    assert_eq!(reads(), 0);
    let found: Value = serde_json::from_str(&env.raw(&["hooks", "history", "--json"])).unwrap();
    let id = found["executions"][0]["id"].as_str().unwrap();
    let alone = env.pintle(&["hooks", "history", "--detail", id]);
    assert_eq!((alone.code, shows(&alone.to_string())), (Some(5), 0), "{alone}");
    let person = super::operate(&env, &["hooks", "history", "--detail", id]);
    assert_eq!((person.code, shows(&person.to_string())), (Some(0), 2), "{person}");
    assert_eq!(reads(), 1, "that it was read stands in the audit chain");
    assert_eq!(env.pintle(&["hooks", "history", "--detail", id, "--limit", "3"]).code, Some(2));
}

#[test]
fn a_removed_hook_is_found_by_the_name_and_the_id_that_it_had() {
    let env = worked();
    let id = page(&env, &[]).0[0]["hook_id"].as_str().unwrap().to_owned();
    operate(&env, &["hooks", "remove", "no-force"]);
    assert_eq!(page(&env, &["no-force"]).0.len(), 3);
    assert_eq!(page(&env, &[&id, "--decision", "block"]).0.len(), 2);
    assert_eq!(page(&env, &["no-force", "--decision", "ask"]).0.len(), 0);
    let seen = env.pintle(&["hooks", "history", "no-forse"]);
    assert!(seen.code == Some(2) && seen.err.contains("there is no rule \"no-forse\""), "{seen}");
    let seen = env.pintle(&["hooks", "history", "0193a5b0-7000-7000-8000-0000000000ff"]);
    assert!(seen.code == Some(2) && seen.err.contains("hook not found"), "{seen}");
    // One of the same name that is there now is another hook.
    add(&env, GUARD);
    assert_eq!((page(&env, &["no-force"]).0.len(), page(&env, &[&id]).0.len()), (0, 3));
}

/// A command that refuses with keys in its words, which do not stand in the rule.
const DENIES: &str = r#"[[hook]]
name = "denies"
event = "pre_tool_use"
handler_type = "command"
scope = "tenant"
matcher = "^exec$"

[hook.config]
command = 'a=0123456789abcdef; echo "denied: ghp_$a$a pintle_$a$a MY_TOKEN: abcd$a" >&2; exit 2'
"#;

#[test]
fn the_audit_chain_has_no_key_that_a_hook_or_a_call_names() {
    let call = r#"{"tool_calls": [{"name": "exec", "arguments": {"command": "curl -H 'X-Key: ghp_feedfeedfeedfeedfeed' x"}}]},
                  {"text": "Done."}"#;
    let env = scripted(call, "tools = ['exec']\n");
    assert_eq!(add(&env, DENIES).code, Some(0));
    env.pintle(&["run", "go"]);
    let chain = env.raw(&["audit", "export"]);
    let digits = "0123456789abcdef";
    let secrets = [format!("ghp_{digits}"), format!("pintle_{digits}"), format!("abcd{digits}"), "ghp_feed".to_owned()];
    let shown: Vec<&String> = secrets.iter().filter(|secret| chain.contains(*secret)).collect();
    let denied = "denied: [REDACTED] [REDACTED] MY_TOKEN: [REDACTED]";
    assert!(shown.is_empty() && chain.contains(denied), "{shown:?}: {chain}");
    let history = env.raw(&["hooks", "history", "--json"]);
    assert!(history.contains(denied), "{history}");
}
