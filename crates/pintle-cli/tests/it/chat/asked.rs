//! Calls that wait for the person at the terminal.

use super::*;

/// A call that somebody must allow, and what the model says to what becomes of it.
fn asking(more: &str) -> TestEnv {
    scripted(
        r#"{"when": {"tool_result": "refused by a person: use --dry-run"}, "text": "As a trial then."},
           {"when": {"tool_result": "refused by a person"}, "text": "So I do not."},
           {"when": {"tool_result": "pushed"}, "text": "It is done."},
           {"when": {"contains": "push"}, "tool_calls": [{"name": "exec", "arguments": {"command": "echo pu''shed # \u001b[2J\u202e"}}]}"#,
        &format!("tools = ['exec']\nask = ['exec']\n{more}"),
    )
}

/// A conversation in which a question is shown, and its id.
fn asked(env: &TestEnv, args: &[&str]) -> (Tty, String) {
    let mut chat = Tty::chat(env, args);
    chat.until("/help shows the rest.");
    let shown = chat.say("push", "l: later");
    let id = regex::Regex::new(r"(?m)^([0-9a-f-]{36})\r$").unwrap();
    let id = id.captures(&shown).unwrap_or_else(|| panic!("no id in {shown}"))[1].to_owned();
    (chat, id)
}

#[test]
fn the_person_sees_exactly_what_would_run_and_says() {
    let refused = Some("1 call, 1 blocked (why: ");
    for (answer, expected, counts) in
        [("y", "It is done.", None), ("n", "So I do not.", refused), ("No: use --dry-run", "As a trial then.", refused)]
    {
        let env = asking("");
        let (mut chat, _) = asked(&env, &[]);
        chat.say(answer, expected);
        let ended = chat.leave();
        let shown = ended.screen;
        for line in [r#"      "command": "echo pu''shed # \u001b[2J\u{202e}""#, &format!("? {answer}")] {
            assert!(shown.lines().any(|shown| shown == line), "{line} in {shown}");
        }
        assert!(!shown.contains('\u{202e}'), "{shown}");
        let last = shown.lines().find(|line| line.starts_with("  1 call, ")).unwrap_or_else(|| panic!("{shown}"));
        assert!(
            !last.contains("waiting") && last.starts_with(&format!("  {}", counts.unwrap_or("1 call, 1 hook "))),
            "{last}"
        );
        assert_eq!((ended.code, ended.restored), (Some(0), true));
    }
}

#[test]
fn nothing_but_an_answer_that_was_typed_then_counts() {
    let env = asking("");
    let mut chat = Tty::chat(&env, &[]);
    chat.until("/help shows the rest.");
    // Typed ahead, before anybody could see what is asked.
    chat.press("push\ry\r");
    chat.until("l: later");
    chat.say("yes, do", "y: run it");
    chat.press("\u{1b}[200~y\r\u{1b}[201~");
    chat.until("» y");
    chat.say("n", "turn ");
    let ended = chat.leave();
    assert!(!ended.screen.contains("▸ tool"), "{}", ended.screen);
}

#[test]
fn half_a_message_is_kept_while_somebody_asks() {
    let env = scripted(
        r#"{"when": {"contains": "push"}, "delay_ms": 300, "tool_calls": [{"name": "exec", "arguments": {"command": "echo pu''shed"}}]},
           {"when": {"tool_result": "pushed"}, "text": "It is done."},
           {"when": {"contains": "half more"}, "text": "Both halves."}"#,
        "tools = ['exec']\nask = ['exec']\n",
    );
    let mut chat = Tty::chat(&env, &[]);
    chat.until("/help shows the rest.");
    chat.say("push", "→ model");
    chat.press("half");
    chat.until("l: later");
    chat.say("y", "It is done.");
    chat.until("turn completed");
    chat.say(" more", "Both halves.");
    assert_eq!(chat.leave().code, Some(0));
}

#[test]
fn somebody_else_may_answer_first() {
    for (verb, note, expected, answer) in [
        ("approve", "", "approved elsewhere by", "It is done."),
        ("refuse", "use --dry-run", "refused elsewhere by", "As a trial then."),
    ] {
        let env = asking("");
        let (mut chat, id) = asked(&env, &[]);
        let seen = env.on_terminal("", &["approvals", verb, &id, "--note", note]);
        assert_eq!(seen.code, Some(0), "{seen}");
        // The model may be faster than the notice.
        chat.until("turn completed");
        let ended = chat.leave();
        assert!(ended.screen.contains(expected) && ended.screen.contains(answer), "{}", ended.screen);
        assert_eq!(ended.code, Some(0));
    }
}

#[test]
fn what_is_left_for_later_goes_on_later() {
    let env = asking("");
    let (mut chat, id) = asked(&env, &[]);
    chat.say("l", "then /resume goes on here");
    // Nobody has said yet: it is asked again.
    chat.say("/resume", "l: later");
    chat.say("later", "then /resume goes on here");
    assert_eq!(env.on_terminal("", &["approvals", "approve", &id]).code, Some(0));
    chat.until("approved elsewhere by");
    chat.until("/resume goes on");
    chat.say("/resume", "It is done.");
    let ended = chat.leave();
    assert_eq!(ended.code, Some(0), "{}", ended.screen);
}

#[test]
fn a_conversation_that_leaves_a_turn_waiting_says_how_to_go_on() {
    let env = asking("");
    let (mut chat, id) = asked(&env, &["--session", "work"]);
    chat.say("l", "then /resume goes on here");
    let ended = chat.leave();
    assert_eq!(ended.code, Some(75));
    assert!(ended.screen.ends_with("to go on with it: pintle sessions resume work"), "{}", ended.screen);
    assert_eq!(env.on_terminal("", &["approvals", "approve", &id]).code, Some(0));
    let mut chat = Tty::chat(&env, &["--session", "work"]);
    chat.until("the turn \"push\" waits for a person: /resume goes on with it");
    chat.say("/resume", "It is done.");
    assert_eq!(chat.leave().code, Some(0));
}

#[test]
fn a_question_outlives_the_terminal() {
    let env = asking("");
    let (chat, id) = asked(&env, &["--session", "work"]);
    assert_eq!(chat.hang_up(), Some(75));
    assert_eq!(env.on_terminal("", &["approvals", "approve", &id]).code, Some(0));
    assert_eq!(env.pintle(&["sessions", "resume", "work"]).out, "It is done.\n");
}

#[test]
fn a_question_goes_away_with_its_turn() {
    let env = asking("");
    let (mut chat, _) = asked(&env, &[]);
    chat.press("\u{1b}");
    let shown = chat.until("stopped: ");
    assert!(shown.contains("1 call, 1 no longer waiting (why: "), "{shown}");
    // What is typed now is a message again.
    chat.say("/help", "/resume  go on");
    assert_eq!(chat.leave().code, Some(0));
    assert_eq!(env.pintle(&["approvals", "list", "--json"]).out, "[]\n");
}

#[test]
fn without_a_terminal_the_turn_is_parked() {
    let env = asking("");
    let seen = env.run(env.command(PINTLE).args(["chat", "--session", "work"]), "push\nnever said\n");
    assert_eq!((seen.code, seen.out.as_str()), (Some(75), ""), "{seen}");
    assert!(seen.err.contains("  pintle approvals approve [id]\n"), "{seen}");
    assert!(seen.err.ends_with("  pintle sessions resume work\n"), "{seen}");
    assert!(!seen.err.contains("never said"), "{seen}");
}
