//! From what a client says of itself to who it is: the gateway token, an API key, a console session, nobody.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use jiff::{SignedDuration, Timestamp};
use pintle_domain::id::{DEFAULT_SLUG, TenantId};
use pintle_domain::person_name::HostOwners;
use pintle_domain::store::{ApiKey, ConsoleSession, Member, SecretDigest, SessionOrigin, StoreError, Tenant};
use pintle_rules::admin::CallerRole;
use pintle_store::Store;

use crate::claim::Claim;
use crate::door::Visit;
use crate::error::{ApiError, ErrorCode};
use crate::principal::{Credential, Principal, Right, Rights};
use crate::rare_line::RareLine;
use crate::rates::Attempt;
use crate::secret;

/// Why turns end whose user is kept out of their tenant.
const SHUT_OUT: &str = "the user who asked for the turn no longer has access";

/// Why turns end whose user, or whose key, may no longer talk to agents.
const MAY_NOT_TALK: &str = "the user who asked for the turn may no longer talk to agents";

/// Why turns end whose key is none any more.
const KEY_IS_OVER: &str = "the API key that asked for the turn was revoked or has expired";

/// The user of somebody who did not say who they are, on their own machine.
pub(crate) const LOCAL_USER: &str = "local";

/// How long a console session may be unused. Source: the page of the gateway.
pub(crate) const IDLE: SignedDuration = SignedDuration::from_hours(12);

/// How long a console session lasts at most. Source: the page of the gateway.
pub(crate) const LONGEST: SignedDuration = SignedDuration::from_hours(7 * 24);

/// How late it is noted that a console session was used: a row is not written for every request.
const NOTED_AFTER: SignedDuration = SignedDuration::from_mins(1);

/// Told of a door whose tenant there is not.
static NO_TENANT: RareLine = RareLine::new();

/// What there is to be known by beside the store.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownBy {
    /// The digest of the gateway token.
    token: Option<SecretDigest>,
    /// The users who own the host, with that token.
    owners: HostOwners,
}

impl KnownBy {
    pub(crate) fn new(token: Option<&str>, owners: Vec<String>) -> Self {
        let token = token.map(SecretDigest::of);
        Self { token, owners: HostOwners::named(owners) }
    }

    /// Whether `token` is the gateway token. Digests are compared: how long that takes says nothing of the token.
    pub(crate) fn is_token(&self, token: &str) -> bool {
        self.token.as_ref().is_some_and(|known| *known == SecretDigest::of(token))
    }

    /// Whether there is a gateway token.
    pub(crate) fn has_token(&self) -> bool {
        self.token.is_some()
    }

    /// Where a console session of whoever has the token comes from: what is kept of it gives no token away.
    pub(crate) fn token_origin(&self) -> Option<SessionOrigin> {
        let known = self.token.as_ref()?;
        Some(SessionOrigin::Token(SecretDigest::of(&format!("console {}", known.as_str())).as_str().to_owned()))
    }

    /// Who owns the host first.
    pub(crate) fn first_owner(&self) -> &str {
        self.owners.first()
    }

    /// The users who own the host.
    pub(crate) fn owners(&self) -> &HostOwners {
        &self.owners
    }

    /// The role of `user` with the gateway token.
    fn role_of(&self, user: &str) -> CallerRole {
        if self.owners.has(user) { CallerRole::Owner } else { CallerRole::Admin }
    }
}

/// Those who are known at one moment.
pub(crate) struct Registry<'a> {
    known_by: &'a KnownBy,
    store: &'a dyn Store,
    now: Timestamp,
    /// The tenants that there are, without that of global rules, and whether they are disabled.
    tenants: BTreeMap<TenantId, (Tenant, bool)>,
}

fn unauthorized() -> ApiError {
    ApiError::unauthorized("unauthorized: invalid or missing credentials")
}

fn revoked() -> ApiError {
    ApiError::no_access()
}

/// What a member may at most; a member who is disabled nothing.
fn ceiling(role: CallerRole, member: &Member) -> Result<CallerRole, ApiError> {
    if member.disabled_at.is_some() { Err(revoked()) } else { Ok(role.min(member.role)) }
}

impl<'a> Registry<'a> {
    pub(crate) fn read(known_by: &'a KnownBy, store: &'a dyn Store, now: Timestamp) -> Result<Self, StoreError> {
        let disabled = store.disabled_tenants()?;
        let tenants = store.tenants()?.into_iter().filter(|tenant| tenant.id != TenantId::sentinel());
        let standing = tenants.map(|tenant| (tenant.id.clone(), (tenant.clone(), disabled.contains(&tenant.id))));
        Ok(Self { known_by, store, now, tenants: standing.collect() })
    }

    /// Who it is that claims this.
    pub(crate) fn principal(&self, claim: &Claim, visit: Visit) -> Result<Principal, ApiError> {
        let asks_nobody = visit.is_local && !visit.is_agents && !self.known_by.has_token();
        if let Some(token) = &claim.token
            // Clients that cannot do without a key send any where nobody asks for one.
            && !(asks_nobody && claim.attempt() == Some(Attempt::Guess) && !secret::is_like_key(token))
        {
            return self.by_token(token, claim);
        }
        if let Some(key) = &claim.console_key {
            return self.by_session(key, claim, visit);
        }
        if asks_nobody {
            return self.anonymous(claim);
        }
        if visit.is_local && visit.is_agents && !self.known_by.has_token() {
            return Err(ApiError::unauthorized(
                "unauthorized: a program that an agent started needs a key of its own \
                 (`pintle keys create NAME --owner USER --scope operator.write`); only other programs of \
                 this machine come in without one, and none while nobody knows which agents run: the server's log says why",
            ));
        }
        Err(unauthorized())
    }

    /// Who `who` is by now, if they still are anybody.
    pub(crate) fn again(&self, who: &Principal) -> Result<Principal, ApiError> {
        match &who.credential {
            Credential::Token => self.of_token(&who.user, Some(who.tenant.as_str())),
            Credential::Key(id) => {
                let key = self.store.key(&who.tenant, id)?.ok_or_else(unauthorized)?;
                self.of_key(&key)
            }
            Credential::Console { session, .. } => {
                let session = self.store.console_session(&who.tenant, session)?.ok_or_else(unauthorized)?;
                self.of_session(&session)
            }
            Credential::Anonymous => self.local(&who.tenant),
        }
    }

    /// Whether `user` is kept out of `tenant`, whatever they are known by.
    pub(crate) fn is_shut_out(&self, tenant: &TenantId, user: &str) -> Result<bool, ApiError> {
        if self.tenant(tenant).is_err() {
            return Ok(true);
        }
        match self.store.member(tenant, user)? {
            Some(member) => Ok(member.disabled_at.is_some()),
            None if self.known_by.role_of(user) == CallerRole::Owner => Ok(false),
            None => Ok(self.store.was_removed(tenant, user)?),
        }
    }

    /// Why what `user` of `tenant` asked for, with these API `keys` where they had any, may not go on; nothing where it may.
    pub(crate) fn why_over(
        &self,
        tenant: &TenantId,
        user: &str,
        keys: &BTreeSet<String>,
    ) -> Result<Option<&'static str>, ApiError> {
        if self.is_shut_out(tenant, user)? {
            return Ok(Some(SHUT_OUT));
        }
        for id in keys {
            let Some(key) = self.store.key(tenant, id)? else { return Ok(Some(KEY_IS_OVER)) };
            match self.of_key(&key) {
                Ok(who) if who.role >= CallerRole::Operator && who.rights.has(Right::Write) => {}
                Ok(_) => return Ok(Some(MAY_NOT_TALK)),
                Err(error) if matches!(error.code, ErrorCode::Unauthorized | ErrorCode::TenantAccessRevoked) => {
                    return Ok(Some(KEY_IS_OVER));
                }
                Err(error) => return Err(error),
            }
        }
        // Whoever sits at this machine is nobody's member.
        let is_bound =
            self.known_by.role_of(user) != CallerRole::Owner && (user != LOCAL_USER || self.known_by.has_token());
        let lowered = match self.store.member(tenant, user)? {
            Some(member) => is_bound && member.role < CallerRole::Operator,
            None => false,
        };
        Ok(lowered.then_some(MAY_NOT_TALK))
    }

    fn by_token(&self, token: &str, claim: &Claim) -> Result<Principal, ApiError> {
        if self.known_by.is_token(token) {
            let user = claim.user.as_deref().unwrap_or("admin");
            return self.of_token(user, claim.tenant.as_deref());
        }
        let key = self.store.key_of(&SecretDigest::of(token))?.ok_or_else(unauthorized)?;
        let who = self.of_key(&key)?;
        self.stays(who, claim)
    }

    /// A key and a session are somebody's in one tenant, and no other.
    fn stays(&self, who: Principal, claim: &Claim) -> Result<Principal, ApiError> {
        match &claim.tenant {
            Some(wanted) if *wanted != who.slug && *wanted != who.tenant.as_str() => Err(revoked()),
            Some(_) | None => Ok(who),
        }
    }

    fn of_token(&self, user: &str, wanted: Option<&str>) -> Result<Principal, ApiError> {
        let wanted = wanted.unwrap_or(DEFAULT_SLUG);
        let mut tenants = self.tenants.values().map(|(tenant, _)| tenant);
        let found = tenants.find(|tenant| tenant.slug == wanted || tenant.id.as_str() == wanted);
        let tenant = self.tenant(&found.ok_or_else(revoked)?.id)?;
        let role = match (self.known_by.role_of(user), self.store.member(&tenant.id, user)?) {
            (CallerRole::Owner, _) => CallerRole::Owner,
            (role, Some(member)) => ceiling(role, &member)?,
            // Whoever was taken out is nobody there, not more than they were.
            (_, None) if self.store.was_removed(&tenant.id, user)? => return Err(revoked()),
            (role, None) if tenant.id == TenantId::default_tenant() => role,
            (_, None) => return Err(revoked()),
        };
        Ok(principal(tenant, user, (role, Rights::all()), Credential::Token))
    }

    fn of_key(&self, key: &ApiKey) -> Result<Principal, ApiError> {
        if !key.is_good(self.now) {
            return Err(unauthorized());
        }
        let tenant = self.tenant(&key.tenant)?;
        let member = self.store.member(&key.tenant, &key.owner)?.ok_or_else(revoked)?;
        let role = ceiling(key.role(), &member)?;
        let rights = Rights::of_scopes(&key.scopes);
        let until = key.expires_at.as_ref().and_then(|at| at.parse().ok());
        let who = principal(tenant, &key.owner, (role, rights), Credential::Key(key.id.clone()));
        Ok(Principal { until, ..who })
    }

    fn by_session(&self, key: &str, claim: &Claim, visit: Visit) -> Result<Principal, ApiError> {
        if !visit.is_own_page {
            return Err(ApiError::unauthorized("a console session works only on this server's own pages"));
        }
        let found = self.store.console_session_of(&SecretDigest::of(key))?;
        let (session, cookie) = found.ok_or_else(unauthorized)?;
        if !claim.cookies.iter().any(|sent| SecretDigest::of(sent) == cookie) {
            return Err(unauthorized());
        }
        let who = self.of_session(&session)?;
        let who = self.stays(who, claim)?;
        let seen: Result<Timestamp, _> = session.seen_at.parse();
        if seen.is_ok_and(|seen| self.now.duration_since(seen) >= NOTED_AFTER) {
            self.store.console_session_seen(&session.tenant, &session.id, self.now)?;
        }
        Ok(who)
    }

    fn of_session(&self, session: &ConsoleSession) -> Result<Principal, ApiError> {
        let at = |text: &str| text.parse::<Timestamp>().map_err(|_| unauthorized());
        let (begun, seen) = (at(&session.created_at)?, at(&session.seen_at)?);
        let later = |at: Timestamp, time: SignedDuration| at.checked_add(time).map_err(|_| unauthorized());
        let ends = later(begun, LONGEST)?;
        if self.now >= ends || self.now >= later(seen, IDLE)? {
            return Err(unauthorized());
        }
        let tenant = self.tenant(&session.tenant)?;
        let (role, rights, key, until) = match &session.origin {
            SessionOrigin::Key(id) => {
                let key = self.store.key(&session.tenant, id)?.ok_or_else(unauthorized)?;
                let who = self.of_key(&key)?;
                (who.role.min(session.role), who.rights, Some(key.id), who.until)
            }
            SessionOrigin::Token(_) if self.known_by.token_origin().as_ref() != Some(&session.origin) => {
                return Err(unauthorized());
            }
            SessionOrigin::Token(_) => {
                let who = self.of_token(&session.user, Some(session.tenant.as_str()))?;
                (who.role.min(session.role), Rights::all(), None, None)
            }
            SessionOrigin::Link => {
                let role = match self.store.member(&session.tenant, &session.user)? {
                    Some(member) if session.role < CallerRole::Owner => ceiling(session.role, &member)?,
                    Some(_) | None => session.role,
                };
                (role, Rights::all(), None, None)
            }
        };
        let until = until.map_or(ends, |until| until.min(ends));
        let credential = Credential::Console { session: session.id.clone(), key };
        Ok(Principal { until: Some(until), ..principal(tenant, &session.user, (role, rights), credential) })
    }

    fn anonymous(&self, claim: &Claim) -> Result<Principal, ApiError> {
        self.stays(self.local(&TenantId::default_tenant())?, claim)
    }

    /// Whoever sits at this machine and brings a key of a vendor's, in the tenant called `slug`.
    pub(crate) fn passing(&self, slug: &str) -> Result<Principal, ApiError> {
        let Some((tenant, _)) = self.tenants.values().find(|(tenant, _)| tenant.slug == slug) else {
            // Whoever has a vendor's key, or says so, may try as often as they like.
            if let Some(more) = NO_TENANT.due(Instant::now()) {
                tracing::warn!(more, "a door to a model names the tenant `{slug}`, and there is none");
            }
            let why = format!("there is no tenant `{slug}`, which `tenant` of `[doors.model.NAME]` names");
            return Err(ApiError::new(ErrorCode::TenantAccessRevoked, why));
        };
        self.local(&tenant.id)
    }

    /// Whoever sits at this machine, in `tenant`.
    fn local(&self, tenant: &TenantId) -> Result<Principal, ApiError> {
        let rights = (CallerRole::Operator, Rights::anonymous());
        Ok(principal(self.tenant(tenant)?, LOCAL_USER, rights, Credential::Anonymous))
    }

    /// A tenant that there is and that is not disabled.
    fn tenant(&self, id: &TenantId) -> Result<&Tenant, ApiError> {
        match self.tenants.get(id) {
            Some((tenant, false)) => Ok(tenant),
            Some((_, true)) | None => Err(revoked()),
        }
    }
}

fn principal(tenant: &Tenant, user: &str, (role, rights): (CallerRole, Rights), credential: Credential) -> Principal {
    Principal {
        tenant: tenant.id.clone(),
        slug: tenant.slug.clone(),
        tenant_name: tenant.name.clone(),
        user: user.to_owned(),
        role,
        rights,
        credential,
        until: None,
    }
}

#[cfg(test)]
mod tests;
