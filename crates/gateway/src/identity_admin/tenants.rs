//! Tenants.

use jiff::Timestamp;
use pintle_domain::id::TenantId;
use pintle_domain::rule::Edition;
use pintle_domain::store::{StoreError, Tenant};
use pintle_rules::admin::Caller;

use super::{IdentityAdmin, actor, actor_because, label, lives_in, moment};
use crate::error::{ApiError, ErrorCode};

/// Longest slug, in characters: it stands in addresses.
const MAX_SLUG: usize = 63;

/// What becomes of a tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TenantChange {
    /// Whether it is let in.
    pub enabled: bool,
    /// Why, for the record; empty where nobody says it.
    pub reason: String,
}

impl IdentityAdmin {
    /// All tenants in which somebody can be, and whether each is let in.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn tenants(&self) -> Result<Vec<(Tenant, bool)>, ApiError> {
        let disabled = self.store.disabled_tenants()?;
        let mut tenants = self.store.tenants()?;
        tenants.retain(|tenant| lives_in(&tenant.id));
        Ok(tenants.into_iter().map(|tenant| (tenant.clone(), !disabled.contains(&tenant.id))).collect())
    }

    /// The tenant with this slug or id.
    ///
    /// # Errors
    /// There is none, or the store cannot be read.
    pub fn tenant(&self, named: &str) -> Result<Tenant, ApiError> {
        let found = self.tenants()?.into_iter().map(|(tenant, _)| tenant);
        let found = found.into_iter().find(|tenant| tenant.slug == named || tenant.id.as_str() == named);
        found.ok_or_else(|| not_found(named))
    }

    /// Makes a tenant.
    ///
    /// # Errors
    /// The edition has one only, the slug is none or taken, or the store cannot keep it.
    pub fn create_tenant(&self, by: &Caller, slug: &str, called: &str, now: Timestamp) -> Result<Tenant, ApiError> {
        if self.edition == Edition::Lite {
            return Err(ApiError::precondition("several tenants need edition standard"));
        }
        if !is_slug(slug) {
            return Err(ApiError::invalid(format!(
                "expected a slug of a to z, 0 to 9 and -, at most {MAX_SLUG}, got \"{}\"",
                slug.escape_debug()
            )));
        }
        let called = if called.is_empty() { slug } else { label("name", called)? };
        let tenant = Tenant {
            id: TenantId::new(uuid::Uuid::now_v7().to_string()),
            slug: slug.to_owned(),
            name: called.to_owned(),
            created_at: moment(now),
        };
        self.store.create_tenant(&tenant, &actor(by, now)).map_err(|error| match error {
            // Its id is fresh, so it is the slug, or the key that would seal the entry.
            StoreError::Conflict(why) => match self.store.tenants() {
                Ok(known) if known.iter().any(|known| known.slug == tenant.slug) => {
                    ApiError::new(ErrorCode::AlreadyExists, format!("there is a tenant \"{}\" already", tenant.slug))
                }
                Ok(_) | Err(_) => ApiError::precondition(why),
            },
            other @ (StoreError::Unavailable(_) | StoreError::Corrupt(_) | StoreError::NotFound(_)) => other.into(),
        })?;
        tracing::info!(tenant = %tenant.slug, by = %by.name, "security.tenant_created");
        Ok(tenant)
    }

    /// Lets a tenant in or not: one that is disabled is closed everywhere.
    ///
    /// # Errors
    /// There is none, it is the default one, the reason is too long, or the store cannot do it.
    pub fn set_tenant(
        &self,
        by: &Caller,
        named: &str,
        change: &TenantChange,
        now: Timestamp,
    ) -> Result<Tenant, ApiError> {
        let TenantChange { enabled, ref reason } = *change;
        let tenant = self.tenant(named)?;
        if !enabled && tenant.id == TenantId::default_tenant() {
            return Err(ApiError::precondition(
                "the default tenant cannot be disabled: this machine's own work belongs to it; stop the server instead",
            ));
        }
        self.store.set_tenant_disabled(&tenant.id, !enabled, &actor_because(by, now, reason)?)?;
        tracing::info!(tenant = %tenant.slug, enabled, by = %by.name, "security.tenant_changed");
        Ok(tenant)
    }
}

fn is_slug(text: &str) -> bool {
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_uuid = uuid::Uuid::parse_str(text).is_ok();
    !text.is_empty() && text.len() <= MAX_SLUG && text.chars().all(good) && !text.starts_with('-') && !is_uuid
}

fn not_found(named: &str) -> ApiError {
    ApiError::new(ErrorCode::NotFound, format!("tenant not found: {}", named.escape_debug()))
}
