//! API keys.

use std::time::Duration;

use jiff::Timestamp;
use pintle_domain::store::{ApiKey, KeyScope, Member, SecretDigest};
use pintle_rules::admin::{Caller, CallerRole};

use super::person::person;
use super::{IdentityAdmin, actor_because, label, moment, name};
use crate::error::{ApiError, ErrorCode};
use crate::secret;

/// A key that somebody wants.
#[derive(Clone, Debug)]
pub struct KeyWish {
    /// For people.
    pub name: String,
    /// Who it is; whoever makes it, unless it is said.
    pub owner: Option<String>,
    /// What it is for.
    pub scopes: Vec<KeyScope>,
    /// How long it counts; without end unless it is said.
    pub lasts: Option<Duration>,
}

/// A key that was just made: the only time that anybody sees it.
#[derive(Clone, Debug)]
pub struct FreshKey {
    /// What is kept of it.
    pub key: ApiKey,
    /// The key itself.
    pub secret: String,
}

impl IdentityAdmin {
    /// Makes a key. Whoever it is becomes a member, with the role that it takes, if they are none.
    ///
    /// # Errors
    /// It gives more than the caller has, something in it is wrong, or the store cannot keep it.
    pub fn create_key(&self, by: &Caller, wish: KeyWish, now: Timestamp) -> Result<FreshKey, ApiError> {
        let KeyWish { name: called, owner, mut scopes, lasts } = wish;
        let called = label("name", &called)?.to_owned();
        let owner = owner.unwrap_or_else(|| by.name.clone());
        // Whoever is a member already, or makes a key for themselves, has the name that they have.
        let is_known = owner == by.name || self.store.member(&by.tenant, &owner)?.is_some();
        let owner =
            if is_known { name("owner", &owner)? } else { person("owner", &owner, by, &self.owners)? }.to_owned();
        scopes.sort_unstable();
        scopes.dedup();
        let Some(role) = scopes.iter().map(|scope| scope.role()).max() else {
            return Err(ApiError::invalid("scopes is required: a key without scopes can do nothing"));
        };
        Self::may_give(by, role)?;
        let expires_at = lasts.map(|lasts| expiry(now, lasts)).transpose()?;
        let secret = secret::fresh_key()?;
        let key = ApiKey {
            tenant: by.tenant.clone(),
            id: uuid::Uuid::now_v7().to_string(),
            owner,
            name: called,
            shown: secret::shown(&secret),
            scopes,
            expires_at,
            revoked_at: None,
            created_at: moment(now),
            created_by: by.name.clone(),
        };
        self.is_member(by, &key, role)?;
        self.store.add_key(&key, &SecretDigest::of(&secret))?;
        tracing::info!(key = %key.shown, owner = %key.owner, by = %by.name, "security.key_created");
        Ok(FreshKey { key, secret })
    }

    /// Sees to it that the owner of a key is a member: what they may can then be lowered, and taken away.
    fn is_member(&self, by: &Caller, key: &ApiKey, role: CallerRole) -> Result<(), ApiError> {
        if self.store.member(&key.tenant, &key.owner)?.is_some() {
            return Ok(());
        }
        // Whoever makes a lesser key for themselves is no less by that.
        let role = if key.owner == by.name { by.role.min(CallerRole::Admin) } else { role };
        let member = Member {
            tenant: key.tenant.clone(),
            user: key.owner.clone(),
            role,
            disabled_at: None,
            created_at: key.created_at.clone(),
            created_by: key.created_by.clone(),
        };
        Ok(self.store.add_member(&member)?)
    }

    /// The keys of the caller's tenant, newest first.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn keys(&self, by: &Caller) -> Result<Vec<ApiKey>, ApiError> {
        Ok(self.store.keys(&by.tenant)?)
    }

    /// Revokes a key of the caller's tenant, by its id.
    ///
    /// # Errors
    /// There is none, the reason is too long, or the store cannot do it.
    pub fn revoke_key(&self, by: &Caller, id: &str, reason: &str, now: Timestamp) -> Result<(), ApiError> {
        if self.store.revoke_key(&by.tenant, id, &actor_because(by, now, reason)?)? {
            tracing::info!(key = %id, by = %by.name, "security.key_revoked");
            return Ok(());
        }
        match self.store.key(&by.tenant, id)? {
            Some(_) => Ok(()),
            None => Err(not_found(id)),
        }
    }
}

fn expiry(now: Timestamp, lasts: Duration) -> Result<String, ApiError> {
    let bad = || ApiError::invalid("the expiry is too far away; leave it out for a key that does not expire");
    if lasts.is_zero() {
        return Err(ApiError::invalid("the key would expire immediately; expected a longer time"));
    }
    now.checked_add(lasts).map(moment).map_err(|_| bad())
}

fn not_found(id: &str) -> ApiError {
    ApiError::new(ErrorCode::NotFound, format!("API key not found: {}", id.escape_debug()))
}
