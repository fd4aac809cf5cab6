//! `pintle hooks test`.

use super::env::TestEnv;

/// A hook that answers the first question after the handshake with what its second argument says.
const ANSWERS: &str = r#"read -r hello; echo '{"id":1,"result":{}}'
read -r line; echo "$line" >asked; echo "$1"; cat >/dev/null"#;

/// Surroundings with one hook `h` that answers `result`, and `more` in its entry.
fn answering(result: &str, more: &str) -> TestEnv {
    let env = TestEnv::new();
    env.write("config/pintle/h.sh", ANSWERS);
    let reply = pintle_domain::json::json!({"jsonrpc": "2.0", "id": 2, "result": serde_json::from_str::<pintle_domain::json::Value>(result).unwrap()});
    env.user_config(&format!(
        "[hooks.processes.h]\nenabled = true\ncommand = [\"sh\", \"h.sh\", '{reply}']\npair = false\n{more}\n"
    ));
    env
}

fn check(result: &str, more: &str, args: &[&str]) -> String {
    answering(result, more).pintle(&[&["hooks", "test", "h"], args].concat()).to_string()
}

const TOOL: &str = "intercept = ['before_tool']";

#[test]
fn every_verdict_has_a_line_and_an_exit_code() {
    let seen = [
        check(
            r#"{"action":"deny_tool","reason":"rm -rf is not for agents"}"#,
            TOOL,
            &["--input", r#"{"command":"rm -rf /"}"#],
        ),
        check("{}", TOOL, &[]),
        check(r#"{"action":"modify","call":{"arguments":{"command":"ls"}}}"#, TOOL, &[]),
        check(r#"{"action":"respond","result":{"for_llm":"15 °C"}}"#, TOOL, &["--tool", "weather"]),
        check(r#"{"action":"abort_turn","reason":"enough"}"#, TOOL, &[]),
        check(r#"{"action":"hard_abort"}"#, TOOL, &[]),
        check(r#"{"approved":true}"#, "intercept = ['approve_tool']", &[]),
        check("{}", "intercept = ['approve_tool']", &[]),
        check(r#"{"action":"modify","request":{"model":"m2","messages":[]}}"#, "intercept = ['before_llm']", &[]),
        check(r#"{"action":"modify","response":{"response":{"content":"Hi!"}}}"#, "intercept = ['after_llm']", &[]),
        check(
            r#"{"action":"modify","result":{"result":{"for_llm":"[redacted]"}}}"#,
            "intercept = ['after_tool']",
            &["--prompt", "secret"],
        ),
    ];
    insta::assert_snapshot!(seen.concat(), @r#"
    exit 4
    --- out
    deny  h  "rm -rf is not for agents"  [time]

    exit 0
    --- out
    continue  h  [time]

    exit 0
    --- out
    modify  h  exec {"command":"ls"}  [time]

    exit 0
    --- out
    respond  h  "15 °C"  [time]

    exit 4
    --- out
    abort_turn  h  "enough"  [time]

    exit 4
    --- out
    hard_abort  h  [time]

    exit 0
    --- out
    approved  h  [time]

    exit 4
    --- out
    refused  h  [time]

    exit 0
    --- out
    modify  h  0 messages, 0 tools for m2  [time]

    exit 0
    --- out
    modify  h  "Hi!"  [time]

    exit 0
    --- out
    modify  h  "[redacted]"  [time]
    "#);
}

#[test]
fn a_fault_says_what_it_becomes_and_a_likely_mistake_is_a_warning() {
    let slow = TestEnv::new();
    slow.user_config(
        "[hooks.processes.h]\nenabled = true\nintercept = ['before_tool']\ntimeout_ms = 50\non_failure = 'continue'\n\
         command = ['sh', '-c', 'read -r l; echo \"{\\\"id\\\":1,\\\"result\\\":{}}\"; cat >/dev/null']\n",
    );
    let seen = [
        check(r#"{"action":"deny"}"#, TOOL, &[]),
        check("[]", TOOL, &[]),
        check(r#"{"decision":"block","action":"continue"}"#, TOOL, &[]),
        slow.pintle(&["hooks", "test", "h"]).to_string(),
    ];
    insta::assert_snapshot!(seen.concat(), @r#"
    exit 1
    --- out
    fault  h  broke the protocol: unknown action "deny"; did you mean "deny_tool"? → deny  [time]

    exit 1
    --- out
    fault  h  sent an unreadable reply: result: expected an object, got an array → deny  [time]

    exit 0
    --- out
    continue  h  [time]
      warning: result.decision is not read; the member is "action"

    exit 1
    --- out
    fault  h  timed out after [time] → continue  [time]
    "#);
}

#[test]
fn the_matcher_counts_and_aliases_lead_to_the_tool() {
    let guard = "intercept = ['before_tool']\nmatcher = '^exec$'";
    let blind = "intercept = ['before_tool']\nmatcher = 'writefile'";
    let deny = r#"{"action":"deny_tool"}"#;
    let seen = [
        check(deny, guard, &["--tool", "Bash"]),
        check(deny, guard, &["--tool", "read_file"]),
        check(deny, blind, &["--tool", "write_file"]),
        check(deny, blind, &["--tool", "write_file", "--json"]),
    ];
    insta::assert_snapshot!(seen.concat(), @r#"
    exit 4
    --- out
    deny  h  [time]

    exit 0
    --- out
    skipped  h  /^exec$/ does not match `read_file`; it matches exec

    exit 0
    --- out
    skipped  h  /writefile/ does not match `write_file`; did you mean `write_file`?

    exit 0
    --- out
    {
      "hook": "h",
      "family": "process",
      "event": "before_tool",
      "ran": false,
      "not_run": {
        "reason": "matcher",
        "pattern": "writefile",
        "value": "write_file"
      },
      "nearest": "write_file",
      "warnings": []
    }
    "#);
}

#[test]
fn a_shell_of_any_client_is_exec_with_a_command() {
    let guard = "intercept = ['before_tool']\nmatcher = '^exec$'";
    for (tool, input) in [
        ("shell", r#"{"command":["bash","-lc","git push --force"]}"#),
        ("exec_command", r#"{"cmd":"git push --force"}"#),
    ] {
        let env = answering(r#"{"action":"deny_tool"}"#, guard);
        let seen = env.pintle(&["hooks", "test", "h", "--tool", tool, "--input", input]);
        assert_eq!(seen.code, Some(4), "{tool}: {seen}");
        let asked = std::fs::read_to_string(env.path("config/pintle/asked")).unwrap();
        assert!(asked.contains(r#""tool":"exec","arguments":{"command":"git push --force"}"#), "{asked}");
    }
}

#[test]
fn json_has_what_crossed_the_wire() {
    let env = answering(r#"{"action":"modify","call":{"arguments":{"n":1.50}}}"#, TOOL);
    let seen = env.pintle(&["hooks", "test", "h", "--json", "--tool", "exec", "--input", r#"{"n":1.0}"#]);
    insta::assert_snapshot!(seen, @r#"
    exit 0
    --- out
    {
      "hook": "h",
      "family": "process",
      "event": "before_tool",
      "ran": true,
      "verdict": "modify",
      "change": [
        {
          "op": "replace",
          "path": "/arguments/n",
          "value": 1.50
        }
      ],
      "warnings": [],
      "duration_ms": "[time]",
      "payload": {
        "method": "hook.before_tool",
        "params": {"meta":{"AgentID":"main","TurnID":"[id]","ParentTurnID":"","SessionKey":"test","Iteration":1,"TracePath":"runTurn","Source":"turn.tool.before"},"context":{"identity":{"event_id":"[id]","tenant_id":"[id]","agent_id":"main","session_id":"test","turn_id":"[id]","parent_turn_id":"","iteration":1,"tool_call_id":"test_1","depth":0,"channel":"cli","chat_id":"direct","trace_id":"[id]","occurred_at":"[at]","is_test":true},"inbound":{"channel":"cli","chat_id":"direct","sender_id":"user"}},"channel":"cli","chat_id":"direct","tool":"exec","arguments":{"n":1.0},"tool_call_id":"test_1","raw_tool":"exec"}
      },
      "reply": {"jsonrpc":"2.0","id":2,"result":{"action":"modify","call":{"arguments":{"n":1.50}}}}
    }
    "#);
    let asked = env.redact(&std::fs::read_to_string(env.path("config/pintle/asked")).unwrap());
    assert!(asked.contains(r#""tool":"exec","arguments":{"n":1.0},"tool_call_id":"test_1""#), "{asked}");
    assert!(!env.path("data/pintle").exists(), "a test leaves nothing behind");
}

#[test]
fn an_observer_is_told() {
    let env = TestEnv::new();
    env.user_config(
        "[hooks.processes.o]\nenabled = true\nobserve = ['turn_end', 'tool_exec_start']\n\
         command = ['sh', '-c', 'read -r l; echo \"{\\\"id\\\":1}\"; read -r l; echo \"$l\" >told']\n",
    );
    let seen = [
        env.pintle(&["hooks", "test", "o"]),
        env.pintle(&["hooks", "test", "o", "--event", "tool.exec_start", "--input", r#"{"a":1}"#]),
        env.pintle(&["hooks", "test", "o", "--event", "turn_start"]),
        env.pintle(&["hooks", "test", "o", "--event", "turn_ned"]),
        env.pintle(&["hooks", "test", "o", "--event", "before_tool"]),
    ];
    insta::assert_snapshot!(seen.map(|seen| seen.to_string()).concat(), @r#"
    exit 0
    --- out
    told  o  turn_end

    exit 0
    --- out
    told  o  tool_exec_start

    exit 2
    --- err
    error: --event: hook "o" does not act at `turn_start`; it acts at runtime

    exit 2
    --- err
    error: --event: there is no event `turn_ned`; did you mean `turn_end`?

    exit 2
    --- err
    error: --event: hook "o" does not act at `before_tool`; it acts at runtime
    "#);
    let told = std::fs::read_to_string(env.path("config/pintle/told")).unwrap();
    assert!(told.contains(r#""Kind":"tool_exec_start""#) && told.contains(r#""Arguments":{"a":1}"#), "{told}");
}

#[test]
fn what_cannot_be_asked_says_why() {
    let env = TestEnv::new();
    env.user_config(
        "[hooks.processes.off]\ncommand = ['true']\nintercept = ['before_tool']\n\
         [hooks.processes.gone]\nenabled = true\ncommand = ['no-such-guard']\nintercept = ['before_tool']\n\
         [hooks.processes.rude]\nenabled = true\ncommand = ['sh', '-c', 'echo out of luck >&2; exit 3']\nintercept = ['before_tool']\n\
         [hooks.processes.bad]\nenabled = true\ncommand = ['true']\nintercept = ['befor_tool']\n",
    );
    env.found_config("[hooks.processes.stranger]\nenabled = true\ncommand = ['true']\nintercept = ['before_tool']\n");
    let seen = [
        env.pintle(&["hooks", "test", "off"]),
        env.pintle(&["hooks", "test", "gone"]),
        env.pintle(&["hooks", "test", "rude"]),
        env.pintle(&["hooks", "test", "bad"]),
        env.pintle(&["hooks", "test", "stranger"]),
        env.pintle(&["hooks", "test", "gnoe"]),
        env.pintle(&["hooks", "test", "gone", "--input", "[1]"]),
        env.pintle(&["hooks", "test", "gone", "--input", "{"]),
    ];
    insta::assert_snapshot!(seen.map(|seen| seen.to_string()).concat(), @r#"
    exit 1
    --- err
    error: hook "off" is disabled ([root]/config/pintle/pintle.toml:1:18)
      hint: set enabled = true in its entry, and `[hooks] enabled` must not be false

    exit 1
    --- out
    fault  gone  could not start: program `no-such-guard` was not found through PATH

    exit 1
    --- out
    fault  rude  could not start: exited with status 3 before it answered hook.hello: out of luck
      stderr  out of luck

    exit 1
    --- out
    fault  bad  could not start: [root]/config/pintle/pintle.toml:15:14: hooks.processes.bad.intercept.0: unsupported intercept "befor_tool"; did you mean "before_tool"? → deny  [time]

    exit 5
    --- err
    error: hook "stranger" is untrusted ([root]/here/pintle.toml:1:18)
      hint: `pintle trust` shows what it would run, and accepts it

    exit 2
    --- err
    error: there is no hook "gnoe"; did you mean "gone"?

    exit 2
    --- err
    error: --input: expected a JSON object; got another value
      hint: write the arguments of the call, such as --input '{"command": "git push --force"}'

    exit 2
    --- err
    error: --input: expected a JSON object; EOF while parsing an object at line 1 column 1
      hint: write the arguments of the call, such as --input '{"command": "git push --force"}'
    "#);
}

/// A hook that brings the tool `local_time` and answers for it.
const BRINGS: &str = r#"read -r l; echo '{"id":1,"result":{}}'
while IFS= read -r line; do
  id=${line#*'"id":'}; id=${id%%,*}
  case $line in
    *'"method":"hook.before_llm"'*) r='{"action":"modify","request":{"tools":[{"type":"function","function":{"name":"local_time","description":"d","parameters":{"type":"object"}}}]}}' ;;
    *'"tool":"local_time"'*) r='{"action":"respond","result":{"for_llm":"noon"}}' ;;
    *) r='{}' ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$r"
done
"#;

#[test]
fn a_hook_is_asked_about_its_own_tool_as_the_owner() {
    let env = TestEnv::new();
    env.write("config/pintle/h.sh", BRINGS);
    env.user_config(
        "[hooks.processes.h]\nenabled = true\ncommand = ['sh', 'h.sh']\nintercept = ['before_llm', 'before_tool']\n\
         pair = false\nrespond = []\nmatcher = '^nothing_else$'\n",
    );
    let seen = [
        env.pintle(&["hooks", "test", "h", "--event", "before_tool", "--tool", "local_time"]),
        env.pintle(&["hooks", "test", "h", "--tool", "exec"]),
    ];
    insta::assert_snapshot!(seen.map(|seen| seen.to_string()).concat(), @r#"
    exit 0
    --- out
    respond  h  "noon"  [time]

    exit 0
    --- out
    skipped  h  /^nothing_else$/ does not match `exec`; it matches no tool that there is
    "#);
}

#[test]
fn a_name_that_is_none_leads_to_those_there_are() {
    let env = answering("{}", "intercept = ['before_tool']\nmatcher = '^exec$'");
    let seen = [
        env.pintle(&["hooks", "test", "no-force"]),
        env.pintle(&["hooks", "test", "h", "--event", "nope"]),
        env.pintle(&["hooks", "test", "h", "--tool", "exce"]),
    ];
    insta::assert_snapshot!(seen.map(|seen| seen.to_string()).concat(), @r#"
    exit 2
    --- err
    error: there is no hook "no-force"
      hint: the hooks are h, pii-redactor

    exit 2
    --- err
    error: --event: there is no event `nope`
      hint: the events are session_start, user_prompt_submit, before_llm, after_llm, before_tool, pre_tool_use, approve_tool, after_tool, post_tool_use, subagent_start, subagent_stop, stop, runtime, turn_start, turn_end, llm_request, llm_delta, llm_response, llm_retry, context_compress, session_summarize, tool_exec_start, tool_exec_end, tool_exec_skipped, steering_injected, follow_up_queued, interrupt_received, subturn_spawn, subturn_end, subturn_result_delivered, subturn_orphan, error

    exit 0
    --- out
    skipped  h  there is no tool `exce`; did you mean `exec`? /^exec$/ does not match `exce`; it matches exec
    "#);
}

#[test]
fn a_changed_hook_leads_to_trust() {
    let env = TestEnv::new();
    env.write("here/guard.sh", ANSWERS);
    env.found_config(
        "[hooks.processes.h]\nenabled = true\ncommand = ['sh', 'guard.sh', '{}']\nintercept = ['before_tool']\n",
    );
    assert_eq!(env.on_terminal("y\n", &["trust"]).code, Some(0));
    env.write("here/guard.sh", "touch ran");
    let seen = [env.pintle(&["hooks", "test", "h"]), env.pintle(&["hooks", "lint"])];
    insta::assert_snapshot!(seen.map(|seen| seen.to_string()).concat(), @"
    exit 1
    --- out
    fault  h  could not start: changed since it was trusted → deny  [time]

    --- err
      hint: `pintle trust` shows what changed, and accepts it

    exit 2
    --- out
    [root]/here/pintle.toml:1:18: hooks.processes.h: changed since it was trusted; `pintle trust` shows how, and accepts it
    ");
    assert!(!env.path("here/ran").exists());
}

#[test]
fn lines_on_standard_output_that_answer_nothing_are_told() {
    let env = TestEnv::new();
    env.write(
        "config/pintle/chatty.sh",
        "while IFS= read -r line; do\n  id=${line#*'\"id\":'}; id=${id%%,*}\n  echo 'looking at it'\n  \
         echo \"{\\\"id\\\":$id,\\\"level\\\":\\\"info\\\"}\"\n  \
         printf '{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{}}\\n' \"$id\"\ndone\n",
    );
    env.user_config(
        "[hooks.processes.chatty]\nenabled = true\ncommand = ['sh', 'chatty.sh']\nintercept = ['before_tool']\n",
    );
    let seen = env.pintle(&["hooks", "test", "chatty"]);
    assert!(seen.out.contains("lines on standard output answer nothing; print for people on standard error"), "{seen}");
}
