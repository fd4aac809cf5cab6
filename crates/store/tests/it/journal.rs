//! What only a file can go wrong with: rows of others, bounds, a place that moves, a schema of before.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;

use pintle_domain::approval::{Approval, ApprovalState};
use pintle_domain::id::{DEFAULT_TENANT, TenantId, TurnId};
use pintle_domain::identity::Identity;
use pintle_domain::json;
use pintle_domain::json::Value;
use pintle_domain::message::{CallPart, Message, ProviderData, Role};
use pintle_domain::session::JournalEntry;
use pintle_domain::store::{
    ApprovalQuery, ApprovalStore, JournalAppend, RecordQuery, RecordStore, SessionStore, StoreError, TenantScope,
};
use pintle_domain::turn::{Fact, MessageSender, WaitingMessage};
use pintle_store::sqlite::MAX_GROUP_BATCHES;
use pintle_store::{Durability, MAX_BODY_BYTES, Sqlite};
use pintle_testkit::conformance::approvals::{call, moment, question, said};
use pintle_testkit::conformance::sessions::{append_of, appended, begun, hand_over, key, queued};
use pintle_testkit::conformance::store::{event, keep};
use rusqlite::Connection;
use tempfile::TempDir;

fn store() -> (TempDir, Sqlite) {
    let folder = tempfile::tempdir().unwrap();
    let store = Sqlite::open(&folder.path().join("pintle.db"), Durability::Commit).unwrap();
    (folder, store)
}

fn execute(store: &Sqlite, sql: &str) {
    Connection::open(store.path()).unwrap().execute_batch(sql).unwrap();
}

/// A message that brings `private` along.
fn with_private(private: Value) -> JournalEntry {
    let message = Message { private: ProviderData::of(vec![private]), ..Message::text(Role::User, "x") };
    JournalEntry::Turn(Fact::Queued(WaitingMessage::new(message, MessageSender::Person)))
}

#[test]
fn an_entry_that_could_not_be_read_again_is_refused_alone() {
    let (_folder, store) = store();
    let key = key(DEFAULT_TENANT, "s\n");
    // Nothing can be written until all wait, so that they share a transaction.
    let other = Connection::open(store.path()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let too_deep = (0..600).fold(Value::Null, |inner, _| Value::Array(vec![inner]));
    let too_long = "\0".repeat(MAX_BODY_BYTES / 6);
    let appends = [
        vec![queued("first")],
        vec![queued("with it"), with_private(too_deep)],
        vec![queued("second")],
        vec![queued(&too_long)],
        vec![queued("third")],
    ];
    let records = || vec![event(&TurnId::from("t"))];
    let answers: Vec<_> = appends
        .into_iter()
        .map(|entries| hand_over(&store, JournalAppend { records: records(), ..append_of(&key, entries) }))
        .collect();
    other.execute_batch("COMMIT").unwrap();
    let answers: Vec<_> = answers.into_iter().map(|answer| answer.recv().unwrap()).collect();
    let refused = |entry: usize, why: &str| {
        Err(StoreError::Unavailable(format!("entry {entry} for session \"s\\n\" cannot be kept: {why}")))
    };
    let bytes = MAX_BODY_BYTES / 6 * 6 + serde_json::to_string(&queued("")).unwrap().len();
    let too_long = format!("{bytes} bytes of JSON, more than {MAX_BODY_BYTES}");
    let too_deep = "nested deeper than 520 levels";
    assert_eq!(answers, [Ok(()), refused(2, too_deep), Ok(()), refused(1, &too_long), Ok(())]);
    assert_eq!(store.journal(&key), Ok(["first", "second", "third"].map(queued).into()));
    let events = store.find(&RecordQuery { limit: 9, ..RecordQuery::of(TenantScope::All) }).unwrap();
    assert_eq!(events.len(), 3, "nor are the records of what was refused");
}

/// The answer of a model that asks for one call, with `command` in it.
fn asked(command: &str) -> JournalEntry {
    let message =
        Message { tool_calls: vec![CallPart::new("c", "exec", command)], ..Message::text(Role::Assistant, "") }.into();
    JournalEntry::Turn(Fact::Replied {
        iteration: 1,
        message,
        read_only: vec![false],
        terminal: false,
        owners: [].into(),
        cut: false,
        usage: None,
    })
}

fn used() -> JournalEntry {
    let (tool, digest, rewritten) = ("exec".into(), "00ff".into(), Some("{}".into()));
    JournalEntry::Turn(Fact::Used { place: 0, read_only: false, tool, digest, rewritten })
}

#[test]
fn what_gates_replaced_is_in_no_byte_of_the_file() {
    const SECRET: &str = "hush-hush-4711";
    let (folder, store) = store();
    let found = || {
        let files = fs::read_dir(folder.path()).unwrap().map(|entry| fs::read(entry.unwrap().path()).unwrap());
        files.filter(|bytes| bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes())).count()
    };
    // One that fits a page, and one that takes many.
    let keys = ["short", "long"].map(|session| key(DEFAULT_TENANT, session));
    for (key, command) in keys.iter().zip([SECRET.to_owned(), SECRET.repeat(10_000)]) {
        appended(&store, append_of(key, vec![begun(&TurnId::fresh(), "hi"), asked(&command)]));
    }
    execute(&store, "PRAGMA wal_checkpoint(TRUNCATE)");
    assert_eq!(found(), 1, "until then it is there");
    keys.iter().for_each(|key| appended(&store, append_of(key, vec![used()])));
    drop(store);
    assert_eq!(found(), 0);
}

#[test]
fn an_answer_that_cannot_be_read_keeps_the_call_from_its_use_and_nobody_else() {
    let (_folder, store) = store();
    let key = key(DEFAULT_TENANT, "s");
    appended(&store, append_of(&key, vec![begun(&TurnId::fresh(), "hi"), asked("x")]));
    execute(&store, "UPDATE journal SET body = '{\"turn\":{\"replied\":{}}}' WHERE body LIKE '%replied%'");
    let other = Connection::open(store.path()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let answers = [used(), queued("other")].map(|entry| hand_over(&store, append_of(&key, vec![entry])));
    other.execute_batch("COMMIT").unwrap();
    let [refused, kept] = answers.map(|answer| answer.recv().unwrap());
    assert_eq!(kept, Ok(()));
    let Err(StoreError::Corrupt(why)) = refused else { panic!("{refused:?}") };
    assert!(why.starts_with("journal entry 2: missing field `iteration`"), "{why}");
}

#[test]
fn a_question_that_could_not_be_read_again_is_refused() {
    let (_folder, store) = store();
    let mut call = call("{}");
    call.arguments.insert("deep".into(), (0..600).fold(Value::Null, |inner, _| Value::Array(vec![inner])));
    let who = Identity::top("main", "s", TurnId::fresh());
    let why = "approval `deep` cannot be kept: nested deeper than 520 levels";
    assert_eq!(store.ask(question("deep", &who, &call), moment(0)), Err(StoreError::Unavailable(why.into())));
    assert_eq!(store.approvals(&ApprovalQuery::newest(TenantScope::All, 9)), Ok(vec![]));
}

#[test]
fn records_and_entries_wait_in_one_queue() {
    let (_folder, store) = store();
    let key = key(DEFAULT_TENANT, "s");
    let (say, hear) = channel();
    let n = MAX_GROUP_BATCHES + 44;
    for i in 0..n {
        let say = say.clone();
        let done = Box::new(move |how: Result<(), StoreError>| say.send((i, how)).unwrap());
        if i % 2 == 0 {
            store.keep(vec![event(&TurnId::fresh())], done);
        } else {
            store.append(append_of(&key, vec![queued(&i.to_string())]), done);
        }
    }
    let answers: Vec<_> = hear.iter().take(n).collect();
    assert_eq!(answers, (0..n).map(|i| (i, Ok(()))).collect::<Vec<_>>());
    assert_eq!(store.journal(&key).unwrap().len(), n / 2);
}

#[test]
fn a_row_that_somebody_changed_is_named() {
    let (_folder, store) = store();
    let (key, who) = (key(DEFAULT_TENANT, "s"), Identity::top("main", "s", TurnId::fresh()));
    appended(&store, append_of(&key, vec![queued("x")]));
    store.ask(question("a\u{1}", &who, &call("{}")), moment(0)).unwrap();
    let file = store.path().display().to_string();
    let foreign = |what: &str, why: &str| {
        StoreError::Corrupt(format!("{what} in `{file}`: {why}; somebody else changed the file"))
    };
    let deep = "[".repeat(100_000);
    for (body, why) in [
        (r#"{"turn":"#, "EOF while parsing a value at line 1 column 8"),
        (&deep, "nested deeper than 520 levels"),
        (
            r#""later""#,
            "unknown variant `later`, expected one of `opened`, `closed`, `turn`, `kept` at line 1 column 7",
        ),
        (r#"{"closed":{"cause":"done"}} {}"#, "trailing characters at line 1 column 29"),
    ] {
        execute(&store, &format!("UPDATE journal SET body = '{body}'"));
        assert_eq!(store.journal(&key), Err(foreign("journal entry 1", why)));
    }
    let word = "unknown variant `maybe`, expected one of `waiting`, `approved`, `refused`, `used`, `void`, `expired`";
    execute(&store, "UPDATE approvals SET state = 'maybe'");
    let expected = Err(foreign("approval `a\u{1}`", word));
    assert_eq!(store.approvals(&ApprovalQuery::newest(TenantScope::All, 9)), expected);
    assert_eq!(store.answer(&TenantScope::All, "a", said(true), moment(0)).map(|it| vec![it]), expected);
    execute(&store, "UPDATE approvals SET state = 'waiting', body = '{}'");
    let missing = foreign("approval `a\u{1}`", "missing field `id` at line 1 column 2");
    assert_eq!(store.approval(&TenantScope::All, "a\u{1}"), Err(missing));
    // What is not read is not in the way.
    assert_eq!(store.sessions(&TenantId::default_tenant()).unwrap()[0].waiting, 1);
    assert_eq!(store.delete(&key), Ok(true));
    assert_eq!(store.approvals(&ApprovalQuery::newest(TenantScope::All, 9)), Ok(vec![]));
}

#[test]
fn a_file_that_was_deleted_is_not_taken_for_an_empty_one() {
    let (_folder, store) = store();
    let key = key(DEFAULT_TENANT, "s");
    appended(&store, append_of(&key, vec![queued("x")]));
    fs::remove_file(store.path()).unwrap();
    let why = format!("`{}` was moved or deleted while in use; restart the program", store.path().display());
    let gone = StoreError::Unavailable(why);
    let question = question("a", &Identity::top("main", "s", TurnId::fresh()), &call("{}"));
    let said = [
        hand_over(&store, append_of(&key, vec![queued("x")])).recv().unwrap().err(),
        store.hold(&key).err(),
        store.journal(&key).err(),
        store.sessions(&key.tenant).err(),
        store.delete(&key).err(),
        store.ask(question, moment(0)).err(),
        store.answer(&TenantScope::All, "a", said(true), moment(0)).err(),
        store.use_up(&DEFAULT_TENANT.into(), "a", moment(0)).err(),
        store.approval(&TenantScope::All, "a").err(),
        store.approvals(&ApprovalQuery::newest(TenantScope::All, 9)).err(),
    ];
    said.into_iter().for_each(|said| assert_eq!(said.as_ref(), Some(&gone)));
    // Nor one that stands in its place.
    drop(Sqlite::open(store.path(), Durability::Commit).unwrap());
    assert_eq!(store.hold(&key).err(), Some(gone.clone()));
    assert_eq!(store.journal(&key), Err(gone));
}

#[test]
fn the_lock_file_is_the_owners_and_comes_with_the_first_hold() {
    let (folder, store) = store();
    let key = key(DEFAULT_TENANT, "s");
    appended(&store, append_of(&key, vec![queued("x")]));
    let lock = folder.path().join("pintle.db-lock");
    assert_eq!(store.sessions(&key.tenant).unwrap()[0].held_by, None);
    assert!(!lock.exists(), "looking makes nothing");
    let hold = store.hold(&key).unwrap();
    assert_eq!(fs::metadata(&lock).unwrap().permissions().mode() & 0o777, 0o600);
    fs::remove_file(&lock).unwrap();
    let why = format!("`{}` was moved or deleted while in use; restart the program", lock.display());
    assert_eq!(
        store.hold(&key).err(),
        Some(StoreError::Unavailable(why)),
        "a lock that nobody finds keeps nobody away"
    );
    drop(hold);
}

#[test]
fn a_lock_file_that_cannot_be_is_named() {
    let (folder, store) = store();
    let lock = folder.path().join("pintle.db-lock");
    fs::create_dir(&lock).unwrap();
    let said = store.hold(&key(DEFAULT_TENANT, "s")).err().expect("it cannot be held").to_string();
    assert!(said.contains(&format!("`{}` cannot be locked: ", lock.display())), "{said}");
}

#[test]
fn those_who_wait_are_served_under_a_flood() {
    let (_folder, store) = store();
    let (flooded, who) = (key(DEFAULT_TENANT, "flood"), Identity::top("main", "s", TurnId::fresh()));
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let flood = scope.spawn(|| {
            let mut appends = 0;
            while !over.load(Ordering::Relaxed) {
                let answers: Vec<_> =
                    (0..300).map(|_| hand_over(&store, append_of(&flooded, vec![queued("x")]))).collect();
                appends += answers.len();
                answers.into_iter().for_each(|answer| answer.recv().unwrap().unwrap());
            }
            appends
        });
        for i in 0..50 {
            let id = format!("a{i}");
            store.ask(question(&id, &who, &call(&format!(r#"{{"n":{i}}}"#))), moment(0)).unwrap();
            store.answer(&TenantScope::All, &id, said(true), moment(0)).unwrap();
            store.use_up(&DEFAULT_TENANT.into(), &id, moment(0)).unwrap();
            drop(store.hold(&key(DEFAULT_TENANT, "s")).unwrap());
        }
        over.store(true, Ordering::Relaxed);
        assert_eq!(flood.join().unwrap(), store.journal(&flooded).unwrap().len());
    });
}

/// The first schema, as it was released.
const FIRST_SCHEMA: &str = include_str!("../../migrations/sqlite/000001_records.up.sql");

#[test]
fn a_file_of_the_first_schema_is_brought_up_to_date() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pintle.db");
    let old = Connection::open(&file).unwrap();
    old.execute_batch(FIRST_SCHEMA).unwrap();
    old.execute_batch(
        "INSERT INTO events VALUES (1, 'e1', '2026-01-02T03:04:05Z', 'turn_start', 'runtime', 'default', 'main', 's', \
         't', 0, NULL, NULL, 0, 'continue', NULL, NULL, 0, '[]'); \
         PRAGMA application_id = 0x706e746c; PRAGMA user_version = 1;",
    )
    .unwrap();
    drop(old);
    let store = Sqlite::open(&file, Durability::Commit).unwrap();
    let found = store.find(&RecordQuery { limit: 9, ..RecordQuery::of(TenantScope::All) }).unwrap();
    assert_eq!(found.into_iter().map(|event| event.event_id).collect::<Vec<_>>(), ["e1"]);
    keep(&store, vec![event(&TurnId::fresh())]).unwrap();
    let key = key(DEFAULT_TENANT, "s");
    appended(&store, append_of(&key, vec![begun(&TurnId::fresh(), "hello")]));
    assert_eq!(store.sessions(&key.tenant).unwrap()[0].title, "hello");
    drop(store);
    let again = Sqlite::open(&file, Durability::Commit).unwrap();
    assert_eq!(again.journal(&key).unwrap().len(), 1);
}

#[test]
fn what_a_question_became_survives_the_store() {
    let (_folder, store) = store();
    let who = Identity::top("main", "s", TurnId::fresh());
    let deep = format!("{}1{}", r#"{"a":"#.repeat(json::MAX_DEPTH), "}".repeat(json::MAX_DEPTH));
    let asked = question("a", &who, &call(&deep));
    store.ask(asked.clone(), moment(0)).unwrap();
    store.answer(&TenantScope::All, "a", said(false), moment(0)).unwrap();
    let file = store.path().to_owned();
    drop(store);
    let found = Sqlite::open(&file, Durability::Commit).unwrap().approval(&TenantScope::All, "a").unwrap().unwrap();
    let expected =
        Approval { state: ApprovalState::Refused, answered_by: Some("ada".into()), note: "as we said".into(), ..asked };
    assert!(found == expected);
}
