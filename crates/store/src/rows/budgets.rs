//! What tenants may spend, as rows.

use std::borrow::Cow;

use jiff::Timestamp;
use pintle_domain::id::TenantId;
use pintle_domain::store::Budget;

use crate::db::{Columns, Db, Failure};
use crate::refusal::swallowed;
use crate::rules::{self, Account, month_of};

/// The budget that is left this month.
pub(crate) fn budget(db: &dyn Db, tenant: &TenantId, now: Timestamp) -> Result<Budget, Failure> {
    Ok(touched(db, tenant, now)?.shown())
}

/// Books `tokens` in one statement, which looks and books at once. Says whether they fitted.
pub(crate) fn reserve(db: &dyn Db, tenant: &TenantId, tokens: u64, now: Timestamp) -> Result<bool, Failure> {
    // More than any budget has.
    let Ok(tokens) = i64::try_from(tokens) else { return touched(db, tenant, now).map(|_| false) };
    if booked(db, tenant, tokens, now)? {
        return Ok(true);
    }
    // There may be no row yet, or one of another month.
    touched(db, tenant, now)?;
    booked(db, tenant, tokens, now)
}

fn booked(db: &dyn Db, tenant: &TenantId, tokens: i64, now: Timestamp) -> Result<bool, Failure> {
    let Some(id) = rules::uuid(tenant.as_str()) else { return Ok(false) };
    let sql = "UPDATE tenant_hook_budget SET used = used + ?2, updated_at = ?3 \
               WHERE tenant_id = ?1 AND month_start >= ?4 AND budget_total - used >= ?2";
    let cells = [id.into(), tokens.into(), rules::column(now).into(), month_of(now).to_string().into()];
    Ok(db.run(sql, &cells)? == 1)
}

/// Corrects what was booked. Says what is left, and whether that is little for the first time this month.
pub(crate) fn settle(db: &dyn Db, tenant: &TenantId, delta: i64, now: Timestamp) -> Result<(Budget, bool), Failure> {
    let mut account = touched(db, tenant, now)?;
    let warns = account.settle(delta);
    let sql = "UPDATE tenant_hook_budget SET used = ?2, last_warned_at = coalesce(?3, last_warned_at), updated_at = ?4 \
               WHERE tenant_id = ?1";
    // Never before the month it is about: a slower clock may have said it.
    let warned_at = warns.then(|| rules::column(now.max(account.begin())));
    let id = rules::uuid(tenant.as_str());
    if db.run(sql, &[id.into(), account.used.into(), warned_at.into(), rules::column(now).into()])? != 1 {
        return Err(swallowed("what a judge cost", "tenant_hook_budget"));
    }
    Ok((account.shown(), warns))
}

/// Sets what may be spent a month. Gives what it was before, and what is left now.
pub(crate) fn set(db: &dyn Db, tenant: &TenantId, total: i64, now: Timestamp) -> Result<(i64, Budget), Failure> {
    let before = touched(db, tenant, now)?;
    let (was, account) = (before.total, Account { total, ..before });
    let id = rules::uuid(tenant.as_str());
    db.run(
        "UPDATE tenant_hook_budget SET budget_total = ?2, updated_at = ?3 WHERE tenant_id = ?1",
        &[id.into(), total.into(), rules::column(now).into()],
    )?;
    Ok((was, account.shown()))
}

/// The row of `tenant` in the month of `now`, or in a later one if somebody with a faster clock was there. Nobody else
/// changes it until the end of the transaction.
fn touched(db: &dyn Db, tenant: &TenantId, now: Timestamp) -> Result<Account, Failure> {
    let unknown = || Failure::Said(rules::no_tenant(tenant));
    let id = rules::uuid(tenant.as_str()).ok_or_else(unknown)?;
    let (month, at) = (month_of(now).to_string(), rules::column(now));
    db.run(
        "INSERT INTO tenant_hook_budget (tenant_id, month_start, updated_at) SELECT id, ?2, ?3 FROM tenants \
         WHERE id = ?1 ON CONFLICT (tenant_id) DO NOTHING",
        &[(&id).into(), (&month).into(), (&at).into()],
    )?;
    db.run(
        "UPDATE tenant_hook_budget SET month_start = ?2, used = 0, updated_at = ?3 \
         WHERE tenant_id = ?1 AND month_start < ?2",
        &[(&id).into(), (&month).into(), (&at).into()],
    )?;
    let sql = format!(
        "SELECT month_start, budget_total, used, last_warned_at FROM tenant_hook_budget WHERE tenant_id = ?1{}",
        db.dialect().for_update()
    );
    let found = db.one(&sql, &[(&id).into()], |row| account(row, tenant))?;
    found.ok_or_else(unknown)
}

/// The budgets of which little was left for the first time in their month since `since`.
pub(crate) fn low_since(db: &dyn Db, since: Timestamp) -> Result<Vec<(TenantId, Budget)>, Failure> {
    let sql = "SELECT tenant_id, month_start, budget_total, used, last_warned_at FROM tenant_hook_budget \
               WHERE last_warned_at >= ?1 ORDER BY last_warned_at, tenant_id";
    let found = db.all(sql, &[rules::column(since).into()], |row| {
        let tenant = TenantId::new(row.string("tenant_id")?);
        Ok((account(row, &tenant)?, tenant))
    })?;
    // What was said in the month before is not about this one.
    let low = found.into_iter().filter(|(account, _)| account.warned);
    Ok(low.map(|(account, tenant)| (tenant, account.shown())).collect())
}

fn account(row: &dyn Columns, tenant: &TenantId) -> Result<Account, Failure> {
    let month = row.text("month_start")?;
    let foreign = |e: jiff::Error| Failure::Foreign { what: format!("the budget of `{tenant}`"), why: e.to_string() };
    let warned_at = row.maybe_text("last_warned_at")?.map(Cow::into_owned);
    Ok(Account {
        month: month.parse().map_err(foreign)?,
        total: row.int("budget_total")?,
        used: row.int("used")?,
        // Both are written the same way, so that texts sort as days.
        warned: warned_at.is_some_and(|at| at.get(..month.len()).is_some_and(|day| day >= month.as_ref())),
    })
}
