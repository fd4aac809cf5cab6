//! `pintle run`, `chat`, `demo` and `why`: turns with a scripted model.

use super::env::{BEFORE_TOOL, PINTLE, Seen, TestEnv, answering};

/// The user's own configuration: a scripted model and whatever `more` says.
pub(crate) fn scripted(replies: &str, more: &str) -> TestEnv {
    let env = TestEnv::new();
    env.write("config/pintle/replies.json", &format!("{{\"replies\": [{replies}]}}"));
    let refuses = answering(BEFORE_TOOL, r#"{"action":"deny_tool","reason":"not today"}"#);
    env.write("config/pintle/refuses.sh", &refuses);
    env.user_config(&format!("{MODEL}{more}"));
    env
}

pub(crate) const MODEL: &str = "[providers.scripted]\nkind = 'scripted'\nscript = 'replies.json'\n\
                     [agents.main]\nmodel = 'scripted/test'\n";

pub(crate) const GUARD: &str = "[hooks.processes.guard]\nenabled = true\ncommand = ['sh', 'refuses.sh']\n\
                     intercept = ['before_tool']\npair = false\n";

pub(crate) const LISTS: &str = r#"{"tool_calls": [{"name": "list_dir", "arguments": {"path": "."}}]}"#;
pub(crate) const DONE: &str = r#"{"text": ["All ", "done."]}"#;

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
fn a_call_in_the_last_answer_of_a_turn_is_not_run_and_not_called_blocked() {
    let env = scripted(&format!("{LISTS}, {LISTS}"), "max_iterations = 1\n");
    let seen = env.pintle(&["run", "go"]);
    assert_eq!(seen.code, Some(1), "{}", seen.err);
    assert!(seen.err.contains("· tool         list_dir       not run: iteration limit reached\n"), "{}", seen.err);
    assert!(seen.err.contains("\n  1 call, 1 not run: iteration limit\n"), "{}", seen.err);
    assert!(!seen.err.contains("blocked"), "{}", seen.err);
}

#[test]
fn an_odd_end_is_named_and_no_answer_is_a_failure() {
    for (reply, code, out, word) in [
        (
            r#"{"text": "so far", "finish_reason": "length"}"#,
            0,
            "so far\n",
            "length: the answer was cut at its longest",
        ),
        (r#"{"finish_reason": "length"}"#, 1, "", "length: the answer was cut at its longest"),
        (r#"{"finish_reason": "content_filter"}"#, 1, "", "content_filter: the provider withheld the answer"),
        (r#"{"text": "no", "finish_reason": "refusal"}"#, 0, "no\n", "refusal: the model refused to answer"),
        (r#"{"finish_reason": "pause_turn"}"#, 1, "", "pause_turn: the provider paused"),
        (r#"{"finish_reason": "model_context_window_exceeded"}"#, 1, "", "context_exceeded: the answer was cut where"),
        (r#"{"text": " "}"#, 1, "", "empty: the answer is empty"),
        (r#"{"reasoning": "hm"}"#, 1, "", "reasoning_only: the model thought and gave no answer"),
    ] {
        let env = scripted(reply, "");
        let seen = env.pintle(&["run", "hello"]);
        assert_eq!((seen.code, seen.out.as_str()), (Some(code), out), "{reply}: {}", seen.err);
        assert!(seen.err.contains(word), "{reply}: {}", seen.err);
        assert_eq!(seen.err.contains("gave no answer"), code == 1 || word.starts_with("reasoning"), "{}", seen.err);
    }
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
fn a_message_that_is_too_long_is_refused_and_not_cut() {
    let env = scripted(DONE, "");
    let seen = env.run(env.command(PINTLE).args(["run", "--quiet"]), &"x".repeat((16 << 20) + 1));
    assert_eq!((seen.code, seen.out.as_str()), (Some(2), ""));
    assert!(seen.err.starts_with("error: the message on stdin is longer than 16777216 bytes\n"), "{}", seen.err);
}

#[test]
fn a_configuration_that_is_a_pipe_is_not_waited_for() {
    let env = TestEnv::new();
    nix::unistd::mkfifo(&env.path("here/pipe.toml"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    for (file, why) in [("pipe.toml", "it is not a regular file"), (".", "it is not a regular file")] {
        let seen = env.pintle(&["-c", file, "run", "hello"]);
        assert_eq!((seen.code, seen.out.as_str()), (Some(2), ""));
        assert!(seen.err.contains(&format!("cannot be read: {why}")), "{}", seen.err);
    }
}

#[test]
fn completions_offer_nothing_that_is_hidden() {
    let env = TestEnv::new();
    for shell in ["bash", "zsh", "fish"] {
        let seen = env.pintle(&["completions", shell]);
        assert_eq!(seen.code, Some(0));
        assert!(seen.out.contains("doctor") && seen.out.contains("verbose") && !seen.out.contains("__exec"), "{shell}");
    }
}

#[test]
fn json_prints_one_event_a_line_and_then_the_reply() {
    let env = scripted(&format!("{LISTS},{DONE}"), "");
    let seen = env.pintle(&["run", "--json", "hello"]);
    assert_eq!(seen.code, Some(0));
    let lines: Vec<pintle_domain::json::Value> =
        seen.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<&str> = lines.iter().map(|line| line["Kind"].as_str().unwrap()).collect();
    assert_eq!(kinds.first(), Some(&"turn_start"));
    assert_eq!(kinds[kinds.len() - 2..], ["turn_end", "reply"]);
    for kind in ["llm_request", "llm_response", "tool_exec_start", "tool_exec_end"] {
        assert!(kinds.contains(&kind), "{kind} in {kinds:?}");
    }
    let reply = lines.last().unwrap();
    assert_eq!(*reply, pintle_domain::json::json!({"Kind": "reply", "Payload": {"text": "All done.", "media": []}}));
    let members: Vec<&String> = lines[0].as_object().unwrap().keys().collect();
    assert_eq!(members, ["Kind", "Time", "Meta", "Payload"]);
}

#[test]
fn json_shows_the_call_that_was_refused_as_its_record_does() {
    let call = r#"{"tool_calls": [{"name": "list_dir", "arguments": {"path": "src", "note": "for ann@example.org"}}]}"#;
    let env = scripted(&format!("{call},{DONE}"), GUARD);
    let seen = env.pintle(&["run", "--json", "hello"]);
    let lines = seen.out.lines().map(|line| serde_json::from_str::<pintle_domain::json::Value>(line).unwrap());
    let skipped: Vec<_> = lines.filter(|line| line["Kind"] == "tool_exec_skipped").collect();
    let [skipped] = skipped.as_slice() else { panic!("one call was refused: {seen}") };
    let told = pintle_domain::json::json!({"arguments": {"path": "src", "note": "for [REDACTED]"}});
    assert_eq!((&skipped["Payload"]["Tool"], &skipped["Payload"]["Call"]), (&"list_dir".into(), &told), "{seen}");
    let why: pintle_domain::json::Value =
        serde_json::from_str(&env.raw(&["why", "--json", "--tool", "list_dir"])).unwrap();
    assert_eq!(why[0]["event"]["call"], told, "{why}");
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
                echo \"{\\\"id\\\":2,\\\"result\\\":{\\\"action\\\":\\\"ACTION\\\",\\\"reason\\\":\\\"over budget\\\"}}\"; \
                cat >/dev/null']\n";
    for (action, err) in [
        ("abort_turn", "Error processing message: hook aborted turn during before_llm: over budget\n"),
        ("hard_abort", "hook \"stop\" stopped the run: over budget\n"),
    ] {
        let env = scripted(DONE, &stop.replace("ACTION", action));
        let seen = env.pintle(&["run", "--quiet", "hello"]);
        assert_eq!(seen, Seen { code: Some(3), out: String::new(), err: err.to_owned() }, "{action}");
    }
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
    let seen = env.pintle(&["why", "-v", "--last"]);
    assert_eq!((seen.code, seen.err.as_str()), (Some(0), ""));
    assert!(seen.out.contains("before_tool list_dir  deny"), "{}", seen.out);
    assert!(seen.out.contains("guard              process  deny"), "{}", seen.out);
    let compared = "skipped: /listdir/ does not match `list_dir`; did you mean \"list_dir\"?";
    assert!(seen.out.contains(compared), "{}", seen.out);
    let json: pintle_domain::json::Value =
        serde_json::from_str(&env.pintle(&["why", "--json", "--tool", "list_dir"]).out).unwrap();
    let hooks = json[0]["hooks"].as_array().unwrap();
    assert_eq!(hooks.len(), 2, "a line for every registered hook");
    assert_eq!(hooks[0]["compared"], pintle_domain::json::json!({"pattern": "listdir", "value": "list_dir"}));
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
fn a_configuration_with_a_relative_path_cannot_be_changed_from_elsewhere() {
    let call = r#"{"tool_calls": [{"name": "exec", "arguments": {"command": "echo '# mine' >>../pintle.toml; echo it >>ran"}}]}"#;
    let env = TestEnv::new();
    env.write("here/replies.json", &format!("{{\"replies\": [{call},{DONE}]}}"));
    std::fs::create_dir(env.path("here/work")).unwrap();
    let text = format!("{MODEL}tools = ['exec']\nworkspace = 'work'\n");
    let config = env.found_config(&text);
    let seen = env.pintle(&["-c", "pintle.toml", "run", "--quiet", "go"]);
    assert_eq!((seen.code, seen.out.as_str()), (Some(0), "All done.\n"), "{seen}");
    assert_eq!(std::fs::read_to_string(config).unwrap(), text);
    assert_eq!(std::fs::read_to_string(env.path("here/work/ran")).unwrap(), "it\n");
}

#[test]
fn the_demo_runs_offline_and_leaves_nothing_behind() {
    let env = TestEnv::new();
    let temp = env.path("temp");
    std::fs::create_dir(&temp).unwrap();
    let seen = env.run(env.command(PINTLE).arg("demo").env("TMPDIR", &temp), "");
    assert_eq!((seen.code, seen.err.as_str()), (Some(0), ""));
    let said = ["answered by weather", "a forced push rewrites what others have", "the result", "turn completed"];
    for said in said.into_iter().chain(["Hook blocked: pre_tool_use: secrets: keys stay where they are"]) {
        assert!(seen.out.contains(said), "{said} in {}", seen.out);
    }
    assert_eq!(std::fs::read_dir(&temp).unwrap().count(), 0);
}

#[test]
fn a_kept_demo_can_be_asked_why() {
    let env = TestEnv::new();
    let seen = env.pintle(&["demo", "--keep", "tour"]);
    assert!(seen.out.contains("pintle why --last -c [root]/here/tour/pintle.toml"), "{}", seen.out);
    let seen = env.pintle(&["why", "-v", "--last", "-c", "tour/pintle.toml", "--home", "tour/home"]);
    assert!(seen.out.contains("read_file  cleared"), "{}", seen.out);
    assert!(seen.out.contains("token=[hidden]"), "{}", seen.out);
    assert!(seen.out.contains("keys stay where they are") && !seen.out.contains("sk_demo"), "{}", seen.out);
}

#[test]
fn the_demo_runs_nothing_but_itself() {
    let env = TestEnv::new();
    let touch = "[hooks.processes.evil]\nenabled = true\ncommand = ['touch', 'ran']\nintercept = ['before_tool']\n";
    env.found_config(&format!("{MODEL}{touch}"));
    let seen = env.pintle(&["demo", "--keep", "."]);
    assert_eq!((seen.code, seen.out.as_str()), (Some(2), ""));
    assert!(seen.err.contains("is not a folder of the demo"), "{}", seen.err);
    let names: Vec<_> = std::fs::read_dir(env.path("here")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["pintle.toml"]);
    // A folder that it made is run again, with what the user changed in it.
    std::fs::create_dir(env.path("here/empty")).unwrap();
    assert_eq!(env.pintle(&["demo", "--keep", "empty"]).code, Some(0));
    let guard = env.path("here/empty/guard.sh");
    let changed =
        std::fs::read_to_string(&guard).unwrap().replace("a forced push rewrites", "MINE: a forced push rewrites");
    std::fs::write(&guard, changed).unwrap();
    let seen = env.pintle(&["demo", "--keep", "empty"]);
    assert!(seen.code == Some(0) && seen.out.contains("MINE: a forced push rewrites"), "{}", seen.out);
}

#[test]
fn what_is_piped_in_beside_a_message_stands_behind_it_as_a_block() {
    let replies = r#"{"when": {"contains": "<stdin>\nfn main() {}\n</stdin>"}, "text": "I see it.", "repeat": true},
        {"text": "I see nothing.", "repeat": true}"#;
    let env = scripted(replies, "");
    let run = |more: &[&str], input: &str| {
        let args = [&["run", "--quiet", "what is it?"], more].concat();
        env.run(env.command(PINTLE).args(args), input)
    };
    assert_eq!(run(&[], "fn main() {}\n").out, "I see it.\n");
    assert_eq!(run(&["--no-stdin"], "fn main() {}\n").out, "I see nothing.\n");
    assert_eq!(run(&[], "").out, "I see nothing.\n", "a pipe that is empty");
    let file = env.write("here/main.rs", "fn main() {}\n");
    let mut command = env.command(PINTLE);
    command.args(["run", "--quiet", "what is it?"]).stdin(std::fs::File::open(file).unwrap());
    assert_eq!(command.output().unwrap().stdout, b"I see it.\n");
    let long = run(&[], &"x".repeat((1 << 20) + 1));
    assert_eq!(long.code, Some(2));
    assert!(long.err.contains("the message on stdin is longer than 1048576 bytes"), "{long}");
    let alone = env.pintle(&["run", "--no-stdin"]);
    assert!(alone.code == Some(2) && alone.err.contains("there is no message"), "{alone}");
}

#[test]
fn a_pipe_that_brings_nothing_holds_no_message_up() {
    let env = scripted(DONE, "");
    let (reader, _open) = std::io::pipe().unwrap();
    let mut command = env.command(PINTLE);
    let output = command.args(["run", "--quiet", "hello"]).stdin(reader).output().unwrap();
    assert_eq!(output.stdout, b"All done.\n");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("nothing came on stdin within 3 s, so the message goes alone; see --no-stdin\n"), "{said}");
}
