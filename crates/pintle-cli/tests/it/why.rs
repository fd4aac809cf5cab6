//! `pintle why`: which turn, which event, and every word of it.

use pintle_domain::checkpoint::CheckpointKind;
use pintle_domain::identity::Identity;
use pintle_domain::record::{EventRecord, EventRuling, RecordLines};
use pintle_domain::verdict::VerdictKind;

use super::env::{BEFORE_TOOL, PINTLE, TestEnv, answering};
use super::run::scripted;

const LISTS: &str = r#"{"tool_calls": [{"name": "LS", "arguments": {"path": "."}}]}"#;
const DONE: &str = r#"{"text": ["Done."]}"#;

/// A guard that refuses the calls of tools whose lines fit `pattern` for `reason`.
fn refusing(pattern: &str, reason: &str) -> String {
    answering(pattern, &format!(r#"{{"action":"deny_tool","reason":"{reason}"}}"#))
}

/// Surroundings with a scripted model and a guard, in which one turn was refused a call for `reason`.
fn refused(reason: &str) -> TestEnv {
    let env = TestEnv::new();
    env.write("config/pintle/refuses.sh", &refusing(BEFORE_TOOL, reason));
    env.write("config/pintle/replies.json", &format!("{{\"replies\": [{LISTS}, {DONE}]}}"));
    env.user_config(
        "[providers.play]\nkind = 'scripted'\nscript = 'replies.json'\n[agents.main]\nmodel = 'play/any'\n\
         [hooks.processes.guard]\nenabled = true\ncommand = ['sh', 'refuses.sh']\nintercept = ['before_tool']\npair = false\n",
    );
    assert_eq!(env.pintle(&["run", "--quiet", "hello"]).out, "Done.\n");
    env
}

/// One turn in which nothing is asked.
fn talks(env: &TestEnv) {
    env.write("config/pintle/replies.json", &format!("{{\"replies\": [{DONE}]}}"));
    assert_eq!(env.pintle(&["run", "--quiet", "hello"]).out, "Done.\n");
}

/// A turn of twenty rounds, each with a call; the guard refuses those of the folder `keys`.
fn long_turn(paths: impl Fn(usize) -> &'static str) -> TestEnv {
    let env = refused("no");
    let of_keys = format!("{BEFORE_TOOL}keys*");
    env.write("config/pintle/refuses.sh", &refusing(&of_keys, "keys stay where they are"));
    let calls = (0..20).map(|round| {
        let arguments = pintle_domain::json::json!({ "path": paths(round), "depth": round });
        pintle_domain::json::json!({ "tool_calls": [{ "name": "list_dir", "arguments": arguments }] }).to_string()
    });
    let replies: Vec<String> = calls.chain([DONE.to_owned()]).collect();
    env.write("config/pintle/replies.json", &format!("{{\"replies\": [{}]}}", replies.join(", ")));
    env.user_config(
        "[providers.play]\nkind = 'scripted'\nscript = 'replies.json'\n\
         [agents.main]\nmodel = 'play/any'\nmax_iterations = 30\n\
         [hooks.processes.guard]\nenabled = true\ncommand = ['sh', 'refuses.sh']\nintercept = ['before_tool']\n\
         [hooks.processes.other]\nenabled = true\ncommand = ['sh', 'refuses.sh']\nintercept = ['before_tool']\n\
         matcher = '^exec$'\npair = false\n",
    );
    assert_eq!(env.pintle(&["run", "--quiet", "hello"]).out, "Done.\n");
    env
}

/// The lines that `text` takes where a line has 80 columns.
fn lines_of_80(text: &str) -> usize {
    text.lines().map(|line| line.chars().count().div_ceil(80).max(1)).sum()
}

#[test]
fn twenty_rounds_are_fifteen_lines_and_a_refusal_ten_more() {
    let quiet = long_turn(|_| ".").pintle(&["why"]);
    assert!(quiet.out.contains("20 calls, nothing blocked") && lines_of_80(&quiet.out) <= 15, "{quiet}");
    let refused = long_turn(|round| if round == 11 { "keys" } else { "." }).pintle(&["why"]);
    assert!(refused.out.contains("20 calls, 1 blocked") && lines_of_80(&refused.out) <= 25, "{refused}");
    for shown in ["call 12", "list_dir", "keys", "11", "keys stay where they are"] {
        assert!(refused.out.contains(shown), "{shown}: {refused}");
    }
}

#[test]
fn a_list_that_ends_says_so_and_since_shows_the_rest() {
    let env = long_turn(|_| "keys");
    let newest = env.pintle(&["why", "--denied"]);
    assert!(newest.out.contains("older event") && newest.out.contains("--since 7d"), "{newest}");
    let json = env.pintle(&["why", "--denied", "--json"]);
    assert!(json.err.contains("older event") && !json.out.contains("older event"), "{json}");
    let all = env.pintle(&["why", "--denied", "--since", "1h"]);
    assert!(!all.out.contains("older event"), "{all}");
    let oldest = "Tool execution denied by hook: no (";
    assert!(all.out.contains(oldest) && !newest.out.contains(oldest), "{newest}\n{all}");
}

#[test]
fn the_newest_turn_is_named_even_if_it_asked_no_hook() {
    let env = refused("no");
    let before = env.pintle(&["why"]);
    insta::assert_snapshot!(before, @r#"
    exit 0
    --- out
    turn of main  [at]  turn [short]

    1 call, 1 blocked; 1 hook ran once, [time]
    ✗ call 1 list_dir .
      Tool execution denied by hook: no (hook "guard")
      before_tool

    -v shows every hook at every event, with the ids for `pintle why EVENT_ID`
    "#);
    talks(&env);
    let after = env.pintle(&["why", "--last"]);
    insta::assert_snapshot!(after, @"
    exit 0
    --- out
    turn of main  [at]  turn [short]

    no hook ran in this turn

    -v shows every hook at every event, with the ids for `pintle why EVENT_ID`
    ");
    let json: pintle_domain::json::Value = serde_json::from_str(&env.pintle(&["why", "--json"]).out).unwrap();
    let [end] = json.as_array().unwrap().as_slice() else { panic!("one event: {json}") };
    assert_eq!((&end["event"]["event"], &end["hooks"]), (&"turn_end".into(), &pintle_domain::json::json!([])));
}

#[test]
fn what_was_refused_to_a_sub_agent_belongs_to_the_turn_that_it_worked_for() {
    let looks =
        r#"{"when": {"model": "helper", "contains": "look"}, "tool_calls": [{"name": "list_dir", "arguments": {}}]}"#;
    let env = refused("no");
    env.user_config(
        "[providers.play]\nkind = 'scripted'\nscript = 'replies.json'\n[agents.helper]\nmodel = 'play/helper'\n\
         [agents.main]\nmodel = 'play/any'\ntools = ['delegate', 'spawn']\n[hooks.processes.guard]\nenabled = true\n\
         command = ['sh', 'refuses.sh']\nintercept = ['before_tool']\nmatcher = '^list_dir$'\npair = false\n",
    );
    for tool in ["delegate", "spawn"] {
        let gives = pintle_domain::json::json!({"when": {"contains": "please"},
            "tool_calls": [{"name": tool, "arguments": {"agent": "helper", "task": "look"}}]});
        let done = r#"{"text": "Done.", "repeat": true}"#;
        env.write("config/pintle/replies.json", &format!("{{\"replies\": [{gives}, {looks}, {done}]}}"));
        assert_eq!(env.pintle(&["run", "--quiet", "please"]).out, "Done.\n");
        let seen = env.pintle(&["why", "-v"]);
        let (main, helper) = seen.out.split_once("\nturn of helper").unwrap_or_else(|| panic!("two turns: {seen}"));
        assert!(main.starts_with("turn of main") && main.contains(&format!("before_tool {tool}")), "{seen}");
        assert!(helper.contains("before_tool list_dir  deny") && !helper.contains("turn of"), "{seen}");
        let seen = env.pintle(&["why", "--tool", "list_dir"]);
        assert!(seen.out.starts_with("turn of helper") && !seen.out.contains("turn of main"), "{seen}");
    }
    talks(&env);
    assert!(!env.pintle(&["why"]).out.contains("helper"), "another turn, in another session");
}

#[test]
fn a_text_is_never_cut_and_never_moves_the_terminal() {
    let long = "because ".repeat(100);
    let env = refused(&format!("{long}\\u001b[2J"));
    let seen = env.pintle(&["--color", "always", "why", "-v"]);
    assert_eq!(seen.out.matches(&long).count(), 2, "as the model read it and as the hook said it: {seen}");
    assert!(!seen.out.contains("\u{1b}[2J"), "{seen}");
}

#[test]
fn a_tool_is_found_as_the_model_wrote_it() {
    let env = refused("no");
    for name in ["list_dir", "LS"] {
        let seen = env.pintle(&["why", "--tool", name]);
        assert!(seen.out.contains("before_tool list_dir  deny"), "{seen}");
    }
    let seen = env.pintle(&["why", "--tool", "exec"]);
    insta::assert_snapshot!(seen, @"
    exit 2
    --- err
    error: the turn has no event about a tool `exec`; its tools are list_dir
    ");
    talks(&env);
    let seen = env.pintle(&["why", "--tool", "list_dir"]);
    insta::assert_snapshot!(seen, @"
    exit 2
    --- err
    error: the turn has no event about a tool `list_dir`; its record names no tool
    ");
}

#[test]
fn an_event_is_one_or_none_or_several() {
    let env = refused("no");
    let output = env.command(PINTLE).args(["why", "--json"]).output().unwrap();
    let json: pintle_domain::json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let ids: Vec<String> =
        json.as_array().unwrap().iter().map(|each| each["event"]["event_id"].as_str().unwrap().into()).collect();
    let (first, last) = (ids.first().unwrap(), ids.last().unwrap());
    assert!(ids.len() > 1);
    let one = env.pintle(&["why", first]);
    assert!(
        one.code == Some(0) && one.out.contains("before_tool list_dir  deny") && !one.out.contains("turn_end"),
        "{one}"
    );
    let shared: String = first.chars().zip(last.chars()).take_while(|(a, b)| a == b).map(|(a, _)| a).collect();
    let several = env.pintle(&["why", &shared]);
    assert_eq!((several.code, several.out.as_str()), (Some(2), ""));
    assert!(several.err.contains("is ambiguous: ") && several.err.contains("before_tool list_dir"), "{several}");
    let narrowed = env.pintle(&["why", &shared, "--tool", "ls"]);
    assert_eq!(narrowed.code, Some(0), "{narrowed}");
    let seen = [
        env.pintle(&["why", ""]),
        env.pintle(&["why", "zzz"]),
        env.pintle(&["why", first, "--tool", "exec"]),
        env.pintle(&["why", last, "--tool", "exec"]),
    ];
    insta::assert_snapshot!(seen.map(|seen| seen.to_string()).concat(), @"
    exit 2
    --- err
    error: ID is empty
      hint: `pintle why --list` shows the turns, `pintle why` the newest one

    exit 2
    --- err
    error: there is no record of an event, a turn, a session or a call `zzz`
      hint: `pintle why --list` shows the turns, `pintle why -v` the newest one with its events' ids

    exit 2
    --- err
    error: the event `[id]` is about the tool `list_dir`, not about `exec`

    exit 2
    --- err
    error: the event `[id]` is about no tool, not about `exec`
    ");
}

#[test]
fn of_very_many_candidates_the_first_and_the_last_are_named_and_the_rest_is_not_counted() {
    let env = TestEnv::new();
    env.user_config("[agents.main]\n");
    let ambiguous = |events: usize| {
        let store =
            pintle_store::open("sqlite://pintle.db", &env.path("data/pintle"), pintle_store::Durability::Commit)
                .unwrap();
        let records = (0..events).map(|n| EventRecord {
            event_id: format!("m{events}-{n:03}").as_str().into(),
            at: jiff::Timestamp::now(),
            checkpoint: CheckpointKind::UserPromptSubmit,
            kind: None,
            who: Identity::top("main", "s", "t1".into()),
            tool: None,
            input: None,
            ruling: EventRuling::word(VerdictKind::Continue),
            hooks: RecordLines::default(),
        });
        let (done, kept) = std::sync::mpsc::channel();
        store.keep(records.collect(), Box::new(move |result| done.send(result.is_ok()).unwrap()));
        assert!(kept.recv().unwrap());
        drop(store);
        env.pintle(&["why", &format!("m{events}")])
    };
    let (few, many) = (ambiguous(3), ambiguous(250));
    assert_eq!((few.code, many.code), (Some(2), Some(2)));
    assert!(few.err.contains("`m3` is ambiguous: 3 events begin with it\n"), "{few}");
    assert!(few.err.contains("hint: newest: m3-002  ") && few.err.contains("hint: oldest: m3-000  "), "{few}");
    assert!(many.err.contains("`m250` is ambiguous: at least 100 events begin with it\n"), "{many}");
    // Older ones than these were not looked at.
    assert!(many.err.contains("hint: newest: m250-249  ") && many.err.contains("hint: also: m250-150  "), "{many}");
}

#[test]
fn of_many_blocked_calls_the_newest_are_shown() {
    let env = refused("no");
    let call = |n: u8| format!(r#"{{"id": "c{n}", "name": "list_dir", "arguments": {{"path": "x{n:02}"}}}}"#);
    let calls: Vec<String> = (1..=12).map(call).collect();
    let replies = format!(r#"{{"replies": [{{"tool_calls": [{}]}}, {DONE}]}}"#, calls.join(", "));
    env.write("config/pintle/replies.json", &replies);
    assert_eq!(env.pintle(&["run", "--quiet", "hello"]).out, "Done.\n");
    let seen = env.pintle(&["why"]);
    assert!(seen.out.contains("… 2 earlier: -v") && seen.out.contains("x12"), "{seen}");
    assert!(seen.out.contains("x03") && !seen.out.contains("x02"), "{seen}");
}

#[test]
fn sessions_calls_times_and_hooks_choose_what_is_explained() {
    let env = refused("no");
    let calls = |id: &str| {
        let call =
            pintle_domain::json::json!({"tool_calls": [{"id": id, "name": "list_dir", "arguments": {"path": id}}]});
        env.write("config/pintle/replies.json", &format!("{{\"replies\": [{call}, {DONE}]}}"));
        assert_eq!(env.pintle(&["run", "--quiet", "--session", "trip", "hello"]).out, "Done.\n");
    };
    calls("call_one");
    calls("call_two");
    talks(&env);
    // A session is its newest turn, a call the events about it.
    let seen = env.pintle(&["why", "trip"]);
    assert!(seen.code == Some(0) && seen.out.contains("call_two") && !seen.out.contains("call_one"), "{seen}");
    assert_eq!(seen.out.matches("turn of main").count(), 1, "{seen}");
    let seen = env.pintle(&["why", "call_one"]);
    assert!(seen.code == Some(0) && seen.out.contains("before_tool list_dir  deny"), "{seen}");
    assert!(
        seen.out.contains("call_one") && !seen.out.contains("call_two") && !seen.out.contains("turn_end"),
        "{seen}"
    );
    let json: pintle_domain::json::Value = serde_json::from_str(&env.raw(&["why", "call_one", "--json"])).unwrap();
    let about = json.as_array().unwrap().iter().all(|each| each["event"]["tool_call_id"] == "call_one");
    assert!(about && json[0]["event"]["tool_call_id"] == "call_one", "{json}");
    // A hook is every event that it was asked at, newest first, in whatever turn.
    let seen = env.pintle(&["why", "--hook", "guard"]);
    assert!(seen.code == Some(0) && seen.out.contains("call_one") && seen.out.contains("call_two"), "{seen}");
    let seen = env.pintle(&["why", "--hook", "gaurd"]);
    assert!(seen.code == Some(2) && seen.err.contains("did you mean"), "{seen}");
    // What is older is left out; that there is nothing is said.
    for since in ["1h", "2020-01-01"] {
        let seen = env.pintle(&["why", "--denied", "--since", since]);
        assert!(seen.code == Some(0) && seen.out.contains("call_one") && seen.out.contains("call_two"), "{seen}");
        let seen = env.pintle(&["why", "--list", "--since", since]);
        assert_eq!((seen.code, seen.out.matches("hello").count()), (Some(0), 4), "{seen}");
    }
    let seen = env.pintle(&["why", "--hook", "guard", "--since", "2999-01-01"]);
    assert!(seen.out.is_empty() && seen.err.contains("guard"), "{seen}");
    let seen = env.pintle(&["why", "--since", "soon"]);
    assert!(seen.code == Some(2) && seen.err.contains("--since"), "{seen}");
}

#[test]
fn a_store_that_cannot_be_made_out_is_no_other_store() {
    let env = refused("no");
    let config = std::fs::read_to_string(env.path("config/pintle/pintle.toml")).unwrap();
    env.user_config(&format!("{config}[store]\nurl = 'mysql://ada:secret@db/x'\n"));
    let seen = [env.pintle(&["run", "--quiet", "hello"]), env.pintle(&["why"])];
    insta::assert_snapshot!(seen.map(|seen| seen.to_string()).concat(), @r#"
    exit 2
    --- err
    warning: [root]/config/pintle/pintle.toml:12:7: store.url: unsupported store, got "mysql", expected sqlite://FILE, postgres://… or memory:
    error: there is no store: [root]/config/pintle/pintle.toml:12:7: store.url: unsupported store, got "mysql", expected sqlite://FILE, postgres://… or memory:

    exit 2
    --- err
    error: there is no store: [root]/config/pintle/pintle.toml:12:7: store.url: unsupported store, got "mysql", expected sqlite://FILE, postgres://… or memory:
    "#);
    let doctor = env.pintle(&["doctor"]);
    assert!(doctor.code == Some(1) && doctor.out.contains("guards armed 1/1"), "{doctor}");
}

#[test]
fn a_home_that_cannot_be_written_leads_to_another() {
    let env = refused("no");
    env.write("file", "");
    let seen = env.pintle(&["--home", "../file/home", "why"]);
    insta::assert_snapshot!(seen, @"
    exit 1
    --- err
    error: the store is unavailable: `[root]/here/../file/home` cannot be made: Not a directory (os error 20); choose another place in `store.url`
      hint: name a folder that you can write with --home DIR
    ");
}

#[test]
fn a_home_that_is_named_and_not_there_is_said_to_be_empty() {
    for words in [&["why", "--list"][..], &["approvals", "list"], &["audit", "tail"]] {
        let env = TestEnv::new();
        let look = || env.pintle(&[&["--home", "typo"][..], words].concat());
        let said = "the home [root]/here/typo was not there, so it is empty";
        assert!(look().err.contains(said), "{words:?}");
        assert!(!look().err.contains(said), "{words:?}: now it is");
    }
}

#[test]
fn texts_of_skills_and_what_was_held_back_of_a_history_are_explained() {
    let env = scripted(&format!("{LISTS}, {DONE}"), "skills = ['alpha']\n");
    let entry = |name: &str, timing: &str, more: &str| {
        format!("{{\"name\": \"{name}\", \"file\": \"a.md\", \"timing\": \"{timing}\", \"role\": \"system\", {more}}}")
    };
    let entries = [
        entry("tone", "after_user_input", "\"persistent\": true"),
        entry("only-after-reading", "after_tool_call", "\"persistent\": false, \"tool_filter\": [\"read_file\"]"),
        entry("after-any", "after_tool_call", "\"persistent\": false"),
    ];
    env.write("config/pintle/skills/alpha/hooks/hooks.json", &format!("{{\"hooks\": [{}]}}", entries.join(", ")));
    env.write("config/pintle/skills/alpha/hooks/a.md", "text");
    insta::assert_snapshot!(env.pintle(&["run", "hello"]));
    insta::assert_snapshot!(env.pintle(&["why", "-v"]));

    let store =
        pintle_store::open("sqlite://pintle.db", &env.path("data/pintle"), pintle_store::Durability::Commit).unwrap();
    let withheld = EventRecord {
        event_id: "e1".into(),
        at: jiff::Timestamp::now(),
        checkpoint: CheckpointKind::UserPromptSubmit,
        kind: Some("history_withheld"),
        who: Identity::top("main", "s", "t1".into()),
        tool: None,
        input: None,
        ruling: EventRuling {
            text: Some("message 2 of the history: refused".into()),
            ..EventRuling::word(VerdictKind::Modify)
        },
        hooks: RecordLines::default(),
    };
    let (done, kept) = std::sync::mpsc::channel();
    store.keep(vec![withheld], Box::new(move |result| done.send(result.is_ok()).unwrap()));
    assert!(kept.recv().unwrap());
    drop(store);
    insta::assert_snapshot!(env.pintle(&["why", "e1"]), @r"
    exit 0
    --- out
    turn of main  [at]  session s, turn t1

    history_withheld  modify  round 0, event e1
      message 2 of the history: refused
    ");
}
