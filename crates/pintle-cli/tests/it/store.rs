//! `pintle store`, and what turns, `doctor` and `audit verify` say of a store that somebody else wrote to.

use std::fs;

use pintle_domain::store::{Actor, RuleChange};
use pintle_store::{Durability, open};

use super::env::{Seen, TestEnv};
use super::rules_in_turns::stage::{Model, runs, says, turn};

const EDITED: &str = "UPDATE agent_hooks SET matcher = '^nothing$' WHERE name = 'no-push'";

/// Surroundings in which one guard is stored, which lets everything pass, and the model wants to run something.
pub(crate) fn guarded() -> (Model, TestEnv) {
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

pub(crate) fn tell(env: &TestEnv, sql: &str) {
    let script = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).executescript(sys.stdin.read())";
    let file = env.path("data/pintle/pintle.db");
    let seen = env.run(env.command("python3").args(["-c", script, file.to_str().unwrap()]), sql);
    assert_eq!(seen.code, Some(0), "{seen}");
}

pub(crate) fn remove_store(env: &TestEnv) {
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
    assert!(seen.err.contains("`no-push` was changed by something other than Pintle"), "{seen}");
    assert!(!env.path("here/made").exists(), "the call is refused");
    let (verify, doctor) = looked_at(&env);
    assert!(verify.code == Some(1) && verify.out.contains("`no-push` was changed by something other"), "{verify}");
    assert!(doctor.code == Some(5) && doctor.out.contains("`no-push` was changed by something other"), "{doctor}");
    assert_eq!(env.pintle(&["serve", "--check"]).code, Some(5), "what it guards stays shut");
    assert_eq!(env.pintle(&["store", "accept"]).code, Some(5), "that is for a person");
    let seen = env.on_terminal("", &["store", "accept"]);
    assert!(seen.code == Some(0) && seen.out.contains("accepted: the stored rule `no-push` was changed"), "{seen}");
    let (verify, doctor) = looked_at(&env);
    assert!(verify.code == Some(0) && !doctor.out.contains("something other"), "{verify}{doctor}");
}

#[test]
fn a_rule_that_somebody_deleted_with_an_entry_of_its_own_refuses_until_a_person_takes_it() {
    let (_model, env) = guarded();
    // Pintle itself, without the keys of the host: each hash fits.
    let store = open("sqlite://pintle.db", &env.path("data/pintle"), Durability::Commit).unwrap();
    let rule = store.rules().unwrap().hooks.into_iter().find(|hook| hook.name == "no-push").unwrap();
    let by = Actor { name: "somebody".into(), at: jiff::Timestamp::now(), reason: String::new() };
    store.change(vec![RuleChange::delete(rule.id)], &by).unwrap();
    drop(store);
    let wrong = "`no-push` was changed by something other than Pintle, and its entry in the audit chain has no seal";
    for _ in 0..2 {
        let seen = turn(&env, "go");
        assert!(seen.err.contains(wrong), "{seen}");
        assert!(!env.path("here/made").exists(), "the call is refused");
        let (verify, doctor) = looked_at(&env);
        assert!(verify.code == Some(1) && verify.out.contains(wrong), "{verify}");
        assert!(doctor.code == Some(5) && doctor.out.contains(wrong), "{doctor}");
    }
    let seen = env.on_terminal("", &["store", "accept"]);
    assert!(seen.code == Some(0) && seen.out.contains("accepted: the stored rule `no-push` was changed"), "{seen}");
    let (verify, doctor) = looked_at(&env);
    assert!(verify.code == Some(0) && !doctor.out.contains("something other"), "{verify}{doctor}");
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
    fs::write(env.path("here/audit.jsonl"), "{\"type\":\"entry\"}\n").unwrap();
    let seen = env.on_terminal("", &["store", "restore", "audit.jsonl"]);
    assert!(seen.code == Some(2) && seen.out.contains("restores no rule") && seen.out.contains("a copy of"), "{seen}");
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
    let again = || {
        let store = env.store();
        let row = store.rules().unwrap().hooks.into_iter().find(|hook| hook.name == "no-push").unwrap();
        let by = Actor { name: "somebody".into(), at: jiff::Timestamp::now(), reason: String::new() };
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

/// The row of the chain about the guard.
const OF_GUARD: &str = "body LIKE '%\"name\":\"no-push\"%'";

#[test]
fn a_row_in_the_middle_that_was_altered_is_told_by_doctor_too() {
    let (_model, env) = guarded();
    assert!(!turn(&env, "go").err.contains("shut"), "there are rows behind it");
    let (verify, doctor) = looked_at(&env);
    assert!(
        verify.code == Some(0) && doctor.out.contains("the last signature of 2 chains is good"),
        "{verify}{doctor}"
    );
    tell(&env, &format!("UPDATE audit_log SET body = replace(body, 'no-push', 'no-pull') WHERE {OF_GUARD}"));
    let (verify, doctor) = looked_at(&env);
    assert!(verify.code == Some(1) && verify.out.contains("`body` was altered"), "{verify}");
    assert!(doctor.code == Some(1) && doctor.out.contains("`body` was altered"), "{doctor}");
    assert!(doctor.out.contains("tenant default: row "), "{doctor}");
}

#[test]
fn a_newest_row_that_was_written_anew_is_no_older_copy() {
    let (_model, env) = guarded();
    tell(&env, "UPDATE audit_log SET hash = prev WHERE seq = (SELECT max(seq) FROM audit_log)");
    let written = "was rewritten by something other than Pintle: row ";
    let seen = turn(&env, "go");
    assert!(seen.err.contains("the end of the audit chain of the store at ") && seen.err.contains(written), "{seen}");
    assert!(!seen.err.contains("older copy") && !env.path("here/made").exists(), "{seen}");
    let (verify, doctor) = looked_at(&env);
    assert!(verify.out.contains(written) && doctor.out.contains(written), "{verify}{doctor}");
    let seen = env.on_terminal("", &["store", "accept"]);
    assert!(seen.code == Some(0) && seen.out.contains("accepted: an audit chain whose end was rewritten"), "{seen}");
}

/// Says something else in the first row of the chain, hashes all rows behind it anew, and takes the signatures.
const FORGE: &str = "
import hashlib, sqlite3, sys
db = sqlite3.connect(sys.argv[1])
(tenant,) = db.execute(\"SELECT tenant_id FROM audit_log WHERE body LIKE '%no-push%'\").fetchone()
rows = db.execute('SELECT seq, body, prev FROM audit_log WHERE tenant_id = ? ORDER BY seq', (tenant,)).fetchall()
prev = rows[0][2]
for seq, body, _ in rows:
    body = body.replace('no-push', 'no-pull')
    hash = hashlib.sha256((prev + chr(10) + body).encode()).hexdigest()
    db.execute('UPDATE audit_log SET body = ?, prev = ?, hash = ? WHERE tenant_id = ? AND seq = ?',
               (body, prev, hash, tenant, seq))
    prev = hash
db.execute('DELETE FROM audit_checkpoints')
db.commit()
";

#[test]
fn a_forged_chain_is_neither_signed_nor_exported_in_silence() {
    let (_model, env) = guarded();
    assert_eq!(env.pintle(&["audit", "verify"]).code, Some(0));
    let quiet = env.pintle(&["audit", "export", "-o", "before.jsonl"]);
    assert!(!quiet.err.contains("in question"), "{quiet}");
    let store = env.path("data/pintle/pintle.db");
    assert!(env.command("python3").args(["-c", FORGE]).arg(store).status().unwrap().success());
    let seen = turn(&env, "go");
    assert!(seen.err.contains("is another one; every gate stays shut"), "{seen}");
    // However often something is written, it is told once that it stays unsigned.
    assert_eq!(seen.err.matches("security.audit.not_sealed: ").count(), 1, "{seen}");
    let seen = env.pintle(&["audit", "export", "-o", "audit.jsonl"]);
    let warned = seen.err.lines().filter(|line| line.contains("the exported record is in doubt: ")).collect::<Vec<_>>();
    assert!(seen.code == Some(0) && warned.len() == 1 && warned[0].contains("pintle store accept"), "{seen}");
    let key = env.path("data/pintle/audit-signing.pub");
    let proof = || env.pintle(&["audit", "verify", "audit.jsonl", "--key", key.to_str().unwrap()]);
    let seen = proof();
    assert!(seen.out.contains("nothing is proven") && !seen.out.contains("proven up to"), "{seen}");
    assert_eq!(env.on_terminal("", &["store", "accept"]).code, Some(0));
    assert_eq!(env.pintle(&["hooks", "list"]).code, Some(0));
    let seen = env.pintle(&["audit", "export", "-o", "audit.jsonl"]);
    assert!(!seen.err.contains("in question"), "{seen}");
    assert!(proof().out.contains("proven up to row"), "what a person took is signed");
}

#[test]
fn signatures_that_are_gone_are_named_until_a_person_takes_it() {
    let (_model, env) = guarded();
    assert_eq!(env.pintle(&["audit", "verify"]).code, Some(0));
    tell(&env, "DELETE FROM audit_checkpoints");
    let gone = "were deleted by something other than Pintle";
    for _ in 0..2 {
        let seen = turn(&env, "go");
        assert!(!seen.err.contains("shut"), "its rows are those that were known: {seen}");
        let (verify, doctor) = looked_at(&env);
        assert!(
            verify.code == Some(1) && verify.out.contains(gone) && verify.out.contains("is not at all"),
            "{verify}"
        );
        assert!(doctor.code == Some(1) && doctor.out.contains(gone), "{doctor}");
    }
    let seen = env.pintle(&["audit", "export", "-o", "audit.jsonl"]);
    assert!(seen.err.contains(gone) && seen.err.contains("pintle store accept"), "{seen}");
    let seen = env.on_terminal("", &["store", "accept"]);
    assert!(seen.code == Some(0) && seen.out.contains("accepted: signatures of the audit chain"), "{seen}");
    // Signed as the program stops.
    assert_eq!(env.pintle(&["hooks", "list"]).code, Some(0));
    let (verify, doctor) = looked_at(&env);
    assert!(verify.code == Some(0) && verify.out.contains("proven up to row"), "{verify}");
    assert!(!doctor.out.contains(gone), "{doctor}");
}

/// Spoils the page in which sessions begin.
const SPOIL: &str = "
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute('PRAGMA wal_checkpoint(TRUNCATE)').fetchall()
(page,) = db.execute('SELECT rootpage FROM sqlite_schema WHERE name = ?', ('sessions',)).fetchone()
(size,) = db.execute('PRAGMA page_size').fetchone()
db.close()
with open(sys.argv[1], 'r+b') as file:
    file.seek((page - 1) * size)
    file.write(bytes([0xa5]) * size)
";

#[test]
fn a_page_that_no_canary_reads_is_looked_at_too() {
    let (_model, env) = guarded();
    let store = env.path("data/pintle/pintle.db");
    assert!(env.command("python3").args(["-c", SPOIL]).arg(&store).status().unwrap().success());
    let seen = env.pintle(&["doctor"]);
    assert!(seen.code != Some(0) && seen.out.contains("is damaged or no SQLite database"), "{seen}");
    let seen = env.pintle(&["serve", "--check"]);
    assert!(seen.code == Some(1) && seen.err.contains("pintle store restore FILE"), "{seen}");
}

#[test]
fn only_a_person_does_it() {
    for args in [&["store", "accept"][..], &["store", "forget"], &["store", "restore", "x"]] {
        assert_eq!(TestEnv::new().pintle(args).code, Some(5), "{args:?}");
    }
}
