//! What process hooks are told of turns: steered, stopped, handed on, too long, with skills.

use std::fs::File;
use std::io::Write as _;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;

use super::stage::{by_session, calls, chat, check, events, process, stage};
use crate::chat::tty::Tty;
use crate::env::TestEnv;

/// Two hooks that are told of everything, one in each form.
pub(super) fn observers() -> String {
    process("told", "observe = ['all']") + &process("told_runtime", "observe = ['*']\nevents = 'runtime'")
}

pub(super) const OBSERVERS: [&str; 2] = ["told", "told_runtime"];

/// A hook that is asked about each call of a model.
fn asks() -> String {
    process("asks", "intercept = ['before_llm', 'after_llm']")
}

/// A call of a command that runs until [`release`].
fn waits(when: &str, more: &str) -> String {
    format!(
        r#"{{"when": {{"contains": "{when}"}}, "tool_calls": [{{"name": "exec", "arguments": {{"command": "cat gate"}}}}{more}]}}"#
    )
}

/// Makes what [`waits`] waits for.
fn gate(env: &TestEnv) {
    mkfifo(&env.path("here/gate"), Mode::S_IRWXU).unwrap();
}

/// Lets the command end, with a word as its output.
fn release(env: &TestEnv) {
    File::options().write(true).open(env.path("here/gate")).unwrap().write_all(b"opened\n").unwrap();
}

#[test]
fn turns_that_somebody_steers_and_stops() {
    let second = r#", {"name": "list_dir", "arguments": {"path": "."}}"#;
    let replies = [
        waits("work once", ""),
        r#"{"when": {"contains": "be brief"}, "text": "Briefly: ü."}"#.to_owned(),
        waits("work twice", second),
        r#"{"when": {"no_tools": true}, "text": "So far: opened."}"#.to_owned(),
        waits("work thrice", ""),
        r#"{"when": {"contains": "break"}, "error": {"kind": "final", "message": "no \"ink\" left"}}"#.to_owned(),
    ];
    let agent = format!("tools = ['exec', 'list_dir']\n{}{}", observers(), asks());
    let env = stage(&replies.join(","), &agent);
    gate(&env);
    let mut chat = Tty::chat(&env, &["--session", "s"]);
    chat.say("work once", "▸ tool");
    chat.say("be brief", "» be brief");
    release(&env);
    chat.until("turn completed");
    chat.idle();
    chat.say("work twice", "▸ tool");
    chat.say("/finish", "finishing; Esc stops at once");
    release(&env);
    chat.until("turn completed");
    chat.idle();
    chat.say("work thrice", "▸ tool");
    chat.press("\u{3}\u{3}");
    chat.until("undone: ");
    chat.idle();
    chat.say("break", "turn ended with an error");
    let ended = chat.leave();
    assert!(ended.restored, "{ended:?}");
    check(&env, "steered", [events(&env, &OBSERVERS), calls(&env, &["asks"])].concat());
}

/// What makes a second agent of the one whose table is open.
const HELPER: &str = "default = true\n[agents.helper]\nmodel = 'scripted/helper'\ntools = ['exec']\n";

fn hands(when: &str, tool: &str, task: &str) -> String {
    format!(
        r#"{{"when": {{"contains": "{when}"}}, "tool_calls": [{{"name": "{tool}", "arguments": {{"agent": "helper", "task": "{task}"}}}}]}}"#
    )
}

#[test]
fn work_that_is_handed_on() {
    let replies = [
        r#"{"when": {"contains": "look at ü"}, "text": "It is an ü."}"#.to_owned(),
        r#"{"when": {"contains": "cannot"}, "error": {"kind": "final", "message": "no"}}"#.to_owned(),
        hands("go", "delegate", "look at ü"),
        hands("It is an ü", "delegate", "what you cannot"),
        r#"{"text": "All done."}"#.to_owned(),
    ];
    let env = stage(&replies.join(","), &format!("tools = ['delegate']\n{HELPER}{}{}", observers(), asks()));
    let seen = chat(&env, &["go"]);
    assert_eq!((seen.code, seen.out.as_str()), (Some(0), "All done.\n"), "{seen}");
    check(&env, "delegated", [events(&env, &OBSERVERS), calls(&env, &["asks"])].concat());
}

#[test]
fn work_that_goes_on_in_the_background() {
    let replies = [
        hands("go", "spawn", "wait for it"),
        waits("wait for it", ""),
        r#"{"when": {"tool_result": "opened"}, "text": "It opened."}"#.to_owned(),
        r#"{"when": {"contains": "It opened."}, "text": "The helper is done."}"#.to_owned(),
        r#"{"when": {"tool_result": "helper"}, "text": "It is under way."}"#.to_owned(),
    ];
    let env = stage(&replies.join(","), &format!("tools = ['spawn']\n{HELPER}{}", observers()));
    gate(&env);
    let mut chat = Tty::chat(&env, &["--session", "s"]);
    chat.say("go", "It is under way.");
    chat.idle();
    release(&env);
    chat.until("The helper is done.");
    assert_eq!(chat.leave().code, Some(0));
    check(&env, "background", by_session(events(&env, &OBSERVERS)));
}

#[test]
fn conversations_that_are_too_long_and_calls_that_fail_at_first() {
    let long = |word: &str| format!("{word} {}", "x".repeat(400));
    let replies = [
        r#"{"when": {"anywhere": "Summarise the following"}, "text": "they talked about x", "repeat": true}"#
            .to_owned(),
        r#"{"when": {"contains": "one"}, "error": {"kind": "server_error", "message": "busy", "retry_after_ms": 1}}"#
            .to_owned(),
        format!(r#"{{"when": {{"contains": "one"}}, "reasoning": "hm", "text": ["fi", "{}"]}}"#, long("rst")),
        format!(r#"{{"when": {{"contains": "two"}}, "text": "{}"}}"#, long("second")),
        r#"{"when": {"contains": "three"}, "text": "third"}"#.to_owned(),
        r#"{"when": {"contains": "four"}, "error": {"kind": "context_limit", "message": "too much"}}"#.to_owned(),
        r#"{"when": {"contains": "four"}, "text": "fourth"}"#.to_owned(),
    ];
    let agent = format!("tools = []\ncontext_tokens = 500\n{}{}", observers(), asks());
    let env = stage(&replies.join(","), &agent);
    let messages = ["one", "two", "three", "four"].map(long);
    let seen = chat(&env, &messages.each_ref().map(String::as_str));
    assert!(seen.out.ends_with("third\nfourth\n"), "{seen}");
    check(&env, "long", [events(&env, &OBSERVERS), calls(&env, &["asks"])].concat());
}

#[test]
fn texts_of_skills_at_every_point() {
    let points = ["after_user_input", "before_planning", "before_each_agent", "before_first_agent", "after_tool_call"];
    let replies = [
        r#"{"when": {"no_tools": true}, "text": "P0 <need_tool/>"}"#,
        r#"{"when": {"contains": "opened"}, "text": "Never."}"#,
        r#"{"when": {"anywhere": "a text at after_tool_call"}, "text": "Done."}"#,
        r#"{"tool_calls": [{"id": "c1", "name": "list_dir", "arguments": {"path": "."}}]}"#,
    ];
    let agent = format!("tools = ['list_dir']\nflow = 'planned'\nskills = ['alpha']\n{}{}", asks(), observers());
    let env = stage(&replies.join(","), &agent);
    let entries = points.map(|point| {
        let (role, persistent) = if point == "after_user_input" { ("user", true) } else { ("system", false) };
        env.write(&format!("config/pintle/skills/alpha/hooks/{point}.md"), &format!("a text at {point}, ü"));
        format!(
            r#"{{"name": "at-{}", "file": "{point}.md", "timing": "{point}", "role": "{role}", "persistent": {persistent}}}"#,
            point.replace('_', "-")
        )
    });
    env.write("config/pintle/skills/alpha/hooks/hooks.json", &format!(r#"{{"hooks": [{}]}}"#, entries.join(",")));
    env.write(
        "config/pintle/skills/alpha/SKILL.md",
        "---\nname: alpha\ndescription: Does the first \"thing\".\n---\nBody.\n",
    );
    let seen = chat(&env, &["go"]);
    assert_eq!((seen.code, seen.out.ends_with("Done.\n")), (Some(0), true), "{seen}");
    check(&env, "skills", [calls(&env, &["asks"]), events(&env, &OBSERVERS)].concat());
}
