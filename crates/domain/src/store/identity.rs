//! The port to those who may ask: members of tenants, API keys, sessions of the console, and what they use.
//!
//! Everything is one tenant's, and each query says whose. What is looked up by a secret says itself whose it is: only
//! the digest of a secret is kept, so whoever reads the rows cannot be anybody.

use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use sha2::{Digest as _, Sha256};

use super::{Actor, GatewayUse, StoreError, Tenant, UseRoom};
use crate::caller_role::CallerRole;
use crate::hex::hex;
use crate::id::TenantId;

/// The digest of a secret: what is kept of it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SecretDigest(String);

impl SecretDigest {
    /// The SHA-256 of `secret`, as 64 lower-case hex digits.
    pub fn of(secret: &str) -> Self {
        Self(hex(&Sha256::digest(secret)))
    }

    /// As it is kept.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// One as it was kept.
    pub fn kept(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Debug for SecretDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretDigest")
    }
}

/// Somebody who belongs to a tenant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Whose member.
    pub tenant: TenantId,
    /// Who they are there; not empty.
    pub user: String,
    /// The most that they may do there; never the owner of everything.
    pub role: CallerRole,
    /// Since when nobody may be them, RFC 3339, UTC.
    pub disabled_at: Option<String>,
    /// RFC 3339, UTC.
    pub created_at: String,
    /// Who made them one.
    pub created_by: String,
}

/// What a key is for. Source: the published protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeyScope {
    /// To look.
    Read,
    /// To look and to work.
    Write,
    /// To answer approvals, and nothing else.
    Approvals,
    /// To pair devices, which this host does not do.
    Pairing,
    /// To get rules for a machine under guard, and to tell what they did there; nothing else.
    Guard,
    /// Everything that a tenant's administrator may.
    Admin,
}

impl KeyScope {
    /// All scopes.
    pub const ALL: [Self; 6] = [Self::Read, Self::Write, Self::Approvals, Self::Pairing, Self::Guard, Self::Admin];

    /// The word on the wire.
    pub fn word(self) -> &'static str {
        match self {
            Self::Read => "operator.read",
            Self::Write => "operator.write",
            Self::Approvals => "operator.approvals",
            Self::Pairing => "operator.pairing",
            Self::Guard => "operator.guard",
            Self::Admin => "operator.admin",
        }
    }

    /// The role that it takes.
    pub fn role(self) -> CallerRole {
        match self {
            Self::Read | Self::Guard => CallerRole::Viewer,
            Self::Write | Self::Approvals | Self::Pairing => CallerRole::Operator,
            Self::Admin => CallerRole::Admin,
        }
    }
}

impl FromStr for KeyScope {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|scope| scope.word() == word);
        found.ok_or_else(|| {
            let known: Vec<&str> = Self::ALL.into_iter().map(Self::word).collect();
            format!("unknown scope \"{}\"; expected one of {}", word.escape_debug(), known.join(", "))
        })
    }
}

/// An API key, without what it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKey {
    /// Where it counts.
    pub tenant: TenantId,
    /// A UUID.
    pub id: String,
    /// Who it is, in that tenant.
    pub owner: String,
    /// For people.
    pub name: String,
    /// How it begins, so that people tell keys apart.
    pub shown: String,
    /// What it is for; not empty.
    pub scopes: Vec<KeyScope>,
    /// From when on it is none any more, RFC 3339, UTC.
    pub expires_at: Option<String>,
    /// Since when it is none any more, because somebody said so.
    pub revoked_at: Option<String>,
    /// RFC 3339, UTC.
    pub created_at: String,
    /// Who made it.
    pub created_by: String,
}

impl ApiKey {
    /// The most that it gives.
    pub fn role(&self) -> CallerRole {
        self.scopes.iter().map(|scope| scope.role()).max().unwrap_or(CallerRole::Viewer)
    }

    /// Whether it counts at `now`.
    pub fn is_good(&self, now: Timestamp) -> bool {
        // A time that cannot be read gives nothing.
        let is_over = |at: &String| !at.parse::<Timestamp>().is_ok_and(|at| at > now);
        self.revoked_at.is_none() && !self.expires_at.as_ref().is_some_and(is_over)
    }
}

/// What somebody was known by when they signed in to the console.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionOrigin {
    /// A link that somebody printed in a terminal.
    Link,
    /// The gateway token: a digest of it, so that another token ends the session.
    Token(String),
    /// The API key with this id.
    Key(String),
}

impl fmt::Display for SessionOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Link => f.write_str("link"),
            Self::Token(digest) => write!(f, "token:{digest}"),
            Self::Key(id) => write!(f, "key:{id}"),
        }
    }
}

impl FromStr for SessionOrigin {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "link" => Ok(Self::Link),
            Some(("token", digest)) => Ok(Self::Token(digest.to_owned())),
            Some(("key", id)) => Ok(Self::Key(id.to_owned())),
            None | Some(_) => Err(format!("unknown origin \"{}\"", text.escape_debug())),
        }
    }
}

/// Somebody who is signed in to the console from one browser.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsoleSession {
    /// Where.
    pub tenant: TenantId,
    /// A UUID.
    pub id: String,
    /// Who they are there.
    pub user: String,
    /// The most that it gives.
    pub role: CallerRole,
    /// What they were known by.
    pub origin: SessionOrigin,
    /// What the browser says it is, for people.
    pub device: String,
    /// RFC 3339, UTC.
    pub created_at: String,
    /// When it was last used, to about a minute.
    pub seen_at: String,
}

/// The two secrets of a console session: a page keeps one, and the browser the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionSecrets {
    /// What requests say.
    pub key: SecretDigest,
    /// What the browser adds by itself.
    pub cookie: SecretDigest,
}

/// A link that signs somebody in once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignInLink {
    /// Where.
    pub tenant: TenantId,
    /// As whom.
    pub user: String,
    /// The most that it gives.
    pub role: CallerRole,
    /// Until when, RFC 3339, UTC.
    pub expires_at: String,
}

/// Those who may ask, and what they use. Each change of a key, a member or a tenant is an entry of the audit chain, in one
/// transaction: see [`IdentityChange`](super::IdentityChange).
pub trait IdentityStore: Send + Sync {
    /// Counts what takes something away from somebody: whoever has seen another number looks again who may what. Blocks.
    ///
    /// # Errors
    /// The store cannot be read.
    fn identity_epoch(&self) -> Result<u64, StoreError>;

    /// The tenants that are disabled. Blocks.
    ///
    /// # Errors
    /// The store cannot be read.
    fn disabled_tenants(&self) -> Result<Vec<TenantId>, StoreError>;

    /// Adds a tenant. Blocks.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] if there is one with its id or slug; or the store cannot do it.
    fn create_tenant(&self, tenant: &Tenant, by: &Actor) -> Result<(), StoreError>;

    /// Disables a tenant, which shuts its gates wherever rules are read, or enables it again. Blocks.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if there is none; or the store cannot do it.
    fn set_tenant_disabled(&self, tenant: &TenantId, disabled: bool, by: &Actor) -> Result<(), StoreError>;

    /// The members of `tenant`, by user. Blocks.
    ///
    /// # Errors
    /// The store cannot be read.
    fn members(&self, tenant: &TenantId) -> Result<Vec<Member>, StoreError>;

    /// One member. Blocks.
    ///
    /// # Errors
    /// The store cannot be read.
    fn member(&self, tenant: &TenantId, user: &str) -> Result<Option<Member>, StoreError>;

    /// Adds a member. Blocks.
    ///
    /// # Errors
    /// [`StoreError::Conflict`] if they are one, [`StoreError::NotFound`] if there is no such tenant; or the store
    /// cannot do it.
    fn add_member(&self, member: &Member) -> Result<(), StoreError>;

    /// Gives a member another role, and lets them in or not; the console sessions of one who is not let in end. Blocks.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if they are none; or the store cannot do it.
    fn change_member(&self, member: &Member, by: &Actor) -> Result<(), StoreError>;

    /// Takes a member out, revokes their keys and ends their console sessions. Whether they were one. Blocks.
    ///
    /// # Errors
    /// The store cannot do it.
    fn remove_member(&self, tenant: &TenantId, user: &str, by: &Actor) -> Result<bool, StoreError>;

    /// Whether somebody was a member and was taken out, and nobody added them again. Blocks.
    ///
    /// # Errors
    /// The store cannot be read.
    fn was_removed(&self, tenant: &TenantId, user: &str) -> Result<bool, StoreError>;

    /// Adds a key whose owner is a member. Blocks.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] if the owner is none; or the store cannot do it.
    fn add_key(&self, key: &ApiKey, digest: &SecretDigest) -> Result<(), StoreError>;

    /// The keys of `tenant`, newest first. Blocks.
    ///
    /// # Errors
    /// The store cannot be read.
    fn keys(&self, tenant: &TenantId) -> Result<Vec<ApiKey>, StoreError>;

    /// One key. Blocks.
    ///
    /// # Errors
    /// The store cannot be read.
    fn key(&self, tenant: &TenantId, id: &str) -> Result<Option<ApiKey>, StoreError>;

    /// The key whose secret has this digest, in whichever tenant. Blocks.
    ///
    /// # Errors
    /// The store cannot be read.
    fn key_of(&self, digest: &SecretDigest) -> Result<Option<ApiKey>, StoreError>;

    /// Whether any key of any tenant counts at `now`. Blocks.
    ///
    /// # Errors
    /// The store cannot be read.
    fn has_keys(&self, now: Timestamp) -> Result<bool, StoreError>;

    /// Revokes a key and ends the console sessions that came from it. Whether there was one that counted. Blocks.
    ///
    /// # Errors
    /// The store cannot do it.
    fn revoke_key(&self, tenant: &TenantId, id: &str, by: &Actor) -> Result<bool, StoreError>;

    /// Keeps a link until it is used or too old. Blocks.
    ///
    /// # Errors
    /// The store cannot do it.
    fn add_link(&self, link: &SignInLink, code: &SecretDigest) -> Result<(), StoreError>;

    /// Takes the link with this code: nobody else gets it any more. Blocks.
    ///
    /// # Errors
    /// The store cannot do it.
    fn take_link(&self, code: &SecretDigest, now: Timestamp) -> Result<Option<SignInLink>, StoreError>;

    /// Begins a console session. Blocks.
    ///
    /// # Errors
    /// The store cannot do it.
    fn add_console_session(&self, session: &ConsoleSession, secrets: &SessionSecrets) -> Result<(), StoreError>;

    /// The console session whose key has this digest, and what its cookie must be. Blocks.
    ///
    /// # Errors
    /// The store cannot be read.
    fn console_session_of(&self, key: &SecretDigest) -> Result<Option<(ConsoleSession, SecretDigest)>, StoreError>;

    /// One console session. Blocks.
    ///
    /// # Errors
    /// The store cannot be read.
    fn console_session(&self, tenant: &TenantId, id: &str) -> Result<Option<ConsoleSession>, StoreError>;

    /// The console sessions of a user, newest first. Blocks.
    ///
    /// # Errors
    /// The store cannot be read.
    fn console_sessions(&self, tenant: &TenantId, user: &str) -> Result<Vec<ConsoleSession>, StoreError>;

    /// Notes that a console session was used. Blocks.
    ///
    /// # Errors
    /// The store cannot do it.
    fn console_session_seen(&self, tenant: &TenantId, id: &str, at: Timestamp) -> Result<(), StoreError>;

    /// Ends a console session of a user, or all of them. How many. Blocks.
    ///
    /// # Errors
    /// The store cannot do it.
    fn end_console_sessions(&self, tenant: &TenantId, user: &str, id: Option<&str>) -> Result<usize, StoreError>;

    /// Forgets links that are too old, console sessions that nobody used since the first moment of `too_old` or that
    /// began before the second, and uses that nobody kept. Blocks.
    ///
    /// # Errors
    /// The store cannot do it.
    fn forget_identities(&self, now: Timestamp, too_old: (Timestamp, Timestamp)) -> Result<(), StoreError>;

    /// Counts `it`, from the first moment of `at` until the second, unless there is no `room`. What ended counts no more in
    /// any case. One commit. Blocks.
    ///
    /// # Errors
    /// The store cannot do it.
    fn take_use(&self, it: &GatewayUse, room: UseRoom<'_>, at: (Timestamp, Timestamp)) -> Result<bool, StoreError>;

    /// Counts everything that `node` has until `until`. Blocks.
    ///
    /// # Errors
    /// The store cannot do it.
    fn keep_uses(&self, node: &str, until: Timestamp) -> Result<(), StoreError>;

    /// Counts these no more. Blocks.
    ///
    /// # Errors
    /// The store cannot do it.
    fn end_uses(&self, ids: &[String]) -> Result<(), StoreError>;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(scopes: &[KeyScope], expires_at: Option<&str>, revoked_at: Option<&str>) -> ApiKey {
        ApiKey {
            tenant: TenantId::default_tenant(),
            id: "k".into(),
            owner: "anna".into(),
            name: String::new(),
            shown: "pintle_0".into(),
            scopes: scopes.to_vec(),
            expires_at: expires_at.map(str::to_owned),
            revoked_at: revoked_at.map(str::to_owned),
            created_at: String::new(),
            created_by: String::new(),
        }
    }

    #[test]
    fn the_role_of_a_key_is_the_highest_that_a_scope_takes() {
        for (scopes, role) in [
            (&[KeyScope::Read][..], CallerRole::Viewer),
            (&[KeyScope::Read, KeyScope::Write], CallerRole::Operator),
            (&[KeyScope::Approvals], CallerRole::Operator),
            (&[KeyScope::Pairing], CallerRole::Operator),
            (&[KeyScope::Admin, KeyScope::Read], CallerRole::Admin),
            (&[], CallerRole::Viewer),
        ] {
            assert_eq!(key(scopes, None, None).role(), role, "{scopes:?}");
        }
        for scope in KeyScope::ALL {
            assert_eq!(scope.word().parse(), Ok(scope));
        }
    }

    #[test]
    fn a_key_counts_until_it_expires_or_is_revoked() {
        let now: Timestamp = "2026-01-02T00:00:00Z".parse().unwrap();
        for (expires, revoked, good) in [
            (None, None, true),
            (Some("2026-01-02T00:00:01Z"), None, true),
            (Some("2026-01-02T00:00:00Z"), None, false),
            (None, Some("2026-01-01T00:00:00Z"), false),
            (Some("2027-01-01T00:00:00Z"), Some("2026-01-01T00:00:00Z"), false),
        ] {
            assert_eq!(key(&[KeyScope::Read], expires, revoked).is_good(now), good, "{expires:?} {revoked:?}");
        }
    }

    #[test]
    fn an_origin_comes_back_from_its_text() {
        for origin in [SessionOrigin::Link, SessionOrigin::Token("ab".into()), SessionOrigin::Key("k:1".into())] {
            assert_eq!(origin.to_string().parse(), Ok(origin));
        }
        assert!("".parse::<SessionOrigin>().is_err() && "cookie:x".parse::<SessionOrigin>().is_err());
    }
}
