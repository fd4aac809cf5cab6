//! What is spent at model doors, as rows.

use domain::store::{SpendingAccount, SpentSum};
use jiff::civil::Date;

use super::audit::number;
use super::tenants;
use crate::db::{Db, Failure};

/// What was spent of `account`.
pub(crate) fn spent(db: &dyn Db, account: &SpendingAccount) -> Result<SpentSum, Failure> {
    let SpendingAccount { tenant, vendor, payer, day } = account;
    let found = db.one(
        "SELECT tokens, nano_dollars FROM door_spending \
         WHERE tenant_id = ?1 AND vendor = ?2 AND payer = ?3 AND day = ?4",
        &[tenants::spelled(tenant)?.as_str().into(), vendor.into(), payer.into(), day.to_string().into()],
        |row| Ok(SpentSum { tokens: row.count("tokens")?, nano_dollars: row.count("nano_dollars")? }),
    )?;
    Ok(found.unwrap_or_default())
}

/// Counts `more` to `account`, in one statement: others count there, too.
pub(crate) fn spend(db: &dyn Db, account: &SpendingAccount, more: SpentSum) -> Result<(), Failure> {
    let SpendingAccount { tenant, vendor, payer, day } = account;
    tenants::known(db, tenant)?;
    let sql = "INSERT INTO door_spending (tenant_id, vendor, payer, day, tokens, nano_dollars) \
               VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (tenant_id, vendor, payer, day) DO UPDATE SET \
               tokens = door_spending.tokens + excluded.tokens, \
               nano_dollars = door_spending.nano_dollars + excluded.nano_dollars";
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

/// Forgets what was spent before `day`.
pub(crate) fn forget(db: &dyn Db, day: Date) -> Result<(), Failure> {
    db.run("DELETE FROM door_spending WHERE day < ?1", &[day.to_string().into()]).map(drop)
}
