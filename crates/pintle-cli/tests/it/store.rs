//! `pintle store`, and what turns, `doctor` and `audit verify` say of a store that somebody else wrote to.

use std::fs;

use domain::store::{Actor, RuleChange};
use store::{Durability, open};

use super::env::{Seen, TestEnv};
use super::rules_in_turns::stage::{Model, runs, says, turn};

const EDITED: &str = "UPDATE agent_hooks SET matcher = '^nothing$' WHERE name = 'no-push'";

/// Surroundings in which one guard is stored, which lets everything pass, and the model wants to run something.
fn guarded() -> (Model, TestEnv) {
    let model = Model::giving(vec![runs("c1", "touch made"), says("Done.")]);
    let env = model.env("default = true\ntools = ['exec']\n", "");
    let draft = env.write(
        "here/hooks.json",
        r#"{"hooks": [{"id": "0193a5b0-7000-7000-8000-0000000000aa", "event": "pre_tool_use", "name": "no-push",
          "handler_type": "script", "scope": "tenant", "enabled": true, "matcher": "^exec$",
          "config": {"source": "function handle(event) { return {decision: 'allow'}; }"}}]}"#,
    );
    let seen = env.on_terminal("y\n", &["import", "goclaw", draft.to_str().unwrap()]);
    assert_eq!(seen.code, Some(0), "{seen}");
    assert_eq!(env.pintle(&["hooks", "list"]).code, Some(0));
    (model, env)
}

fn tell(env: &TestEnv, sql: &str) {
    let script = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).executescript(sys.stdin.read())";
    let file = env.path("data/pintle/pintle.db");
    let seen = env.run(env.command("python3").args(["-c", script, file.to_str().unwrap()]), sql);
    assert_eq!(seen.code, Some(0), "{seen}");
}

fn remove_store(env: &TestEnv) {
    for name in ["pintle.db", "pintle.db-wal", "pintle.db-shm"] {
        fs::remove_file(env.path("data/pintle").join(name)).ok();
    }
}

/// What `verify` and `doctor` say, and their codes.
fn looked_at(env: &TestEnv) -> (Seen, Seen) {
    (env.pintle(&["audit", "verify"]), env.pintle(&["doctor"]))
}

#[test]
fn a_rule_that_somebody_else_edited_refuses_until_a_person_takes_it() {
    let (_model, env) = guarded();
    tell(&env, EDITED);
    let seen = turn(&env, "go");
    assert!(seen.err.contains("`no-push` was changed by something else than Pintle"), "{seen}");
    assert!(!env.path("here/made").exists(), "the call is refused");
    let (verify, doctor) = looked_at(&env);
    assert!(verify.code == Some(1) && verify.out.contains("`no-push` was changed by something else"), "{verify}");
    assert!(doctor.code == Some(5) && doctor.out.contains("`no-push` was changed by something else"), "{doctor}");
    assert_eq!(env.pintle(&["store", "accept"]).code, Some(5), "that is for a person");
    let seen = env.on_terminal("", &["store", "accept"]);
    assert!(seen.code == Some(0) && seen.out.contains("accepted: the stored rule `no-push` was changed"), "{seen}");
    let (verify, doctor) = looked_at(&env);
    assert!(verify.code == Some(0) && !doctor.out.contains("something else"), "{verify}{doctor}");
}

#[test]
fn a_store_that_is_gone_shuts_every_gate_until_it_is_restored_or_forgotten() {
    let (_model, env) = guarded();
    tell(&env, "PRAGMA wal_checkpoint(TRUNCATE)");
    let copy = env.path("copy.db");
    fs::copy(env.path("data/pintle/pintle.db"), &copy).unwrap();
    remove_store(&env);
    let seen = turn(&env, "go");
    let lost = "1 guard is lost (`no-push`), so every gate stays shut; bring the store back with `pintle store restore \
                FILE`, or go on without with `pintle store forget --yes-i-lose-1-guards`";
    assert!(seen.err.contains(lost), "{seen}");
    assert!(!env.path("here/made").exists(), "nothing runs");
    assert_eq!(env.pintle(&["doctor"]).code, Some(5));
    let seen = env.on_terminal("", &["store", "restore", copy.to_str().unwrap()]);
    assert!(seen.code == Some(0) && seen.out.contains("restored: "), "{seen}");
    let seen = env.pintle(&["hooks", "list"]);
    assert!(seen.out.contains("no-push") && !seen.err.contains("lost"), "{seen}");

    // One that is damaged says the same.
    fs::write(env.path("data/pintle/pintle.db"), "no database at all, and long enough to look like one ".repeat(40))
        .unwrap();
    for name in ["pintle.db-wal", "pintle.db-shm"] {
        fs::remove_file(env.path("data/pintle").join(name)).ok();
    }
    let seen = env.pintle(&["hooks", "list"]);
    let seen = if seen.err.contains(lost) { seen } else { turn(&env, "go") };
    assert!(seen.err.contains(lost), "{seen}");
    let seen = env.on_terminal("", &["store", "forget", "--yes-i-lose-2-guards"]);
    assert!(seen.code == Some(2) && seen.out.contains("--yes-i-lose-1-guards"), "{seen}");
    let seen = env.on_terminal("", &["store", "forget", "--yes-i-lose-1-guards"]);
    assert!(seen.code == Some(0) && seen.out.contains("forgotten: 1 guards"), "{seen}");
    assert!(!env.pintle(&["hooks", "list"]).err.contains("lost"));
}

#[test]
fn an_emptied_chain_is_no_cut_by_retention() {
    let (_model, env) = guarded();
    let home = env.path("data/pintle");
    let again = || {
        let store = open("sqlite://pintle.db", &home, Durability::Commit).unwrap();
        let row = store.rules().unwrap().hooks.into_iter().find(|hook| hook.name == "no-push").unwrap();
        let by = Actor { name: "somebody".into(), at: jiff::Timestamp::now() };
        let change = RuleChange::Update { hook: Box::new(row), if_version: None, action: "updated" };
        store.change(vec![change], &by).unwrap();
        drop(store);
        // Signed as the program stops.
        assert_eq!(env.pintle(&["hooks", "list"]).code, Some(0));
    };
    again();
    again();
    assert_eq!(env.pintle(&["audit", "verify"]).code, Some(0));
    tell(&env, "DELETE FROM audit_log WHERE seq <= (SELECT min(seq) FROM audit_checkpoints)");
    let seen = env.pintle(&["audit", "verify"]);
    assert!(seen.code == Some(1) && seen.out.contains("retention has not cut them"), "{seen}");
    tell(&env, "DELETE FROM audit_log");
    let seen = env.pintle(&["audit", "verify"]);
    assert!(seen.code == Some(2) && seen.err.contains("there are no entries, and there were"), "{seen}");
    tell(&env, "DELETE FROM audit_checkpoints");
    let seen = env.pintle(&["audit", "verify"]);
    assert!(seen.code == Some(2) && seen.out.contains("is an older copy of itself"), "{seen}");
}

#[test]
fn only_a_person_does_it() {
    for args in [&["store", "accept"][..], &["store", "forget"], &["store", "restore", "x"]] {
        assert_eq!(TestEnv::new().pintle(args).code, Some(5), "{args:?}");
    }
}
