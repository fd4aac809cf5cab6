//! Sessions as rows: holding, listing and deleting them.

use std::sync::Arc;

use domain::id::{SessionId, TenantId};
use domain::store::{SessionKey, SessionRow, StoreError};
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::file::Failure;
use super::holder::Holder;
use super::locks::{Held, Locks};
use crate::refusal;

/// The session that `?2` names and all that began for it, however far down. `UNION` ends where a chain closes.
const FAMILY: &str = "WITH RECURSIVE family (session_id) AS (\
                        SELECT session_id FROM sessions WHERE tenant_id = ?1 AND session_id = ?2 \
                        UNION \
                        SELECT child.session_id FROM sessions AS child \
                        JOIN family ON child.tenant_id = ?1 AND child.parent = family.session_id\
                      )";

/// Takes `key`. The lock and its note belong together because both are taken while nobody else may write.
pub(super) fn hold(transaction: &Connection, locks: &Arc<Locks>, key: &SessionKey) -> Result<Held, Failure> {
    let Some(held) = locks.take(key).map_err(Failure::Said)? else {
        return Err(Failure::Said(in_use(transaction, key)?));
    };
    let me = Holder::me();
    transaction
        .prepare_cached(
            "INSERT INTO holders (tenant_id, session_id, pid, started) VALUES (?1, ?2, ?3, ?4) \
             ON CONFLICT DO UPDATE SET pid = excluded.pid, started = excluded.started",
        )?
        .execute(params![key.tenant.as_str(), key.session.as_str(), me.pid, me.started])?;
    Ok(held)
}

fn in_use(connection: &Connection, key: &SessionKey) -> Result<StoreError, Failure> {
    let noted = connection
        .prepare_cached("SELECT pid, started FROM holders WHERE tenant_id = ?1 AND session_id = ?2")?
        .query_row([key.tenant.as_str(), key.session.as_str()], holder)
        .optional()?;
    Ok(refusal::in_use(&key.session, &name(noted.flatten())))
}

fn holder(row: &Row<'_>) -> rusqlite::Result<Option<Holder>> {
    let pid: Option<u32> = row.get("pid")?;
    let started = row.get("started")?;
    Ok(pid.map(|pid| Holder { pid, started }))
}

fn name(noted: Option<Holder>) -> String {
    noted.map_or_else(|| "another process".into(), Holder::name)
}

/// The sessions of a tenant, the one used last first. Reads no journal.
pub(super) fn list(connection: &Connection, locks: &Locks, tenant: &TenantId) -> Result<Vec<SessionRow>, Failure> {
    let mut statement = connection.prepare_cached(
        "SELECT session_id, agent_id, parent, created_at, updated_at, title, turns, open_turn, last_end, pid, started, \
         (SELECT count(*) FROM approvals AS it WHERE it.tenant_id = sessions.tenant_id \
          AND it.session_id = sessions.session_id AND it.state = 'waiting') AS waiting \
         FROM sessions LEFT JOIN holders USING (tenant_id, session_id) \
         WHERE tenant_id = ?1 ORDER BY last_entry DESC",
    )?;
    let rows: Vec<(SessionRow, Option<Holder>)> =
        statement.query_map([tenant.as_str()], |row| Ok((session(row)?, holder(row)?)))?.collect::<Result<_, _>>()?;
    rows.into_iter()
        .map(|(row, noted)| {
            let key = SessionKey { tenant: tenant.clone(), session: SessionId::from(row.session_id.as_str()) };
            let taken = locks.is_taken(&key).map_err(Failure::Said)?;
            Ok(SessionRow { held_by: taken.then(|| name(noted)), ..row })
        })
        .collect()
}

fn session(row: &Row<'_>) -> rusqlite::Result<SessionRow> {
    Ok(SessionRow {
        session_id: row.get("session_id")?,
        agent_id: row.get("agent_id")?,
        parent: row.get("parent")?,
        created_at: row.get("created_at")?,
        updated_at: row.get("updated_at")?,
        title: row.get("title")?,
        turns: count(row, "turns")?,
        open_turn: row.get("open_turn")?,
        waiting: count(row, "waiting")?,
        held_by: None,
        last_end: row.get("last_end")?,
    })
}

/// A number that is never below 0, unless somebody else wrote it.
fn count(row: &Row<'_>, name: &str) -> rusqlite::Result<u64> {
    row.get::<_, i64>(name).map(|count| u64::try_from(count).unwrap_or(0))
}

/// Deletes a session and those that began for it. Nobody can take one meanwhile: that is written down too.
pub(super) fn delete(transaction: &Connection, locks: &Locks, key: &SessionKey) -> Result<bool, Failure> {
    let root = [key.tenant.as_str(), key.session.as_str()];
    let family: Vec<String> = transaction
        .prepare_cached(&format!("{FAMILY} SELECT session_id FROM family"))?
        .query_map(root, |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    for session in &family {
        let member = SessionKey { tenant: key.tenant.clone(), session: SessionId::from(session.as_str()) };
        if locks.is_taken(&member).map_err(Failure::Said)? {
            return Err(Failure::Said(in_use(transaction, &member)?));
        }
    }
    let members = "tenant_id = ?1 AND session_id IN family";
    let journal = format!("session IN (SELECT number FROM sessions WHERE {members})");
    // The rows that the chain is read from go last.
    for (table, which) in
        [("journal", journal.as_str()), ("approvals", members), ("holders", members), ("sessions", members)]
    {
        transaction.prepare_cached(&format!("{FAMILY} DELETE FROM {table} WHERE {which}"))?.execute(root)?;
    }
    Ok(!family.is_empty())
}
