//! Hooks that only observe, at the end of a short run: they hear of it all the same.

use pintle_domain::json::Value;

use crate::env::TestEnv;
use crate::run::scripted;

/// A turn with one call, which waits for a hook if it is told to.
const WAITS: &str = r#"{"tool_calls": [{"name": "exec", "arguments": {
    "command": "test ! -e wait || until test -e heard; do sleep 0.05; done"}}]}, {"text": "Done."}"#;

fn with(outbox: &str, command: &str) -> TestEnv {
    let env = scripted(WAITS, &format!("tools = ['exec']\n[agent_hooks]\noutbox = '{outbox}'\n"));
    let hook = format!(
        "[[hook]]\nname = 'tells'\nevent = 'stop'\nhandler_type = 'command'\nscope = 'tenant'\n\
         [hook.config]\ncommand = '''{command}'''\n"
    );
    let file = env.write("here/rules.toml", &hook);
    let seen = env.on_terminal("", &["hooks", "add", file.to_str().unwrap()]);
    assert_eq!(seen.code, Some(0), "{}{}", seen.out, seen.err);
    env
}

fn runs(env: &TestEnv) {
    let seen = env.pintle(&["run", "--quiet", "go"]);
    assert_eq!((seen.code, seen.out.as_str()), (Some(0), "Done.\n"), "{}", seen.err);
}

/// The rows of the hook, oldest first: what was decided, and after how many attempts more than one.
fn rows(env: &TestEnv) -> Vec<(String, u64)> {
    let page: Value = serde_json::from_str(&env.raw(&["hooks", "history", "tells", "--json"])).unwrap();
    let rows = page["executions"].as_array().unwrap().iter().rev();
    rows.map(|row| (row["decision"].as_str().unwrap().to_owned(), row["retry"].as_u64().unwrap())).collect()
}

#[test]
fn a_slow_observer_hears_of_the_end_of_a_short_run() {
    for outbox in ["memory", "durable"] {
        let env = with(outbox, "sleep 0.5; cat >heard");
        runs(&env);
        let heard: Value = serde_json::from_str(&std::fs::read_to_string(env.path("here/heard")).unwrap()).unwrap();
        assert_eq!((&heard["hook_event_name"], &heard["final_text"]), (&"stop".into(), &"Done.".into()), "{outbox}");
        assert_eq!(rows(&env), [("allow".to_owned(), 0)], "{outbox}");
    }
}

#[test]
fn what_failed_in_one_run_is_tried_again_in_the_next() {
    let env = with("durable", "echo >>tries; if [ $(wc -l <tries) = 1 ]; then exit 1; fi; touch heard");
    let seen = env.pintle(&["run", "--quiet", "go"]);
    let log = "hooks.observer_failed hook=\"tells\" event=\"stop\" error=\"exited with status 1\"";
    assert!(seen.err.contains(log), "{}", seen.err);
    assert!(seen.err.contains("1 job of an observer waits to be sent"), "{}", seen.err);
    assert_eq!(rows(&env), [("error".to_owned(), 0)], "there are attempts left");
    let why = env.pintle(&["why", "-v", "--last"]).out;
    assert!(why.contains("hook: command exited 1"), "{why}");
    let doctor = env.pintle(&["doctor"]).out;
    assert!(doctor.contains("1 job of an observer waits to be sent"), "{doctor}");
    env.write("here/wait", "");
    runs(&env);
    let mut rows = rows(&env);
    rows.sort();
    assert_eq!(rows, [("allow".to_owned(), 0), ("allow".to_owned(), 1), ("error".to_owned(), 0)]);
    assert_eq!(std::fs::read_to_string(env.path("here/tries")).unwrap(), "\n\n\n");
}

#[test]
fn the_next_short_run_sends_what_is_due_before_it_ends() {
    let env = with("durable", "echo >>tries; test $(wc -l <tries) != 1");
    runs(&env);
    assert_eq!(rows(&env), [("error".to_owned(), 0)], "it failed, and is due again in a second");
    // Due now, whatever the clock says.
    let store =
        pintle_store::open("sqlite://pintle.db", &env.path("data/pintle"), pintle_store::Durability::Commit).unwrap();
    store.take_due("2099-01-01T00:00:00Z".parse().unwrap(), "2026-01-01T00:00:00Z".parse().unwrap(), 10).unwrap();
    drop(store);
    runs(&env);
    let mut rows = rows(&env);
    rows.sort();
    assert_eq!(rows, [("allow".to_owned(), 0), ("allow".to_owned(), 1), ("error".to_owned(), 0)]);
    assert!(!env.pintle(&["doctor"]).out.contains("to be sent"), "nothing is left");
}

#[test]
fn what_an_observer_said_or_why_it_failed_is_explained() {
    let explains = |command: &str| {
        let env = with("memory", command);
        env.write("here/heard", "");
        let seen = env.pintle(&["run", "--quiet", "go"]);
        let why = env.pintle(&["why", "-v", "--last"]).out;
        let line = why.lines().find(|line| line.contains("tells")).unwrap().trim().to_owned();
        let all: Value = serde_json::from_str(&env.raw(&["why", "--last", "--json"])).unwrap();
        let mut hooks = all.as_array().unwrap().iter().flat_map(|event| event["hooks"].as_array().unwrap());
        let hook = hooks.rfind(|hook| hook["hook"] == "tells").unwrap().clone();
        assert!(hook["duration_ms"].is_number(), "{hook}");
        (seen.err, line, hook)
    };
    let (err, line, hook) = explains("echo boom >&2; exit 3");
    let log = "hooks.observer_failed hook=\"tells\" event=\"stop\" error=\"exited with status 3\"";
    assert!(err.contains(log), "{err}");
    assert!(line.ends_with("hook: command exited 3: boom → continue"), "{line}");
    assert_eq!((&hook["fault"], &hook["verdict"]), (&"bad_exit".into(), &"continue".into()));
    let (err, line, hook) = explains(r#"echo '{"decision":"block","reason":"late"}'"#);
    assert!(!err.contains("observer_failed"), "{err}");
    assert!(line.ends_with("answered block, which decides nothing here: late"), "{line}");
    assert_eq!((hook.get("fault"), hook.get("verdict")), (None, None));
    let (_, line, _) = explains("true");
    assert!(line.starts_with("tells") && line.ends_with(']'), "{line}");
}
