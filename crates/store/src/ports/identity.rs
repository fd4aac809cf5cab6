//! The port to those who may ask.

use jiff::Timestamp;
use pintle_domain::audit::AuditKind;
use pintle_domain::id::TenantId;
use pintle_domain::json::{Object, canonical};
use pintle_domain::store::{
    Actor, ApiKey, ConsoleSession, GatewayUse, IdentityChange, IdentityStore, Member, SecretDigest, SessionSecrets,
    SignInLink, StoreError, Tenant, UseRoom,
};

use crate::database::{Database, SqlStore};
use crate::db::{Db, Failure};
use crate::evidence;
use crate::rows::identity::seals::{self, RowSeals, Touched};
use crate::rows::identity::{self, console, keys, members, other_key, uses};
use crate::rows::{audit, tenants};

/// What an entry of the audit chain says, in whose, and the rows that are sealed with it.
type Entry = (TenantId, Object, Touched);

fn entry(change: &IdentityChange<'_>, by: &Actor) -> Entry {
    let touched = match *change {
        IdentityChange::KeyCreated(key) | IdentityChange::KeyRevoked(key) | IdentityChange::KeyAccepted(key) => {
            Touched::Key(key.tenant.clone(), key.id.clone())
        }
        IdentityChange::MemberAdded(member)
        | IdentityChange::MemberChanged(member)
        | IdentityChange::MemberAccepted(member) => Touched::Member(member.tenant.clone(), member.user.clone()),
        IdentityChange::MemberRemoved(member) => Touched::KeysOf(member.tenant.clone(), member.user.clone()),
        IdentityChange::TenantCreated(_)
        | IdentityChange::TenantDisabled(_)
        | IdentityChange::TenantEnabled(_)
        | IdentityChange::TenantAccepted(_) => Touched::Nothing,
    };
    (change.tenant().clone(), change.data(by), touched)
}

/// Does `work` and says in the audit chain what it says, sealed as changes of rules are: both or nothing.
fn noted<D: Database, T>(
    database: &D,
    by: &Actor,
    work: impl Fn(&dyn Db) -> Result<(T, Option<Entry>), Failure>,
) -> Result<T, StoreError> {
    let key = database.sealing().change_key();
    let (done, grown) = database.write(|db| {
        other_key::refuse(db, key.as_ref())?;
        let (done, entry) = work(db)?;
        let Some((tenant, data, touched)) = entry else { return Ok((done, Vec::new())) };
        let note = evidence::note(&tenant, by.at, AuditKind::Change, &canonical(&data.into()));
        // Last, after all locks of rows.
        let grown = audit::append_sealed(db, &[&note.map_err(Failure::Said)?], key.as_ref())?;
        if let (Some(key), Some(grown)) = (&key, grown.first()) {
            seals::seal(db, key, &touched, grown.to.seq)?;
        }
        Ok((done, grown))
    })?;
    // Whoever cuts the entry off the end of the chain is to be found out.
    if let Some(anchor) = database.sealing().anchor.as_ref().filter(|_| !grown.is_empty() && database.settle().is_ok())
    {
        anchor.grown(&grown.into_iter().map(|grown| (grown.tenant, grown.to)).collect::<Vec<_>>());
    }
    Ok(done)
}

/// Who did what a row says of its making.
fn maker(name: &str, at: &str) -> Actor {
    Actor { name: name.to_owned(), at: at.parse().unwrap_or_else(|_| Timestamp::now()), reason: String::new() }
}

impl<D: Database> IdentityStore for SqlStore<D> {
    fn identity_epoch(&self) -> Result<u64, StoreError> {
        self.0.read(|db| identity::now(db))
    }

    fn disabled_tenants(&self) -> Result<Vec<TenantId>, StoreError> {
        self.0.read_beside(|db| members::disabled(db))
    }

    fn set_tenant_disabled(&self, tenant: &TenantId, disabled: bool, by: &Actor) -> Result<(), StoreError> {
        noted(&self.0, by, |db| {
            let tenant = members::set_disabled(db, tenant, disabled, by)?;
            let change = match disabled {
                true => IdentityChange::TenantDisabled(&tenant),
                false => IdentityChange::TenantEnabled(&tenant),
            };
            Ok(((), Some(entry(&change, by))))
        })
    }

    fn create_tenant(&self, tenant: &Tenant, by: &Actor) -> Result<(), StoreError> {
        noted(&self.0, by, |db| {
            tenants::add(db, tenant)?;
            Ok(((), Some(entry(&IdentityChange::TenantCreated(tenant), by))))
        })
    }

    fn members(&self, tenant: &TenantId) -> Result<Vec<Member>, StoreError> {
        let seals = RowSeals::of(self.0.sealing());
        self.0.read(|db| members::all(db, tenant)?.into_iter().map(|row| seals.member(db, row)).collect())
    }

    fn member(&self, tenant: &TenantId, user: &str) -> Result<Option<Member>, StoreError> {
        let seals = RowSeals::of(self.0.sealing());
        self.0.read_beside(|db| members::one(db, tenant, user)?.map(|row| seals.member(db, row)).transpose())
    }

    fn add_member(&self, member: &Member) -> Result<(), StoreError> {
        let by = maker(&member.created_by, &member.created_at);
        noted(&self.0, &by, |db| {
            members::add(db, member)?;
            Ok(((), Some(entry(&IdentityChange::MemberAdded(member), &by))))
        })
    }

    fn change_member(&self, member: &Member, by: &Actor) -> Result<(), StoreError> {
        noted(&self.0, by, |db| {
            members::change(db, member)?;
            Ok(((), Some(entry(&IdentityChange::MemberChanged(member), by))))
        })
    }

    fn remove_member(&self, tenant: &TenantId, user: &str, by: &Actor) -> Result<bool, StoreError> {
        noted(&self.0, by, |db| {
            let gone = members::remove(db, tenant, user, by)?;
            let entry = gone.as_ref().map(|member| entry(&IdentityChange::MemberRemoved(member), by));
            Ok((gone.is_some(), entry))
        })
    }

    fn was_removed(&self, tenant: &TenantId, user: &str) -> Result<bool, StoreError> {
        self.0.read_beside(|db| members::was_removed(db, tenant, user))
    }

    fn add_key(&self, key: &ApiKey, digest: &SecretDigest) -> Result<(), StoreError> {
        let by = maker(&key.created_by, &key.created_at);
        noted(&self.0, &by, |db| {
            keys::add(db, key, digest)?;
            Ok(((), Some(entry(&IdentityChange::KeyCreated(key), &by))))
        })
    }

    fn keys(&self, tenant: &TenantId) -> Result<Vec<ApiKey>, StoreError> {
        let seals = RowSeals::of(self.0.sealing());
        self.0.read(|db| keys::all(db, tenant)?.into_iter().map(|row| seals.key(db, row)).collect())
    }

    fn key(&self, tenant: &TenantId, id: &str) -> Result<Option<ApiKey>, StoreError> {
        let seals = RowSeals::of(self.0.sealing());
        self.0.read_beside(|db| keys::one(db, tenant, id)?.map(|row| seals.key(db, row)).transpose())
    }

    fn key_of(&self, digest: &SecretDigest) -> Result<Option<ApiKey>, StoreError> {
        let seals = RowSeals::of(self.0.sealing());
        self.0.read_beside(|db| keys::of(db, digest)?.map(|row| seals.key(db, row)).transpose())
    }

    fn has_keys(&self, now: Timestamp) -> Result<bool, StoreError> {
        self.0.read(|db| keys::any(db, now))
    }

    fn revoke_key(&self, tenant: &TenantId, id: &str, by: &Actor) -> Result<bool, StoreError> {
        noted(&self.0, by, |db| {
            let key = keys::revoke(db, tenant, id, by)?;
            let entry = key.as_ref().map(|key| entry(&IdentityChange::KeyRevoked(key), by));
            Ok((key.is_some(), entry))
        })
    }

    fn add_link(&self, link: &SignInLink, code: &SecretDigest) -> Result<(), StoreError> {
        let key = self.0.sealing().change_key();
        self.0.write(|db| {
            other_key::refuse(db, key.as_ref())?;
            console::add_link(db, (link, code), key.as_ref())
        })
    }

    fn take_link(&self, code: &SecretDigest, now: Timestamp) -> Result<Option<SignInLink>, StoreError> {
        let taken = self.0.write(|db| console::take_link(db, code, now))?;
        Ok(taken.and_then(|row| RowSeals::of(self.0.sealing()).link(row)))
    }

    fn add_console_session(&self, session: &ConsoleSession, secrets: &SessionSecrets) -> Result<(), StoreError> {
        let key = self.0.sealing().change_key();
        self.0.write(|db| console::add(db, (session, secrets), key.as_ref()))
    }

    fn console_session_of(&self, key: &SecretDigest) -> Result<Option<(ConsoleSession, SecretDigest)>, StoreError> {
        let found = self.0.read_beside(|db| console::of(db, key))?;
        let seals = RowSeals::of(self.0.sealing());
        Ok(found.and_then(|(row, cookie)| Some((seals.session(row)?, cookie))))
    }

    fn console_session(&self, tenant: &TenantId, id: &str) -> Result<Option<ConsoleSession>, StoreError> {
        let found = self.0.read_beside(|db| console::one(db, tenant, id))?;
        Ok(found.and_then(|row| RowSeals::of(self.0.sealing()).session(row)))
    }

    fn console_sessions(&self, tenant: &TenantId, user: &str) -> Result<Vec<ConsoleSession>, StoreError> {
        let found = self.0.read(|db| console::all(db, tenant, user))?;
        let seals = RowSeals::of(self.0.sealing());
        Ok(found.into_iter().filter_map(|row| seals.session(row)).collect())
    }

    fn console_session_seen(&self, tenant: &TenantId, id: &str, at: Timestamp) -> Result<(), StoreError> {
        self.0.write(|db| console::seen(db, tenant, id, at))
    }

    fn end_console_sessions(&self, tenant: &TenantId, user: &str, id: Option<&str>) -> Result<usize, StoreError> {
        self.0.write(|db| console::end(db, tenant, user, id))
    }

    fn forget_identities(&self, now: Timestamp, too_old: (Timestamp, Timestamp)) -> Result<(), StoreError> {
        self.0.write(|db| console::forget(db, now, too_old))
    }

    fn take_use(&self, it: &GatewayUse, room: UseRoom<'_>, at: (Timestamp, Timestamp)) -> Result<bool, StoreError> {
        self.0.write(|db| {
            uses::end(db, room.ended)?;
            uses::take(db, it, room, at)
        })
    }

    fn keep_uses(&self, node: &str, until: Timestamp) -> Result<(), StoreError> {
        self.0.write(|db| uses::keep(db, node, until))
    }

    fn end_uses(&self, ids: &[String]) -> Result<(), StoreError> {
        self.0.write(|db| uses::end(db, ids))
    }
}
