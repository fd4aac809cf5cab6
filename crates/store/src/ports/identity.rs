//! The port to those who may ask.

use domain::id::TenantId;
use domain::store::{
    Actor, ApiKey, ConsoleSession, GatewayUse, IdentityStore, Member, SecretDigest, SessionSecrets, SignInLink,
    StoreError,
};
use jiff::Timestamp;

use crate::database::{Database, SqlStore};
use crate::rows::identity::{self, console, keys, members, uses};

impl<D: Database> IdentityStore for SqlStore<D> {
    fn identity_epoch(&self) -> Result<u64, StoreError> {
        self.0.read(|db| identity::now(db))
    }

    fn disabled_tenants(&self) -> Result<Vec<TenantId>, StoreError> {
        self.0.read(|db| members::disabled(db))
    }

    fn set_tenant_disabled(&self, tenant: &TenantId, disabled: bool, by: &Actor) -> Result<(), StoreError> {
        self.0.write(|db| members::set_disabled(db, tenant, disabled, by))
    }

    fn members(&self, tenant: &TenantId) -> Result<Vec<Member>, StoreError> {
        self.0.read(|db| members::all(db, tenant))
    }

    fn member(&self, tenant: &TenantId, user: &str) -> Result<Option<Member>, StoreError> {
        self.0.read(|db| members::one(db, tenant, user))
    }

    fn add_member(&self, member: &Member) -> Result<(), StoreError> {
        self.0.write(|db| members::add(db, member))
    }

    fn change_member(&self, member: &Member) -> Result<(), StoreError> {
        self.0.write(|db| members::change(db, member))
    }

    fn remove_member(&self, tenant: &TenantId, user: &str, by: &Actor) -> Result<bool, StoreError> {
        self.0.write(|db| members::remove(db, tenant, user, by))
    }

    fn add_key(&self, key: &ApiKey, digest: &SecretDigest) -> Result<(), StoreError> {
        self.0.write(|db| keys::add(db, key, digest))
    }

    fn keys(&self, tenant: &TenantId) -> Result<Vec<ApiKey>, StoreError> {
        self.0.read(|db| keys::all(db, tenant))
    }

    fn key(&self, tenant: &TenantId, id: &str) -> Result<Option<ApiKey>, StoreError> {
        self.0.read(|db| keys::one(db, tenant, id))
    }

    fn key_of(&self, digest: &SecretDigest) -> Result<Option<ApiKey>, StoreError> {
        self.0.read(|db| keys::of(db, digest))
    }

    fn has_keys(&self, now: Timestamp) -> Result<bool, StoreError> {
        self.0.read(|db| keys::any(db, now))
    }

    fn revoke_key(&self, tenant: &TenantId, id: &str, by: &Actor) -> Result<bool, StoreError> {
        self.0.write(|db| keys::revoke(db, tenant, id, by))
    }

    fn add_link(&self, link: &SignInLink, code: &SecretDigest) -> Result<(), StoreError> {
        self.0.write(|db| console::add_link(db, link, code))
    }

    fn take_link(&self, code: &SecretDigest, now: Timestamp) -> Result<Option<SignInLink>, StoreError> {
        self.0.write(|db| console::take_link(db, code, now))
    }

    fn add_console_session(&self, session: &ConsoleSession, secrets: &SessionSecrets) -> Result<(), StoreError> {
        self.0.write(|db| console::add(db, session, secrets))
    }

    fn console_session_of(&self, key: &SecretDigest) -> Result<Option<(ConsoleSession, SecretDigest)>, StoreError> {
        self.0.read(|db| console::of(db, key))
    }

    fn console_session(&self, tenant: &TenantId, id: &str) -> Result<Option<ConsoleSession>, StoreError> {
        self.0.read(|db| console::one(db, tenant, id))
    }

    fn console_sessions(&self, tenant: &TenantId, user: &str) -> Result<Vec<ConsoleSession>, StoreError> {
        self.0.read(|db| console::all(db, tenant, user))
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

    fn take_use(&self, one: &GatewayUse, limit: u32, times: (Timestamp, Timestamp)) -> Result<bool, StoreError> {
        self.0.write(|db| uses::take(db, one, limit, times))
    }

    fn keep_uses(&self, node: &str, until: Timestamp) -> Result<(), StoreError> {
        self.0.write(|db| uses::keep(db, node, until))
    }

    fn end_uses(&self, ids: &[String]) -> Result<(), StoreError> {
        self.0.write(|db| uses::end(db, ids))
    }
}
