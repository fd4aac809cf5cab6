//! What is spent at model doors, as rows.

use jiff::Timestamp;
use jiff::civil::Date;
use pintle_domain::store::{SpendingAccount, SpendingHold, SpendingRoom, SpendingStanding, SpentSum};

use super::audit::number;
use super::tenants;
use crate::db::{Columns, Db, Failure};
use crate::rules;

/// Most that one hold has of anything: thousands of them still add up to a number.
const MOST_OF_ONE: u64 = 1 << 50;

/// What was spent of `account`.
pub(crate) fn spent(db: &dyn Db, account: &SpendingAccount) -> Result<SpentSum, Failure> {
    let SpendingAccount { tenant, vendor, payer, day } = account;
    let found = db.one(
        "SELECT tokens, nano_dollars FROM door_spending \
         WHERE tenant_id = ?1 AND vendor = ?2 AND payer = ?3 AND day = ?4",
        &[tenants::spelled(tenant)?.as_str().into(), vendor.into(), payer.into(), day.to_string().into()],
        sum,
    )?;
    Ok(found.unwrap_or_default())
}

fn sum(row: &dyn Columns) -> Result<SpentSum, Failure> {
    Ok(SpentSum { tokens: row.count("tokens")?, nano_dollars: row.count("nano_dollars")? })
}

/// Counts `more` to `account`, in one statement: others count there, too. What is more than a column holds is the most
/// that it holds.
pub(crate) fn spend(db: &dyn Db, account: &SpendingAccount, more: SpentSum) -> Result<(), Failure> {
    let SpendingAccount { tenant, vendor, payer, day } = account;
    tenants::known(db, tenant)?;
    let sql = "INSERT INTO door_spending (tenant_id, vendor, payer, day, tokens, nano_dollars) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (tenant_id, vendor, payer, day) DO UPDATE SET \
               tokens = CASE WHEN door_spending.tokens > 9223372036854775807 - excluded.tokens \
               THEN 9223372036854775807 ELSE door_spending.tokens + excluded.tokens END, \
               nano_dollars = CASE WHEN door_spending.nano_dollars > 9223372036854775807 - excluded.nano_dollars \
               THEN 9223372036854775807 ELSE door_spending.nano_dollars + excluded.nano_dollars END";
    let tenant = tenants::spelled(tenant)?;
    let cells = [
        tenant.as_str().into(),
        vendor.into(),
        payer.into(),
        day.to_string().into(),
        number(more.tokens),
        number(more.nano_dollars),
    ];
    db.run(sql, &cells).map(drop)
}

/// Makes `hold` if there is room.
pub(crate) fn hold(
    db: &dyn Db,
    hold: &SpendingHold,
    room: SpendingRoom,
    (now, until): (Timestamp, Timestamp),
) -> Result<SpendingStanding, Failure> {
    let SpendingAccount { tenant, vendor, payer, .. } = &hold.account;
    // Whoever asks about the same account waits here until this one's hold is there to be seen.
    spend(db, &hold.account, SpentSum::default())?;
    let spent = spent(db, &hold.account)?;
    let tenant = tenants::spelled(tenant)?;
    let held = db.one(
        "SELECT CAST(coalesce(sum(tokens), 0) AS BIGINT) AS tokens, \
         CAST(coalesce(sum(nano_dollars), 0) AS BIGINT) AS nano_dollars FROM door_holds \
         WHERE tenant_id = ?1 AND vendor = ?2 AND payer = ?3 AND until > ?4",
        &[tenant.as_str().into(), vendor.into(), payer.into(), rules::column(now).into()],
        sum,
    )?;
    let held = held.unwrap_or_default();
    let has_room = room.has_room(spent, held);
    if has_room {
        db.run(
            "INSERT INTO door_holds (id, tenant_id, vendor, payer, node, tokens, nano_dollars, until) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
            &[
                (&hold.id).into(),
                tenant.as_str().into(),
                vendor.into(),
                payer.into(),
                (&hold.node).into(),
                number(hold.most.tokens.min(MOST_OF_ONE)),
                number(hold.most.nano_dollars.min(MOST_OF_ONE)),
                rules::column(until).into(),
            ],
        )?;
    }
    Ok(SpendingStanding { spent, held, has_room })
}

/// Counts `more` to `account` in the place of a hold.
pub(crate) fn settle(db: &dyn Db, id: &str, account: &SpendingAccount, more: SpentSum) -> Result<(), Failure> {
    let was_there = db.run("DELETE FROM door_holds WHERE id = ?1", &[id.into()])? > 0;
    if was_there && more != SpentSum::default() { spend(db, account, more) } else { Ok(()) }
}

/// Counts all holds of `node` until `until`.
pub(crate) fn keep(db: &dyn Db, node: &str, until: Timestamp) -> Result<(), Failure> {
    let sql = "UPDATE door_holds SET until = ?2 WHERE node = ?1";
    db.run(sql, &[node.into(), rules::column(until).into()]).map(drop)
}

/// Forgets what was spent before `day`, and what was held until then.
pub(crate) fn forget(db: &dyn Db, day: Date) -> Result<(), Failure> {
    db.run("DELETE FROM door_holds WHERE until < ?1", &[format!("{day}T00:00:00Z").into()])?;
    db.run("DELETE FROM door_spending WHERE day < ?1", &[day.to_string().into()]).map(drop)
}
