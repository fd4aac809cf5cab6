//! Who is asking: which tenant they are in, who they are there, and what they may do.

use domain::id::TenantId;
use rules::admin::{Caller, CallerRole};
use rules::record::Lang;

/// What somebody must be let do, beside what their role allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Right {
    /// To look.
    Read,
    /// To talk to agents.
    Write,
    /// To try rules out.
    TryRules,
    /// To answer approvals.
    Approve,
    /// To change rules, keys and people.
    Admin,
}

/// What of that which their role allows somebody may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rights {
    read: bool,
    talk: Talk,
    approve: bool,
    admin: bool,
}

/// How far somebody may make agents and rules work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Talk {
    #[default]
    No,
    /// Agents, and no rules.
    Agents,
    AgentsAndRules,
}

impl Rights {
    /// Everything that the role allows.
    pub(crate) fn all() -> Self {
        Self { read: true, talk: Talk::AgentsAndRules, approve: true, admin: true }
    }

    /// Those of somebody who did not say who they are, on their own machine.
    pub(crate) fn anonymous() -> Self {
        Self { read: true, talk: Talk::Agents, approve: false, admin: false }
    }

    pub(crate) fn has(self, right: Right) -> bool {
        match right {
            Right::Read => self.read,
            Right::Write => self.talk != Talk::No,
            Right::TryRules => self.talk == Talk::AgentsAndRules,
            Right::Approve => self.approve,
            Right::Admin => self.admin,
        }
    }
}

/// Somebody who is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Principal {
    pub(crate) tenant: TenantId,
    pub(crate) slug: String,
    pub(crate) tenant_name: String,
    /// Who they are in that tenant; not empty.
    pub(crate) user: String,
    pub(crate) role: CallerRole,
    pub(crate) rights: Rights,
}

impl Principal {
    /// The same for whoever manages rules.
    pub(crate) fn caller(&self) -> Caller {
        Caller {
            tenant: self.tenant.clone(),
            role: self.role,
            name: self.user.clone(),
            user: Some(self.user.clone()),
            lang: Lang::Api,
        }
    }

    /// Whether they may see what others of their tenant do.
    pub(crate) fn sees_others(&self) -> bool {
        self.role >= CallerRole::Admin
    }
}
