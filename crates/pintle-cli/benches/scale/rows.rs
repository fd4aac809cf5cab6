//! The floor of records in SQLite: the rows that ours left, inserted into the same tables and indexes by hand, those of
//! one call of every turn in one transaction.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::ensure;
use pintle_store::Durability;
use rusqlite::types::Value;
use rusqlite::{Connection, TransactionBehavior, params_from_iter};

/// What all events of a turn have in common: one row for each turn.
const TURNS: &str = "turns";
/// The tables of evidence to which each call adds.
const TABLES: [&str; 2] = ["events", "audit_log"];
/// What the hooks of events have in common: calls that are alike share one row.
const SHARED: &str = "hook_sets";

type Row = Vec<Value>;

/// Rows, and a file that they can stand in.
pub(crate) struct BareRows {
    blank: PathBuf,
    file: PathBuf,
    synchronous: &'static str,
    shared: Vec<Row>,
    turns: Vec<Row>,
    /// For one call of every turn: those of each table.
    groups: Vec<[Vec<Row>; TABLES.len()]>,
}

impl BareRows {
    /// The rows of `filled`, a store that is closed, to be inserted into copies of `blank`, which has the same schema
    /// and no rows, in so many groups.
    pub(crate) fn of(filled: &Path, blank: &Path, groups: usize, durability: Durability) -> anyhow::Result<Self> {
        let connection = Connection::open(filled)?;
        let mut parts: Vec<[Vec<Row>; TABLES.len()]> = (0..groups).map(|_| Default::default()).collect();
        for (place, table) in TABLES.into_iter().enumerate() {
            let rows = all(&connection, table)?;
            ensure!(
                !rows.is_empty() && rows.len() % groups == 0,
                "{} rows of `{table}` are no {groups} groups",
                rows.len()
            );
            let each = rows.len() / groups;
            let mut rows = rows.into_iter();
            parts.iter_mut().for_each(|part| part[place].extend(rows.by_ref().take(each)));
        }
        let synchronous = match durability {
            Durability::Commit => "NORMAL",
            Durability::BeforeEffect => "FULL",
        };
        Ok(Self {
            blank: blank.to_owned(),
            file: blank.with_file_name("bare.db"),
            synchronous,
            shared: all(&connection, SHARED)?,
            turns: all(&connection, TURNS)?,
            groups: parts,
        })
    }

    /// How long it takes to insert the rows of so many groups, the turns with the first of them.
    pub(crate) fn insert(&self, groups: usize) -> anyhow::Result<Duration> {
        fresh(&self.blank, &self.file)?;
        let mut connection = Connection::open(&self.file)?;
        connection.pragma_update(None, "foreign_keys", true)?;
        connection.pragma_update(None, "synchronous", self.synchronous)?;
        let into = |table| insert_into(&connection, table);
        let (shared, turns, tables) = (into(SHARED)?, into(TURNS)?, [into(TABLES[0])?, into(TABLES[1])?]);
        for row in &self.shared {
            connection.execute(&shared, params_from_iter(row))?;
        }
        let start = Instant::now();
        let mut first = Some(&self.turns);
        for group in &self.groups[..groups] {
            let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            for row in first.take().into_iter().flatten() {
                transaction.prepare_cached(&turns)?.execute(params_from_iter(row))?;
            }
            for (sql, rows) in tables.iter().zip(group) {
                for row in rows {
                    transaction.prepare_cached(sql)?.execute(params_from_iter(row))?;
                }
            }
            transaction.commit()?;
        }
        Ok(start.elapsed())
    }
}

/// Makes `file` a copy of the closed database `blank`.
pub(crate) fn fresh(blank: &Path, file: &Path) -> anyhow::Result<()> {
    for tail in ["", "-wal", "-shm", "-lock"] {
        let mut old = file.as_os_str().to_owned();
        old.push(tail);
        if Path::new(&old).exists() {
            fs::remove_file(&old)?;
        }
    }
    fs::copy(blank, file)?;
    Ok(())
}

/// The rows of a table, in the order in which they were written.
fn all(connection: &Connection, table: &str) -> rusqlite::Result<Vec<Row>> {
    let mut statement = connection.prepare(&format!("SELECT * FROM {table} ORDER BY rowid"))?;
    let columns = statement.column_count();
    statement.query_map([], |row| (0..columns).map(|i| row.get(i)).collect())?.collect()
}

fn insert_into(connection: &Connection, table: &str) -> rusqlite::Result<String> {
    let columns = connection.prepare(&format!("SELECT * FROM {table}"))?.column_count();
    let places: Vec<String> = (1..=columns).map(|n| format!("?{n}")).collect();
    Ok(format!("INSERT INTO {table} VALUES ({})", places.join(", ")))
}
