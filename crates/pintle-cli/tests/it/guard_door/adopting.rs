//! Hooks that the settings of agents have already: taken over, at work for every agent, and given back.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use super::door::{AGENT, Door, LONG, document, hook_program, refusal, wait_for};
use crate::env::{PINTLE, Seen, TestEnv};

/// Settings with hooks of every kind.
const SETTINGS: &str = r#"{
  "model": "sonnet",
  "hooks": {
    "PreToolUse": [
      {
        "matcher": "Bash|Write",
        "hooks": [
          { "type": "command", "command": "$HOME/guard.sh" },
          { "type": "prompt", "prompt": "is $ARGUMENTS fine?" }
        ]
      },
      { "matcher": "Read", "hooks": [ { "type": "command", "command": "exit 1", "onFailure": "continue" } ] }
    ],
    "PostToolUse": [ { "hooks": [ { "type": "command", "command": "true", "async": true } ] } ],
    "Stop": [ {"hooks": [ { "type": "command", "command": "say done" } ]} ]
  }
}
"#;

const GUARD: &str = "#!/bin/sh\ngrep -q secrets && { echo 'secrets stay' >&2; exit 2; }\nexit 0\n";

fn with_agents() -> TestEnv {
    let env = TestEnv::new();
    for (name, says) in [("claude", "2.1.330 (Claude Code)"), ("gemini", "0.61.0"), ("qwen", "0.24.4")] {
        let program = env.write(&format!("bin/{name}"), &format!("#!/bin/sh\necho '{says}'\n"));
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let guard = env.write("home/guard.sh", GUARD);
    fs::set_permissions(&guard, fs::Permissions::from_mode(0o755)).unwrap();
    env
}

fn pintle(env: &TestEnv, args: &[&str]) -> Seen {
    let path = format!("{}:{}", env.path("bin").display(), std::env::var("PATH").unwrap());
    env.run(env.command(PINTLE).args(args).env("PATH", path), "")
}

const ADOPT: [&str; 6] = ["guard", "install", "--host", "claude", "--adopt", "--yes"];

fn settings(env: &TestEnv) -> Value {
    serde_json::from_str(&fs::read_to_string(env.path("home/.claude/settings.json")).unwrap()).unwrap()
}

/// The adopted hooks in the home.
fn adopted(env: &TestEnv) -> Vec<std::path::PathBuf> {
    let folder = fs::read_dir(env.path("data/pintle/guard/adopted"));
    folder.into_iter().flatten().flatten().map(|entry| entry.path()).collect()
}

/// The names of the hooks that count.
fn names(env: &TestEnv) -> Vec<String> {
    let list = env.raw(&["hooks", "list", "--json"]);
    let mut names: Vec<String> =
        list.split('"').filter(|word| word.starts_with("claude.")).map(str::to_owned).collect();
    names.sort();
    names.dedup();
    names
}

#[test]
fn hooks_are_taken_over_and_given_back_byte_by_byte() {
    let env = with_agents();
    let file = env.write("home/.claude/settings.json", SETTINGS);
    let seen = pintle(&env, &["guard", "install", "--host", "claude", "--adopt", "--dry-run"]);
    assert!(seen.code == Some(0) && seen.out.contains("takes over at PreToolUse: $HOME/guard.sh"), "{seen}");
    assert!(adopted(&env).is_empty() && fs::read_to_string(&file).unwrap() == SETTINGS, "a dry run changes nothing");
    let seen = pintle(&env, &ADOPT);
    assert!(seen.code == Some(0) && seen.out.contains("claude  guarded"), "{seen}");
    for said in [
        "type `prompt`",
        "with `async` nobody waits for its answer",
        "what hooks at `Stop` answer is carried out by Claude Code itself",
    ] {
        assert!(seen.err.contains(said), "{said}: {seen}");
    }
    let now = settings(&env);
    let theirs = |event: &str| {
        let hooks = now["hooks"][event].as_array().unwrap().iter().flat_map(|group| group["hooks"].as_array().unwrap());
        hooks.filter(|hook| hook["args"][0] != "--host").cloned().collect::<Vec<_>>()
    };
    assert_eq!(theirs("PreToolUse"), [json!({"type": "prompt", "prompt": "is $ARGUMENTS fine?"})]);
    assert_eq!((theirs("PostToolUse").len(), theirs("Stop").len()), (1, 1));
    let kept = adopted(&env);
    assert_eq!(kept.len(), 1);
    assert_eq!(fs::metadata(&kept[0]).unwrap().permissions().mode() & 0o777, 0o600);
    let status = pintle(&env, &["guard", "status", "--host", "claude"]);
    assert!(status.out.contains("adopted    2 hooks of") && status.out.contains("everywhere"), "{status}");
    let (list, names) = (pintle(&env, &["hooks", "list"]), names(&env));
    assert!(names.len() == 2 && names.iter().all(|name| list.out.contains(name)), "{names:?}: {list}");
    let again = pintle(&env, &ADOPT);
    assert!(again.code == Some(0) && again.out.contains("nothing to change"), "{again}");
    let plain = pintle(&env, &["guard", "install", "--host", "claude", "--yes"]);
    assert!(plain.out.contains("nothing to change"), "what was taken over stays so: {plain}");
    let seen = pintle(&env, &["guard", "uninstall", "--host", "claude", "--yes"]);
    assert!(seen.code == Some(0) && seen.out.contains("no longer guarded"), "{seen}");
    assert_eq!(fs::read_to_string(&file).unwrap(), SETTINGS);
    assert!(adopted(&env).is_empty());
}

#[test]
fn a_file_that_was_edited_since_gets_its_hooks_back_too() {
    let env = with_agents();
    let file = env.write("home/.claude/settings.json", SETTINGS);
    assert_eq!(pintle(&env, &ADOPT).code, Some(0));
    let edited = fs::read_to_string(&file).unwrap().replace("\"sonnet\"", "\"opus\"");
    fs::write(&file, edited).unwrap();
    assert_eq!(pintle(&env, &["guard", "uninstall", "--host", "claude", "--yes"]).code, Some(0));
    let (now, then): (Value, Value) = (settings(&env), serde_json::from_str(SETTINGS).unwrap());
    assert_eq!(now["model"], "opus");
    let all = |whole: &Value| {
        let lists = whole["hooks"].as_object().unwrap().values();
        let hooks =
            lists.flat_map(|list| list.as_array().unwrap()).flat_map(|group| group["hooks"].as_array().unwrap());
        let mut hooks: Vec<String> = hooks.map(Value::to_string).collect();
        hooks.sort();
        hooks
    };
    assert_eq!(all(&now), all(&then));
    assert!(adopted(&env).is_empty());
}

#[test]
fn adopted_hooks_guard_every_agent_and_their_faults_are_named() {
    let env = with_agents();
    env.write("home/.claude/settings.json", SETTINGS);
    assert_eq!(pintle(&env, &ADOPT).code, Some(0));
    let door = Door::open(env);
    assert_eq!(door.told(&door.shell("toolu_1", "ls")), json!({}));
    assert!(refusal(&door.told(&door.shell("toolu_2", "cat secrets"))).contains("secrets stay"));
    let read = json!({"tool_name": "Read", "tool_use_id": "toolu_3", "tool_input": {"file_path": "/tmp/x"}});
    assert_eq!(door.told(&door.event("PreToolUse", &read)), json!({}), "its entry lets faults pass");
    // What nobody can tell it is none of its faults.
    let input = json!({"file_path": "/tmp/x", "path": "/etc/shadow"});
    let both = json!({"tool_name": "Read", "tool_use_id": "toolu_4", "tool_input": input});
    let told = door.told(&door.event("PreToolUse", &both));
    assert!(refusal(&told).contains("only one of them can be meant"), "{told}");
    let why = door.env.pintle(&["why", "toolu_3", "-v"]);
    assert!(why.out.contains(" runs: exit 1"), "{why}");
    assert!(why.out.contains("claude.PreToolUse.") && why.out.contains("exited with status 1"), "{why}");
    // Another agent, with names of its own for the same tool.
    let mut command = door.env.command("python3");
    command.args(["-c", AGENT]).arg(hook_program());
    command.args(["--host", "gemini", "--event", "BeforeTool", "--deadline", &LONG.to_string()]);
    command.arg("--socket").arg(door.folder().join("guard.sock")).arg("--key-file").arg(door.folder().join("key"));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let payload = json!({
        "session_id": "g", "transcript_path": "/nowhere", "cwd": door.env.path("here"), "hook_event_name": "BeforeTool",
        "timestamp": "2026-11-26T10:00:00.000Z", "tool_name": "run_shell_command", "tool_input": {"command": "cat secrets"},
    });
    child.stdin.take().unwrap().write_all(payload.to_string().as_bytes()).unwrap();
    let told = document(&child.wait_with_output().unwrap());
    assert!(told["decision"] == "deny" && told["reason"].as_str().unwrap().contains("secrets stay"), "{told}");
}

#[test]
fn hooks_of_a_project_count_there_and_as_they_were() {
    let env = with_agents();
    env.write("here/guard.sh", GUARD);
    let hook =
        r#"{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"sh \"$CLAUDE_PROJECT_DIR/guard.sh\""}]}]}}"#;
    env.write("here/.claude/settings.json", hook);
    let seen = pintle(&env, &["guard", "install", "--host", "claude", "--adopt", "--yes", "--project"]);
    assert_eq!(seen.code, Some(0), "{seen}");
    let door = Door::open(env);
    assert!(refusal(&door.told(&door.shell("toolu_1", "cat secrets"))).contains("secrets stay"));
    let mut elsewhere = door.shell("toolu_2", "cat secrets");
    (elsewhere["session_id"], elsewhere["cwd"]) = (json!("other"), json!(door.env.path("home")));
    assert_eq!(door.told(&elsewhere), json!({}));
    door.env.write("here/guard.sh", "exit 0\n");
    let told = door.told(&door.shell("toolu_3", "cat secrets"));
    assert!(refusal(&told).contains("claude.PreToolUse."), "{told}");
    assert!(refusal(&told).contains("changed since a person accepted it"), "{told}");
    let why = door.env.pintle(&["why", "toolu_3", "-v"]);
    assert!(why.out.contains("changed since it was trusted"), "{why}");
}

#[test]
fn what_a_hook_of_a_project_runs_unseen_is_said() {
    let env = with_agents();
    env.write("here/real/guard.sh", GUARD);
    let hook =
        r#"{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"cd real && sh guard.sh && npm test"}]}]}}"#;
    env.write("here/.claude/settings.json", hook);
    let seen = pintle(&env, &["guard", "install", "--host", "claude", "--adopt", "--yes", "--project"]);
    assert!(seen.code == Some(0) && seen.err.contains("not watched for changes, because of `cd`, `npm`"), "{seen}");
    let list = pintle(&env, &["hooks", "list"]);
    let [name]: [String; 1] = names(&env).try_into().unwrap();
    assert!(list.err.contains(&format!("`{name}`")) && list.err.contains("`cd`, `npm`"), "{list}");
    assert!(list.out.contains("cd real && sh guard.sh"), "{list}");
    let seen = env.on_terminal("", &["hooks", "disable", &name]);
    assert!(seen.code == Some(2) && seen.to_string().contains("uninstall"), "{seen}");
    let show = pintle(&env, &["hooks", "show", &name]);
    assert!(show.out.contains("unwatched") && show.out.contains("`npm`"), "{show}");
}

#[test]
fn the_script_of_a_project_that_was_taken_over_is_the_one_that_runs() {
    for command in ["sh guard.sh", r#"sh \"$CLAUDE_PROJECT_DIR/guard.sh\""#] {
        let env = with_agents();
        env.write("here/guard.sh", GUARD);
        // Another one of that name, which nobody accepted.
        env.write("here/sub/guard.sh", "exit 0\n");
        let hook =
            format!(r#"{{"hooks":{{"PreToolUse":[{{"hooks":[{{"type":"command","command":"{command}"}}]}}]}}}}"#);
        env.write("here/.claude/settings.json", &hook);
        let seen = pintle(&env, &["guard", "install", "--host", "claude", "--adopt", "--yes", "--project"]);
        assert_eq!(seen.code, Some(0), "{seen}");
        let door = Door::open(env);
        assert_eq!(door.told(&door.shell("toolu_1", "ls")), json!({}), "{command}");
        // An agent that went into a folder, and one that began there.
        for session in ["s", "below"] {
            let mut call = door.shell(&format!("toolu_{session}"), "cat secrets");
            (call["session_id"], call["cwd"]) = (json!(session), json!(door.env.path("here/sub")));
            assert!(refusal(&door.told(&call)).contains("secrets stay"), "{command}, {session}");
        }
    }
}

#[test]
fn a_hook_that_was_taken_over_has_the_surroundings_of_its_agent() {
    let env = with_agents();
    let linter = env.write("venv/bin/lint-it", "#!/bin/sh\n[ \"$VIRTUAL_ENV:$A_TOKEN\" = here: ] || exit 2\n");
    fs::set_permissions(&linter, fs::Permissions::from_mode(0o755)).unwrap();
    let hook = r#"{"hooks":{"PreToolUse":[{"hooks":[{"type":"command","command":"lint-it"}]}]}}"#;
    env.write("home/.claude/settings.json", hook);
    assert_eq!(pintle(&env, &ADOPT).code, Some(0));
    // Whoever installs elsewhere is told of it.
    let activated = format!("{}:{}", env.path("venv/bin").display(), std::env::var("PATH").unwrap());
    let path = format!("{}:{activated}", env.path("bin").display());
    let seen = env.run(env.command(PINTLE).args(ADOPT).env("PATH", &path), "");
    assert!(seen.code == Some(0) && seen.err.contains("another one than before"), "{seen}");
    let seen = env.run(env.command(PINTLE).args(ADOPT).env("PATH", &path), "");
    assert!(seen.code == Some(0) && !seen.err.contains("another one than before"), "{seen}");
    // The daemon has no activated environment; the agent has, and a secret that is nothing for hooks.
    let door = Door::open(env);
    let payload = door.shell("toolu_1", "ls").to_string();
    let claude = door.env.write("agents/claude", AGENT);
    let as_agent = || {
        let mut agent = door.env.command("python3");
        agent.arg(&claude).args(door.words("claude", "PreToolUse"));
        agent
    };
    let activate = |mut command: Command| {
        command.env("PATH", &activated).env("VIRTUAL_ENV", "here").env("A_TOKEN", "x");
        document(&TestEnv::output(&mut command, &payload))
    };
    assert_eq!(activate(as_agent()), json!({}));
    assert!(refusal(&document(&TestEnv::output(&mut as_agent(), &payload))).contains("127"));
    // Whoever asks in its name, and is another program, brings nothing.
    assert!(refusal(&activate(door.command("PreToolUse", LONG))).contains("127"));
}

#[test]
fn who_has_another_wire_is_refused_with_one_message() {
    let env = with_agents();
    let seen = pintle(&env, &["guard", "install", "--host", "gemini", "--adopt", "--yes"]);
    assert_eq!(seen.code, Some(2), "{seen}");
    assert!(seen.err.contains("the hooks of Gemini CLI cannot be adopted"), "{seen}");
    assert!(!env.path("home/.gemini").exists());
    let seen = pintle(&env, &["guard", "uninstall", "--host", "claude", "--adopt", "--yes"]);
    assert!(seen.code == Some(2) && seen.err.contains("--adopt"), "{seen}");
}

#[test]
fn times_of_qwen_are_milliseconds() {
    let env = with_agents();
    let text = "{\n  // mine\n  \"hooks\": { \"PreToolUse\": [ { \"hooks\": [ { \"type\": \"command\", \"command\": \"true\", \"name\": \"x\", \"timeout\": 2500 } ] } ] }\n}\n";
    let file = env.write("home/.qwen/settings.json", text);
    let seen = pintle(&env, &["guard", "install", "--host", "qwen", "--adopt", "--yes"]);
    assert_eq!(seen.code, Some(0), "{seen}");
    let [name]: [String; 1] = names(&env).try_into().unwrap();
    let show: Value = serde_json::from_str(&env.raw(&["hooks", "show", &name, "--json"])).unwrap();
    assert!(show.to_string().contains(r#""timeout_ms":3000"#), "{show}");
    assert_eq!(pintle(&env, &["guard", "uninstall", "--host", "qwen", "--yes"]).code, Some(0));
    assert_eq!(fs::read_to_string(file).unwrap(), text);
}

#[test]
fn what_cannot_be_read_shuts_every_call() {
    let env = with_agents();
    env.write("home/.claude/settings.json", SETTINGS);
    assert_eq!(pintle(&env, &ADOPT).code, Some(0));
    fs::write(&adopted(&env)[0], "{").unwrap();
    let status = pintle(&env, &["guard", "status", "--host", "claude"]);
    assert!(status.code == Some(5) && status.out.contains("every call is refused"), "{status}");
    let door = Door::open(env);
    refusal(&door.told(&door.shell("toolu_1", "ls")));
    let seen = pintle(&door.env, &["guard", "uninstall", "--host", "claude", "--yes"]);
    assert_eq!(seen.code, Some(0), "{seen}");
    assert_eq!(fs::read_to_string(door.env.path("home/.claude/settings.json")).unwrap(), SETTINGS);
    assert!(adopted(&door.env).is_empty(), "one line takes it back");
}

#[test]
fn an_installation_that_was_cut_short_doubles_nothing() {
    let env = with_agents();
    let file = env.write("home/.claude/settings.json", SETTINGS);
    for _ in 0..2 {
        assert_eq!(pintle(&env, &ADOPT).code, Some(0));
        let status = pintle(&env, &["guard", "status", "--host", "claude"]);
        assert!(status.out.contains("adopted    2 hooks of"), "{status}");
        fs::write(&file, SETTINGS).unwrap();
    }
    assert_eq!(pintle(&env, &["guard", "uninstall", "--host", "claude", "--yes"]).code, Some(0));
    assert_eq!(fs::read_to_string(file).unwrap(), SETTINGS);
    assert!(adopted(&env).is_empty());
}

#[test]
fn hooks_stay_where_nobody_would_run_them() {
    let env = with_agents();
    let file = env.write("home/.claude/settings.json", SETTINGS);
    let at = |events: &str| pintle(&env, &[&ADOPT[..], &["--events", events]].concat());
    let seen = at("UserPromptSubmit");
    assert!(seen.code == Some(0) && seen.err.contains("Pintle is not asked at this event"), "{seen}");
    assert!(adopted(&env).is_empty() && settings(&env)["hooks"]["PreToolUse"][0]["matcher"] == "Bash|Write");
    assert_eq!(at("PreToolUse").code, Some(0));
    assert_eq!(adopted(&env).len(), 1);
    let seen = at("UserPromptSubmit");
    assert!(seen.code == Some(2) && seen.err.contains("hooks at `PreToolUse` of Claude Code were adopted"), "{seen}");
    assert_eq!(pintle(&env, &["guard", "uninstall", "--host", "claude", "--yes"]).code, Some(0));
    assert_eq!(fs::read_to_string(file).unwrap(), SETTINGS);
}

#[test]
fn hooks_stay_where_a_daemon_that_is_away_would_let_everything_pass() {
    let env = with_agents();
    env.write("home/.claude/settings.json", SETTINGS);
    let away = "[guard.hosts.claude]\non_daemon_away = \"allow\"\n";
    let install = |args: &[&str], file: &str, said: &str| {
        env.user_config(file);
        let seen = pintle(&env, args);
        assert_eq!(seen.code, Some(if said.is_empty() { 0 } else { 2 }), "{seen}");
        assert!(seen.err.contains(said), "{seen}");
    };
    install(&ADOPT, away, "leave --adopt out");
    assert!(adopted(&env).is_empty());
    install(&ADOPT, "", "");
    assert_eq!(adopted(&env).len(), 1);
    install(&["guard", "install", "--host", "claude", "--yes"], away, "give them back first");
}

#[test]
fn hooks_count_for_a_session_that_went_on_while_they_were_taken_over() {
    let env = with_agents();
    env.write("home/.claude/settings.json", SETTINGS);
    let door = Door::open(env);
    assert_eq!(door.told(&door.shell("toolu_0", "cat secrets")), json!({}), "Claude Code runs them itself");
    assert_eq!(pintle(&door.env, &ADOPT).code, Some(0));
    wait_for(|| door.told(&door.shell("toolu_1", "cat secrets")).to_string().contains("secrets stay").then_some(()));
}

#[test]
fn what_a_hook_says_of_a_result_is_read_beside_it() {
    let env = TestEnv::new();
    let answers = env.write(
        "home/context.json",
        r#"{"hookSpecificOutput":{"hookEventName":"PostToolUse","additionalContext":"read it twice"}}"#,
    );
    env.user_config(&format!(
        "[[hooks.claude.PostToolUse]]\nmatcher = 'Write|Edit'\nhooks = [{{ type = 'command', command = \"echo 'eslint: 1 problem' >&2; exit 2\" }}]\n\
         [[hooks.claude.PostToolUse]]\nmatcher = 'Read'\nhooks = [{{ type = 'command', command = 'cat {}' }}]\n",
        answers.display()
    ));
    let door = Door::open(env);
    for (tool, id, said) in [
        ("Write", "toolu_1", "eslint: 1 problem"),
        ("Edit", "toolu_2", "eslint: 1 problem"),
        ("Read", "toolu_3", "read it twice"),
    ] {
        let more = json!({
            "tool_name": tool, "tool_use_id": id, "tool_input": {"file_path": "/tmp/a.js"},
            "tool_response": {"type": "text", "filePath": "/tmp/a.js", "structuredPatch": []},
        });
        let beside = json!({"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": said}});
        assert_eq!(door.told(&door.event("PostToolUse", &more)), beside, "{tool}");
    }
}

#[test]
fn a_hook_hears_what_the_hooks_that_stay_hear() {
    let env = TestEnv::new();
    let heard = env.path("home/heard.json");
    env.user_config(&format!(
        "[[hooks.claude.PostToolUse]]\nhooks = [{{ type = 'command', command = 'cat >{}' }}]\n",
        heard.display()
    ));
    let door = Door::open(env);
    let response = json!({"type": "create", "filePath": "/tmp/a.js", "structuredPatch": [], "originalFile": null});
    let more = json!({
        "tool_name": "Write", "tool_use_id": "toolu_1", "tool_input": {"file_path": "/tmp/a.js", "content": "x"},
        "tool_response": response, "agent_id": "a1", "agent_type": "general-purpose",
    });
    let event = door.event("PostToolUse", &more);
    assert_eq!(door.told(&event), json!({}));
    let heard: Value = serde_json::from_str(&fs::read_to_string(heard).unwrap()).unwrap();
    for name in [
        "session_id",
        "transcript_path",
        "prompt_id",
        "permission_mode",
        "agent_id",
        "agent_type",
        "tool_use_id",
        "tool_response",
    ] {
        assert_eq!(heard[name], event[name], "{name}: {heard}");
    }
}
