//! Events: keeping and listing them.

use domain::store::{RecordQuery, StoredEvent};

use crate::body;
use crate::db::{Cell, Columns, Db, Dialect, Failure, Statement, limit_of};
use crate::timing::{HookTiming, Timings};

const COLUMNS: &str = "event_id, at, event, checkpoint, tenant_id, agent_id, session_id, turn_id, iteration, \
                       tool_call_id, tool, is_test, ruling, text, permit, substituted, hooks";

const INSERT: &str = "INSERT INTO events (event_id, at, event, checkpoint, tenant_id, agent_id, session_id, turn_id, \
                      iteration, tool_call_id, tool, is_test, ruling, text, permit, substituted, hooks) \
                      VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)";

/// The statement that keeps `event`.
pub(crate) fn insert(event: StoredEvent) -> Statement<'static> {
    let hooks = serde_json::to_string(&event.hooks).expect("strings, numbers and JSON values are plain JSON");
    let cells = vec![
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

/// Whether the event that `statement` keeps is there already. `false` for what keeps no event.
pub(crate) fn is_there(db: &dyn Db, statement: &Statement<'_>) -> Result<bool, Failure> {
    let (INSERT, [event_id, _at, _event, checkpoint, ..]) = (statement.sql, statement.cells.as_slice()) else {
        return Ok(false);
    };
    // By the index that each database has.
    let sql = match db.dialect() {
        Dialect::Sqlite => "SELECT event_id FROM events WHERE event_id = ?1 AND checkpoint = ?2",
        Dialect::Postgres => {
            "SELECT event_id FROM events WHERE left(event_id, 64) = left(?1, 64) AND event_id = ?1 AND checkpoint = ?2"
        }
    };
    Ok(!db.all(sql, &[event_id.clone(), checkpoint.clone()], |_| Ok(()))?.is_empty())
}

/// The events that `query` asks for, newest last.
pub(crate) fn find(db: &dyn Db, query: &RecordQuery) -> Result<Vec<StoredEvent>, Failure> {
    let (sql, cells) = select(db.dialect(), query);
    let mut events = db.all(&sql, &cells, event)?;
    events.reverse();
    Ok(events)
}

/// How long hooks took, over the newest `limit` events that are no tests.
pub(crate) fn hook_timings(db: &dyn Db, limit: usize) -> Result<Vec<HookTiming>, Failure> {
    let mut timings = Timings::default();
    let sql = "SELECT event_id, at, hooks FROM events WHERE NOT is_test ORDER BY seq DESC LIMIT ?1";
    db.each(sql, &[limit_of(limit).into()], &mut |row| {
        timings.add(&row.text("at")?, body::read(&row.text("hooks")?).map_err(|why| unreadable(row, why))?);
        Ok(())
    })?;
    Ok(timings.finish())
}

/// Only the conditions that are asked for, so that each can use its index.
fn select(dialect: Dialect, query: &RecordQuery) -> (String, Vec<Cell<'_>>) {
    let mut conditions = Vec::new();
    let mut cells = Vec::new();
    if let Some(id) = &query.event_id {
        // A range, not LIKE: it uses the index, and `%` in an id is only a sign.
        conditions.push(match dialect {
            Dialect::Sqlite => "event_id >= ?1 AND event_id < ?1 || char(1114111)".to_owned(),
            Dialect::Postgres => "left(event_id, 64) >= left(?1, 64) AND left(event_id, 64) < left(?1, 64) || \
                                  chr(1114111) AND starts_with(event_id, ?1)"
                .to_owned(),
        });
        cells.push(id.into());
    }
    if let Some(tool) = &query.tool {
        cells.push(tool.into());
        conditions.push(format!("tool = ?{}", cells.len()));
    }
    let mut ours = String::new();
    if let Some(tenant) = &query.tenant {
        cells.push(tenant.as_str().into());
        ours = format!(" AND tenant_id = ?{}", cells.len());
        conditions.push(format!("tenant_id = ?{}", cells.len()));
    }
    if query.last_turn {
        conditions.push(format!(
            "NOT is_test AND turn_id = (SELECT turn_id FROM events WHERE NOT is_test{ours} ORDER BY seq DESC LIMIT 1)"
        ));
    }
    let conditions = if conditions.is_empty() { "TRUE".to_owned() } else { conditions.join(" AND ") };
    cells.push(limit_of(query.limit).into());
    let limit = cells.len();
    (format!("SELECT {COLUMNS} FROM events WHERE {conditions} ORDER BY seq DESC LIMIT ?{limit}"), cells)
}

fn event(row: &dyn Columns) -> Result<StoredEvent, Failure> {
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
        hooks: body::read(&row.text("hooks")?).map_err(|why| unreadable(row, why))?,
    })
}

fn unreadable(row: &dyn Columns, why: String) -> Failure {
    Failure::Foreign { what: format!("event `{}`", row.string("event_id").unwrap_or_default()), why }
}
