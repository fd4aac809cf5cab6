//! Executions and audit chains: the suites, and what a file has to survive.

use std::collections::HashSet;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::sync_channel;
use std::thread;

use jiff::Timestamp;
use pintle_domain::audit::{AlteredPart, AuditFinding, Proof};
use pintle_domain::breaker::BreakerPolicy;
use pintle_domain::checkpoint::CheckpointKind;
use pintle_domain::fault::Cause;
use pintle_domain::id::{DEFAULT_TENANT, HookId, TenantId, TurnId};
use pintle_domain::json::Object;
use pintle_domain::record::{EventRecord, HookOutcome};
use pintle_domain::rule::{Fallback, HandlerType, HookScope, Rule, Source};
use pintle_domain::store::{
    Actor, AuditStore, ExecutionQuery, ExecutionStore, RecordQuery, RecordStore, RuleChange, RuleStore, StoreError,
    TenantScope,
};
use pintle_domain::verdict::VerdictKind;
use pintle_store::keyring::signing::{PublicKeys, SigningKey};
use pintle_store::keyring::{KEY_FILE, KeySource, Keyring};
use pintle_store::sqlite::{MAX_GROUP_BATCHES, QUEUE_BATCHES};
use pintle_store::{Durability, Memory, Postgres, Sqlite, StoreKeys, room};
use pintle_testkit::conformance::audit::{audit, chain, cleared, findings, verified};
use pintle_testkit::conformance::executions::{EvidenceStore, all, executions, failed, ran, said};
use pintle_testkit::conformance::store::{event, keep};
use pintle_testkit::postgres::Server;
use rusqlite::Connection;

use crate::child::{self, KEPT};

/// How often a child is killed.
const ROUNDS: usize = 10;

/// How many batches the child that will be killed has under way.
const UNDER_WAY: usize = 32;

/// How many processes append to one chain, and how often each does.
const PROCESSES: usize = 3;
const BATCHES: usize = 60;

/// The keys that belong to `folder`.
fn sealing(folder: &Path) -> StoreKeys {
    let source = KeySource { file: Some(folder.join(KEY_FILE)), ..KeySource::default() };
    StoreKeys {
        keyring: Some(Arc::new(Keyring::open(&source).unwrap())),
        signing: Some(Arc::new(SigningKey::open_or_create(folder).unwrap())),
        ..StoreKeys::default()
    }
}

fn public(folder: &Path) -> PublicKeys {
    PublicKeys::parse(&SigningKey::open_or_create(folder).unwrap().public_line()).unwrap()
}

fn open(folder: &Path) -> Sqlite {
    open_with(folder, Durability::Commit)
}

fn open_with(folder: &Path, durability: Durability) -> Sqlite {
    Sqlite::open_with(&folder.join("pintle.db"), durability, sealing(folder)).unwrap()
}

fn tenant() -> TenantId {
    TenantId::default_tenant()
}

fn hook_row(id: &HookId) -> String {
    format!(
        "INSERT INTO agent_hooks (id, tenant_id, event, handler_type, scope) VALUES \
         ('{id}', '{DEFAULT_TENANT}', 'pre_tool_use', 'script', 'tenant')"
    )
}

/// Whether everything in `store` is as it was written; all of it is signed by the key of `folder`, or nothing is.
fn assert_intact(store: &dyn EvidenceStore, folder: &Path) {
    let keys = public(folder);
    let report = verified(store, &|kid, message, signature| keys.verify(kid, message, signature));
    assert!(report.is_intact(), "{report}");
}

#[test]
fn sqlite_keeps_evidence() {
    for durability in [Durability::Commit, Durability::BeforeEffect] {
        for suite in [0, 1] {
            let folder = tempfile::tempdir().unwrap();
            let store = open_with(folder.path(), durability);
            let make = |id: &HookId| Connection::open(store.path()).unwrap().execute_batch(&hook_row(id)).unwrap();
            let keys = public(folder.path());
            match suite {
                0 => executions(&store, &make),
                _ => audit(&store, &make, &|kid, message, signature| keys.verify(kid, message, signature)),
            }
        }
    }
}

fn actor() -> Actor {
    Actor { name: "cli".into(), at: Timestamp::UNIX_EPOCH, reason: String::new() }
}

/// A hook, by way of its own port.
fn make_hook(store: &dyn RuleStore, id: &HookId) {
    let event = CheckpointKind::PreToolUse;
    let hook = Rule {
        id: id.clone(),
        tenant_id: tenant(),
        agent_ids: Vec::new(),
        event,
        handler_type: HandlerType::Script,
        scope: HookScope::Tenant,
        name: String::new(),
        config: Object::new(),
        matcher: String::new(),
        if_expr: String::new(),
        timeout_ms: 5000,
        on_timeout: Fallback::default_at(event),
        priority: 0,
        enabled: true,
        version: 1,
        source: Source::User,
        may_rewrite: false,
        breaker: BreakerPolicy::All,
        on_trip: Fallback::default_at(event),
        tripped_at: None,
        disabled_reason: String::new(),
        metadata: Object::new(),
        created_by: None,
        created_at: actor().at.to_string(),
        updated_at: actor().at.to_string(),
    };
    store.change(vec![RuleChange::Create(Box::new(hook))], &actor()).unwrap();
}

#[test]
fn memory_keeps_evidence() {
    let folder = tempfile::tempdir().unwrap();
    let keys = public(folder.path());
    let fresh = || Memory::with_sealing(sealing(folder.path()));
    let store = fresh();
    executions(&store, &|id| make_hook(&store, id));
    executions_outlive_their_hooks_by_way_of_ports(&store);
    let store = fresh();
    audit(&store, &|id| make_hook(&store, id), &|kid, message, signature| keys.verify(kid, message, signature));
}

/// The same whichever store it is.
fn executions_outlive_their_hooks_by_way_of_ports<S: EvidenceStore + RuleStore>(store: &S) {
    let hook = HookId::fresh();
    make_hook(store, &hook);
    let event = ran(&hook, failed());
    keep(store, vec![event.clone()]).unwrap();
    let of_hook = ExecutionQuery { hook: Some(hook.clone()), limit: 9, ..ExecutionQuery::of(TenantScope::All) };
    let row = store.executions(&of_hook).unwrap().pop().unwrap();
    store.change(vec![RuleChange::delete(hook)], &actor()).unwrap();
    assert_eq!(store.executions(&of_hook), Ok(Vec::new()));
    assert_eq!(store.execution(&TenantScope::All, &row.id).unwrap().unwrap().hook_id, None);
    assert!(all(store).iter().any(|it| it.id == row.id && it.hook_id.is_none()));
}

#[test]
fn memory_forgets_the_oldest_and_keeps_an_anchor() {
    let folder = tempfile::tempdir().unwrap();
    let store = Memory::with_sealing(sealing(folder.path()));
    let hook = HookId::fresh();
    for _ in 0..20 {
        keep(&store, (0..1000).map(|_| ran(&hook, said(VerdictKind::Continue))).collect()).unwrap();
    }
    assert_eq!(all(&store).len(), pintle_store::memory::MAX_EXECUTIONS);
    let entries = chain(&store, &tenant());
    assert!(entries.len() <= pintle_store::memory::MAX_ENTRIES, "{}", entries.len());
    assert!(entries[0].seq > 1 && entries[entries.len() - 1].seq == 20_000);
    assert_intact(&store, folder.path());
}

#[test]
fn postgres_keeps_evidence() {
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();
    let keys = public(folder.path());
    let check = |kid: &str, message: &[u8], signature: &str| keys.verify(kid, message, signature);
    for suite in [0, 1] {
        let url = server.fresh_database();
        let store = Postgres::open_with(&url, Durability::Commit, sealing(folder.path())).unwrap();
        let make = |id: &HookId| drop(server.execute(&url, &hook_row(id)));
        match suite {
            0 => executions(&store, &make),
            _ => audit(&store, &make, &check),
        }
    }
    let url = server.fresh_database();
    let one = Postgres::open_with(&url, Durability::Commit, sealing(folder.path())).unwrap();
    let other = Postgres::open_with(&url, Durability::BeforeEffect, sealing(folder.path())).unwrap();
    both_append(&one, &other);
    assert_intact(&one, folder.path());

    // The hook is deleted while its execution is on its way, and afterwards.
    let hook = HookId::fresh();
    server.execute(&url, &hook_row(&hook));
    keep(&one, vec![ran(&hook, failed())]).unwrap();
    assert_eq!(all(&one)[0].hook_id, Some(hook.clone()));
    server.execute(&url, &format!("DELETE FROM agent_hooks WHERE id = '{hook}'"));
    keep(&one, vec![ran(&hook, failed())]).unwrap();
    assert!(all(&one).iter().all(|it| it.hook_id.is_none()));

    drop(one);
    drop(other);
    let left =
        server.execute(&url, "SELECT count(*) FROM audit_log WHERE seq > (SELECT max(seq) FROM audit_checkpoints)");
    assert_eq!(left, "0", "all is signed as the store is dropped");
    server.execute(&url, "UPDATE audit_log SET body = replace(body, 'cli:1', 'cli:2') WHERE seq = 7");
    let store = Postgres::open(&url, Durability::Commit).unwrap();
    let report = verified(&store, &check);
    assert_eq!(findings(&report), [&AuditFinding::Altered { seq: 7, member: AlteredPart::Body }]);
}

/// Two stores append to the same chains at the same time.
fn both_append(one: &dyn EvidenceStore, other: &dyn EvidenceStore) {
    thread::scope(|scope| {
        for store in [one, other, one, other] {
            scope.spawn(move || {
                (0..BATCHES).for_each(|_| {
                    let mut events = cleared();
                    events.push(ran(&HookId::fresh(), failed()));
                    keep(store, events).unwrap();
                });
            });
        }
    });
    assert_eq!(chain(one, &tenant()).len(), 4 * BATCHES * 2);
}

#[test]
fn stores_and_processes_share_a_chain() {
    if let Some(folder) = child::file() {
        let store = open(&folder);
        return (0..BATCHES).for_each(|_| keep(&store, cleared()).unwrap());
    }
    let folder = tempfile::tempdir().unwrap();
    let (one, other) = (open(folder.path()), open(folder.path()));
    both_append(&one, &other);
    let name = "evidence::stores_and_processes_share_a_chain";
    let children: Vec<_> = (0..PROCESSES).map(|_| child::start(name, folder.path())).collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
    assert_eq!(chain(&one, &tenant()).len(), 4 * BATCHES * 2 + PROCESSES * BATCHES);
    assert_intact(&one, folder.path());
}

/// Keeps what a permitted call leaves for ever and prints its event once it is kept.
fn keep_until_killed(folder: &Path, durability: Durability) {
    let store = open_with(folder, durability);
    let (finished, wait) = sync_channel(UNDER_WAY);
    (0..UNDER_WAY).for_each(|_| finished.send(()).unwrap());
    let hook = HookId::fresh();
    loop {
        wait.recv().unwrap();
        let mut events = cleared();
        let ran = ran(&hook, failed());
        events[0] = EventRecord { event_id: events[0].event_id.clone(), who: events[0].who.clone(), ..ran };
        let ids: Vec<String> = events.iter().map(|event| event.event_id.to_string()).collect();
        let finished = finished.clone();
        store.keep(
            events,
            Box::new(move |how| {
                how.unwrap();
                println!("{KEPT}{};", ids.join(" "));
                finished.send(()).unwrap();
            }),
        );
    }
}

/// The ids of the events that left an event, an execution or an entry.
fn held(store: &Sqlite) -> [HashSet<String>; 3] {
    let events = store.find(&RecordQuery { limit: usize::MAX, ..RecordQuery::of(TenantScope::All) }).unwrap();
    let entries = chain(store, &tenant()).into_iter().map(|entry| {
        let body: pintle_domain::json::Value = serde_json::from_str(&entry.body).unwrap();
        body["data"]["event_id"].as_str().unwrap().to_owned()
    });
    [
        events.into_iter().map(|event| event.event_id).collect(),
        all(store).into_iter().map(|execution| execution.event_id).collect(),
        entries.collect(),
    ]
}

fn evidence_survives_kill_9(name: &str, durability: Durability) {
    if let Some(folder) = child::file() {
        return keep_until_killed(&folder, durability);
    }
    let folder = tempfile::tempdir().unwrap();
    let mut kept: Vec<[String; 2]> = Vec::new();
    for round in 0..ROUNDS {
        let mut child = child::start(name, folder.path());
        let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        // A line counts up to its `;`: the child may die within it.
        let mut said = lines.filter_map(|line| {
            let (first, second) = line.strip_prefix(KEPT)?.strip_suffix(';')?.split_once(' ')?;
            Some([first.to_owned(), second.to_owned()])
        });
        let before = kept.len();
        kept.extend(said.by_ref().take(1 + round * 23));
        assert_eq!(kept.len(), before + 1 + round * 23, "the child of round {round} ended by itself");
        child.kill().unwrap();
        kept.extend(said);
        child.wait().unwrap();
        let store = open_with(folder.path(), durability);
        let [events, executions, entries] = held(&store);
        for ids in &kept {
            assert!(ids.iter().all(|id| events.contains(id) && entries.contains(id)), "round {round} lost {ids:?}");
            assert!(executions.contains(&ids[0]), "round {round} lost the execution of {ids:?}");
        }
        assert_eq!(events, entries, "round {round}: all of a batch, or nothing");
        assert_intact(&store, folder.path());
    }
}

#[test]
fn evidence_survives_kill_9_with_commit() {
    evidence_survives_kill_9("evidence::evidence_survives_kill_9_with_commit", Durability::Commit);
}

#[test]
fn evidence_survives_kill_9_with_before_effect() {
    evidence_survives_kill_9("evidence::evidence_survives_kill_9_with_before_effect", Durability::BeforeEffect);
}

#[test]
fn a_row_that_somebody_changed_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    (0..9).for_each(|_| keep(&store, vec![ran(&HookId::fresh(), failed())]).unwrap());
    drop(store);
    let keys = public(folder.path());
    let check = |sql: &str, expected: &str| {
        let copy = tempfile::tempdir().unwrap();
        let file = copy.path().join("pintle.db");
        fs::copy(folder.path().join("pintle.db"), &file).unwrap();
        Connection::open(&file).unwrap().execute_batch(sql).unwrap();
        let store = Sqlite::open(&file, Durability::Commit).unwrap();
        let found = match store.audit_entries(&tenant(), 0, 99) {
            Ok(_) => {
                let report = verified(&store, &|kid, message, signature| keys.verify(kid, message, signature));
                findings(&report).into_iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
            }
            Err(why) => why.to_string().replace(&file.display().to_string(), "FILE"),
        };
        assert_eq!(found, expected, "{sql}");
    };
    check("SELECT 1", "");
    check("UPDATE audit_log SET body = replace(body, 'guard', 'gourd') WHERE seq = 4", "row 4: `body` was altered");
    check("UPDATE audit_log SET at = '2026-01-02T03:04:06.000000Z' WHERE seq = 5", "row 5: `at` was altered");
    check("UPDATE audit_log SET kind = 'trip' WHERE seq = 5", "row 5: `kind` was altered");
    check("DELETE FROM audit_log WHERE seq = 5", "row 5 is missing");
    check("DELETE FROM audit_log WHERE seq > 7", "rows 8 to 9 are missing: there is a signed checkpoint of row 9");
    check("DELETE FROM audit_log WHERE seq > 8", "row 9 is missing: there is a signed checkpoint of it");
    check(
        "UPDATE audit_log SET prev = replace(prev, substr(prev, 1, 1), 'z') WHERE seq = 3",
        "the store holds something unreadable: audit row 3 in `FILE`: a hash is 64 lower-case hex digits; somebody \
         else changed the file",
    );
}

#[test]
fn details_are_secret_and_stay_in_their_place() {
    let folder = tempfile::tempdir().unwrap();
    let hooks = [HookId::fresh(), HookId::fresh()];
    let events = hooks.each_ref().map(|id| ran(id, failed()));
    let store = open(folder.path());
    keep(&store, events.to_vec()).unwrap();
    let rows = all(&store);
    let ids = events
        .each_ref()
        .map(|event| rows.iter().find(|it| it.event_id == event.event_id.as_str()).unwrap().id.clone());
    let detail = |store: &Sqlite, id: &str| store.execution(&TenantScope::All, id).map(|it| it.unwrap().error_detail);
    let whole = Some(failed_text());
    assert_eq!(detail(&store, &ids[0]), Ok(whole.as_deref().map(Cause::from)));

    let raw = Connection::open(store.path()).unwrap();
    let sql = "SELECT error_detail FROM hook_executions WHERE id = ?1";
    let sealed: Vec<u8> = raw.query_row(sql, [&ids[0]], |row| row.get(0)).unwrap();
    assert!(sealed.starts_with(b"aes-gcm:"), "{}", String::from_utf8_lossy(&sealed));
    raw.execute("UPDATE hook_executions SET error_detail = ?1 WHERE id = ?2", (&sealed, &ids[1])).unwrap();
    let corrupt = |how: Result<_, StoreError>, why: &str| match how {
        Err(StoreError::Corrupt(said) | StoreError::Unavailable(said)) => assert!(said.contains(why), "{said}"),
        other => panic!("{other:?}"),
    };
    corrupt(detail(&store, &ids[1]), "the tag does not fit");
    drop(store);

    let keyless = Sqlite::open(&folder.path().join("pintle.db"), Durability::Commit).unwrap();
    corrupt(detail(&keyless, &ids[0]), "encryption key not configured");
    let event = ran(&hooks[0], failed());
    keep(&keyless, vec![event.clone()]).unwrap();
    let row = all(&keyless).into_iter().find(|it| it.event_id == event.event_id.as_str()).unwrap();
    assert_eq!((row.error, detail(&keyless, &row.id)), (whole, Ok(None)), "without a key it is not kept");
    let entries = chain(&keyless, &tenant());
    assert!(entries[2].body.contains(r#""error_detail_sha256":null"#), "{}", entries[2].body);
    assert!(!entries[1].body.contains(r#""error_detail_sha256":null"#), "{}", entries[1].body);
}

fn failed_text() -> String {
    match failed() {
        HookOutcome::Failed { fault, .. } => fault.explained().to_string(),
        other @ (HookOutcome::Said { .. } | HookOutcome::Told | HookOutcome::NotRun(_)) => panic!("{other:?}"),
    }
}

#[test]
fn what_stays_unsigned_is_signed_with_what_comes_next() {
    let folder = tempfile::tempdir().unwrap();
    let signed = |store: &dyn AuditStore| -> Vec<u64> {
        store.checkpoints(&tenant(), 0, 1000).unwrap().iter().map(|point| point.seq).collect()
    };
    let file = folder.path().join("pintle.db");
    let store = open(folder.path());
    (0..3).for_each(|_| keep(&store, cleared()).unwrap());
    assert_eq!(signed(&store), [0_u64; 0], "not due yet");
    drop(store);
    let keyless = Sqlite::open(&file, Durability::Commit).unwrap();
    (0..2).for_each(|_| keep(&keyless, cleared()).unwrap());
    assert_eq!(signed(&keyless), [3], "as the store was dropped");
    drop(keyless);
    let store = open(folder.path());
    assert_eq!(signed(&store), [3], "it had no key");
    (0..2).for_each(|_| keep(&store, cleared()).unwrap());
    assert_eq!(signed(&store), [3, 6]);
    drop(store);
    let store = open(folder.path());
    assert_eq!(signed(&store), [3, 6, 7]);
    drop(store);
    assert_eq!(signed(&open(folder.path())), [3, 6, 7], "nothing is signed twice");
    let foreign = verified(&open(folder.path()), &|_, _, _| Proof::Bad);
    assert_eq!(findings(&foreign).len(), 3);
    assert_intact(&open(folder.path()), folder.path());
}

#[test]
fn executions_outlive_their_hook() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    executions_outlive_their_hooks_by_way_of_ports(&store);
    let before = all(&store).len();
    let hook = HookId::fresh();
    let raw = Connection::open(store.path()).unwrap();
    raw.execute_batch(&hook_row(&hook)).unwrap();
    let hooks = |store: &Sqlite| all(store).into_iter().map(|it| it.hook_id).collect::<Vec<_>>();
    keep(&store, vec![ran(&hook, failed())]).unwrap();
    assert_eq!(hooks(&store).iter().flatten().collect::<Vec<_>>(), [&hook]);
    raw.execute_batch(&format!("PRAGMA foreign_keys = on; DELETE FROM agent_hooks WHERE id = '{hook}'")).unwrap();
    keep(&store, vec![ran(&hook, failed())]).unwrap();
    assert_eq!(hooks(&store), vec![None; before + 2]);
    let query = ExecutionQuery { hook: Some(hook), limit: 9, ..ExecutionQuery::of(TenantScope::All) };
    assert_eq!(store.executions(&query), Ok(Vec::new()));
}

#[test]
fn whoever_takes_room_is_never_turned_away() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(folder.path());
    let turn = TurnId::fresh();
    let (under_way, most) = (Arc::new(AtomicUsize::new(0)), AtomicUsize::new(0));
    let flood = 2 * (QUEUE_BATCHES + MAX_GROUP_BATCHES);
    let refused = Arc::new(AtomicUsize::new(0));
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let other = Connection::open(store.path()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    for n in 0..flood {
        if n == room::ROOM_BYTES / room::MIN_ROOM_BYTES {
            // Everybody who had room has handed over by now, and nothing was written.
            assert_eq!(under_way.load(Ordering::SeqCst), n);
            other.execute_batch("COMMIT").unwrap();
        }
        let records = vec![event(&turn)];
        let room = runtime.block_on(store.room(&records));
        most.fetch_max(under_way.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        let (under_way, refused) = (under_way.clone(), refused.clone());
        store.keep(
            records,
            Box::new(move |how| {
                refused.fetch_add(usize::from(how.is_err()), Ordering::SeqCst);
                under_way.fetch_sub(1, Ordering::SeqCst);
                drop(room);
            }),
        );
    }
    let query = RecordQuery { limit: usize::MAX, ..RecordQuery::of(TenantScope::All) };
    let path = store.path().to_owned();
    drop(store);
    assert_eq!(refused.load(Ordering::SeqCst), 0);
    assert_eq!(most.load(Ordering::SeqCst), room::ROOM_BYTES / room::MIN_ROOM_BYTES);
    assert_eq!(Sqlite::open(&path, Durability::Commit).unwrap().find(&query).unwrap().len(), flood);
}
