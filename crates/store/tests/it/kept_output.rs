//! The beginning of what programs of hooks wrote: sealed in a column of its own, for as long as the details of faults.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use jiff::Timestamp;
use pintle_domain::account::Account;
use pintle_domain::execution::{Execution, KeptOutput, OutputHead};
use pintle_domain::id::{HookId, TenantId};
use pintle_domain::record::{EventRecord, HookOutcome};
use pintle_domain::rule::{HandlerType, RuleDetails};
use pintle_domain::store::{ExecutionQuery, StoreError, TenantScope};
use pintle_domain::verdict::VerdictKind;
use pintle_store::keyring::{KeySource, Keyring};
use pintle_store::rotation::SealedColumn;
use pintle_store::{Durability, Store, StoreKeys, open_with};
use pintle_testkit::conformance::executions::{failed, ran, said};
use pintle_testkit::conformance::store::keep;
use pintle_testkit::postgres::Server;
use rusqlite::Connection;

const OLD: &str = "0000000000000000000000000000000000000000000000000000000000000001";
const NEW: &str = "0000000000000000000000000000000000000000000000000000000000000002";

const SAID: &str = "looked at a file of sesame seeds";

/// An event at which a hook with this handler ended as `outcome` and wrote something.
fn wrote(handler: HandlerType, outcome: HookOutcome, hides_output: bool) -> EventRecord {
    let mut event = ran(&HookId::fresh(), outcome);
    let record = event.hooks.whole_mut().next().unwrap();
    let details = record.stored.take().unwrap();
    record.stored = Some(Arc::new(RuleDetails { handler, ..(*details).clone() }));
    let (stdout, stderr) = (Some("{}\n".to_owned()), Some(SAID.to_owned()));
    let (stdout_len, stderr_len) = (Some(3), Some(1 << 20));
    record.account =
        Some(Box::new(Account { stdout, stdout_len, stderr, stderr_len, hides_output, ..Account::default() }));
    event
}

/// One that let pass.
fn passed() -> EventRecord {
    wrote(HandlerType::Command, said(VerdictKind::Continue), false)
}

fn keyring(now: &str, old: Option<&str>) -> Keyring {
    let primary = Some(("PINTLE_ENCRYPTION_KEY", now.into()));
    Keyring::open(&KeySource { primary, old: old.map(Into::into), file: None }).unwrap()
}

fn opened(url: &str, home: &Path, keyring: Option<Keyring>) -> Arc<dyn Store> {
    let keys = StoreKeys { keyring: keyring.map(Arc::new), ..StoreKeys::default() };
    open_with(url, home, Durability::Commit, keys).unwrap()
}

/// The id of the row of `event`.
fn id_of(store: &dyn Store, event: &EventRecord) -> String {
    let query = ExecutionQuery { limit: 99, ..ExecutionQuery::of(TenantScope::All) };
    let rows = store.executions(&query).unwrap();
    let row = rows.iter().find(|row| row.event_id == event.event_id.as_str()).unwrap();
    assert!(!row.has_detail(), "a list opens nothing");
    row.id.clone()
}

/// The row of `event`, with what is sealed in it.
fn whole(store: &dyn Store, event: &EventRecord) -> Execution {
    store.execution(&TenantScope::All, &id_of(store, event)).unwrap().unwrap()
}

fn expected() -> Option<Box<KeptOutput>> {
    let head = |text: &str, cut| Some(OutputHead { text: text.to_owned(), cut });
    Some(Box::new(KeptOutput { stdout: head("{}\n", false), stderr: head(SAID, true) }))
}

fn in_both(check: impl Fn(&str, &Path)) {
    let home = tempfile::tempdir().unwrap();
    check("sqlite://pintle.db", home.path());
    let server = Server::start();
    check(&server.fresh_database(), home.path());
}

#[test]
fn what_a_program_wrote_comes_back_with_the_key_and_says_nothing_of_the_fault() {
    in_both(|url, home| {
        let store = opened(url, home, Some(keyring(OLD, None)));
        let fine = passed();
        let broke = wrote(HandlerType::Script, failed(), false);
        let judged = wrote(HandlerType::Prompt, failed(), false);
        keep(&*store, vec![fine.clone(), broke.clone(), judged.clone()]).unwrap();
        let found = [&fine, &broke, &judged].map(|event| whole(&*store, event));
        assert_eq!(found.each_ref().map(|row| row.error_detail.is_some()), [false, true, true]);
        assert_eq!(found.each_ref().map(|row| row.output.clone()), [expected(), expected(), None]);
        let entries = store.audit_entries(&TenantId::default_tenant(), 0, 9).unwrap();
        let says = |what: &str| entries.iter().map(|entry| entry.body.contains(what)).collect::<Vec<_>>();
        assert_eq!(says(SAID), [false; 3]);
        assert_eq!(says(r#""output_sha256":""#), [true, true, false], "the chain proves it");
        assert_eq!(says("output_sha256"), [true, true, false], "and is as ever where there is none");
        assert_eq!(says(r#""error_detail_sha256":null"#), [true, false, false]);
    });
}

#[test]
fn it_is_sealed_for_its_own_column() {
    let home = tempfile::tempdir().unwrap();
    let url = "sqlite://pintle.db";
    let store = opened(url, home.path(), Some(keyring(OLD, None)));
    let event = wrote(HandlerType::Command, failed(), false);
    keep(&*store, vec![event.clone()]).unwrap();
    let id = id_of(&*store, &event);
    let raw = Connection::open(home.path().join("pintle.db")).unwrap();
    let sealed: Vec<u8> =
        raw.query_row("SELECT output FROM hook_executions WHERE id = ?1", [&id], |row| row.get(0)).unwrap();
    assert!(sealed.starts_with(b"aes-gcm:"));
    raw.execute("UPDATE hook_executions SET error_detail = output", []).unwrap();
    match store.execution(&TenantScope::All, &id) {
        Err(StoreError::Corrupt(why)) => assert!(why.contains("the tag does not fit"), "{why}"),
        other => panic!("{other:?}"),
    }
    drop((store, raw));
    let files = fs::read_dir(home.path()).unwrap().map(|file| file.unwrap().path());
    for file in files.filter(|path| path.is_file()) {
        let bytes = fs::read(file).unwrap();
        assert!(!bytes.windows(SAID.len()).any(|part| part == SAID.as_bytes()), "nowhere in the folder");
    }
}

#[test]
fn without_a_key_and_where_a_hook_took_something_out_nothing_of_it_is_kept() {
    in_both(|url, home| {
        let keyless = opened(url, home, None);
        let event = passed();
        keep(&*keyless, vec![event.clone()]).unwrap();
        assert_eq!(whole(&*keyless, &event).output, None);
        drop(keyless);
        let store = opened(url, home, Some(keyring(OLD, None)));
        let event = wrote(HandlerType::Command, said(VerdictKind::Continue), true);
        keep(&*store, vec![event.clone()]).unwrap();
        let row = whole(&*store, &event);
        assert!(!row.has_detail());
        assert_eq!(row.metadata["stderr_len"].as_u64(), Some(1 << 20), "how much it was is no secret");
    });
}

#[test]
fn it_goes_with_the_details_of_faults() {
    in_both(|url, home| {
        let store = opened(url, home, Some(keyring(OLD, None)));
        let event = passed();
        keep(&*store, vec![event.clone()]).unwrap();
        assert!(whole(&*store, &event).has_detail());
        let moment = |text: &str| -> Timestamp { text.parse().unwrap() };
        assert_eq!(store.forget(moment("2001-01-01T00:00:00Z"), moment("2200-01-01T00:00:00Z"), 9), Ok(1));
        assert!(!whole(&*store, &event).has_detail());
    });
}

#[test]
fn a_rotation_takes_it_to_the_new_key() {
    in_both(|url, home| {
        let store = opened(url, home, Some(keyring(OLD, None)));
        let events = [passed(), passed(), passed()];
        keep(&*store, events.to_vec()).unwrap();
        drop(store);
        let both = keyring(NEW, Some(OLD));
        let store = opened(url, home, Some(keyring(NEW, None)));
        let rotate = |after: Option<&str>| store.rotate(SealedColumn::Outputs, &both, after, 2).unwrap();
        let first = rotate(None);
        let second = rotate(first.next.as_deref());
        assert_eq!([first.rewritten, second.rewritten], [2, 1]);
        assert_eq!(second.next, None);
        assert_eq!(rotate(None).rewritten, 0, "once");
        assert_eq!(events.each_ref().map(|event| whole(&*store, event).output), [expected(), expected(), expected()]);
        let lost = store.rotate(SealedColumn::Outputs, &keyring(OLD, None), None, 9).unwrap();
        assert_eq!((lost.rewritten, lost.failed.len()), (0, 3));
    });
}
