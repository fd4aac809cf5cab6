//! Claude Code: from an installation to calls that do not run.

use crate::model::Model;
use crate::world::{World, shell};

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

fn guarded(config: &str) -> World {
    let world = World::new(config);
    world.pintle(&["guard", "install", "--host", "claude", "--yes"]);
    world
}

#[test]
fn a_refused_call_does_not_run_and_the_model_reads_why() {
    let deny = r#"{"action":"deny_tool","reason":"not in this repository"}"#;
    let world = guarded(&hook("before_tool", "*forbidden*", deny));
    let model = Model::start(vec![shell("touch forbidden"), shell("touch allowed")]);
    let output = world.claude(&model, "do it");
    assert!(output.status.success(), "{output:?}");
    assert!(!world.ran("forbidden") && world.ran("allowed"), "{output:?} {:?}", model.results());
    assert!(model.results()[0].contains("not in this repository"), "{:?}", model.results());
    let why = world.pintle(&["why", "--denied"]);
    assert!(why.contains("touch forbidden") && why.contains("not in this repository"), "{why}");
}

#[test]
fn a_changed_call_runs_changed() {
    let modify =
        r#"{"action":"modify","call":{"tool":"exec","arguments":{"command":"touch other","description":"x"}}}"#;
    let world = guarded(&hook("before_tool", "", modify));
    let model = Model::start(vec![shell("touch mine")]);
    let output = world.claude(&model, "do it");
    assert!(world.ran("other") && !world.ran("mine"), "{output:?} {:?}", model.results());
}

#[test]
fn a_refused_prompt_reaches_no_model() {
    let world = World::new("[agent_hooks]\ndir = \"hooks.d\"\n");
    world.write("home/.config/pintle/hooks.d/prompts.toml", GATE);
    world.pintle(&["guard", "install", "--host", "claude", "--yes"]);
    let model = Model::start(vec![shell("touch ran")]);
    let output = world.claude(&model, "my password is hunter2");
    assert!(!model.was_asked() && !world.ran("ran"), "{output:?}");
    assert!(!model.heard().contains("hunter2"), "{}", model.heard());
}

#[test]
fn a_result_that_a_hook_changes_is_all_that_the_model_reads() {
    let redact = r#"{"action":"modify","result":{"result":{"for_llm":"[withheld]"}}}"#;
    let world = guarded(&hook("after_tool", "", redact));
    let model = Model::start(vec![shell("echo the-key")]);
    let output = world.claude(&model, "do it");
    assert!(model.results()[0].contains("[withheld]"), "{output:?} {:?}", model.results());
    assert!(!model.results()[0].contains("the-key"), "{:?}", model.results());
}

#[test]
fn the_canary_proves_it_and_nothing_else_does() {
    let world = guarded("");
    let program = World::claude_program();
    let args = ["guard", "doctor", "--host", "claude", "--live", "--program", program.to_str().unwrap()];
    assert!(world.pintle(&args).contains("proven"));
    world.pintle(&["guard", "uninstall", "--host", "claude", "--yes"]);
    let output = world.command(env!("CARGO_BIN_EXE_pintle")).args(args).output().unwrap();
    assert_eq!(output.status.code(), Some(5), "{output:?}");
}
