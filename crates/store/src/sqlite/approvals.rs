//! Questions for persons, as rows. What becomes of them is decided in `domain`; this carries it out.

use domain::approval::{Approval, Plan, Said, Standing, State, plan};
use domain::store::{SessionKey, StoreError};
use rusqlite::{Connection, Params, Row, params};
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::{Error as WordError, StrDeserializer};

use super::file::Failure;
use super::records::limit_of;
use crate::{body, refusal};

const COLUMNS: &str = "id, state, answered_by, note, body";

/// Brings `question` to where it stands.
pub(super) fn ask(transaction: &Connection, question: Approval, now: jiff::Timestamp) -> Result<Standing, Failure> {
    let call = [
        question.tenant_id.as_str(),
        question.session_id.as_str(),
        question.turn_id.as_str(),
        question.tool_call_id.as_str(),
    ];
    let of_call = "WHERE tenant_id = ?1 AND session_id = ?2 AND turn_id = ?3 AND tool_call_id = ?4 ORDER BY seq";
    let earlier = select(transaction, of_call, call)?;
    match plan(question, &earlier, now) {
        Plan::Stands(standing) => Ok(standing),
        Plan::Park { new, void } => {
            for id in &void {
                set_state(transaction, id, State::Void)?;
            }
            insert(transaction, &new)?;
            Ok(Standing::Waiting(new))
        }
    }
}

/// Answers the question whose id is or begins as `id`.
pub(super) fn answer(
    transaction: &Connection,
    id: &str,
    said: Said,
    now: jiff::Timestamp,
) -> Result<Approval, Failure> {
    let mut approval = named(transaction, id)?;
    approval.answer(said, now).map_err(|why| Failure::Said(refusal::unanswerable(&approval.id, &why)))?;
    transaction
        .prepare_cached("UPDATE approvals SET state = ?2, answered_by = ?3, note = ?4 WHERE id = ?1")?
        .execute(params![approval.id, approval.state.word(), approval.answered_by, approval.note])?;
    Ok(approval)
}

/// Uses the question `id` up, if it stands approved.
pub(super) fn use_up(transaction: &Connection, id: &str, now: jiff::Timestamp) -> Result<(), Failure> {
    let approval = by_id(transaction, id)?.ok_or_else(|| Failure::Said(refusal::unknown(id)))?;
    match approval.state_at(now) {
        State::Approved => Ok(set_state(transaction, id, State::Used)?),
        state @ (State::Waiting | State::Refused | State::Used | State::Void | State::Expired) => {
            Err(Failure::Said(refusal::unusable(id, state)))
        }
    }
}

/// The question of exactly this id.
pub(super) fn by_id(connection: &Connection, id: &str) -> Result<Option<Approval>, Failure> {
    Ok(select(connection, "WHERE id = ?1", [id])?.pop())
}

/// The newest questions, oldest first.
pub(super) fn newest(connection: &Connection, waiting_only: bool, limit: usize) -> Result<Vec<Approval>, Failure> {
    let rest = match waiting_only {
        true => "WHERE state = 'waiting' ORDER BY seq DESC LIMIT ?1",
        false => "ORDER BY seq DESC LIMIT ?1",
    };
    let mut found = select(connection, rest, [limit_of(limit)])?;
    found.reverse();
    Ok(found)
}

/// What nobody answered or used of a turn's questions no longer counts.
pub(super) fn void_turn(transaction: &Connection, key: &SessionKey, turn: &str) -> rusqlite::Result<()> {
    transaction
        .prepare_cached(
            "UPDATE approvals SET state = 'void' WHERE tenant_id = ?1 AND session_id = ?2 AND turn_id = ?3 \
             AND state IN ('waiting', 'approved')",
        )?
        .execute([key.tenant.as_str(), key.session.as_str(), turn])?;
    Ok(())
}

fn set_state(transaction: &Connection, id: &str, state: State) -> rusqlite::Result<()> {
    transaction.prepare_cached("UPDATE approvals SET state = ?2 WHERE id = ?1")?.execute([id, state.word()])?;
    Ok(())
}

fn insert(transaction: &Connection, new: &Approval) -> Result<(), Failure> {
    let body = body::write(new).map_err(|why| {
        Failure::Said(StoreError::Unavailable(format!("approval `{}` cannot be kept: {why}", new.id)))
    })?;
    let inserted = transaction
        .prepare_cached(
            "INSERT INTO approvals (id, tenant_id, session_id, turn_id, tool_call_id, state, answered_by, note, body) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT (id) DO NOTHING",
        )?
        .execute(params![
            new.id,
            new.tenant_id.as_str(),
            new.session_id.as_str(),
            new.turn_id.as_str(),
            new.tool_call_id.as_str(),
            new.state.word(),
            new.answered_by,
            new.note,
            body,
        ])?;
    if inserted == 0 {
        return Err(Failure::Said(refusal::taken(&new.id)));
    }
    Ok(())
}

/// The only question whose id is or begins as `id`.
fn named(connection: &Connection, id: &str) -> Result<Approval, Failure> {
    if let Some(approval) = by_id(connection, id)? {
        return Ok(approval);
    }
    // Every id begins with nothing, and nobody means the only one by that.
    if id.is_empty() {
        return Err(Failure::Said(refusal::unknown(id)));
    }
    // Not LIKE: ids that begin so stand together in the index, and `%` in an id is only a sign.
    let mut found = select(connection, "WHERE id >= ?1 ORDER BY id LIMIT 2", [id])?;
    found.retain(|it| it.id.starts_with(id));
    match found.len() {
        0 => Err(Failure::Said(refusal::unknown(id))),
        1 => Ok(found.remove(0)),
        _ => Err(Failure::Said(refusal::ambiguous(id))),
    }
}

fn select(connection: &Connection, rest: &str, which: impl Params) -> Result<Vec<Approval>, Failure> {
    let mut statement = connection.prepare_cached(&format!("SELECT {COLUMNS} FROM approvals {rest}"))?;
    let mut rows = statement.query(which)?;
    let mut approvals = Vec::new();
    while let Some(row) = rows.next()? {
        approvals.push(approval(row)?);
    }
    Ok(approvals)
}

/// The question as it was asked, with what became of it.
fn approval(row: &Row<'_>) -> Result<Approval, Failure> {
    let foreign = |why: String| Failure::Foreign {
        what: format!("approval `{}`", row.get::<_, String>("id").unwrap_or_default()),
        why,
    };
    let body: String = row.get("body")?;
    let word: String = row.get("state")?;
    let word: StrDeserializer<'_, WordError> = word.as_str().into_deserializer();
    Ok(Approval {
        state: State::deserialize(word).map_err(|e| foreign(e.to_string()))?,
        answered_by: row.get("answered_by")?,
        note: row.get("note")?,
        ..body::read::<Approval>(&body).map_err(foreign)?
    })
}
