//! The beginning of what commands wrote: sealed beside the details of faults, for as long as these.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use domain::account::Account;
use domain::execution::{Execution, KeptOutput, OutputHead};
use domain::id::{HookId, TenantId};
use domain::record::{EventRecord, HookOutcome};
use domain::rule::{HandlerType, RuleDetails};
use domain::store::{AuditStore as _, ExecutionStore as _, TenantScope};
use domain::verdict::VerdictKind;
use jiff::Timestamp;
use pintle_store::keyring::{KEY_FILE, KeySource, Keyring};
use pintle_store::{Durability, Sqlite, StoreKeys};
use rusqlite::Connection;
use testkit::conformance::executions::{all, failed, ran, said};
use testkit::conformance::store::keep;

const SAID: &str = "my key is sk_live_0123456789abcdef";

/// An event at which a command ended as `outcome` and wrote something.
fn wrote(outcome: HookOutcome, hides_output: bool) -> EventRecord {
    let mut event = ran(&HookId::fresh(), outcome);
    let record = event.hooks.whole_mut().next().unwrap();
    let details = record.stored.take().unwrap();
    record.stored = Some(Arc::new(RuleDetails { handler: HandlerType::Command, ..(*details).clone() }));
    let (stdout, stderr) = (Some("{}\n".to_owned()), Some(SAID.to_owned()));
    let (stdout_len, stderr_len) = (Some(3), Some(1 << 20));
    record.account =
        Some(Box::new(Account { stdout, stdout_len, stderr, stderr_len, hides_output, ..Account::default() }));
    event
}

fn with_key(folder: &Path) -> Sqlite {
    let source = KeySource { file: Some(folder.join(KEY_FILE)), ..KeySource::default() };
    let keys = StoreKeys { keyring: Some(Arc::new(Keyring::open(&source).unwrap())), ..StoreKeys::default() };
    Sqlite::open_with(&folder.join("pintle.db"), Durability::Commit, keys).unwrap()
}

/// The row of `event`, with what is sealed in it.
fn whole(store: &Sqlite, event: &EventRecord) -> Execution {
    let rows = all(store);
    let row = rows.iter().find(|row| row.event_id == event.event_id.as_str()).unwrap();
    assert!(!row.has_detail(), "a list opens nothing");
    store.execution(&TenantScope::All, &row.id).unwrap().unwrap()
}

fn expected() -> Option<Box<KeptOutput>> {
    let head = |text: &str, cut| Some(OutputHead { text: text.to_owned(), cut });
    Some(Box::new(KeptOutput { stdout: head("{}\n", false), stderr: head(SAID, true) }))
}

#[test]
fn what_a_command_wrote_is_sealed_and_comes_back_with_the_key() {
    let folder = tempfile::tempdir().unwrap();
    let store = with_key(folder.path());
    let (fine, broke) = (wrote(said(VerdictKind::Continue), false), wrote(failed(), false));
    keep(&store, vec![fine.clone(), broke.clone()]).unwrap();
    let (fine, broke) = (whole(&store, &fine), whole(&store, &broke));
    assert_eq!((&fine.error_detail, &fine.output), (&None, &expected()));
    assert!(broke.error_detail.is_some() && broke.output == expected());
    let raw = Connection::open(store.path()).unwrap();
    let sealed: Vec<u8> =
        raw.query_row("SELECT error_detail FROM hook_executions WHERE id = ?1", [&fine.id], |row| row.get(0)).unwrap();
    assert!(sealed.starts_with(b"aes-gcm:"));
    let entries = store.audit_entries(&TenantId::default_tenant(), 0, 9).unwrap();
    assert!(entries.iter().all(|entry| !entry.body.contains(SAID)));
    assert!(entries.iter().all(|entry| !entry.body.contains(r#""error_detail_sha256":null"#)), "the chain proves it");
    drop((store, raw));
    let files = fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap().path());
    for file in files.filter(|path| path.is_file()) {
        let bytes = fs::read(file).unwrap();
        assert!(!bytes.windows(SAID.len()).any(|part| part == SAID.as_bytes()), "nowhere in the folder");
    }
}

#[test]
fn without_a_key_and_where_a_hook_took_something_out_nothing_of_it_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let keyless = Sqlite::open(&folder.path().join("pintle.db"), Durability::Commit).unwrap();
    let event = wrote(said(VerdictKind::Continue), false);
    keep(&keyless, vec![event.clone()]).unwrap();
    assert_eq!(whole(&keyless, &event).output, None);
    drop(keyless);
    let store = with_key(folder.path());
    let event = wrote(said(VerdictKind::Continue), true);
    keep(&store, vec![event.clone()]).unwrap();
    let row = whole(&store, &event);
    assert!(!row.has_detail());
    assert_eq!(row.metadata["stderr_len"].as_u64(), Some(1 << 20), "how much it was is no secret");
}

#[test]
fn it_goes_with_the_details_of_faults() {
    let folder = tempfile::tempdir().unwrap();
    let store = with_key(folder.path());
    let event = wrote(said(VerdictKind::Continue), false);
    keep(&store, vec![event.clone()]).unwrap();
    assert!(whole(&store, &event).has_detail());
    let moment = |text: &str| -> Timestamp { text.parse().unwrap() };
    assert_eq!(store.forget(moment("2001-01-01T00:00:00Z"), moment("2200-01-01T00:00:00Z"), 9), Ok(1));
    assert!(!whole(&store, &event).has_detail());
}
