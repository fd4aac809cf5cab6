//! Who asks.

use crate::record::Lang;
pub use domain::caller_role::CallerRole;
use domain::id::TenantId;

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

    /// Lets those pass who have at least `role`.
    pub(super) fn at_least(&self, role: CallerRole, method: &str) -> Result<(), AdminError> {
        if self.role >= role {
            return Ok(());
        }
        let text = format!("permission denied: hooks.{method} requires {} role", role.word());
        Err(AdminError::new(AdminErrorCode::Unauthorized, text))
    }
}
