//! What evidence costs beyond its rows: records in batches, and the records that a permitted call waits for, beside bare
//! inserts of the very same rows into the very same tables and indexes.
//!
//! `cargo bench -p pintle-store --bench audit` measures, anything else runs each case once, with few of them.

use std::cell::RefCell;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use anyhow::{Context as _, ensure};
use futures_util::future::try_join_all;
use pintle_domain::execution::Execution;
use pintle_domain::id::HookId;
use pintle_domain::identity::Identity;
use pintle_domain::record::EventRecord;
use pintle_domain::store::RecordStore;
use pintle_domain::verdict::VerdictKind;
use pintle_engine::Deadlines;
use pintle_engine::evidence::Evidence;
use pintle_store::keyring::signing::SigningKey;
use pintle_store::keyring::{KEY_FILE, KeySource, Keyring};
use pintle_store::sqlite::MAX_GROUP_BATCHES;
use pintle_store::{Durability, Sqlite, StoreKeys};
use pintle_testkit::conformance::audit::cleared;
use pintle_testkit::conformance::executions::{by, ran, said};
use report::{Report, shown};
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};
use tokio_util::task::TaskTracker;

#[expect(dead_code, reason = "it is shared, and absolute figures are for others")]
#[path = "../../process/benches/hooks/report.rs"]
mod report;

/// Records in one round.
const RECORDS: usize = 5000;
/// Turns that keep them at the same time.
const TURNS: usize = 64;
/// Calls in one round.
const CALLS: usize = 300;
/// Threads of the runtime that agents run on.
const WORKERS: usize = 2;
/// Batched records reach at least this share of what bare inserts do.
const LEAST_SHARE: f64 = 0.8;
/// A permitted call waits at most this many times as long as for a bare transaction.
const MOST_TIMES: f64 = 1.2;
/// The evidence of a permitted call takes at most this many times as long as one bare row.
const MOST_BARE_ROWS: f64 = 2.0;
/// Ratios that are published are held within a tenth.
const HELD_WITHIN: f64 = 1.1;
/// One plain row of what a rule did, as others keep it: the published columns, its id, and the key that is there once.
const BARE_TABLE: &str = "CREATE TABLE bare (id TEXT NOT NULL PRIMARY KEY, hook_id TEXT, hook_name TEXT, \
    hook_version INTEGER, handler_type TEXT, tenant_id TEXT, agent_id TEXT, session_id TEXT, turn_id TEXT, \
    event_id TEXT, trace_id TEXT, event TEXT, tool_name TEXT, tool_call_id TEXT, input_hash TEXT, decision TEXT, \
    reason TEXT, duration_ms INTEGER, retry INTEGER, dedup_key TEXT, error TEXT, error_detail BLOB, metadata TEXT, \
    created_at TEXT) STRICT; CREATE UNIQUE INDEX bare_once ON bare (dedup_key) WHERE dedup_key IS NOT NULL";
/// The tables of evidence to which each call adds, those first that others point at.
const TABLES: [&str; 4] = ["turns", "events", "hook_executions", "audit_log"];
/// What the hooks of events have in common: calls that are alike share one row.
const SHARED: &str = "hook_sets";

fn main() -> ExitCode {
    match measure() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("audit: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn measure() -> anyhow::Result<()> {
    let Some(mut report) = Report::from_args() else { return Ok(()) };
    let bench = Bench::new()?;
    if report.wants("audit-batched") {
        let record = |hook: &HookId| vec![ran(hook, said(VerdictKind::Continue))];
        let mut ours = |times| bench.ours(Durability::Commit, times, &record, Pace::Batched);
        let mut bare = |times| bench.bare(Durability::Commit, times, &record, Pace::Batched);
        let [ours, bare] = report.medians(RECORDS, [&mut ours, &mut bare])?;
        let share = bare.div_duration_f64(ours);
        let cells = [shown(ours), shown(bare), format!("{share:.2}"), format!(">= {LEAST_SHARE}")];
        report.row("batched records with one execution each: one of them", cells, Some(share >= LEAST_SHARE));
    }
    for (durability, name) in [(Durability::Commit, "commit"), (Durability::BeforeEffect, "before_effect")] {
        if report.wants(&format!("audit-{name}")) {
            let mut ours = |times| bench.ours(durability, times, &call, Pace::OneByOne);
            let mut bare = |times| bench.bare(durability, times, &call, Pace::OneByOne);
            let [ours, bare] = report.medians(CALLS, [&mut ours, &mut bare])?;
            let ratio = ours.div_duration_f64(bare);
            let cells = [shown(ours), shown(bare), format!("{ratio:.2}"), format!("<= {MOST_TIMES}")];
            report.row(&format!("clearing of a permitted call, {name}"), cells, Some(ratio <= MOST_TIMES));
        }
    }
    if report.wants("audit-bare") {
        let mut ours = |times| bench.calls(times);
        let mut bare = |times| bench.bare_rows(times);
        let [ours, bare] = report.medians(CALLS, [&mut ours, &mut bare])?;
        let ratio = ours.div_duration_f64(bare);
        let cells = [shown(ours), shown(bare), format!("{ratio:.2}"), format!("<= {MOST_BARE_ROWS}")];
        let holds = ratio <= MOST_BARE_ROWS * HELD_WITHIN;
        report.row("a permitted call of a turn, commit: one bare autocommitted row", cells, Some(holds));
    }
    report.print()
}

/// What a permitted call leaves that one gate was asked about.
fn call(hook: &HookId) -> Vec<EventRecord> {
    let mut events = cleared();
    events[0].hooks = vec![by(hook, said(VerdictKind::Continue))].into();
    events
}

type Make<'a> = &'a dyn Fn(&HookId) -> Vec<EventRecord>;

#[derive(Clone, Copy, PartialEq)]
enum Pace {
    /// As many as there is room for.
    Batched,
    /// Each waits for the one before.
    OneByOne,
}

/// Makes stores and files to measure in.
struct Bench {
    folder: tempfile::TempDir,
    sealing: StoreKeys,
    hook: HookId,
    /// A file with the schema and the hook, and nothing else.
    blank: PathBuf,
}

/// The rows that a batch left: the table, and the values of its columns.
type Left = Vec<(usize, Vec<Value>)>;

impl Bench {
    fn new() -> anyhow::Result<Self> {
        let folder = tempfile::tempdir()?;
        let source = KeySource { file: Some(folder.path().join(KEY_FILE)), ..KeySource::default() };
        let sealing = StoreKeys {
            keyring: Some(Arc::new(Keyring::open(&source)?)),
            signing: Some(Arc::new(SigningKey::open_or_create(folder.path())?)),
            ..StoreKeys::default()
        };
        let (blank, hook) = (folder.path().join("blank.db"), HookId::fresh());
        drop(Sqlite::open(&blank, Durability::Commit)?);
        Connection::open(&blank)?.execute_batch(&format!(
            "INSERT INTO agent_hooks (id, tenant_id, event, handler_type, scope) VALUES \
             ('{hook}', '{}', 'pre_tool_use', 'script', 'tenant')",
            pintle_domain::id::DEFAULT_TENANT
        ))?;
        Ok(Self { folder, sealing, hook, blank })
    }

    /// A fresh copy of the blank file.
    fn file(&self, name: &str) -> anyhow::Result<PathBuf> {
        let file = self.folder.path().join(name);
        for tail in ["", "-wal", "-shm"] {
            let old = self.folder.path().join(format!("{name}{tail}"));
            if old.exists() {
                fs::remove_file(old)?;
            }
        }
        fs::copy(&self.blank, &file)?;
        Ok(file)
    }

    /// How long our store takes for so many batches.
    fn ours(&self, durability: Durability, times: usize, make: Make<'_>, pace: Pace) -> anyhow::Result<Duration> {
        let store = Sqlite::open_with(&self.file("ours.db")?, durability, self.sealing.clone())?;
        let batches: Vec<_> = (0..times).map(|_| make(&self.hook)).collect();
        if pace == Pace::OneByOne {
            return clear(store, batches);
        }
        // As events happen, and as they stand below: in the order of their ids, whichever turn they are of.
        let batches = RefCell::new(batches.into_iter());
        let next = || batches.borrow_mut().next();
        let runtime = tokio::runtime::Builder::new_current_thread().build()?;
        let (say, hear) = channel();
        let turn = || async {
            while let Some(batch) = next() {
                let (say, room) = (say.clone(), store.room(&batch).await);
                let done = move |how| {
                    drop(room);
                    drop(say.send(how));
                };
                store.keep(batch, Box::new(done));
            }
            anyhow::Ok(())
        };
        let start = Instant::now();
        runtime.block_on(try_join_all((0..TURNS).map(|_| turn())))?;
        hear.iter().take(times).try_for_each(|how| how)?;
        Ok(start.elapsed())
    }

    /// How long bare inserts of the same rows take.
    fn bare(&self, durability: Durability, times: usize, make: Make<'_>, pace: Pace) -> anyhow::Result<Duration> {
        let (rows, shared) = self.rows(times, make)?;
        let mut connection = Connection::open(self.file("bare.db")?)?;
        connection.pragma_update(None, "foreign_keys", true)?;
        let synchronous = match durability {
            Durability::Commit => "NORMAL",
            Durability::BeforeEffect => "FULL",
        };
        connection.pragma_update(None, "synchronous", synchronous)?;
        let insert_shared = insert_into(&connection, SHARED)?;
        for values in shared {
            connection.execute(&insert_shared, params_from_iter(values))?;
        }
        let inserts = inserts(&connection)?;
        let group = match pace {
            Pace::Batched => MAX_GROUP_BATCHES,
            Pace::OneByOne => 1,
        };
        let mut insert = move || {
            let start = Instant::now();
            for group in rows.chunks(group) {
                let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
                for (table, values) in group.iter().flatten() {
                    transaction.prepare_cached(&inserts[*table])?.execute(params_from_iter(values))?;
                }
                transaction.commit()?;
            }
            Ok(start.elapsed())
        };
        match pace {
            Pace::Batched => insert(),
            Pace::OneByOne => on_a_worker(async move { insert() }),
        }
    }

    /// How long so many calls of one turn take, each when the one before may run.
    fn calls(&self, times: usize) -> anyhow::Result<Duration> {
        let store = Sqlite::open_with(&self.file("ours.db")?, Durability::Commit, self.sealing.clone())?;
        clear(store, self.turn(times))
    }

    /// The evidence of so many calls of one turn.
    fn turn(&self, calls: usize) -> Vec<Vec<EventRecord>> {
        let mut batches: Vec<_> = (0..calls).map(|_| call(&self.hook)).collect();
        let Some(who) = batches.first().map(|events| events[0].who.clone()) else { return batches };
        for event in batches.iter_mut().flatten() {
            let call = event.who.tool_call_id.take();
            event.who = Identity { tool_call_id: call, ..who.clone() };
        }
        batches
    }

    /// How long as many bare rows take, each a transaction by itself.
    fn bare_rows(&self, times: usize) -> anyhow::Result<Duration> {
        let executions = self.turn(times).into_iter().filter_map(|events| {
            let event = events.into_iter().next()?;
            let record = event.hooks.whole().next()?.clone();
            Execution::of(&event, &record)
        });
        let rows: Vec<Vec<Value>> = executions.map(plain_row).collect();
        let file = self.folder.path().join("plain.db");
        for tail in ["", "-wal", "-shm"] {
            drop(fs::remove_file(self.folder.path().join(format!("plain.db{tail}"))));
        }
        let connection = Connection::open(&file)?;
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "NORMAL")?;
        connection.execute_batch(BARE_TABLE)?;
        let insert = insert_into(&connection, "bare")?;
        on_a_worker(async move {
            let start = Instant::now();
            for values in rows {
                connection.prepare_cached(&insert)?.execute(params_from_iter(values))?;
            }
            Ok(start.elapsed())
        })
    }

    /// The rows of so many batches, as our store writes them, and those that all of them share.
    fn rows(&self, times: usize, make: Make<'_>) -> anyhow::Result<(Vec<Left>, Vec<Vec<Value>>)> {
        let file = self.file("rows.db")?;
        let store = Sqlite::open_with(&file, Durability::Commit, self.sealing.clone())?;
        let connection = Connection::open(&file)?;
        let (say, hear) = channel();
        let (mut ends, mut counts) = (Vec::new(), [0; TABLES.len()]);
        let first = make(&self.hook);
        let mut batches = vec![first];
        batches.extend((1..times).map(|_| make(&self.hook)));
        for batch in batches {
            let say = say.clone();
            store.keep(batch, Box::new(move |how| drop(say.send(how))));
            hear.recv().context("the store forgot to say")??;
            if ends.is_empty() {
                // All batches are alike, so each leaves as many rows as the first.
                counts = counted(&connection)?;
            }
            ends.push(counts);
        }
        drop(store);
        let shared = all(&connection, SHARED)?;
        let mut tables = TABLES.map(|table| all(&connection, table)).into_iter().collect::<Result<Vec<_>, _>>()?;
        let mut tables: Vec<_> = tables.iter_mut().map(|rows| rows.drain(..)).collect();
        let of_batch = |counts: [usize; TABLES.len()]| {
            let of_table = |(table, count): (usize, usize)| -> Left {
                tables[table].by_ref().take(count).map(|values| (table, values)).collect()
            };
            counts.into_iter().enumerate().flat_map(of_table).collect::<Left>()
        };
        let rows: Vec<Left> = ends.into_iter().map(of_batch).collect();
        ensure!(rows.iter().all(|left| left.len() == rows[0].len()), "the batches are not alike");
        Ok((rows, shared))
    }
}

/// An execution as a row of its published columns.
fn plain_row(execution: Execution) -> Vec<Value> {
    let text = |text: Option<String>| text.map_or(Value::Null, Value::Text);
    let metadata = serde_json::to_string(&execution.metadata).unwrap_or_default();
    vec![
        Value::Text(execution.id),
        text(execution.hook_id.map(|id| id.to_string())),
        Value::Text(execution.hook_name),
        Value::Integer(execution.hook_version.into()),
        Value::Text(execution.handler_type.word().to_owned()),
        Value::Text(execution.tenant_id.to_string()),
        text(execution.agent_id),
        text(execution.session_id),
        text(execution.turn_id),
        Value::Text(execution.event_id),
        text(execution.trace_id),
        Value::Text(execution.event.name().to_owned()),
        text(execution.tool_name),
        text(execution.tool_call_id),
        text(execution.input_hash),
        Value::Text(execution.decision.word().to_owned()),
        text(execution.reason),
        Value::Integer(i64::try_from(execution.duration_ms).unwrap_or(0)),
        Value::Integer(execution.retry.into()),
        text(execution.dedup_key),
        text(execution.error),
        Value::Null,
        Value::Text(metadata),
        Value::Text(execution.created_at.to_string()),
    ]
}

/// How long a turn waits whose calls come one after the other, each when the one before may run.
fn clear(store: Sqlite, batches: Vec<Vec<EventRecord>>) -> anyhow::Result<Duration> {
    let evidence = Evidence::new(Arc::new(store), Vec::new(), Deadlines::default()).writing_in_place();
    on_a_worker(async move {
        let start = Instant::now();
        for batch in batches {
            evidence.commit(batch, "not recorded").await?;
        }
        Ok(start.elapsed())
    })
}

/// Runs `turn` where turns run. On another thread a sync of the disk takes another time: the kernel wakes whoever waits
/// for it on the core that it slept on, and the disk interrupts only one of them.
fn on_a_worker(turn: impl Future<Output = anyhow::Result<Duration>> + Send + 'static) -> anyhow::Result<Duration> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(WORKERS).enable_time().build()?;
    runtime.block_on(TaskTracker::new().spawn_on(turn, runtime.handle()))?
}

fn counted(connection: &Connection) -> rusqlite::Result<[usize; TABLES.len()]> {
    let mut counts = [0; TABLES.len()];
    for (table, count) in TABLES.iter().zip(&mut counts) {
        let sql = format!("SELECT count(*) FROM {table}");
        *count = connection.query_row(&sql, [], |row| row.get::<_, i64>(0))?.unsigned_abs() as usize;
    }
    Ok(counts)
}

/// The rows of a table, in the order in which they were written.
fn all(connection: &Connection, table: &str) -> rusqlite::Result<Vec<Vec<Value>>> {
    let mut statement = connection.prepare(&format!("SELECT * FROM {table} ORDER BY rowid"))?;
    let columns = statement.column_count();
    statement.query_map([], |row| (0..columns).map(|i| row.get(i)).collect())?.collect()
}

/// The statements that insert whole rows.
fn inserts(connection: &Connection) -> rusqlite::Result<[String; TABLES.len()]> {
    let mut inserts = TABLES.map(str::to_owned);
    for insert in &mut inserts {
        *insert = insert_into(connection, insert)?;
    }
    Ok(inserts)
}

fn insert_into(connection: &Connection, table: &str) -> rusqlite::Result<String> {
    let columns = connection.prepare(&format!("SELECT * FROM {table}"))?.column_count();
    let places: Vec<String> = (1..=columns).map(|n| format!("?{n}")).collect();
    Ok(format!("INSERT INTO {table} VALUES ({})", places.join(", ")))
}
