//! `pintle run`, `chat`, `demo` and `why`: turns with a scripted model.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

use super::env::{PINTLE, Seen, TestEnv};

/// A guard in plain sh that refuses every call it is asked about.
const REFUSES: &str = r#"while IFS= read -r line; do
  id=${line#*'"id":'}; id=${id%%,*}
  case $line in
    *'"method":"hook.before_tool"'*) r='{"action":"deny_tool","reason":"not today"}' ;;
    *) r='{}' ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$r"
done
"#;

/// The user's own configuration: a scripted model and whatever `more` says.
fn scripted(replies: &str, more: &str) -> TestEnv {
    let env = TestEnv::new();
    env.write("config/pintle/replies.json", &format!("{{\"replies\": [{replies}]}}"));
    env.write("config/pintle/refuses.sh", REFUSES);
    env.user_config(&format!("{MODEL}{more}"));
    env
}

const MODEL: &str = "[providers.scripted]\nkind = 'scripted'\nscript = 'replies.json'\n\
                     [agents.main]\nmodel = 'scripted/test'\n";

const GUARD: &str = "[hooks.processes.guard]\nenabled = true\ncommand = ['sh', 'refuses.sh']\n\
                     intercept = ['before_tool']\npair = false\n";

const LISTS: &str = r#"{"tool_calls": [{"name": "list_dir", "arguments": {"path": "."}}]}"#;
const DONE: &str = r#"{"text": ["All ", "done."]}"#;

#[test]
fn the_reply_goes_to_stdout_and_the_timeline_to_stderr() {
    let env = scripted(DONE, "");
    let seen = env.pintle(&["run", "hello"]);
    assert_eq!((seen.code, seen.out.as_str()), (Some(0), "All done.\n"));
    let expected = "session cli:[id]\nturn main  hello\n\
                    \x20 → model        scripted/test  1 message, 4 tools\n\
                    \x20 ← model                       9 bytes of text, 0 tool calls\n\
                    turn completed after 1 round, [time]\n";
    assert_eq!(seen.err, expected);
}

#[test]
fn the_message_comes_from_stdin_too() {
    let env = scripted(DONE, "");
    let seen = env.run(env.command(PINTLE).args(["run", "--quiet"]), "hello\n");
    assert_eq!(seen, Seen { code: Some(0), out: "All done.\n".into(), err: String::new() });
    let seen = env.run(env.command(PINTLE).args(["run", "--quiet"]), "  \n");
    assert_eq!(seen, Seen { code: Some(2), out: String::new(), err: "error: the message is empty\n".into() });
}

#[test]
fn json_prints_one_event_a_line_and_then_the_reply() {
    let env = scripted(&format!("{LISTS},{DONE}"), "");
    let seen = env.pintle(&["run", "--json", "hello"]);
    assert_eq!(seen.code, Some(0));
    let lines: Vec<serde_json::Value> = seen.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<&str> = lines.iter().map(|line| line["Kind"].as_str().unwrap()).collect();
    assert_eq!(kinds.first(), Some(&"turn_start"));
    assert_eq!(kinds[kinds.len() - 2..], ["turn_end", "reply"]);
    for kind in ["llm_request", "llm_response", "tool_exec_start", "tool_exec_end"] {
        assert!(kinds.contains(&kind), "{kind} in {kinds:?}");
    }
    let reply = lines.last().unwrap();
    assert_eq!(*reply, serde_json::json!({"Kind": "reply", "Payload": {"text": "All done.", "media": []}}));
    let members: Vec<&String> = lines[0].as_object().unwrap().keys().collect();
    assert_eq!(members, ["Kind", "Time", "Meta", "Payload"]);
}

#[test]
fn a_failed_turn_leaves_stdout_empty() {
    let env = scripted(r#"{"error": {"kind": "final", "message": "the model is asleep"}}"#, "");
    for args in [["run", "--quiet", "hello"], ["run", "--json", "hello"]] {
        let seen = env.pintle(&args);
        assert_eq!(seen.code, Some(1));
        assert!(seen.err.ends_with("Error processing message: the model is asleep\n"), "{}", seen.err);
        assert!(!seen.out.contains("reply"), "{}", seen.out);
    }
}

#[test]
fn a_hook_that_stops_the_turn_has_an_exit_code_of_its_own() {
    let stop = "[hooks.processes.stop]\nenabled = true\nintercept = ['before_llm']\npair = false\n\
                command = ['sh', '-c', 'read -r l; echo \"{\\\"id\\\":1,\\\"result\\\":{}}\"; read -r l; \
                echo \"{\\\"id\\\":2,\\\"result\\\":{\\\"action\\\":\\\"abort_turn\\\",\\\"reason\\\":\\\"over budget\\\"}}\"; \
                cat >/dev/null']\n";
    let env = scripted(DONE, stop);
    let seen = env.pintle(&["run", "--quiet", "hello"]);
    let err = "Error processing message: hook aborted turn during before_llm: over budget\n".to_owned();
    assert_eq!(seen, Seen { code: Some(3), out: String::new(), err });
}

#[test]
fn a_strict_start_does_not_begin_without_its_guards() {
    let gone = "[hooks.processes.gone]\nenabled = true\ncommand = ['no-such-program']\nintercept = ['before_tool']\n";
    let env = scripted(&format!("{LISTS},{DONE}"), gone);
    let seen = env.pintle(&["run", "--strict", "hello"]);
    assert_eq!((seen.code, seen.out.as_str()), (Some(5), ""));
    assert!(seen.err.contains("guards that cannot work: gone"), "{}", seen.err);
    // Without it the turn runs, and the guard refuses what it guards.
    let seen = env.pintle(&["run", "hello"]);
    assert_eq!((seen.code, seen.out.as_str()), (Some(0), "All done.\n"));
    assert!(seen.err.contains("hook \"gone\" could not start: "), "{}", seen.err);
    assert!(seen.err.contains("✗ tool         list_dir"), "{}", seen.err);
}

#[test]
fn names_that_cannot_be_resolved_name_the_nearest() {
    let env = scripted(DONE, "");
    let seen = env.pintle(&["run", "--model", "scriptd/test", "hello"]);
    assert_eq!(seen.code, Some(2));
    assert!(seen.err.contains("did you mean \"scripted\"?"), "{}", seen.err);
    let seen = env.pintle(&["run", "--agent", "mian", "hello"]);
    assert_eq!(seen.code, Some(2));
    assert!(seen.err.contains("did you mean `main`?"), "{}", seen.err);
}

#[test]
fn why_names_every_hook_with_what_was_compared() {
    let other = "[hooks.processes.writer]\nenabled = true\ncommand = ['sh', 'refuses.sh']\nintercept = ['before_tool']\n\
                 pair = false\nmatcher = 'listdir'\n";
    let env = scripted(&format!("{LISTS},{DONE}"), &format!("{GUARD}priority = 9\n{other}"));
    assert_eq!(env.pintle(&["run", "--quiet", "hello"]).out, "All done.\n");
    let seen = env.pintle(&["why", "--last"]);
    assert_eq!((seen.code, seen.err.as_str()), (Some(0), ""));
    assert!(seen.out.contains("before_tool list_dir  deny"), "{}", seen.out);
    assert!(seen.out.contains("guard              process  deny"), "{}", seen.out);
    let compared = "not run: matcher said no: pattern /listdir/, tool `list_dir`; did the matcher mean \"list_dir\"?";
    assert!(seen.out.contains(compared), "{}", seen.out);
    let json: serde_json::Value =
        serde_json::from_str(&env.pintle(&["why", "--json", "--tool", "list_dir"]).out).unwrap();
    let hooks = json[0]["hooks"].as_array().unwrap();
    assert_eq!(hooks.len(), 2, "a line for every registered hook");
    assert_eq!(hooks[0]["compared"], serde_json::json!({"pattern": "listdir", "value": "list_dir"}));
    assert_eq!((&hooks[1]["ran"], &hooks[1]["verdict"]), (&true.into(), &"deny".into()));
}

#[test]
fn a_denied_call_reaches_the_model_the_user_and_the_record_with_one_text() {
    let text = "Tool execution denied by hook: not today (hook \\\"guard\\\")";
    let told = format!(r#"{{"when": {{"tool_result": "{text}"}}, "text": ["I may not."]}}"#);
    let env = scripted(&format!("{LISTS},{told}"), GUARD);
    let seen = env.pintle(&["run", "hello"]);
    assert_eq!(seen.out, "I may not.\n", "{}", seen.err);
    let text = "Tool execution denied by hook: not today (hook \"guard\")";
    assert!(seen.err.contains(text), "{}", seen.err);
    assert!(env.pintle(&["why"]).out.contains(text));
}

#[test]
fn the_demo_runs_offline_and_leaves_nothing_behind() {
    let env = TestEnv::new();
    let temp = env.path("temp");
    std::fs::create_dir(&temp).unwrap();
    let seen = env.run(env.command(PINTLE).arg("demo").env("TMPDIR", &temp), "");
    assert_eq!((seen.code, seen.err.as_str()), (Some(0), ""));
    for said in ["answered by weather", "a forced push rewrites what others have", "the result", "turn completed"] {
        assert!(seen.out.contains(said), "{said} in {}", seen.out);
    }
    assert_eq!(std::fs::read_dir(&temp).unwrap().count(), 0);
}

#[test]
fn a_kept_demo_can_be_asked_why() {
    let env = TestEnv::new();
    let seen = env.pintle(&["demo", "--keep", "tour"]);
    assert!(seen.out.contains("pintle why --last -c [root]/here/tour/pintle.toml"), "{}", seen.out);
    let seen = env.pintle(&["why", "--last", "-c", "tour/pintle.toml", "--home", "tour/home"]);
    assert!(seen.out.contains("read_file  cleared"), "{}", seen.out);
    assert!(seen.out.contains("token=[hidden]"), "{}", seen.out);
}

#[test]
fn chat_takes_a_changed_configuration_without_a_restart() {
    let env = scripted(&format!("{LISTS},{DONE},{LISTS},{DONE}"), "");
    let config = env.path("config/pintle/pintle.toml");
    let mut child = env
        .command(PINTLE)
        .arg("chat")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut typed = child.stdin.take().unwrap();
    let mut shown = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
    let mut until = |wanted: &str| {
        let mut seen = Vec::new();
        for line in shown.by_ref() {
            seen.push(line);
            if seen.last().is_some_and(|line| line.contains(wanted)) {
                return seen.join("\n");
            }
        }
        panic!("`{wanted}` was never shown: {seen:#?}");
    };
    until("session cli:");
    typed.write_all(b"look\n").unwrap();
    assert!(until("turn completed").contains("▸ tool         list_dir"));
    // A broken save changes nothing but for one message.
    std::fs::write(&config, format!("{MODEL}{GUARD}timout_ms = 5\n")).unwrap();
    assert!(until("is not in force").contains("timout_ms"));
    std::fs::write(&config, format!("{MODEL}{GUARD}")).unwrap();
    until("the changed configuration is in force");
    typed.write_all(b"look again\n").unwrap();
    assert!(until("turn completed").contains("not today"));
    drop(typed);
    assert!(child.wait().unwrap().success());
}
