//! Journals: what an append changes, in the transaction of whoever calls, and reading one back.

use domain::session::Entry;
use domain::store::{Append, SessionKey, StoreError};
use rusqlite::{Connection, OptionalExtension, named_params, params};

use super::approvals;
use super::file::Failure;
use crate::body;
use crate::progress::Progress;

/// An append with its entries as they are written.
pub(super) struct Lines<'a> {
    append: &'a Append,
    bodies: Vec<String>,
}

impl<'a> Lines<'a> {
    /// Writes the entries of `append` as JSON.
    pub(super) fn of(append: &'a Append) -> Result<Self, StoreError> {
        let write = |(i, entry)| {
            body::write(entry).map_err(|why| {
                let session = &append.key.session;
                StoreError::Unavailable(format!("entry {} for session {session:?} cannot be kept: {why}", i + 1))
            })
        };
        Ok(Self { append, bodies: append.entries.iter().enumerate().map(write).collect::<Result<_, _>>()? })
    }

    /// Puts them into the journal, and brings the session's row and its approvals up to date.
    pub(super) fn insert(&self, transaction: &Connection) -> rusqlite::Result<()> {
        if self.bodies.is_empty() {
            return Ok(());
        }
        let Append { key, agent, parent, at, .. } = self.append;
        let (tenant, session, now) = (key.tenant.as_str(), key.session.as_str(), at.to_string());
        transaction
            .prepare_cached(
                "INSERT INTO sessions (tenant_id, session_id, agent_id, parent, created_at, updated_at, title, turns, \
                 opened, last_entry) VALUES (?1, ?2, ?3, ?4, ?5, ?5, '', 0, 0, 0) ON CONFLICT DO NOTHING",
            )?
            .execute(params![tenant, session, agent.as_str(), parent.as_ref().map(|it| it.as_str()), now])?;
        let (number, open_turn, opened): (i64, Option<String>, bool) = transaction
            .prepare_cached("SELECT number, open_turn, opened FROM sessions WHERE tenant_id = ?1 AND session_id = ?2")?
            .query_row([tenant, session], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;

        let mut line = transaction.prepare_cached("INSERT INTO journal (session, at, body) VALUES (?1, ?2, ?3)")?;
        for body in &self.bodies {
            line.execute(params![number, now, body])?;
        }
        let last_entry = transaction.last_insert_rowid();

        let progress = Progress::of(open_turn, opened, &self.append.entries);
        transaction
            .prepare_cached(
                "UPDATE sessions SET agent_id = :agent_id, updated_at = :now, \
                 title = CASE title WHEN '' THEN :title ELSE title END, turns = turns + :turns, \
                 open_turn = :open_turn, opened = :opened, last_end = coalesce(:last_end, last_end), last_entry = :last_entry \
                 WHERE number = :number",
            )?
            .execute(named_params! {
                ":agent_id": agent.as_str(),
                ":now": now,
                ":title": progress.title,
                ":turns": i64::try_from(progress.turns).unwrap_or(i64::MAX),
                ":open_turn": progress.open_turn,
                ":opened": progress.opened,
                ":last_end": progress.last_end.map(|cause| cause.word()),
                ":last_entry": last_entry,
                ":number": number,
            })?;
        progress.ended.iter().try_for_each(|turn| approvals::void_turn(transaction, key, turn))
    }
}

/// The journal of a session, oldest first.
pub(super) fn read(connection: &Connection, key: &SessionKey) -> Result<Vec<Entry>, Failure> {
    let number: Option<i64> = connection
        .prepare_cached("SELECT number FROM sessions WHERE tenant_id = ?1 AND session_id = ?2")?
        .query_row([key.tenant.as_str(), key.session.as_str()], |row| row.get(0))
        .optional()?;
    let Some(number) = number else { return Ok(Vec::new()) };
    let mut lines = connection.prepare_cached("SELECT seq, body FROM journal WHERE session = ?1 ORDER BY seq")?;
    let mut rows = lines.query([number])?;
    let mut entries = Vec::new();
    while let Some(row) = rows.next()? {
        let seq: i64 = row.get(0)?;
        let body = row.get_ref(1)?.as_str().map_err(rusqlite::Error::from)?;
        entries.push(body::read(body).map_err(|why| Failure::Foreign { what: format!("journal entry {seq}"), why })?);
    }
    Ok(entries)
}
