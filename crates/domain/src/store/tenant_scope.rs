//! Whose rows are wanted.

use crate::id::TenantId;

/// Whose rows are wanted. Whoever asks for one by its id says so too: what is another tenant's is then not even read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TenantScope {
    /// Those of one tenant.
    One(TenantId),
    /// Those of every tenant: for operators, and for what serves all tenants.
    All,
}

impl TenantScope {
    /// The tenant, if it is one.
    pub fn one(&self) -> Option<&TenantId> {
        match self {
            Self::One(tenant) => Some(tenant),
            Self::All => None,
        }
    }

    /// Whether the rows of `tenant` are wanted.
    pub fn has(&self, tenant: &TenantId) -> bool {
        self.one().is_none_or(|one| one == tenant)
    }
}

impl From<&TenantId> for TenantScope {
    fn from(tenant: &TenantId) -> Self {
        Self::One(tenant.clone())
    }
}
