//! `pintle hooks set`, `enable`, `disable`, `remove` and `reset`, and how a hook is named.

use super::{GUARD, add, listed, operate};
use crate::env::TestEnv;
use crate::run::scripted;

/// A request with a secret.
const HTTP: &str = "[[hook]]\nname = 'check'\nevent = 'pre_tool_use'\nhandler_type = 'http'\nscope = 'tenant'\n\
                    [hook.config]\nurl = 'https://check.example/a'\nheaders = { Authorization = 'Bearer hush' }\n";

#[test]
fn settings_are_changed_and_the_rest_stays() {
    let env = TestEnv::new();
    add(&env, HTTP);
    let seen =
        operate(&env, &["hooks", "set", "check", "priority=7", "config.url=https://check.example/b", "matcher=^exec$"]);
    assert_eq!(seen.to_string(), "exit 0\n--- out\ncheck ([id]) is version 2 now\n\n");
    let shown = env.pintle(&["hooks", "show", "check"]).out;
    for part in [
        "priority         7\n",
        "config.url       https://check.example/b\n",
        "matcher          ^exec$\n",
        "\"Authorization\":\"********\"",
    ] {
        assert!(shown.contains(part), "{part:?} in {shown}");
    }
    assert!(!shown.contains("hush"), "{shown}");
    for entry in std::fs::read_dir(env.path("data/pintle")).unwrap() {
        let file = entry.unwrap().path();
        let bytes = std::fs::read(&file).unwrap_or_default();
        assert!(!bytes.windows(4).any(|part| part == b"hush"), "{} holds the secret", file.display());
    }
    let seen = operate(&env, &["hooks", "set", "check", "matcher="]);
    assert_eq!((seen.code, &listed(&env)[0]["matcher"]), (Some(0), &pintle_domain::json::Value::Null), "{seen}");
}

#[test]
fn what_cannot_be_set_says_why_and_changes_nothing() {
    let env = TestEnv::new();
    add(&env, HTTP);
    let cases: [&[&str]; 7] = [
        &["priority=high"],
        &["timeout=5"],
        &["timeout_ms=99999"],
        &["version=9"],
        &["config.urll=https://x.example"],
        &["config.url=https://other.example/"],
        &["config.url=http://127.0.0.1/"],
    ];
    let seen = cases.map(|changes| operate(&env, &[&["hooks", "set", "check"], changes].concat()).to_string());
    insta::assert_snapshot!(seen.concat(), @r#"
    exit 2
    --- out
    error: priority: expected a whole number, got "high"

    exit 2
    --- out
    error: a hook has no `timeout`; did you mean `timeout_ms`?

    exit 2
    --- out
    error: hook: timeout_ms 99999 exceeds max 10000

    exit 2
    --- out
    error: `version` is kept by Pintle and cannot be set

    exit 2
    --- out
    error: invalid request: invalid config: unknown field "urll" in config (did you mean "url"?)

    exit 2
    --- out
    error: secret "Authorization" must be sent anew
      hint: a secret is kept only where nothing about its endpoint changes: say it again, such as config.headers.Authorization=…

    exit 2
    --- out
    error: hook: http handler: ssrf check: ssrf: IP 127.0.0.1 is in a blocked range
      hint: `[[agent_hooks.http.allow]]` in the configuration lets hooks reach an internal endpoint
    "#);
    assert_eq!(listed(&env)[0]["version"], 1);
}

#[test]
fn a_hook_is_named_by_its_id_or_by_a_name_of_its_own() {
    let env = TestEnv::new();
    add(&env, &format!("{GUARD}\n{}", GUARD.replace("pre_tool_use", "subagent_start").replace("^exec$", "^spawn$")));
    for args in [&["hooks", "disable", "no-force"][..], &["hooks", "set", "no-force", "priority=1"]] {
        insta::allow_duplicates! {
            insta::assert_snapshot!(operate(&env, args), @r#"
            exit 2
            --- out
            error: 2 rules are called "no-force"
              hint: say which, by its id:
              hint: [id]  script pre_tool_use, scope tenant, priority 10
              hint: [id]  script subagent_start, scope tenant, priority 10
            "#);
        }
    }
    for command in ["show", "test", "history"] {
        let seen = env.pintle(&["hooks", command, "no-force"]);
        assert!(seen.code == Some(2) && seen.err.contains("2 rules are called \"no-force\""), "{seen}");
    }
    let id = listed(&env)[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(operate(&env, &["hooks", "disable", &id]).code, Some(0));
    let states: Vec<String> = listed(&env).iter().map(|hook| hook["state"].to_string()).collect();
    assert_eq!(states, ["\"disabled\"", "\"armed\""]);
    let seen = operate(&env, &["hooks", "remove", "no-forse"]);
    assert!(seen.code == Some(2) && seen.out.contains("did you mean \"no-force\"?"), "{seen}");
}

#[test]
fn what_is_shipped_is_only_switched() {
    let env = TestEnv::new();
    let prompt = "adf28f53-17ef-5f64-9290-9bfa14940397";
    assert!(operate(&env, &["hooks", "enable", "pii-redactor"]).out.contains("2 rules are called"));
    assert_eq!(operate(&env, &["hooks", "enable", prompt]).out, "pii-redactor ([id]) is on\n");
    for args in [&["hooks", "remove", prompt][..], &["hooks", "set", prompt, "priority=1"]] {
        let seen = operate(&env, args);
        assert!(seen.code == Some(2) && seen.out.contains("read-only except for the enabled toggle"), "{seen}");
    }
}

#[test]
fn an_open_breaker_is_shown_and_reset() {
    let call = r#"{"tool_calls": [{"name": "exec", "arguments": {"command": "git push --force"}}]}"#;
    let replies = [call; 6].join(",");
    let env = scripted(&format!(r#"{replies}, {{"text": "I give up.", "repeat": true}}"#), "tools = ['exec']\n");
    add(&env, GUARD);
    assert_eq!(env.pintle(&["run", "--quiet", "push it"]).out, "I give up.\n");
    let list = env.pintle(&["hooks", "list"]).out;
    assert!(list.contains("its circuit breaker tripped at [at] and refuses every matching call"), "{list}");
    let records = env.pintle(&["why", "-v"]).out;
    assert!(records.contains("re-enables it (pintle hooks reset [id])"), "{records}");
    let shown = env.pintle(&["hooks", "show", "no-force"]).out;
    assert!(shown.contains("breaker state    open since [at]"), "{shown}");
    assert!(shown.contains("tripped by system:breaker"), "{shown}");
    let seen = operate(&env, &["hooks", "reset", "no-force"]);
    assert_eq!(seen.out, "no-force ([id]): its circuit breaker is closed and counts from the start; it is on\n");
    assert_eq!(listed(&env)[0]["state"], "armed");
}

#[test]
fn enabled_is_the_switch_also_of_a_hook_whose_breaker_is_open() {
    let call = r#"{"tool_calls": [{"name": "exec", "arguments": {"command": "git push --force"}}]}"#;
    let replies = [call; 6].join(",");
    let env = scripted(&format!(r#"{replies}, {{"text": "I give up.", "repeat": true}}"#), "tools = ['exec']\n");
    add(&env, GUARD);
    assert_eq!(env.pintle(&["run", "--quiet", "push it"]).out, "I give up.\n");
    let seen = operate(&env, &["hooks", "set", "no-force", "enabled=false"]);
    assert_eq!(seen.out, "no-force ([id]) is off; its circuit breaker is closed\n");
    assert_eq!(listed(&env)[0]["state"], "disabled");
    let seen = operate(&env, &["hooks", "set", "no-force", "enabled=true", "priority=7"]);
    insta::assert_snapshot!(seen.out, @r#"
    no-force ([id]) is version 4 now
    no-force ([id]) is on
    "#);
    let row = &listed(&env)[0];
    assert_eq!((&row["state"], &row["priority"]), (&"armed".into(), &7.into()));
}
