//! Those who may ask, of this process alone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{MutexGuard, PoisonError};

use jiff::Timestamp;
use pintle_domain::audit::AuditKind;
use pintle_domain::id::TenantId;
use pintle_domain::store::{
    Actor, ApiKey, ConsoleSession, GatewayUse, IdentityChange, IdentityStore, Member, RuleStore as _, SecretDigest,
    SessionOrigin, SessionSecrets, SignInLink, StoreError, Tenant, UseRoom,
};

use super::Memory;
use crate::rows::identity::members::{taken, unknown};
use crate::rules;

/// What one mutex guards.
#[derive(Debug, Default)]
pub(super) struct IdentityTables {
    epoch: u64,
    members: BTreeMap<(TenantId, String), Member>,
    removed: BTreeSet<(TenantId, String)>,
    keys: BTreeMap<(TenantId, String), (ApiKey, SecretDigest)>,
    links: BTreeMap<SecretDigest, SignInLink>,
    sessions: BTreeMap<(TenantId, String), (ConsoleSession, SessionSecrets)>,
    uses: BTreeMap<String, (GatewayUse, Timestamp)>,
}

impl Memory {
    fn identities(&self) -> MutexGuard<'_, IdentityTables> {
        // A panic elsewhere leaves whole rows behind.
        self.identities.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The id of a tenant that there is.
    pub(super) fn known_tenant(&self, id: &TenantId) -> Result<TenantId, StoreError> {
        let spelled = rules::uuid(id.as_str()).map(TenantId::new).ok_or_else(|| rules::no_tenant(id))?;
        let known = self.tenants()?.iter().any(|tenant| tenant.id == spelled);
        if known { Ok(spelled) } else { Err(rules::no_tenant(id)) }
    }

    /// Says it in the audit chain.
    fn noted(&self, change: &IdentityChange<'_>, by: &Actor) -> Result<(), StoreError> {
        self.note(change.tenant(), by.at, AuditKind::Change, change.data(by))
    }
}

fn parsed(at: &str) -> Option<Timestamp> {
    at.parse().ok()
}

fn newest<T: Clone>(mut found: Vec<T>, key: impl Fn(&T) -> (Option<Timestamp>, String)) -> Vec<T> {
    found.sort_by_key(|one| std::cmp::Reverse(key(one)));
    found
}

impl IdentityStore for Memory {
    fn identity_epoch(&self) -> Result<u64, StoreError> {
        Ok(self.identities().epoch)
    }

    fn disabled_tenants(&self) -> Result<Vec<TenantId>, StoreError> {
        Ok(self.rules()?.disabled)
    }

    fn create_tenant(&self, tenant: &Tenant, by: &Actor) -> Result<(), StoreError> {
        self.add_tenant(tenant)?;
        self.noted(&IdentityChange::TenantCreated(tenant), by)
    }

    fn set_tenant_disabled(&self, tenant: &TenantId, disabled: bool, by: &Actor) -> Result<(), StoreError> {
        let id = self.known_tenant(tenant)?;
        self.stop_tenant(&id, disabled);
        self.identities().epoch += 1;
        let Some(tenant) = self.tenants()?.into_iter().find(|tenant| tenant.id == id) else { return Ok(()) };
        let change =
            if disabled { IdentityChange::TenantDisabled(&tenant) } else { IdentityChange::TenantEnabled(&tenant) };
        self.noted(&change, by)
    }

    fn members(&self, tenant: &TenantId) -> Result<Vec<Member>, StoreError> {
        Ok(self.identities().members.values().filter(|member| member.tenant == *tenant).cloned().collect())
    }

    fn member(&self, tenant: &TenantId, user: &str) -> Result<Option<Member>, StoreError> {
        Ok(self.identities().members.get(&(tenant.clone(), user.to_owned())).cloned())
    }

    fn add_member(&self, member: &Member) -> Result<(), StoreError> {
        let tenant = self.known_tenant(&member.tenant)?;
        let mut tables = self.identities();
        let place = (tenant.clone(), member.user.clone());
        if tables.members.contains_key(&place) {
            return Err(taken(&member.user));
        }
        tables.removed.remove(&place);
        tables.members.insert(place, Member { tenant, ..member.clone() });
        drop(tables);
        let at = parsed(&member.created_at).unwrap_or_else(Timestamp::now);
        self.noted(
            &IdentityChange::MemberAdded(member),
            &Actor { name: member.created_by.clone(), at, reason: String::new() },
        )
    }

    fn change_member(&self, member: &Member, by: &Actor) -> Result<(), StoreError> {
        let mut tables = self.identities();
        let place = (member.tenant.clone(), member.user.clone());
        let found = tables.members.get_mut(&place).ok_or_else(|| unknown(&member.user))?;
        (found.role, found.disabled_at) = (member.role, member.disabled_at.clone());
        tables.epoch += 1;
        if member.disabled_at.is_some() {
            tables.sessions.retain(|_, (session, _)| session.tenant != member.tenant || session.user != member.user);
            tables.links.retain(|_, link| link.tenant != member.tenant || link.user != member.user);
        }
        drop(tables);
        self.noted(&IdentityChange::MemberChanged(member), by)
    }

    fn remove_member(&self, tenant: &TenantId, user: &str, by: &Actor) -> Result<bool, StoreError> {
        let mut tables = self.identities();
        tables.epoch += 1;
        for (key, _) in tables.keys.values_mut().filter(|(key, _)| key.tenant == *tenant && key.owner == user) {
            key.revoked_at.get_or_insert_with(|| rules::moment(by.at));
        }
        tables.sessions.retain(|_, (session, _)| session.tenant != *tenant || session.user != user);
        tables.links.retain(|_, link| link.tenant != *tenant || link.user != user);
        let place = (tenant.clone(), user.to_owned());
        let Some(member) = tables.members.remove(&place) else { return Ok(false) };
        tables.removed.insert(place);
        drop(tables);
        self.noted(&IdentityChange::MemberRemoved(&member), by)?;
        Ok(true)
    }

    fn was_removed(&self, tenant: &TenantId, user: &str) -> Result<bool, StoreError> {
        Ok(self.identities().removed.contains(&(tenant.clone(), user.to_owned())))
    }

    fn add_key(&self, key: &ApiKey, digest: &SecretDigest) -> Result<(), StoreError> {
        let mut tables = self.identities();
        if !tables.members.contains_key(&(key.tenant.clone(), key.owner.clone())) {
            return Err(unknown(&key.owner));
        }
        tables.keys.insert((key.tenant.clone(), key.id.clone()), (key.clone(), digest.clone()));
        drop(tables);
        let at = parsed(&key.created_at).unwrap_or_else(Timestamp::now);
        self.noted(&IdentityChange::KeyCreated(key), &Actor { name: key.created_by.clone(), at, reason: String::new() })
    }

    fn keys(&self, tenant: &TenantId) -> Result<Vec<ApiKey>, StoreError> {
        let tables = self.identities();
        let own = tables.keys.values().map(|(key, _)| key).filter(|key| key.tenant == *tenant).cloned();
        Ok(newest(own.collect(), |key| (parsed(&key.created_at), key.id.clone())))
    }

    fn key(&self, tenant: &TenantId, id: &str) -> Result<Option<ApiKey>, StoreError> {
        let tables = self.identities();
        Ok(tables.keys.get(&(tenant.clone(), id.to_owned())).map(|(key, _)| key.clone()))
    }

    fn key_of(&self, digest: &SecretDigest) -> Result<Option<ApiKey>, StoreError> {
        let tables = self.identities();
        Ok(tables.keys.values().find(|(_, kept)| kept == digest).map(|(key, _)| key.clone()))
    }

    fn has_keys(&self, now: Timestamp) -> Result<bool, StoreError> {
        Ok(self.identities().keys.values().any(|(key, _)| key.is_good(now)))
    }

    fn revoke_key(&self, tenant: &TenantId, id: &str, by: &Actor) -> Result<bool, StoreError> {
        let mut tables = self.identities();
        let Some((key, _)) = tables.keys.get_mut(&(tenant.clone(), id.to_owned())) else { return Ok(false) };
        if key.revoked_at.is_some() {
            return Ok(false);
        }
        key.revoked_at = Some(rules::moment(by.at));
        let revoked = key.clone();
        tables.epoch += 1;
        let origin = SessionOrigin::Key(id.to_owned());
        tables.sessions.retain(|_, (session, _)| session.tenant != *tenant || session.origin != origin);
        drop(tables);
        self.noted(&IdentityChange::KeyRevoked(&revoked), by)?;
        Ok(true)
    }

    fn add_link(&self, link: &SignInLink, code: &SecretDigest) -> Result<(), StoreError> {
        self.known_tenant(&link.tenant)?;
        self.identities().links.insert(code.clone(), link.clone());
        Ok(())
    }

    fn take_link(&self, code: &SecretDigest, now: Timestamp) -> Result<Option<SignInLink>, StoreError> {
        let found = self.identities().links.remove(code);
        Ok(found.filter(|link| parsed(&link.expires_at).is_some_and(|until| until > now)))
    }

    fn add_console_session(&self, session: &ConsoleSession, secrets: &SessionSecrets) -> Result<(), StoreError> {
        self.known_tenant(&session.tenant)?;
        let place = (session.tenant.clone(), session.id.clone());
        self.identities().sessions.insert(place, (session.clone(), secrets.clone()));
        Ok(())
    }

    fn console_session_of(&self, key: &SecretDigest) -> Result<Option<(ConsoleSession, SecretDigest)>, StoreError> {
        let tables = self.identities();
        let found = tables.sessions.values().find(|(_, secrets)| secrets.key == *key);
        Ok(found.map(|(session, secrets)| (session.clone(), secrets.cookie.clone())))
    }

    fn console_session(&self, tenant: &TenantId, id: &str) -> Result<Option<ConsoleSession>, StoreError> {
        let tables = self.identities();
        Ok(tables.sessions.get(&(tenant.clone(), id.to_owned())).map(|(session, _)| session.clone()))
    }

    fn console_sessions(&self, tenant: &TenantId, user: &str) -> Result<Vec<ConsoleSession>, StoreError> {
        let tables = self.identities();
        let own = tables.sessions.values().map(|(session, _)| session);
        let own = own.filter(|session| session.tenant == *tenant && session.user == user).cloned();
        Ok(newest(own.collect(), |session| (parsed(&session.created_at), session.id.clone())))
    }

    fn console_session_seen(&self, tenant: &TenantId, id: &str, at: Timestamp) -> Result<(), StoreError> {
        if let Some((session, _)) = self.identities().sessions.get_mut(&(tenant.clone(), id.to_owned())) {
            session.seen_at = rules::moment(at);
        }
        Ok(())
    }

    fn end_console_sessions(&self, tenant: &TenantId, user: &str, id: Option<&str>) -> Result<usize, StoreError> {
        let mut tables = self.identities();
        let before = tables.sessions.len();
        let is_meant = |session: &ConsoleSession| {
            session.tenant == *tenant && session.user == user && id.is_none_or(|id| session.id == id)
        };
        tables.sessions.retain(|_, (session, _)| !is_meant(session));
        let ended = before - tables.sessions.len();
        tables.epoch += u64::from(ended > 0);
        Ok(ended)
    }

    fn forget_identities(
        &self,
        now: Timestamp,
        (unused_since, begun_before): (Timestamp, Timestamp),
    ) -> Result<(), StoreError> {
        let mut tables = self.identities();
        tables.links.retain(|_, link| parsed(&link.expires_at).is_some_and(|until| until > now));
        tables.sessions.retain(|_, (session, _)| {
            parsed(&session.seen_at).is_some_and(|at| at > unused_since)
                && parsed(&session.created_at).is_some_and(|at| at > begun_before)
        });
        tables.uses.retain(|_, (_, until)| *until > now);
        Ok(())
    }

    fn take_use(
        &self,
        one: &GatewayUse,
        room: UseRoom<'_>,
        (now, until): (Timestamp, Timestamp),
    ) -> Result<bool, StoreError> {
        // Before the other lock, which is held for a step.
        let parked = if room.turns.is_some() { self.memory().parked(&one.tenant, now) } else { Vec::new() };
        let mut tables = self.identities();
        room.ended.iter().for_each(|id| drop(tables.uses.remove(id)));
        let same = |(other, until): &&(GatewayUse, Timestamp)| {
            (other.kind, &other.tenant) == (one.kind, &one.tenant) && *until > now
        };
        let counted: Vec<(String, String)> =
            tables.uses.values().filter(same).map(|(other, _)| (other.id.clone(), other.who.clone())).collect();
        let fits = match room.turns {
            Some(turns) => room.fits(turns, one, &counted, &parked),
            None => {
                let there = counted.iter().filter(|(_, who)| *who == one.who).count();
                there < usize::try_from(room.limit).unwrap_or(usize::MAX)
            }
        };
        if !fits {
            return Ok(false);
        }
        tables.uses.insert(one.id.clone(), (one.clone(), until));
        Ok(true)
    }

    fn keep_uses(&self, node: &str, until: Timestamp) -> Result<(), StoreError> {
        for (_, kept) in self.identities().uses.values_mut().filter(|(one, _)| one.node == node) {
            *kept = until;
        }
        Ok(())
    }

    fn end_uses(&self, ids: &[String]) -> Result<(), StoreError> {
        let mut tables = self.identities();
        ids.iter().for_each(|id| drop(tables.uses.remove(id)));
        Ok(())
    }
}
