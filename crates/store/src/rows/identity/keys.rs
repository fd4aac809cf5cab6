//! API keys.

use jiff::Timestamp;
use pintle_domain::id::TenantId;
use pintle_domain::store::{Actor, ApiKey, KeyScope, SecretDigest};

use super::sealed_row::{self, SealedRow};
use super::{column_of, maybe_at, members, raise, shown_at, tenant_in, uuid};
use crate::db::{Columns, Db, Failure};
use crate::rows::tenants;
use crate::rules;

const COLUMNS: &str =
    "tenant_id, id, owner, name, shown, digest, scopes, expires_at, revoked_at, created_at, created_by, seal";

pub(crate) fn add(db: &dyn Db, key: &ApiKey, digest: &SecretDigest) -> Result<(), Failure> {
    let tenant = tenants::spelled(&key.tenant)?;
    if members::one(db, &key.tenant, &key.owner)?.is_none() {
        return Err(Failure::Said(members::unknown(&key.owner)));
    }
    let scopes: Vec<&str> = key.scopes.iter().map(|scope| scope.word()).collect();
    db.run(
        "INSERT INTO api_keys (tenant_id, id, owner, name, shown, digest, scopes, expires_at, revoked_at, created_at, \
         created_by) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        &[
            tenant.as_str().into(),
            (&key.id).into(),
            (&key.owner).into(),
            (&key.name).into(),
            (&key.shown).into(),
            digest.as_str().into(),
            scopes.join(" ").into(),
            key.expires_at.as_deref().map(column_of).transpose()?.into(),
            key.revoked_at.as_deref().map(column_of).transpose()?.into(),
            column_of(&key.created_at)?.into(),
            (&key.created_by).into(),
        ],
    )
    .map(drop)
}

pub(crate) fn all(db: &dyn Db, tenant: &TenantId) -> Result<Vec<SealedRow<ApiKey>>, Failure> {
    let Some(id) = uuid(tenant.as_str()) else { return Ok(Vec::new()) };
    let sql = format!("SELECT {COLUMNS} FROM api_keys WHERE tenant_id = ?1 ORDER BY created_at DESC, id DESC");
    db.all(&sql, &[id.into()], read)
}

/// The keys of all tenants, and what cannot be read of them.
pub(crate) fn every(db: &dyn Db) -> Result<(Vec<SealedRow<ApiKey>>, Vec<String>), Failure> {
    super::every(db, &format!("SELECT {COLUMNS} FROM api_keys ORDER BY tenant_id, id"), read)
}

pub(crate) fn one(db: &dyn Db, tenant: &TenantId, id: &str) -> Result<Option<SealedRow<ApiKey>>, Failure> {
    let (Some(tenant), Some(id)) = (uuid(tenant.as_str()), uuid(id)) else { return Ok(None) };
    let sql = format!("SELECT {COLUMNS} FROM api_keys WHERE tenant_id = ?1 AND id = ?2");
    db.one(&sql, &[tenant.into(), id.into()], read)
}

pub(crate) fn of(db: &dyn Db, digest: &SecretDigest) -> Result<Option<SealedRow<ApiKey>>, Failure> {
    let sql = format!("SELECT {COLUMNS} FROM api_keys WHERE digest = ?1");
    db.one(&sql, &[digest.as_str().into()], read)
}

pub(crate) fn any(db: &dyn Db, now: Timestamp) -> Result<bool, Failure> {
    let sql = "SELECT id FROM api_keys WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > ?1) LIMIT 1";
    Ok(db.one(sql, &[rules::column(now).into()], |row| row.string("id"))?.is_some())
}

/// Revokes a key that counted; which one that was.
pub(crate) fn revoke(db: &dyn Db, of: &TenantId, id: &str, by: &Actor) -> Result<Option<ApiKey>, Failure> {
    let (Some(tenant), Some(id)) = (uuid(of.as_str()), uuid(id)) else { return Ok(None) };
    let revoked = db.run(
        "UPDATE api_keys SET revoked_at = ?3, revoked_by = ?4 WHERE tenant_id = ?1 AND id = ?2 AND revoked_at IS NULL",
        &[tenant.as_str().into(), id.as_str().into(), rules::column(by.at).into(), (&by.name).into()],
    )?;
    if revoked == 0 {
        return Ok(None);
    }
    raise(db)?;
    let sql = "DELETE FROM console_sessions WHERE tenant_id = ?1 AND origin = ?2";
    db.run(sql, &[tenant.into(), format!("key:{id}").into()])?;
    Ok(one(db, of, &id)?.map(|row| row.it))
}

fn read(row: &dyn Columns) -> Result<SealedRow<ApiKey>, Failure> {
    let foreign = |why: String| Failure::Foreign { what: "column `scopes`".into(), why };
    let scopes: Result<Vec<KeyScope>, String> = row.text("scopes")?.split_ascii_whitespace().map(str::parse).collect();
    let it = ApiKey {
        tenant: tenant_in(row)?,
        id: row.string("id")?,
        owner: row.string("owner")?,
        name: row.string("name")?,
        shown: row.string("shown")?,
        scopes: scopes.map_err(foreign)?,
        expires_at: maybe_at(row, "expires_at")?,
        revoked_at: maybe_at(row, "revoked_at")?,
        created_at: shown_at(row, "created_at")?,
        created_by: row.string("created_by")?,
    };
    Ok(SealedRow { says: sealed_row::of_key(&it, &row.text("digest")?), it, seal: row.maybe_string("seal")? })
}
