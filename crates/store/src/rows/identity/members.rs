//! Members of tenants, and tenants that are disabled.

use pintle_domain::id::TenantId;
use pintle_domain::store::{Actor, Member, StoreError, Tenant};

use super::sealed_row::{self, SealedRow};
use super::{column_of, maybe_at, raise, shown_at, tenant_in, word};
use crate::db::{Columns, Db, Failure};
use crate::rows::{epoch, tenants};
use crate::rules;

const COLUMNS: &str = "tenant_id, user_id, role, disabled_at, created_at, created_by, seal";

/// The tenants that are disabled.
pub(crate) fn disabled(db: &dyn Db) -> Result<Vec<TenantId>, Failure> {
    db.all("SELECT tenant_id FROM tenant_stops ORDER BY tenant_id", &[], tenant_in)
}

/// Disables a tenant or enables it again; which one that is. Its gates are rules, so the rules change.
pub(crate) fn set_disabled(db: &dyn Db, tenant: &TenantId, disabled: bool, by: &Actor) -> Result<Tenant, Failure> {
    let found = tenants::one(db, tenant)?;
    let id = tenants::spelled(tenant)?;
    epoch::raise(db)?;
    raise(db)?;
    if disabled {
        let sql = "INSERT INTO tenant_stops (tenant_id, at, actor) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
        db.run(sql, &[id.as_str().into(), rules::column(by.at).into(), (&by.name).into()])?;
    } else {
        db.run("DELETE FROM tenant_stops WHERE tenant_id = ?1", &[id.as_str().into()])?;
    }
    Ok(found)
}

pub(crate) fn all(db: &dyn Db, tenant: &TenantId) -> Result<Vec<SealedRow<Member>>, Failure> {
    let Some(id) = rules::uuid(tenant.as_str()) else { return Ok(Vec::new()) };
    let sql = format!("SELECT {COLUMNS} FROM members WHERE tenant_id = ?1 ORDER BY user_id");
    let mut found = db.all(&sql, &[id.into()], read)?;
    // Databases order texts in ways of their own.
    found.sort_by(|a, b| a.it.user.cmp(&b.it.user));
    Ok(found)
}

/// The members of all tenants, and what cannot be read of them.
pub(crate) fn every(db: &dyn Db) -> Result<(Vec<SealedRow<Member>>, Vec<String>), Failure> {
    super::every(db, &format!("SELECT {COLUMNS} FROM members ORDER BY tenant_id, user_id"), read)
}

pub(crate) fn one(db: &dyn Db, tenant: &TenantId, user: &str) -> Result<Option<SealedRow<Member>>, Failure> {
    let Some(id) = rules::uuid(tenant.as_str()) else { return Ok(None) };
    let sql = format!("SELECT {COLUMNS} FROM members WHERE tenant_id = ?1 AND user_id = ?2");
    db.one(&sql, &[id.into(), user.into()], read)
}

pub(crate) fn add(db: &dyn Db, member: &Member) -> Result<(), Failure> {
    tenants::known(db, &member.tenant)?;
    let id = tenants::spelled(&member.tenant)?;
    let inserted = db.run(
        "INSERT INTO members (tenant_id, user_id, role, disabled_at, created_at, created_by) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO NOTHING",
        &[
            id.as_str().into(),
            (&member.user).into(),
            member.role.word().into(),
            member.disabled_at.as_deref().map(column_of).transpose()?.into(),
            column_of(&member.created_at)?.into(),
            (&member.created_by).into(),
        ],
    )?;
    if inserted == 0 {
        return Err(Failure::Said(taken(&member.user)));
    }
    let again = "DELETE FROM removed_members WHERE tenant_id = ?1 AND user_id = ?2";
    db.run(again, &[id.as_str().into(), (&member.user).into()]).map(drop)
}

/// Whether somebody was taken out of a tenant, and not added again.
pub(crate) fn was_removed(db: &dyn Db, tenant: &TenantId, user: &str) -> Result<bool, Failure> {
    let Some(id) = rules::uuid(tenant.as_str()) else { return Ok(false) };
    let sql = "SELECT user_id FROM removed_members WHERE tenant_id = ?1 AND user_id = ?2";
    Ok(db.one(sql, &[id.into(), user.into()], |row| row.string("user_id"))?.is_some())
}

pub(crate) fn change(db: &dyn Db, member: &Member) -> Result<(), Failure> {
    let id = tenants::spelled(&member.tenant)?;
    raise(db)?;
    let changed = db.run(
        "UPDATE members SET role = ?3, disabled_at = ?4 WHERE tenant_id = ?1 AND user_id = ?2",
        &[
            id.as_str().into(),
            (&member.user).into(),
            member.role.word().into(),
            member.disabled_at.as_deref().map(column_of).transpose()?.into(),
        ],
    )?;
    if changed == 0 {
        return Err(Failure::Said(unknown(&member.user)));
    }
    if member.disabled_at.is_some() {
        signed_out(db, id.as_str(), &member.user)?;
    }
    Ok(())
}

/// Ends the console sessions of somebody for good, and the links that would begin others.
fn signed_out(db: &dyn Db, tenant: &str, user: &str) -> Result<(), Failure> {
    db.run("DELETE FROM console_sessions WHERE tenant_id = ?1 AND user_id = ?2", &[tenant.into(), user.into()])?;
    db.run("DELETE FROM console_links WHERE tenant_id = ?1 AND user_id = ?2", &[tenant.into(), user.into()])?;
    Ok(())
}

/// Takes a member out; who that was.
pub(crate) fn remove(db: &dyn Db, tenant: &TenantId, user: &str, by: &Actor) -> Result<Option<Member>, Failure> {
    let Some(id) = rules::uuid(tenant.as_str()) else { return Ok(None) };
    raise(db)?;
    let found = one(db, tenant, user)?.map(|row| row.it);
    db.run(
        "UPDATE api_keys SET revoked_at = ?3, revoked_by = ?4 \
         WHERE tenant_id = ?1 AND owner = ?2 AND revoked_at IS NULL",
        &[id.as_str().into(), user.into(), rules::column(by.at).into(), (&by.name).into()],
    )?;
    signed_out(db, &id, user)?;
    let cells = [id.as_str().into(), user.into()];
    let gone = db.run("DELETE FROM members WHERE tenant_id = ?1 AND user_id = ?2", &cells)?;
    let Some(member) = found.filter(|_| gone > 0) else { return Ok(None) };
    db.run(
        "INSERT INTO removed_members (tenant_id, user_id, at, actor) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING",
        &[id.as_str().into(), user.into(), rules::column(by.at).into(), (&by.name).into()],
    )?;
    Ok(Some(member))
}

fn read(row: &dyn Columns) -> Result<SealedRow<Member>, Failure> {
    let it = Member {
        tenant: tenant_in(row)?,
        user: row.string("user_id")?,
        role: word(row, "role")?,
        disabled_at: maybe_at(row, "disabled_at")?,
        created_at: shown_at(row, "created_at")?,
        created_by: row.string("created_by")?,
    };
    Ok(SealedRow { says: sealed_row::of_member(&it), it, seal: row.maybe_string("seal")? })
}

pub(crate) fn unknown(user: &str) -> StoreError {
    StoreError::NotFound(format!("member not found: {}", user.escape_debug()))
}

pub(crate) fn taken(user: &str) -> StoreError {
    StoreError::Conflict(format!("`{}` is a member already", user.escape_debug()))
}
