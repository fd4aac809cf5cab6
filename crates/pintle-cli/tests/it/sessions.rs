//! `pintle sessions` and `run --session`: conversations that outlive their process.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::sys::stat::Mode;
use nix::unistd::{Pid, mkfifo};
use pintle_domain::id::TenantId;
use pintle_domain::session::JournalEntry;
use pintle_domain::store::SessionKey;

use super::env::{PINTLE, Seen, TestEnv};
use super::run::{GUARD, scripted};

/// Answers that depend on what was said, whichever process asks.
const TALKS: &str = r#"
    {"when": {"contains": "my name is Ada"}, "text": "Hello Ada.", "repeat": true},
    {"when": {"anywhere": "my name is Ada"}, "text": "You are Ada.", "repeat": true},
    {"text": "I do not know you.", "repeat": true}"#;

#[test]
fn sessions_are_listed_a_page_at_a_time() {
    let env = scripted(TALKS, "");
    for key in ["one", "two", "three"] {
        assert_eq!(env.pintle(&["run", "--quiet", "--session", key, "hello"]).code, Some(0));
    }
    insta::assert_snapshot!(env.pintle(&["sessions", "list", "--limit", "2"]), @"
    exit 0
    --- out
    three
      hello  agent main, 1 turn, [at]
    two
      hello  agent main, 1 turn, [at]

    --- err
    there are more: `pintle sessions list --limit 2 --after two`
    ");
    insta::assert_snapshot!(env.pintle(&["sessions", "list", "--limit", "2", "--after", "two"]), @"
    exit 0
    --- out
    one
      hello  agent main, 1 turn, [at]
    ");
    insta::assert_snapshot!(env.pintle(&["sessions", "list", "--after", "one"]), @"
    exit 0
    --- out
    there are no more sessions
    ");
    insta::assert_snapshot!(env.pintle(&["sessions", "list", "--after", "tree"]), @r#"
    exit 2
    --- err
    error: there is no session "tree"; did you mean "three"?
      hint: `pintle sessions list` shows them
    "#);
    let json = |args: &[&str]| -> pintle_domain::json::Value {
        serde_json::from_str(&env.pintle(&[&["sessions", "list", "--json"], args].concat()).out).unwrap()
    };
    assert_eq!(json(&[]).as_array().unwrap().len(), 3);
    assert_eq!(json(&["--limit", "1", "--after", "three"])[0]["session_id"], "two");
}

#[test]
fn a_conversation_outlives_its_process() {
    let env = scripted(TALKS, "");
    let say = |key: &str, message: &str| env.pintle(&["run", "--quiet", "--session", key, message]);
    assert_eq!(say("work", "my name is Ada").out, "Hello Ada.\n");
    assert_eq!(say("work", "who am I?").out, "You are Ada.\n");
    assert_eq!(say("other", "who am I?").out, "I do not know you.\n");
    insta::assert_snapshot!(env.pintle(&["sessions", "list"]), @"
    exit 0
    --- out
    other
      who am I?  agent main, 1 turn, [at]
    work
      my name is Ada  agent main, 2 turns, [at]
    ");
    insta::assert_snapshot!(env.pintle(&["sessions", "show", "work"]), @"
    exit 0
    --- out
    work  agent main, begun [at], used [at]

    user  [at]
      my name is Ada

    assistant
      Hello Ada.

    user  [at]
      who am I?

    assistant
      You are Ada.
    ");
    let json: pintle_domain::json::Value =
        serde_json::from_str(&env.pintle(&["sessions", "show", "work", "--json"]).out).unwrap();
    assert_eq!(json["session"]["turns"], 2);
    assert_eq!(json["messages"].as_array().unwrap().len(), 4);
    let list: pintle_domain::json::Value =
        serde_json::from_str(&env.pintle(&["sessions", "list", "--json"]).out).unwrap();
    let keys: Vec<&str> = list.as_array().unwrap().iter().map(|row| row["session_id"].as_str().unwrap()).collect();
    assert_eq!(keys, ["other", "work"]);
    assert_eq!(env.pintle(&["sessions", "delete", "work"]).code, Some(0));
    assert_eq!(say("work", "who am I?").out, "I do not know you.\n");
}

#[test]
fn another_agents_conversation_is_sent_on_only_by_the_word_of_a_person() {
    let env = scripted(TALKS, "[agents.other]\nmodel = 'scripted/any'\n");
    let say = |more: &[&str]| env.pintle(&[&["run", "--quiet", "--session", "work"], more, &["who am I?"]].concat());
    assert_eq!(env.pintle(&["run", "--quiet", "--agent", "main", "--session", "work", "my name is Ada"]).code, Some(0));
    insta::assert_snapshot!(say(&["--agent", "other"]), @r#"
    exit 1
    --- err
    error: session "work" is a conversation with the agent "main", not with "other"
      hint: to go on with "main": `pintle run --quiet --session work 'who am I?' --agent main`
      hint: to send all that was said in it to "other": `pintle run --quiet --session work --agent other 'who am I?' --agent-changed`
    "#);
    assert_eq!(say(&["--agent", "main"]).out, "You are Ada.\n");
    assert_eq!(say(&["--agent", "other", "--agent-changed"]).out, "You are Ada.\n");
    // From then on it is that agent's, and the journal says since when.
    assert_eq!(say(&["--agent", "other"]).out, "You are Ada.\n");
    let refused = say(&["--agent", "main"]);
    assert!(
        refused.code == Some(1) && refused.err.contains("with the agent \"other\", not with \"main\""),
        "{refused}"
    );
    let store =
        pintle_store::open("sqlite://pintle.db", &env.path("data/pintle"), pintle_store::Durability::Commit).unwrap();
    let key = SessionKey { tenant: TenantId::default_tenant(), session: "work".into() };
    let opened = store.journal(&key).unwrap().into_iter().filter_map(|entry| match entry {
        JournalEntry::Opened { by, .. } => by.split_once(", ").map(|(_, more)| more.to_owned()),
        JournalEntry::Turn(_) | JournalEntry::Closed { .. } | JournalEntry::Kept(_) => None,
    });
    assert_eq!(opened.collect::<Vec<_>>(), ["agent other in the place of main"]);
}

#[test]
fn a_call_and_its_result_are_readable_and_move_no_terminal() {
    let call = r#"{"tool_calls": [{"name": "x\u001b[2J", "arguments": {"a": "\u009b1m"}}]}"#;
    let env = scripted(&format!(r#"{call},{{"text": "one\u001b[2J\r\ntwo"}}"#), "");
    assert_eq!(env.pintle(&["run", "--quiet", "--session", "s", "go \u{1b}]0;t\u{7}"]).code, Some(0));
    let seen = env.pintle(&["sessions", "show", "s"]);
    insta::assert_snapshot!(seen, @r#"
    exit 0
    --- out
    s  agent main, begun [at], used [at]

    user  [at]
      go \u{1b}]0;t\u{7}

    assistant
      ▸ x\u{1b}[2J {"a":"\u{9b}1m"}

    result of x\u{1b}[2J
      tool "x\u{1b}[2J" not found

    assistant
      one\u{1b}[2J
      two
    "#);
    assert!(!env.pintle(&["sessions", "list"]).out.contains('\u{1b}'));
}

#[test]
fn bad_input_says_what_is_wrong() {
    let env = scripted(TALKS, "");
    assert_eq!(env.pintle(&["sessions", "list"]).out, "there are no sessions; `pintle run --session KEY` begins one\n");
    assert_eq!(env.pintle(&["sessions", "list", "--json"]).out, "[]\n");
    assert_eq!(env.pintle(&["run", "--quiet", "--session", "groceries", "hello"]).code, Some(0));
    for command in ["show", "resume", "delete"] {
        let seen = env.pintle(&["sessions", command, "grocries"]);
        let expected = "error: there is no session \"grocries\"; did you mean \"groceries\"?\n  \
                        hint: `pintle sessions list` shows them\n";
        assert_eq!((seen.code, seen.out.as_str(), seen.err.as_str()), (Some(2), "", expected), "{command}");
    }
    let seen = env.pintle(&["sessions", "resume", "groceries"]);
    assert_eq!((seen.code, seen.out.as_str()), (Some(1), ""));
    assert_eq!(seen.err, "nothing is open in session groceries: its last turn is over\n");
    for (key, why) in [("", "it is empty"), ("a\nb", "it has control characters")] {
        let seen = env.pintle(&["run", "--session", key, "hello"]);
        assert_eq!(seen.code, Some(2));
        assert_eq!(seen.err, format!("error: --session: the key of a session is a short name, and {why}\n"));
    }
    assert_eq!(env.pintle(&["sessions"]).code, Some(2));
    assert_eq!(env.pintle(&["sessions", "show"]).code, Some(2));
}

#[test]
fn one_process_at_a_time_works_on_a_session() {
    let call = pintle_domain::json::json!({"tool_calls": [{"name": "exec", "arguments": {"command": "echo in >begun; cat gate"}}]});
    let env = scripted(&format!("{call},{{\"text\": \"done\"}}"), "tools = ['exec']\n");
    for fifo in ["begun", "gate"] {
        mkfifo(&env.path("here").join(fifo), Mode::S_IRWXU).unwrap();
    }
    let mut first = env.command(PINTLE);
    first.args(["run", "--quiet", "--session", "s", "go"]).stdin(Stdio::null()).stdout(Stdio::piped());
    let first = first.spawn().unwrap();
    File::open(env.path("here/begun")).unwrap().read_to_end(&mut Vec::new()).unwrap();
    let in_use = format!("session \"s\" is in use by process {}", first.id());
    for args in [&["run", "--session", "s", "me too"][..], &["sessions", "resume", "s"], &["sessions", "delete", "s"]] {
        let seen = env.run(env.command(PINTLE).args(args), "");
        assert_eq!((seen.code, seen.out.as_str()), (Some(1), ""), "{args:?}");
        assert!(seen.err.contains(&env.redact(&in_use)), "{args:?}: {}", seen.err);
    }
    let list: pintle_domain::json::Value =
        serde_json::from_str(&env.pintle(&["sessions", "list", "--json"]).out).unwrap();
    assert_eq!(list[0]["held_by"].as_str().map(str::to_owned), Some(env.redact(&format!("process {}", first.id()))));
    // Another session is free.
    assert_eq!(env.pintle(&["run", "--quiet", "--session", "t", "--agent", "mian", "x"]).code, Some(2));
    File::options().write(true).open(env.path("here/gate")).unwrap().write_all(b"opened\n").unwrap();
    let output = first.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), &b"done\n"[..]));
    let gone = Seen { code: Some(0), out: String::new(), err: "deleted session s\n".into() };
    assert_eq!(env.pintle(&["sessions", "delete", "s"]), gone);
    assert_eq!(env.pintle(&["sessions", "list", "--json"]).out, "[]\n");
}

/// A main agent that spawns a helper, and a helper that is slower than it.
const TEAM: &str = "tools = ['spawn']\ndefault = true\n[agents.helper]\nmodel = 'scripted/test'\ndescription = 'helps'\n\
                    system = 'you are the helper'\n[agents.broken]\nmodel = 'scripted/test'\nfallbacks = ['nope/x']\n";

#[test]
fn what_a_sub_agent_brings_too_late_waits_in_the_session() {
    let spawn = r#"{"when": {"contains": "please"}, "tool_calls": [{"name": "spawn", "arguments": {"agent": "helper", "task": "count"}}]}"#;
    let helper = r#"{"when": {"anywhere": "you are the helper"}, "delay_ms": 300, "text": "three"}"#;
    let main = r#"{"when": {"tool_result": "works on it"}, "text": "I asked."}"#;
    let late = r#"{"when": {"contains": "Result of the agent"}, "text": "It is three."}"#;
    let env = scripted(&format!("{spawn},{helper},{main},{late}"), TEAM);
    let seen = env.pintle(&["run", "--quiet", "--session", "s", "please"]);
    assert_eq!((seen.code, seen.out.as_str()), (Some(0), "I asked.\n"), "{}", seen.err);
    let expected = "sub-agents still work in the background; Ctrl-C stops them\n\
                    a message waits in the session; to go on with it: pintle sessions resume s\n";
    assert!(seen.err.ends_with(expected), "{}", seen.err);
    assert_eq!(env.pintle(&["sessions", "list"]).out.lines().count(), 2, "sub-agents' sessions are not listed");
    assert_eq!(env.pintle(&["sessions", "list", "--all"]).out.lines().count(), 4);
    let seen = env.pintle(&["sessions", "resume", "--quiet", "s"]);
    assert_eq!((seen.code, seen.out.as_str()), (Some(0), "It is three.\n"), "{}", seen.err);
    let json: pintle_domain::json::Value =
        serde_json::from_str(&env.pintle(&["sessions", "list", "--json"]).out).unwrap();
    let child = json.as_array().unwrap().iter().find(|row| row["parent"] == "s").unwrap()["session_id"].clone();
    let child = child.as_str().unwrap();
    assert!(child.starts_with("s/spawn:helper:"), "{child}");
}

#[test]
fn a_sub_agent_of_a_killed_program_goes_on_with_its_session() {
    for (tool, results) in [("delegate", ["tool_result", "tool_result"]), ("spawn", ["tool_result", "contains"])] {
        let hands = format!(
            r#"{{"when": {{"contains": "please"}}, "tool_calls": [{{"name": "{tool}", "arguments": {{"agent": "helper", "task": "count"}}}}]}}"#
        );
        let replies = |delay: u32| {
            let helper =
                format!(r#"{{"when": {{"anywhere": "you are the helper"}}, "delay_ms": {delay}, "text": "three"}}"#);
            let asked =
                format!(r#"{{"when": {{"tool_result": "works on it"}}, "delay_ms": {delay}, "text": "I asked."}}"#);
            let main = results.map(|place| format!(r#"{{"when": {{"{place}": "three"}}, "text": "It is three."}}"#));
            format!("{hands},{helper},{asked},{}", main.join(","))
        };
        let env = scripted(&replies(600_000), &TEAM.replace("'spawn'", &format!("'{tool}'")));
        let mut run = env.command(PINTLE);
        run.args(["run", "--quiet", "--session", "s", "please"]);
        let mut run = run.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let row = |of: &str| -> pintle_domain::json::Value {
            let list = env.raw(&["sessions", "list", "--json"]);
            let rows: pintle_domain::json::Value = serde_json::from_str(&list).unwrap_or_default();
            rows.as_array().into_iter().flatten().find(|row| row["agent_id"] == of).cloned().unwrap_or_default()
        };
        while row("helper")["open_turn"].is_null() {}
        run.kill().unwrap();
        run.wait().unwrap();
        env.write("config/pintle/replies.json", &format!("{{\"replies\": [{}]}}", replies(0)));
        let (child, turn) = (row("helper")["session_id"].clone(), row("helper")["open_turn"].clone());
        let seen = env.pintle(&["sessions", "resume", "--quiet", "s"]);
        assert_eq!(seen.code, Some(0), "{seen}");
        let more = env.pintle(&["sessions", "resume", "--quiet", "s"]);
        assert!((seen.out + &more.out).contains("It is three.\n"), "{tool}: {more}");
        let after = row("helper");
        // The same session and turn came to their end, and no other was begun.
        assert_eq!((&after["session_id"], &after["turns"], &after["last_end"]), (&child, &1.into(), &"done".into()));
        let shown = env.raw(&["sessions", "show", child.as_str().unwrap()]);
        assert!(shown.contains("three") && turn.is_string(), "{shown}");
    }
}

#[test]
fn an_interrupt_stops_sub_agents_that_are_waited_for() {
    let spawn = r#"{"when": {"contains": "please"}, "tool_calls": [{"name": "spawn", "arguments": {"agent": "helper", "task": "count"}}]}"#;
    let helper = r#"{"when": {"anywhere": "you are the helper"}, "delay_ms": 600000, "text": "three"}"#;
    let main = r#"{"when": {"tool_result": "works on it"}, "text": "I asked."}"#;
    let env = scripted(&format!("{spawn},{helper},{main}"), TEAM);
    let mut run = env.command(PINTLE);
    run.args(["run", "--quiet", "--session", "s", "please"]);
    let mut run = run.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut shown = BufReader::new(run.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(shown.any(|line| line.starts_with("sub-agents still work")));
    kill(Pid::from_raw(run.id().try_into().unwrap()), Signal::SIGINT).unwrap();
    let output = run.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(130), &b"I asked.\n"[..]));
    let list: pintle_domain::json::Value =
        serde_json::from_str(&env.pintle(&["sessions", "list", "--json"]).out).unwrap();
    let ends: Vec<&str> = list.as_array().unwrap().iter().map(|row| row["last_end"].as_str().unwrap()).collect();
    assert_eq!(ends.len(), 2);
    assert!(list.as_array().unwrap().iter().all(|row| row["open_turn"].is_null()), "{list}");
}

#[test]
fn an_agent_that_cannot_be_used_matters_only_to_who_uses_it() {
    let delegate = r#"{"when": {"contains": "please"}, "tool_calls": [{"name": "delegate", "arguments": {"agent": "broken", "task": "count"}}]}"#;
    let main = r#"{"when": {"tool_result": "there is no provider \"nope\""}, "text": "It cannot."}"#;
    let env = scripted(&format!("{delegate},{main}"), &TEAM.replace("'spawn'", "'delegate'"));
    let seen = env.pintle(&["run", "--quiet", "please"]);
    assert_eq!((seen.code, seen.out.as_str()), (Some(0), "It cannot.\n"), "{}", seen.err);
    let seen = env.pintle(&["run", "--quiet", "--agent", "broken", "please"]);
    assert_eq!((seen.code, seen.out.as_str()), (Some(2), ""));
    assert!(seen.err.contains("there is no provider \"nope\""), "{}", seen.err);
}

#[test]
fn the_lines_of_a_sub_agent_stand_further_in() {
    let delegate = r#"{"when": {"contains": "please"}, "tool_calls": [{"name": "delegate", "arguments": {"agent": "helper", "task": "count"}}]}"#;
    let helper = r#"{"when": {"anywhere": "you are the helper"}, "text": "three"}"#;
    let main = r#"{"when": {"tool_result": "three"}, "text": "It is three."}"#;
    let env = scripted(&format!("{delegate},{helper},{main}"), &TEAM.replace("'spawn'", "'delegate'"));
    let shown = env.pintle(&["run", "please"]).err;
    // The one line whose columns move with the time that the call took.
    let shown: Vec<&str> = shown.lines().skip(2).filter(|line| !line.contains("◂")).collect();
    insta::assert_snapshot!(shown.join("\n"), @r#"
    turn main  please
      → model        scripted/test  1 message, 1 tool
      ← model                       0 bytes of text, 1 tool call
      ◇ permit       delegate       sha256 [digest]…
      ▸ tool         delegate       {"agent":"helper","task":"count"}
      ▹ sub-agent    helper         begins
        turn helper  count
          → model        scripted/test  2 messages, 4 tools
          ← model                       5 bytes of text, 0 tool calls
        turn helper completed after 1 round, [time]
      ◃ sub-agent    helper         completed
      → model        scripted/test  3 messages, 1 tool
      ← model                       12 bytes of text, 0 tool calls
    turn completed after 2 rounds, [time]
    "#);
}

/// What the journal of the session `key` says of who opened it, behind the process.
fn openings(env: &TestEnv, key: &str) -> Vec<String> {
    let store =
        pintle_store::open("sqlite://pintle.db", &env.path("data/pintle"), pintle_store::Durability::Commit).unwrap();
    let key = SessionKey { tenant: TenantId::default_tenant(), session: key.into() };
    let opened = store.journal(&key).unwrap().into_iter().filter_map(|entry| match entry {
        JournalEntry::Opened { by, .. } => by.split_once(", ").map(|(_, more)| env.redact(more)),
        JournalEntry::Turn(_) | JournalEntry::Closed { .. } | JournalEntry::Kept(_) => None,
    });
    opened.collect()
}

#[test]
fn a_session_goes_on_under_its_configuration_or_by_the_word_of_a_person() {
    let env = scripted(TALKS, "");
    let config = env.path("config/pintle/pintle.toml");
    let own = std::fs::read_to_string(&config).unwrap();
    let guarded = format!("{own}{GUARD}");
    std::fs::write(&config, &guarded).unwrap();
    let bare = env.write("config/pintle/bare.toml", &own);
    let bare = ["-c", bare.to_str().unwrap()];
    let say = |more: &[&str]| {
        let run: &[&str] = if more.contains(&"run") { &[] } else { &["run"] };
        env.pintle(&[more, run, &["--quiet", "--session", "work", "who am I?"]].concat())
    };
    let first = env.pintle(&["run", "--quiet", "--session", "work", "my name is Ada"]);
    assert_eq!(first.code, Some(0), "{first}");
    insta::assert_snapshot!(say(&bare), @r#"
    exit 1
    --- err
    error: session "work" ran under [root]/config/pintle/pintle.toml, and this is [root]/config/pintle/bare.toml; it had the guard "guard", which is gone
      hint: to go on as before: `pintle run --quiet --session work 'who am I?' -c [root]/config/pintle/pintle.toml`
      hint: to go on as it is now, which the session's journal says: `pintle -c [root]/config/pintle/bare.toml run --quiet --session work 'who am I?' --config-changed`
    "#);
    // Without the guard, in the file that it had.
    std::fs::write(&config, &own).unwrap();
    insta::assert_snapshot!(say(&[]), @r#"
    exit 1
    --- err
    error: session "work" had the guard "guard", which is gone
      hint: to go on as it is now, which the session's journal says: `pintle run --quiet --session work 'who am I?' --config-changed`
    "#);
    // Other edits are one line.
    std::fs::write(&config, format!("{guarded}\n# a word\n")).unwrap();
    let edited = say(&[]);
    assert_eq!((edited.code, edited.out.as_str()), (Some(0), "You are Ada.\n"), "{edited}");
    assert!(edited.err.contains("the configuration was edited since this session last ran\n"), "{edited}");
    assert!(!say(&[]).err.contains("edited"), "it is told once");
    let changed = say(&[&bare[..], &["run", "--config-changed"]].concat());
    assert_eq!((changed.code, changed.out.as_str()), (Some(0), "You are Ada.\n"), "{changed}");
    assert_eq!(
        openings(&env, "work"),
        [
            "configuration [root]/config/pintle/bare.toml in the place of [root]/config/pintle/pintle.toml, without the guards \
             guard"
        ]
    );
    assert_eq!(say(&bare).code, Some(0));
    // `sessions resume` asks the same.
    let resumed = env.pintle(&["sessions", "resume", "work"]);
    assert!(resumed.code == Some(1) && resumed.err.contains("ran under [root]/config/pintle/bare.toml"), "{resumed}");
    let resumed = env.pintle(&["sessions", "resume", "work", "--config-changed"]);
    assert!(resumed.err.contains("nothing is open in session work"), "{resumed}");
}
