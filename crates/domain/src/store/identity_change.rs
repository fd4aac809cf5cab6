//! What the audit chain says of changes of those who may ask.

use super::{Actor, ApiKey, Member, Tenant};
use crate::id::TenantId;
use crate::json::{Object, Value};

/// A change of a key, a member or a tenant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdentityChange<'a> {
    /// Somebody made a key.
    KeyCreated(&'a ApiKey),
    /// A key counts no more.
    KeyRevoked(&'a ApiKey),
    /// Somebody belongs to a tenant.
    MemberAdded(&'a Member),
    /// A member has another role, or is let in, or no more.
    MemberChanged(&'a Member),
    /// Somebody belongs to a tenant no more; their keys count no more either.
    MemberRemoved(&'a Member),
    /// There is a tenant.
    TenantCreated(&'a Tenant),
    /// A tenant is closed.
    TenantDisabled(&'a Tenant),
    /// A tenant is open again.
    TenantEnabled(&'a Tenant),
    /// Somebody took a key as its row was found.
    KeyAccepted(&'a ApiKey),
    /// Somebody took a member as their row was found.
    MemberAccepted(&'a Member),
    /// Somebody took the name of a tenant as it was found.
    TenantAccepted(&'a Tenant),
}

/// The action that an entry about such a change names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdentityAction {
    /// A key was made.
    KeyCreated,
    /// A key counts no more.
    KeyRevoked,
    /// A member was added.
    MemberAdded,
    /// A member has another role, or may come in or not.
    MemberChanged,
    /// A member was taken out.
    MemberRemoved,
    /// A tenant was made.
    TenantCreated,
    /// A tenant was closed.
    TenantDisabled,
    /// A tenant was opened again.
    TenantEnabled,
    /// Somebody took a key as it was found.
    KeyAccepted,
    /// Somebody took a member as it was found.
    MemberAccepted,
    /// Somebody took the name of a tenant as it was found.
    TenantAccepted,
}

impl IdentityAction {
    /// Every action.
    pub const ALL: [Self; 11] = [
        Self::KeyCreated,
        Self::KeyRevoked,
        Self::MemberAdded,
        Self::MemberChanged,
        Self::MemberRemoved,
        Self::TenantCreated,
        Self::TenantDisabled,
        Self::TenantEnabled,
        Self::KeyAccepted,
        Self::MemberAccepted,
        Self::TenantAccepted,
    ];

    /// Its word in the chain.
    pub fn word(self) -> &'static str {
        match self {
            Self::KeyCreated => "key_created",
            Self::KeyRevoked => "key_revoked",
            Self::MemberAdded => "member_added",
            Self::MemberChanged => "member_changed",
            Self::MemberRemoved => "member_removed",
            Self::TenantCreated => "tenant_created",
            Self::TenantDisabled => "tenant_disabled",
            Self::TenantEnabled => "tenant_enabled",
            Self::KeyAccepted => "key_accepted",
            Self::MemberAccepted => "member_accepted",
            Self::TenantAccepted => "tenant_accepted",
        }
    }

    /// The action with this word.
    pub fn named(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.word() == word)
    }
}

impl IdentityChange<'_> {
    /// What was done.
    pub fn action(&self) -> IdentityAction {
        match self {
            Self::KeyCreated(_) => IdentityAction::KeyCreated,
            Self::KeyRevoked(_) => IdentityAction::KeyRevoked,
            Self::MemberAdded(_) => IdentityAction::MemberAdded,
            Self::MemberChanged(_) => IdentityAction::MemberChanged,
            Self::MemberRemoved(_) => IdentityAction::MemberRemoved,
            Self::TenantCreated(_) => IdentityAction::TenantCreated,
            Self::TenantDisabled(_) => IdentityAction::TenantDisabled,
            Self::TenantEnabled(_) => IdentityAction::TenantEnabled,
            Self::KeyAccepted(_) => IdentityAction::KeyAccepted,
            Self::MemberAccepted(_) => IdentityAction::MemberAccepted,
            Self::TenantAccepted(_) => IdentityAction::TenantAccepted,
        }
    }

    /// The tenant in whose chain it stands.
    pub fn tenant(&self) -> &TenantId {
        match self {
            Self::KeyCreated(key) | Self::KeyRevoked(key) | Self::KeyAccepted(key) => &key.tenant,
            Self::MemberAdded(member)
            | Self::MemberChanged(member)
            | Self::MemberRemoved(member)
            | Self::MemberAccepted(member) => &member.tenant,
            Self::TenantCreated(tenant)
            | Self::TenantDisabled(tenant)
            | Self::TenantEnabled(tenant)
            | Self::TenantAccepted(tenant) => &tenant.id,
        }
    }

    /// What the entry says: whom it is about, never a secret or its digest.
    pub fn data(&self, by: &Actor) -> Object {
        let about: Vec<(&str, Value)> = match self {
            Self::KeyCreated(key) | Self::KeyRevoked(key) | Self::KeyAccepted(key) => vec![
                ("key_id", key.id.as_str().into()),
                ("name", key.name.as_str().into()),
                ("prefix", key.shown.as_str().into()),
                ("subject", key.owner.as_str().into()),
                ("scopes", Value::Array(key.scopes.iter().map(|scope| scope.word().into()).collect())),
                ("expires_at", key.expires_at.as_deref().map_or(Value::Null, Value::from)),
            ],
            Self::MemberAdded(member)
            | Self::MemberChanged(member)
            | Self::MemberRemoved(member)
            | Self::MemberAccepted(member) => vec![
                ("subject", member.user.as_str().into()),
                ("role", member.role.word().into()),
                ("enabled", member.disabled_at.is_none().into()),
            ],
            Self::TenantCreated(tenant)
            | Self::TenantDisabled(tenant)
            | Self::TenantEnabled(tenant)
            | Self::TenantAccepted(tenant) => {
                vec![("subject", tenant.slug.as_str().into()), ("name", tenant.name.as_str().into())]
            }
        };
        // Of another entry its action says it.
        let taken = if let Self::KeyAccepted(key) = self { Some(*key) } else { None };
        let revoked = taken.map(|key| ("revoked", Value::from(key.revoked_at.is_some())));
        let every: [(&str, Value); 4] = [
            ("action", self.action().word().into()),
            ("actor", by.name.as_str().into()),
            ("at", by.at.to_string().into()),
            ("tenant_id", self.tenant().as_str().into()),
        ];
        let why = (!by.reason.is_empty()).then(|| ("reason", Value::from(by.reason.as_str())));
        every.into_iter().chain(about).chain(revoked).chain(why).map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caller_role::CallerRole;

    #[test]
    fn every_action_is_found_by_its_word() {
        for action in IdentityAction::ALL {
            assert_eq!(IdentityAction::named(action.word()), Some(action));
        }
        assert_eq!(IdentityAction::named("store_accepted"), None);
    }

    #[test]
    fn an_entry_says_who_did_what_to_whom() {
        let member = Member {
            tenant: TenantId::from("t"),
            user: "ben".into(),
            role: CallerRole::Viewer,
            disabled_at: Some("2026-01-02T00:00:00Z".into()),
            created_at: String::new(),
            created_by: String::new(),
        };
        let by = Actor { name: "anna".into(), at: jiff::Timestamp::UNIX_EPOCH, reason: String::new() };
        let said = Value::Object(IdentityChange::MemberChanged(&member).data(&by));
        let expected = crate::json::json!({
            "action": "member_changed", "actor": "anna", "at": "1970-01-01T00:00:00Z", "tenant_id": "t",
            "subject": "ben", "role": "viewer", "enabled": false,
        });
        assert_eq!(said, expected);
        let why = Actor { reason: "she left".into(), ..by };
        assert_eq!(IdentityChange::MemberRemoved(&member).data(&why)["reason"], "she left");
    }
}
