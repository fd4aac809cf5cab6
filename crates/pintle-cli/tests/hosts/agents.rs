//! Each agent: from an installation to calls that do not run.

use std::path::Path;

use pintle_domain::json::{Value, json};

use crate::model::Model;
use crate::world::{World, shell};

/// What an agent lets its hooks do, as its row of the table says.
struct Agent {
    id: &'static str,
    /// The arguments of a shell call, as its hooks read them.
    arguments: fn(&str) -> Value,
    /// Whether a refusal goes to the model, which then goes on.
    goes_on: bool,
    /// Whether a hook may change a call; else such a call is refused.
    changes: bool,
    /// Whether its prompts pass a hook.
    prompts: bool,
    /// Whether a hook may change a result.
    redacts: bool,
}

impl Agent {
    /// Where a hook of ours is still there when its client is not, the model reads that; else the agent says it by itself.
    fn says_that_nobody_answered(&self, model: &Model) {
        let stands_in = !["claude", "copilot", "opencode", "pi"].contains(&self.id);
        let results = model.results();
        assert!(!stands_in || results.iter().all(|text| text.contains("guard did not answer")), "{results:?}");
    }
}

fn described(command: &str) -> Value {
    json!({"command": command, "description": "x"})
}

fn bare(command: &str) -> Value {
    json!({"command": command})
}

fn several(command: &str) -> Value {
    json!({"commands": [command]})
}

fn copilot(command: &str) -> Value {
    json!({"command": command, "description": "x", "mode": "sync"})
}

const CLAUDE: Agent =
    Agent { id: "claude", arguments: described, goes_on: true, changes: true, prompts: true, redacts: true };
const CODEX: Agent = Agent { id: "codex", arguments: bare, goes_on: true, changes: true, prompts: true, redacts: true };
const GEMINI: Agent =
    Agent { id: "gemini", arguments: described, goes_on: true, changes: true, prompts: true, redacts: true };
const QWEN: Agent =
    Agent { id: "qwen", arguments: described, goes_on: true, changes: false, prompts: true, redacts: false };
const COPILOT: Agent =
    Agent { id: "copilot", arguments: copilot, goes_on: true, changes: true, prompts: true, redacts: true };
const KIMI: Agent = Agent { id: "kimi", arguments: bare, goes_on: true, changes: false, prompts: true, redacts: false };
const CLINE: Agent =
    Agent { id: "cline", arguments: several, goes_on: false, changes: true, prompts: false, redacts: false };
const OPENCODE: Agent =
    Agent { id: "opencode", arguments: described, goes_on: true, changes: true, prompts: true, redacts: true };
const PI: Agent = Agent { id: "pi", arguments: bare, goes_on: true, changes: true, prompts: true, redacts: true };

/// A hook in plain sh that answers `result` to lines that fit `pattern`.
fn hook(stage: &str, pattern: &str, result: &str) -> String {
    let script = format!(
        r#"while IFS= read -r line; do
  id=${{line#*'"id":'}}; id=${{id%%,*}}
  case $line in
    *'"method":"hook.{stage}"'*{pattern}) r='{result}' ;;
    *) r='{{}}' ;;
  esac
  printf '{{"jsonrpc":"2.0","id":%s,"result":%s}}\n' "$id" "$r"
done"#
    );
    format!("[hooks.processes.test]\nenabled = true\ncommand = ['sh', '-c', '''{script}''']\nintercept = ['{stage}']\n")
}

/// A hook that never answers about a call.
const HANGING: &str = r#"[hooks]
enabled = true
[hooks.defaults]
interceptor_timeout_ms = 900000
[hooks.processes.slow]
enabled = true
command = ['sh', '-c', '''while IFS= read -r line; do
  id=${line#*'"id":'}; id=${id%%,*}
  case $line in *'"method":"hook.before_tool"'*) sleep 1000 ;; esac
  printf '{"jsonrpc":"2.0","id":%s,"result":{}}\n' "$id"
done''']
intercept = ['before_tool']
"#;

/// A rule that refuses prompts with a password.
const GATE: &str = r#"
[[hook]]
name = "no-passwords"
event = "user_prompt_submit"
handler_type = "script"
scope = "tenant"

[hook.config]
source = """
function handle(event) {
  return /hunter2/.test(JSON.stringify(event)) ? { decision: 'block', reason: 'it names a password' } : { decision: 'allow' };
}
"""
"#;

/// A rule that takes a password out of prompts.
const REDACTS: &str = r#"
[[hook]]
name = "redacts"
event = "user_prompt_submit"
handler_type = "script"
scope = "tenant"
may_rewrite = true
breaker = "faults"

[hook.config]
source = """
function handle(event) {
  return { decision: 'allow', updatedInput: { rawInput: event.rawInput.replace('hunter2', 'withheld') } };
}
"""
"#;

/// The agents that send a prompt as hooks changed it; the others do not send it at all.
const SENDS_CHANGED: [&str; 3] = ["copilot", "opencode", "pi"];

/// What the model of `agent` read about its first call.
fn first(agent: &Agent, model: &Model) -> String {
    let results = model.results();
    assert_eq!(results.is_empty(), !agent.goes_on, "{results:?}");
    results.first().cloned().unwrap_or_default()
}

/// What refuses calls that name something forbidden.
fn forbidding() -> String {
    hook("before_tool", "*forbidden*", r#"{"action":"deny_tool","reason":"not in this repository"}"#)
}

fn refused_call(agent: &Agent) {
    refused_in(agent, &World::guarded(agent.id, &forbidding()));
}

fn refused_in(agent: &Agent, world: &World) {
    let model = Model::start(vec![shell(agent.id, "touch allowed"), shell(agent.id, "touch forbidden")]);
    let output = world.agent(agent.id, &model, "do it");
    assert!(!world.ran("forbidden") && world.ran("allowed"), "{output:?} {:?}", model.results());
    let read = model.results().get(1).cloned();
    assert_eq!(read.is_some(), agent.goes_on, "{output:?}");
    assert!(read.is_none_or(|text| text.contains("not in this repository")), "{:?}", model.results());
    let why = world.pintle(&["why", "--denied"]);
    assert!(why.contains("touch forbidden") && why.contains("not in this repository"), "{why}");
}

fn changed_call(agent: &Agent) {
    let call = json!({"tool": "exec", "arguments": (agent.arguments)("touch other")});
    let modify = json!({"action": "modify", "call": call}).to_string();
    let world = World::guarded(agent.id, &hook("before_tool", "*touch\\ mine*", &modify));
    let model = Model::start(vec![shell(agent.id, "touch mine")]);
    let output = world.agent(agent.id, &model, "do it");
    assert!(!world.ran("mine"), "{output:?} {:?}", model.results());
    assert_eq!(world.ran("other"), agent.changes, "{output:?} {:?}", model.results());
    let why = world.pintle(&["why", "-vv"]);
    assert_eq!(why.contains("degraded: modify→deny"), !agent.changes, "{why}");
    if !agent.changes {
        assert!(first(agent, &model).contains("touch other"), "{:?}", model.results());
    }
}

fn refused_prompt(agent: &Agent) {
    let world = World::new("[agent_hooks]\ndir = \"hooks.d\"\n");
    world.write("home/.config/pintle/hooks.d/prompts.toml", GATE);
    world.pintle(&["guard", "install", "--host", agent.id, "--yes"]);
    let model = Model::start(vec![shell(agent.id, "touch ran")]);
    let output = world.agent(agent.id, &model, "my password is hunter2");
    // Where no hook sees the prompt it goes on, and `status` says so.
    assert_eq!(model.was_asked(), !agent.prompts, "{output:?}");
    assert_eq!(model.heard().contains("hunter2"), !agent.prompts, "{output:?}");
    if !agent.prompts {
        let status = world.pintle(&["guard", "status", "--host", agent.id]);
        assert!(status.contains("prompts"), "{status}");
    }
}

fn changed_prompt(agent: &Agent) {
    let world = World::new("[agent_hooks]\ndir = \"hooks.d\"\n");
    world.write("home/.config/pintle/hooks.d/prompts.toml", REDACTS);
    world.pintle(&["guard", "install", "--host", agent.id, "--yes"]);
    let model = Model::start(vec![shell(agent.id, "touch ran")]);
    let output = world.agent(agent.id, &model, "my password is hunter2");
    let sends = SENDS_CHANGED.contains(&agent.id);
    assert_eq!(model.was_asked(), sends || !agent.prompts, "{output:?}");
    assert_eq!(model.heard().contains("hunter2"), !agent.prompts, "{output:?} {}", model.heard());
    assert_eq!(model.heard().contains("my password is withheld"), sends, "{output:?} {}", model.heard());
}

fn changed_result(agent: &Agent) {
    let redact = r#"{"action":"modify","result":{"result":{"for_llm":"[withheld]"}}}"#;
    let world = World::guarded(agent.id, &hook("after_tool", "*the-key*", redact));
    let model = Model::start(vec![shell(agent.id, "echo the-key")]);
    let output = world.agent(agent.id, &model, "do it");
    let results = model.results();
    assert_eq!(results.len(), 1, "{output:?}");
    assert_eq!(!results[0].contains("the-key"), agent.redacts, "{results:?}");
    assert!(!agent.redacts || results[0].contains("[withheld]"), "{results:?}");
    // Where it cannot be taken back any more, the record says that.
    let why = world.pintle(&["why", "-vv"]);
    assert_eq!(why.contains("degraded: modify_result→"), !agent.redacts, "{why}");
}

fn ended_daemon(agent: &Agent) {
    let world = World::guarded(agent.id, "");
    let model = Model::start_after(vec![shell(agent.id, "touch ran")], Box::new(world.end_guard()));
    let output = world.agent(agent.id, &model, "do it");
    assert!(model.was_asked() && !world.ran("ran"), "{output:?} {:?}", model.results());
    // Some do not even ask their model again: what would have to be heard before that is not answered either.
    assert!(model.results().iter().all(|text| text.contains("guard did not answer")), "{:?}", model.results());
}

fn lost_socket(agent: &Agent) {
    let world = World::guarded(agent.id, "");
    let model = Model::start_after(vec![shell(agent.id, "touch ran")], Box::new(world.lose_socket()));
    let output = world.agent(agent.id, &model, "do it");
    assert!(model.was_asked() && !world.ran("ran"), "{output:?} {:?}", model.results());
    // Some do not even ask their model again: what would have to be heard before that is not answered either.
    assert!(model.results().iter().all(|text| text.contains("guard did not answer")), "{:?}", model.results());
}

fn lost_client(agent: &Agent) {
    let world = World::guarded_apart(agent.id, |_| String::new());
    let model = Model::start_after(vec![shell(agent.id, "touch ran")], Box::new(world.lose_client()));
    let output = world.agent(agent.id, &model, "do it");
    assert!(model.was_asked() && !world.ran("ran"), "{output:?} {:?}", model.results());
    agent.says_that_nobody_answered(&model);
}

/// A rule that ends every client by the signal that cannot be caught, and then lets the call pass.
fn killing(client: &Path) -> String {
    let client = client.to_str().unwrap().replace('\'', r"'\''");
    let script = format!(
        r#"while IFS= read -r line; do
  id=${{line#*'"id":'}}; id=${{id%%,*}}
  case $line in *'"method":"hook.before_tool"'*)
    for p in /proc/[0-9]*; do [ "$(readlink $p/exe)" = '{client}' ] && kill -9 "${{p#/proc/}}"; done ;;
  esac
  printf '{{"jsonrpc":"2.0","id":%s,"result":{{}}}}\n' "$id"
done"#
    );
    let command = json!(["sh", "-c", script]);
    format!("[hooks.processes.killer]\nenabled = true\ncommand = {command}\nintercept = ['before_tool']\n")
}

fn killed_client(agent: &Agent) {
    let world = World::guarded_apart(agent.id, killing);
    let model = Model::start(vec![shell(agent.id, "touch ran")]);
    let output = world.agent(agent.id, &model, "do it");
    assert!(model.was_asked() && !world.ran("ran"), "{output:?} {:?}", model.results());
    agent.says_that_nobody_answered(&model);
    let why = world.pintle(&["why"]);
    assert!(why.contains("killer"), "the rule was asked: {why}");
}

/// Nothing listens from the beginning: where a prompt passes a hook, not even the model is asked.
fn guard_that_is_away(agent: &Agent) {
    let world = World::guarded(agent.id, "");
    std::fs::remove_file(world.path("home/.local/share/pintle/guard/start")).unwrap();
    let model = Model::start(vec![shell(agent.id, "touch ran")]);
    let output = world.agent(agent.id, &model, "do it");
    assert!(!world.ran("ran"), "{output:?} {:?}", model.results());
    assert_eq!(model.was_asked(), !agent.prompts, "{output:?}");
}

fn hanging_rules(agent: &Agent) {
    let world = World::guarded(agent.id, HANGING);
    let model = Model::start(vec![shell(agent.id, "touch ran")]);
    let output = world.agent(agent.id, &model, "do it");
    assert!(model.was_asked() && !world.ran("ran"), "{output:?} {:?}", model.results());
    first(agent, &model);
}

fn canary(agent: &Agent) {
    let world = World::guarded(agent.id, "");
    let status = world.pintle(&["guard", "status", "--host", agent.id]);
    assert!(status.contains("installed") && status.contains("never: `pintle guard doctor"), "{status}");
    let args = ["guard", "doctor", "--host", agent.id, "--live"];
    let output = world.seen(&args);
    let said = format!("{}  proven: ", agent.id);
    assert!(output.status.success() && String::from_utf8_lossy(&output.stdout).starts_with(&said), "{output:?}");
    let status = world.pintle(&["guard", "status", "--host", agent.id]);
    assert!(!status.contains("never: `pintle guard doctor") && status.contains("last heard"), "{status}");
    world.pintle(&["guard", "uninstall", "--host", agent.id, "--yes"]);
    let output = world.seen(&args);
    assert_eq!(output.status.code(), Some(5), "{output:?}");
}

/// The tests of one agent.
macro_rules! agents {
    ($($module:ident: $agent:ident),* $(,)?) => {$(
        mod $module {
            use super::*;

            #[test]
            fn a_refused_call_does_not_run_and_the_model_reads_why() {
                refused_call(&$agent);
            }

            #[test]
            fn a_changed_call_runs_changed_or_not_at_all() {
                changed_call(&$agent);
            }

            #[test]
            fn a_refused_prompt_reaches_no_model() {
                refused_prompt(&$agent);
            }

            #[test]
            fn a_prompt_that_a_hook_changes_is_sent_changed_or_not_at_all() {
                changed_prompt(&$agent);
            }

            #[test]
            fn a_result_that_a_hook_changes_is_all_that_the_model_reads() {
                changed_result(&$agent);
            }

            #[test]
            fn no_call_runs_when_the_daemon_is_killed() {
                ended_daemon(&$agent);
            }

            #[test]
            fn no_call_runs_when_the_socket_is_gone() {
                lost_socket(&$agent);
            }

            #[test]
            fn no_call_runs_when_the_client_is_gone() {
                lost_client(&$agent);
            }

            #[test]
            fn no_call_runs_when_the_client_is_killed() {
                killed_client(&$agent);
            }

            #[test]
            fn nothing_runs_when_no_guard_can_be_started() {
                guard_that_is_away(&$agent);
            }

            #[test]
            fn no_call_runs_when_rules_hang() {
                hanging_rules(&$agent);
            }

            #[test]
            fn the_canary_proves_it_and_nothing_else_does() {
                canary(&$agent);
            }
        }
    )*};
}

agents! {
    claude: CLAUDE,
    codex: CODEX,
    gemini: GEMINI,
    qwen: QWEN,
    copilot: COPILOT,
    kimi: KIMI,
    cline: CLINE,
    opencode: OPENCODE,
    pi: PI,
}

/// What somebody else's hook says, which lets everything pass.
const ALLOW: &str = r#"echo '{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow"}}'"#;

/// Two other hooks on the same event, which allow what ours refuses: whoever is asked first or last, the call does not run.
fn beside_other_hooks(agent: &Agent, files: &[(&str, &str)]) {
    let world = World::new(&forbidding());
    for (file, text) in files {
        world.write(file, text);
    }
    let output = world.seen(&["guard", "install", "--host", agent.id, "--yes"]);
    assert!(output.status.success(), "{output:?}");
    refused_in(agent, &world);
}

fn in_claudes_form(event: &str, command: &str) -> String {
    let hook = |name: &str| json!({"name": name, "type": "command", "command": command});
    let (one, other) = (hook("a"), hook("z"));
    json!({"hooks": {(event): [{"matcher": ".*", "hooks": [one]}, {"matcher": ".*", "hooks": [other]}]}}).to_string()
}

#[test]
fn claude_refuses_beside_two_other_hooks() {
    beside_other_hooks(&CLAUDE, &[("home/.claude/settings.json", in_claudes_form("PreToolUse", ALLOW).as_str())]);
}

#[test]
fn gemini_refuses_beside_two_other_hooks() {
    let allow = r#"echo '{"decision":"allow"}'"#;
    beside_other_hooks(&GEMINI, &[("home/.gemini/settings.json", in_claudes_form("BeforeTool", allow).as_str())]);
}

#[test]
fn qwen_refuses_beside_two_other_hooks() {
    beside_other_hooks(&QWEN, &[("home/.qwen/settings.json", in_claudes_form("PreToolUse", ALLOW).as_str())]);
}

#[test]
fn copilot_refuses_beside_two_other_hooks() {
    let hook = json!({"type": "command", "bash": r#"echo '{"permissionDecision":"allow"}'"#});
    let text = json!({"version": 1, "hooks": {"preToolUse": [hook]}}).to_string();
    beside_other_hooks(
        &COPILOT,
        &[("home/.copilot/hooks/a.json", text.as_str()), ("home/.copilot/hooks/z.json", text.as_str())],
    );
}

#[test]
fn kimi_refuses_beside_two_other_hooks() {
    let text = format!("[[hooks]]\nevent = \"PreToolUse\"\ncommand = {}\n", Value::from(ALLOW)).repeat(2);
    beside_other_hooks(&KIMI, &[("home/.kimi-code/config.toml", text.as_str())]);
}

/// What Codex wrote into its own configuration when it accepted our hooks is gone with them.
#[test]
fn codex_forgets_what_it_accepted() {
    let old = "# mine\nmodel = \"m\"\n\n[tui]\ntheme = \"x\" # odd\n";
    let more = "\n[projects.\"/elsewhere\"]\ntrust_level = \"trusted\"\n";
    for more in ["", more] {
        let world = World::new("");
        let config = world.write("home/.codex/config.toml", old);
        let hooks = world.write("home/.codex/hooks.json", "{\"hooks\":{}}");
        world.pintle(&["guard", "install", "--host", "codex", "--yes"]);
        let accepted = std::fs::read_to_string(&config).unwrap();
        assert!(accepted.contains("trusted_hash"), "{accepted}");
        std::fs::write(&config, format!("{accepted}{more}")).unwrap();
        world.pintle(&["guard", "uninstall", "--host", "codex", "--yes"]);
        assert_eq!(std::fs::read_to_string(&config).unwrap(), format!("{old}{more}"));
        assert_eq!(std::fs::read_to_string(&hooks).unwrap(), "{\"hooks\":{}}");
    }
}

/// A hook that Codex has not accepted as it stands is named, and put right by another installation.
#[test]
fn codex_says_what_it_has_not_accepted() {
    let world = World::guarded("codex", "");
    std::fs::remove_file(world.path("home/.codex/config.toml")).unwrap();
    let output = world.seen(&["guard", "status", "--host", "codex"]);
    assert_eq!(output.status.code(), Some(5), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("nobody accepted them"), "{output:?}");
    world.pintle(&["guard", "install", "--host", "codex", "--yes"]);
    world.pintle(&["guard", "status", "--host", "codex"]);
}

#[test]
fn what_gemini_asks_its_model_is_what_hooks_left_of_it() {
    let other = r#"{"action":"modify","request":{"messages":[{"role":"user","content":"say hello to a stranger"}]}}"#;
    let world = World::guarded("gemini", &hook("before_llm", "*hunter2*", other));
    let model = Model::start(Vec::new());
    let output = world.agent("gemini", &model, "my password is hunter2");
    let heard = model.heard();
    assert!(heard.contains("hello to a stranger") && !heard.contains("hunter2"), "{output:?} {heard}");
}

#[test]
fn gemini_asks_no_model_where_hooks_end_its_turn() {
    let end = r#"{"action":"abort_turn","reason":"it names a password"}"#;
    let world = World::guarded("gemini", &hook("before_llm", "*hunter2*", end));
    let model = Model::start(vec![shell("gemini", "touch ran")]);
    let output = world.agent("gemini", &model, "my password is hunter2");
    assert!(!world.ran("ran") && !model.heard().contains("hunter2"), "{output:?} {}", model.heard());
}

/// A rule that takes a password out of prompts.
const WITHHOLDING: &str = r#"
[[hook]]
name = "no-passwords"
event = "user_prompt_submit"
handler_type = "script"
scope = "tenant"
may_rewrite = true

[hook.config]
source = """
function handle(event) {
  return { decision: 'allow', updatedInput: { rawInput: event.rawInput.replace('hunter2', '[withheld]') } };
}
"""
"#;

#[test]
fn copilot_sends_a_prompt_as_hooks_left_it() {
    let world = World::new("[agent_hooks]\ndir = \"hooks.d\"\n");
    world.write("home/.config/pintle/hooks.d/prompts.toml", WITHHOLDING);
    world.pintle(&["guard", "install", "--host", "copilot", "--yes"]);
    let model = Model::start(vec![shell("copilot", "touch ran")]);
    let output = world.agent("copilot", &model, "my password is hunter2");
    let heard = model.heard();
    assert!(heard.contains("[withheld]") && !heard.contains("hunter2"), "{output:?} {heard}");
    assert!(world.ran("ran"), "{output:?}");
}
