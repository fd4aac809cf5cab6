//! Listings: reading rows back.

use std::path::Path;

use domain::store::{RecordQuery, StoreError, StoredEvent};
use rusqlite::types::Value as Cell;
use rusqlite::{Connection, Row, params_from_iter};

use super::file::failed;
use crate::body;
use crate::timing::{HookTiming, Timings};

const COLUMNS: &str = "event_id, at, event, checkpoint, tenant_id, agent_id, session_id, turn_id, iteration, \
                       tool_call_id, tool, is_test, ruling, text, permit, substituted, hooks";

/// The events that `query` asks for, newest last.
pub(super) fn find(connection: &Connection, path: &Path, query: &RecordQuery) -> Result<Vec<StoredEvent>, StoreError> {
    let (sql, cells) = select(query);
    let rows = || -> rusqlite::Result<Vec<(StoredEvent, String)>> {
        let mut statement = connection.prepare_cached(&sql)?;
        statement.query_map(params_from_iter(&cells), event)?.collect()
    };
    let mut events = Vec::new();
    for (event, hooks) in rows().map_err(|e| failed(path, &e))?.into_iter().rev() {
        let hooks = body::read(&hooks).map_err(|why| unreadable(path, &event.event_id, &why))?;
        events.push(StoredEvent { hooks, ..event });
    }
    Ok(events)
}

/// How long hooks took, over the newest `limit` events that are no tests.
pub(super) fn hook_timings(connection: &Connection, path: &Path, limit: usize) -> Result<Vec<HookTiming>, StoreError> {
    let mut timings = Timings::default();
    let mut add = || -> rusqlite::Result<Result<(), StoreError>> {
        let mut statement = connection
            .prepare_cached("SELECT event_id, at, hooks FROM events WHERE is_test = 0 ORDER BY seq DESC LIMIT ?1")?;
        let mut rows = statement.query([limit_of(limit)])?;
        while let Some(row) = rows.next()? {
            let (id, at, hooks): (String, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
            match body::read(&hooks) {
                Ok(hooks) => timings.add(&at, hooks),
                Err(why) => return Ok(Err(unreadable(path, &id, &why))),
            }
        }
        Ok(Ok(()))
    };
    add().map_err(|e| failed(path, &e))??;
    Ok(timings.finish())
}

/// Only the conditions that are asked for, so that each can use its index.
fn select(query: &RecordQuery) -> (String, Vec<Cell>) {
    let mut conditions = Vec::new();
    let mut cells = Vec::new();
    if let Some(id) = &query.event_id {
        // A range, not LIKE: it uses the index, and `%` in an id is only a sign.
        conditions.push("event_id >= ? AND event_id < ? || char(1114111)");
        cells.extend([Cell::Text(id.clone()), Cell::Text(id.clone())]);
    }
    if let Some(tool) = &query.tool {
        conditions.push("tool = ?");
        cells.push(Cell::Text(tool.clone()));
    }
    if query.last_turn {
        conditions
            .push("is_test = 0 AND turn_id = (SELECT turn_id FROM events WHERE is_test = 0 ORDER BY seq DESC LIMIT 1)");
    }
    let conditions = if conditions.is_empty() { "1".to_owned() } else { conditions.join(" AND ") };
    cells.push(Cell::Integer(limit_of(query.limit)));
    (format!("SELECT {COLUMNS} FROM events WHERE {conditions} ORDER BY seq DESC LIMIT ?"), cells)
}

pub(super) fn limit_of(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// The event, its hooks still as text.
fn event(row: &Row<'_>) -> rusqlite::Result<(StoredEvent, String)> {
    let event = StoredEvent {
        event_id: row.get("event_id")?,
        at: row.get("at")?,
        event: row.get("event")?,
        checkpoint: row.get("checkpoint")?,
        tenant_id: row.get("tenant_id")?,
        agent_id: row.get("agent_id")?,
        session_id: row.get("session_id")?,
        turn_id: row.get("turn_id")?,
        iteration: row.get("iteration")?,
        tool_call_id: row.get("tool_call_id")?,
        tool: row.get("tool")?,
        is_test: row.get("is_test")?,
        ruling: row.get("ruling")?,
        text: row.get("text")?,
        permit: row.get("permit")?,
        substituted: row.get("substituted")?,
        hooks: Vec::new(),
    };
    Ok((event, row.get("hooks")?))
}

fn unreadable(path: &Path, id: &str, why: &str) -> StoreError {
    StoreError::Corrupt(format!("event `{id}` in `{}`: {why}; somebody else changed the file", path.display()))
}
