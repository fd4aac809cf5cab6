//! Tenants, as rows.

use jiff::Timestamp;
use pintle_domain::id::TenantId;
use pintle_domain::store::Tenant;

use super::epoch;
use crate::db::{Db, Failure};
use crate::rules;

/// All tenants, the sentinel among them.
pub(crate) fn all(db: &dyn Db) -> Result<Vec<Tenant>, Failure> {
    db.all("SELECT id, slug, name, created_at FROM tenants ORDER BY id", &[], |row| {
        let id = row.string("id")?;
        // What is odd about the rest of a row is no reason to have no rules: it is shown, and nothing hangs on it.
        let text = |column: &str| row.maybe_string(column).ok().flatten();
        let at = text("created_at").and_then(|at| at.parse().ok()).unwrap_or(Timestamp::UNIX_EPOCH);
        Ok(Tenant {
            slug: text("slug").unwrap_or_else(|| id.clone()),
            name: text("name").unwrap_or_else(|| id.clone()),
            created_at: rules::moment(at),
            id: TenantId::new(id),
        })
    })
}

/// Adds a tenant, which changes for whom there are rules.
pub(crate) fn add(db: &dyn Db, tenant: &Tenant) -> Result<(), Failure> {
    let kept = rules::tenant(tenant).map_err(Failure::Said)?;
    epoch::raise(db)?;
    let at = kept.created_at.parse().map_or_else(|_| kept.created_at.clone(), rules::column);
    let inserted = db.run(
        "INSERT INTO tenants (id, slug, name, created_at) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING",
        &[kept.id.as_str().into(), (&kept.slug).into(), (&kept.name).into(), at.into()],
    )?;
    if inserted == 0 {
        return Err(Failure::Said(rules::tenant_taken(&kept.id, &kept.slug)));
    }
    Ok(())
}

/// Whether there is such a tenant.
pub(crate) fn known(db: &dyn Db, id: &TenantId) -> Result<(), Failure> {
    let unknown = || Failure::Said(rules::no_tenant(id));
    let uuid = rules::uuid(id.as_str()).ok_or_else(unknown)?;
    let found = db.one("SELECT id FROM tenants WHERE id = ?1", &[uuid.into()], |row| row.string("id"))?;
    found.map(drop).ok_or_else(unknown)
}

/// The tenant with this id.
pub(crate) fn one(db: &dyn Db, id: &TenantId) -> Result<Tenant, Failure> {
    let spelled = spelled(id)?;
    let found = all(db)?.into_iter().find(|tenant| tenant.id == spelled);
    found.ok_or_else(|| Failure::Said(rules::no_tenant(id)))
}

/// The id of a tenant as columns have it.
pub(crate) fn spelled(id: &TenantId) -> Result<TenantId, Failure> {
    rules::uuid(id.as_str()).map(TenantId::new).ok_or_else(|| Failure::Said(rules::no_tenant(id)))
}
