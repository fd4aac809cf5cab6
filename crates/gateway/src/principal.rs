//! Who is asking: which tenant they are in, who they are there, and what they may do.

use jiff::Timestamp;
use pintle_domain::id::TenantId;
use pintle_domain::store::KeyScope;
use pintle_rules::admin::{Caller, CallerRole};
use pintle_rules::record::Lang;

/// What somebody must be let do, beside what their role allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Right {
    /// What everybody may who said who they are: to look after their own sessions of the console.
    SignedIn,
    /// To look.
    Read,
    /// To talk to agents.
    Write,
    /// To try rules out.
    TryRules,
    /// To answer approvals.
    Approve,
    /// To get the rules of the tenant for a machine under guard, and to tell what they did there.
    Guard,
    /// To change rules, keys and people.
    Admin,
}

impl Right {
    /// The scope that gives it to a key; nothing where every key has it.
    pub(crate) const fn scope(self) -> Option<&'static str> {
        match self {
            Self::SignedIn => None,
            Self::Read => Some("operator.read"),
            Self::Write | Self::TryRules => Some("operator.write"),
            Self::Approve => Some("operator.approvals"),
            Self::Guard => Some("operator.guard"),
            Self::Admin => Some("operator.admin"),
        }
    }
}

/// What of that which their role allows somebody may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rights {
    signed_in: bool,
    read: bool,
    talk: Talk,
    approve: bool,
    guard: bool,
    admin: bool,
}

/// How far somebody may make agents and rules work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Talk {
    #[default]
    No,
    /// Agents, and no rules.
    Agents,
    AgentsAndRules,
}

impl Rights {
    /// Whether all of `others` are among them.
    pub(crate) fn covers(self, others: Self) -> bool {
        let flags = |it: Self| [it.signed_in, it.read, it.approve, it.guard, it.admin];
        flags(self).iter().zip(flags(others)).all(|(own, other)| *own || !other) && self.talk >= others.talk
    }

    /// Everything that the role allows.
    pub(crate) fn all() -> Self {
        Self { signed_in: true, read: true, talk: Talk::AgentsAndRules, approve: true, guard: true, admin: true }
    }

    /// Those of somebody who did not say who they are, on their own machine.
    pub(crate) fn anonymous() -> Self {
        Self { signed_in: false, read: true, talk: Talk::Agents, approve: false, guard: false, admin: false }
    }

    /// Those that a key with these scopes gives.
    pub(crate) fn of_scopes(scopes: &[KeyScope]) -> Self {
        scopes.iter().fold(Self { signed_in: true, ..Self::default() }, |rights, scope| match scope {
            KeyScope::Read => Self { read: true, ..rights },
            KeyScope::Write => Self { read: true, talk: Talk::AgentsAndRules, ..rights },
            KeyScope::Approvals => Self { approve: true, ..rights },
            KeyScope::Guard => Self { guard: true, ..rights },
            KeyScope::Pairing => rights,
            KeyScope::Admin => Self::all(),
        })
    }

    /// The scopes that give a key as much, in their words.
    pub(crate) fn scopes(self) -> Vec<&'static str> {
        let has = |scope: &KeyScope| match scope {
            KeyScope::Read => self.read,
            KeyScope::Write => self.talk != Talk::No,
            KeyScope::Approvals => self.approve,
            KeyScope::Pairing => false,
            KeyScope::Guard => self.guard,
            KeyScope::Admin => self.admin,
        };
        KeyScope::ALL.into_iter().filter(has).map(KeyScope::word).collect()
    }

    pub(crate) fn has(self, right: Right) -> bool {
        match right {
            Right::SignedIn => self.signed_in,
            Right::Read => self.read,
            Right::Write => self.talk != Talk::No,
            Right::TryRules => self.talk == Talk::AgentsAndRules,
            Right::Approve => self.approve,
            Right::Guard => self.guard,
            Right::Admin => self.admin,
        }
    }
}

/// What somebody is known by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Credential {
    /// The gateway token.
    Token,
    /// The API key with this id.
    Key(String),
    /// A console session, and the API key that it came from, if it came from one.
    Console {
        /// Its id.
        session: String,
        /// The id of the key.
        key: Option<String>,
    },
    /// They sit at this machine, and nobody asks.
    Anonymous,
}

impl Credential {
    /// The id of the API key, if it is one or came from one.
    pub(crate) fn key(&self) -> Option<&str> {
        match self {
            Self::Key(id) | Self::Console { key: Some(id), .. } => Some(id),
            Self::Token | Self::Console { key: None, .. } | Self::Anonymous => None,
        }
    }

    /// For whom connections are counted; nothing for the token, whose holder is the operator's own server.
    pub(crate) fn counted_for(&self) -> Option<String> {
        match self {
            Self::Token => None,
            Self::Key(id) | Self::Console { key: Some(id), .. } => Some(format!("key:{id}")),
            Self::Console { session, key: None } => Some(format!("session:{session}")),
            Self::Anonymous => Some("anonymous".to_owned()),
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
    pub(crate) credential: Credential,
    /// When it ends by itself.
    pub(crate) until: Option<Timestamp>,
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

    /// Whether they are the `user` that they say they are, if they say it: the token speaks for any.
    pub(crate) fn is_as(&self, user: Option<&str>) -> bool {
        user.is_none_or(|user| user == self.user)
    }

    /// Whether they are told of faults as the log has them: administrators, and whoever sits at a machine on which nobody
    /// has to sign in.
    pub(crate) fn reads_faults(&self) -> bool {
        self.role >= CallerRole::Admin || self.credential == Credential::Anonymous
    }

    /// Whether they may see what others of their tenant do.
    pub(crate) fn sees_others(&self) -> bool {
        self.role >= CallerRole::Admin
    }

    /// Whether they may look at every tenant.
    pub(crate) fn is_owner(&self) -> bool {
        self.role == CallerRole::Owner
    }

    /// The same, looking at what `tenant` has.
    #[must_use]
    pub(crate) fn looking_at(&self, tenant: &str) -> Self {
        Self { tenant: TenantId::from(tenant), ..self.clone() }
    }

    /// Whether they may no more and no less than `other`.
    pub(crate) fn may_as(&self, other: &Self) -> bool {
        (self.role, self.rights) == (other.role, other.rights)
    }
}

impl Principal {
    /// Whether they may all that `other` may.
    pub(crate) fn may_all_of(&self, other: &Self) -> bool {
        self.role >= other.role && self.rights.covers(other.rights)
    }
}

/// Somebody of the default tenant, for tests.
#[cfg(test)]
pub(crate) fn somebody(user: &str, role: CallerRole) -> Principal {
    Principal {
        tenant: TenantId::default_tenant(),
        slug: "default".into(),
        tenant_name: "Default".into(),
        user: user.into(),
        role,
        rights: Rights::all(),
        credential: Credential::Token,
        until: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_key_gives_is_told_in_the_words_of_scopes() {
        let of = |scope: KeyScope| Rights::of_scopes(&[scope]).scopes();
        assert_eq!(of(KeyScope::Read), ["operator.read"]);
        assert_eq!(of(KeyScope::Write), ["operator.read", "operator.write"]);
        assert_eq!(of(KeyScope::Approvals), ["operator.approvals"]);
        assert_eq!(of(KeyScope::Guard), ["operator.guard"]);
        let all = ["operator.read", "operator.write", "operator.approvals", "operator.guard", "operator.admin"];
        assert_eq!((of(KeyScope::Admin), Rights::all().scopes()), (all.to_vec(), all.to_vec()));
    }
}
