//! Who asks.

use crate::record::Lang;
pub use pintle_domain::caller_role::CallerRole;
use pintle_domain::id::TenantId;

use super::{AdminError, AdminErrorCode};

/// Who asks. All of it comes from their session, nothing from what they ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Where they are.
    pub tenant: TenantId,
    /// The role of the caller.
    pub role: CallerRole,
    /// For the change log, and as whose the hooks are that they make.
    pub name: String,
    /// The user, where there are several.
    pub user: Option<String>,
    /// By which way they write records.
    pub lang: Lang,
}

impl Caller {
    /// Whoever sits at the command line: the owner, in the default tenant.
    pub fn cli() -> Self {
        Self {
            tenant: TenantId::default_tenant(),
            role: CallerRole::Owner,
            name: "cli".to_owned(),
            user: None,
            lang: Lang::Cli,
        }
    }

    /// Whether they may change what is about every tenant.
    pub fn is_master(&self) -> bool {
        self.role == CallerRole::Owner
    }

    /// The tenant that they look at: their own, or, for owners, the one that they ask for, or every one.
    pub(super) fn looks_at(&self, asked: Option<&TenantId>) -> Result<Option<TenantId>, AdminError> {
        match asked {
            _ if self.is_master() => Ok(asked.cloned()),
            Some(other) if *other != self.tenant => Err(AdminError::no_master()),
            Some(_) | None => Ok(Some(self.tenant.clone())),
        }
    }

    /// Lets those pass who have at least `role`.
    pub(super) fn at_least(&self, role: CallerRole, method: &str) -> Result<(), AdminError> {
        if self.role >= role {
            return Ok(());
        }
        let text = format!("permission denied: hooks.{method} requires {} role", role.word());
        Err(AdminError::new(AdminErrorCode::Unauthorized, text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn others_than_the_own_tenant_are_for_owners() {
        let (own, other) = (TenantId::default_tenant(), TenantId::new("another"));
        let caller = |role| Caller { role, ..Caller::cli() };
        for role in [CallerRole::Viewer, CallerRole::Operator, CallerRole::Admin] {
            assert_eq!(caller(role).looks_at(None), Ok(Some(own.clone())));
            assert_eq!(caller(role).looks_at(Some(&own)), Ok(Some(own.clone())));
            assert_eq!(caller(role).looks_at(Some(&other)), Err(AdminError::no_master()));
        }
        let owner = caller(CallerRole::Owner);
        assert_eq!(owner.looks_at(None), Ok(None));
        assert_eq!(owner.looks_at(Some(&other)), Ok(Some(other)));
    }
}
