//! `ask`, exit 75 and `pintle approvals`: a call waits, a person answers, the turn goes on.

use pintle_domain::approval::Approval;
use pintle_domain::clearing::ApprovalQuestion;
use pintle_domain::id::TurnId;
use pintle_domain::identity::Identity;
use pintle_domain::json::Object;
use pintle_domain::tool::ToolCall;

use super::env::{PINTLE, Seen, TestEnv};
use super::run::scripted;

/// One call that leaves a line, and a last word that depends on what became of it.
const ASKS: &str = r#"
    {"when": {"contains": "write"}, "tool_calls": [{"name": "exec", "arguments": {"command": "echo once >>ran; echo written"}}]},
    {"when": {"tool_result": "written"}, "text": "It is written."},
    {"when": {"tool_result": "refused by a person: use ink"}, "text": "Ink it is."},
    {"when": {"tool_result": "refused by a person"}, "text": "Then not."}"#;

const GATED: &str = "tools = ['exec']\nask = ['exec']\n";

/// A turn whose call waits, in the session `s`.
fn waiting() -> TestEnv {
    let env = scripted(ASKS, GATED);
    let seen = env.pintle(&["run", "--quiet", "--session", "s", "write it"]);
    assert_eq!((seen.code, seen.out.as_str()), (Some(75), ""), "{}", seen.err);
    env
}

fn id(env: &TestEnv) -> String {
    let output = env.command(PINTLE).args(["approvals", "list", "--json"]).output().unwrap();
    let list: pintle_domain::json::Value = serde_json::from_slice(&output.stdout).unwrap();
    list[0]["id"].as_str().unwrap().to_owned()
}

fn ran(env: &TestEnv) -> String {
    std::fs::read_to_string(env.path("here/ran")).unwrap_or_default()
}

fn resume(env: &TestEnv) -> Seen {
    env.pintle(&["sessions", "resume", "--quiet", "s"])
}

#[test]
fn a_call_waits_is_approved_and_runs_exactly_once() {
    let env = scripted(ASKS, GATED);
    let seen = env.pintle(&["run", "--quiet", "--session", "s", "write it"]);
    insta::assert_snapshot!(seen, @r#"
    exit 75
    --- err
    waiting for a person: exec {"command":"echo once >>ran; echo written"}
    hook "agents.main.ask" asks: every call of `exec` by the agent `main` waits for a person
      pintle approvals approve [id]
      pintle approvals refuse [id] --note "why"
      pintle sessions resume s
    "#);
    assert_eq!(resume(&env).code, Some(75), "nobody has answered");
    insta::assert_snapshot!(env.pintle(&["approvals", "list"]).out, @r#"
    [id]  waiting
      exec {"command":"echo once >>ran; echo written"}
      agents.main.ask: every call of `exec` by the agent `main` waits for a person; agent main, session s, asked [at]
    "#);
    assert!(env.pintle(&["sessions", "list"]).out.starts_with("s  a call waits for a person\n"));
    let id = id(&env);
    let seen = env.pintle(&["sessions", "show", "s"]);
    let hint = "  exec waits for a person:\n    pintle approvals approve [id]\n    pintle approvals refuse [id]\n  to go on:\n    \
                pintle sessions resume s\n";
    assert!(seen.out.contains(hint), "{seen}");
    let seen = env.on_terminal("", &["approvals", "approve", &id]);
    insta::assert_snapshot!(seen, @r#"
    exit 0
    --- out
    [id]
      tool     exec
      agent    main
      session  s
      asks     agents.main.ask
      why      every call of `exec` by the agent `main` waits for a person
      in       [root]/here
      shell    /bin/sh
      until    [at]
        {
          "command": "echo once >>ran; echo written"
        }
    approved: exactly this call may run, once, until [at]
    to go on: pintle sessions resume s
    "#);
    assert_eq!(ran(&env), "", "an approval runs nothing by itself");
    let seen = env.on_terminal("", &["approvals", "refuse", &id]);
    assert_eq!(seen.code, Some(1));
    assert!(seen.out.contains("it was approved already, by "), "{seen}");
    let seen = resume(&env);
    assert_eq!((seen.code, seen.out.as_str()), (Some(0), "It is written.\n"), "{}", seen.err);
    assert_eq!(ran(&env), "once\n");
    let seen = env.on_terminal("", &["approvals", "approve", &id]);
    assert_eq!(seen.code, Some(1));
    assert!(seen.out.contains("it was approved and used already"), "{seen}");
    assert_eq!(resume(&env).code, Some(1), "the turn is over");
    assert_eq!(ran(&env), "once\n");
    assert_eq!(env.pintle(&["approvals", "list"]).out, "nothing waits for a person\n");
    assert!(env.pintle(&["approvals", "list", "--all"]).out.contains("[id]  used, approved by "));
}

#[test]
fn a_refusal_and_its_note_reach_the_model() {
    for (note, said) in [(&["--note", "use ink"][..], "Ink it is.\n"), (&[], "Then not.\n")] {
        let env = waiting();
        let id = id(&env);
        let begin = &id[..id.len() - 1];
        let args: Vec<&str> = ["approvals", "refuse", begin].iter().chain(note).copied().collect();
        assert_eq!(env.on_terminal("", &args).code, Some(0));
        let listed = env.pintle(&["approvals", "list", "--all"]).out;
        assert!(listed.contains("[id]  refused by ") && listed.contains(note.last().unwrap_or(&"")), "{listed}");
        let seen = resume(&env);
        assert_eq!((seen.code, seen.out.as_str()), (Some(0), said), "{}", seen.err);
        assert_eq!(ran(&env), "");
    }
}

/// Once the file `changed` is there, it writes somebody else's name into every call.
const CHANGES: &str = r#"while IFS= read -r line; do
  id=${line#*'"id":'}; id=${id%%,*}
  r='{}'
  case $line in *'"method":"hook.before_tool"'*) [ -e changed ] &&
    r='{"action":"modify","call":{"arguments":{"command":"echo twice >>ran; echo written","timeout_s":5}}}' ;; esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$r"
done
"#;

#[test]
fn a_call_that_changed_is_asked_again_and_shows_how() {
    let hook = "[hooks.processes.changes]\nenabled = true\ncommand = ['sh', 'changes.sh']\nintercept = ['before_tool']\n\
                pair = false\n";
    let env = scripted(ASKS, &format!("{GATED}{hook}"));
    env.write("config/pintle/changes.sh", CHANGES);
    assert_eq!(env.pintle(&["run", "--quiet", "--session", "s", "write it"]).code, Some(75));
    let first = id(&env);
    assert_eq!(env.on_terminal("", &["approvals", "approve", &first]).code, Some(0));
    env.write("config/pintle/changed", "");
    let seen = resume(&env);
    assert_eq!((seen.code, ran(&env).as_str()), (Some(75), ""), "{}", seen.err);
    assert!(seen.err.contains("the call changed since it was asked about before"), "{}", seen.err);
    let seen = env.on_terminal("", &["approvals", "approve", &first]);
    assert!(seen.code == Some(1) && seen.out.contains("it is void"), "{seen}");
    let second = id(&env);
    let seen = env.on_terminal("", &["approvals", "approve", &second]);
    let diff = seen.out.split("until").nth(1).unwrap().split_once('\n').unwrap().1;
    let expected = "  changed since it was asked about before:\n    {\n  -   \"command\": \"echo once >>ran; echo written\"\n  \
                    +   \"command\": \"echo twice >>ran; echo written\",\n  +   \"timeout_s\": 5\n    }\n";
    assert_eq!(diff.split("approved").next().unwrap(), expected);
    assert_eq!(resume(&env).out, "It is written.\n");
    assert_eq!(ran(&env), "twice\n");
}

#[test]
fn json_prints_no_reply_while_a_call_waits() {
    let env = scripted(ASKS, GATED);
    let seen = env.pintle(&["run", "--json", "--session", "s", "write it"]);
    assert_eq!(seen.code, Some(75));
    assert!(!seen.out.contains("\"reply\"") && !seen.out.contains("turn_end"), "{}", seen.out);
    assert!(seen.err.contains("waiting for a person: exec"), "{}", seen.err);
    let seen = env.on_terminal("", &["approvals", "approve", &id(&env)]);
    assert_eq!(seen.code, Some(0), "{seen}");
    let seen = env.pintle(&["sessions", "resume", "--json", "s"]);
    let kinds: Vec<String> = seen
        .out
        .lines()
        .map(|line| {
            serde_json::from_str::<pintle_domain::json::Value>(line).unwrap()["Kind"].as_str().unwrap().to_owned()
        })
        .collect();
    assert_eq!(kinds[kinds.len() - 2..], ["turn_end", "reply"], "{kinds:?}");
    assert!(!kinds.iter().any(|kind| kind == "turn_start"), "it is the same turn: {kinds:?}");
}

#[test]
fn a_new_message_ends_the_turn_that_waits_and_its_question() {
    let env = waiting();
    let id = id(&env);
    let seen = env.pintle(&["run", "--session", "s", "write it again"]);
    assert_eq!(seen.code, Some(75));
    assert!(seen.err.contains("was left open in this session, and ends now"), "{}", seen.err);
    let seen = env.on_terminal("", &["approvals", "approve", &id]);
    assert_eq!(seen.code, Some(1));
    assert!(seen.out.contains("it is void: the call changed or its turn is over"), "{seen}");
    assert_eq!(ran(&env), "");
}

#[test]
fn only_a_person_answers() {
    let env = waiting();
    let id = id(&env);
    for word in ["approve", "refuse"] {
        let seen = env.run(env.command("setsid").args(["-w", PINTLE, "approvals", word, &id]), "y\n");
        let expected = "error: only a person may do this, and there is no controlling terminal\n  \
                        hint: run it in a terminal of your own\n";
        assert_eq!((seen.code, seen.err.as_str()), (Some(5), expected), "{word}");
        let seen = env.run(env.command(PINTLE).args(["approvals", word, &id]).env("PINTLE_INSIDE_EXEC", "1"), "");
        assert_eq!(seen.code, Some(5), "{word}");
    }
    assert!(env.pintle(&["approvals", "list"]).out.contains("waiting"));
    assert_eq!(resume(&env).code, Some(75));
}

#[test]
fn the_agent_cannot_approve_its_own_call() {
    let env = TestEnv::new();
    let approve = env.terminal_line("approvals approve 0");
    let call = pintle_domain::json::json!({"when": {"contains": "cheat"}, "tool_calls": [
        {"name": "exec", "arguments": {"command": approve}}]});
    env.write(
        "config/pintle/replies.json",
        &pintle_domain::json::json!({"replies": [
        {"when": {"contains": "write"}, "tool_calls": [{"name": "exec", "arguments": {"command": "echo once >>ran"}}]},
        call, {"when": {"tool_result": "exit code 5"}, "text": "It did not let me."}]})
        .to_string(),
    );
    env.user_config(&format!(
        "{}{GATED}[agents.free]\nmodel = 'scripted/test'\ntools = ['exec']\n",
        super::run::MODEL.replace("model = 'scripted/test'\n", "model = 'scripted/test'\ndefault = true\n")
    ));
    assert_eq!(env.pintle(&["run", "--quiet", "--session", "s", "write it"]).code, Some(75));
    let seen = env.pintle(&["run", "--quiet", "--agent", "free", "cheat"]);
    assert_eq!(seen.out, "It did not let me.\n", "{}", seen.err);
    assert_eq!(resume(&env).code, Some(75));
}

#[test]
fn bad_input_says_what_is_wrong() {
    let env = scripted(ASKS, GATED);
    assert_eq!(env.pintle(&["approvals", "list"]).out, "nothing waits for a person\n");
    assert_eq!(env.pintle(&["approvals", "list", "--all"]).out, "there are no approvals\n");
    assert_eq!(env.pintle(&["approvals", "list", "--json"]).out, "[]\n");
    for (id, code, why) in [("nonsense", 2, "error: there is no approval `nonsense`"), ("", 2, "error: ID is empty")] {
        let seen = env.on_terminal("", &["approvals", "approve", id]);
        assert!(seen.code == Some(code) && seen.out.starts_with(why), "{seen}");
    }
    for message in ["write it", "write it"] {
        assert_eq!(env.pintle(&["run", "--quiet", message]).code, Some(75));
    }
    let seen = env.on_terminal("", &["approvals", "approve", "0"]);
    let one = "hint: [id]  waiting  exec {\"command\":\"echo once >>ran; echo written\"}\n";
    let several = format!("error: 2 approvals have ids that begin or end with `0`\n  {one}  {one}");
    assert_eq!((seen.code, seen.out.as_str()), (Some(2), several.as_str()));
    let long = "x".repeat(4097);
    let seen = env.on_terminal("", &["approvals", "refuse", "0", "--note", &long]);
    assert!(seen.code == Some(2) && seen.out.contains("--note is longer than 4096 bytes"), "{seen}");
    assert_eq!(env.pintle(&["approvals", "approve"]).code, Some(2));
}

#[test]
fn a_part_of_an_id_means_what_waits() {
    let env = scripted(ASKS, GATED);
    let ask = || {
        assert_eq!(env.pintle(&["run", "--quiet", "write it"]).code, Some(75));
        id(&env)
    };
    let approve = |id: &str| assert_eq!(env.on_terminal("", &["approvals", "approve", id]).code, Some(0));
    approve(&ask());
    // What was answered begins alike.
    ask();
    approve("0");
    let third = ask();
    approve(&third[third.len() - 12..]);
    assert_eq!(env.pintle(&["approvals", "list"]).out, "nothing waits for a person\n");
}

#[test]
fn an_expired_question_cannot_be_answered() {
    let env = scripted(ASKS, GATED);
    let store =
        pintle_store::open("sqlite://pintle.db", &env.path("data/pintle"), pintle_store::Durability::Commit).unwrap();
    let asked = jiff::Timestamp::now() - jiff::SignedDuration::from_hours(25);
    let call = ToolCall { id: "c".into(), tool: "exec".into(), raw_tool: "exec".into(), arguments: Object::new() };
    let who = Identity::top("main", "s", TurnId::fresh());
    let question = ApprovalQuestion { call: &call, by: &"gate".into(), why: &"why".into() };
    let question = Approval::question("old".into(), &who, question, asked);
    store.ask(question, asked).unwrap();
    drop(store);
    // It was asked without a key: what is brought up to date is sealed on the way.
    pintle_store::migrate_to("sqlite://pintle.db", &env.path("data/pintle"), 56).unwrap();
    assert_eq!(env.pintle(&["approvals", "list"]).out, "nothing waits for a person\n");
    assert!(env.pintle(&["approvals", "list", "--all"]).out.starts_with("old  expired\n"));
    let seen = env.on_terminal("", &["approvals", "approve", "old"]);
    assert_eq!(seen.code, Some(1));
    assert!(seen.out.contains("error: approval `old` cannot be answered: it expired at [at]"), "{seen}");
}

#[test]
fn the_gate_is_listed_and_holds_for_sub_agents() {
    let delegate = r#"{"when": {"contains": "please"}, "tool_calls": [{"name": "delegate", "arguments": {"agent": "helper", "task": "write"}}]}"#;
    let refused = r#"{"when": {"tool_result": "nobody can be asked here"}, "text": "Nobody is here.", "repeat": true}"#;
    let more = "tools = ['delegate']\nask = ['ex*']\ndefault = true\n[agents.helper]\nmodel = 'scripted/test'\ntools = ['exec']\n";
    let env = scripted(&format!("{delegate},{refused},{ASKS}"), more);
    let seen = env.pintle(&["hooks", "list"]);
    insta::assert_snapshot!(seen, @"
    exit 0
    --- out
    user_prompt_submit
      1. pii-redactor     rule    priority 900  off, script, global, [time], version 1  builtin
    pre_tool_use
      1. agents.main.ask  native  priority 0     [time], of agent main, matcher /(?s)^ex.*$/  [root]/config/pintle/pintle.toml:7:8
      2. pii-redactor     rule    priority 900  off, script, global, [time], version 1  builtin
    ");
    let seen = env.pintle(&["run", "--quiet", "please"]);
    assert_eq!((seen.code, seen.out.as_str()), (Some(0), "Nobody is here.\n"), "{}", seen.err);
    assert_eq!(ran(&env), "");
    // The helper by itself is asked by nobody.
    let seen = env.pintle(&["run", "--quiet", "--agent", "helper", "write it"]);
    assert_eq!((seen.code, seen.out.as_str()), (Some(0), "It is written.\n"), "{}", seen.err);
}

#[test]
fn what_is_told_of_a_call_is_the_last_word_on_it() {
    for (answer, sentence, counted, marks) in [
        ("approve", "1 call, 1 approved by a person;", "1 call\n", 0),
        ("refuse", "1 call, 1 blocked;", "1 call, 1 blocked\n", 1),
    ] {
        let env = waiting();
        let run = env.pintle(&["why"]);
        assert!(run.out.contains("1 call, 1 waiting for a person;") && run.out.contains("? call 1 exec"), "{run}");
        assert!(env.pintle(&["why", "--list"]).out.contains("1 call, 1 waiting\n"));
        let denied = env.pintle(&["why", "--denied"]);
        assert_eq!(denied.out.matches("? exec").count(), 1, "{denied}");
        assert_eq!(env.on_terminal("", &["approvals", answer, &id(&env)]).code, Some(0));
        assert_eq!(resume(&env).code, Some(0));
        let why = env.pintle(&["why"]);
        assert!(why.out.contains(sentence) && !why.out.contains("waits for a person"), "{why}");
        let by = why.out.lines().find_map(|line| line.trim().strip_prefix("approved by "));
        assert_eq!(by.is_some_and(|who| who != "a person"), answer == "approve", "{why}");
        assert!(env.pintle(&["why", "--list"]).out.contains(counted));
        let denied = env.pintle(&["why", "--denied"]);
        assert_eq!(
            (denied.out.matches("✗ exec").count(), denied.out.matches("? exec").count()),
            (marks, 0),
            "{denied}"
        );
    }
}

#[test]
fn a_call_that_waits_is_no_refusal_in_the_timeline() {
    let env = scripted(ASKS, GATED);
    let seen = env.pintle(&["run", "write it"]);
    assert_eq!(seen.code, Some(75));
    assert!(seen.err.contains("  ? asks         exec") && !seen.err.contains("✗ asks"), "{seen}");
}

#[test]
fn the_command_that_goes_on_names_the_configuration_of_the_session() {
    let env = scripted(ASKS, GATED);
    let own = std::fs::read_to_string(env.path("config/pintle/pintle.toml")).unwrap();
    env.write("config/pintle/gated.toml", &own);
    let gated = "../config/pintle/gated.toml";
    let seen = env.pintle(&["-c", gated, "run", "--quiet", "--session", "s", "write it"]);
    assert!(seen.err.contains("pintle sessions resume s -c ../config/pintle/gated.toml\n"), "{seen}");
    let seen = env.on_terminal("", &["approvals", "approve", &id(&env)]);
    let line = seen.out.lines().find(|line| line.starts_with("to go on:"));
    assert_eq!(line, Some("to go on: pintle sessions resume s -c [root]/config/pintle/gated.toml"), "{seen}");
    assert_eq!(env.pintle(&["-c", gated, "sessions", "resume", "--quiet", "s"]).out, "It is written.\n");
}

#[test]
fn what_a_call_hides_is_shown() {
    let command = format!("echo once >>ran; echo written #{}; touch hidden{}", " ".repeat(300), "x".repeat(100));
    let call = pintle_domain::json::json!({"name": "exec", "arguments": {"command": command}});
    let asks = pintle_domain::json::json!({"when": {"contains": "write"}, "tool_calls": [call]});
    let env =
        scripted(&format!(r#"{asks}, {{"when": {{"tool_result": "written"}}, "text": "It is written."}}"#), GATED);
    assert_eq!(env.pintle(&["run", "--quiet", "--session", "s", "write it"]).code, Some(75));
    let id = id(&env);
    for args in [&["approvals", "list"][..], &["approvals", "show", &id]] {
        let seen = env.pintle(args);
        assert!(seen.code == Some(0) && seen.out.contains("written #[300 spaces]; touch hiddenxxx"), "{seen}");
        assert!(!seen.out.contains('…') && seen.out.contains(&"x".repeat(100)), "{seen}");
    }
    let listed = env.on_terminal("", &["approvals", "list"]).out;
    let words = listed.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("… 71 more characters: `pintle approvals show "), "{listed}");
    let seen = env.on_terminal("", &["approvals", "approve", &id]);
    assert!(seen.code == Some(0) && seen.out.contains("[300 spaces]; touch hidden"), "{seen}");
    assert_eq!(resume(&env).out, "It is written.\n");
}
