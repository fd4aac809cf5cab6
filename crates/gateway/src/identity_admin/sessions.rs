//! Links to the console, and sessions of it.

use jiff::{SignedDuration, Timestamp};
use pintle_domain::store::{ConsoleSession, SecretDigest, SessionOrigin, SessionSecrets, SignInLink};
use pintle_rules::admin::{Caller, CallerRole};

use super::{IdentityAdmin, moment, name};
use crate::error::{ApiError, ErrorCode};
use crate::principal::Principal;
use crate::secret;

/// How long a link signs somebody in. Source: the page of the gateway.
const LINK_LASTS: SignedDuration = SignedDuration::from_mins(2);

/// Longest name of a device that is kept, in characters: what browsers say of themselves, as far as people read it.
const MAX_DEVICE: usize = 200;

/// A console session that was just begun: the only time that anybody sees its secrets.
pub(crate) struct FreshSession {
    pub(crate) session: ConsoleSession,
    pub(crate) key: String,
    pub(crate) cookie: String,
}

impl IdentityAdmin {
    /// The code of a link that signs `user` in once, within two minutes, as `role` in the caller's tenant.
    ///
    /// # Errors
    /// It gives more than the caller has, or the store cannot keep it.
    pub fn link(&self, by: &Caller, user: &str, role: CallerRole, now: Timestamp) -> Result<String, ApiError> {
        Self::may_give(by, role)?;
        let code = secret::fresh()?;
        let expires_at = now.checked_add(LINK_LASTS).map_err(|_| ApiError::invalid("the clock is wrong"))?;
        let link = SignInLink {
            tenant: by.tenant.clone(),
            user: name("user", user)?.to_owned(),
            role,
            expires_at: moment(expires_at),
        };
        self.store.add_link(&link, &SecretDigest::of(&code))?;
        Ok(code)
    }

    /// Takes a link: who it makes whoever has its code.
    pub(crate) fn take_link(&self, code: &str, now: Timestamp) -> Result<SignInLink, ApiError> {
        let found = self.store.take_link(&SecretDigest::of(code), now)?;
        found.ok_or_else(|| {
            ApiError::unauthorized("the link was already used, or is older than two minutes; create a new one")
        })
    }

    /// Begins a console session for `link`, which came from `origin`.
    pub(crate) fn begin_session(
        &self,
        link: SignInLink,
        origin: SessionOrigin,
        device: &str,
        now: Timestamp,
    ) -> Result<FreshSession, ApiError> {
        let (key, cookie) = (secret::fresh()?, secret::fresh()?);
        let device = device.chars().filter(|c| !c.is_control()).take(MAX_DEVICE).collect();
        let session = ConsoleSession {
            tenant: link.tenant,
            id: uuid::Uuid::new_v4().to_string(),
            user: link.user,
            role: link.role,
            origin,
            device,
            created_at: moment(now),
            seen_at: moment(now),
        };
        let secrets = SessionSecrets { key: SecretDigest::of(&key), cookie: SecretDigest::of(&cookie) };
        self.store.add_console_session(&session, &secrets)?;
        Ok(FreshSession { session, key, cookie })
    }

    /// Ends the console session `id` of `who` and begins one like it in another tenant, by its slug or id.
    pub(crate) fn move_session(
        &self,
        who: &Principal,
        id: &str,
        wanted: &str,
        now: Timestamp,
    ) -> Result<FreshSession, ApiError> {
        let found =
            self.tenants()?.into_iter().find(|(tenant, _)| tenant.slug == wanted || tenant.id.as_str() == wanted);
        let Some((tenant, true)) = found else {
            return Err(ApiError::no_access());
        };
        let gone = || ApiError::new(ErrorCode::NotFound, format!("session not found: {}", id.escape_debug()));
        let old = self.store.console_session(&who.tenant, id)?.ok_or_else(gone)?;
        let link = SignInLink { tenant: tenant.id, user: old.user, role: old.role, expires_at: String::new() };
        let fresh = self.begin_session(link, old.origin, &old.device, now)?;
        self.store.end_console_sessions(&who.tenant, &who.user, Some(id))?;
        tracing::info!(user = %who.user, from = %who.slug, to = %tenant.slug, "security.tenant_switched");
        Ok(fresh)
    }

    /// The console sessions of `who`, newest first.
    pub(crate) fn sessions(&self, who: &Principal) -> Result<Vec<ConsoleSession>, ApiError> {
        Ok(self.store.console_sessions(&who.tenant, &who.user)?)
    }

    /// Ends a console session of `who`, or all of them. How many.
    pub(crate) fn end_sessions(&self, who: &Principal, id: Option<&str>) -> Result<usize, ApiError> {
        let ended = self.store.end_console_sessions(&who.tenant, &who.user, id)?;
        match id {
            Some(id) if ended == 0 => {
                Err(ApiError::new(ErrorCode::NotFound, format!("session not found: {}", id.escape_debug())))
            }
            Some(_) | None => Ok(ended),
        }
    }
}
