//! What a terminal shows: nobody's text moves it, and no two things share a line.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::Stdio;

use super::env::{PINTLE, TestEnv};
use super::run::{DONE, LISTS, MODEL, scripted};

/// Runs `pintle chat` with all three streams on a terminal, where `typed` was typed before.
fn chat(env: &TestEnv, typed: &str) -> String {
    let pty = nix::pty::openpty(None, None).unwrap();
    let mut terminal = File::from(pty.master);
    terminal.write_all(typed.as_bytes()).unwrap();
    let stream = || Stdio::from(pty.slave.try_clone().unwrap());
    let mut command = env.command(PINTLE);
    command.args(["--color", "never", "chat"]).stdin(stream()).stdout(stream()).stderr(stream());
    let mut child = command.spawn().unwrap();
    drop(command);
    drop(pty.slave);
    let mut shown = Vec::new();
    // The end of a terminal is an error.
    terminal.read_to_end(&mut shown).ok();
    assert!(child.wait().unwrap().success());
    env.redact(&String::from_utf8(shown).unwrap().replace("\r\n", "\n"))
}

#[test]
fn an_answer_and_the_timeline_have_lines_of_their_own() {
    let says = r#"{"text": ["Let me ", "look."], "tool_calls": [{"name": "list_dir", "arguments": {"path": "."}}]}"#;
    let env = scripted(&format!("{says},{DONE}"), "");
    let shown = chat(&env, "look\n\u{4}");
    let lines: Vec<&str> = shown.lines().collect();
    for line in ["Let me look.", "All done."] {
        assert!(lines.contains(&line), "{shown}");
    }
    assert!(!shown.contains("\n\n"), "{shown}");
    assert!(lines.iter().any(|line| line.starts_with("  ◂ tool         list_dir")), "{shown}");
}

#[test]
fn no_text_of_a_model_moves_the_terminal() {
    let call = r#"{"tool_calls": [{"name": "x\u001b[2Jy\u009b3m", "arguments": {}}]}"#;
    let reply = r#"{"text": ["a\u001b[2Jb\u001b]0;title\u0007", "\nc"]}"#;
    let env = scripted(&format!("{call},{reply},{call},{reply}"), "");
    let seen = env.on_terminal("", &["--color", "never", "run", "hello"]);
    for shown in [seen.out, chat(&env, "hello\n\u{4}")] {
        assert!(shown.contains("x\\u{1b}[2Jy\\u{9b}3m"), "{shown}");
        assert!(shown.contains("a\\u{1b}[2Jb\\u{1b}]0;title\\u{7}\nc\n"), "{shown}");
        assert!(!shown.contains('\u{1b}') && !shown.contains('\u{9b}'), "{shown:?}");
    }
}

#[test]
fn a_reply_that_goes_into_a_file_keeps_its_line_ends() {
    let env = scripted(r#"{"text": ["one\r\ntwo"]}"#, "");
    assert_eq!(env.pintle(&["run", "--quiet", "hello"]).out, "one\r\ntwo\n");
}

#[test]
fn a_change_of_a_file_with_a_relative_path_is_noticed() {
    let env = TestEnv::new();
    env.write("here/replies.json", &format!("{{\"replies\": [{LISTS},{DONE}]}}"));
    let config = env.found_config(MODEL);
    let mut chat = env.command(PINTLE);
    chat.args(["-c", "pintle.toml", "chat"]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = chat.spawn().unwrap();
    let mut typed = child.stdin.take().unwrap();
    let mut shown = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    // After a first turn the file is being watched.
    typed.write_all(b"look\n").unwrap();
    assert!(shown.any(|line| line.starts_with("turn completed")));
    std::fs::write(&config, format!("{MODEL}max_iterations = 7\n")).unwrap();
    assert!(shown.any(|line| line == "the changed configuration is in force"));
    drop(typed);
    assert!(child.wait().unwrap().success());
}
