//! What is counted over all nodes.

use jiff::Timestamp;
use pintle_domain::store::{GatewayUse, ParkedTurn, UseRoom};
use serde::Deserialize;

use crate::db::{Columns, Db, Exclusive, Failure};
use crate::rows::tenants;
use crate::{body, rules};

/// The questions that wait, of the turns that are open in the sessions of a tenant.
const WAITING: &str = "FROM sessions AS s JOIN approvals AS it ON it.tenant_id = s.tenant_id \
                       AND it.session_id = s.session_id AND it.turn_id = s.open_turn AND it.state = 'waiting' \
                       WHERE s.tenant_id = ?1 AND s.open_turn IS NOT NULL";

/// What a question says of its end.
#[derive(Deserialize)]
struct Expiry {
    expires_at: Timestamp,
}

/// Counts `one`, unless there are enough of its kind. What is counted already is kept by its node from now on.
pub(crate) fn take(
    db: &dyn Db,
    one: &GatewayUse,
    room: UseRoom<'_>,
    (now, until): (Timestamp, Timestamp),
) -> Result<bool, Failure> {
    let tenant = tenants::spelled(&one.tenant)?;
    // Turns count together.
    let who = if room.turns.is_some() { "" } else { one.who.as_str() };
    db.exclude(Exclusive::Uses(place(&format!("{tenant} {} {who}", one.kind.word()))))?;
    if !fits(db, one, room, now)? {
        return Ok(false);
    }
    db.run(
        "INSERT INTO gateway_uses (id, kind, tenant_id, who, node, until) VALUES (?1, ?2, ?3, ?4, ?5, ?6) \
         ON CONFLICT (id) DO UPDATE SET who = excluded.who, node = excluded.node, until = excluded.until",
        &[
            (&one.id).into(),
            one.kind.word().into(),
            tenant.as_str().into(),
            (&one.who).into(),
            (&one.node).into(),
            rules::column(until).into(),
        ],
    )?;
    Ok(true)
}

/// Whether there is room for `one`.
fn fits(db: &dyn Db, one: &GatewayUse, room: UseRoom<'_>, now: Timestamp) -> Result<bool, Failure> {
    let tenant = tenants::spelled(&one.tenant)?;
    if let Some(turns) = room.turns {
        let counted = db.all(
            "SELECT CAST(id AS TEXT) AS id, who FROM gateway_uses WHERE tenant_id = ?1 AND kind = ?2 AND until > ?3",
            &[tenant.as_str().into(), one.kind.word().into(), rules::column(now).into()],
            |row| Ok((row.string("id")?, row.string("who")?)),
        )?;
        let all = db.all(&format!("SELECT s.session_id, s.open_turn {WAITING}"), &[tenant.as_str().into()], parked)?;
        // Time passes without anybody writing it down. What was asked may be long, and is read only where it counts.
        return Ok(room.fits(turns, one, &counted, &all)
            || room.fits(turns, one, &counted, &unexpired(db, tenant.as_str(), now)?));
    }
    let there = db.one(
        "SELECT count(*) AS there FROM gateway_uses WHERE tenant_id = ?1 AND kind = ?2 AND who = ?3 AND until > ?4",
        &[tenant.as_str().into(), one.kind.word().into(), (&one.who).into(), rules::column(now).into()],
        |row| row.count("there"),
    )?;
    Ok(there.is_none_or(|there| there < u64::from(room.limit)))
}

/// The turns of `tenant` that wait for a person who can still answer.
fn unexpired(db: &dyn Db, tenant: &str, now: Timestamp) -> Result<Vec<ParkedTurn>, Failure> {
    let sql = format!("SELECT s.session_id, s.open_turn, it.body {WAITING}");
    let found = db.all(&sql, &[tenant.into()], |row| {
        // One that nobody can read counts: whoever looks for it is told.
        let waits = body::read::<Expiry>(&row.text("body")?).map_or(true, |it| now < it.expires_at);
        Ok((waits, parked(row)?))
    })?;
    Ok(found.into_iter().filter_map(|(waits, turn)| waits.then_some(turn)).collect())
}

fn parked(row: &dyn Columns) -> Result<ParkedTurn, Failure> {
    Ok(ParkedTurn { session: row.string("session_id")?, turn: row.string("open_turn")? })
}

/// Counts everything that `node` has until `until`.
pub(crate) fn keep(db: &dyn Db, node: &str, until: Timestamp) -> Result<(), Failure> {
    let sql = "UPDATE gateway_uses SET until = ?2 WHERE node = ?1";
    db.run(sql, &[node.into(), rules::column(until).into()]).map(drop)
}

/// Counts these no more.
pub(crate) fn end(db: &dyn Db, ids: &[String]) -> Result<(), Failure> {
    ids.iter().try_for_each(|id| db.run("DELETE FROM gateway_uses WHERE id = ?1", &[id.into()]).map(drop))
}

/// A number for a name, so that those who count different things seldom wait for each other.
fn place(name: &str) -> i32 {
    name.bytes().fold(0, |sum: i32, byte| sum.wrapping_mul(31).wrapping_add(i32::from(byte)))
}
