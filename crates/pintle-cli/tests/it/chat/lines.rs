//! What is typed, pasted and garbled, and how it looks.

use super::*;
use crate::run::{DONE, LISTS};

/// A model that repeats each message it knows.
fn echo(words: &[&str], more: &str) -> TestEnv {
    let reply = |word: &&str| {
        pintle_domain::json::json!({"when": {"contains": word}, "text": format!("heard {word}")}).to_string()
    };
    scripted(&words.iter().map(reply).collect::<Vec<_>>().join(","), more)
}

#[test]
fn a_conversation_reads_as_it_was_held() {
    let env = scripted(&format!("{LISTS},{DONE}"), "");
    let mut chat = Tty::chat(&env, &["--session", "work"]);
    chat.idle();
    chat.say("look", "turn completed");
    chat.idle();
    chat.say("/nonsense", "there is no command");
    let ended = chat.leave();
    // How wide a time is differs.
    let screen =
        regex::Regex::new(r" +\[time\]").unwrap().replace_all(&env.redact(&ended.screen), " [time]").into_owned();
    insta::assert_snapshot!(screen, @r#"
    session work, agent main, model scripted/test
    Esc stops an answer, Ctrl-D ends the conversation, /help shows the rest.
    > look
    turn main  look
      → model        scripted/test  1 message, 4 tools
      ← model                       0 bytes of text, 1 tool call
      ◇ permit       list_dir       sha256 [digest]…
      ▸ tool         list_dir       {"path":"."}
      ◂ tool         list_dir       ok [time]  14 bytes
      → model        scripted/test  3 messages, 4 tools
    All done.
      ← model                       9 bytes of text, 0 tool calls
    turn completed after 2 rounds, [time]
    > /nonsense
    there is no command /nonsense; see /help
    "#);
}

#[test]
fn every_line_of_a_paste_is_a_message() {
    for (before, after) in [("", ""), ("\u{1b}[200~", "\u{1b}[201~")] {
        let env = echo(&["one", "two", "three"], "");
        let mut chat = Tty::chat(&env, &["--quiet"]);
        chat.until("/help shows the rest.");
        chat.press(format!("{before}one\rtwo\n\nthree\r{after}"));
        chat.until("heard three");
        let ended = chat.leave();
        let said = "> one\nheard one\n> two\nheard two\n> three\nheard three";
        assert!(ended.screen.ends_with(said), "{}", ended.screen);
    }
}

#[test]
fn lines_that_were_typed_ahead_wait_for_their_turns() {
    let env = echo(&["one", "two"], "");
    let ended = Tty::chat_after(&env, "one\ntwo\n\u{4}", &["--quiet"]).end();
    let said: Vec<&str> = ended.screen.lines().skip_while(|line| *line != "> one").collect();
    // When it is seen that no more comes depends on how fast the first answer is.
    let said: Vec<&&str> = said.iter().filter(|line| !line.starts_with("the conversation ends")).collect();
    assert_eq!(said, [&"> one", &"heard one", &"> two", &"heard two"], "{}", ended.screen);
    assert_eq!((ended.code, ended.restored), (Some(0), true));
}

#[test]
fn what_is_no_text_does_no_harm() {
    let env = echo(&["a\u{fffd}b你"], "");
    let mut chat = Tty::chat(&env, &["--quiet"]);
    chat.until("/help shows the rest.");
    // Ctrl-Z, an unknown key, half a character, control characters of both sets, a bell, a title.
    chat.press(b"\x1aa\x1b[99~\xe4\xbdb\xc2\x9b\x07\x00\xe4\xbd\xa0\x1bOS");
    // Ctrl-D in a line does not end the conversation, and neither does Ctrl-C.
    chat.press("\u{4}\r");
    chat.until("heard a\u{fffd}b你");
    chat.idle();
    chat.press("not this\u{3}");
    chat.press("\u{3}");
    chat.until("Ctrl-D ends the conversation.");
    let ended = chat.leave();
    assert_eq!((ended.code, ended.restored), (Some(0), true), "{}", ended.screen);
    assert!(!ended.screen.contains("not this"), "{}", ended.screen);
}

#[test]
fn a_line_can_be_mended_before_it_is_sent() {
    let env = echo(&["the end", "café"], "");
    let mut chat = Tty::chat(&env, &["--quiet"]);
    chat.until("/help shows the rest.");
    chat.press("xthe mid\u{17}ends\u{7f}\u{1b}[H\u{1b}[3~\r");
    chat.until("heard the end");
    chat.idle();
    // Escape clears the line.
    chat.press("gone\u{1b}");
    chat.until("gone");
    chat.idle();
    chat.press("cafx\u{7f}é\r");
    chat.until("heard café");
    assert!(!chat.leave().screen.contains("gone"));
}

#[test]
fn an_answer_is_whole_also_where_somebody_types_into_it() {
    let words: Vec<String> = (0..60).map(|n| format!("word{n} ")).collect();
    let answer = pintle_domain::json::json!({"when": {"contains": "go"}, "delay_ms": 10, "text": words});
    let env = scripted(&answer.to_string(), "");
    let mut chat = Tty::chat(&env, &["--quiet"]);
    chat.until("/help shows the rest.");
    chat.say("go", "word0 ");
    for key in "some more".chars() {
        chat.press(key.to_string());
        chat.until("word");
    }
    chat.press("\u{15}");
    chat.until("word59 ");
    let ended = chat.leave();
    let whole = words.concat();
    let rows: Vec<String> =
        whole.trim_end().as_bytes().chunks(80).map(|row| String::from_utf8_lossy(row).trim_end().to_owned()).collect();
    assert!(ended.screen.ends_with(&format!("> go\n{}", rows.join("\n"))), "{}", ended.screen);
}

#[test]
fn a_flood_of_lines_is_bounded_and_said_so() {
    let env = scripted(r#"{"text": "heard", "repeat": true}"#, "");
    let mut chat = Tty::chat(&env, &["--quiet"]);
    chat.until("/help shows the rest.");
    chat.press(format!("\u{1b}[200~{}\u{1b}[201~", "line\r".repeat(1000)));
    // All but the first of them wait, and there is no room for so many.
    chat.until("lines wait already; left out after them:");
    chat.press("\u{3}\u{3}");
    chat.press([4, 4]);
    assert_eq!(chat.end().code, Some(0));
}

#[test]
fn a_pipe_may_hold_bytes_that_are_no_text() {
    let env = echo(&["one", "two"], "");
    let mut command = env.command("sh");
    command.args(["-c", "printf 'one\\n\\377\\ntwo\\n' | \"$0\" chat --quiet", PINTLE]);
    let seen = env.run(&mut command, "");
    assert_eq!((seen.code, seen.out.as_str()), (Some(0), "heard one\nheard two\n"));
    assert!(seen.err.contains("line 2 is not valid UTF-8 and is left out"), "{}", seen.err);
}
