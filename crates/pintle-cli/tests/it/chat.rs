//! `pintle chat` with a person at a terminal.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};

use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, mkfifo};

use super::env::{PINTLE, TestEnv};
use super::run::scripted;

mod asked;
mod lines;
pub(crate) mod tty;

use tty::Tty;

/// A call of a command that runs until somebody writes into the pipe `gate`.
const WAITS: &str =
    r#"{"when": {"contains": "work"}, "tool_calls": [{"name": "exec", "arguments": {"command": "cat gate"}}]}"#;

const EXEC: &str = "tools = ['exec']\n";

/// A conversation in which a command runs until [`release`].
fn working(replies: &str, more: &str) -> TestEnv {
    let env = scripted(&format!("{WAITS},{replies}"), &format!("{EXEC}{more}"));
    mkfifo(&env.path("here/gate"), Mode::S_IRWXU).unwrap();
    env
}

/// Lets the command end, with a word as its output.
fn release(env: &TestEnv) {
    File::options().write(true).open(env.path("here/gate")).unwrap().write_all(b"opened\n").unwrap();
}

/// The two keys that stop a turn.
const STOPS: [&str; 2] = ["\u{1b}", "\u{3}"];

/// An answer to `when` that goes on for minutes.
fn endless(when: &str) -> String {
    let words: Vec<String> = (0..5000).map(|n| format!("word{n} ")).collect();
    pintle_domain::json::json!({"when": {"contains": when}, "delay_ms": 20, "text": words}).to_string()
}

#[test]
fn finished_by_command_a_turn_ends_what_runs_and_sums_up() {
    let env = working(
        r#"{"when": {"no_tools": true, "anywhere": "opened"}, "text": "So far: opened."},
           {"when": {"contains": "again", "anywhere": "So far"}, "text": "I remember."}"#,
        "",
    );
    let mut chat = Tty::chat(&env, &[]);
    chat.say("/finish", "nothing is under way");
    chat.idle();
    chat.say("work", "▸ tool");
    chat.say("/finish", "finishing; Esc stops at once");
    release(&env);
    chat.until("So far: opened.");
    chat.until("turn completed");
    chat.idle();
    chat.say("again", "I remember.");
    let ended = chat.leave();
    assert_eq!((ended.code, ended.restored), (Some(0), true));
}

#[test]
fn stopped_once_an_answer_ends_at_once_and_what_is_there_of_it_stays() {
    for key in STOPS {
        let remembers = r#"{"when": {"contains": "again", "anywhere": "\n\n[This answer was stopped here.]"}, "text": "I remember."}"#;
        let env = scripted(&format!("{},{remembers}", endless("tell")), "");
        let mut chat = Tty::chat(&env, &["--session", "s"]);
        chat.say("tell me", "word3 ");
        chat.press(key);
        chat.until("stopped: what is there stays; Esc again undoes the turn");
        chat.idle();
        chat.say("again", "I remember.");
        let ended = chat.leave();
        assert_eq!((ended.code, ended.restored), (Some(0), true), "{key:?}");
        let shown = env.pintle(&["sessions", "show", "s"]).out;
        assert!(shown.contains("  word0 word1 word2 word3"), "{shown}");
    }
}

#[test]
fn stopped_once_a_tool_that_runs_is_ended() {
    let env = working(r#"{"when": {"contains": "again", "anywhere": "work"}, "text": "It stands there."}"#, "");
    let mut chat = Tty::chat(&env, &[]);
    chat.say("work", "▸ tool");
    chat.press("\u{1b}");
    chat.until("stopped: what is there stays");
    chat.idle();
    // Once something else was said, it is too late to undo it.
    chat.say("again", "It stands there.");
    chat.idle();
    chat.press("\u{3}");
    chat.until("Ctrl-D ends the conversation.");
    assert_eq!(chat.leave().code, Some(0));
}

#[test]
fn stopped_twice_a_turn_is_undone_and_says_what_is_discarded() {
    for keys in [STOPS, ["\u{3}", "\u{1b}"]] {
        let env = working(
            r#"{"when": {"contains": "again", "anywhere": "work"}, "text": "It stands there."},
               {"when": {"contains": "again"}, "text": "Nothing was said."}"#,
            "",
        );
        let mut chat = Tty::chat(&env, &["--session", "s"]);
        chat.say("work hard", "▸ tool");
        chat.say("and fast", "» and fast");
        chat.press(keys[0]);
        chat.until("stopped: what is there stays");
        chat.idle();
        chat.press(keys[1]);
        chat.until("undone: the conversation is as it was before this turn; discarded:");
        chat.idle();
        let discarded = chat.say("again", "Nothing was said.");
        assert!(discarded.contains("\n  work hard\r\n  and fast\r\n"), "{discarded}");
        assert_eq!(chat.leave().code, Some(0));
        let shown = env.pintle(&["sessions", "show", "s"]).out;
        assert!(!shown.contains("work"), "{shown}");
        // The conversation forgets it, and the record does not.
        assert!(env.pintle(&["why", "--list"]).out.contains("work hard"));
    }
}

#[test]
fn both_keys_at_once_count_twice() {
    for keys in ["\u{1b}\u{1b}", "\u{3}\u{3}"] {
        let env = working(r#"{"text": "Never said."}"#, "");
        let mut chat = Tty::chat(&env, &[]);
        chat.say("work", "▸ tool");
        chat.press(keys);
        chat.until("undone: ");
        assert_eq!(chat.leave().code, Some(0));
    }
}

#[test]
fn a_line_that_is_typed_while_a_turn_is_worked_reaches_the_model_in_it() {
    let env = working(r#"{"when": {"contains": "be brief"}, "text": "Briefly: done."}"#, "");
    let mut chat = Tty::chat(&env, &[]);
    chat.say("work", "▸ tool");
    chat.say("be brief", "» be brief");
    release(&env);
    chat.until("Briefly: done.");
    let ended = chat.leave();
    assert_eq!(ended.screen.matches("turn completed").count(), 1, "{}", ended.screen);
    assert!(!ended.screen.contains("stopped"), "{}", ended.screen);
}

#[test]
fn orders_that_would_cut_a_turn_off_are_not_taken_for_messages() {
    let env = working(r#"{"when": {"tool_result": "opened"}, "text": "Done."}"#, "");
    let mut chat = Tty::chat(&env, &[]);
    chat.say("work", "▸ tool");
    chat.say("/resume", "a turn is under way");
    chat.say("/help", "/quit    end the conversation");
    // The end of the conversation waits for the end of the turn.
    chat.press([4]);
    chat.until("the conversation ends once this is done");
    release(&env);
    chat.until("Done.");
    assert_eq!(chat.end().code, Some(0));
}

#[test]
fn a_terminal_is_given_back_however_the_program_is_told_to_end() {
    for working_too in [false, true] {
        let env = working(r#"{"text": "Never said."}"#, "");
        let mut chat = Tty::chat(&env, &[]);
        chat.until("/help shows the rest.");
        if working_too {
            chat.say("work", "▸ tool");
        }
        chat.press("half a line");
        chat.until("half a line");
        kill(Pid::from_raw(chat.pid), Signal::SIGTERM).unwrap();
        let ended = chat.end();
        assert_eq!((ended.code, ended.restored), (Some(130), true), "{}", ended.screen);
        assert!(!ended.screen.contains("half a line"), "{}", ended.screen);
    }
    let env = working(r#"{"text": "Never said."}"#, "");
    let mut chat = Tty::chat(&env, &[]);
    chat.until("/help shows the rest.");
    chat.press([0x1c]);
    let ended = chat.end();
    assert_eq!((ended.code, ended.restored), (Some(130), true));
}

#[test]
fn a_terminal_that_goes_away_takes_the_turn_along() {
    let command = "exec 9>held; echo here >&9; sleep 977; true";
    let call = pintle_domain::json::json!({"tool_calls": [{"name": "exec", "arguments": {"command": command}}]});
    let env = scripted(&call.to_string(), EXEC);
    mkfifo(&env.path("here/held"), Mode::S_IRWXU).unwrap();
    let mut chat = Tty::chat(&env, &[]);
    chat.press("work\r");
    let mut held = BufReader::new(File::open(env.path("here/held")).unwrap());
    let mut line = String::new();
    held.read_line(&mut line).unwrap();
    assert_eq!(chat.hang_up(), Some(130));
    // Nothing of the command is left.
    held.read_to_end(&mut Vec::new()).unwrap();
}

#[test]
fn a_conversation_goes_on_in_another_process() {
    let env = scripted(
        r#"{"when": {"contains": "I am Ada"}, "text": "Hello Ada."},
           {"when": {"contains": "who", "anywhere": "I am Ada"}, "text": "You are Ada."}"#,
        "",
    );
    let mut chat = Tty::chat(&env, &["--session", "work"]);
    chat.until("session work, agent main");
    chat.say("I am Ada", "Hello Ada.");
    assert_eq!(chat.leave().code, Some(0));
    let replies = r#"{"replies": [{"when": {"contains": "who", "anywhere": "I am Ada"}, "text": "You are Ada."}]}"#;
    env.write("config/pintle/replies.json", replies);
    let mut chat = Tty::chat(&env, &["--session", "work"]);
    chat.say("who am I", "You are Ada.");
    // While somebody works on it nobody else does.
    let second = env.pintle(&["chat", "--session", "work"]);
    assert_eq!(second.code, Some(1), "{second}");
    assert_eq!(chat.leave().code, Some(0));
    let listed: pintle_domain::json::Value =
        serde_json::from_str(&env.pintle(&["sessions", "list", "--json"]).out).unwrap();
    assert_eq!((&listed[0]["session_id"], &listed[0]["turns"]), (&"work".into(), &2.into()), "{listed}");
}

#[test]
fn a_turn_that_a_killed_process_left_is_gone_on_with_or_ended() {
    for (typed, expected) in [("/resume", "It is unknown."), ("next", "Something else.")] {
        let env = working(
            r#"{"when": {"tool_result": "outcome unknown"}, "text": "It is unknown."},
               {"when": {"contains": "next"}, "text": "Something else."}"#,
            "",
        );
        let mut chat = Tty::chat(&env, &["--session", "work"]);
        chat.say("work now", "▸ tool");
        kill(Pid::from_raw(chat.pid), Signal::SIGKILL).unwrap();
        drop(chat);
        let mut chat = Tty::chat(&env, &["--session", "work"]);
        chat.until(
            "the turn \"work now\" was left by a process that died: /resume goes on with it; a new message starts over",
        );
        chat.say(typed, expected);
        let ended = chat.leave();
        assert_eq!(ended.code, Some(0), "{}", ended.screen);
        assert_eq!(ended.screen.contains("turn aborted"), typed == "next", "{}", ended.screen);
    }
}

#[test]
fn what_a_sub_agent_brings_while_nothing_is_said_begins_a_turn() {
    let spawns = r#"{"when": {"contains": "work"}, "tool_calls":
        [{"name": "spawn", "arguments": {"agent": "helper", "task": "wait for it"}}]}"#;
    let env = scripted(
        &format!(
            r#"{spawns},
               {{"when": {{"contains": "wait for it"}}, "tool_calls": [{{"name": "exec", "arguments": {{"command": "cat gate"}}}}]}},
               {{"when": {{"tool_result": "opened"}}, "text": "It opened."}},
               {{"when": {{"contains": "It opened."}}, "text": "The helper is done."}},
               {{"when": {{"tool_result": "helper"}}, "text": "It is under way."}}"#
        ),
        "tools = ['spawn']\ndefault = true\n[agents.helper]\nmodel = 'scripted/test'\ntools = ['exec']\n",
    );
    mkfifo(&env.path("here/gate"), Mode::S_IRWXU).unwrap();
    let mut chat = Tty::chat(&env, &[]);
    chat.say("work", "It is under way.");
    chat.idle();
    // Whoever leaves is told what would be lost.
    chat.press([4]);
    chat.until("sub-agents still work in the background; the same again stops them");
    release(&env);
    chat.until("what a sub-agent brought has come in");
    chat.until("The helper is done.");
    assert_eq!(chat.leave().code, Some(0));

    // In a pipe, where nobody waits, the conversation waits for it.
    let mut piped = env.command("sh");
    piped.args(["-c", "(echo work; echo opened > gate) | \"$0\" chat --quiet", PINTLE]);
    let seen = env.run(&mut piped, "");
    assert_eq!((seen.code, seen.out.as_str()), (Some(0), "It is under way.\nThe helper is done.\n"), "{}", seen.err);
}
