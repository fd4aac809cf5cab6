//! What a terminal shows: nobody's text moves it, and no two things share a line.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::Stdio;

use super::chat::tty::Tty;
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
fn help_and_wrong_flags_are_coloured_as_it_was_asked_for() {
    let env = scripted(r#"{"text": "x"}"#, "");
    for args in [["run", "--no-such-flag"], ["run", "--help"]] {
        let never = env.on_terminal("", &[&["--color", "never"][..], &args].concat());
        assert!(!never.out.contains('\u{1b}') && !never.err.contains('\u{1b}'), "{never:?}");
        let always = env.raw(&[&["--color=always"][..], &args].concat());
        assert!(args[1] != "--help" || always.contains('\u{1b}'), "{always:?}");
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
    assert!(shown.any(|line| line == "the new configuration is in force"));
    drop(typed);
    assert!(child.wait().unwrap().success());
}

#[test]
fn on_a_terminal_an_answer_of_run_is_shown_as_it_arrives() {
    let words: Vec<String> = (0..5000).map(|n| format!("word{n} ")).collect();
    let env = scripted(&pintle_domain::json::json!({"delay_ms": 20, "text": words}).to_string(), "");
    let mut run = Tty::of(&env, "", &["run", "--session", "s", "hello"]);
    run.until("word3 ");
    run.press("\u{3}");
    let ended = run.end();
    assert_eq!(ended.code, Some(130), "{}", ended.screen);
    assert!(ended.screen.ends_with("\ninterrupted"), "{}", ended.screen);
    assert!(ended.screen.contains("\nword0 word1 word2 word3 "), "{}", ended.screen);
    assert!(env.pintle(&["sessions", "show", "s"]).out.contains("[This answer was stopped here.]"));
}

/// A process hook that hides a word of every answer.
const HIDES: &str = r#"
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    result = {"action": "continue"}
    if asked["method"] == "hook.hello":
        result = {"ok": True, "name": "hides"}
    elif asked["method"] == "hook.after_llm":
        response = asked["params"]["response"]
        response["content"] = response["content"].replace("secret", "[hidden]")
        response["reasoning_content"] = response.get("reasoning_content", "").replace("secret", "[hidden]")
        result = {"action": "modify", "response": {"response": response}}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"#;

#[test]
fn what_a_hook_takes_out_of_an_answer_was_never_shown() {
    let hook =
        "[hooks.processes.hides]\nenabled = true\ncommand = ['python3', 'hides.py']\nintercept = ['after_llm']\n";
    let env = scripted(r#"{"reasoning": "the secret", "text": ["The sec", "ret is out."]}"#, hook);
    env.write("config/pintle/hides.py", HIDES);
    let ended = Tty::of(&env, "", &["run", "--quiet", "--thinking", "hello"]).end();
    assert_eq!(ended.code, Some(0), "{}", ended.screen);
    assert!(ended.screen.ends_with("  the [hidden]\nThe [hidden] is out."), "{}", ended.screen);
    assert!(!ended.screen.contains("sec"), "{}", ended.screen);
}

#[test]
fn what_a_model_thinks_is_folded_and_can_be_shown() {
    let env = scripted(r#"{"reasoning": ["Hm, what ", "now?"], "text": "This.", "repeat": true}"#, "");
    let shown = |args: &[&str]| Tty::of(&env, "", &[&["run", "--quiet"], args, &["hello"]].concat()).end().screen;
    assert_eq!(shown(&[]), "thought for 3 words\nThis.");
    assert_eq!(shown(&["--thinking"]), "  Hm, what now?\nThis.");
    let piped = env.pintle(&["run", "--quiet", "--session", "s", "hello"]);
    assert_eq!((piped.out.as_str(), piped.err.as_str()), ("This.\n", ""));
    let session = env.pintle(&["sessions", "show", "s"]).out;
    assert!(session.ends_with("assistant\n  thought for 3 words\n  This.\n"), "{session}");
    let session = env.pintle(&["sessions", "show", "--thinking", "s"]).out;
    assert!(session.ends_with("assistant\n  Hm, what now?\n  This.\n"), "{session}");
}

#[test]
fn the_end_of_a_turn_says_how_many_tokens_it_took() {
    let usage = r#""usage": {"prompt_tokens": 1200, "completion_tokens": 30}"#;
    let call = r#""tool_calls": [{"name": "list_dir", "arguments": {}}]"#;
    let env = scripted(&format!(r#"{{{call}, {usage}}}, {{"text": "Done.", {usage}}}"#), "");
    let seen = env.pintle(&["run", "hello"]);
    assert!(seen.err.ends_with("\n  1 call, 2.4k tokens\n"), "{}", seen.err);
    // Also of a turn that failed.
    let env = scripted(&format!("{{{call}, {usage}}}"), "");
    assert!(env.pintle(&["run", "hello"]).err.contains("\n  1 call, 1.2k tokens\n"));
}

#[test]
fn at_its_limit_a_turn_says_how_far_it_came_and_fails() {
    let sums_up = r#"{"when": {"no_tools": true}, "text": "So far: listed."}"#;
    let env = scripted(&format!("{LISTS},{sums_up}"), "max_iterations = 1\n");
    let seen = env.pintle(&["run", "--quiet", "look"]);
    assert_eq!((seen.code, seen.out.as_str()), (Some(1), "So far: listed.\n"), "{seen}");
    assert_eq!(seen.err, "Error processing message: iteration limit 1 reached\n");
}
