//! Judges: what they cost, and what costs nothing.

use pintle_domain::json::{Value, json};
use pintle_testkit::http::StubAnswer;

use super::stage::{Model, calls, history, runs, says, turn};
use crate::env::TestEnv;

const JUDGE: &str = "[[hook]]\nname = 'judge'\nevent = 'pre_tool_use'\nhandler_type = 'prompt'\nscope = 'tenant'\n\
                     matcher = '^exec$'\n[hook.config]\nprompt_template = 'Be kind.'\nprovider = 'PROVIDER'\n";

/// What is spent or reserved.
fn used(env: &TestEnv) -> u64 {
    let budget: Value = serde_json::from_str(&env.raw(&["budget", "get", "--json"])).unwrap();
    budget["used"].as_u64().unwrap()
}

/// A home whose judge is `provider`; nobody listens at `gone`.
fn env(model: &Model, provider: &str) -> TestEnv {
    let agent = "tools = ['exec']\n[providers.gone]\nkind = 'openai'\nbase_url = 'http://127.0.0.1:1'\n";
    model.env(agent, &JUDGE.replace("PROVIDER", provider))
}

#[test]
fn a_judge_that_cannot_be_reached_costs_nothing_and_one_that_fails_does() {
    let model = Model::giving(vec![runs("c1", "echo hi >>ran"), says("Well.")]);
    let env = env(&model, "gone");
    assert_eq!(turn(&env, "go").code, Some(0));
    assert_eq!((model.requests().len(), used(&env)), (2, 0), "no byte of the question left");
    let row = history(&env).pop().unwrap();
    assert_eq!(row["decision"], "error", "{row}");
    // This one reads the question, and fails.
    let model = Model::giving(vec![runs("c1", "echo hi >>ran"), StubAnswer::new(400, "{}"), says("Well.")]);
    let env = self::env(&model, "here");
    assert_eq!(turn(&env, "go").code, Some(0));
    assert!(used(&env) > 512, "what was sent stays booked");
}

#[test]
fn doctor_asks_no_judge_unless_it_is_told_to() {
    let decide = json!({"decision": "allow", "reason": "harmless"});
    let models = || StubAnswer::json(r#"{"data": []}"#);
    let model = Model::giving(vec![models(), calls(&[("d1", "decide", decide)]), models(), models()]);
    let env = model.env("tools = ['exec']\n", &JUDGE.replace("PROVIDER", "here"));
    let asked = || model.requests().iter().filter(|request| request["messages"].is_array()).count();
    let seen = env.pintle(&["doctor"]);
    let line = seen.out.lines().find(|line| line.contains(" judge ")).unwrap_or_else(|| panic!("{seen}"));
    assert!(
        line.starts_with("! guard") && line.contains("not asked: here/m would judge; `pintle doctor --judges`"),
        "{line}"
    );
    assert!(seen.out.ends_with("guards armed 0/1, not asked 1\n"), "what nobody asked is not armed: {seen}");
    assert_eq!((seen.code, asked(), used(&env)), (Some(0), 0, 0), "{seen}");
    let seen = env.pintle(&["doctor", "--judges"]);
    let line = seen.out.lines().find(|line| line.contains(" judge ")).unwrap_or_else(|| panic!("{seen}"));
    assert!(line.starts_with("✓ guard") && line.contains("answered continue"), "{line}");
    assert_eq!((seen.code, asked()), (Some(0), 1), "{seen}");
    assert!(seen.out.ends_with("guards armed 1/1\n"), "{seen}");
    assert!(used(&env) > 0);
}

#[test]
fn a_budget_that_refuses_says_what_is_needed_and_when_there_is_more() {
    let model = Model::giving(vec![runs("c1", "echo hi >>ran"), says("Well.")]);
    let env = env(&model, "here");
    assert_eq!(env.on_terminal("", &["budget", "set", "17"]).code, Some(0));
    assert_eq!(turn(&env, "go").code, Some(0));
    let row = history(&env).pop().unwrap();
    let need = regex::Regex::new(
        r"^tenant budget exceeded: \d+ tokens needed, 17 of 17 left to tenant default until \d{4}-\d\d-01$",
    );
    assert!(need.unwrap().is_match(row["reason"].as_str().unwrap()), "{row}");
}

#[test]
fn a_judge_that_the_budget_let_nobody_ask_is_not_armed() {
    let models = || StubAnswer::json(r#"{"data": []}"#);
    let model = Model::giving(vec![models()]);
    let env = env(&model, "here");
    assert_eq!(env.on_terminal("", &["budget", "set", "17"]).code, Some(0));
    let seen = env.pintle(&["doctor", "--judges"]);
    let line = seen.out.lines().find(|line| line.contains(" judge ")).unwrap_or_else(|| panic!("{seen}"));
    assert!(line.starts_with("✗ guard") && line.contains("unproven at judge: budget spent: "), "{line}");
    assert!(line.contains("17 of 17 left to tenant default"), "{line}");
    assert!(seen.code == Some(5) && seen.out.contains("guards armed 0/1"), "{seen}");
    let why = env.pintle(&["why", "--hook", "judge"]);
    assert!(why.err.contains("no hook \"judge\" has records"), "nothing was asked, so nothing is recorded: {why}");
}

#[test]
fn what_the_budget_stopped_is_told_once_and_did_not_run() {
    let model = Model::giving(vec![runs("c1", "echo hi >>ran"), says("Well.")]);
    let env = env(&model, "here");
    assert_eq!(env.on_terminal("", &["budget", "set", "17"]).code, Some(0));
    assert_eq!(turn(&env, "go").code, Some(0));
    let why = env.pintle(&["why"]).out;
    assert!(why.contains("1 failure of a hook; no hook ran\n"), "{why}");
    assert!(why.contains("skipped: budget spent") && !why.contains("skipped: 1 budget spent"), "{why}");
}

#[test]
fn a_script_that_threw_ran_and_is_said_to_have_thrown() {
    let throws = "[[hook]]\nname = 'throws'\nevent = 'pre_tool_use'\nhandler_type = 'script'\nscope = 'tenant'\n\
                  matcher = '^exec$'\n[hook.config]\nsource = 'function handle() { throw new Error(\"broken\") }'\n";
    let model = Model::giving(vec![runs("c1", "echo hi >>ran"), says("Well.")]);
    let env = model.env("tools = ['exec']\n", throws);
    assert_eq!(turn(&env, "go").code, Some(0));
    let why = env.pintle(&["why"]).out;
    assert!(why.contains("1 failure of a hook; 1 hook ran once, "), "{why}");
    assert!(why.contains("! throws the script threw: Error: broken → deny"), "{why}");
    assert!(why.contains("it threw an error") && !why.contains("broke the protocol"), "{why}");
    let every = env.pintle(&["why", "-v"]).out;
    assert!(every.contains(" threw ") && !every.contains("protocol_error"), "{every}");
    let row = history(&env).pop().unwrap();
    assert_eq!((&row["decision"], &row["error"]), (&"error".into(), &"script threw: Error: broken".into()), "{row}");
}
