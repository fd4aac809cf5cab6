//! Like mistakes end every command with the same exit code: `docs/reference/exit-codes.md`, as a table.

use super::env::{PINTLE, Seen, TestEnv};
use super::run::{DONE, scripted};

/// Commands that read a configuration, each complete.
const READING: [&[&str]; 16] = [
    &["run", "hello"],
    &["chat"],
    &["hooks", "list"],
    &["hooks", "show", "x"],
    &["hooks", "test", "x"],
    &["hooks", "lint"],
    &["hooks", "history"],
    &["skills", "list"],
    &["skills", "lint"],
    &["why"],
    &["sessions", "list"],
    &["approvals", "list"],
    &["audit", "verify"],
    &["budget", "get"],
    &["mcp"],
    &["doctor"],
];

/// Commands that only a person may give, each about something that is not there.
const OPERATORS: [&[&str]; 8] = [
    &["hooks", "add", "nowhere.toml"],
    &["hooks", "set", "nobody", "priority=1"],
    &["hooks", "enable", "nobody"],
    &["hooks", "disable", "nobody"],
    &["hooks", "remove", "nobody"],
    &["hooks", "reset", "nobody"],
    &["approvals", "approve", "nobody"],
    &["approvals", "refuse", "nobody"],
];

/// Commands about something that is not there.
const MISSING: [&[&str]; 18] = [
    &["run", "--agent", "nobody", "hello"],
    &["mcp", "--agent", "nobody"],
    &["hooks", "show", "nobody"],
    &["hooks", "test", "nobody"],
    &["hooks", "history", "nobody"],
    &["hooks", "history", "--event", "nowhere"],
    &["skills", "lint", "nobody"],
    &["skills", "explain", "nobody"],
    &["why", "nobody"],
    &["why", "--hook", "nobody"],
    &["sessions", "show", "nobody"],
    &["sessions", "resume", "nobody"],
    &["sessions", "delete", "nobody"],
    &["sessions", "list", "--after", "nobody"],
    &["audit", "verify", "nowhere.jsonl"],
    &["budget", "get", "--tenant", "nobody"],
    &["import", "goclaw", "nowhere.db", "--dry-run"],
    &["import", "picoclaw", "nowhere.json"],
];

/// A home with one agent, whose model answers.
fn home() -> TestEnv {
    super::run::scripted(r#"{"text": "Done.", "repeat": true}"#, "")
}

/// Runs each of `commands` and names those that do not end with `code`.
fn check(commands: &[&[&str]], code: i32, run: impl Fn(&[&str]) -> Seen) {
    let seen = commands.iter().map(|args| (args, run(args)));
    let wrong: Vec<String> = seen
        .filter(|(_, seen)| seen.code != Some(code))
        .map(|(args, seen)| format!("{}, expected {code}: {seen}", args.join(" ")))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_flag_that_is_none_is_a_usage_mistake() {
    let env = home();
    let all: Vec<&[&str]> = READING.into_iter().chain(OPERATORS).chain(MISSING).collect();
    check(&all, 2, |args| env.pintle(&[args, &["--no-such-flag"]].concat()));
}

#[test]
fn a_configuration_that_does_not_parse_is_a_usage_mistake() {
    let env = home();
    env.write("here/broken.toml", "[agents.main\n");
    check(&READING, 2, |args| env.pintle(&[&["-c", "broken.toml"], args].concat()));
    check(&READING, 2, |args| env.pintle(&[&["-c", "nowhere.toml"], args].concat()));
}

#[test]
fn what_is_not_there_is_a_usage_mistake() {
    let env = home();
    env.pintle(&["run", "--quiet", "hello"]);
    check(&MISSING, 2, |args| env.pintle(args));
    check(&OPERATORS, 2, |args| env.on_terminal("", args));
}

#[test]
fn what_only_a_person_may_do_is_refused_without_one() {
    let env = home();
    check(&OPERATORS, 5, |args| env.pintle(args));
}

#[test]
fn a_store_that_cannot_be_opened_is_a_failure() {
    let env = home();
    env.write("here/no-folder", "");
    env.write("here/shut.toml", "[store]\nurl = 'sqlite:///dev/null/pintle.db'\n[agents.main]\n");
    let commands: [&[&str]; 8] = [
        &["hooks", "list"],
        &["hooks", "history"],
        &["why"],
        &["sessions", "list"],
        &["approvals", "list"],
        &["audit", "verify"],
        &["budget", "get"],
        &["doctor"],
    ];
    check(&commands, 1, |args| env.pintle(&[&["-c", "shut.toml"], args].concat()));
}

#[test]
fn a_limit_of_the_size_of_files_is_a_fault_and_no_death() {
    let env = scripted(DONE, "");
    let limited = "ulimit -f 8; exec \"$0\" run go";
    let seen = env.run(env.command("sh").args(["-c", limited, PINTLE]), "");
    assert!(seen.code == Some(1) && seen.err.contains("pintle.db"), "{seen}");
}
