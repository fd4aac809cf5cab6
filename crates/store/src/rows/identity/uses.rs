//! What is counted over all nodes.

use domain::store::GatewayUse;
use jiff::Timestamp;

use crate::db::{Db, Exclusive, Failure};
use crate::rows::tenants;
use crate::rules;

/// Counts `one`, unless there are enough of its kind.
pub(crate) fn take(
    db: &dyn Db,
    one: &GatewayUse,
    limit: u32,
    (now, until): (Timestamp, Timestamp),
) -> Result<bool, Failure> {
    let tenant = tenants::spelled(&one.tenant)?;
    db.exclude(Exclusive::Uses(place(&format!("{tenant} {} {}", one.kind.word(), one.who))))?;
    let there = db.one(
        "SELECT count(*) AS there FROM gateway_uses WHERE tenant_id = ?1 AND kind = ?2 AND who = ?3 AND until > ?4",
        &[tenant.as_str().into(), one.kind.word().into(), (&one.who).into(), rules::column(now).into()],
        |row| row.count("there"),
    )?;
    if there.is_some_and(|there| there >= u64::from(limit)) {
        return Ok(false);
    }
    db.run(
        "INSERT INTO gateway_uses (id, kind, tenant_id, who, node, until) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
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
