//! Events as the schemas before kept them, a row for everything, and the way there and back.

use pintle_domain::store::{StoredEvent, StoredRecord};

use super::inserts;
use crate::body;
use crate::db::{Cell, Columns, Db, Dialect, Failure, Statement};

/// How many rows are brought over at a time.
const PAGE: i64 = 500;

const COLUMNS: &str = "event_id, at, event, checkpoint, tenant_id, agent_id, session_id, turn_id, iteration, \
                       tool_call_id, tool, is_test, ruling, text, permit, substituted, hooks";

const INSERT: &str = "INSERT INTO events_before (event_id, at, event, checkpoint, tenant_id, agent_id, session_id, \
                      turn_id, iteration, tool_call_id, tool, is_test, ruling, text, permit, substituted, hooks) \
                      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)";

const SQLITE: &str = "CREATE TABLE events_before (seq INTEGER PRIMARY KEY, event_id TEXT NOT NULL, at TEXT NOT NULL, \
                      event TEXT NOT NULL, checkpoint TEXT NOT NULL, tenant_id TEXT NOT NULL, agent_id TEXT NOT NULL, \
                      session_id TEXT NOT NULL, turn_id TEXT NOT NULL, iteration INTEGER NOT NULL, tool_call_id TEXT, \
                      tool TEXT, is_test INTEGER NOT NULL, ruling TEXT NOT NULL, text TEXT, permit TEXT, \
                      substituted INTEGER NOT NULL, hooks TEXT NOT NULL) STRICT";

const POSTGRES: &str = "CREATE TABLE events_before (seq BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, \
                        event_id TEXT COLLATE \"C\" NOT NULL, at TEXT NOT NULL, event TEXT NOT NULL, \
                        checkpoint TEXT NOT NULL, tenant_id TEXT NOT NULL, agent_id TEXT NOT NULL, \
                        session_id TEXT NOT NULL, turn_id TEXT NOT NULL, iteration BIGINT NOT NULL, tool_call_id TEXT, \
                        tool TEXT, is_test BOOLEAN NOT NULL, ruling TEXT NOT NULL, text TEXT, permit TEXT, \
                        substituted BOOLEAN NOT NULL, hooks TEXT NOT NULL)";

/// Brings all events from `events_before` into the tables of today.
pub(crate) fn bring_over(db: &dyn Db) -> Result<(), Failure> {
    let select = format!("SELECT seq, {COLUMNS} FROM events_before WHERE TRUE");
    pages(db, &select, "seq", &mut old_event, |page| db.run_all(&inserts(page.into_iter()).concat()))?;
    db.script("DROP TABLE events_before")
}

/// Takes all events back into a table `events_before`.
pub(crate) fn take_back(db: &dyn Db) -> Result<(), Failure> {
    db.script(match db.dialect() {
        Dialect::Sqlite => SQLITE,
        Dialect::Postgres => POSTGRES,
    })?;
    pages(db, super::FOUND, "e.seq", &mut super::event, |page| {
        db.run_all(&page.into_iter().map(old_insert).collect::<Vec<_>>())
    })
}

/// Hands all rows of `select` on, some at a time, in the order of `seq`.
fn pages(
    db: &dyn Db,
    select: &str,
    seq: &str,
    read: &mut dyn FnMut(&dyn Columns) -> Result<StoredEvent, Failure>,
    mut hand_on: impl FnMut(Vec<StoredEvent>) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let sql = format!("{select} AND {seq} > ?1 ORDER BY {seq} LIMIT ?2");
    let mut after = i64::MIN;
    loop {
        let page = db.all(&sql, &[after.into(), PAGE.into()], |row| Ok((row.int("seq")?, read(row)?)))?;
        let Some((last, _)) = page.last() else { return Ok(()) };
        after = *last;
        hand_on(page.into_iter().map(|(_, event)| event).collect())?;
    }
}

fn old_event(row: &dyn Columns) -> Result<StoredEvent, Failure> {
    let hooks = row.text("hooks")?;
    Ok(StoredEvent {
        event_id: row.string("event_id")?,
        at: row.string("at")?,
        event: row.string("event")?,
        checkpoint: row.string("checkpoint")?,
        tenant_id: row.string("tenant_id")?,
        agent_id: row.string("agent_id")?,
        session_id: row.string("session_id")?,
        turn_id: row.string("turn_id")?,
        iteration: u32::try_from(row.int("iteration")?).unwrap_or(u32::MAX),
        tool_call_id: row.maybe_string("tool_call_id")?,
        tool: row.maybe_string("tool")?,
        is_test: row.flag("is_test")?,
        ruling: row.string("ruling")?,
        text: row.maybe_string("text")?,
        permit: row.maybe_string("permit")?,
        substituted: row.flag("substituted")?,
        call: None,
        hooks: body::read(&hooks).unwrap_or_else(|why| vec![unreadable(&hooks, &why)]),
    })
}

/// What stands for hooks that somebody changed by hand: a store is not shut for it, and nothing is lost.
fn unreadable(hooks: &str, why: &str) -> StoredRecord {
    StoredRecord {
        hook: "unknown".into(),
        reason: Some("unreadable".into()),
        warnings: vec![why.to_owned(), hooks.to_owned()],
        ..StoredRecord::default()
    }
}

fn old_insert(event: StoredEvent) -> Statement<'static> {
    let hooks = serde_json::to_string(&event.hooks).expect("strings, numbers and JSON values are plain JSON");
    let cells: Vec<Cell<'static>> = vec![
        event.event_id.into(),
        event.at.into(),
        event.event.into(),
        event.checkpoint.into(),
        event.tenant_id.into(),
        event.agent_id.into(),
        event.session_id.into(),
        event.turn_id.into(),
        event.iteration.into(),
        event.tool_call_id.into(),
        event.tool.into(),
        event.is_test.into(),
        event.ruling.into(),
        event.text.into(),
        event.permit.into(),
        event.substituted.into(),
        hooks.into(),
    ];
    Statement::new(INSERT, cells)
}
