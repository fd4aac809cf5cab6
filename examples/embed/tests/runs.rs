//! The examples run, say what their pages say, survive a kill, and stand on their pages as they are.

#![cfg(test)]

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

fn embed(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_embed"));
    command.arg(folder);
    command
}

fn ran(command: &mut Command) -> Vec<String> {
    let ran = command.output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn a_call_that_waits_for_a_person_runs_once_over_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let mut first = embed(folder.path()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(first.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert_eq!(lines.next().unwrap(), "default: Hook blocked: pre_tool_use: shut: we are wound up");
    assert!(lines.next().unwrap().starts_with("acme: waits for "));
    kill(Pid::from_raw(first.id().try_into().unwrap()), Signal::SIGKILL).unwrap();
    assert!(!first.wait().unwrap().success());
    let book = || std::fs::read_to_string(folder.path().join("book")).unwrap_or_default();
    assert_eq!(book(), "", "nothing was paid");

    let waits = ran(&mut embed(folder.path()));
    assert!(waits[0].starts_with("acme: still waits for "), "{waits:?}");
    assert_eq!(ran(embed(folder.path()).arg("approve"))[0], "acme: refund approved");
    let paid = ran(&mut embed(folder.path()));
    assert_eq!(paid[0], "acme, after all: refunded 900");
    assert!(paid[1].contains("\"turn_end\": 1"), "{paid:?}");
    assert_eq!(paid[2], "left: Left { tasks: 0, calls: 0, lost_records: 0 }");
    assert_eq!((book().lines().count(), book().contains("900")), (1, true), "{}", book());
    let records = std::fs::read_to_string(folder.path().join("records.jsonl")).unwrap();
    assert!(records.lines().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()));
}

#[test]
fn the_small_example_runs_and_the_hooks_rule() {
    let said = ran(Command::new(env!("CARGO_BIN_EXE_small")).current_dir(env!("CARGO_MANIFEST_DIR")));
    let expected = [
        "refunded 50",
        "Hook blocked: pre_tool_use: limit: refunds above 200 need a person",
        "Tool execution denied by hook: 13 is unlucky (hook \"guard\")",
        "Left { tasks: 0, calls: 0, lost_records: 0 }",
    ];
    assert_eq!(said, expected);
}

#[test]
fn the_pages_show_the_examples_as_they_are() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = |file: &str| std::fs::read_to_string(root.join(file)).unwrap();
    let guide = text("docs/guide/embedding.md");
    for file in ["examples/embed/src/bin/small.rs", "examples/embed/guard.sh"] {
        assert!(guide.contains(&text(file)), "copy {file} into docs/guide/embedding.md");
    }
    let lines = text("examples/embed/src/main.rs").lines().count();
    assert!(lines < 250, "the example has grown to {lines} lines");
}
