//! `api_keys.*`, `members.*`, `tenants.*` and `auth.sessions.*`: who may ask.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use pintle_domain::json::{Value, json};
use pintle_domain::store::{ConsoleSession, KeyScope, Tenant};
use pintle_rules::admin::CallerRole;

use crate::Shared;
use crate::error::ApiError;
use crate::identity_admin::{FreshKey, KeyWish, MemberChange, TenantChange};
use crate::params::{Params, wrong};
use crate::principal::{Credential, Principal};
use crate::shown::{shown_key, shown_member};

impl Shared {
    pub(super) async fn keys_create(self: &Arc<Self>, who: &Principal, params: &Value) -> Result<Value, ApiError> {
        let params = Params::of(params, &["name", "owner", "scopes", "expiresIn"])?;
        let scopes = params.texts("scopes")?.unwrap_or_default();
        let scopes: Result<Vec<KeyScope>, String> = scopes.iter().map(|scope| scope.parse()).collect();
        let wish = KeyWish {
            name: params.needed("name")?.to_owned(),
            owner: params.text("owner")?.map(str::to_owned),
            scopes: scopes.map_err(|why| ApiError::invalid(format!("invalid request: {why}")))?,
            lasts: params.count("expiresIn", usize::try_from(u32::MAX).unwrap_or(usize::MAX))?.map(seconds),
        };
        let by = who.caller();
        let FreshKey { key, secret } =
            self.blocking(move |shared| shared.guests.admin.create_key(&by, wish, Timestamp::now())).await?;
        Ok(json!({ "apiKey": shown_key(&key), "key": secret }))
    }

    pub(super) async fn keys_list(self: &Arc<Self>, who: &Principal, params: &Value) -> Result<Value, ApiError> {
        Params::of(params, &[])?;
        let by = who.caller();
        let keys = self.blocking(move |shared| shared.guests.admin.keys(&by)).await?;
        Ok(json!({ "apiKeys": keys.iter().map(shown_key).collect::<Vec<_>>() }))
    }

    pub(super) async fn keys_revoke(self: &Arc<Self>, who: &Principal, params: &Value) -> Result<Value, ApiError> {
        let params = Params::of(params, &["id", "reason"])?;
        let (id, why, by) = (params.needed("id")?.to_owned(), reason(&params)?, who.caller());
        self.taken_away(move |shared| shared.guests.admin.revoke_key(&by, &id, &why, Timestamp::now())).await?;
        Ok(json!({ "ok": true }))
    }

    pub(super) async fn members_list(self: &Arc<Self>, who: &Principal, params: &Value) -> Result<Value, ApiError> {
        Params::of(params, &[])?;
        let by = who.caller();
        let members = self.blocking(move |shared| shared.guests.admin.members(&by)).await?;
        Ok(json!({ "members": members.iter().map(shown_member).collect::<Vec<_>>() }))
    }

    pub(super) async fn members_add(self: &Arc<Self>, who: &Principal, params: &Value) -> Result<Value, ApiError> {
        let params = Params::of(params, &["userId", "role"])?;
        let (user, by) = (params.needed("userId")?.to_owned(), who.caller());
        let role = role(&params)?.ok_or_else(|| ApiError::invalid("role is required"))?;
        let add = move |shared: &Self| shared.guests.admin.add_member(&by, &user, role, Timestamp::now());
        Ok(json!({ "member": shown_member(&self.blocking(add).await?) }))
    }

    pub(super) async fn members_update(self: &Arc<Self>, who: &Principal, params: &Value) -> Result<Value, ApiError> {
        let params = Params::of(params, &["userId", "role", "enabled", "reason"])?;
        let (user, by) = (params.needed("userId")?.to_owned(), who.caller());
        let change = MemberChange { role: role(&params)?, enabled: params.flag("enabled")?, reason: reason(&params)? };
        let done = move |shared: &Self| shared.guests.admin.change_member(&by, &user, change, Timestamp::now());
        Ok(json!({ "member": shown_member(&self.taken_away(done).await?) }))
    }

    pub(super) async fn members_remove(self: &Arc<Self>, who: &Principal, params: &Value) -> Result<Value, ApiError> {
        let params = Params::of(params, &["userId", "reason"])?;
        let (user, why, by) = (params.needed("userId")?.to_owned(), reason(&params)?, who.caller());
        self.taken_away(move |shared| shared.guests.admin.remove_member(&by, &user, &why, Timestamp::now())).await?;
        Ok(json!({ "ok": true }))
    }

    pub(super) async fn tenants_list(self: &Arc<Self>, params: &Value) -> Result<Value, ApiError> {
        Params::of(params, &[])?;
        let tenants = self.blocking(|shared| shared.guests.admin.tenants()).await?;
        let tenants: Vec<Value> = tenants.iter().map(|(tenant, enabled)| shown_tenant(tenant, *enabled)).collect();
        Ok(json!({ "tenants": tenants, "edition": self.edition.word() }))
    }

    pub(super) async fn tenants_create(self: &Arc<Self>, who: &Principal, params: &Value) -> Result<Value, ApiError> {
        let params = Params::of(params, &["slug", "name"])?;
        let (slug, called) = (params.needed("slug")?.to_owned(), params.text("name")?.unwrap_or_default().to_owned());
        let by = who.caller();
        let create = move |shared: &Self| shared.guests.admin.create_tenant(&by, &slug, &called, Timestamp::now());
        Ok(json!({ "tenant": shown_tenant(&self.blocking(create).await?, true) }))
    }

    pub(super) async fn tenants_update(self: &Arc<Self>, who: &Principal, params: &Value) -> Result<Value, ApiError> {
        let params = Params::of(params, &["tenantId", "enabled", "reason"])?;
        let (named, by) = (params.needed("tenantId")?.to_owned(), who.caller());
        let enabled = params.flag("enabled")?.ok_or_else(|| ApiError::invalid("enabled is required"))?;
        let change = TenantChange { enabled, reason: reason(&params)? };
        let set = move |shared: &Self| shared.guests.admin.set_tenant(&by, &named, &change, Timestamp::now());
        Ok(json!({ "tenant": shown_tenant(&self.taken_away(set).await?, enabled) }))
    }

    pub(super) async fn console_sessions(self: &Arc<Self>, who: &Principal, params: &Value) -> Result<Value, ApiError> {
        Params::of(params, &[])?;
        let asked = who.clone();
        let sessions = self.blocking(move |shared| shared.guests.admin.sessions(&asked)).await?;
        Ok(json!({ "sessions": sessions.iter().map(|it| shown_session(it, who)).collect::<Vec<_>>() }))
    }

    pub(super) async fn console_sign_out(self: &Arc<Self>, who: &Principal, params: &Value) -> Result<Value, ApiError> {
        let params = Params::of(params, &["id", "all"])?;
        let id = params.text("id")?.map(str::to_owned);
        if id.is_some() == params.flag("all")?.unwrap_or(false) {
            return Err(ApiError::invalid("expected `id`, or `all: true` for every session of yours"));
        }
        let who = who.clone();
        let ended = self.taken_away(move |shared| shared.guests.admin.end_sessions(&who, id.as_deref())).await?;
        Ok(json!({ "ok": true, "ended": ended }))
    }

    /// Does what takes something away from somebody, and sees to it that it is gone here at once.
    pub(crate) async fn taken_away<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> Result<T, ApiError> + Send + 'static,
    ) -> Result<T, ApiError> {
        let done = self.blocking(work).await;
        self.guests.changed.notify_one();
        done
    }
}

fn seconds(count: usize) -> Duration {
    Duration::from_secs(u64::try_from(count).unwrap_or(u64::MAX))
}

/// Why something is taken away; empty where nobody says it.
fn reason(params: &Params<'_>) -> Result<String, ApiError> {
    Ok(params.text("reason")?.unwrap_or_default().to_owned())
}

fn role(params: &Params<'_>) -> Result<Option<CallerRole>, ApiError> {
    let role = params.text("role")?.map(str::parse).transpose();
    role.map_err(|_: String| wrong("role", "viewer, operator or admin"))
}

fn shown_tenant(tenant: &Tenant, enabled: bool) -> Value {
    json!({
        "id": tenant.id, "slug": tenant.slug, "name": tenant.name, "enabled": enabled, "createdAt": tenant.created_at,
    })
}

fn shown_session(session: &ConsoleSession, who: &Principal) -> Value {
    let current = matches!(&who.credential, Credential::Console { session: own, .. } if *own == session.id);
    json!({
        "id": session.id, "device": session.device, "role": session.role.word(), "createdAt": session.created_at,
        "seenAt": session.seen_at, "current": current,
    })
}
