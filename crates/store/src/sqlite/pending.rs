//! What the writer knows of the tail of the evidence: how long it is, and when it is folded.

use std::time::{Duration, Instant};

use rusqlite::Connection;

use crate::db::Failure;
use crate::rows::audit::Sealer;
use crate::rows::batch::tail::{self, MAX_TAIL_ROWS, TailEnd, TailRow};
use crate::rows::strangers;

/// When the tail is folded if nothing else is written: soon, as its entries have no hashes before, and late enough that
/// calls of one turn are folded together.
const FOLD_AFTER: Duration = Duration::from_millis(250);

/// The tail, as far as this writer made it.
#[derive(Debug, Default)]
pub(super) struct Tail {
    end: Option<TailEnd>,
    /// Since when something is to be folded, or wiped.
    since: Option<Instant>,
    /// The version of the data at which the end is as it is known, and at which no stranger stood on the tables: others
    /// that write change it.
    version: Option<i64>,
}

impl Tail {
    /// Whether a row may be added.
    pub(super) fn has_room(&mut self, connection: &Connection) -> bool {
        let is_ours = self.version.is_some() && pragma(connection, DATA_VERSION).ok() == self.version;
        is_ours && self.end.as_ref().is_some_and(|end| end.rows < MAX_TAIL_ROWS)
    }

    /// Commits a row. Says whether it was written; if not, somebody else moved the end.
    pub(super) fn append(&mut self, connection: &Connection, row: TailRow, now: Instant) -> Result<bool, Failure> {
        let Some(end) = &mut self.end else { return Ok(false) };
        let appended = tail::append(connection, end, row);
        match appended {
            Ok(true) => drop(self.since.get_or_insert(now)),
            Ok(false) | Err(_) => self.end = None,
        }
        appended
    }

    /// Folds what is not, within the transaction of `db`, and says up to which number all is then. Whoever knows that
    /// nothing is there does not look.
    pub(super) fn fold(&mut self, db: &Connection, sealer: &mut Sealer) -> Result<i64, Failure> {
        let version = pragma(db, DATA_VERSION)?;
        match &self.end {
            Some(end) if end.rows == 0 && self.version == Some(version) => Ok(end.folded),
            Some(_) | None => self.fold_all(db, sealer),
        }
    }

    /// The same for whoever looks in any case.
    pub(super) fn fold_all(&mut self, db: &Connection, sealer: &mut Sealer) -> Result<i64, Failure> {
        self.version = None;
        let version = pragma(db, DATA_VERSION)?;
        // Whoever made a trigger wrote to the file, so it is looked for only then.
        strangers::refuse(db)?;
        self.version = Some(version);
        tail::fold(db, sealer)
    }

    /// Up to which number all is folded, if nothing of it is left and nothing waits.
    pub(super) fn settled(&mut self, connection: &Connection) -> Result<Option<i64>, Failure> {
        // Before it is looked: whoever comes in between is seen by who writes next.
        self.version = None;
        let version = pragma(connection, DATA_VERSION)?;
        strangers::refuse(connection)?;
        self.version = Some(version);
        tail::settled(connection)
    }

    /// All up to the number `folded` stands where it belongs, and something may have been written behind it; nothing is
    /// known if that failed.
    pub(super) fn folded(&mut self, folded: Option<i64>) {
        self.end = folded.map(|folded| TailEnd { folded, rows: 0, next: None });
        // What cannot be folded is tried again, though not at once.
        if self.since.is_some() {
            self.since = Some(Instant::now());
        }
    }

    /// Nothing of what was folded is left.
    pub(super) fn is_wiped(&mut self) {
        if self.end.is_some() {
            self.since = None;
        }
    }

    /// How long until it is to be folded, or wiped; nothing if neither.
    pub(super) fn due_in(&self, now: Instant) -> Option<Duration> {
        self.since.map(|since| (since + FOLD_AFTER).saturating_duration_since(now))
    }
}

/// Changes whenever somebody else has written.
const DATA_VERSION: &str = "PRAGMA data_version";

fn pragma(connection: &Connection, sql: &str) -> rusqlite::Result<i64> {
    connection.prepare_cached(sql)?.query_row([], |row| row.get(0))
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};
    use std::sync::Arc;

    use pintle_domain::account::Account;
    use pintle_domain::audit::ChainHead;
    use pintle_domain::execution::Execution;
    use pintle_domain::id::{HookId, TenantId};
    use pintle_domain::identity::Identity;
    use pintle_domain::record::EventRecord;
    use pintle_domain::store::{
        AuditStore as _, ExecutionQuery, ExecutionStore as _, RecordQuery, RecordStore as _, StoreError, TenantScope,
    };
    use pintle_domain::verdict::VerdictKind;
    use pintle_testkit::conformance::audit::{cleared, findings, verified};
    use pintle_testkit::conformance::executions::{by, said};

    use super::super::file::{self, Place};
    use super::super::writer::Writer;
    use super::*;
    use crate::keyring::signing::{PublicKeys, SigningKey};
    use crate::keyring::{KEY_FILE, KeySource, Keyring};
    use crate::{Durability, Sqlite, StoreKeys};

    /// A writer without its thread, so that nothing is folded but by what is done here.
    struct Desk {
        folder: tempfile::TempDir,
        writer: Writer,
    }

    fn keys(folder: &Path) -> StoreKeys {
        let signing = Some(Arc::new(SigningKey::open_or_create(folder).unwrap()));
        let source = KeySource { file: Some(folder.join(KEY_FILE)), ..KeySource::default() };
        let keyring = Some(Arc::new(Keyring::open(&source).unwrap()));
        StoreKeys { keyring, signing, ..StoreKeys::default() }
    }

    impl Desk {
        fn new(durability: Durability) -> Self {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("pintle.db");
            let (writing, _reading) = file::open(&path, durability, None).unwrap();
            let place = Arc::new(Place::of(&path).unwrap());
            let mut writer = Writer::new(place, writing, keys(folder.path()), durability);
            writer.fold();
            Self { folder, writer }
        }

        fn path(&self) -> PathBuf {
            self.folder.path().join("pintle.db")
        }

        /// Somebody else's connection.
        fn raw(&self) -> Connection {
            Connection::open(self.path()).unwrap()
        }

        fn call(&mut self, call: &[EventRecord]) -> Result<(), StoreError> {
            self.writer.write_here(call).expect("nobody else writes")
        }

        /// How many rows stand in the tail, and how many events, executions and entries where they belong.
        fn rows(&self) -> [i64; 4] {
            let waiting = "evidence_tail WHERE number > (SELECT number FROM evidence_folded)";
            [waiting, "events", "hook_executions", "audit_log"].map(|table| {
                self.raw().query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
            })
        }
    }

    /// What a call leaves that one rule let pass.
    fn call() -> Vec<EventRecord> {
        let mut events = cleared();
        events[0].hooks = vec![by(&HookId::fresh(), said(VerdictKind::Continue))].into();
        events
    }

    fn all(store: &Sqlite) -> (Vec<String>, Vec<Execution>, ChainHead) {
        let events = store.find(&RecordQuery { limit: 99, ..RecordQuery::of(TenantScope::All) }).unwrap();
        let executions =
            store.executions(&ExecutionQuery { limit: 99, ..ExecutionQuery::of(TenantScope::All) }).unwrap();
        let entries = store.audit_entries(&TenantId::default_tenant(), 0, 99).unwrap();
        let last = entries.last().map_or(ChainHead::GENESIS, |last| ChainHead { seq: last.seq, hash: last.hash });
        (events.into_iter().map(|event| event.event_id).collect(), executions, last)
    }

    #[test]
    fn what_a_call_leaves_is_one_row_until_somebody_opens_the_file() {
        let mut desk = Desk::new(Durability::Commit);
        let calls = [call(), call(), call()];
        calls.iter().for_each(|call| desk.call(call).unwrap());
        assert_eq!(desk.rows(), [3, 0, 0, 0]);
        let places = "SELECT group_concat(seq || '+' || entries) FROM (SELECT * FROM evidence_tail ORDER BY number)";
        let places: String = desk.raw().query_row(places, [], |row| row.get(0)).unwrap();
        assert_eq!(places, "1+2,3+2,5+2", "each has its place in the chain");
        // As a program that was killed leaves it.
        let store = Sqlite::open_with(&desk.path(), Durability::Commit, keys(desk.folder.path())).unwrap();
        assert_eq!(desk.rows(), [0, 6, 3, 6]);
        let (events, executions, last) = all(&store);
        let kept: Vec<String> = calls.iter().flatten().map(|event| event.event_id.to_string()).collect();
        assert_eq!((events, executions.len(), last.seq), (kept, 3, 6));
        let key = SigningKey::open_or_create(desk.folder.path()).unwrap();
        let keys = PublicKeys::parse(&key.public_line()).unwrap();
        let check = |kid: &str, message: &[u8], signature: &str| keys.verify(kid, message, signature);
        assert!(findings(&verified(&store, &check)).is_empty());
        assert_eq!(store.unhashed(), Ok(vec![]));
    }

    #[test]
    fn it_is_folded_within_a_second_and_before_anything_else_is_written() {
        let mut desk = Desk::new(Durability::Commit);
        desk.call(&call()).unwrap();
        assert!(desk.writer.is_needed_earlier(), "the thread is told");
        assert!(desk.writer.patience(Instant::now()) <= Duration::from_secs(1));
        for _ in 1..MAX_TAIL_ROWS {
            desk.call(&call()).unwrap();
        }
        assert_eq!(desk.rows(), [MAX_TAIL_ROWS, 0, 0, 0]);
        desk.call(&call()).unwrap();
        let calls = MAX_TAIL_ROWS + 1;
        assert_eq!(desk.rows(), [0, 2 * calls, calls, 2 * calls]);
        desk.call(&call()).unwrap();
        desk.writer.fold();
        let left = "SELECT count(*) FROM evidence_tail WHERE evidence <> zeroblob(length(evidence))";
        let left: i64 = desk.raw().query_row(left, [], |row| row.get(0)).unwrap();
        assert_eq!((desk.rows()[0], left), (0, 0), "and nothing of it stays there");
    }

    #[test]
    fn a_call_writes_one_page() {
        let mut desk = Desk::new(Durability::Commit);
        // The places are there once all were used, and the writer knows the turn and the hooks.
        let call = |at: usize| {
            let mut events = call();
            events.iter_mut().for_each(|event| event.who.tool_call_id = Some(format!("call_{at}").as_str().into()));
            events
        };
        let first = call(0);
        let of_turn = |at: usize| {
            let mut events = call(at);
            events.iter_mut().zip(&first).for_each(|(event, first)| {
                event.who = Identity { tool_call_id: event.who.tool_call_id.take(), ..first.who.clone() };
            });
            events
        };
        (0..=MAX_TAIL_ROWS as usize).for_each(|at| desk.call(&of_turn(at)).unwrap());
        assert_eq!(desk.rows()[0], 0, "all were folded");
        let log = desk.folder.path().join("pintle.db-wal");
        let length = || std::fs::metadata(&log).unwrap().len();
        for at in 1..=10 {
            let before = length();
            desk.call(&of_turn(at)).unwrap();
            assert_eq!((desk.rows()[0], length() - before), (at as i64, 4096 + 24), "a page and what stands before it");
        }
    }

    #[test]
    fn where_each_commit_is_synced_there_is_one() {
        let mut desk = Desk::new(Durability::BeforeEffect);
        desk.call(&call()).unwrap();
        assert_eq!(desk.rows(), [0, 2, 1, 2]);
    }

    #[test]
    fn what_was_committed_twice_is_one_execution() {
        let mut desk = Desk::new(Durability::Commit);
        let call = call();
        desk.call(&call).unwrap();
        desk.call(&call).unwrap();
        desk.writer.fold();
        assert_eq!(desk.rows()[2], 1);
        let store = Sqlite::open(&desk.path(), Durability::Commit).unwrap();
        assert!(findings(&verified(&store, &|_, _, _| pintle_domain::audit::Proof::Good)).is_empty());
    }

    #[test]
    fn a_row_that_somebody_takes_out_is_missed() {
        let mut desk = Desk::new(Durability::Commit);
        (0..3).for_each(|_| desk.call(&call()).unwrap());
        desk.raw().execute_batch("DELETE FROM evidence_tail WHERE seq = 3").unwrap();
        let store = Sqlite::open(&desk.path(), Durability::Commit).unwrap();
        let report = verified(&store, &|_, _, _| pintle_domain::audit::Proof::Good);
        let said: Vec<String> = findings(&report).iter().map(|finding| finding.to_string()).collect();
        assert!(said.iter().any(|line| line.contains("rows 3 to 4 are missing")), "{said:?}");
    }

    #[test]
    fn a_row_that_is_not_what_was_committed_stops_calls_and_is_told() {
        for edit in ["evidence = x'0102'", "evidence = zeroblob(9000)", "seq = 9007199254740991"] {
            let mut desk = Desk::new(Durability::Commit);
            desk.call(&call()).unwrap();
            desk.raw().execute_batch(&format!("UPDATE evidence_tail SET {edit}")).unwrap();
            desk.writer.fold();
            let said = desk.call(&call()).unwrap_err().to_string();
            assert!(said.contains("evidence_tail") || said.contains("verify it"), "{said}");
            let store = Sqlite::open(&desk.path(), Durability::Commit).unwrap();
            assert_eq!(store.unhashed(), Ok(vec![(TenantId::default_tenant(), 2)]), "{edit}");
        }
    }

    #[test]
    fn a_trigger_that_swallows_rows_is_met_before_the_call_runs() {
        for table in ["events", "hook_executions", "audit_log", "evidence_tail"] {
            let mut desk = Desk::new(Durability::Commit);
            desk.call(&call()).unwrap();
            let swallow = format!("CREATE TRIGGER gone BEFORE INSERT ON {table} BEGIN SELECT RAISE(IGNORE); END");
            desk.raw().execute_batch(&swallow).unwrap();
            let said = desk.call(&call()).unwrap_err().to_string();
            assert!(said.contains(&format!("the table `{table}` has the trigger `gone`")), "{said}");
            desk.raw().execute_batch("DROP TRIGGER gone").unwrap();
            desk.call(&call()).unwrap();
        }
    }

    #[test]
    fn a_schema_of_before_has_all_of_it_in_its_tables() {
        for before in [72, 56] {
            let mut desk = Desk::new(Durability::Commit);
            let mut call = call();
            // A schema of before has no place for what it wrote, and a program of before cannot read that row.
            let wrote = Account { stderr: Some("looked at it".into()), ..Account::default() };
            call[0].hooks.whole_mut().next().unwrap().account = Some(Box::new(wrote));
            desk.call(&call).unwrap();
            assert_eq!(desk.rows(), [1, 0, 0, 0]);
            let path = desk.path();
            let _folder = desk.folder;
            drop(desk.writer);
            Sqlite::migrate(&path, before).unwrap();
            let raw = Connection::open(&path).unwrap();
            let count = |table: &str| -> i64 {
                raw.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
            };
            assert_eq!(["hook_executions", "audit_log"].map(count), [1, 2]);
            drop(Sqlite::open(&path, Durability::Commit).unwrap());
        }
    }

    #[test]
    fn what_a_program_wrote_goes_through_the_tail() {
        let mut desk = Desk::new(Durability::Commit);
        let mut call = call();
        let wrote = Account { stderr: Some("looked at it".into()), ..Account::default() };
        call[0].hooks.whole_mut().next().unwrap().account = Some(Box::new(wrote));
        desk.call(&call).unwrap();
        assert_eq!(desk.rows(), [1, 0, 0, 0]);
        let store = Sqlite::open_with(&desk.path(), Durability::Commit, keys(desk.folder.path())).unwrap();
        let id = all(&store).1[0].id.clone();
        let output = store.execution(&TenantScope::All, &id).unwrap().unwrap().output.unwrap();
        assert_eq!(output.stderr.map(|head| head.text).as_deref(), Some("looked at it"));
    }
}
