//! Rules in files: added, changed, taken out, wrong; and rules that come while a turn is worked.

use std::process::Stdio;

use pintle_domain::json::json;

use super::stage::{Model, calls, runs, says, script};
use crate::env::{PINTLE, TestEnv};
use crate::run::scripted;

const RULES: &str = "config/pintle/hooks.d/rules.toml";

fn refuses(reason: &str) -> String {
    script(
        "guard",
        "pre_tool_use",
        "matcher = '^exec$'",
        &format!("return {{ decision: 'block', reason: '{reason}' }};"),
    )
}

/// What a call of `exec` comes to in a turn of its own, as the model reads it.
fn attempt(env: &TestEnv, model: &Model) -> String {
    let seen = env.pintle(&["run", "--quiet", "go"]);
    assert_eq!((seen.code, seen.out.as_str()), (Some(0), "Done.\n"), "{seen}");
    model.asked(model.requests().len() - 1).pop().unwrap()
}

fn attempts(count: usize) -> Model {
    Model::giving((0..count).flat_map(|_| [runs("c1", "echo it ran"), says("Done.")]).collect())
}

const RAN: &str = "tool: it ran\n";

#[test]
fn a_file_is_what_is_in_force() {
    let model = attempts(6);
    let env = model.env("tools = ['exec']\n", "");
    assert_eq!(attempt(&env, &model), RAN);
    let listed = || env.pintle(&["hooks", "list"]).out.matches("file:").count();
    let blocked = |reason: &str| format!("tool: Hook blocked: pre_tool_use: guard: {reason}");
    env.write(RULES, &refuses("first words"));
    assert_eq!((attempt(&env, &model), listed()), (blocked("first words"), 1));
    env.write(RULES, &refuses("second words"));
    assert_eq!((attempt(&env, &model), listed()), (blocked("second words"), 1));
    env.write(RULES, &refuses("third words").replace("scope", "enabled = false\nscope"));
    assert_eq!((attempt(&env, &model), listed()), (RAN.to_owned(), 1));
    env.write(RULES, &refuses("second words"));
    assert_eq!(attempt(&env, &model), blocked("second words"));
    std::fs::remove_file(env.path(RULES)).unwrap();
    assert_eq!((attempt(&env, &model), listed()), (RAN.to_owned(), 0));
}

#[test]
fn what_a_bad_rule_was_to_guard_stays_shut() {
    let bad = refuses("never said").replace("'^exec$'", "'^exec$'\npriorty = 3");
    let others = script("sees", "stop", "", "return { decision: 'allow' };");
    let model = Model::giving(vec![runs("c1", "echo it ran"), runs("c2", "echo it ran"), says("Done.")]);
    let env = model.env("tools = ['exec', 'list_dir']\n", &(bad + &others));
    let seen = env.pintle(&["run", "--session", "s", "go"]);
    assert_eq!((seen.code, seen.out.as_str()), (Some(0), "Done.\n"), "{seen}");
    let why = "invalid request: invalid config: unknown field \"priorty\" (did you mean \"priority\"?)";
    assert!(seen.err.contains(why), "{seen}");
    let told = model.asked(1).pop().unwrap();
    assert_eq!(told, "tool: Hook blocked: pre_tool_use: guard: hook \"guard\" is unavailable", "why is for people");
    let history = env.pintle(&["hooks", "history"]).out;
    assert!(history.contains("sees"), "the other rule of the file works: {history}");
}

#[test]
fn a_bad_rule_about_agents_shuts_nothing_for_others() {
    let model = attempts(4);
    let about = |agents: &str| refuses("never said").replace("'tenant'", &format!("'agent'\nagent_ids = [{agents}]"));
    let env = model.env("tools = ['exec']\n", &about("'gone'"));
    assert_eq!(attempt(&env, &model), RAN, "an agent that is not here has no turns here");
    let seen = env.pintle(&["hooks", "lint"]);
    assert!(seen.code == Some(2) && seen.out.contains("agent not found: \"gone\""), "{seen}");
    let blocked = |why: &str| {
        let told = attempt(&env, &model);
        assert_eq!(told, "tool: Hook blocked: pre_tool_use: guard: hook \"guard\" is unavailable", "why is for people");
        let seen = env.pintle(&["hooks", "lint"]);
        assert!(seen.code == Some(2) && seen.out.contains(why), "{seen}");
    };
    env.write(RULES, &about("'gone', 'main'"));
    blocked("agent not found: \"gone\"");
    env.write(RULES, &about("'mian'"));
    blocked("did you mean \"main\"?");
    env.write(RULES, &about("'main'"));
    let told = attempt(&env, &model);
    assert!(told.starts_with("tool: Hook blocked: pre_tool_use: guard: ") && told.contains("never said"), "{told}");
}

#[test]
fn a_file_that_is_no_file_of_rules_shuts_every_gate() {
    let model = Model::giving(Vec::new());
    let env = model.env("tools = ['exec']\n", "[[hook]\n");
    let seen = env.pintle(&["run", "--quiet", "go"]);
    assert_eq!(seen.code, Some(4), "{seen}");
    assert!(seen.err.contains("rules.toml") && seen.err.contains("hook blocked user_prompt_submit"), "{seen}");
    assert_eq!(model.requests().len(), 0);
}

#[test]
fn a_rule_that_comes_while_a_turn_is_worked_holds_at_its_next_call() {
    let replies = r#"{"when": {"tool_result": "from now on"}, "text": "Stopped."},
        {"tool_calls": [{"name": "exec", "arguments": {"command": "echo go >>ran"}}], "repeat": true}"#;
    let env = scripted(replies, "tools = ['exec']\nmax_iterations = 100000\n");
    let rule = env.write("here/guard.toml", &refuses("from now on"));
    let mut program = env.command(PINTLE);
    program.args(["run", "--quiet", "go"]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = program.spawn().unwrap();
    while !env.path("here/ran").exists() {
        std::thread::yield_now();
    }
    let seen = env.on_terminal("", &["hooks", "add", rule.to_str().unwrap()]);
    assert_eq!(seen.code, Some(0), "{seen}");
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "Stopped.\n", "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn an_agent_writes_no_rules() {
    let write = |id, path| calls(&[(id, "write_file", json!({"path": path, "content": refuses("mine")}))]);
    let model = Model::giving(vec![
        write("c1", "hooks.d/new.toml"),
        write("c2", "hooks.d/rules.toml"),
        write("c3", "hooks.d/deep/new.toml"),
        calls(&[("c4", "read_file", json!({"path": "hooks.d/rules.toml"}))]),
        write("c5", "beside.toml"),
        says("Done."),
    ]);
    let rules = script("sees", "stop", "", "return { decision: 'allow' };");
    let env = model.env("workspace = '.'\ntools = ['write_file', 'read_file']\n", &rules);
    let seen = env.pintle(&["run", "--quiet", "go"]);
    assert_eq!((seen.code, seen.out.as_str()), (Some(0), "Done.\n"), "{seen}");
    let told: Vec<String> = (1..=5).map(|n| model.asked(n).pop().unwrap()).collect();
    assert!(told[..3].iter().all(|said| said.contains("change")), "{told:?}");
    assert!(told[3].contains("sees") && !told[4].contains("change"), "{told:?}");
    let folder = env.path("config/pintle/hooks.d");
    let names: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["rules.toml"]);
    assert_eq!(std::fs::read_to_string(env.path(RULES)).unwrap(), rules);
    assert!(env.path("config/pintle/beside.toml").exists());
}
