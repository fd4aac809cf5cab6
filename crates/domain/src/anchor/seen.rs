//! A store as it is found, and what can be wrong with its rules.

use std::collections::BTreeMap;

use super::chain::ChainSeen;
use super::known::AnchoredRule;
use crate::audit::ChangeProof;
use crate::id::{HookId, TenantId};

/// A store as it is found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreSeen {
    /// Which store it is.
    pub store_id: String,
    /// The counter of the changes of rules.
    pub epoch: u64,
    /// Its audit chains.
    pub chains: BTreeMap<TenantId, ChainSeen>,
    /// What the chains say of rules, of the rows that were not read before.
    pub changes: Vec<RuleEntry>,
    /// Its rules.
    pub rules: BTreeMap<HookId, AnchoredRule>,
    /// What its tenants are called.
    pub tenants: BTreeMap<TenantId, String>,
    /// Whether there is a key that seals: from then on, what has no seal does not count.
    pub is_keyed: bool,
    /// Rows that are no rules: what can be said of them, and what is wrong.
    pub unreadable: Vec<RuleDoubt>,
}

/// What one entry of an audit chain says of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleEntry {
    /// The counter of the changes of rules, then the row: entries come in this order, whichever chain they are in.
    pub order: (u64, u64),
    /// In which chain.
    pub tenant: TenantId,
    /// What proves that a host wrote it.
    pub proof: ChangeProof,
    /// Which rule.
    pub hook: HookId,
    /// How it left the rule.
    pub left: RuleLeft,
}

/// How a change left a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleLeft {
    /// As this.
    As(Box<AnchoredRule>),
    /// Gone.
    Gone,
    /// The entry does not say it: a program wrote it that did not know of digests.
    Unsaid,
}

/// A rule that is not as Pintle left it: what it was to guard stays shut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleDoubt {
    /// Which rule.
    pub hook: HookId,
    /// What it guards.
    pub rule: AnchoredRule,
    /// What is wrong.
    pub why: DoubtKind,
}

/// What is wrong with a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DoubtKind {
    /// Its row is another one than was written.
    Edited,
    /// Its row is gone.
    Missing,
    /// Nobody wrote its row but by other means.
    Foreign,
    /// The chain has an entry about it that no host sealed.
    Unsealed,
    /// The chain has an entry about it with the seal of a key that is not known here.
    OtherKey,
    /// Its row is none.
    Unreadable(String),
}

impl RuleDoubt {
    /// The sentence about it, without what to do.
    pub fn text(&self) -> String {
        let name = self.rule.name.escape_debug();
        match &self.why {
            DoubtKind::Edited => format!("the stored rule `{name}` was changed by something other than Pintle"),
            DoubtKind::Missing => format!("the stored rule `{name}` was deleted by something other than Pintle"),
            DoubtKind::Foreign => format!("the stored rule `{name}` was written by something other than Pintle"),
            DoubtKind::Unsealed => format!(
                "the stored rule `{name}` was changed by something other than Pintle, and its entry in the audit chain \
                 has no seal"
            ),
            DoubtKind::OtherKey => format!(
                "the stored rule `{name}` was changed by another host, or by somebody who forged that: its entry in the \
                 audit chain is sealed with a key that is not known here"
            ),
            DoubtKind::Unreadable(why) => format!("the stored rule `{name}` cannot be read: {why}"),
        }
    }

    /// What a person does about it. A store that `is_of_server`, a database of a server, is restored with the server's
    /// own tools.
    pub fn remedy(&self, is_of_server: bool) -> &'static str {
        match (&self.why, is_of_server) {
            (DoubtKind::Unreadable(_), _) => {
                "fix or delete its row with a tool for databases, then `pintle store accept`"
            }
            (DoubtKind::OtherKey, false) => {
                "if that host is yours, give both the same `PINTLE_ENCRYPTION_KEY`, or take it with `pintle store \
                 accept`; else `pintle store restore FILE`"
            }
            (DoubtKind::OtherKey, true) => {
                "if that host is yours, give both the same `PINTLE_ENCRYPTION_KEY`, or take it with `pintle store \
                 accept`; else restore the database with the server's own tools"
            }
            (DoubtKind::Edited | DoubtKind::Missing | DoubtKind::Foreign | DoubtKind::Unsealed, false) => {
                "if that is meant, `pintle store accept`; else `pintle store restore FILE`"
            }
            (DoubtKind::Edited | DoubtKind::Missing | DoubtKind::Foreign | DoubtKind::Unsealed, true) => {
                "if that is meant, `pintle store accept`; else restore the database with the server's own tools"
            }
        }
    }
}
