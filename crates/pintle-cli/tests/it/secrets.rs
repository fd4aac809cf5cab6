//! `pintle secrets rotate`.

use pintle_domain::store::{Actor, RuleChange};
use pintle_store::{Durability, open};

use super::env::{Seen, TestEnv};

const OLD: &str = "0000000000000000000000000000000000000000000000000000000000000001";
const NEW: &str = "0000000000000000000000000000000000000000000000000000000000000002";

/// A row that came over from elsewhere: its secret is in clear text.
pub(crate) const HOOK: &str = r#"{"hooks": [{"id": "0193a5b0-7000-7000-8000-0000000000aa", "event": "pre_tool_use",
  "handler_type": "http", "scope": "tenant", "name": "web", "enabled": true,
  "config": {"url": "https://example.com/check", "headers": {"Authorization": "Bearer secret"}}}]}"#;

fn authorization(env: &TestEnv) -> String {
    let store = open("sqlite://pintle.db", &env.path("data/pintle"), Durability::Commit).unwrap();
    let hooks = store.rules().unwrap().hooks;
    let hook = hooks.iter().find(|hook| hook.name == "web").unwrap();
    assert_eq!(hook.version, 1);
    hook.config["headers"]["Authorization"].as_str().unwrap().to_owned()
}

/// Runs a command on a terminal with these variables.
pub(crate) fn on_terminal(env: &TestEnv, vars: &[(&str, &str)], args: &[&str]) -> Seen {
    let mut line: Vec<String> = vars.iter().map(|(name, value)| format!("{name}={value}")).collect();
    line.insert(0, "env".into());
    line.push(env.terminal_line(&args.join(" ")).split_once("env -i ").unwrap().1.to_owned());
    env.run(env.command("sh").args(["-c", &line.join(" ")]), "")
}

#[test]
fn secrets_move_to_the_key_of_now() {
    let env = TestEnv::new();
    env.write("here/hooks.json", HOOK);
    let seen = on_terminal(&env, &[("PINTLE_ENCRYPTION_KEY", OLD)], &["import", "goclaw", "hooks.json"]);
    assert_eq!(seen.code, Some(0), "{seen}");
    let before = authorization(&env);
    assert!(before.starts_with("aes-gcm:"), "{before}");
    let without = on_terminal(&env, &[("PINTLE_ENCRYPTION_KEY", NEW)], &["secrets", "rotate"]);
    assert!(without.code == Some(1) && without.out.contains("cannot be opened     1"), "{without}");
    assert!(without.out.contains("config.headers.authorization of hook \"web\": decrypt failed: no key"), "{without}");
    assert_eq!(authorization(&env), before);
    let both = [("PINTLE_ENCRYPTION_KEY", NEW), ("PINTLE_ENCRYPTION_KEYS_OLD", OLD)];
    let seen = on_terminal(&env, &both, &["secrets", "rotate"]);
    assert!(seen.code == Some(0) && seen.out.contains("secrets of hooks     1 of 1 rewritten"), "{seen}");
    let after = authorization(&env);
    assert_ne!(after, before);
    let again = on_terminal(&env, &[("PINTLE_ENCRYPTION_KEY", NEW)], &["secrets", "rotate"]);
    assert!(again.code == Some(0) && again.out.contains("secrets of hooks     0 of 1 rewritten"), "{again}");
    assert_eq!(authorization(&env), after);
}

#[test]
fn what_stands_in_clear_text_is_encrypted_at_the_next_start() {
    let env = TestEnv::new();
    env.write("here/hooks.json", HOOK);
    let with = |args: &[&str]| on_terminal(&env, &[("PINTLE_ENCRYPTION_KEY", OLD)], args);
    assert_eq!(with(&["import", "goclaw", "hooks.json"]).code, Some(0));
    let kept = || {
        let store = env.store();
        let hook = store.rules().unwrap().hooks.into_iter().find(|hook| hook.name == "web").unwrap();
        (store, hook)
    };
    let (store, mut hook) = kept();
    hook.config["headers"]["Authorization"] = "Bearer by hand".into();
    let by = Actor { name: "somebody".into(), at: jiff::Timestamp::now(), reason: String::new() };
    store.change(vec![RuleChange::Update { hook: Box::new(hook), if_version: None, action: "updated" }], &by).unwrap();
    drop(store);
    assert_eq!(with(&["hooks", "list"]).code, Some(0));
    let (_, first) = kept();
    let sealed = first.config["headers"]["Authorization"].as_str().unwrap();
    assert!(sealed.starts_with("aes-gcm:"), "{sealed}");
    assert_eq!(with(&["hooks", "list"]).code, Some(0));
    assert_eq!(kept().1, first, "once");
}

#[test]
fn only_a_person_rotates() {
    let seen = TestEnv::new().pintle(&["secrets", "rotate"]);
    assert!(seen.code == Some(5) && seen.err.contains("only a person may do this"), "{seen}");
}

#[test]
fn a_url_is_shown_without_its_secrets_and_written_back_whole() {
    let env = TestEnv::new();
    let url = "https://example.com/check?token=t0ken#part";
    env.write("here/hooks.json", &HOOK.replace("https://example.com/check", url));
    let vars = [("PINTLE_ENCRYPTION_KEY", OLD)];
    let seen = on_terminal(&env, &vars, &["import", "goclaw", "hooks.json"]);
    assert_eq!(seen.code, Some(0), "{seen}");
    let shown = on_terminal(&env, &vars, &["hooks", "show", "web"]);
    assert!(shown.code == Some(0) && shown.out.contains("https://example.com/check\n"), "{shown}");
    for secret in ["t0ken", "Bearer secret"] {
        assert!(!shown.out.contains(secret), "{shown}");
    }
    let whole = on_terminal(&env, &vars, &["hooks", "show", "web", "--json"]);
    assert!(whole.out.contains(url) && !whole.out.contains("Bearer secret"), "{whole}");
}

#[test]
fn keys_that_another_encryption_key_sealed_are_told_of_and_one_that_appears_voids_none() {
    let env = TestEnv::new();
    let create = ["keys", "create", "k", "--owner", "ann", "--scope", "operator.read"];
    assert_eq!(on_terminal(&env, &[], &create).code, Some(0));
    let listed = |vars: &[(&str, &str)]| on_terminal(&env, vars, &["keys", "list"]).out;
    for vars in [&[][..], &[("PINTLE_ENCRYPTION_KEY", NEW)], &[]] {
        let out = listed(vars);
        assert!(out.contains("operator.read") && !out.contains("keys grant"), "{vars:?}: {out}");
    }
    // A home whose only key is that of the variable.
    let env = TestEnv::new();
    assert_eq!(on_terminal(&env, &[("PINTLE_ENCRYPTION_KEY", OLD)], &create).code, Some(0));
    for vars in [&[("PINTLE_ENCRYPTION_KEY", NEW)][..], &[]] {
        let out = on_terminal(&env, vars, &["keys", "list"]).out.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(out.contains("1 of 1 keys grant nothing: another encryption key"), "{vars:?}: {out}");
        assert!(!out.contains("there are no keys"), "{vars:?}: {out}");
    }
    assert!(on_terminal(&env, &[("PINTLE_ENCRYPTION_KEY", OLD)], &["keys", "list"]).out.contains("operator.read"));
}

#[test]
fn a_rotation_says_that_the_file_of_the_home_still_holds() {
    let env = TestEnv::new();
    let create = ["keys", "create", "k", "--owner", "ann", "--scope", "operator.read"];
    assert_eq!(on_terminal(&env, &[], &create).code, Some(0));
    let file = env.path("data/pintle/encryption.key");
    assert!(file.exists());
    let rotated = || on_terminal(&env, &[("PINTLE_ENCRYPTION_KEY", NEW)], &["secrets", "rotate"]);
    let said = |seen: &Seen| {
        let all = format!("{} {}", seen.out, seen.err).split_whitespace().collect::<Vec<_>>().join(" ");
        all.contains("still holds beside the new key")
    };
    let seen = rotated();
    assert!(seen.code == Some(0) && said(&seen), "{seen}");
    std::fs::remove_file(file).unwrap();
    let seen = rotated();
    assert!(seen.code == Some(0) && !said(&seen), "{seen}");
}
