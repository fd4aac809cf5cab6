//! The floor of records in PostgreSQL: the rows that ours left, inserted into the same tables and indexes by prepared
//! statements that all are sent before an answer is waited for, those of one call of every turn in one transaction.

use std::error::Error;
use std::time::{Duration, Instant};

use anyhow::ensure;
use bytes::BytesMut;
use futures_util::future::try_join_all;
use tokio::runtime::Runtime;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{Client, NoTls, Statement};
use tokio_util::task::TaskTracker;

/// As for SQLite.
const TURNS: &str = "turns";
const TABLES: [&str; 2] = ["events", "audit_log"];
const SHARED: &str = "hook_sets";

/// A value as the server wrote it.
#[derive(Debug)]
struct Raw(Option<Vec<u8>>);

type Row = Vec<Raw>;

impl<'a> FromSql<'a> for Raw {
    fn from_sql(_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(Some(raw.to_vec())))
    }

    fn from_sql_null(_: &Type) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(None))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

impl ToSql for Raw {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        let Some(bytes) = &self.0 else { return Ok(IsNull::Yes) };
        out.extend_from_slice(bytes);
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// Rows, and a connection to a database that they can stand in.
pub(crate) struct BareRows {
    client: Client,
    shared: Vec<Row>,
    turns: Vec<Row>,
    /// For one call of every turn: those of each table.
    groups: Vec<[Vec<Row>; TABLES.len()]>,
    into: [Statement; 4],
}

impl BareRows {
    /// The rows of the database `filled`, to be inserted into `bare`, which has the same schema, in so many groups.
    pub(crate) async fn of((filled, bare): (&str, &str), groups: usize, tasks: &TaskTracker) -> anyhow::Result<Self> {
        let full = connected(filled, tasks).await?;
        let mut parts: Vec<[Vec<Row>; TABLES.len()]> = (0..groups).map(|_| Default::default()).collect();
        for (place, table) in TABLES.into_iter().enumerate() {
            let rows = all(&full, table).await?;
            ensure!(
                !rows.is_empty() && rows.len() % groups == 0,
                "{} rows of `{table}` are no {groups} groups",
                rows.len()
            );
            let each = rows.len() / groups;
            let mut rows = rows.into_iter();
            parts.iter_mut().for_each(|part| part[place].extend(rows.by_ref().take(each)));
        }
        let client = connected(bare, tasks).await?;
        let mut into = Vec::new();
        for table in [SHARED, TURNS, TABLES[0], TABLES[1]] {
            into.push(insert_into(&client, table).await?);
        }
        let Ok(into) = into.try_into() else { anyhow::bail!("there are four statements") };
        Ok(Self { shared: all(&full, SHARED).await?, turns: all(&full, TURNS).await?, groups: parts, client, into })
    }

    /// How long it takes to insert the rows of so many groups, the turns with the first of them.
    pub(crate) fn insert(&self, runtime: &Runtime, groups: usize) -> anyhow::Result<Duration> {
        runtime.block_on(async {
            self.client.batch_execute(EMPTY).await?;
            let [shared, turns, tables @ ..] = &self.into;
            self.put(shared, &self.shared).await?;
            let start = Instant::now();
            let mut first = Some(&self.turns);
            for group in &self.groups[..groups] {
                let begun = async { Ok(self.client.batch_execute("BEGIN").await?) };
                let begins = async { self.put(turns, first.take().map_or(&[], Vec::as_slice)).await };
                let [events, entries] = group;
                let written = (self.put(&tables[0], events), self.put(&tables[1], entries));
                // Polled in this order, so they are sent in it.
                futures_util::try_join!(begun, begins, written.0, written.1)?;
                self.client.batch_execute("COMMIT").await?;
            }
            Ok(start.elapsed())
        })
    }

    /// Inserts `rows`; all are sent before an answer is waited for.
    async fn put(&self, into: &Statement, rows: &[Row]) -> anyhow::Result<()> {
        try_join_all(rows.iter().map(|row| self.client.execute_raw(into, row))).await?;
        Ok(())
    }
}

/// Leaves a database as one that was just made.
pub(crate) const EMPTY: &str =
    "TRUNCATE turns, events, audit_log, audit_checkpoints, hook_sets RESTART IDENTITY CASCADE";

pub(crate) async fn connected(url: &str, tasks: &TaskTracker) -> anyhow::Result<Client> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tasks.spawn(async move {
        // Whoever asks hears of it.
        drop(connection.await);
    });
    Ok(client)
}

/// The rows of a table, in the order in which they were written.
async fn all(client: &Client, table: &str) -> anyhow::Result<Vec<Row>> {
    let rows = client.query(&format!("SELECT * FROM {table} ORDER BY ctid"), &[]).await?;
    Ok(rows.iter().map(|row| (0..row.len()).map(|column| row.get(column)).collect()).collect())
}

async fn insert_into(client: &Client, table: &str) -> anyhow::Result<Statement> {
    let columns = client.prepare(&format!("SELECT * FROM {table}")).await?.columns().len();
    let places: Vec<String> = (1..=columns).map(|n| format!("${n}")).collect();
    Ok(client.prepare(&format!("INSERT INTO {table} OVERRIDING SYSTEM VALUE VALUES ({})", places.join(", "))).await?)
}
