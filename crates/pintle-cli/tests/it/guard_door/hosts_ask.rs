//! What differs from host to host between the clearing of a call and its end: the host's own question, its permissions,
//! prompts that are said twice, calls of the model.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Value, json};

use super::door::{AGENT, Door, LONG, document, hook_program, refusal, refusing};
use crate::env::{TestEnv, answering};

/// What `host` gets for `payload` at `event`, with `env` around its hook.
fn told(door: &Door, (host, event): (&str, &str), payload: &Value, env: &[(&str, &str)]) -> Value {
    // The agent: a process of its own, so that whoever answers in these tests is not below it.
    let mut command = door.env.command("python3");
    command.args(["-c", AGENT]).arg(hook_program());
    command.args(["--host", host, "--event", event, "--deadline", &LONG.to_string()]);
    command.arg("--socket").arg(door.folder().join("guard.sock"));
    command.arg("--key-file").arg(door.folder().join("key"));
    command.envs(env.iter().copied()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(payload.to_string().as_bytes()).unwrap();
    document(&child.wait_with_output().unwrap())
}

const ATTENDED: [(&str, &str); 1] = [("CLAUDE_CODE_SESSION_ATTENDED", "1")];
const ALONE: [(&str, &str); 1] = [("CLAUDE_CODE_SESSION_ATTENDED", "0")];

fn asking(more: &str) -> Door {
    let env = TestEnv::new();
    env.user_config(&format!("[agents.main]\nask = ['exec']\n{more}"));
    Door::open(env)
}

/// The approvals, the newest first.
fn approvals(door: &Door) -> Vec<Value> {
    let text = door.env.raw(&["approvals", "list", "--all", "--json"]);
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn a_person_before_the_host_is_asked_there_and_what_came_of_it_is_kept() {
    let door = asking("");
    let call = door.shell("toolu_1", "make");
    let asked = told(&door, ("claude", "PreToolUse"), &call, &ATTENDED);
    assert_eq!(asked["hookSpecificOutput"]["permissionDecision"], "ask", "{asked}");
    let approval = approvals(&door).remove(0);
    let id = approval["id"].as_str().unwrap();
    let reason = asked["hookSpecificOutput"]["permissionDecisionReason"].as_str().unwrap();
    assert!(reason.contains(id) && !reason.contains("pintle "), "{reason}");
    assert_eq!(approval["state"], "waiting", "{approval}");
    // The host puts its question: nobody says yes in the person's place.
    let more = json!({"tool_name": "Bash", "tool_input": call["tool_input"]});
    let permission = door.event("PermissionRequest", &more);
    assert_eq!(told(&door, ("claude", "PermissionRequest"), &permission, &ATTENDED), json!({}));
    let more = json!({
        "tool_name": "Bash", "tool_use_id": "toolu_1", "tool_input": call["tool_input"],
        "tool_response": {"stdout": "", "stderr": "", "interrupted": false, "isImage": false},
    });
    assert_eq!(told(&door, ("claude", "PostToolUse"), &door.event("PostToolUse", &more), &ATTENDED), json!({}));
    let approval = approvals(&door).remove(0);
    assert_eq!((&approval["state"], &approval["answered_by"]), (&json!("used"), &json!("claude (its own question)")));
    let why = door.env.raw(&["why", "claude:s", "--json"]);
    assert!(why.contains("is put to the person before Claude Code"), "{why}");
    // The same call needs another yes.
    let again = told(&door, ("claude", "PreToolUse"), &door.shell("toolu_2", "make"), &ATTENDED);
    assert_eq!(again["hookSpecificOutput"]["permissionDecision"], "ask", "{again}");
    assert_eq!(approvals(&door).len(), 2);
}

#[test]
fn whom_a_host_asks_is_said_for_each_one() {
    let door = asking("[guard.hosts.claude]\nask = 'deny'\nheadless_ask = 'deny'\n[guard.hosts.qwen]\nask = 'host'\n");
    for (id, env) in [("toolu_1", ATTENDED), ("toolu_2", ALONE)] {
        let answer = told(&door, ("claude", "PreToolUse"), &door.shell(id, "make"), &env);
        let approval = approvals(&door).remove(0);
        let number = approval["id"].as_str().unwrap();
        assert!(refusal(&answer).contains(number) && !refusal(&answer).contains("pintle "), "{answer}");
        // The command is for the person, beside what the model reads.
        let note = answer["systemMessage"].as_str().unwrap();
        assert!(note.contains(&format!("pintle approvals approve {number}")), "{answer}");
    }
    let call = json!({
        "session_id": "q", "cwd": door.env.path("here"), "hook_event_name": "PreToolUse", "tool_call_id": "c1",
        "tool_name": "run_shell_command", "tool_input": {"command": "make"},
    });
    let asked = told(&door, ("qwen", "PreToolUse"), &call, &[]);
    assert_eq!(asked["hookSpecificOutput"]["permissionDecision"], "ask", "{asked}");
}

#[test]
fn an_agent_stands_for_the_one_that_it_is_said_to_and_waits_no_longer_than_that() {
    let env = TestEnv::new();
    env.user_config(
        "[agents.main]\ndefault = true\n[agents.strict]\nask = ['exec']\n\
         [guard.hosts.claude]\nagent = 'strict'\ndeadline = '700ms'\n[guard.hosts.qwen]\nagent = 'nobody'\n",
    );
    let door = Door::open(env);
    let began = std::time::Instant::now();
    let answer = told(&door, ("claude", "PreToolUse"), &door.shell("toolu_1", "make"), &ALONE);
    assert!(refusal(&answer).contains("approval with the id"), "{answer}");
    assert!(began.elapsed().as_secs() < 20, "the deadline of the hook is a minute");
    let call = json!({
        "session_id": "g", "cwd": door.env.path("here"), "hook_event_name": "BeforeTool",
        "tool_name": "run_shell_command", "tool_input": {"command": "make"},
    });
    assert_eq!(told(&door, ("gemini", "BeforeTool"), &call, &[]), json!({}), "others stand for the usual agent");
    let call = json!({
        "session_id": "q", "cwd": door.env.path("here"), "hook_event_name": "PreToolUse", "tool_call_id": "c1",
        "tool_name": "run_shell_command", "tool_input": {"command": "make"},
    });
    let refused = told(&door, ("qwen", "PreToolUse"), &call, &[]);
    assert!(refusal(&refused).contains("`nobody`, which is no agent here"), "{refused}");
}

#[test]
fn a_permission_of_the_host_is_answered_from_the_clearing() {
    let env = TestEnv::new();
    refusing(&env, "*--force*");
    let door = Door::open(env);
    let permission = |command: &str| {
        let more = json!({"tool_name": "Bash", "tool_input": {"command": command, "description": "x"}});
        told(&door, ("claude", "PermissionRequest"), &door.event("PermissionRequest", &more), &[])
    };
    // Cleared: the host's own permissions decide.
    assert_eq!(told(&door, ("claude", "PreToolUse"), &door.shell("toolu_1", "git push"), &[]), json!({}));
    assert_eq!(permission("git push"), json!({}));
    // Refused, or never asked about: it is a no.
    refusal(&told(&door, ("claude", "PreToolUse"), &door.shell("toolu_2", "git push --force"), &[]));
    for command in ["git push --force", "git push --force origin main"] {
        let answer = permission(command);
        assert_eq!(answer["hookSpecificOutput"]["decision"]["behavior"], "deny", "{answer}");
    }
}

#[test]
fn a_yes_of_a_person_spares_the_question_of_the_host() {
    let door = asking("[guard.hosts.claude]\nheadless_ask = 'deny'\n");
    refusal(&told(&door, ("claude", "PreToolUse"), &door.shell("toolu_1", "make"), &ALONE));
    let id = approvals(&door)[0]["id"].as_str().unwrap().to_owned();
    let seen = door.env.on_terminal("", &["approvals", "approve", &id]);
    assert_eq!(seen.code, Some(0), "{seen}");
    assert_eq!(told(&door, ("claude", "PreToolUse"), &door.shell("toolu_2", "make"), &ALONE), json!({}));
    let more = json!({"tool_name": "Bash", "tool_input": {"command": "make", "description": "x"}});
    let answer = told(&door, ("claude", "PermissionRequest"), &door.event("PermissionRequest", &more), &ALONE);
    assert_eq!(answer["hookSpecificOutput"]["decision"]["behavior"], "allow", "{answer}");
}

/// A stored hook that puts `bye` in the place of `hello` in prompts.
const BYE: &str = r#"
[[hook]]
name = "bye"
event = "user_prompt_submit"
handler_type = "script"
scope = "tenant"
may_rewrite = true
breaker = "faults"

[hook.config]
source = '''
function handle(event) {
  return { decision: "allow", updatedInput: { rawInput: event.rawInput.replace("hello", "bye") } };
}
'''
"#;

#[test]
fn a_prompt_that_copilot_says_twice_is_sent_as_hooks_left_it() {
    let env = TestEnv::new();
    env.write("here/bye.toml", BYE);
    let added = env.on_terminal("", &["hooks", "add", "bye.toml"]);
    assert_eq!(added.code, Some(0), "{added}");
    let door = Door::open(env);
    let payload = |more: &Value| {
        let mut payload = json!({"sessionId": "c", "cwd": door.env.path("here"), "timestamp": 1});
        payload.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        payload
    };
    let submitted = payload(&json!({"prompt": "hello there"}));
    assert_eq!(told(&door, ("copilot", "userPromptSubmitted"), &submitted, &[]), json!({}));
    // Not sent yet: a call now would be one that the unchanged prompt brought about.
    let call = payload(&json!({"toolName": "bash", "toolArgs": {"command": "make"}}));
    let refused = told(&door, ("copilot", "preToolUse"), &call, &[]);
    assert_eq!(refused["permissionDecision"], "deny", "{refused}");
    let sent = payload(&json!({"prompt": "hello there", "transformedPrompt": "<now>\n\nhello there"}));
    let answer = told(&door, ("copilot", "userPromptTransformed"), &sent, &[]);
    assert_eq!(answer, json!({"modifiedTransformedPrompt": "<now>\n\nbye there"}));
    assert_eq!(told(&door, ("copilot", "preToolUse"), &call, &[]), json!({}));
    let why = door.env.raw(&["why", "copilot:c", "--json"]);
    assert!(!why.contains("degraded"), "{why}");
}

/// A process hook that puts another message into each request, and ends the turn after an answer with a secret.
fn model_hook(env: &TestEnv) {
    let script = env.write("config/pintle/model.sh", &answering(
        r#"*'"method":"hook.before_llm"'*'key is 42'*"#,
        r#"{"action":"modify","request":{"messages":[{"role":"user","content":"the key is withheld"}]}}"#,
    ).replace("    *) r=", "    *'\"method\":\"hook.after_llm\"'*'part one, part two'*) r='{\"action\":\"abort_turn\",\"reason\":\"it gave the plan away\"}' ;;\n      *'\"method\":\"hook.before_llm\"'*tools*please*) r='{\"action\":\"modify\",\"request\":{\"options\":{}}}' ;;\n    *) r="));
    env.user_config(&format!(
        "[hooks.processes.model]\nenabled = true\ncommand = ['sh', '{}']\nintercept = ['before_llm', 'after_llm']\n",
        script.display()
    ));
}

#[test]
fn what_gemini_asks_its_model_passes_the_hooks() {
    let env = TestEnv::new();
    model_hook(&env);
    let door = Door::open(env);
    let asks = |text: &str| {
        let request = json!({"model": "gemini-2.5-flash", "config": {"topK": 64}, "messages": [{"role": "user", "content": text}]});
        (
            request.clone(),
            json!({
                "session_id": "g", "cwd": door.env.path("here"), "hook_event_name": "BeforeModel", "llm_request": request,
            }),
        )
    };
    let before = |text: &str| told(&door, ("gemini", "BeforeModel"), &asks(text).1, &[]);
    assert_eq!(before("hello"), json!({}));
    let changed = &before("the key is 42")["hookSpecificOutput"]["llm_request"];
    assert_eq!(changed["messages"], json!([{"role": "user", "content": "the key is withheld"}]), "{changed}");
    assert_eq!((&changed["model"], &changed["config"]["topK"]), (&json!("gemini-2.5-flash"), &json!(64)));
    // What cannot be told is a no.
    let refused = before("other tools please");
    assert_eq!(refused["decision"], "deny", "{refused}");
    let parts = |text: &str, end: Value| {
        let candidate = json!({"content": {"role": "model", "parts": [text]}, "finishReason": end, "index": 0});
        let payload = json!({
            "session_id": "g", "cwd": door.env.path("here"), "hook_event_name": "AfterModel",
            "llm_request": asks("hello").0, "llm_response": {"text": text, "candidates": [candidate]},
        });
        told(&door, ("gemini", "AfterModel"), &payload, &[])
    };
    // It is judged as a whole, when all of it is there.
    before("hello");
    assert_eq!(parts("part one, ", json!(null)), json!({}));
    let ended = parts("part two", json!("STOP"));
    assert_eq!((&ended["decision"], &ended["continue"]), (&json!("deny"), &json!(false)), "{ended}");
    assert!(ended["stopReason"].as_str().unwrap().contains("gave the plan away"), "{ended}");
    before("hello");
    assert_eq!(parts("part two", json!("STOP")), json!({}), "an answer is judged for itself");
    let why = door.env.raw(&["why", "gemini:g", "--json"]);
    assert!(why.contains("degraded: modify→deny"), "{why}");
}

#[test]
fn a_person_sees_at_the_start_why_nothing_will_go_on() {
    let door = Door::open(TestEnv::new());
    door.env.user_config("[guard]\nrequire = ['shell']\n");
    let starts = json!({"session_id": "x", "cwd": door.env.path("here"), "hook_event_name": "SessionStart"});
    let said = told(&door, ("codex", "SessionStart"), &starts, &[]);
    let text = said["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
    assert!(text.contains("`write_stdin`"), "{said}");
    door.env.user_config("[agents\n");
    let mut other = door.event("SessionStart", &json!({"source": "startup"}));
    other["cwd"] = json!(door.env.path("home"));
    other["session_id"] = json!("y");
    let said = door.told(&other);
    assert!(said["systemMessage"].as_str().unwrap().contains("does not load"), "{said}");
    // Nobody there at all.
    let mut command = door.env.command(hook_program());
    command.args(["--host", "claude", "--event", "SessionStart", "--deadline", "5000"]);
    command.args(["--socket", "/nowhere/s", "--key-file", "/nowhere/k"]);
    let said = document(&TestEnv::output(&mut command, "{}"));
    assert!(said["systemMessage"].as_str().unwrap().contains("did not answer"), "{said}");
}
