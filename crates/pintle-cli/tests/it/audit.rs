//! `pintle audit`.

use std::sync::Arc;
use std::sync::mpsc::channel;

use jiff::Timestamp;
use pintle_domain::checkpoint::CheckpointKind;
use pintle_domain::execution::Execution;
use pintle_domain::id::TenantId;
use pintle_domain::json::Object;
use pintle_domain::rule::{Decision, HandlerType};
use pintle_store::keyring::signing::SigningKey;
use pintle_store::{Durability, StoreKeys, open_with};

use super::env::TestEnv;
use super::run::{DONE, scripted};

fn execution(number: u32) -> Execution {
    let uuid = |kind: u32| format!("0193a5b0-7000-7000-8000-{:012x}", u64::from(kind) << 32 | u64::from(number));
    Execution {
        id: uuid(1),
        hook_id: None,
        hook_name: "no-rm".into(),
        hook_version: 1,
        handler_type: HandlerType::Script,
        tenant_id: TenantId::default_tenant(),
        agent_id: None,
        session_id: None,
        turn_id: None,
        event_id: uuid(2),
        trace_id: None,
        event: CheckpointKind::PreToolUse,
        tool_name: Some("exec".into()),
        tool_call_id: None,
        input_hash: None,
        decision: if number.is_multiple_of(2) { Decision::Allow } else { Decision::Block },
        reason: None,
        duration_ms: 1,
        retry: 0,
        dedup_key: None,
        error: None,
        error_detail: None,
        output: None,
        metadata: Object::new(),
        created_at: Timestamp::from_second(1_700_000_000 + i64::from(number)).unwrap(),
    }
}

/// A store with so many entries, signed at the end.
fn with_entries(rows: u32) -> TestEnv {
    let env = TestEnv::new();
    let home = env.path("data/pintle");
    let signing = Some(Arc::new(SigningKey::open_or_create(&home).unwrap()));
    let sealing = StoreKeys { signing, ..StoreKeys::default() };
    let store = open_with("sqlite://pintle.db", &home, Durability::Commit, sealing).unwrap();
    let (say, hear) = channel();
    store.keep_executions((1..=rows).map(execution).collect(), Box::new(move |kept| say.send(kept).unwrap()));
    hear.recv().unwrap().unwrap();
    assert_eq!(store.audited().unwrap().len(), 1);
    env
}

#[test]
fn the_newest_entries_a_line_each() {
    let env = with_entries(30);
    let seen = env.pintle(&["audit", "tail", "-n", "2"]);
    insta::assert_snapshot!(seen, @"
    exit 0
    --- out
    2023-11-14 22:13:49 UTC  record    pre_tool_use exec  block  no-rm  #29
    2023-11-14 22:13:50 UTC  record    pre_tool_use exec  allow  no-rm  #30
    ");
    let body: pintle_domain::json::Value = serde_json::from_str(&env.raw(&["audit", "tail", "-n1", "--json"])).unwrap();
    assert_eq!((&body["seq"], &body["data"]["hook_name"]), (&30.into(), &"no-rm".into()));
    let unknown = env.pintle(&["audit", "tail", "--tenant", "defalt"]);
    assert!(unknown.code == Some(2) && unknown.err.contains("did you mean \"default\"?"), "{unknown}");
}

#[test]
fn what_is_exported_is_verified_elsewhere_with_the_public_key_alone() {
    let env = with_entries(1500);
    let seen = env.pintle(&["audit", "export", "-o", "audit.jsonl"]);
    assert!(seen.code == Some(0) && seen.out.is_empty(), "{seen}");
    assert!(seen.err.contains("1500 entries, 1 signature") && seen.err.contains("audit-signing.pub"), "{seen}");
    assert_eq!(env.raw(&["audit", "export"]), std::fs::read_to_string(env.path("here/audit.jsonl")).unwrap());
    let key = env.path("data/pintle/audit-signing.pub");
    std::fs::copy(&key, env.path("here/trusted.pub")).unwrap();
    std::fs::remove_dir_all(env.path("data/pintle")).unwrap();
    let seen = env.pintle(&["audit", "verify", "audit.jsonl", "--key", "trusted.pub"]);
    assert!(
        seen.code == Some(0) && seen.out.contains("1500 rows (1 to 1500)") && seen.out.contains("intact"),
        "{seen}"
    );
    assert!(seen.out.contains("proven up to row 1500"), "{seen}");
    assert!(!env.path("data/pintle").exists(), "nothing was opened");
}

#[test]
fn every_alteration_of_a_file_is_named() {
    let env = with_entries(20);
    let lines: Vec<String> = env.raw(&["audit", "export"]).lines().map(str::to_owned).collect();
    let check = |name: &str, lines: &[String], said: &str| {
        let file = env.write(&format!("here/{name}"), &(lines.join("\n") + "\n"));
        let seen = env.pintle(&["audit", "verify", &file.display().to_string()]);
        assert!(seen.code == Some(1) && seen.out.contains(said), "{name}: {seen}");
        assert!(seen.out.contains("proven"), "{name}: {seen}");
    };
    let mut altered = lines.clone();
    altered[4] = altered[4].replace(r#"\"decision\":\"block\""#, r#"\"decision\":\"allow\""#);
    check("altered", &altered, "row 5: `body` was altered");
    let mut dropped = lines.clone();
    dropped.remove(9);
    check("dropped", &dropped, "row 10 is missing");
    let mut moved = lines.clone();
    moved.swap(2, 7);
    check("moved", &moved, "is out of order");
    check("cut", &[&lines[..15], &lines[20..]].concat(), "rows 16 to 20 are missing: there is a signed checkpoint");
    let mut torn = lines.clone();
    torn[3].truncate(20);
    check("torn", &torn, "line 4: ");
}

#[test]
fn input_that_cannot_be_read_is_another_code() {
    let env = with_entries(3);
    let check = |args: &[&str], said: &str| {
        let seen = env.pintle(&[&["audit", "verify"], args].concat());
        assert!(seen.code == Some(2) && seen.err.contains(said), "{args:?}: {seen}");
    };
    env.write("here/letter.txt", "Dear Ada,\n");
    env.write("here/empty.jsonl", "");
    env.write("here/bad.pub", "ed25519:nothing\n");
    check(&["none.jsonl"], "none.jsonl cannot be read");
    check(&["letter.txt"], "letter.txt holds no entry");
    check(&["empty.jsonl"], "empty.jsonl holds no entry");
    check(&["letter.txt", "--key", "bad.pub"], "bad.pub: public keys: line 1");
    check(&["letter.txt", "--key", "none.pub"], "none.pub cannot be read");
}

#[test]
fn the_store_itself_is_verified_and_a_row_that_was_changed_in_it_is_named() {
    let env = with_entries(20);
    insta::assert_snapshot!(env.pintle(&["audit", "verify"]), @"
    exit 0
    --- out
    tenant default: 20 rows (1 to 20), 1 checkpoint, intact
      proven up to row 20: 20 rows

    --- err
    the public key is this machine's own, which anyone who can write here could have replaced: `--key FILE` checks against a copy that you keep elsewhere
    ");
    let changed = env.command("python3").args(["-c", CHANGE]).arg(env.path("data/pintle/pintle.db")).status().unwrap();
    assert!(changed.success());
    let seen = env.pintle(&["audit", "verify"]);
    assert!(seen.code == Some(1) && seen.out.contains("row 7: `body` was altered"), "{seen}");
    let fresh = TestEnv::new().pintle(&["audit", "verify"]);
    assert!(fresh.code == Some(0) && fresh.err.contains("there are no entries"), "{fresh}");
}

/// Changes one row behind the program's back.
const CHANGE: &str = "
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute(\"UPDATE audit_log SET body = replace(body, 'no-rm', 'no-op') WHERE seq = 7\")
db.commit()
";

/// Takes the events of one turn, counted from the first, behind the program's back.
const TAKE: &str = "
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
turns = [number for (number,) in db.execute('SELECT number FROM turns ORDER BY number')]
db.execute('DELETE FROM events WHERE turn = ?', (turns[int(sys.argv[2])],))
db.commit()
";

#[test]
fn a_turn_whose_events_somebody_took_is_named() {
    let call = r#"{"tool_calls": [{"name": "list_dir", "arguments": {"path": "."}}]}"#;
    let env = scripted(&format!("{call}, {DONE}"), "");
    for session in ["one", "two", "three", "four"] {
        assert_eq!(env.pintle(&["run", "--quiet", "--session", session, "go"]).code, Some(0));
    }
    let take = |turn: &str| {
        let store = env.path("data/pintle/pintle.db");
        assert!(env.command("python3").args(["-c", TAKE]).arg(store).arg(turn).status().unwrap().success());
        env.pintle(&["audit", "verify"])
    };
    assert_eq!(env.pintle(&["audit", "verify"]).code, Some(0));
    let seen = take("0");
    assert_eq!(seen.code, Some(0), "as retention does: {seen}");
    let seen = take("2");
    let said = "1 event of its calls gone from the store, and retention did not take them";
    assert!(seen.code == Some(1) && seen.out.matches(said).count() == 1, "{seen}");
}

#[test]
fn a_stretch_of_time_is_whole() {
    let env = with_entries(20);
    let part = env.raw(&["audit", "export", "--since", "2023-11-14T22:13:25Z", "--until", "2023-11-14T22:13:26Z"]);
    assert_eq!(part.lines().count(), 21, "there is one signature, so it is all of it");
    let seen = env.pintle(&["audit", "export", "--since", "2027-01-15", "--until", "2027-01-15"]);
    assert!(seen.code == Some(2) && seen.err.contains("--since is not before --until"), "{seen}");
}
